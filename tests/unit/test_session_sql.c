/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/*
 * The `sql` lines of a record: sessions in the phases open, during and end, or why there are
 * none.
 */
#include "test_session_answers.h"

static void test_sessions_in_each_phase(void **state)
{
	static const step steps[] = { is_answered, trigger_until_stopped, is_answered, stop_it,
		is_closed, NULL };
	static const char *const phases[] = { "open", "end" };
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
	return e.statements->worst_active == 3 && e.current->count == 2;
}

static bool has_opened(struct fixture *f)
{
	struct sql_evidence e;

	sql_get_evidence(f->sql, 0, &e);
	f->mark_ns = e.current ? e.current->answered_ns : 0;
	return e.current != NULL;
}

/* The lines of a session; *ret_last is the last one. */
static unsigned int find_lines(const struct output *out, uint64_t connection_id,
	const struct record **ret_last)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < out->count; i++) {
		const struct record *r = &out->lines[i];

		if (r->type != RECORD_SQL || r->sql.connection_id != connection_id)
			continue;
		*ret_last = r;
		count++;
	}
	return count;
}

/* None of the three ran in the last answer, and only one in the first. */
static void test_a_statement_that_has_ended_has_its_last_length(void **state)
{
	static const step steps[] = { is_answered, trigger_until_stopped, has_opened,
		is_past_the_worst, stop_it, is_closed, NULL };
	static const uint64_t ended[] = { 17, 21, 20 };
	struct fixture *f = *state;
	const struct record_sql *q = NULL;
	const struct record *last = NULL;
	const struct output *out;

	run(f, steps);
	out = read_output(f);
	assert_int_equal(find_phase(out, "open", &q), 2);
	assert_int_equal(find_phase(out, "end", &q), 3);
	for (size_t i = 0; i < ARRAY_SIZE(ended); i++) {
		assert_in_range(find_lines(out, ended[i], &last), 1, 3);
		assert_int_equal(last->sql.phase, RECORD_PHASE_during);
		assert_int_equal(last->sql.active, -1);
		assert_string_equal(last->sql.text, "SELECT ?");
		assert_in_range(last->sql.elapsed_ns, 2 * NSEC_PER_SEC, 20 * NSEC_PER_SEC);
		assert_true(last->sql.answer_ns > 0);
		assert_true(last->mono_ns > f->mark_ns && &last->sql < q);
	}
	assert_string_equal(last->sql.tid_reason, "thread pool");
	assert_int_equal(find_lines(out, 17, &last), 2);
	assert_int_equal(last->sql.tid, last->sql.pid);
	assert_int_equal(out->lines[out->count - 1].type, RECORD_CLOSE);
}

static bool has_four(struct fixture *f)
{
	struct sql_evidence e;

	sql_get_evidence(f->sql, 0, &e);
	return e.statements->count >= 4;
}

/* Another one in each answer. The last answer has its lines twice: it is also the end. */
static void test_no_statement_has_two_lines_without_news(void **state)
{
	static const step steps[] = { is_answered, trigger_until_stopped, has_four, stop_it,
		is_closed, NULL };
	struct fixture *f = *state;
	uint64_t last_id = 100;
	const struct output *out;
	unsigned int sessions = 0;

	run(f, steps);
	out = read_output(f);
	for (unsigned int i = 0; i < out->count; i++) {
		const struct record_sql *q = &out->lines[i].sql;

		if (out->lines[i].type != RECORD_SQL || !q->connection_id)
			continue;
		assert_true(q->connection_id > last_id || q->phase == RECORD_PHASE_end);
		last_id = q->connection_id;
		sessions++;
	}
	assert_true(sessions >= 4);
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
	assert_int_equal(find_phase(out, "during", &q), 0);
	assert_int_equal(find_phase(out, "end", &q), 1);
	assert_int_equal(out->lines[out->count - 1].type, RECORD_CLOSE);
}

static bool is_starting_up(struct fixture *f)
{
	struct sql_evidence e;

	sql_get_evidence(f->sql, 0, &e);
	return strcmp(e.why, "it is starting up") == 0;
}

static bool accepts_none_yet(struct fixture *f)
{
	struct sql_evidence e;

	sql_get_evidence(f->sql, 0, &e);
	return strcmp(e.why, "it accepts none yet") == 0;
}

/* As by a server that starts again: a line for each reason, and not for each answer. */
static void test_a_refusal_for_another_reason_is_recorded(void **state)
{
	static const step steps[] = { has_failed, trigger_until_stopped, is_starting_up,
		accepts_none_yet, is_starting_up, stop_it, is_closed, NULL };
	struct fixture *f = *state;
	const struct record_sql *q = NULL, *before = NULL;
	const struct output *out;

	run(f, steps);
	out = read_output(f);
	assert_int_equal(find_phase(out, "open", &q), 1);
	assert_true(find_phase(out, "during", &q) >= 1);
	for (unsigned int i = 0; i < out->count; i++) {
		q = &out->lines[i].sql;
		if (out->lines[i].type != RECORD_SQL || q->phase == RECORD_PHASE_end)
			continue;
		if (before)
			assert_string_not_equal(q->error, before->error);
		before = q;
	}
	assert_int_equal(find_phase(out, "end", &q), 1);
}

/* It answers, but its account may not see other sessions. */
static void test_a_missing_grant_is_recorded(void **state)
{
	static const step steps[] = { is_answered, trigger_until_stopped, is_answered, stop_it,
		is_closed, NULL };
	static const char *const phases[] = { "open", "end" };
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
	assert_int_equal(find_phase(out, "during", &q), 0);
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
		sql_test(test_a_statement_that_has_ended_has_its_last_length, "sql.ends"),
		sql_test(test_no_statement_has_two_lines_without_news, "sql.changes"),
		sql_test(test_an_answer_that_is_read_late_has_its_own_time, "sql.good"),
		sql_test(test_a_refused_login_is_recorded, "sql.refused"),
		sql_test(test_a_refusal_for_another_reason_is_recorded, "sql.starts"),
		sql_test(test_a_missing_grant_is_recorded, "sql.alone"),
		sql_test(test_an_unresponsive_database_is_recorded, "sql.stops"),
		sql_test(test_the_verdict_about_an_unresponsive_database, "sql.stops"),
	};

	if (argc == 3 && strcmp(argv[1], "sql-helper") == 0)
		return fake_main(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
