/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* What several databases do at once, and which of them does most of it. */
#include "test_sql_setup.h"
#include "test_watch_tree.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>

static const struct config_list states = { .count = 1, .items = { "Sending?data" } };

static struct sql_activity activity_of(const struct fixture *f)
{
	struct sql_activity activity;

	sql_get_activity(f->sql, &states, 0, &activity);
	return activity;
}

static void add_targets(struct fixture *f, const char *const sections[], unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		assert_int_equal(config_sql_default_target(sections[i],
					 &f->config.sql.targets[i + 1]),
			0);
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

static void test_target_with_most_statements(void **state)
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
	assert_float_equal((float)activity.connections_pct, 80, 1e-4f);
	assert_string_not_equal(activity.targets.connections, "");
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

static void test_unresponsive_target(void **state)
{
	static const char *const others[] = { "sql.stops" };
	struct fixture f;

	(void)state;
	setup_with(&f, "sql.good");
	add_targets(&f, others, 1);
	run_until(&f, is_the_silent_one);
	teardown(&f);
}

static uint64_t answers_before;

static bool has_another_answer(struct fixture *f)
{
	return activity_of(f).answers > answers_before;
}

/* At once when it has answered: on a slow host it may be silent before the other one answers. */
static bool has_most(struct fixture *f)
{
	return strcmp(activity_of(f).targets.active, "stops") == 0;
}

/* What another one answers says nothing of the last answer of the target that has most. */
static void test_whose_answer_is_new(void **state)
{
	static const char *const others[] = { "sql.stops" };
	struct sql_activity activity;
	struct fixture f;
	uint64_t since_ns;

	(void)state;
	setup_with(&f, "sql.idle");
	add_targets(&f, others, 1);
	run_until(&f, has_most);
	activity = activity_of(&f);
	assert_true(activity.is_new.active && activity.is_new.longest && activity.is_new.in_state);
	since_ns = clock_mono_ns();
	sql_get_activity(f.sql, &states, since_ns, &activity);
	assert_false(activity.is_new.active || activity.is_new.longest ||
		activity.is_new.in_state || activity.is_new.connections);
	answers_before = activity.answers;
	run_until(&f, has_another_answer);
	sql_get_activity(f.sql, &states, since_ns, &activity);
	if (activity.unanswered_ns == 0) {
		assert_string_equal(activity.targets.active, "stops");
		assert_false(activity.is_new.active || activity.is_new.in_state);
	}
	/* Once it is silent, its last answer no longer stands before what others answer. */
	run_until(&f, is_the_silent_one);
	assert_string_equal(activity_of(&f).targets.active, "idle");
	teardown(&f);
}

/* A first login that takes its time. */
static bool is_late(struct fixture *f)
{
	return evidence(f).unanswered_ns > 0;
}

static void test_slow_login_is_not_unresponsive(void **state)
{
	struct fixture f;

	(void)state;
	setup_with(&f, "sql.mute");
	run_until(&f, is_late);
	assert_false(evidence(&f).in_session);
	assert_int_equal(activity_of(&f).unanswered_ns, 0);
	teardown(&f);
}

static bool has_answer_of(const struct fixture *f, unsigned int index)
{
	struct sql_evidence e;

	sql_get_evidence(f->sql, index, &e);
	return e.current != NULL;
}

static bool is_stopped(struct fixture *f)
{
	return strstr(evidence(f).why, "same server") && has_answer_of(f, 1);
}

static bool goes_on(struct fixture *f)
{
	return has_answer_of(f, 0) && !*evidence(f).why;
}

/* Over TCP and over its socket: it is asked once, and its sessions count once. */
static void test_one_server_in_two_ways(void **state)
{
	static const struct config_list none;
	struct sql_activity activity;
	struct config config;
	struct fixture f;

	(void)state;
	setup_with(&f, "sql.twin");
	config = f.config;
	assert_int_equal(config_sql_default_target("sql.local-twin", &config.sql.targets[1]), 0);
	config.sql.targets_count = 2;
	assert_int_equal(sql_reload(f.sql, &config), 0);
	run_until(&f, is_stopped);
	assert_string_equal(evidence(&f).why,
		"it is the same server as sql.local-twin, and asked there");
	sql_get_activity(f.sql, &none, 0, &activity);
	assert_int_equal(activity.active, 1);
	/* Without the other section, it is asked again. */
	assert_int_equal(sql_reload(f.sql, &f.config), 0);
	run_until(&f, goes_on);
	sql_get_activity(f.sql, &none, 0, &activity);
	assert_int_equal(activity.active, 1);
	teardown(&f);
}

static void test_pause_follows_the_cost(void **state)
{
	const uint64_t interval_ns = 2 * NSEC_PER_SEC, us = NSEC_PER_USEC;

	(void)state;
	assert_int_equal(sql_target_choose_pause(interval_ns, 500 * us, 0), 2 * NSEC_PER_SEC);
	assert_int_equal(sql_target_choose_pause(interval_ns, 500 * us, 5), NSEC_PER_SEC);
	/* Never more than a thousandth of a CPU, however many sessions there are. */
	assert_int_equal(sql_target_choose_pause(interval_ns, 1500 * us, 5), 1500 * MS);
	assert_int_equal(sql_target_choose_pause(interval_ns, 9 * MS, 100), 9 * NSEC_PER_SEC);
	/* But once a minute, or as rarely as somebody wants it. */
	assert_int_equal(sql_target_choose_pause(interval_ns, NSEC_PER_SEC, 0), 60 * NSEC_PER_SEC);
	assert_int_equal(sql_target_choose_pause(interval_ns, UINT64_MAX, 0), 60 * NSEC_PER_SEC);
	assert_int_equal(sql_target_choose_pause(600 * NSEC_PER_SEC, NSEC_PER_SEC, 0),
		600 * NSEC_PER_SEC);
	assert_int_equal(sql_target_choose_pause(NSEC_PER_SEC, 0, 5), NSEC_PER_SEC);
}

/* One answer that waited for a CPU does not make the database expensive. */
static void test_cost_rises_slowly(void **state)
{
	uint64_t cost_ns = sql_target_estimate_cost(0, 50 * NSEC_PER_USEC);

	(void)state;
	assert_int_equal(cost_ns, 50 * NSEC_PER_USEC);
	cost_ns = sql_target_estimate_cost(cost_ns, 20 * MS);
	assert_true(cost_ns < 200 * NSEC_PER_USEC);
	for (unsigned int i = 0; i < 30; i++)
		cost_ns = sql_target_estimate_cost(cost_ns, 20 * MS);
	assert_int_equal(cost_ns, 20 * MS);
	assert_int_equal(sql_target_estimate_cost(cost_ns, MS), MS);
}

static bool is_asked_less_often(struct fixture *f)
{
	return evidence(f).slowed_ns == 3 * NSEC_PER_SEC;
}

static void test_status_of_a_slow_database(void **state)
{
	char buf[200];
	struct text text = TEXT_ON(buf);
	struct fixture f;

	(void)state;
	setup_with(&f, "sql.slow");
	run_until(&f, is_asked_less_often);
	text_reset(&text);
	sql_describe_target(f.sql, 0, &text);
	assert_string_equal(buf,
		"connected to 10.11.6-MariaDB as iostall@localhost; it answers slowly, so while "
		"idle it is asked only every 3.0 s");
	teardown(&f);
}

static bool has_two_answers(struct fixture *f)
{
	return activity_of(f).answers >= 2;
}

/* What is not a second old, sleeps or belongs to the server itself is no pile-up. */
static void test_only_lasting_statements_count(void **state)
{
	struct sql_activity activity;
	struct fixture f;

	(void)state;
	setup_with(&f, "sql.mixed");
	run_until(&f, has_two_answers);
	activity = activity_of(&f);
	assert_int_equal(activity.active, 4);
	assert_int_equal(activity.lasting, 2);
	assert_int_equal(activity.in_state, 1);
	assert_int_equal(activity.longest_ns, 3 * NSEC_PER_SEC);
	teardown(&f);
}

static bool has_role(struct fixture *f)
{
	return has_two_answers(f) && *sql_find_role(f->sql, evidence(f).server_pid);
}

static bool has_no_role(struct fixture *f)
{
	return !*sql_find_role(f->sql, evidence(f).server_pid);
}

/* Of a process that does not work any more it is still known what it is for. */
static void test_role_of_a_process(void **state)
{
	struct fixture f;

	(void)state;
	setup_with(&f, "sql.roles");
	run_until(&f, has_role);
	assert_string_equal(sql_find_role(f.sql, evidence(&f).server_pid), "checkpointer");
	assert_string_equal(sql_find_role(f.sql, 0), "");
	assert_string_equal(sql_find_role(NULL, 1), "");
	run_until(&f, has_no_role);
	teardown(&f);
}

static bool has_worker(struct fixture *f)
{
	return has_two_answers(f) && *sql_find_role(f->sql, FAKE_WORKER_TID);
}

static void make_thread(const char *procfs, int pid, int tid)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%d", procfs, tid);
	assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
	snprintf(path, sizeof(path), "%s/%d", procfs, pid);
	assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
	snprintf(path, sizeof(path), "%s/%d/task", procfs, pid);
	assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
	snprintf(path, sizeof(path), "%s/%d/task/%d", procfs, pid, tid);
	assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
}

