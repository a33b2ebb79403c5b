/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Lists of sessions of a client library that a test speaks for. */
#include <errmsg.h>
#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sql/helper/mariadb_locks.h"
#include "sql/helper/mariadb_sessions.h"
#include "util/cleanup.h"
#include "util/clock.h"

/* What performance_schema keeps of a statement, when it ends in the middle of a character. */
#define KEPT_BYTES 1021
#define HEAD "INSERT INTO t VALUES ('it\\'s sEcReT "

/* The server: one session. */
#define CELL_TIME_S 5
#define THREADS_QUERY "SELECT ID, TID, QUERY_ID, TIME_US"
static char text[2048];
static char *cells[] = { (char[]){ "17" }, (char[12]){ "app" }, (char[]){ "h" }, NULL,
	(char[]){ "Query" }, (char[32]){ "3" }, (char[]){ "" }, text, (char[]){ "0" } };
/* The same of THREADS_QUERY. */
static char *thread_cells[] = { (char[]){ "17" }, (char[32]){ "2225" }, (char[32]){ "100" },
	(char[32]){ "0" } };
static unsigned long lengths[ARRAY_SIZE(cells)];
static unsigned int rows_left;
static unsigned int threads_asked;
static unsigned long text_length; /* as the server tells it; 0: that of the text */
static bool is_about_threads;
/* Of @@max_connections. */
static char *allowed_cells[] = { (char[32]){ "151" } };
static bool is_about_allowed, is_allowed_read;
static unsigned int allowed_asked;
static int answers[2];

/* 0: as many as the cells have. */
static unsigned int columns;
static unsigned int rows_of_list; /* 0: one */
static unsigned int sleepers;	  /* the first of them */
static bool sleepers_come_last;
static char list_query[64];

static unsigned int row_error; /* instead of the first row; 0: none */

static my_socket get_socket(MYSQL *mysql)
{
	(void)mysql;
	return answers[1];
}

/* Of the next answer; 0: none. */
static unsigned int next_error;

static int send_query(MYSQL *mysql, const char *query, unsigned long len)
{
	(void)mysql;
	is_about_allowed = memcmp(query, "SELECT @@", strlen("SELECT @@")) == 0;
	allowed_asked += is_about_allowed;
	is_allowed_read = false;
	if (is_about_allowed)
		return 0;
	is_about_threads = len == strlen(THREADS_QUERY) && memcmp(query, THREADS_QUERY, len) == 0;
	threads_asked += is_about_threads;
	next_error = 0;
	rows_left = is_about_threads || rows_of_list == 0 ? 1 : rows_of_list;
	if (!is_about_threads)
		snprintf(list_query, sizeof(list_query), "%.*s", (int)len, query);
	return 0;
}

static my_bool read_query_result(MYSQL *mysql)
{
	(void)mysql;
	return next_error != 0;
}

static unsigned int get_errno(MYSQL *mysql)
{
	(void)mysql;
	return next_error;
}

static const char *get_error(MYSQL *mysql)
{
	(void)mysql;
	return "refused";
}

static MYSQL_RES *use_result(MYSQL *mysql)
{
	(void)mysql;
	if (is_about_allowed)
		return (MYSQL_RES *)allowed_cells;
	return (MYSQL_RES *)(is_about_threads ? thread_cells : cells);
}

static void free_result(MYSQL_RES *result)
{
	(void)result;
}

static unsigned int num_fields(MYSQL_RES *result)
{
	if (result == (MYSQL_RES *)allowed_cells)
		return ARRAY_SIZE(allowed_cells);
	if (columns)
		return columns;
	return result == (MYSQL_RES *)cells ? ARRAY_SIZE(cells) : ARRAY_SIZE(thread_cells);
}

