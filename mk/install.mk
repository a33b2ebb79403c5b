# SPDX-License-Identifier: GPL-2.0-or-later
# The files that are built beside the program, and where they are installed (DESTDIR, PREFIX).

SYSCONFDIR ?= /etc
BINDIR := $(PREFIX)/bin
MANDIR := $(PREFIX)/share/man
COMPLETIONDIR := $(PREFIX)/share/bash-completion/completions
# systemd reads units below /usr and below /usr/local.
UNITDIR := $(PREFIX)/lib/systemd/system
SYSUSERSDIR := $(PREFIX)/lib/sysusers.d

CATALOGDIR := $(PREFIX)/lib/systemd/catalog
DATADIR := $(PREFIX)/share/iostall

CONFIG_GEN := $(B)/iostall-config-gen
RECORD_GEN := $(B)/iostall-record-gen
MAN_PAGES := $(addprefix $(B)/man/,iostall.1 iostalld.8 iostall.conf.5 iostall-record.5)
INSTALL_FILES := $(B)/iostall.conf $(B)/completion/iostall $(B)/record.schema.json $(MAN_PAGES)

.PHONY: data install
## data: build manual pages, configuration file and shell completion
data: $(INSTALL_FILES)

$(CONFIG_GEN) $(RECORD_GEN): $(B)/%: tools/%.c $(B)/libiostall.a
	$(CC) $(ALL_CFLAGS) -MF $@.d -MT $@ $(LDFLAGS) -o $@ $< $(B)/libiostall.a $(LIB_LDLIBS)

-include $(CONFIG_GEN).d $(RECORD_GEN).d

# Written under another name first: a generator that fails must not leave half a file that looks complete.
$(B)/iostall.conf: $(CONFIG_GEN)
	$(CONFIG_GEN) conf >$@.tmp
	mv $@.tmp $@

$(B)/man/iostall.conf.5: man/iostall.conf.5.in $(CONFIG_GEN)
	@mkdir -p $(@D)
	$(CONFIG_GEN) man $< >$@.tmp
	mv $@.tmp $@

$(B)/man/iostall-record.5: man/iostall-record.5.in $(RECORD_GEN)
	@mkdir -p $(@D)
	$(RECORD_GEN) man $< >$@.tmp
	mv $@.tmp $@

$(B)/record.schema.json: $(RECORD_GEN)
	$(RECORD_GEN) schema >$@.tmp
	mv $@.tmp $@

$(B)/man/%: man/%
	@mkdir -p $(@D)
	install -m 644 $< $@

$(B)/completion/iostall: tools/completion.sh $(B)/iostall $(CONFIG_GEN)
	@mkdir -p $(@D)
	bash tools/completion.sh $(B)/iostall $(CONFIG_GEN) >$@.tmp
	mv $@.tmp $@

## install: install the program and all its files (DESTDIR, PREFIX)
install: $(B)/iostall $(INSTALL_FILES)
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(UNITDIR) $(DESTDIR)$(COMPLETIONDIR) \
		$(DESTDIR)$(SYSUSERSDIR) $(DESTDIR)$(CATALOGDIR) $(DESTDIR)$(DATADIR)/prometheus $(DESTDIR)$(DATADIR)/hooks \
		$(DESTDIR)$(SYSCONFDIR)/iostall/conf.d \
		$(addprefix $(DESTDIR)$(MANDIR)/man,1 5 8)
	install -m 755 $(B)/iostall $(DESTDIR)$(BINDIR)/
	install -m 644 systemd/iostalld.service systemd/iostalld-metrics.socket $(DESTDIR)$(UNITDIR)/
	sed -i 's,^ExecStart=/usr/bin/,ExecStart=$(BINDIR)/,' $(DESTDIR)$(UNITDIR)/iostalld.service
	install -m 644 systemd/iostall.sysusers $(DESTDIR)$(SYSUSERSDIR)/iostall.conf
	install -m 644 systemd/iostall.catalog $(DESTDIR)$(CATALOGDIR)/
	install -m 644 fleet/prometheus/iostall.rules.yml $(DESTDIR)$(DATADIR)/prometheus/
	install -m 755 fleet/hooks/gcore fleet/hooks/notify fleet/hooks/collect $(DESTDIR)$(DATADIR)/hooks/
	install -m 644 fleet/hooks/*.socket fleet/hooks/*.service $(DESTDIR)$(UNITDIR)/
	sed -i 's,^ExecStart=/usr/share/iostall/,ExecStart=$(DATADIR)/,' $(DESTDIR)$(UNITDIR)/iostall-*@.service
	install -m 644 $(B)/completion/iostall $(DESTDIR)$(COMPLETIONDIR)/
	install -m 644 $(B)/record.schema.json $(DESTDIR)$(DATADIR)/
	install -m 644 $(filter %.1,$(MAN_PAGES)) $(DESTDIR)$(MANDIR)/man1/
	install -m 644 $(filter %.5,$(MAN_PAGES)) $(DESTDIR)$(MANDIR)/man5/
	install -m 644 $(filter %.8,$(MAN_PAGES)) $(DESTDIR)$(MANDIR)/man8/
	# An existing configuration is kept.
	test -e $(DESTDIR)$(SYSCONFDIR)/iostall/iostall.conf || \
		install -m 644 $(B)/iostall.conf $(DESTDIR)$(SYSCONFDIR)/iostall/
