# SPDX-License-Identifier: GPL-2.0-or-later
# The test programs, and the targets that run them: `make check`, or one layer as `make check-unit`.

LAYERS := lint unit replay fuzz live vm bench

UNIT_TESTS := $(patsubst %.c,$(B)/%,$(wildcard tests/unit/test_*.c))
REPLAY_TOOLS := $(patsubst %.c,$(B)/%,$(wildcard tests/replay/*.c))
BENCHES := $(patsubst %.c,$(B)/%,$(wildcard tests/bench/bench_*.c))
FUZZERS := $(patsubst %.c,$(B)/%,$(wildcard tests/fuzz/fuzz_*.c))

.PHONY: setup demo check $(LAYERS:%=check-%) unit-tests replay-tools benches fuzzers replay-golden

setup:
	@tests/setup

# A second make: what the first has asked of compilers and pkg-config was before the set-up.
demo: setup
	@$(MAKE) --no-print-directory all
	@tests/demo

check: setup
	@tests/check

$(LAYERS:%=check-%): check-%: setup
	@tests/check $*

unit-tests: $(UNIT_TESTS)
replay-tools: $(REPLAY_TOOLS)
benches: $(BENCHES)
fuzzers: $(FUZZERS)

replay-golden: setup
	@tests/replay/run --golden

$(UNIT_TESTS): TEST_LDLIBS := -lcmocka
$(FUZZERS): TEST_LDLIBS := -fsanitize=fuzzer

$(UNIT_TESTS) $(REPLAY_TOOLS) $(BENCHES) $(FUZZERS): $(B)/tests/%: tests/%.c $(B)/libiostall.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MF $@.d -MT $@ $(LDFLAGS) -o $@ $< $(B)/libiostall.a $(TEST_LDLIBS) \
		$(LIB_LDLIBS)

-include $(UNIT_TESTS:=.d) $(REPLAY_TOOLS:=.d) $(BENCHES:=.d) $(FUZZERS:=.d)