static MYSQL_ROW fetch_row(MYSQL_RES *result)
{
	if (result == (MYSQL_RES *)allowed_cells && is_allowed_read)
		return NULL;
	if (result == (MYSQL_RES *)allowed_cells) {
		is_allowed_read = true;
		return (MYSQL_ROW)result;
	}
	if (row_error)
		next_error = row_error;
	if (rows_left == 0 || next_error)
		return NULL;
	rows_left--;
	if (result == (MYSQL_RES *)cells && sleepers) {
		const bool is_idle = sleepers_come_last ? rows_left < sleepers
							: rows_of_list - rows_left <= sleepers;

		snprintf(cells[4], 6, "%s", is_idle ? "Sleep" : "Query");
		snprintf(cells[CELL_TIME_S], 32, "%s", is_idle ? "600" : "3");
	}
	return (MYSQL_ROW)result;
}

static unsigned long *fetch_lengths(MYSQL_RES *result)
{
	(void)result;
	lengths[7] = text_length ? text_length : strlen(text);
	return lengths;
}

static unsigned long thread_id(MYSQL *mysql)
{
	(void)mysql;
	return 1;
}

static const struct mariadb_functions server = {
	.mysql_get_socket = get_socket,
	.mysql_send_query = send_query,
	.mysql_read_query_result = read_query_result,
	.mysql_use_result = use_result,
	.mysql_free_result = free_result,
	.mysql_num_fields = num_fields,
	.mysql_fetch_row = fetch_row,
	.mysql_fetch_lengths = fetch_lengths,
	.mysql_thread_id = thread_id,
	.mysql_errno = get_errno,
	.mysql_error = get_error,
};

/* What the daemon gets of a statement that begins so and has so many bytes. */
static void take_text(bool by_threads, const char *threads_query, const char *head, size_t bytes,
	struct sql_frame_session *ret_session)
{
	struct sql_frame_setup setup = { .text_mode = SQL_TEXT_REDACTED, .text_bytes = 1024 };
	struct sql_link link = { .setup = &setup, .by_threads = by_threads, .thread_pool = true };
	struct sql_answer answer = { .setup = &setup, .dialect = SQL_DIALECT_MYSQL };
	char error_buf[SQL_ERROR_SIZE];
	struct text error = TEXT_ON(error_buf);
	int fds[2];

	text_reset(&error);
	memset(text, 'x', bytes);
	memcpy(text, head, strlen(head));
	text[bytes] = '\0';
	text_copy(link.threads_query, sizeof(link.threads_query), threads_query);
	link.lib = server;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, answers), 0);
	assert_int_equal(send(answers[0], "", 1, 0), 1);
	answer.fd = fds[0];
	assert_int_equal(mariadb_snapshot(&link, &answer, &error), 0);
	assert_int_equal(answer.sent, 1);
	assert_true(recv(fds[1], ret_session, sizeof(*ret_session), 0) > 0);
	assert_int_equal(ret_session->connection_id, 17);
	assert_int_equal(ret_session->text_bytes, bytes);
	close(fds[0]);
	close(fds[1]);
	close(answers[0]);
	close(answers[1]);
}

/* The server says of no text that it is cut. */
static void test_cut(void **state)
{
	struct sql_frame_session session;

	(void)state;
	/* At the first byte that is no UTF-8, too. */
	for (size_t bytes = strlen(HEAD); bytes <= 1024; bytes++) {
		take_text(true, "", HEAD, bytes, &session);
		assert_string_equal(session.text, "INSERT INTO t VALUES (?");
	}
	/* SHOW PROCESSLIST made of the same. */
	take_text(false, "", HEAD, KEPT_BYTES, &session);
	assert_string_equal(session.text, "INSERT INTO t VALUES (?");
}

/* A whole text tells more, as it has to end. */
static void test_whole(void **state)
{
	static const char whole[] = "SELECT 'it\\'s', a FROM t";
	struct sql_frame_session session;

	(void)state;
	take_text(false, "", whole, strlen(whole), &session);
	assert_string_equal(session.text, "SELECT ?, a FROM t");
	take_text(true, "", whole, strlen(whole), &session);
	assert_string_equal(session.text, "SELECT ?");
	take_text(false, "SELECT ID, TID", whole, KEPT_BYTES, &session);
	assert_memory_equal(session.text, "SELECT ?, a FROM txx", 20);
}

