/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/*
 * The `sql` lines of a record: sessions in the phases open, worst, slow and end, or why there are
 * none.
 */
#include "test_session_answers.h"

static void test_sessions_in_each_phase(void **state)
{
	static const step steps[] = { is_answered, trigger_until_stopped, is_answered, stop_it,
		is_closed, NULL };
	static const char *const phases[] = { "open", "worst", "end" };
	struct fixture *f = *state;
	const struct output *out;

	run(f, steps);
	out = read_output(f);
	for (size_t i = 0; i < ARRAY_SIZE(phases); i++) {
		const struct record_sql *q = NULL;
		unsigned int count = find_phase(out, phases[i], &q);
		const struct record *r =
			(const void *)((const char *)q - offsetof(struct record, sql));

		assert_true(count == 4 || count == 5);
		assert_string_equal(q->target, "good");
		assert_int_equal(q->server, RECORD_SERVER_mariadb);
		assert_int_equal(q->connection_id, 0);
		assert_int_equal(q->active, count - 1);
		assert_int_equal(q->idle, 7);
		assert_int_equal(q->left_out, 0);
		assert_string_equal(q->version, "10.11.6-MariaDB");
		assert_string_equal(q->error, "");
		/* The longest statement first; its thread is known, that of the next one is not. */
		q = &r[1].sql;
		assert_int_equal(q->connection_id, 17);
		assert_int_equal(q->active, -1);
		assert_int_equal(q->elapsed_ns, 3 * NSEC_PER_SEC);
		assert_true(q->tid > 0 && q->tid == q->pid);
		assert_string_equal(q->tid_reason, "");
		assert_string_equal(q->user, "app@localhost");
		assert_string_equal(q->text, "SELECT ?");
		assert_int_equal(q->text_bytes, 12);
		q = &r[2].sql;
		assert_int_equal(q->connection_id, 18);
		assert_int_equal(q->tid, 0);
		assert_string_equal(q->tid_reason, "thread pool");
	}
	assert_int_equal(out->lines[out->count - 1].type, RECORD_CLOSE);
}

static bool is_past_the_worst(struct fixture *f)
{
	struct sql_evidence e;

	sql_get_evidence(f->sql, 0, &e);
	return e.worst && e.worst->count == 3 && e.current->count == 2;
}

static bool has_opened(struct fixture *f)
{
	struct sql_evidence e;

	sql_get_evidence(f->sql, 0, &e);
	f->mark_ns = e.current ? e.current->answered_ns : 0;
	return e.current != NULL;
}

/* Neither ran in the worst or end phase, and one of them not in the open phase. */
static void test_statements_that_ended_between_phases_are_slow_lines(void **state)
{
	static const step steps[] = { is_answered, trigger_until_stopped, has_opened,
		is_past_the_worst, stop_it, is_closed, NULL };
	static const uint64_t expected[] = { 17, 21 };
	struct fixture *f = *state;
	const struct record_sql *q = NULL, *end = NULL;
	const struct output *out;
	const struct record *r;

	run(f, steps);
	out = read_output(f);
	assert_int_equal(find_phase(out, "open", &q), 2);
	assert_int_equal(find_phase(out, "worst", &q), 4);
	assert_int_equal(find_phase(out, "end", &end), 3);
	assert_int_equal(find_phase(out, "slow", &q), 2);
	assert_true(q < end);
	r = (const void *)((const char *)q - offsetof(struct record, sql));
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		q = &r[i].sql;
		assert_int_equal(q->connection_id, expected[i]);
		assert_int_equal(q->active, -1);
		assert_string_equal(q->text, "SELECT ?");
		assert_in_range(q->elapsed_ns, (i ? 2 : 5) * NSEC_PER_SEC, 20 * NSEC_PER_SEC);
		assert_true(q->answer_ns > 0);
		assert_true(r[i].mono_ns > f->mark_ns);
	}
	assert_int_equal(r[0].sql.tid, r[0].sql.pid);
	assert_string_equal(r[1].sql.tid_reason, "thread pool");
	assert_int_equal(out->lines[out->count - 1].type, RECORD_CLOSE);
}

static bool has_four(struct fixture *f)
{
	struct sql_evidence e;

	sql_get_evidence(f->sql, 0, &e);
	return e.slow->count >= 4;
}

static void test_no_statement_has_two_lines(void **state)
{
	static const step steps[] = { is_answered, trigger_until_stopped, has_four, stop_it,
		is_closed, NULL };
	static const char *const phases[] = { "open", "worst", "end" };
	struct fixture *f = *state;
	const struct record_sql *q = NULL;
	const struct output *out;
	const struct record *r;

	run(f, steps);
	out = read_output(f);
	for (size_t i = 0; i < ARRAY_SIZE(phases); i++) {
		uint64_t connection_id;

		assert_int_equal(find_phase(out, phases[i], &q), 2);
		r = (const void *)((const char *)q - offsetof(struct record, sql));
		connection_id = r[1].sql.connection_id;
		assert_true(connection_id > 100);
		assert_true(find_phase(out, "slow", &q) >= 2);
		r = (const void *)((const char *)q - offsetof(struct record, sql));
		for (; r->sql.phase == RECORD_PHASE_slow; r++)
			assert_int_not_equal(r->sql.connection_id, connection_id);
	}
}

/* The loop is busy while the answer waits to be read. */
static bool trigger_and_dawdle(struct fixture *f)
{
	trigger_until_stopped(f);
	usleep(60000);
	return true;
}

