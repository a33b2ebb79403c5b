/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Targets with helpers that answer, lie, hang and die: this very program, named by its target. */
#include "test_sql_setup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "sql/threads.h"
#include "util/cleanup.h"
#include "watch/watch.h"

static bool has_worst(struct fixture *f)
{
	return evidence(f).worst && evidence(f).worst->count == 4 && evidence(f).current->count == 3;
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
	assert_string_equal(e.type, "mariadb");
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
	assert_true(sql_is_server(f.sql, e.server_pid));
	assert_false(sql_is_server(f.sql, 1));
	assert_false(sql_is_server(f.sql, 0));
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
	sql_get_activity(f.sql, &states, &activity);
	assert_true(activity.present);
	assert_int_equal(activity.active, 3);
	assert_int_equal(activity.in_state, 3);
	assert_int_equal(activity.longest_ns, 3 * NSEC_PER_SEC);
	/* What came before an incident is none of its evidence. */
	assert_true(evidence(&f).longest->count >= 4);
	sql_begin_incident(f.sql);
	assert_null(evidence(&f).current);
	assert_null(evidence(&f).worst);
	assert_int_equal(evidence(&f).longest->count, 0);
	f.armed = true;
	run_until(&f, has_answer);
	assert_int_equal(evidence(&f).worst->count, 3);
	teardown(&f);
}

static bool has_ended(struct fixture *f)
{
	return evidence(f).worst && evidence(f).worst->count == 3;
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
	uint64_t longest_ns;

	(void)state;
	setup_with(&f, "sql.idle");
	run_until(&f, has_answer);
	e = evidence(&f);
	assert_int_equal(e.current->count, 2);
	assert_int_equal(e.current->active, 1);
	assert_int_equal(e.current->longest_ns, NSEC_PER_SEC);
	assert_int_equal(sql_count_others(f.sql, 0, &longest_ns), 1);
	assert_int_equal(longest_ns, NSEC_PER_SEC);
	assert_false(sql_find_thread(f.sql, e.server_pid, &view));
	teardown(&f);
}

static bool says_why(struct fixture *f)
{
	return *evidence(f).why && evidence(f).is_told;
}

static void test_refused(void **state)
{
	struct fixture f;
	struct sql_evidence e;

	(void)state;
	setup_with(&f, "sql.refused");
	run_until(&f, says_why);
	e = evidence(&f);
	assert_string_equal(e.why, "Access denied for user 'iostall'@'localhost'");
	assert_string_equal(e.missing, "CREATE USER iostall@localhost");
	assert_null(e.current);
	teardown(&f);
}

static void test_liars(void **state)
{
	static const char *const modes[] = { "sql.garbage", "sql.other", "sql.flood",
		"sql.logins" };
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		setup_with(&f, modes[i]);
		run_until(&f, says_why);
		assert_string_equal(evidence(&f).why, "its helper process sent what is no answer");
		assert_null(evidence(&f).current);
		teardown(&f);
	}
}

/* As much as a helper may say, and again with the next answer. */
static void test_most(void **state)
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

static bool has_answer_again(struct fixture *f)
{
	return evidence(f).current && !*evidence(f).why;
}

/* While an incident is open nothing is started; afterwards it is. */
static void test_death(void **state)
{
	struct fixture f;

	(void)state;
	setup_with(&f, "sql.dies");
	run_until(&f, has_answer);
	f.armed = true;
	run_until(&f, says_why);
	assert_string_equal(evidence(&f).why, "its helper process has ended");
	f.until_ns = clock_mono_ns() + 200 * MS;
	while (clock_mono_ns() < f.until_ns) {
		sql_tick(f.sql, true);
		poll(NULL, 0, 1);
		assert_string_equal(evidence(&f).why, "its helper process has ended");
	}
	f.armed = false;
	run_until(&f, has_answer_again);
	teardown(&f);
}

static bool is_unanswered(struct fixture *f)
{
	return evidence(f).unanswered_ns > 0;
}

static bool is_answered(struct fixture *f)
{
	return evidence(f).unanswered_ns == 0 && has_answer_again(f);
}

static void test_hang(void **state)
{
	struct fixture f;
	char buf[256];
	struct text text = TEXT_ON(buf);

	(void)state;
	setup_with(&f, "sql.stops");
	run_until(&f, has_answer);
	f.armed = true;
	sql_begin_incident(f.sql);
	run_until(&f, is_unanswered);
	assert_null(evidence(&f).current);
	text_reset(&text);
	sql_describe_target(f.sql, 0, &text);
	assert_non_null(strstr(buf, "has not answered for "));
	/* Asked, told and looked at, but never waited for: that would take two seconds. */
	assert_true(f.longest_ns < 500 * MS);
	f.armed = false;
	run_until(&f, says_why);
	assert_string_equal(evidence(&f).why, "its helper process did not answer");
	run_until(&f, is_answered);
	teardown(&f);
}

