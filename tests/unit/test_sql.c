/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Targets with helpers that answer: this very program, named by its target. */
#include "test_sql_setup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sql/threads.h"
#include "util/cleanup.h"

static bool has_worst(struct fixture *f)
{
	return evidence(f).statements->worst_active == 4 && evidence(f).current->count == 3;
}

static void test_answer(void **state)
{
	struct fixture f;
	struct sql_session_view view;
	struct sql_evidence e;
	char buf[256];
	struct text text = TEXT_ON(buf);

	(void)state;
	setup_with(&f, "sql.good");
	run_until(&f, has_answer);
	e = evidence(&f);
	assert_string_equal(e.target, "good");
	assert_int_equal(e.server, RECORD_SERVER_mariadb);
	assert_string_equal(e.why, "");
	assert_int_equal(e.current->idle, 7);
	assert_int_equal(e.current->active, 3);
	assert_int_equal(e.current->longest_ns, 3 * NSEC_PER_SEC);
	/* A signal of the terminal is none of its business. */
	assert_int_equal(getsid(e.server_pid), e.server_pid);
	assert_true(sql_find_thread(f.sql, e.server_pid, &view));
	assert_int_equal(view.connection_id, 17);
	assert_int_equal(view.query_id, 1017);
	assert_string_equal(view.user, "app@localhost");
	assert_string_equal(view.database, "shop");
	assert_string_equal(view.text, "SELECT ?");
	assert_int_equal(view.text_bytes, 12);
	/* Of no thread, and of a thread that is another process's: no join, and why. */
	assert_false(sql_find_thread(f.sql, 0, &view));
	assert_false(sql_find_thread(f.sql, 1, &view));
	sql_snapshot_view(e.current, 1, &view);
	assert_int_equal(view.tid, 0);
	assert_string_equal(view.no_tid, "thread pool");
	sql_snapshot_view(e.current, 2, &view);
	assert_int_equal(view.tid, 0);
	assert_string_equal(view.no_tid, "no thread of the server on this host");
	text_reset(&text);
	sql_describe_target(f.sql, 0, &text);
	assert_string_equal(buf, "connected to 10.11.6-MariaDB as iostall@localhost");
	teardown(&f);
}

static void test_worst(void **state)
{
	struct fixture f;
	static const struct config_list states = { .count = 1, .items = { "Sending?data" } };
	struct sql_activity activity;

	(void)state;
	setup_with(&f, "sql.good");
	run_until(&f, has_worst);
	sql_get_activity(f.sql, &states, 0, &activity);
	assert_true(activity.present);
	assert_int_equal(activity.active, 3);
	assert_int_equal(activity.in_state, 3);
	assert_int_equal(activity.longest_ns, 3 * NSEC_PER_SEC);
	/* What came before an incident is none of its evidence. */
	assert_true(evidence(&f).statements->count >= 4);
	sql_begin_incident(f.sql);
	assert_null(evidence(&f).current);
	assert_int_equal(evidence(&f).statements->count, 0);
	f.armed = true;
	run_until(&f, has_answer);
	assert_int_equal(evidence(&f).statements->worst_active, 3);
	teardown(&f);
}

static bool has_ended(struct fixture *f)
{
	return evidence(f).statements->worst_active == 3;
}

/* Neither the worst answer nor the newest has it. */
static void test_a_statement_that_ended_before(void **state)
{
	struct fixture f;
	struct sql_session_view view;

	(void)state;
	setup_with(&f, "sql.ends");
	run_until(&f, has_ended);
	assert_true(sql_find_thread(f.sql, evidence(&f).server_pid, &view));
	assert_int_equal(view.connection_id, 17);
	sql_begin_incident(f.sql);
	assert_false(sql_find_thread(f.sql, evidence(&f).server_pid, &view));
	teardown(&f);
}

/* A transaction that waits for its client is told, but is no statement that runs. */
static void test_idle_transaction(void **state)
{
	struct fixture f;
	struct sql_session_view view;
	struct sql_evidence e;

	(void)state;
	setup_with(&f, "sql.idle");
	run_until(&f, has_answer);
	e = evidence(&f);
	assert_int_equal(e.current->count, 2);
	assert_int_equal(e.current->active, 1);
	assert_int_equal(e.current->longest_ns, NSEC_PER_SEC);
	assert_false(sql_find_thread(f.sql, e.server_pid, &view));
	teardown(&f);
}

