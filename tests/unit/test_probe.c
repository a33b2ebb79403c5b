/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the descriptors of the probes promise, and what trace.backend means for each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "probes/probe.h"
#include "util/cleanup.h"

static void test_wanted_backend(void **state)
{
	static const struct probe_backend both[] = {
		{ CONFIG_BACKEND_FENTRY, "fentry", NULL, 0, true },
		{ CONFIG_BACKEND_KPROBE, "kprobe", NULL, 0, false },
	};
	const struct probe_ops functions = { .backends = both, .backends_count = ARRAY_SIZE(both) };

	(void)state;
	assert_int_equal(probe_wanted_backend(&functions, CONFIG_BACKEND_AUTO),
		CONFIG_BACKEND_AUTO);
	assert_int_equal(probe_wanted_backend(&functions, CONFIG_BACKEND_KPROBE),
		CONFIG_BACKEND_KPROBE);
	/* It has none of that kind, so the choice is its own. */
	assert_int_equal(probe_wanted_backend(&functions, CONFIG_BACKEND_TRACEPOINT),
		CONFIG_BACKEND_AUTO);
}

/* What is described by a program has the program in each backend; requests have a map of their own. */
static void test_descriptors_agree(void **state)
{
	(void)state;
	for (enum config_probe_name i = 0; i < CONFIG_PROBE_COUNT; i++) {
		const struct probe_ops *ops = probe_ops_get(i);

		assert_true(ops->backends_count > 0 && ops->backends_count <= PROBE_BACKENDS_MAX);
		if (ops->operations_are_requests)
			assert_true(ops->inflight_map && ops->resolve_program);
		for (unsigned int b = 0; ops->resolve_program && b < ops->backends_count; b++) {
			const struct probe_backend *backend = &ops->backends[b];
			bool found = false;

			assert_true(backend->programs_count <= PROBE_PROGRAMS_MAX);
			for (unsigned int p = 0; p < backend->programs_count; p++)
				found = found || strcmp(backend->programs[p].name,
							 ops->resolve_program) == 0;
			assert_true(found);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wanted_backend),
		cmocka_unit_test(test_descriptors_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