/* --- the number of a statement, and since when it runs ------------------------------------- */

struct worker {
	struct sql_frame_setup setup;
	struct sql_link link;
	int fds[2];
};

static int forget(void **state)
{
	(void)state;
	allowed_asked = threads_asked = columns = rows_of_list = next_error = row_error = 0;
	text_length = sleepers = 0;
	snprintf(cells[4], 6, "Query");
	is_about_threads = false;
	snprintf(thread_cells[1], 32, "2225");
	text_copy(text, sizeof(text), "SELECT 1");
	return 0;
}

static int setup_asker(void **state)
{
	struct worker *a = calloc(1, sizeof(*a));

	a->setup = (struct sql_frame_setup){ .text_mode = SQL_TEXT_OFF, .text_bytes = 1024 };
	a->link = (struct sql_link){ .setup = &a->setup,
		.threads_query = THREADS_QUERY,
		.lib = server };
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, a->fds), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, answers), 0);
	assert_int_equal(send(answers[0], "", 1, 0), 1);
	forget(NULL);
	*state = a;
	return 0;
}

static int teardown_asker(void **state)
{
	struct worker *a = *state;

	mariadb_forget_threads(&a->link);
	for (unsigned int i = 0; i < 2; i++) {
		close(a->fds[i]);
		close(answers[i]);
	}
	free(a);
	return 0;
}

/* The list says time_s, the threads, if they are asked, query_id and time_us. */
static struct sql_frame_session ask(struct worker *a, unsigned int time_s, unsigned int query_id,
	uint64_t time_us)
{
	struct sql_answer answer = { .fd = a->fds[0],
		.setup = &a->setup,
		.dialect = SQL_DIALECT_MYSQL };
	struct sql_frame_session session;
	char error_buf[SQL_ERROR_SIZE];
	struct text error = TEXT_ON(error_buf);

	text_reset(&error);
	snprintf(cells[CELL_TIME_S], 32, "%u", time_s);
	snprintf(thread_cells[2], 32, "%u", query_id);
	snprintf(thread_cells[3], 32, "%llu", (unsigned long long)time_us);
	assert_int_equal(mariadb_snapshot(&a->link, &answer, &error), 0);
	assert_int_equal(answer.sent, 1);
	assert_true(recv(a->fds[1], &session, sizeof(session), 0) > 0);
	assert_int_equal(session.tid, 2225);
	return session;
}

/* One session in the list, and as many of the same user, who are idle. */
static struct sql_connections count_connections(struct worker *a, const char *allowed)
{
	struct sql_answer answer = { .fd = a->fds[0],
		.setup = &a->setup,
		.dialect = SQL_DIALECT_MYSQL };
	char error_buf[SQL_ERROR_SIZE];
	struct text error = TEXT_ON(error_buf);

	text_reset(&error);
	snprintf(allowed_cells[0], 32, "%s", allowed);
	assert_int_equal(mariadb_snapshot(&a->link, &answer, &error), 0);
	return answer.connections;
}

/* It is asked once a minute, and again before all are said to be used. */
static void test_connections(void **state)
{
	struct worker *a = *state;
	struct sql_connections c;

	rows_of_list = 3;
	c = count_connections(a, "5");
	assert_int_equal(c.used, 3);
	assert_int_equal(c.allowed, 5);
	assert_string_equal(c.user, "app");
	assert_int_equal(c.of_user, 3);
	assert_int_equal(c.of_user_idle, 0);
	assert_int_equal(allowed_asked, 1);
	count_connections(a, "5");
	assert_int_equal(allowed_asked, 1);
	rows_of_list = 5;
	assert_int_equal(count_connections(a, "500").allowed, 500);
	assert_int_equal(allowed_asked, 2);
	assert_int_equal(count_connections(a, "5").allowed, 500);
	assert_int_equal(allowed_asked, 2);
	a->link.allowed_asked_ns -= 61 * NSEC_PER_SEC;
	assert_int_equal(count_connections(a, "5").allowed, 5);
}

