/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* The rules over what others say: databases, and the user's own check. */
#include "test_rules_setup.h"

static const struct watch_sql_targets targets = { "most", "slow", "locked", "silent", "full" };

static size_t sql_step(struct rig *rig, const struct record_sql_activity *sql)
{
	watch_set_sql(rig->watch, sql, &targets);
	return rig_step(rig, 1000);
}

/* What lasts for hours fires once, until it was clear; until it is in a record it is told of. */
static void test_fires_once(void **state)
{
	struct record_sql_activity many = { .present = true, .active = 200, .lasting = 101 };
	struct record_sql_activity few = { .present = true },
				   stale = { .present = true, .active = -1 };
	struct rig rig = rig_new(*state);
	struct rules_firing firing;

	rig_enable(&rig, CONFIG_RULE_sql_active);
	assert_false(rules_doubt_database(rig.rules));
	assert_int_equal(sql_step(&rig, &many), 0);
	assert_true(rules_doubt_database(rig.rules));
	assert_int_equal(sql_step(&rig, &many), 1);
	assert_int_equal(rig.firings[0].scope, RULES_SCOPE_database);
	assert_string_equal(rig.firings[0].unit, "statements");
	assert_float_equal((float)rig.firings[0].value, 101, 1e-4f);
	assert_string_equal(rig.firings[0].device, "");
	assert_string_equal(rig.firings[0].subject, "most");
	assert_true(rules_first_active(rig.rules, rig.watch, 0, 0, &firing));
	assert_string_equal(firing.name, "sql_active");
	assert_string_equal(firing.subject, "most");
	rules_acknowledge(rig.rules, rig.watch, "first");
	assert_false(rules_first_active(rig.rules, rig.watch, 0, 0, &firing));
	/* Not after the cooldown of the rule either. */
	for (unsigned int i = 0; i < 130; i++)
		assert_int_equal(sql_step(&rig, &many), 0);
	assert_int_equal(rules_active(rig.rules), 1);
	assert_int_equal(rules_holding(rig.rules), 1);
	/* Nor is it clear because an answer is late. */
	assert_int_equal(sql_step(&rig, &stale), 0);
	assert_int_equal(rules_active(rig.rules), 1);
	assert_true(rules_doubt_database(rig.rules));

	assert_int_equal(sql_step(&rig, &few), 0);
	assert_int_equal(rules_active(rig.rules), 0);
	assert_int_equal(sql_step(&rig, &many), 0);
	assert_int_equal(sql_step(&rig, &many), 1);
	assert_true(rules_first_active(rig.rules, rig.watch, 0, 0, &firing));
	rig_free(&rig);
}

/* A mutex that is never let go is told once, with the program, its process and who holds it. */
static void test_mutex(void **state)
{
	struct record_held_mutex few = { true, 3, 10, "mysqld", 12 }, many = few, none = { 0 };
	struct rig rig = rig_new(*state);

	many.waiters = 4;
	rig_enable(&rig, CONFIG_RULE_mutex);
	watch_set_mutex(rig.watch, &few);
	assert_int_equal(rig_step(&rig, 1000), 0);
	watch_set_mutex(rig.watch, &many);
	assert_int_equal(rig_step(&rig, 1000), 1);
	assert_string_equal(rig.firings[0].name, "mutex");
	assert_string_equal(rig.firings[0].subject, "mysqld");
	assert_int_equal(rig.firings[0].pid, 10);
	assert_int_equal(rig.firings[0].tid, 12);
	assert_int_equal(rules_holding(rig.rules), 1);
	rules_acknowledge(rig.rules, rig.watch, "first");
	for (unsigned int i = 0; i < 130; i++)
		assert_int_equal(rig_step(&rig, 1000), 0);
	/* That of another program is other trouble. */
	many.pid = 20;
	watch_set_mutex(rig.watch, &many);
	assert_int_equal(rig_step(&rig, 1000), 1);
	assert_int_equal(rig.firings[0].pid, 20);
	watch_set_mutex(rig.watch, &none);
	assert_int_equal(rig_step(&rig, 1000), 0);
	assert_int_equal(rules_active(rig.rules), 0);
	rig_free(&rig);
}

/* One thread is enough, if it has stood still for long. */
static void test_lock(void **state)
{
	struct record_lock_stand lock = { true, 1, 5 * NSEC_PER_SEC, 10, "mysqld" }, none = { 0 };
	struct rig rig = rig_new(*state);

	rig_enable(&rig, CONFIG_RULE_lock);
	watch_set_lock(rig.watch, &lock);
	assert_int_equal(rig_step(&rig, 1000), 0);
	lock.longest_ns++;
	watch_set_lock(rig.watch, &lock);
	assert_int_equal(rig_step(&rig, 1000), 1);
	assert_string_equal(rig.firings[0].name, "lock");
	assert_string_equal(rig.firings[0].subject, "mysqld");
	assert_int_equal(rig.firings[0].pid, 10);
	assert_int_equal(rules_holding(rig.rules), 1);
	watch_set_lock(rig.watch, &none);
	assert_int_equal(rig_step(&rig, 1000), 0);
	assert_int_equal(rules_active(rig.rules), 0);
	rig_free(&rig);
}

