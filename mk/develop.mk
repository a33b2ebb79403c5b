# SPDX-License-Identifier: GPL-2.0-or-later
# What helps those who change the sources.

CLANG_FORMAT ?= clang-format
# What a program is made from by the compiler, and all that is formatted.
COMPILED := $(shell find src bpf tests tools -name '*.c')
FORMATTED := $(COMPILED) $(shell find src bpf include tests -name '*.h')

.PHONY: help format compile_commands.json

## help: show this list
# Each target is explained by a line "## TARGET: SENTENCE" beside its rule.
help:
	@sed -n 's/^## \([^:]*\): \(.*\)/\1\t\2/p' $(filter %Makefile %.mk,$(MAKEFILE_LIST)) | \
		awk -F '\t' '{ printf "%-38s %s\n", $$1, $$2 }'

## format: format all C files with clang-format, as lint wants them
format:
	$(CLANG_FORMAT) -i $(FORMATTED)

# The compilers' dependency options would make an editor write files.
USER_COMMAND = $(CC) $(filter-out -MD -MP,$(ALL_CFLAGS))
BPF_COMMAND = $(CLANG) $(filter-out -MMD -MP,$(BPF_CFLAGS))

## compile_commands.json: write how each C file is compiled, for clangd and other tools
compile_commands.json: | $(SKELETONS)
	@for file in $(COMPILED); do \
		case $$file in \
		bpf/*) command='$(BPF_COMMAND)' ;; \
		*) command='$(USER_COMMAND)' ;; \
		esac; \
		printf '{"directory":"%s","file":"%s","command":"%s"}\n' '$(CURDIR)' "$$file" \
			"$$command -c $$file"; \
	done | sed -e '1s/^/[/' -e '$$!s/$$/,/' -e '$$s/$$/]/' >$@.tmp
	@mv $@.tmp $@