/* Threads of the server itself are no clients. */
static void test_connections_of_users(void **state)
{
	struct worker *a = *state;
	struct sql_connections c;

	text_copy(cells[4], 6, "Sleep");
	rows_of_list = 2;
	c = count_connections(a, "151");
	assert_int_equal(c.of_user_idle, 2);
	text_copy(cells[1], 12, "system user");
	c = count_connections(a, "151");
	assert_int_equal(c.used, 0);
	assert_string_equal(c.user, "");
	text_copy(cells[1], 12, "app");
	text_copy(cells[4], 6, "Query");
}

/* As if all that was asked and answered had been so much earlier. */
static void pass(struct worker *a, uint64_t ns)
{
	a->link.threads_asked_ns -= ns;
	a->link.asked_at_ns -= ns;
	for (size_t i = 0; i < a->link.threads_count; i++)
		a->link.threads[i].started_ns -= ns;
}

/* Asked for with the list, and long under way. */
static void test_thread_list_has_exact_times(void **state)
{
	struct sql_frame_session s = ask(*state, 3, 100, 3700000);

	assert_int_equal(threads_asked, 1);
	assert_int_equal(s.query_id, 100);
	assert_in_range(s.elapsed_ns, 3700 * NSEC_PER_MSEC,
		3700 * NSEC_PER_MSEC + 2 * NSEC_PER_SEC);
}

/* The list saw another one, that ended before the threads were asked. */
static void test_next_statement_gets_no_old_time(void **state)
{
	struct sql_frame_session s = ask(*state, 3, 101, 0);

	assert_int_equal(s.query_id, 0);
	assert_int_equal(s.elapsed_ns, 3 * NSEC_PER_SEC);
}

/* The first began 0.2 s before the threads were asked; a second later it may be any. */
static void test_kept_threads_of_an_earlier_statement(void **state)
{
	struct worker *a = *state;
	struct sql_frame_session s = ask(a, 0, 100, 200000);

	assert_int_equal(s.query_id, 100);
	pass(a, NSEC_PER_SEC);
	s = ask(a, 0, 101, 0);
	assert_int_equal(s.query_id, 0);
	assert_int_equal(s.elapsed_ns, 0);
	s = ask(a, 1, 101, 0);
	assert_int_equal(s.query_id, 0);
	assert_int_equal(s.elapsed_ns, NSEC_PER_SEC);
	assert_int_equal(threads_asked, 1);
}

/* It has run for longer than what was kept is old. */
static void test_kept_threads_of_the_same_statement(void **state)
{
	struct worker *a = *state;
	struct sql_frame_session s = ask(a, 5, 100, 5500000);

	pass(a, 2 * NSEC_PER_SEC);
	s = ask(a, 7, 101, 0);
	assert_int_equal(threads_asked, 1);
	assert_int_equal(s.query_id, 100);
	assert_in_range(s.elapsed_ns, 7500 * NSEC_PER_MSEC,
		7500 * NSEC_PER_MSEC + 2 * NSEC_PER_SEC);
}

/* While idle nothing is asked that the server has to write a table for, and no text. */
static void test_a_glance_is_cheap(void **state)
{
	struct worker *a = *state;
	struct sql_answer answer = { .fd = a->fds[0],
		.is_glance = true,
		.setup = &a->setup,
		.dialect = SQL_DIALECT_MYSQL };
	char error_buf[SQL_ERROR_SIZE];
	struct text error = TEXT_ON(error_buf);

	text_reset(&error);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(mariadb_snapshot(&a->link, &answer, &error), 0);
		assert_string_equal(list_query, "SHOW PROCESSLIST");
		assert_int_equal(threads_asked, 1);
	}
	/* Now and then, so that they are known when the disk of its temporary files hangs. */
	pass(a, 61 * NSEC_PER_SEC);
	assert_int_equal(mariadb_snapshot(&a->link, &answer, &error), 0);
	assert_int_equal(threads_asked, 2);
	/* The first question of an incident has all. */
	ask(a, 3, 100, 3700000);
	assert_string_equal(list_query, "SHOW FULL PROCESSLIST");
	assert_int_equal(threads_asked, 3);
}