/* Between two answers are samples that say nothing: what counts is the answers in a row. */
static void test_answers_in_a_row(void **state)
{
	struct record_sql_activity many = { .present = true, .in_state = 15 };
	struct record_sql_activity few = { .present = true };
	struct record_sql_activity nothing = { .present = true,
		.active = -1,
		.lasting = -1,
		.in_state = -1,
		.longest_s = NAN };
	struct rig rig = rig_new(*state);
	struct rules_firing firing;

	rig_enable(&rig, CONFIG_RULE_sql_state)->hold_samples = 3;
	rules_reload(rig.rules, rig.config);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(sql_step(&rig, &many), 0);
		assert_int_equal(sql_step(&rig, &nothing) + sql_step(&rig, &nothing), 0);
		assert_true(rules_doubt_database(rig.rules));
	}
	assert_int_equal(sql_step(&rig, &many), 1);
	/* Neither does one fire that is active: and of what it fired is known. */
	assert_int_equal(sql_step(&rig, &nothing), 0);
	assert_int_equal(rules_holding(rig.rules), 1);
	assert_true(rules_first_active(rig.rules, rig.watch, 0, 0, &firing));
	assert_float_equal((float)firing.value, 15, 1e-4f);

	/* An answer between that is well begins anew. */
	assert_int_equal(sql_step(&rig, &few) + sql_step(&rig, &many) + sql_step(&rig, &many), 0);
	assert_int_equal(sql_step(&rig, &few) + sql_step(&rig, &nothing), 0);
	assert_int_equal(sql_step(&rig, &many), 0);
	rig_free(&rig);
}

/* A value that is not known is neither over nor clear. */
static void test_unknown_value_changes_nothing(void **state)
{
	struct record_sql_activity sql = { .present = true, .unanswered_s = NAN };
	struct rig rig = rig_new(*state);

	rig_enable(&rig, CONFIG_RULE_sql_unanswered);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(sql_step(&rig, &sql), 0);
	assert_int_equal(rules_active(rig.rules), 0);
	sql.unanswered_s = 6;
	assert_int_equal(sql_step(&rig, &sql), 1);
	sql.unanswered_s = NAN;
	assert_int_equal(sql_step(&rig, &sql), 0);
	assert_int_equal(rules_active(rig.rules), 1);
	/* Without a database there is nothing to judge. */
	sql = (struct record_sql_activity){ .present = false };
	assert_int_equal(sql_step(&rig, &sql), 0);
	assert_int_equal(rules_active(rig.rules), 0);
	rig_free(&rig);
}

static void health_step(struct rig *rig, double failing_s, uint32_t serial, unsigned int firings)
{
	struct record_health health = { true, failing_s, 1, serial };

	watch_set_health(rig->watch, &health, "unix:/run/s");
	assert_int_equal(rig_step(rig, 1000), firings);
}

static void test_health(void **state)
{
	struct rig rig = rig_new(*state);

	rig_enable(&rig, CONFIG_RULE_health);
	assert_int_equal(rig_step(&rig, 0), 0);
	health_step(&rig, 5.5, 0, 1);
	assert_int_equal(rig.firings[0].scope, RULES_SCOPE_service);
	assert_string_equal(rig.firings[0].subject, "unix:/run/s");
	assert_string_equal(rig.firings[0].unit, "s");
	assert_float_equal((float)rig.firings[0].value, 5.5f, 1e-4f);
	assert_int_equal(rules_holding(rig.rules), 1);
	health_step(&rig, 0, 0, 0);
	assert_int_equal(rules_active(rig.rules), 0);
	rig_free(&rig);
}

static void test_health_of_another_target(void **state)
{
	struct rig rig = rig_new(*state);

	rig_enable(&rig, CONFIG_RULE_health);
	assert_int_equal(rig_step(&rig, 0), 0);
	health_step(&rig, 5.5, 0, 1);
	health_step(&rig, 3, 0, 0);
	assert_int_equal(rules_holding(rig.rules), 1);
	/* Of another target nothing has fired. */
	health_step(&rig, 3, 1, 0);
	assert_int_equal(rules_holding(rig.rules), 0);
	health_step(&rig, 5.5, 1, 1);
	/* The program has ended; when it is there again, the cooldown is still that of the rule. */
	health_step(&rig, NAN, 1, 0);
	assert_int_equal(rules_holding(rig.rules), 0);
	health_step(&rig, 7.5, 1, 0);
	rig_free(&rig);
}

static void test_each_rule_of_databases(void **state)
{
	struct record_sql_activity sql = { true, 200, 31, 11, 5.5, 101, 100 };
	struct rig rig = rig_new(*state);

	rig_enable(&rig, CONFIG_RULE_sql_longest);
	rig_enable(&rig, CONFIG_RULE_sql_active);
	rig_enable(&rig, CONFIG_RULE_sql_state);
	rig_enable(&rig, CONFIG_RULE_sql_unanswered);
	rig_enable(&rig, CONFIG_RULE_sql_connections);
	assert_int_equal(sql_step(&rig, &sql), 2);
	assert_string_equal(rig.firings[0].name, "sql_longest");
	assert_string_equal(rig.firings[0].subject, "slow");
	assert_float_equal((float)rig.firings[0].value, 31, 1e-4f);
	assert_string_equal(rig.firings[1].name, "sql_unanswered");
	assert_string_equal(rig.firings[1].subject, "silent");
	assert_float_equal((float)rig.firings[1].value, 5.5f, 1e-4f);
	assert_int_equal(sql_step(&rig, &sql), 3);
	assert_string_equal(rig.firings[0].name, "sql_active");
	assert_string_equal(rig.firings[1].name, "sql_state");
	assert_string_equal(rig.firings[0].subject, "most");
	assert_string_equal(rig.firings[1].subject, "locked");
	assert_float_equal((float)rig.firings[1].value, 11, 1e-4f);
	assert_string_equal(rig.firings[2].name, "sql_connections");
	assert_string_equal(rig.firings[2].subject, "full");
	rig_free(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		tree_test(test_fires_once),
		tree_test(test_mutex),
		tree_test(test_lock),
		tree_test(test_answers_in_a_row),
		tree_test(test_unknown_value_changes_nothing),
		tree_test(test_health),
		tree_test(test_health_of_another_target),
		tree_test(test_each_rule_of_databases),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