static void test_an_answer_that_is_read_late_has_its_own_time(void **state)
{
	static const step steps[] = { is_answered, trigger_and_dawdle, is_answered, stop_it,
		is_closed, NULL };
	uint64_t begin_ns = clock_mono_ns();
	const struct record_sql *q = NULL;
	struct fixture *f = *state;

	run(f, steps);
	assert_true(find_phase(read_output(f), "open", &q) > 0);
	assert_int_equal(q->server_ns, 500000);
	assert_in_range(q->answer_ns, 60 * MS, clock_mono_ns() - begin_ns);
}

static void test_a_refused_login_is_recorded(void **state)
{
	static const step steps[] = { has_failed, trigger_briefly, is_closed, NULL };
	struct fixture *f = *state;
	const struct record_sql *q = NULL;
	const struct output *out;

	run(f, steps);
	out = read_output(f);
	assert_int_equal(find_phase(out, "open", &q), 1);
	assert_string_equal(q->error, "Access denied for user 'iostall'@'localhost'");
	assert_string_equal(q->missing, "CREATE USER iostall@localhost");
	assert_int_equal(q->active, -1);
	assert_int_equal(find_phase(out, "worst", &q), 0);
	assert_int_equal(find_phase(out, "end", &q), 1);
	assert_int_equal(out->lines[out->count - 1].type, RECORD_CLOSE);
}

/* It answers, but its account may not see other sessions. */
static void test_a_missing_grant_is_recorded(void **state)
{
	static const step steps[] = { is_answered, trigger_until_stopped, is_answered, stop_it,
		is_closed, NULL };
	static const char *const phases[] = { "open", "worst", "end" };
	struct fixture *f = *state;
	const struct output *out;

	run(f, steps);
	out = read_output(f);
	for (size_t i = 0; i < ARRAY_SIZE(phases); i++) {
		const struct record_sql *q = NULL;

		assert_int_equal(find_phase(out, phases[i], &q), 1);
		assert_string_equal(q->error, "");
		assert_int_equal(q->active, 0);
		assert_string_equal(q->missing, "GRANT PROCESS ON *.* TO iostall@localhost");
	}
}

/* It answered before the incident, but not during it. */
static void test_an_unresponsive_database_is_recorded(void **state)
{
	static const step steps[] = { is_answered, is_unresponsive, trigger_until_stopped,
		is_unresponsive, stop_it, is_closed, NULL };
	struct fixture *f = *state;
	const struct record_sql *q = NULL;
	const struct output *out;

	run(f, steps);
	out = read_output(f);
	assert_int_equal(find_phase(out, "open", &q), 1);
	assert_string_equal(q->error, "does not answer");
	assert_true(q->unanswered_ns > 0);
	assert_string_equal(q->account, "iostall@localhost");
	assert_int_equal(find_phase(out, "worst", &q), 0);
	assert_int_equal(find_phase(out, "end", &q), 1);
	assert_string_equal(q->error, "does not answer");
	assert_int_equal(out->lines[out->count - 1].type, RECORD_CLOSE);
}

/* Longer than the two seconds from which a database counts as unresponsive. */
static bool is_unresponsive_for_long(struct fixture *f)
{
	struct sql_evidence e;
	char path[32];

	sql_get_evidence(f->sql, 0, &e);
	if (e.unanswered_ns < 2 * NSEC_PER_SEC)
		return false;
	assert_true(e.in_session);
	snprintf(path, sizeof(path), "proc/%d/status", e.server_pid);
	tree_put(f->t, path, "Name:\tmariadbd\nState:\tT (stopped)\nTgid:\t%d\nPid:\t%d\n",
		e.server_pid, e.server_pid);
	return true;
}

static void assert_unanswered(struct fixture *f)
{
	const struct output *out = read_output(f);
	const struct record_verdict *v = &out->lines[out->count - 2].verdict;

	assert_int_equal(out->lines[out->count - 2].type, RECORD_VERDICT);
	assert_string_equal(record_class_text(v->class), "unanswered");
	assert_memory_equal(v->sentence, "Database stops (mariadbd, pid ", 30);
	assert_non_null(strstr(v->sentence, ") did not answer for 2."));
	assert_non_null(strstr(v->sentence, " s, because its process was stopped."));
}

/* The state of its process is read when the incident begins; then it may be continued. */
static bool answers_again(struct fixture *f)
{
	struct sql_evidence e;

	sql_get_evidence(f->sql, 0, &e);
	kill(e.server_pid, SIGCONT);
	return e.unanswered_ns == 0;
}

static void test_the_verdict_about_an_unresponsive_database(void **state)
{
	static const step steps[] = { is_answered, is_unresponsive_for_long, trigger_until_stopped,
		answers_again, stop_it, is_closed, NULL };
	struct fixture *f = *state;

	run(f, steps);
	assert_unanswered(f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		sql_test(test_sessions_in_each_phase, "sql.good"),
		sql_test(test_statements_that_ended_between_phases_are_slow_lines, "sql.ends"),
		sql_test(test_no_statement_has_two_lines, "sql.changes"),
		sql_test(test_an_answer_that_is_read_late_has_its_own_time, "sql.good"),
		sql_test(test_a_refused_login_is_recorded, "sql.refused"),
		sql_test(test_a_missing_grant_is_recorded, "sql.alone"),
		sql_test(test_an_unresponsive_database_is_recorded, "sql.stops"),
		sql_test(test_the_verdict_about_an_unresponsive_database, "sql.stops"),
	};

	if (argc == 3 && strcmp(argv[1], "sql-helper") == 0)
		return fake_main(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
