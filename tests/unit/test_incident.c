/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The facts of an open incident: which stuck operation gets a line when, and what no longer fits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "incident.h"
#include "util/clock.h"

#define ID "20261120T031207Z-3f9c"
#define SECOND NSEC_PER_SEC

static int setup(void **state)
{
	struct incident *incident = malloc(sizeof(*incident));

	if (!incident)
		return -1;
	memset(incident, 0x5a, sizeof(*incident));
	incident_begin(incident, ID, 4711);
	*state = incident;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static void test_begins_empty(void **state)
{
	struct incident *i = *state;

	assert_string_equal(i->id, ID);
	assert_int_equal(i->trigger_ns, 4711);
	assert_true(i->cpu_start_ns > 0);
	assert_int_equal(i->stalls, 0);
	assert_int_equal(i->stuck_operations, 0);
	assert_int_equal(i->returns_missed, 0);
	assert_null(incident_find_stuck(i, 7, 100));
}

static void test_an_operation_is_thread_and_start(void **state)
{
	struct incident *i = *state;
	struct incident_stuck *a = incident_note_stuck(i, 7, 100);
	struct incident_stuck *b = incident_note_stuck(i, 7, 200);
	struct incident_stuck *c = incident_note_stuck(i, 8, 100);

	assert_non_null(a);
	assert_true(a != b && b != c && a != c);
	a->reported_age_ns = 5;
	assert_ptr_equal(incident_note_stuck(i, 7, 100), a);
	assert_int_equal(a->reported_age_ns, 5);
	assert_ptr_equal(incident_find_stuck(i, 8, 100), c);
	assert_null(incident_find_stuck(i, 8, 200));
	/* Two that share a place in the table. */
	a = incident_note_stuck(i, 9, 100);
	assert_null(incident_find_stuck(i, 9, 100 + INCIDENT_STUCK_MAX));
	assert_true(incident_note_stuck(i, 9, 100 + INCIDENT_STUCK_MAX) != a);
}

/* The line after `reported` is due at `due` and not a nanosecond before. */
static void assert_due(uint64_t reported_ns, uint64_t due_ns)
{
	const struct incident_stuck s = { .start_ns = 1, .reported_age_ns = reported_ns };

	assert_false(incident_stuck_is_due(&s, due_ns - 1));
	assert_true(incident_stuck_is_due(&s, due_ns));
}

static void test_when_a_line_is_due(void **state)
{
	const struct incident_stuck fresh = { .start_ns = 1 };

	(void)state;
	assert_true(incident_stuck_is_due(&fresh, 0));
	/* Each walk while young; walks are a second apart, give or take. */
	assert_due(SECOND, SECOND + SECOND / 2);
	assert_due(5 * SECOND - 1, 5 * SECOND - 1 + SECOND / 2);
	/* Then by half. */
	assert_due(5 * SECOND, 7 * SECOND + SECOND / 2);
	assert_due(40 * SECOND, 60 * SECOND);
}

static void test_stale_is_never_due(void **state)
{
	struct incident_stuck s = { .start_ns = 1, .stale = true };

	(void)state;
	assert_false(incident_stuck_is_due(&s, 3600 * SECOND));
	s.reported_age_ns = SECOND;
	assert_false(incident_stuck_is_due(&s, 3600 * SECOND));
}

/* Lines of one operation stuck for a minute, with a walk each second. */
static void test_lines_in_a_minute(void **state)
{
	struct incident_stuck s = { .start_ns = 1 };
	unsigned int lines = 0;

	(void)state;
	for (uint64_t age_ns = SECOND; age_ns <= 60 * SECOND; age_ns += SECOND) {
		if (incident_stuck_is_due(&s, age_ns)) {
			s.reported_age_ns = age_ns;
			lines++;
		}
	}
	assert_int_equal(lines, 10);
}

/* A slow disk: far more operations one after the other than there are slots. */
static void test_slots_are_given_back(void **state)
{
	struct incident *i = *state;
	struct incident_stuck *hangs = incident_note_stuck(i, 1, 5);

	for (uint32_t n = 0; n < 10 * INCIDENT_STUCK_MAX; n++) {
		struct incident_stuck *s = incident_note_stuck(i, 2 + n % 200, 1000 + n);

		assert_non_null(s);
		assert_int_equal(s->reported_age_ns, 0);
		s->reported_age_ns = 7;
		incident_forget_stuck(s);
		assert_null(incident_find_stuck(i, 2 + n % 200, 1000 + n));
	}
	assert_ptr_equal(incident_find_stuck(i, 1, 5), hangs);
}

/* Every place taken, by ids as they come in runs: all are found, and one more is not. */
static void test_table_full(void **state)
{
	struct incident *i = *state;

	for (uint32_t tid = 1; tid <= INCIDENT_STUCK_MAX; tid++)
		assert_non_null(incident_note_stuck(i, tid, 1000 + tid % 3));
	for (uint32_t tid = 1; tid <= INCIDENT_STUCK_MAX; tid++) {
		struct incident_stuck *s = incident_find_stuck(i, tid, 1000 + tid % 3);

		assert_non_null(s);
		assert_int_equal(s->tid, tid);
	}
	assert_null(incident_note_stuck(i, INCIDENT_STUCK_MAX + 1, 1000));
	assert_null(incident_find_stuck(i, INCIDENT_STUCK_MAX + 1, 1000));
	assert_non_null(incident_note_stuck(i, 1, 1001));
}

static void test_stacks(void **state)
{
	struct incident *i = *state;
	struct incident_stuck *a = incident_note_stuck(i, 7, 100);
	struct incident_stuck *b = incident_note_stuck(i, 8, 100);

	assert_string_equal(incident_get_stack(i, a), "");
	incident_set_stack(i, a, "");
	assert_int_equal(i->stacks_count, 0);
	incident_set_stack(i, a, "io_schedule+0x1\nvfs_read+0x2");
	incident_set_stack(i, b, "io_schedule+0x1\nvfs_read+0x2");
	assert_int_equal(i->stacks_count, 1);
	assert_string_equal(incident_get_stack(i, b), "io_schedule+0x1\nvfs_read+0x2");
	incident_set_stack(i, b, "down_read+0x3");
	assert_int_equal(i->stacks_count, 2);
	assert_string_equal(incident_get_stack(i, a), "io_schedule+0x1\nvfs_read+0x2");
	assert_string_equal(incident_get_stack(i, b), "down_read+0x3");
	/* What could not be read this time does not wipe out what was. */
	incident_set_stack(i, b, "");
	assert_string_equal(incident_get_stack(i, b), "down_read+0x3");
}

static void test_more_stacks_than_fit(void **state)
{
	struct incident *i = *state;
	struct incident_stuck *last = incident_note_stuck(i, 9999, 100);
	char stack[RECORD_STACK_SIZE + 64];

	for (uint32_t n = 0; n < INCIDENT_STACKS_MAX; n++) {
		snprintf(stack, sizeof(stack), "frame_%u+0x0", n);
		incident_set_stack(i, incident_note_stuck(i, n + 1, 100), stack);
	}
	incident_set_stack(i, last, "one_more+0x0");
	assert_string_equal(incident_get_stack(i, last), "");
	/* Those that are there can still be shared. */
	incident_set_stack(i, last, "frame_63+0x0");
	assert_string_equal(incident_get_stack(i, last), "frame_63+0x0");
}

static void test_stack_longer_than_its_place(void **state)
{
	struct incident *i = *state;
	struct incident_stuck *s = incident_note_stuck(i, 7, 100);
	char stack[RECORD_STACK_SIZE + 64];

	memset(stack, 's', sizeof(stack));
	stack[sizeof(stack) - 1] = '\0';
	incident_set_stack(i, s, stack);
	assert_int_equal(strlen(incident_get_stack(i, s)), RECORD_STACK_SIZE - 1);
}

#define incident_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		incident_test(test_begins_empty),
		incident_test(test_an_operation_is_thread_and_start),
		cmocka_unit_test(test_when_a_line_is_due),
		cmocka_unit_test(test_stale_is_never_due),
		cmocka_unit_test(test_lines_in_a_minute),
		incident_test(test_slots_are_given_back),
		incident_test(test_table_full),
		incident_test(test_stacks),
		incident_test(test_more_stacks_than_fit),
		incident_test(test_stack_longer_than_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