/* As much as a helper may say, and again with the next answer. */
static void test_as_many_sessions_as_fit(void **state)
{
	struct fixture f;
	struct sql_evidence e;

	(void)state;
	setup_with(&f, "sql.most");
	for (unsigned int i = 0; i < 3; i++) {
		sql_begin_incident(f.sql);
		run_until(&f, has_answer);
		e = evidence(&f);
		assert_string_equal(e.why, "");
		assert_int_equal(e.current->count, SQL_SESSIONS_MAX);
		assert_int_equal(e.current->active, SQL_SESSIONS_MAX);
	}
	teardown(&f);
}

static void test_reload(void **state)
{
	struct fixture f;

	(void)state;
	setup_with(&f, "sql.good");
	run_until(&f, has_answer);
	assert_int_equal(sql_reload(f.sql, &f.config), 0);
	assert_non_null(evidence(&f).current);
	text_copy(f.config.sql.targets[0].socket, 108, "/run/other.sock");
	text_copy(f.config.sql.targets[0].password_file, 108, "/run/password");
	/* The second time because the file may be a new one. */
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(sql_reload(f.sql, &f.config), 0);
		assert_int_equal(sql_targets_count(f.sql), 1);
		assert_null(evidence(&f).current);
		run_until(&f, has_answer);
	}
	f.config.sql.enabled = false;
	assert_int_equal(sql_reload(f.sql, &f.config), 0);
	assert_int_equal(sql_targets_count(f.sql), 0);
	teardown(&f);
}

static void test_frames(void **state)
{
	union sql_helper_frame f = { .end = { .frame = { SQL_FRAME_END, sizeof(f.end), 1 } } };
	const size_t least = offsetof(struct sql_frame_session, text) + 1;

	(void)state;
	assert_int_equal(sql_frame_check(&f, sizeof(f.end)), SQL_FRAME_END);
	assert_int_equal(sql_frame_check(&f, sizeof(f.end) - 1), -EPROTO);
	assert_int_equal(sql_frame_check(&f, 4), -EPROTO);
	memset(f.end.error, 'x', sizeof(f.end.error));
	assert_int_equal(sql_frame_check(&f, sizeof(f.end)), -EPROTO);
	memset(&f, 0, sizeof(f));
	f.frame = (struct sql_frame){ SQL_FRAME_SESSION, (uint32_t)least, 1 };
	assert_int_equal(sql_frame_check(&f, least), SQL_FRAME_SESSION);
	f.session.text[0] = 'x';
	assert_int_equal(sql_frame_check(&f, least), -EPROTO);
	f.session.text[0] = '\0';
	/* A number that cannot be true costs itself. */
	f.session.tid = -1;
	f.session.leader_pid = 4194305;
	f.session.elapsed_ns = UINT64_MAX;
	f.session.connection_id = UINT64_MAX;
	assert_int_equal(sql_frame_check(&f, least), SQL_FRAME_SESSION);
	assert_int_equal(sql_frame_correct(&f), 3);
	assert_true(!f.session.tid && !f.session.leader_pid && !f.session.elapsed_ns);
	assert_int_equal(f.session.connection_id, UINT64_MAX);
	f.session.tid = f.session.leader_pid = 4194304;
	assert_int_equal(sql_frame_correct(&f), 0);
	memset(f.session.user, 'x', sizeof(f.session.user));
	assert_int_equal(sql_frame_check(&f, least), -EPROTO);
	memset(&f, 0, sizeof(f));
	/* What only the daemon sends, and what nobody does. */
	f.frame = (struct sql_frame){ SQL_FRAME_ASK, sizeof(f.frame), 1 };
	assert_int_equal(sql_frame_check(&f, sizeof(f.frame)), -EPROTO);
	f.frame.type = SQL_FRAME_TYPE_COUNT;
	assert_int_equal(sql_frame_check(&f, sizeof(f.frame)), -EPROTO);
}

