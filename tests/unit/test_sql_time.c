/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: bounds */
/* How long the event loop takes for a helper that hangs. */
#include "test_sql_setup.h"

static bool is_unanswered(struct fixture *f)
{
	return evidence(f).unanswered_ns > 0;
}

static void test_a_helper_that_hangs_is_not_waited_for(void **state)
{
	struct fixture f;

	(void)state;
	setup_with(&f, "sql.stops");
	run_until(&f, has_answer);
	f.armed = true;
	sql_begin_incident(f.sql);
	run_until(&f, is_unanswered);
	/* Asked, told and looked at, but never waited for: that would take two seconds. */
	assert_true(f.longest_ns < 500 * MS);
	teardown(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_helper_that_hangs_is_not_waited_for),
	};

	if (argc == 3 && strcmp(argv[1], "sql-helper") == 0)
		return fake_main(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