/* --- what goes wrong ----------------------------------------------------------------------- */

/* The server gave up the question that nobody waits for any more. */
static void test_late_error_is_ignored(void **state)
{
	struct worker *a = *state;

	a->link.pending_since_ns = clock_mono_ns();
	next_error = 1969;
	ask(a, 3, 100, 3700000);
	assert_int_equal(a->link.pending_since_ns, 0);
}

static int snapshot(struct worker *a, char ret_said[SQL_ERROR_SIZE])
{
	struct sql_answer answer = { .fd = a->fds[0], .setup = &a->setup };
	struct text error = { .buf = ret_said, .size = SQL_ERROR_SIZE };

	text_reset(&error);
	return mariadb_snapshot(&a->link, &answer, &error);
}

/* The server answers all others, but its tmpdir is on a disk that hangs. */
static void test_threads_that_hang(void **state)
{
	struct worker *a = *state;
	char said[SQL_ERROR_SIZE], byte;

	ask(a, 1, 100, 0);
	assert_int_equal(threads_asked, 1);
	assert_int_equal(recv(answers[1], &byte, 1, 0), 1);
	a->link.pending = MARIADB_ASKS_THREADS;
	a->link.pending_since_ns = clock_mono_ns() - NSEC_PER_SEC;
	assert_int_equal(snapshot(a, said), -ETIMEDOUT);
	assert_memory_equal(said, SQL_ERROR_UNRESPONSIVE, strlen(SQL_ERROR_UNRESPONSIVE));
	a->link.pending_since_ns = clock_mono_ns() - 4 * NSEC_PER_SEC;
	assert_int_equal(snapshot(a, said), -ENOTCONN);
	assert_string_equal(said, "the list of its threads hangs, as where its tmpdir does");
	assert_true(a->link.threads_stay);
	/* In the next session what is known of threads is known still, and no more is asked. */
	a->link.pending_since_ns = 0;
	assert_int_equal(send(answers[0], "", 1, 0), 1);
	pass(a, 10 * NSEC_PER_SEC);
	ask(a, 3, 101, 0);
	assert_int_equal(threads_asked, 1);
}

/* The server works on them for longer than we wait, and is left alone for so much longer. */
static void test_locks_that_are_late(void **state)
{
	struct worker *a = *state;
	const uint64_t now_ns = clock_mono_ns();

	a->link.pending = MARIADB_ASKS_ROW_LOCKS;
	a->link.pending_since_ns = now_ns - 2 * NSEC_PER_SEC;
	ask(a, 3, 100, 0);
	assert_in_range(a->link.locks_after_ns, now_ns + 38 * NSEC_PER_SEC,
		clock_mono_ns() + 60 * NSEC_PER_SEC);
}

static void test_lost_session_is_reported(void **state)
{
	struct worker *a = *state;
	struct sql_answer answer = { .fd = a->fds[0], .setup = &a->setup };
	char error_buf[SQL_ERROR_SIZE];
	struct text error = TEXT_ON(error_buf);

	text_reset(&error);
	a->link.pending_since_ns = clock_mono_ns();
	next_error = CR_SERVER_LOST;
	assert_int_equal(mariadb_snapshot(&a->link, &answer, &error), -ENOTCONN);
	assert_string_equal(error_buf, "refused (2013)");
}

/* --- what cannot be true ------------------------------------------------------------------- */

