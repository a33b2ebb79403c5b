# SPDX-License-Identifier: GPL-2.0-or-later
# What is made beside the program, and where all of it goes: DESTDIR and PREFIX as usual.

SYSCONFDIR ?= /etc
BINDIR := $(PREFIX)/bin
MANDIR := $(PREFIX)/share/man
COMPLETIONDIR := $(PREFIX)/share/bash-completion/completions
# systemd looks below /usr and /usr/local alike.
UNITDIR := $(PREFIX)/lib/systemd/system
SYSUSERSDIR := $(PREFIX)/lib/sysusers.d

CONFIG_GEN := $(B)/iostall-config-gen
MAN_PAGES := $(addprefix $(B)/man/,iostall.1 iostalld.8 iostall.conf.5 iostall-record.5)
INSTALL_FILES := $(B)/iostall.conf $(B)/completion/iostall $(MAN_PAGES)

.PHONY: data install
data: $(INSTALL_FILES)

$(CONFIG_GEN): tools/iostall-config-gen.c $(B)/libiostall.a
	$(CC) $(ALL_CFLAGS) -MF $@.d -MT $@ $(LDFLAGS) -o $@ $< $(B)/libiostall.a $(LIB_LDLIBS)

-include $(CONFIG_GEN).d

# By way of a second name: a generator that fails must not leave half a file that looks whole.
$(B)/iostall.conf: $(CONFIG_GEN)
	$(CONFIG_GEN) conf >$@.tmp
	mv $@.tmp $@

$(B)/man/iostall.conf.5: man/iostall.conf.5.in $(CONFIG_GEN)
	@mkdir -p $(@D)
	$(CONFIG_GEN) man $< >$@.tmp
	mv $@.tmp $@

$(B)/man/%: man/%
	@mkdir -p $(@D)
	install -m 644 $< $@

$(B)/completion/iostall: data/completion.sh $(B)/iostall $(CONFIG_GEN)
	@mkdir -p $(@D)
	bash data/completion.sh $(B)/iostall $(CONFIG_GEN) >$@.tmp
	mv $@.tmp $@

install: $(B)/iostall $(INSTALL_FILES)
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(UNITDIR) $(DESTDIR)$(COMPLETIONDIR) \
		$(DESTDIR)$(SYSUSERSDIR) \
		$(DESTDIR)$(SYSCONFDIR)/iostall/conf.d \
		$(addprefix $(DESTDIR)$(MANDIR)/man,1 5 8)
	install -m 755 $(B)/iostall $(DESTDIR)$(BINDIR)/
	install -m 644 data/iostalld.service $(DESTDIR)$(UNITDIR)/
	sed -i 's,^ExecStart=/usr/bin/,ExecStart=$(BINDIR)/,' $(DESTDIR)$(UNITDIR)/iostalld.service
	install -m 644 data/iostall.sysusers $(DESTDIR)$(SYSUSERSDIR)/iostall.conf
	install -m 644 $(B)/completion/iostall $(DESTDIR)$(COMPLETIONDIR)/
	install -m 644 $(filter %.1,$(MAN_PAGES)) $(DESTDIR)$(MANDIR)/man1/
	install -m 644 $(filter %.5,$(MAN_PAGES)) $(DESTDIR)$(MANDIR)/man5/
	install -m 644 $(filter %.8,$(MAN_PAGES)) $(DESTDIR)$(MANDIR)/man8/
	# A configuration that is there is its owner's.
	test -e $(DESTDIR)$(SYSCONFDIR)/iostall/iostall.conf || \
		install -m 644 $(B)/iostall.conf $(DESTDIR)$(SYSCONFDIR)/iostall/
