/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/*
 * The state of an open incident: when a stuck operation gets a line, and what happens beyond the
 * limits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/incident.h"
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
	assert_null(incident_find_stuck(i, 7, 100));
}

static void test_thread_and_start_identify_an_operation(void **state)
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
	/* Two operations with the same slot in the table. */
	a = incident_note_stuck(i, 9, 100);
	assert_null(incident_find_stuck(i, 9, 100 + INCIDENT_STUCK_MAX));
	assert_true(incident_note_stuck(i, 9, 100 + INCIDENT_STUCK_MAX) != a);
}

/* The line after age `reported` is due at age `due` and not a nanosecond earlier. */
static void assert_due(uint64_t reported_ns, uint64_t due_ns)
{
	const struct incident_stuck s = { .start_ns = 1, .reported_age_ns = reported_ns };

	assert_false(incident_stuck_is_due(&s, due_ns - 1));
	assert_true(incident_stuck_is_due(&s, due_ns));
}

static void test_when_a_stuck_line_is_due(void **state)
{
	const struct incident_stuck fresh = { .start_ns = 1 };

	(void)state;
	assert_true(incident_stuck_is_due(&fresh, 0));
	/* At each scan while it is young; scans are about a second apart. */
	assert_due(SECOND, SECOND + SECOND / 2);
	assert_due(5 * SECOND - 1, 5 * SECOND - 1 + SECOND / 2);
	/* Then when the age has grown by half. */
	assert_due(5 * SECOND, 7 * SECOND + SECOND / 2);
	assert_due(40 * SECOND, 60 * SECOND);
}

/* The lines of an operation that is stuck for a minute, with a scan each second. */
static void test_ten_stuck_lines_in_a_minute(void **state)
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

/* Far more operations, one after another, than there are slots. */
static void test_slots_are_reused(void **state)
{
	struct incident *i = *state;
	struct incident_stuck *hangs = incident_note_stuck(i, 1, 5);

	hangs->reported_age_ns = 9;
	for (uint32_t n = 0; n < 10 * INCIDENT_STUCK_MAX; n++) {
		struct incident_stuck *s = incident_note_stuck(i, 2 + n % 200, 1000 + n);

		assert_non_null(s);
		assert_int_equal(s->reported_age_ns, 0);
		s->reported_age_ns = 7;
		incident_forget_stuck(i, s);
		assert_null(incident_find_stuck(i, 2 + n % 200, 1000 + n));
	}
	/* Its neighbours came and went, and it may have moved. */
	hangs = incident_find_stuck(i, 1, 5);
	assert_non_null(hangs);
	assert_int_equal(hangs->reported_age_ns, 9);
	assert_int_equal(i->stuck_count, 1);
}

/* The table is full of consecutive ids: each entry is found, and one more has no slot. */
static void test_a_full_table_finds_all_its_entries(void **state)
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
	/* Every other one returns, and the rest is still found. */
	for (uint32_t tid = 1; tid <= INCIDENT_STUCK_MAX; tid += 2)
		incident_forget_stuck(i, incident_find_stuck(i, tid, 1000 + tid % 3));
	for (uint32_t tid = 1; tid <= INCIDENT_STUCK_MAX; tid++)
		assert_int_equal(incident_find_stuck(i, tid, 1000 + tid % 3) != NULL, tid % 2 == 0);
	assert_int_equal(i->stuck_count, INCIDENT_STUCK_MAX / 2);
	assert_non_null(incident_note_stuck(i, INCIDENT_STUCK_MAX + 1, 1000));
}

static void test_equal_stacks_are_shared(void **state)
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
	/* A stack that cannot be read later does not delete the one that was read. */
	incident_set_stack(i, b, "");
	assert_string_equal(incident_get_stack(i, b), "down_read+0x3");
}

static void test_stacks_beyond_the_limit_are_left_out(void **state)
{
	struct incident *i = *state;
	struct incident_stuck *last = incident_note_stuck(i, 9999, 100);
	char stack[RECORD_STACK_SIZE + 64];

	for (uint32_t n = 0; n < INCIDENT_STACKS_MAX; n++) {
		snprintf(stack, sizeof(stack), "frame_%u+0x0", n);
		incident_set_stack(i, incident_note_stuck(i, n + 1, 100), stack);
	}
	assert_int_equal(i->stacks_left_out, 0);
	incident_set_stack(i, last, "one_more+0x0");
	assert_string_equal(incident_get_stack(i, last), "");
	incident_set_stack(i, last, "yet_another+0x0");
	assert_int_equal(i->stacks_left_out, 1);
	/* Stacks that are in the table can still be shared. */
	incident_set_stack(i, last, "frame_63+0x0");
	assert_string_equal(incident_get_stack(i, last), "frame_63+0x0");
}

static void test_text_of_stacks_beyond_the_limit_is_left_out(void **state)
{
	struct incident *i = *state;
	char stack[RECORD_STACK_SIZE];
	uint32_t n = 0;

	memset(stack, 's', sizeof(stack));
	stack[sizeof(stack) - 1] = '\0';
	while (i->stacks_left_out == 0) {
		snprintf(stack, 8, "%07u", n++);
		stack[7] = 's';
		incident_set_stack(i, incident_note_stuck(i, n, 100), stack);
	}
	assert_int_equal(n - 1, INCIDENT_STACKS_BYTES / RECORD_STACK_SIZE);
	incident_set_stack(i, incident_note_stuck(i, n + 1, 100), "short+0x0");
	assert_int_equal(i->stacks_left_out, 2);
	stack[0] = '0';
	snprintf(stack, 8, "%07u", 5);
	stack[7] = 's';
	incident_set_stack(i, incident_note_stuck(i, n, 100), stack);
	assert_string_equal(incident_get_stack(i, incident_find_stuck(i, n, 100)), stack);
}

static void test_a_stack_that_is_too_long_is_cut(void **state)
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
		incident_test(test_thread_and_start_identify_an_operation),
		cmocka_unit_test(test_when_a_stuck_line_is_due),
		cmocka_unit_test(test_ten_stuck_lines_in_a_minute),
		incident_test(test_slots_are_reused),
		incident_test(test_a_full_table_finds_all_its_entries),
		incident_test(test_equal_stacks_are_shared),
		incident_test(test_stacks_beyond_the_limit_are_left_out),
		incident_test(test_text_of_stacks_beyond_the_limit_is_left_out),
		incident_test(test_a_stack_that_is_too_long_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
