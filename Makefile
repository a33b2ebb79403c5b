# SPDX-License-Identifier: GPL-2.0-or-later
# `make help` explains all targets. `make setup`, `make demo`, `make check` and `make chaos` install missing packages;
# no other target installs anything.

CC ?= gcc
CLANG ?= clang
LLVM_OBJCOPY ?= llvm-objcopy
BPFTOOL ?= /usr/sbin/bpftool
PKG_CONFIG ?= pkg-config
PREFIX ?= /usr
DESTDIR ?=

# SANITIZE=1 and FUZZ=1 build into directories of their own, with ASan and UBSan; FUZZ=1 uses clang and
# libFuzzer's coverage. WERROR=1 makes warnings errors, as continuous integration does.
B := build$(if $(FUZZ),/fuzz,$(if $(SANITIZE),/sanitized))
LIBS := libbpf libelf zlib jansson

WARNINGS := -Wall -Wextra -Wformat=2 -Wmissing-prototypes -Wshadow -Wconversion \
	$(if $(WERROR),-Werror)
ifneq ($(SANITIZE)$(FUZZ),)
SANITIZERS := -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=undefined,float-cast-overflow \
	-fno-omit-frame-pointer
endif
ifdef FUZZ
CC := $(CLANG)
SANITIZERS += -fsanitize=fuzzer-no-link
endif
# Sanitized code is compiled in half the time so, and the tests run as fast.
CFLAGS ?= $(if $(SANITIZERS),-O1 -g1,-O2 -g)
CFLAGS += $(SANITIZERS)
LDFLAGS += $(SANITIZERS)
# Evaluated when used, since the libraries may be missing before `make setup`.
# The client libraries of databases are loaded at run time by the helper process that needs them: only their
# headers are used here.
LIB_CFLAGS = $(shell $(PKG_CONFIG) --cflags $(LIBS)) \
	$(patsubst -I%,-isystem %,$(shell $(PKG_CONFIG) --cflags libmariadb libpq))
LIB_LDLIBS = $(shell $(PKG_CONFIG) --libs $(LIBS)) -pthread
# Nothing unwinds the daemon's own stack, and tables for that would be in locked memory.
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE $(WARNINGS) $(CFLAGS) -Iinclude -Isrc -isystem $(B)/include \
	-MD -MP $(LIB_CFLAGS) $(if $(SANITIZERS),,-fno-asynchronous-unwind-tables)

ARCH := $(shell uname -m | sed 's/x86_64/x86/; s/aarch64/arm64/')
BPF_CFLAGS := -g -O2 -target bpf -D__TARGET_ARCH_$(ARCH) -D__bpf__ -Wall -Wextra \
	-Wno-unused-parameter $(if $(WERROR),-Werror) -Iinclude -Ibpf \
	-I/usr/include/$(shell uname -m)-linux-gnu -MMD -MP

SOURCES := $(filter-out src/main.c,$(wildcard src/*.c src/*/*.c src/*/*/*.c))
OBJECTS := $(SOURCES:%.c=$(B)/%.o)
BPF_SOURCES := $(wildcard bpf/*.bpf.c)
BPF_OBJECTS := $(BPF_SOURCES:%.bpf.c=$(B)/%.bpf.o)
SKELETONS := $(BPF_SOURCES:bpf/%.bpf.c=$(B)/include/%.skel.h)

.PHONY: all
## all: build the program, its manual pages and its configuration file (the default)
all: $(B)/iostall data

$(B)/iostall: $(B)/src/main.o $(B)/libiostall.a
	$(CC) $(LDFLAGS) -o $@ $^ $(LIB_LDLIBS)

$(B)/libiostall.a: $(OBJECTS)
	rm -f $@
	ar rcs $@ $^

# The skeletons are built first, since only the compiler knows which file includes one (-MD and not -MMD:
# they count as system headers).
$(B)/src/%.o: src/%.c | $(SKELETONS)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -c -o $@ $<

# What is of no use after all has been loaded would occupy locked memory: lines of source, which only the verifier's log
# shows, are two thirds of what libbpf keeps. The linker leaves DWARF away, and texts that only lines refer to.
$(B)/bpf/%.bpf.o: bpf/%.bpf.c tools/drop-lines.pl | $(B)/tools.stamp
	@mkdir -p $(@D)
	$(CLANG) $(BPF_CFLAGS) -MF $(@:.o=.d) -MT $@ -c -o $@.tmp $<
	$(LLVM_OBJCOPY) --dump-section .BTF.ext=$@.ext $@.tmp
	tools/drop-lines.pl <$@.ext >$@.short
	$(LLVM_OBJCOPY) -w -N 'LBB*' -R .rel.BTF.ext --update-section .BTF.ext=$@.short $@.tmp
	$(BPFTOOL) gen object $@ $@.tmp
	rm $@.tmp $@.ext $@.short

# Everything is built after a skeleton, so this is where a missing compiler or library is reported.
$(B)/tools.stamp:
	@mkdir -p $(@D)
	@tests/setup --check-build $(firstword $(CC)) $(CLANG) $(LLVM_OBJCOPY) $(BPFTOOL) $(PKG_CONFIG)
	@touch $@

$(B)/include/%.skel.h: $(B)/bpf/%.bpf.o
	@mkdir -p $(@D)
	$(BPFTOOL) gen skeleton $< > $@.tmp
	mv $@.tmp $@

-include $(OBJECTS:.o=.d) $(B)/src/main.d $(BPF_OBJECTS:.o=.d)

include mk/report.mk mk/install.mk mk/develop.mk tests/tests.mk

# Dependency files name these once they exist. Without this line the first build would remove them as
# intermediate files.
.SECONDARY: $(BPF_OBJECTS) $(SKELETONS)

.PHONY: clean
## clean: remove everything that was built, and the kernels that the tests fetched
clean:
	rm -rf build
