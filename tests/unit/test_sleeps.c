/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* How long a thread has slept in an operation that has not returned. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "snapshot/sleeps.h"

#define START 1000

static uint64_t add_up(const struct event_sleep *sleep, uint64_t now_ns)
{
	uint64_t slept_ns = 4711;

	assert_true(sleeps_add_up(sleep, START, now_ns, &slept_ns));
	return slept_ns;
}

static void test_the_current_sleep_counts(void **state)
{
	struct event_sleep sleep = { .op.start_ns = START, .asleep_ns = START, .sleeps = 1 };

	(void)state;
	assert_int_equal(add_up(&sleep, START + 500), 500);
	/* It woke twice in between. */
	sleep.slept_ns = 300;
	sleep.asleep_ns = START + 400;
	assert_int_equal(add_up(&sleep, START + 500), 400);
	/* Awake. */
	sleep.asleep_ns = 0;
	assert_int_equal(add_up(&sleep, START + 500), 300);
}

/* A pairing probe knows when the call began; the first sleep came later. */
static void test_a_call_begins_before_its_first_sleep(void **state)
{
	const struct event_sleep sleep = { .op.start_ns = START + 30, .asleep_ns = START + 30 };

	(void)state;
	assert_int_equal(add_up(&sleep, START + 500), 470);
}

static void test_an_entry_of_another_operation(void **state)
{
	struct event_sleep sleep = { .op.start_ns = START - 1, .asleep_ns = START - 1 };
	uint64_t slept_ns;

	(void)state;
	assert_false(sleeps_add_up(&sleep, START, START + 500, &slept_ns));
	sleep.op.start_ns = 0;
	assert_false(sleeps_add_up(&sleep, START, START + 500, &slept_ns));
}

/* The thread wakes and sleeps again while its entry is read. */
static void test_never_longer_than_the_operation(void **state)
{
	const struct event_sleep sleep = { .op.start_ns = START,
		.asleep_ns = START,
		.slept_ns = 450 };

	(void)state;
	assert_int_equal(add_up(&sleep, START + 500), 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_current_sleep_counts),
		cmocka_unit_test(test_a_call_begins_before_its_first_sleep),
		cmocka_unit_test(test_an_entry_of_another_operation),
		cmocka_unit_test(test_never_longer_than_the_operation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
