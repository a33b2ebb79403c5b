/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Which of many times are the least. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "util/least.h"

#define COUNT 1000

/* Whatever the times are: so many are taken, and none of them is twice one that is kept. */
static void check(const uint64_t times[COUNT], size_t wanted)
{
	struct least least = { 0 };
	uint64_t longest_taken = 0, shortest_kept = UINT64_MAX;
	size_t taken = 0;

	for (size_t i = 0; i < COUNT; i++)
		least_note(&least, times[i]);
	least_cut(&least, wanted);
	for (size_t i = 0; i < COUNT; i++) {
		if (least_takes(&least, times[i])) {
			taken++;
			if (times[i] > longest_taken)
				longest_taken = times[i];
		} else if (times[i] < shortest_kept) {
			shortest_kept = times[i];
		}
	}
	assert_int_equal(taken, wanted);
	assert_true(longest_taken / 2 <= shortest_kept);
}

static void check_all(const uint64_t times[COUNT])
{
	for (size_t wanted = 0; wanted <= COUNT; wanted += COUNT / 8)
		check(times, wanted);
	check(times, 1);
	check(times, COUNT - 1);
}

static void test_so_many_are_taken(void **state)
{
	uint64_t times[COUNT];

	(void)state;
	for (size_t i = 0; i < COUNT; i++)
		times[i] = i;
	check_all(times);
	for (size_t i = 0; i < COUNT; i++)
		times[i] = (i * 7919 % COUNT) << (i % 50);
	check_all(times);
}

static void test_times_that_are_the_same(void **state)
{
	uint64_t times[COUNT];

	(void)state;
	for (size_t i = 0; i < COUNT; i++)
		times[i] = 0;
	check_all(times);
	for (size_t i = 0; i < COUNT; i++)
		times[i] = UINT64_MAX;
	check_all(times);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_so_many_are_taken),
		cmocka_unit_test(test_times_that_are_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
