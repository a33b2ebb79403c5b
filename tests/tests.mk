# SPDX-License-Identifier: GPL-2.0-or-later
# The test programs, and the targets that run them: `make check`, or one layer as `make check-unit`.

LAYERS := lint unit replay fuzz docs live chaos vm bench

UNIT_TESTS := $(patsubst %.c,$(B)/%,$(wildcard tests/unit/test_*.c))
REPLAY_TOOLS := $(patsubst %.c,$(B)/%,$(wildcard tests/replay/*.c))
BENCHES := $(patsubst %.c,$(B)/%,$(wildcard tests/bench/bench_*.c))
FUZZERS := $(patsubst %.c,$(B)/%,$(wildcard tests/fuzz/fuzz_*.c))

.PHONY: setup demo check $(LAYERS:%=check-%) unit-tests replay-tools benches fuzzers replay-golden

## setup: install what is needed to build and to test (Build-Depends of debian/control; as root)
setup:
	@tests/setup

# A second make, since the first asked compilers and pkg-config before the packages were installed.
## demo: install what is missing, build, and record a real stall on a private loop device (as root)
demo: setup
	@$(MAKE) --no-print-directory all
	@tests/demo

## check: install what is missing and run all tests (as root)
check: setup
	@tests/check

# T and KERNEL choose tests within a layer. They reach tests/layer/* by the environment.
export T KERNEL

## check-lint: check the sources without running them: format, layers, scripts, manual pages
## check-unit [T=rules]: run the unit tests, or only tests/unit/test_rules
## check-replay: run recorded kernel events through the user side and compare the records
## check-fuzz [T=record]: run each fuzz target for 5 seconds (FUZZ_SECONDS), or only fuzz_record
## check-docs: run each command of the documents in a copy of this machine, build and install the package (as root)
## check-live [T=stall]: record real stalls on this host (as root), or run only tests/live/stall
## check-chaos [T=disk]: do real faults to the daemon for three minutes (as root), or only those of tests/chaos/disk
## check-vm [KERNEL=6.12] [T=stall]: run live tests and the service under Debian's kernels in virtual machines
## check-bench: print what things cost on this host
$(LAYERS:%=check-%): check-%: packages
	@tests/check $*

## chaos [CHAOS_SECONDS=600]: install what is missing and do check-chaos; build/chaos/table has what held (as root)
.PHONY: chaos
chaos: setup
	@tests/check chaos

# A layer of tests installs nothing. It says which packages are missing.
.PHONY: packages
## packages: say which packages are missing to build and to test
packages:
	@tests/setup --check

## unit-tests: build the unit tests
unit-tests: $(UNIT_TESTS)
## replay-tools: build the programs that replay kernel events
replay-tools: $(REPLAY_TOOLS)
## benches: build the measurements
benches: $(BENCHES)
## fuzzers: build the fuzz targets (with FUZZ=1)
fuzzers: $(FUZZERS)

## replay-golden: write the records anew that check-replay expects
replay-golden: packages
	@tests/replay/run --golden

$(UNIT_TESTS): TEST_LDLIBS := -lcmocka
$(B)/tests/replay/replay: TEST_LDLIBS := -Wl,--wrap=clock_mono_ns
$(FUZZERS): TEST_LDLIBS := -fsanitize=fuzzer

$(UNIT_TESTS) $(REPLAY_TOOLS) $(BENCHES) $(FUZZERS): $(B)/tests/%: tests/%.c $(B)/libiostall.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MF $@.d -MT $@ $(LDFLAGS) -o $@ $< $(B)/libiostall.a $(TEST_LDLIBS) \
		$(LIB_LDLIBS)

-include $(UNIT_TESTS:=.d) $(REPLAY_TOOLS:=.d) $(BENCHES:=.d) $(FUZZERS:=.d)