/* Statements and names beyond the room are left out; the sessions stay and nothing is mixed up. */
static void test_full_snapshot(void **state)
{
	_cleanup_free_ struct sql_snapshot *s = calloc(1, sizeof(*s));
	struct sql_frame_session f = { .background = 0 };
	struct sql_frame_end end = { .sessions_left_out = 5 };
	struct sql_session_view view;

	(void)state;
	assert_non_null(s);
	sql_snapshot_begin(s, 1);
	for (int i = 0; i < SQL_SESSIONS_MAX; i++) {
		memset(f.text, 'a' + i % 26, sizeof(f.text) - 1);
		snprintf(f.user, sizeof(f.user), "user-with-a-rather-long-name-%d@host", i);
		f.tid = 1000 + i;
		assert_int_equal(sql_snapshot_add(s, &f), 0);
	}
	assert_int_equal(sql_snapshot_add(s, &f), -ENOSPC);
	sql_snapshot_end(s, &end, 2);
	assert_int_equal(s->left_out, 6);
	assert_int_equal(s->count, SQL_SESSIONS_MAX);
	for (int i = 0; i < SQL_SESSIONS_MAX; i++) {
		char user[SQL_NAME_SIZE];

		assert_true(sql_snapshot_find_thread(s, 1000 + i, &view));
		snprintf(user, sizeof(user), "user-with-a-rather-long-name-%d@host", i);
		assert_true(*view.user == '\0' || strcmp(view.user, user) == 0);
		assert_true(*view.text == '\0' || *view.text == 'a' + i % 26);
		assert_true(i > 4 || (*view.user && *view.text));
	}
}

static bool has_two(struct fixture *f)
{
	return has_answer(f) && evidence(f).current->count == 2;
}

/*
 * One absurd row, and a leader that is no process of the server: the rest of the answer is taken.
 */
static void test_absurd_answer(void **state)
{
	struct sql_session_view view;
	struct fixture f;

	(void)state;
	setup_with(&f, "sql.absurd");
	sql_begin_incident(f.sql);
	run_until(&f, has_two);
	assert_true(sql_count_invalid(f.sql) >= 2);
	sql_snapshot_view(evidence(&f).current, 0, &view);
	assert_int_equal(view.tid, 0);
	assert_int_equal(view.elapsed_ns, 0);
	assert_string_equal(view.text, "SELECT ?");
	sql_snapshot_view(evidence(&f).current, 1, &view);
	assert_true(view.tid > 0);
	assert_int_equal(view.leader_pid, 0);
	assert_true(view.worker);
	assert_int_equal(evidence(&f).current->active, 1);
	teardown(&f);
}

/* A parallel worker's thread leads to the statement of its leader; a ring of leaders to nobody. */
static void test_workers(void **state)
{
	_cleanup_free_ struct sql_snapshot *s = calloc(1, sizeof(*s));
	struct sql_frame_session f = { .tid = 10, .connection_id = 1, .text = "SELECT ?" };
	struct sql_session_view view;

	(void)state;
	assert_non_null(s);
	sql_snapshot_begin(s, 1);
	sql_snapshot_add(s, &f);
	f = (struct sql_frame_session){ .tid = 11, .connection_id = 2, .leader_pid = 10 };
	sql_snapshot_add(s, &f);
	f = (struct sql_frame_session){ .tid = 12, .connection_id = 3, .leader_pid = 13 };
	sql_snapshot_add(s, &f);
	f = (struct sql_frame_session){ .tid = 13, .connection_id = 4, .leader_pid = 12 };
	sql_snapshot_add(s, &f);
	assert_true(sql_snapshot_find_thread(s, 11, &view));
	assert_int_equal(view.connection_id, 1);
	assert_true(sql_snapshot_find_thread(s, 12, &view));
	assert_false(sql_snapshot_find_thread(s, 14, &view));
	assert_false(sql_snapshot_find_thread(s, 0, &view));
}

static void test_threads(void **state)
{
	int fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_true(sql_thread_is_of(fd, getpid(), getpid(), false));
	assert_false(sql_thread_is_of(fd, getppid(), getpid(), false));
	assert_true(sql_thread_is_of(fd, getpid(), getppid(), true));
	assert_false(sql_thread_is_of(fd, getpid(), 1, true) && getppid() != 1);
	assert_false(sql_thread_is_of(fd, 4194304, getpid(), true));
	close(fd);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_full_snapshot),
		cmocka_unit_test(test_absurd_answer),
		cmocka_unit_test(test_workers),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_answer),
		cmocka_unit_test(test_worst),
		cmocka_unit_test(test_a_statement_that_ended_before),
		cmocka_unit_test(test_idle_transaction),
		cmocka_unit_test(test_as_many_sessions_as_fit),
		cmocka_unit_test(test_reload),
	};

	if (argc == 3 && strcmp(argv[1], "sql-helper") == 0)
		return fake_main(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
