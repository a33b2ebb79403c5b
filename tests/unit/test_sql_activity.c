/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What several databases do at once, and which of them does most of it. */
#include "test_sql_setup.h"

static const struct config_list states = { .count = 1, .items = { "Sending?data" } };

static struct sql_activity activity_of(const struct fixture *f)
{
	struct sql_activity activity;

	sql_get_activity(f->sql, &states, &activity);
	return activity;
}

static void add_targets(struct fixture *f, const char *const sections[], unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		assert_int_equal(config_sql_default_target(sections[i], &f->config.sql.targets[i + 1]), 0);
	f->config.sql.targets_count = count + 1;
	assert_int_equal(sql_reload(f->sql, &f->config), 0);
	assert_int_equal(sql_targets_count(f->sql), count + 1);
}

static bool have_all_answered(struct fixture *f)
{
	struct sql_evidence e;

	for (unsigned int i = 0; i < sql_targets_count(f->sql); i++) {
		sql_get_evidence(f->sql, i, &e);
		if (!e.current)
			return false;
	}
	return true;
}

static void test_the_busiest(void **state)
{
	static const char *const others[] = { "sql.good", "sql.backend" };
	struct sql_activity activity;
	struct fixture f;

	(void)state;
	setup_with(&f, "sql.idle");
	assert_string_equal(activity_of(&f).targets.active, "");
	add_targets(&f, others, 2);
	run_until(&f, have_all_answered);
	activity = activity_of(&f);
	/* All together, of one or two, three or four, and one. */
	assert_in_range(activity.active, 5, 6);
	assert_in_range(activity.in_state, 5, 7);
	assert_int_equal(activity.longest_ns, 3 * NSEC_PER_SEC);
	assert_string_equal(activity.targets.active, "good");
	assert_string_equal(activity.targets.longest, "good");
	assert_string_equal(activity.targets.in_state, "good");
	teardown(&f);
}

/* The other one may be late for a moment, too. */
static bool is_the_silent_one(struct fixture *f)
{
	struct sql_activity activity = activity_of(f);

	return activity.unanswered_ns > 0 && strcmp(activity.targets.unanswered, "stops") == 0;
}

static void test_the_silent_one(void **state)
{
	static const char *const others[] = { "sql.stops" };
	struct fixture f;

	(void)state;
	setup_with(&f, "sql.good");
	add_targets(&f, others, 1);
	run_until(&f, is_the_silent_one);
	teardown(&f);
}

/* A first login that takes its time. */
static bool is_late(struct fixture *f)
{
	return evidence(f).unanswered_ns > 0;
}

static void test_a_login_is_no_silence(void **state)
{
	struct fixture f;

	(void)state;
	setup_with(&f, "sql.mute");
	run_until(&f, is_late);
	assert_false(evidence(&f).in_session);
	assert_int_equal(activity_of(&f).unanswered_ns, 0);
	teardown(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_busiest),
		cmocka_unit_test(test_the_silent_one),
		cmocka_unit_test(test_a_login_is_no_silence),
	};

	if (argc == 3 && strcmp(argv[1], "sql-helper") == 0)
		return fake_main(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
