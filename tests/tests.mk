# SPDX-License-Identifier: GPL-2.0-or-later
# The test programs, and the targets that run them: `make check`, `make check-world`, or one layer as `make check-unit`.

GATE_LAYERS := build lint unit replay seeds live browser docs
WORLD_LAYERS := mutations timing databases stories chaos vm bench fuzz

UNIT_TESTS := $(patsubst %.c,$(B)/%,$(wildcard tests/unit/test_*.c))
REPLAY_TOOLS := $(patsubst %.c,$(B)/%,$(wildcard tests/replay/*.c))
BENCHES := $(patsubst %.c,$(B)/%,$(wildcard tests/bench/bench_*.c))
FUZZERS := $(patsubst %.c,$(B)/%,$(wildcard tests/fuzz/fuzz_*.c))

.PHONY: setup setup-world demo check check-world unit-tests replay-tools benches fuzzers replay-golden
.PHONY: $(GATE_LAYERS:%=check-%) $(WORLD_LAYERS:%=check-%)

## setup: install what is needed to build, for demo and for check (Build-Depends of debian/control; as root)
setup:
	@tests/setup

## setup-world: install what check-world needs, too: virtual machines, databases (as root)
setup-world:
	@tests/setup --world

# A second make, since the first asked compilers and pkg-config before the packages were installed.
## demo: install what is missing, build, and record a real stall on a private loop device (as root)
demo: setup
	@$(MAKE) --no-print-directory all
	@tests/demo

## check: install what is missing and run the tests that every change must pass, within ten minutes (as root)
check: setup
	@tests/check gate

## check-world [LIMIT_S=3000]: install what is missing and run all tests, for over an hour; it goes on where it was (as root)
check-world: setup-world
	@tests/world

## world-refresh: move the kernels and servers that check-world downloads (tests/pins) to the newest of Debian
.PHONY: world-refresh
world-refresh: packages-world
	@tests/vm/fetch --refresh 6.12 6.1 5.10 7.2 6.12-arm64
	@tests/live/fetch-servers --refresh

# T and KERNEL choose tests within a layer. They reach tests/layer/* by the environment.
export T KERNEL

## check-build: build the program and what belongs to it
## check-lint: check the sources without running them: format, layers, scripts, manual pages
## check-unit [T=rules]: run the unit tests, or only tests/unit/test_rules
## check-replay: run recorded kernel events through the user side and compare the records
## check-seeds [T=record]: run each fuzz target over its seeds, or only fuzz_record
## check-browser: test the page of an incident in Chromium
## check-docs: run each command of the documents in a copy of this machine, build and install the package (as root)
## check-live [T=stall]: record real stalls on this host (as root), or run only tests/live/stall
## check-mutations: make defects in a copy of the tree, each of which must turn the gate red
## check-timing: run those live tests whose results depend on how fast this host is (as root)
## check-databases: run those that need servers of databases (as root)
## check-stories: let freezes happen as they happened elsewhere, and judge the verdicts (as root)
## check-chaos [T=disk]: do real faults to the daemon for three minutes (as root), or only those of tests/chaos/disk
## check-vm [KERNEL=6.12] [T=stall]: run live tests and the service under Debian's kernels in virtual machines
## check-bench: print what things cost on this host
## check-fuzz [T=record]: run each fuzz target for 5 seconds (FUZZ_SECONDS), or only fuzz_record
$(GATE_LAYERS:%=check-%): check-%: packages
	@tests/check $*

$(WORLD_LAYERS:%=check-%): check-%: packages-world
	@tests/check $*

## chaos [CHAOS_SECONDS=600]: install what is missing and do check-chaos; build/chaos/table has what held (as root)
.PHONY: chaos
chaos: setup-world
	@tests/check chaos

# A layer of tests installs nothing. It says which packages are missing.
.PHONY: packages packages-world
## packages: say which packages are missing to build and for check
packages:
	@tests/setup --check
## packages-world: say which packages are missing for check-world
packages-world:
	@tests/setup --world --check

## unit-tests: build the unit tests
unit-tests: $(UNIT_TESTS)
## replay-tools: build the programs that replay kernel events
replay-tools: $(REPLAY_TOOLS)
## benches: build the measurements
benches: $(BENCHES)
## fuzzers: build the fuzz targets; with FUZZ=1 for libFuzzer, otherwise to run them over files
fuzzers: $(FUZZERS)

## replay-golden: write the records anew that check-replay expects
replay-golden: packages
	@tests/replay/run --golden

# In another order each time.
$(UNIT_TESTS): TEST_LDLIBS = -lcmocka -Wl,--wrap=_cmocka_run_group_tests $(WRAPPED:%=-Wl,--wrap=%)
$(UNIT_TESTS): TEST_OBJECTS = $(B)/tests/unit/shuffle.o $(CLOCK_OBJECT)
$(UNIT_TESTS): $(B)/tests/unit/shuffle.o
# Those that judge timers and waits of the program have a clock of their own. Without it are those that only wait until
# other processes have done something, and those with "time: bounds".
ON_VIRTUAL_CLOCK := $(filter $(addprefix $(B)/tests/unit/test_,session% process),$(UNIT_TESTS))
$(ON_VIRTUAL_CLOCK): WRAPPED := clock_mono_ns timerfd_settime epoll_wait nanosleep usleep
$(ON_VIRTUAL_CLOCK): CLOCK_OBJECT := $(B)/tests/unit/virtual_clock.o
$(ON_VIRTUAL_CLOCK): $(B)/tests/unit/virtual_clock.o
$(B)/tests/unit/test_probe_set: WRAPPED := bpf_program__attach_raw_tracepoint bpf_link__destroy bpf_object__load \
	trace_maps_reuse kernel_types_count_args kernel_types_have_member
$(B)/tests/unit/test_attach: WRAPPED := probe_set_attach_scanned probe_set_attach_rest probe_set_detach_scanned
$(B)/tests/unit/test_block_tables: WRAPPED := bpf_map_lookup_batch bpf_map_lookup_elem bpf_map_delete_elem
$(B)/tests/unit/test_offcpu_lines: WRAPPED := bpf_map_lookup_elem
$(B)/tests/unit/test_kernel_types: WRAPPED := fopen
$(B)/tests/unit/test_writers: WRAPPED := open_files_visit
$(B)/tests/unit/test_thread_scanner $(B)/tests/unit/test_process_io: WRAPPED := clock_mono_ns
$(B)/tests/replay/replay: TEST_LDLIBS := -Wl,--wrap=clock_mono_ns
$(FUZZERS): TEST_LDLIBS := $(if $(FUZZ),-fsanitize=fuzzer)
ifndef FUZZ
$(FUZZERS): TEST_OBJECTS := $(B)/tests/fuzz/seeds.o
$(FUZZERS): $(B)/tests/fuzz/seeds.o
endif

$(B)/tests/%.o: tests/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -c -o $@ $<

$(UNIT_TESTS) $(REPLAY_TOOLS) $(BENCHES) $(FUZZERS): $(B)/tests/%: tests/%.c $(B)/libiostall.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MF $@.d -MT $@ $(LDFLAGS) -o $@ $< $(TEST_OBJECTS) $(B)/libiostall.a $(TEST_LDLIBS) \
		$(LIB_LDLIBS)

-include $(UNIT_TESTS:=.d) $(REPLAY_TOOLS:=.d) $(BENCHES:=.d) $(FUZZERS:=.d)