static void end_thread(const char *procfs, int pid, int tid)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%d/task/%d", procfs, pid, tid);
	assert_int_equal(rmdir(path), 0);
	if (pid == tid) {
		snprintf(path, sizeof(path), "%s/%d/task", procfs, pid);
		assert_int_equal(rmdir(path), 0);
	}
	snprintf(path, sizeof(path), "%s/%d", procfs, tid);
	assert_int_equal(rmdir(path), 0);
}

/* Whoever gets the number of a worker that has ended does not get its role. */
static void test_role_of_a_number_that_comes_again(void **state)
{
	char procfs[] = "/tmp/iostall-roles-XXXXXX", path[128];
	struct fixture f;

	(void)state;
	assert_non_null(mkdtemp(procfs));
	make_thread(procfs, FAKE_SERVER_PID, FAKE_WORKER_TID);
	setup_in(&f, procfs, "sql.worker", "");
	run_until(&f, has_worker);
	/* It has ended in the incident that it belongs to. */
	sql_begin_incident(f.sql);
	end_thread(procfs, FAKE_SERVER_PID, FAKE_WORKER_TID);
	assert_string_equal(sql_find_role(f.sql, FAKE_WORKER_TID), "autovacuum worker");
	make_thread(procfs, FAKE_WORKER_TID, FAKE_WORKER_TID);
	assert_string_equal(sql_find_role(f.sql, FAKE_WORKER_TID), "");
	/* And by the next incident it has ended, too. */
	sql_begin_incident(f.sql);
	end_thread(procfs, FAKE_WORKER_TID, FAKE_WORKER_TID);
	assert_string_equal(sql_find_role(f.sql, FAKE_WORKER_TID), "");
	teardown(&f);
	snprintf(path, sizeof(path), "%s/%d/task", procfs, FAKE_SERVER_PID);
	assert_int_equal(rmdir(path), 0);
	snprintf(path, sizeof(path), "%s/%d", procfs, FAKE_SERVER_PID);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(procfs), 0);
}

