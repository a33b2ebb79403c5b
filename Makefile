# SPDX-License-Identifier: GPL-2.0-or-later
# `make setup`, `make demo` and `make check` install what is missing; every other target only builds.

CC ?= gcc
CLANG ?= clang
LLVM_STRIP ?= llvm-strip
BPFTOOL ?= /usr/sbin/bpftool
PKG_CONFIG ?= pkg-config
PREFIX ?= /usr
DESTDIR ?=

# SANITIZE=1 and FUZZ=1 build into directories of their own, with ASan and UBSan; FUZZ=1 by clang and
# with libFuzzer's coverage. WERROR=1 is what CI sets.
B := build$(if $(FUZZ),/fuzz,$(if $(SANITIZE),/sanitized))
LIBS := libbpf libelf zlib jansson

WARNINGS := -Wall -Wextra -Wformat=2 -Wmissing-prototypes -Wshadow -Wconversion \
	$(if $(WERROR),-Werror)
ifneq ($(SANITIZE)$(FUZZ),)
SANITIZERS := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
endif
ifdef FUZZ
CC := $(CLANG)
SANITIZERS += -fsanitize=fuzzer-no-link
endif
CFLAGS ?= -O2 -g
CFLAGS += $(SANITIZERS)
LDFLAGS += $(SANITIZERS)
# Lazily evaluated: before set-up the libraries may be missing.
# The client libraries of databases are loaded by the helper that needs them; their types are in headers.
LIB_CFLAGS = $(shell $(PKG_CONFIG) --cflags $(LIBS)) \
	$(patsubst -I%,-isystem %,$(shell $(PKG_CONFIG) --cflags libmariadb libpq))
LIB_LDLIBS = $(shell $(PKG_CONFIG) --libs $(LIBS)) -pthread
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE $(WARNINGS) $(CFLAGS) -Iinclude -Isrc -isystem $(B)/include \
	-MD -MP $(LIB_CFLAGS)

ARCH := $(shell uname -m | sed 's/x86_64/x86/; s/aarch64/arm64/')
BPF_CFLAGS := -g -O2 -target bpf -D__TARGET_ARCH_$(ARCH) -D__bpf__ -Wall -Wextra \
	-Wno-unused-parameter $(if $(WERROR),-Werror) -Iinclude -Ibpf \
	-I/usr/include/$(shell uname -m)-linux-gnu -MMD -MP

SOURCES := $(filter-out src/main.c,$(wildcard src/*.c src/*/*.c))
OBJECTS := $(SOURCES:%.c=$(B)/%.o)
BPF_SOURCES := $(wildcard bpf/*.bpf.c)
BPF_OBJECTS := $(BPF_SOURCES:%.bpf.c=$(B)/%.bpf.o)
SKELETONS := $(BPF_SOURCES:bpf/%.bpf.c=$(B)/include/%.skel.h)

.PHONY: all
all: $(B)/iostall data

$(B)/iostall: $(B)/src/main.o $(B)/libiostall.a
	$(CC) $(LDFLAGS) -o $@ $^ $(LIB_LDLIBS)

$(B)/libiostall.a: $(OBJECTS)
	rm -f $@
	ar rcs $@ $^

# The skeletons come first: only the compiler knows who includes them (-MD, for they are system headers).
$(B)/src/%.o: src/%.c | $(SKELETONS)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -c -o $@ $<

# Without DWARF, which nobody reads and locked memory would hold; BTF stays.
$(B)/bpf/%.bpf.o: bpf/%.bpf.c
	@mkdir -p $(@D)
	$(CLANG) $(BPF_CFLAGS) -MF $(@:.o=.d) -MT $@ -c -o $@.tmp $<
	$(LLVM_STRIP) -g -o $@ $@.tmp
	rm $@.tmp

$(B)/include/%.skel.h: $(B)/bpf/%.bpf.o
	@mkdir -p $(@D)
	$(BPFTOOL) gen skeleton $< > $@.tmp
	mv $@.tmp $@

-include $(OBJECTS:.o=.d) $(B)/src/main.d $(BPF_OBJECTS:.o=.d)

include mk/install.mk tests/tests.mk

# Named by dependency files once these exist: without this the first build would remove them again.
.SECONDARY: $(BPF_OBJECTS) $(SKELETONS)

.PHONY: clean
clean:
	rm -rf build