/* The server's numbers are beyond all that is possible: they are dropped, the session stays. */
static void test_absurd_numbers_cost_themselves(void **state)
{
	struct worker *a = *state;
	struct sql_answer answer = { .fd = a->fds[0],
		.setup = &a->setup,
		.dialect = SQL_DIALECT_MYSQL };
	struct sql_frame_session session;
	char error_buf[SQL_ERROR_SIZE];
	struct text error = TEXT_ON(error_buf);

	text_reset(&error);
	snprintf(cells[CELL_TIME_S], 32, "18446744073709551615");
	snprintf(thread_cells[1], 32, "99999999999");
	snprintf(thread_cells[3], 32, "-1");
	assert_int_equal(mariadb_snapshot(&a->link, &answer, &error), 0);
	assert_int_equal(answer.sent, 1);
	assert_true(recv(a->fds[1], &session, sizeof(session), 0) > 0);
	assert_int_equal(session.connection_id, 17);
	assert_int_equal(session.tid, 0);
	assert_true(session.elapsed_ns <= SQL_ELAPSED_MAX_NS);
	assert_int_equal(answer.invalid, 1);
}

static int snapshot_fails(struct worker *a, char said[static SQL_ERROR_SIZE])
{
	struct sql_answer answer = { .fd = a->fds[0], .setup = &a->setup };
	struct text error = { .buf = said, .size = SQL_ERROR_SIZE };
	int r;

	text_reset(&error);
	r = mariadb_snapshot(&a->link, &answer, &error);
	assert_int_equal(answer.sent, 0);
	return r;
}

static void test_missing_columns(void **state)
{
	char said[SQL_ERROR_SIZE];

	columns = 3;
	assert_int_equal(snapshot_fails(*state, said), -EBADMSG);
	assert_string_equal(said, "the server answers with 3 columns instead of 8");
}

/* Replication threads that wait for the other side run nothing, as MariaDB and MySQL tell them. */
static void test_replication(void **state)
{
	static const struct {
		char user[16], command[16], says[64];
		bool is_active;
	} threads[] = {
		{ "system user", "Slave_IO", "Waiting for master to send event", false },
		{ "system user", "Slave_SQL", "Slave has read all relay log; waiting for more",
			false },
		{ "system user", "Slave_worker", "Waiting for work from SQL thread", false },
		{ "system user", "Connect", "Waiting for source to send event", false },
		{ "system user", "Query", "Replica has read all relay log; waiting", false },
		{ "system user", "Query", "Waiting for an event from Coordinator", false },
		{ "system user", "Query", "Applying batch of row changes (update)", true },
		{ "system user", "Slave_IO", "Queueing master event to the relay log", true },
		{ "system user", "Sleep", "wsrep applier idle", false },
		{ "system user", "Sleep", "altering table", true },
		{ "app", "Query", "Waiting for table metadata lock", true },
	};
	struct worker *a = *state;
	char *const saved[] = { cells[1], cells[4], cells[6], cells[7] };

	for (unsigned int i = 0; i < ARRAY_SIZE(threads); i++) {
		struct sql_answer answer = { .fd = a->fds[0], .setup = &a->setup };
		char error_buf[SQL_ERROR_SIZE];
		struct text error = TEXT_ON(error_buf);
		struct sql_frame_session session;

		text_reset(&error);
		cells[1] = (char *)threads[i].user;
		cells[4] = (char *)threads[i].command;
		cells[6] = (char *)threads[i].says;
		cells[7] = strstr(threads[i].says, "applier idle") ? NULL : saved[3];
		assert_int_equal(mariadb_snapshot(&a->link, &answer, &error), 0);
		assert_int_equal(answer.sent, threads[i].is_active);
		if (!answer.sent)
			continue;
		assert_true(recv(a->fds[1], &session, sizeof(session), 0) > 0);
		assert_int_equal(session.background, strcmp(threads[i].user, "app") != 0);
	}
	cells[1] = saved[0];
	cells[4] = saved[1];
	cells[6] = saved[2];
	cells[7] = saved[3];
}

static pid_t begin_reading(struct worker *a)
{
	pid_t reader = fork();
	char byte;

	assert_true(reader >= 0);
	if (reader > 0)
		return reader;
	close(a->fds[0]);
	while (recv(a->fds[1], &byte, 1, 0) > 0)
		;
	_exit(0);
}