/* In a container the server has other ids for its threads, which others have out here. */
static void test_threads_of_a_container(void **state)
{
	struct fixture f;
	void *tree;

	(void)state;
	assert_int_equal(tree_setup(&tree), 0);
	tree_put_thread(tree, FAKE_SERVER_PID, FAKE_SERVER_PID, "mariadbd", 'S', 1, 1);
	tree_put_thread(tree, FAKE_SERVER_PID, FAKE_WORKER_TID, "mariadbd", 'S', 1, 1);
	tree_put(tree, "proc/700/status",
		"Name:\tmariadbd\nState:\tS\nTgid:\t700\nPid:\t700\nNSpid:\t700\t1\n");
	setup_in(&f, ((struct tree *)tree)->procfs, "sql.worker", "");
	run_until(&f, has_two_answers);
	assert_string_equal(sql_find_role(f.sql, FAKE_WORKER_TID), "");
	teardown(&f);
	assert_int_equal(tree_teardown(&tree), 0);
}

/* An old answer says what is known until the next one. */
static void test_values_stay_until_the_next_answer(void **state)
{
	struct sql_activity before, after;
	struct fixture f;

	(void)state;
	setup_with(&f, "sql.mixed");
	run_until(&f, has_two_answers);
	before = activity_of(&f);
	poll(NULL, 0, 100);
	after = activity_of(&f);
	assert_true(after.present);
	assert_int_equal(after.answers, before.answers);
	assert_int_equal(after.lasting, 2);
	teardown(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_target_with_most_statements),
		cmocka_unit_test(test_unresponsive_target),
		cmocka_unit_test(test_whose_answer_is_new),
		cmocka_unit_test(test_slow_login_is_not_unresponsive),
		cmocka_unit_test(test_one_server_in_two_ways),
		cmocka_unit_test(test_pause_follows_the_cost),
		cmocka_unit_test(test_cost_rises_slowly),
		cmocka_unit_test(test_status_of_a_slow_database),
		cmocka_unit_test(test_only_lasting_statements_count),
		cmocka_unit_test(test_role_of_a_process),
		cmocka_unit_test(test_role_of_a_number_that_comes_again),
		cmocka_unit_test(test_threads_of_a_container),
		cmocka_unit_test(test_values_stay_until_the_next_answer),
	};

	if (argc == 3 && strcmp(argv[1], "sql-helper") == 0)
		return fake_main(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
