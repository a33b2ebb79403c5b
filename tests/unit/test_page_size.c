/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/*
 * What is counted in pages, where a page is not 4 KB. The programs are told that it has 64 KB, and
 * this kernel runs them as if a tracepoint had called them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "iostall/event.h"
#include "probes/kernel_types.h"
#include "probes/set.h"

#define PAGE_SHIFT 16
#define PAGE_BYTES (1ull << PAGE_SHIFT)
/* A mapping of which nothing can be read. */
#define NO_MAPPING 8

struct fixture {
	struct config config;
	struct kernel_types *types;
	struct probe_set set;
	int error; /* why nothing can be loaded here; 0: it is */
};

/* Loaded once: libbpf 1.1 does not survive that its handlers are registered a second time. */
static int load(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	*state = f;
	config_set_defaults(&f->config);
	f->config.trace.backend = CONFIG_BACKEND_TRACEPOINT;
	for (enum config_probe_name i = 0; i < CONFIG_PROBE_COUNT; i++)
		f->config.probes[i].enabled = i == CONFIG_PROBE_block || i == CONFIG_PROBE_fault;
	f->error = probe_set_load(&f->set, &f->config, "/sys", 0, &f->types, NULL);
	return 0;
}

static int unload(void **state)
{
	struct fixture *f = *state;

	probe_set_unload(&f->set);
	kernel_types_free(f->types);
	free(f);
	return 0;
}

/* Skips the test where the kernel does not have the tracepoint. */
static void load_with_page_size(struct fixture *f, enum config_probe_name name,
	struct probe *ret_probe)
{
	struct probe_settings settings = f->set.settings;
	int r = f->error;

	settings.common.page_shift = PAGE_SHIFT;
	settings.common.self_pid = 0;
	settings.generation++;
	*ret_probe = (struct probe){};
	if (r == 0)
		r = probe_load(ret_probe, probe_ops_get(name), CONFIG_BACKEND_TRACEPOINT, &settings,
			&f->set.maps);
	if (r < 0) {
		print_message("the probe cannot be loaded here: %s\n", strerror(-r));
		skip();
	}
}

static void run(const struct probe *probe, const char *program, uint64_t arg0, uint64_t arg1)
{
	uint64_t args[4] = { arg0, arg1 };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args));

	assert_int_equal(bpf_prog_test_run_opts(probe_program_fd(probe, program), &opts), 0);
}

static void test_the_loader_knows_the_page_size(void **state)
{
	struct fixture *f = *state;

	if (f->error)
		skip();
	assert_int_equal(1l << f->set.settings.common.page_shift, sysconf(_SC_PAGESIZE));
}

static void test_the_offset_of_a_fault(void **state)
{
	struct fixture *f = *state;
	const uint32_t tid = (uint32_t)gettid();
	struct event_fault fault;
	struct probe probe;

	load_with_page_size(f, CONFIG_PROBE_fault, &probe);
	run(&probe, "filemap_fault_raw_tp", NO_MAPPING, 3);
	assert_int_equal(bpf_map_lookup_elem(f->set.maps.faults, &tid, &fault), 0);
	probe_unload(&probe);
	assert_int_equal(fault.pos, 3 * PAGE_BYTES);
}

static void test_what_becomes_dirty(void **state)
{
	struct fixture *f = *state;
	const struct event_block_file_key key = {};
	struct event_block_dirtier dirtier;
	struct probe probe;

	load_with_page_size(f, CONFIG_PROBE_block, &probe);
	run(&probe, "block_dirty_raw_tp", 0, NO_MAPPING);
	assert_int_equal(bpf_map_lookup_elem(f->set.maps.dirtiers, &key, &dirtier), 0);
	assert_int_equal(dirtier.dirty_bytes, PAGE_BYTES);
	run(&probe, "block_dirty_raw_tp", 0, NO_MAPPING);
	assert_int_equal(bpf_map_lookup_elem(f->set.maps.dirtiers, &key, &dirtier), 0);
	probe_unload(&probe);
	assert_int_equal(dirtier.dirty_bytes, 2 * PAGE_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_loader_knows_the_page_size),
		cmocka_unit_test(test_the_offset_of_a_fault),
		cmocka_unit_test(test_what_becomes_dirty),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
