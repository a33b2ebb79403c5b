# SPDX-License-Identifier: GPL-2.0-or-later
# The page of an incident: report/ as src/report/assets.c embeds it.

REPORT_STYLES := $(wildcard report/vendor/uPlot/*.css) report/page.css
REPORT_SCRIPTS := report/vendor/uPlot/uPlot.iife.js $(addprefix report/,$(shell cat report/scripts.list))
REPORT_ASSETS := $(addprefix $(B)/report/,page.html pair.html page.css page.js page.css.hash page.js.hash)

$(B)/report/%.html: report/%.html
	@mkdir -p $(@D)
	cp $< $@

$(B)/report/page.css: $(REPORT_STYLES)
	@mkdir -p $(@D)
	cat $^ >$@.tmp
	mv $@.tmp $@

$(B)/report/page.js: report/scripts.list $(REPORT_SCRIPTS)
	@mkdir -p $(@D)
	cat $(REPORT_SCRIPTS) >$@.tmp
	mv $@.tmp $@

# As Content-Security-Policy wants it: SHA-256 in base 64.
$(B)/report/%.hash: $(B)/report/%
	sha256sum $< | cut -c 1-64 | tr a-f A-F | basenc --base16 -d | base64 -w 0 >$@.tmp
	mv $@.tmp $@

$(B)/src/report/assets.o: $(REPORT_ASSETS)
$(B)/src/report/assets.o: ALL_CFLAGS += -Wa,-I$(B)/report

.PHONY: report-sample
## report-sample: make a page of a made incident, build/report/sample.html, to work on report/
report-sample: $(B)/report/sample.html

$(B)/report/sample.html: $(B)/iostall tests/report/make-sample.py
	tests/report/make-sample.py >$(B)/report/sample.jsonl
	$(B)/iostall report $(B)/report/sample.jsonl -o $@
