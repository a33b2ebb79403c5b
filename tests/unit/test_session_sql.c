/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a record says of databases: sessions at three moments and between them, or why they are missing. */
#include "test_session_answers.h"

static int setup_good(void **state)
{
	return setup_sql(state, "sql.good");
}

static int setup_ends(void **state)
{
	return setup_sql(state, "sql.ends");
}

static int setup_changes(void **state)
{
	return setup_sql(state, "sql.changes");
}

static int setup_refused(void **state)
{
	return setup_sql(state, "sql.refused");
}

static int setup_alone(void **state)
{
	return setup_sql(state, "sql.alone");
}

static int setup_stops(void **state)
{
	return setup_sql(state, "sql.stops");
}

static void test_moments(void **state)
{
	static const step steps[] = { is_answered, trigger_for_a_moment, is_answered, is_closed,
		NULL };
	static const char *const moments[] = { "open", "worst", "end" };
	struct fixture *f = *state;
	const struct output *out;

	run(f, steps);
	out = read_output(f);
	for (size_t i = 0; i < ARRAY_SIZE(moments); i++) {
		const struct record_sql *q = NULL;
		unsigned int count = find_moment(out, moments[i], &q);
		const struct record *r = (const void *)((const char *)q - offsetof(struct record, sql));

		assert_true(count == 4 || count == 5);
		assert_string_equal(q->target, "good");
		assert_string_equal(q->server, "mariadb");
		assert_int_equal(q->connection_id, 0);
		assert_int_equal(q->active, count - 1);
		assert_int_equal(q->idle, 7);
		assert_int_equal(q->left_out, 0);
		assert_string_equal(q->version, "10.11.6-MariaDB");
		assert_string_equal(q->error, "");
		/* The longest first; its thread is known, that of the next is not. */
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

/* Neither was there at the worst moment nor at the end, and one of them not at the opening. */
static void test_what_ended_in_between(void **state)
{
	static const step steps[] = { is_answered, trigger_until_stopped, has_opened, is_past_the_worst, stop_it,
		is_closed, NULL };
	static const uint64_t expected[] = { 17, 21 };
	struct fixture *f = *state;
	const struct record_sql *q = NULL, *end = NULL;
	const struct output *out;
	const struct record *r;

	run(f, steps);
	out = read_output(f);
	assert_int_equal(find_moment(out, "open", &q), 2);
	assert_int_equal(find_moment(out, "worst", &q), 4);
	assert_int_equal(find_moment(out, "end", &end), 3);
	assert_int_equal(find_moment(out, "longest", &q), 2);
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
	return e.longest->count >= 4;
}

static void test_no_statement_twice(void **state)
{
	static const step steps[] = { is_answered, trigger_until_stopped, has_four, stop_it, is_closed, NULL };
	static const char *const moments[] = { "open", "worst", "end" };
	struct fixture *f = *state;
	const struct record_sql *q = NULL;
	const struct output *out;
	const struct record *r;

	run(f, steps);
	out = read_output(f);
	for (size_t i = 0; i < ARRAY_SIZE(moments); i++) {
		uint64_t connection_id;

		assert_int_equal(find_moment(out, moments[i], &q), 2);
		r = (const void *)((const char *)q - offsetof(struct record, sql));
		connection_id = r[1].sql.connection_id;
		assert_true(connection_id > 100);
		assert_true(find_moment(out, "longest", &q) >= 2);
		r = (const void *)((const char *)q - offsetof(struct record, sql));
		for (; strcmp(r->sql.moment, "longest") == 0; r++)
			assert_int_not_equal(r->sql.connection_id, connection_id);
	}
}

/* The loop is busy while the answer lies there. */
static bool trigger_and_dawdle(struct fixture *f)
{
	assert_true(session_trigger(f->session, &manual, 1));
	usleep(60000);
	return true;
}

static void test_an_answer_that_was_read_late(void **state)
{
	static const step steps[] = { is_answered, trigger_and_dawdle, is_answered, is_closed, NULL };
	const struct record_sql *q = NULL;
	struct fixture *f = *state;

	run(f, steps);
	assert_true(find_moment(read_output(f), "open", &q) > 0);
	assert_int_equal(q->server_ns, 500000);
	assert_in_range(q->answer_ns, 60 * MS, NSEC_PER_SEC);
}

static void test_refused(void **state)
{
	static const step steps[] = { has_failed, trigger_for_a_moment, is_closed, NULL };
	struct fixture *f = *state;
	const struct record_sql *q = NULL;
	const struct output *out;

	run(f, steps);
	out = read_output(f);
	assert_int_equal(find_moment(out, "open", &q), 1);
	assert_string_equal(q->error, "Access denied for user 'iostall'@'localhost'");
	assert_string_equal(q->missing, "CREATE USER iostall@localhost");
	assert_int_equal(q->active, -1);
	assert_int_equal(find_moment(out, "worst", &q), 0);
	assert_int_equal(find_moment(out, "end", &q), 1);
	assert_int_equal(out->lines[out->count - 1].type, RECORD_CLOSE);
}

/* It answers, but its account sees no one else. */
static void test_a_missing_grant(void **state)
{
	static const step steps[] = { is_answered, trigger_for_a_moment, is_answered, is_closed, NULL };
	static const char *const moments[] = { "open", "worst", "end" };
	struct fixture *f = *state;
	const struct output *out;

	run(f, steps);
	out = read_output(f);
	for (size_t i = 0; i < ARRAY_SIZE(moments); i++) {
		const struct record_sql *q = NULL;

		assert_int_equal(find_moment(out, moments[i], &q), 1);
		assert_string_equal(q->error, "");
		assert_int_equal(q->active, 0);
		assert_string_equal(q->missing, "GRANT PROCESS ON *.* TO iostall@localhost");
	}
}

/* It answered before the incident; in it nothing is known, and that is said. */
static void test_silent(void **state)
{
	static const step steps[] = { is_answered, is_silent, trigger_until_stopped, is_silent, stop_it,
		is_closed, NULL };
	struct fixture *f = *state;
	const struct record_sql *q = NULL;
	const struct output *out;

	run(f, steps);
	out = read_output(f);
	assert_int_equal(find_moment(out, "open", &q), 1);
	assert_string_equal(q->error, "does not answer");
	assert_true(q->unanswered_ns > 0);
	assert_string_equal(q->account, "iostall@localhost");
	assert_int_equal(find_moment(out, "worst", &q), 0);
	assert_int_equal(find_moment(out, "end", &q), 1);
	assert_string_equal(q->error, "does not answer");
	assert_int_equal(out->lines[out->count - 1].type, RECORD_CLOSE);
}

/* Later than what counts as silent: two seconds of waiting. */
static bool is_silent_for_long(struct fixture *f)
{
	struct sql_evidence e;
	char path[32];

	sql_get_evidence(f->sql, 0, &e);
	if (e.unanswered_ns < 2 * NSEC_PER_SEC)
		return false;
	assert_true(e.in_session);
	snprintf(path, sizeof(path), "proc/%d/stat", e.server_pid);
	tree_put(f->t, path, "%d (mariadbd) T 1 2 3 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500 0\n", e.server_pid);
	return true;
}

static void assert_unanswered(struct fixture *f)
{
	const struct output *out = read_output(f);
	const struct record_verdict *v = &out->lines[out->count - 2].verdict;

	assert_int_equal(out->lines[out->count - 2].type, RECORD_VERDICT);
	assert_string_equal(v->class_name, "unanswered");
	assert_memory_equal(v->sentence, "database stops (mariadbd pid ", 29);
	assert_non_null(strstr(v->sentence, ") has not answered for 2."));
	assert_non_null(strstr(v->sentence, " s, it is stopped"));
}

/* Its process is looked at when the incident begins: then it may go on. */
static bool answers_again(struct fixture *f)
{
	struct sql_evidence e;

	sql_get_evidence(f->sql, 0, &e);
	kill(e.server_pid, SIGCONT);
	return e.unanswered_ns == 0;
}

static void test_the_verdict_of_a_silence(void **state)
{
	static const step steps[] = { is_answered, is_silent_for_long, trigger_until_stopped, answers_again,
		stop_it, is_closed, NULL };
	struct fixture *f = *state;

	run(f, steps);
	assert_unanswered(f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_moments, setup_good, teardown_sql),
		cmocka_unit_test_setup_teardown(test_what_ended_in_between, setup_ends, teardown_sql),
		cmocka_unit_test_setup_teardown(test_no_statement_twice, setup_changes, teardown_sql),
		cmocka_unit_test_setup_teardown(test_an_answer_that_was_read_late, setup_good, teardown_sql),
		cmocka_unit_test_setup_teardown(test_refused, setup_refused, teardown_sql),
		cmocka_unit_test_setup_teardown(test_a_missing_grant, setup_alone, teardown_sql),
		cmocka_unit_test_setup_teardown(test_silent, setup_stops, teardown_sql),
		cmocka_unit_test_setup_teardown(test_the_verdict_of_a_silence, setup_stops, teardown_sql),
	};

	if (argc == 3 && strcmp(argv[1], "sql-helper") == 0)
		return fake_main(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
