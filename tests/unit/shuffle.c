/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs the tests of a program in another order each time, so that none depends on another.
 * Linked into all unit tests, in place of the function behind cmocka_run_group_tests().
 * UNIT_SEED repeats an order; it is printed first.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

int __wrap__cmocka_run_group_tests(const char *group, const struct CMUnitTest *tests, size_t count,
	CMFixtureFunction setup, CMFixtureFunction teardown);
int __real__cmocka_run_group_tests(const char *group, const struct CMUnitTest *tests, size_t count,
	CMFixtureFunction setup, CMFixtureFunction teardown);

static unsigned int choose_seed(void)
{
	const char *given = getenv("UNIT_SEED");
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return given ? (unsigned int)strtoul(given, NULL, 10) : (unsigned int)now.tv_nsec / 1000;
}

int __wrap__cmocka_run_group_tests(const char *group, const struct CMUnitTest *tests, size_t count,
	CMFixtureFunction setup, CMFixtureFunction teardown)
{
	struct CMUnitTest *shuffled = calloc(count, sizeof(*shuffled));
	unsigned int seed = choose_seed();
	int failed;

	if (!shuffled)
		return -1;
	printf("# UNIT_SEED=%u\n", seed);
	fflush(stdout);
	memcpy(shuffled, tests, count * sizeof(*shuffled));
	srandom(seed);
	for (size_t i = count; i > 1; i--) {
		size_t other = (size_t)random() % i;
		struct CMUnitTest last = shuffled[i - 1];

		shuffled[i - 1] = shuffled[other];
		shuffled[other] = last;
	}
	failed = __real__cmocka_run_group_tests(group, shuffled, count, setup, teardown);
	free(shuffled);
	return failed;
}