/* A pool has hundreds of transactions that do nothing, and they are older than what runs. */
static void test_many_sleepers(void **state)
{
	struct worker *a = *state;
	struct sql_answer answer = { .fd = a->fds[0],
		.setup = &a->setup,
		.dialect = SQL_DIALECT_MYSQL };
	char error_buf[SQL_ERROR_SIZE];
	struct text error = TEXT_ON(error_buf);
	pid_t reader = begin_reading(a);

	text_reset(&error);
	a->link.transactions = calloc(1, sizeof(*a->link.transactions));
	a->link.transactions[0].connection_id = 17;
	a->link.transactions_count = 1;
	rows_of_list = 600;
	sleepers = 300;
	assert_int_equal(mariadb_snapshot(&a->link, &answer, &error), 0);
	assert_int_equal(answer.sent, MARIADB_SESSIONS_MAX);
	assert_int_equal(answer.idle, 300);
	assert_int_equal(answer.left_out, 300 - (MARIADB_SESSIONS_MAX - 64));
	/* The list is full before the first of them comes. */
	sleepers_come_last = true;
	a->link.asked_at_ns = clock_mono_ns();
	answer.sent = 0;
	assert_int_equal(send(answers[0], "", 1, 0), 1);
	assert_int_equal(mariadb_snapshot(&a->link, &answer, &error), 0);
	sleepers_come_last = false;
	assert_int_equal(answer.sent, MARIADB_SESSIONS_MAX);
	assert_int_equal(answer.left_out, 300 - (MARIADB_SESSIONS_MAX - 64));
	shutdown(a->fds[0], SHUT_RDWR);
	assert_int_equal(waitpid(reader, NULL, 0), reader);
}

/* Only what is sent is kept: no more sessions, and no more of a statement than is looked at. */
static void test_many_sessions(void **state)
{
	struct worker *a = *state;
	struct sql_answer answer = { .fd = a->fds[0],
		.setup = &a->setup,
		.dialect = SQL_DIALECT_MYSQL };
	char error_buf[SQL_ERROR_SIZE];
	struct text error = TEXT_ON(error_buf);
	struct mallinfo2 before, after;
	pid_t reader = begin_reading(a);

	text_reset(&error);
	rows_of_list = 100000;
	before = mallinfo2();
	assert_int_equal(mariadb_snapshot(&a->link, &answer, &error), 0);
	after = mallinfo2();
	assert_int_equal(answer.sent, MARIADB_SESSIONS_MAX);
	assert_int_equal(answer.left_out, 100000 - MARIADB_SESSIONS_MAX);
	/* Nothing to see with a sanitizer, whose allocator does not count here. */
	assert_true(after.arena + after.hblkhd < before.arena + before.hblkhd + (8UL << 20));
	shutdown(a->fds[0], SHUT_RDWR);
	assert_int_equal(waitpid(reader, NULL, 0), reader);
}

/* Then only the beginnings are asked for, as the server cuts them. */
static void test_long_statements(void **state)
{
	struct worker *a = *state;
	struct sql_frame_session session;
	char said[SQL_ERROR_SIZE];

	a->setup.text_mode = SQL_TEXT_REDACTED;
	text_length = 65UL << 20;
	assert_int_equal(snapshot_fails(a, said), -ENOTCONN);
	assert_string_equal(said, "the statements that run have more than 64 MiB");
	assert_string_equal(list_query, "SHOW FULL PROCESSLIST");
	text_length = 0;
	memset(text, 'x', 100);
	memcpy(text, HEAD, strlen(HEAD));
	text[100] = '\0';
	session = ask(a, 3, 100, 3700000);
	assert_string_equal(list_query, "SHOW PROCESSLIST");
	assert_string_equal(session.text, "INSERT INTO t VALUES (?");
	a->link.short_until_ns = 1;
	session = ask(a, 3, 100, 3700000);
	assert_string_equal(list_query, "SHOW FULL PROCESSLIST");
}