/* The helper answers, the server does not: its silence adds up over the questions. */
static bool is_silent_for_long(struct fixture *f)
{
	return evidence(f).unanswered_ns > 100 * MS;
}

static void test_silent_server(void **state)
{
	struct fixture f;

	(void)state;
	setup_with(&f, "sql.silent");
	run_until(&f, has_answer);
	run_until(&f, is_silent_for_long);
	assert_string_equal(evidence(&f).why, SQL_ERROR_SILENT);
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

static void test_no_helper(void **state)
{
	struct fixture f;

	(void)state;
	setup_with(&f, "sql.good");
	f.sql = sql_free(f.sql);
	assert_int_equal(sql_new(&(struct sql_options){ .config = &f.config,
					 .procfs = "/proc",
					 .loop = f.loop,
					 .helper = "/nonexistent",
					 .timing = { .backoff_ns = 20 * MS } },
				 &f.sql),
		0);
	run_until(&f, says_why);
	assert_string_equal(evidence(&f).why, "its helper process has ended");
	teardown(&f);
}

static void make_file(const char *dir, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void make_dir(const char *dir, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(mkdir(path, 0755), 0);
}

static void make_socket(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	text_copy(address.sun_path, sizeof(address.sun_path), path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
}

/* A mariadbd that runs and has its socket is tried; a postgres without one is not. */
static void test_detection(void **state)
{
	char dir[] = "/tmp/test_sql.XXXXXX", path[128], command[128];
	struct config_list names = { 2, { "mariadbd", "postgres" } }, every = { 1, { "*" } };
	struct config_list none = { 0 };
	struct watch *watch;
	struct fixture f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	make_file(dir, "stat", "cpu  1 0 1 1 1 0 0 0 0 0\n");
	make_dir(dir, "70");
	make_dir(dir, "71");
	make_dir(dir, "mysqld");
	make_file(dir, "70/stat",
		"70 (mariadbd) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500 0 0\n");
	make_file(dir, "71/stat",
		"71 (postgres) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500 0 0\n");
	setup_with(&f, "sql.good");
	f.sql = sql_free(f.sql);
	f.config.sql.targets_count = 0;
	assert_int_equal(watch_new(&(struct watch_options){ .procfs = dir,
					   .sysfs = dir,
					   .interval_ns = NSEC_PER_SEC,
					   .process = &names,
					   .device = &every,
					   .device_ignore = &none },
				 &watch),
		0);
	snprintf(path, sizeof(path), "%s/mysqld/mysqld.sock", dir);
	make_socket(path);
	assert_int_equal(sql_new(&(struct sql_options){ .config = &f.config,
					 .procfs = "/proc",
					 .loop = f.loop,
					 .watch = watch,
					 .run_dir = dir,
					 .helper = "/nonexistent" },
				 &f.sql),
		0);
	sql_tick(f.sql, true);
	assert_int_equal(sql_targets_count(f.sql), 0);
	sql_tick(f.sql, false);
	assert_int_equal(sql_targets_count(f.sql), 1);
	assert_string_equal(evidence(&f).target, "mariadb");
	teardown(&f);
	watch_free(watch);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
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
	f.session.tid = -1;
	assert_int_equal(sql_frame_check(&f, least), -EPROTO);
	f.session.tid = 4194305;
	assert_int_equal(sql_frame_check(&f, least), -EPROTO);
	f.session.tid = 0;
	f.session.elapsed_ns = UINT64_MAX;
	assert_int_equal(sql_frame_check(&f, least), -EPROTO);
	f.session.elapsed_ns = 0;
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
		cmocka_unit_test(test_workers),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_answer),
		cmocka_unit_test(test_worst),
		cmocka_unit_test(test_a_statement_that_ended_before),
		cmocka_unit_test(test_idle_transaction),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_liars),
		cmocka_unit_test(test_most),
		cmocka_unit_test(test_death),
		cmocka_unit_test(test_hang),
		cmocka_unit_test(test_silent_server),
		cmocka_unit_test(test_reload),
		cmocka_unit_test(test_no_helper),
		cmocka_unit_test(test_detection),
	};

	if (argc == 3 && strcmp(argv[1], "sql-helper") == 0)
		return fake_main(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