/* The library refuses a row that is too long, and the session is of no use any more. */
static void test_long_statement(void **state)
{
	struct worker *a = *state;
	char said[SQL_ERROR_SIZE];

	row_error = CR_SERVER_LOST;
	assert_int_equal(snapshot_fails(a, said), -ENOTCONN);
	row_error = 0;
	assert_true(a->link.short_until_ns > clock_mono_ns());
	ask(a, 3, 100, 3700000);
	assert_string_equal(list_query, "SHOW PROCESSLIST");
}

static unsigned int read_timeout_s;
static unsigned int want_timeout_s;

static MYSQL *init(MYSQL *mysql)
{
	static char session;

	(void)mysql;
	read_timeout_s = 4711;
	return (MYSQL *)&session;
}

static int set_option(MYSQL *mysql, enum mysql_option option, ...)
{
	va_list args;

	(void)mysql;
	va_start(args, option);
	if (option == MYSQL_OPT_READ_TIMEOUT)
		read_timeout_s = *va_arg(args, const unsigned int *);
	va_end(args);
	return 0;
}

/* What is set later the library does not look at. */
static MYSQL *refuse(MYSQL *mysql, const char *host, const char *user, const char *password,
	const char *db, unsigned int port, const char *socket, unsigned long flags)
{
	(void)mysql, (void)host, (void)user, (void)password, (void)db, (void)port, (void)socket,
		(void)flags;
	assert_int_equal(read_timeout_s, want_timeout_s);
	next_error = CR_CONNECTION_ERROR;
	return NULL;
}

static void close_session(MYSQL *mysql)
{
	(void)mysql;
}

static void log_in(struct worker *a, const char *host, unsigned int timeout_s)
{
	struct sql_frame_server described = { 0 };
	char error_buf[SQL_ERROR_SIZE], missing_buf[SQL_ERROR_SIZE];
	struct text error = TEXT_ON(error_buf), missing = TEXT_ON(missing_buf);

	text_reset(&error);
	text_reset(&missing);
	a->link.lib.mysql_init = init;
	a->link.lib.mysql_optionsv = set_option;
	a->link.lib.mysql_real_connect = refuse;
	a->link.lib.mysql_close = close_session;
	text_copy(a->setup.host, sizeof(a->setup.host), host);
	want_timeout_s = timeout_s;
	assert_int_equal(sql_driver_mariadb.connect(&a->link, NULL, &described, &error, &missing),
		-ECONNREFUSED);
}

/* A local server that stops in the middle of an answer still has the session. */
static void test_read_timeout_is_set_before_login(void **state)
{
	log_in(*state, "", 0);
	log_in(*state, "db.example", SQL_NETWORK_TIMEOUT_S);
}

int main(void)
{
#define WITH_ASKER(test) cmocka_unit_test_setup_teardown(test, setup_asker, teardown_asker)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_cut, forget),
		cmocka_unit_test_setup(test_whole, forget),
		WITH_ASKER(test_thread_list_has_exact_times),
		WITH_ASKER(test_next_statement_gets_no_old_time),
		WITH_ASKER(test_kept_threads_of_an_earlier_statement),
		WITH_ASKER(test_connections),
		WITH_ASKER(test_connections_of_users),
		WITH_ASKER(test_kept_threads_of_the_same_statement),
		WITH_ASKER(test_a_glance_is_cheap),
		WITH_ASKER(test_late_error_is_ignored),
		WITH_ASKER(test_lost_session_is_reported),
		WITH_ASKER(test_absurd_numbers_cost_themselves),
		WITH_ASKER(test_missing_columns),
		WITH_ASKER(test_threads_that_hang),
		WITH_ASKER(test_locks_that_are_late),
		WITH_ASKER(test_replication),
		WITH_ASKER(test_many_sleepers),
		WITH_ASKER(test_many_sessions),
		WITH_ASKER(test_long_statements),
		WITH_ASKER(test_long_statement),
		WITH_ASKER(test_read_timeout_is_set_before_login),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
