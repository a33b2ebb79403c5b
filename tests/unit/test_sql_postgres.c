/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Lists of sessions of PostgreSQL, with a client library that a test speaks for. */
#include <errno.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test_sql_client.h"
#include "record/enums.h"
#include "util/cleanup.h"

/* The server: of the list of sessions, each row is the same. */
static const char *const row[] = { "7", "300000", "300007", "97", "shop", "80", "75", "2225", "app",
	NULL, "shop", "active", "IO: Read", "client backend", NULL, "-5", "3000000000", "8",
	"SELECT 1", "f", "f", "5000000000", "3" };
static const char *cells[ARRAY_SIZE(row)];
enum { OF_USER = 5, PID = 7, STATE = 11, WAIT = 12, LEADER = 14, ELAPSED = 16, SERVED = 22 };
/* The same of the list of those who wait for a lock: who, for whom, and how long in ns. */
static const char *lock_cells[10];

static char session, result;
static bool is_list, is_locks, is_done;
static int columns;
static unsigned int rows, rows_left;
static unsigned int results_held, results_most;
static int fds[2];

static PGconn *pg_connect(const char *const *keys, const char *const *values, int expand)
{
	(void)keys, (void)values, (void)expand;
	return (PGconn *)(void *)&session;
}

static PostgresPollingStatusType pg_poll(PGconn *pg)
{
	(void)pg;
	return PGRES_POLLING_OK;
}

static PGVerbosity pg_set_verbosity(PGconn *pg, PGVerbosity verbosity)
{
	(void)pg;
	return verbosity;
}

static ConnStatusType pg_status(const PGconn *pg)
{
	(void)pg;
	return CONNECTION_OK;
}

static char *pg_error(const PGconn *pg)
{
	static char none[1];

	(void)pg;
	return none;
}

static PQnoticeProcessor pg_set_notice(PGconn *pg, PQnoticeProcessor processor, void *userdata)
{
	(void)pg, (void)userdata;
	return processor;
}

/* Texts of other encodings: the question for them fails, in front of its first row. */
static bool texts_fail, is_refused;
static char asked[64]; /* the statement */

static char *pg_error_field(const PGresult *r, int field)
{
	static char state[] = "22021";

	(void)r, (void)field;
	return state;
}

static int ask_with(bool list)
{
	is_refused = false;
	is_list = list;
	is_locks = false;
	is_done = false;
	rows_left = list ? rows : 0;
	return 1;
}

static int pg_send_query(PGconn *pg, const char *query)
{
	(void)pg, (void)query;
	return ask_with(false);
}

static int pg_prepare(PGconn *pg, const char *name, const char *query, int count, const Oid *types)
{
	(void)pg, (void)name, (void)query, (void)count, (void)types;
	return ask_with(false);
}

static int pg_send_prepared(PGconn *pg, const char *name, int count, const char *const *values,
	const int *sizes, const int *formats, int format)
{
	(void)pg, (void)count, (void)values, (void)sizes, (void)formats, (void)format;
	ask_with(true);
	is_locks = strcmp(name, "iostall_locks") == 0;
	snprintf(asked, sizeof(asked), "%s", name);
	is_refused = texts_fail && strcmp(name, "iostall_sessions") == 0;
	if (is_refused)
		rows_left = 0;
	return 1;
}

static int pg_single_rows(PGconn *pg)
{
	(void)pg;
	return 1;
}

static int pg_consume(PGconn *pg)
{
	(void)pg;
	return 1;
}

static int pg_is_busy(PGconn *pg)
{
	(void)pg;
	return 0;
}

static PGresult *pg_result(PGconn *pg)
{
	(void)pg;
	if (is_done)
		return NULL;
	is_done = rows_left == 0;
	if (++results_held > results_most)
		results_most = results_held;
	return (PGresult *)(void *)&result;
}

static ExecStatusType pg_result_status(const PGresult *r)
{
	(void)r;
	if (is_refused)
		return PGRES_FATAL_ERROR;
	if (rows_left == 0)
		return PGRES_TUPLES_OK;
	rows_left--;
	return PGRES_SINGLE_TUPLE;
}

static int pg_tuples(const PGresult *r)
{
	(void)r;
	return is_list ? 1 : 0;
}

static int pg_fields(const PGresult *r)
{
	(void)r;
	return is_locks ? (int)ARRAY_SIZE(lock_cells) : columns;
}

static const char *cell(int column)
{
	return is_locks ? lock_cells[column] : cells[column];
}

static int pg_is_null(const PGresult *r, int at, int column)
{
	(void)r, (void)at;
	return cell(column) == NULL;
}

static char *pg_value(const PGresult *r, int at, int column)
{
	(void)r, (void)at;
	return (char *)cell(column);
}

static void pg_clear(PGresult *r)
{
	results_held -= r != NULL;
}

static int pg_socket(const PGconn *pg)
{
	(void)pg;
	return fds[0];
}

static const char *version = "15.0";

static const char *pg_parameter(const PGconn *pg, const char *name)
{
	(void)pg, (void)name;
	return version;
}

static void pg_finish(PGconn *pg)
{
	(void)pg;
}

static const struct client_fake fakes[] = {
	CLIENT_FAKE("PQconnectStartParams", pg_connect),
	CLIENT_FAKE("PQconnectPoll", pg_poll),
	CLIENT_FAKE("PQsetErrorVerbosity", pg_set_verbosity),
	CLIENT_FAKE("PQresultErrorField", pg_error_field),
	CLIENT_FAKE("PQstatus", pg_status),
	CLIENT_FAKE("PQerrorMessage", pg_error),
	CLIENT_FAKE("PQsetNoticeProcessor", pg_set_notice),
	CLIENT_FAKE("PQsendQuery", pg_send_query),
	CLIENT_FAKE("PQsendPrepare", pg_prepare),
	CLIENT_FAKE("PQsendQueryPrepared", pg_send_prepared),
	CLIENT_FAKE("PQsetSingleRowMode", pg_single_rows),
	CLIENT_FAKE("PQconsumeInput", pg_consume),
	CLIENT_FAKE("PQisBusy", pg_is_busy),
	CLIENT_FAKE("PQgetResult", pg_result),
	CLIENT_FAKE("PQresultStatus", pg_result_status),
	CLIENT_FAKE("PQntuples", pg_tuples),
	CLIENT_FAKE("PQnfields", pg_fields),
	CLIENT_FAKE("PQgetisnull", pg_is_null),
	CLIENT_FAKE("PQgetvalue", pg_value),
	CLIENT_FAKE("PQclear", pg_clear),
	CLIENT_FAKE("PQsocket", pg_socket),
	CLIENT_FAKE("PQparameterStatus", pg_parameter),
	CLIENT_FAKE("PQfinish", pg_finish),
	{ NULL, NULL },
};

struct asker {
	struct sql_frame_setup setup;
	struct sql_link *link;
	struct sql_answer answer;
	char error[SQL_ERROR_SIZE];
	int daemon_fds[2];
};

static int setup(void **state)
{
	struct asker *a = test_calloc(1, sizeof(*a));
	struct text error = TEXT_ON(a->error), missing = TEXT_ON(a->error);
	struct sql_frame_server server = { 0 };

	memcpy(cells, row, sizeof(cells));
	columns = ARRAY_SIZE(row);
	rows = 1;
	a->setup.text_mode = SQL_TEXT_FULL;
	a->setup.text_bytes = 1024;
	a->link = client_link(&sql_driver_postgresql, fakes, &a->setup);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, a->daemon_fds), 0);
	a->answer = (struct sql_answer){ .fd = a->daemon_fds[0],
		.setup = &a->setup,
		.dialect = SQL_DIALECT_POSTGRESQL };
	assert_int_equal(sql_driver_postgresql.connect(a->link, NULL, &server, &error, &missing),
		0);
	*state = a;
	return 0;
}

static int teardown(void **state)
{
	struct asker *a = *state;

	sql_driver_postgresql.disconnect(a->link);
	for (unsigned int i = 0; i < 2; i++) {
		close(fds[i]);
		close(a->daemon_fds[i]);
	}
	assert_int_equal(results_held, 0);
	test_free(a->link);
	test_free(a);
	return 0;
}

static int snapshot(struct asker *a)
{
	struct text error = TEXT_ON(a->error);

	text_reset(&error);
	return sql_driver_postgresql.snapshot(a->link, &a->answer, &error);
}

static void receive(struct asker *a, struct sql_frame_session *ret_session)
{
	memset(ret_session, 0, sizeof(*ret_session));
	assert_true(recv(a->daemon_fds[1], ret_session, sizeof(*ret_session), 0) > 0);
}

static void test_row(void **state)
{
	struct asker *a = *state;
	struct sql_frame_session s;

	assert_int_equal(snapshot(a), 0);
	receive(a, &s);
	assert_int_equal(s.tid, 2225);
	assert_int_equal(s.elapsed_ns, 3000000000);
	assert_int_equal((int64_t)s.query_id, -5);
	assert_string_equal(s.text, "SELECT 1");
	assert_int_equal(s.worker, 0);
	assert_int_equal(s.served, 3);
	assert_int_equal(a->answer.invalid, 0);
	assert_int_equal(a->answer.idle, 7);
	assert_int_equal(a->answer.left_out, 300000 - 1);
	assert_int_equal(a->answer.connections.used, 300007);
	assert_int_equal(a->answer.connections.allowed, 97);
	assert_string_equal(a->answer.connections.user, "shop");
	assert_int_equal(a->answer.connections.of_user, 80);
	assert_int_equal(a->answer.connections.of_user_idle, 75);
}

/* Each number that cannot be true is dropped and counted; the session stays. */
static void test_absurd_numbers_cost_themselves(void **state)
{
	struct asker *a = *state;
	struct sql_frame_session s;

	cells[PID] = "99999999999";
	cells[LEADER] = "-1";
	cells[ELAPSED] = "9223372036854775807";
	cells[SERVED] = "4294967296";
	cells[OF_USER] = "-1";
	assert_int_equal(snapshot(a), 0);
	receive(a, &s);
	assert_int_equal(s.tid, 0);
	assert_int_equal(s.leader_pid, 0);
	assert_int_equal(s.worker, 1);
	assert_int_equal(s.served, 0);
	assert_int_equal(s.elapsed_ns, 0);
	assert_int_equal(a->answer.invalid, 5);
	/* A clock that was set back is not absurd. */
	memcpy(cells, row, sizeof(cells));
	cells[ELAPSED] = "-5000000";
	assert_int_equal(snapshot(a), 0);
	receive(a, &s);
	assert_int_equal(s.elapsed_ns, 0);
	assert_int_equal(a->answer.invalid, 5);
}

/* Nothing is missing but the texts, and they are asked for again a minute later. */
static void test_texts_of_no_encoding(void **state)
{
	struct asker *a = *state;
	struct sql_frame_session s;

	texts_fail = true;
	assert_int_equal(snapshot(a), 0);
	texts_fail = false;
	receive(a, &s);
	assert_int_equal(s.tid, 2225);
	assert_string_equal(a->error, "");
	assert_string_equal(asked, "iostall_sessions_bare");
	assert_int_equal(snapshot(a), 0);
	receive(a, &s);
	assert_string_equal(asked, "iostall_sessions_bare");
}

static void test_idle_transactions_do_not_run(void **state)
{
	struct asker *a = *state;
	struct sql_frame_session s;

	cells[STATE] = "idle in transaction";
	assert_int_equal(snapshot(a), 0);
	receive(a, &s);
	assert_int_equal(s.idle, 1);
	assert_int_equal(a->answer.left_out, 300000);
}

static void test_other_columns(void **state)
{
	struct asker *a = *state;

	columns = 3;
	assert_int_equal(snapshot(a), 0);
	assert_int_equal(a->answer.sent, 0);
	assert_int_equal(a->answer.invalid, 1);
}

static void receive_lock(struct asker *a, struct sql_frame_lock *ret_lock)
{
	struct sql_frame_session s;

	assert_int_equal(snapshot(a), 0);
	receive(a, &s);
	assert_true(recv(a->daemon_fds[1], ret_lock, sizeof(*ret_lock), 0) == sizeof(*ret_lock));
	assert_int_equal(ret_lock->connection_id, 2225);
	assert_int_equal(ret_lock->lock, RECORD_LOCK_row);
}

static void test_an_old_server(void **state)
{
	struct asker *a = *state;
	struct sql_frame_server server = { 0 };
	char said[SQL_ERROR_SIZE];
	struct text error = TEXT_ON(said), missing = TEXT_ON(a->error);

	sql_driver_postgresql.disconnect(a->link);
	text_reset(&error);
	version = "11.22 (Debian 11.22-1)";
	assert_int_equal(sql_driver_postgresql.connect(a->link, NULL, &server, &error, &missing),
		-EOPNOTSUPP);
	version = "15.0";
	assert_string_equal(said,
		"this is PostgreSQL 11.22 (Debian 11.22-1); expected 12 or later");
}

static void test_who_blocks(void **state)
{
	struct asker *a = *state;
	struct sql_frame_lock lock;

	cells[WAIT] = "Lock: transactionid";
	lock_cells[0] = "2225", lock_cells[1] = "4711", lock_cells[2] = "2000000000";
	receive_lock(a, &lock);
	assert_int_equal(lock.blocker_id, 4711);
	assert_false(lock.has_no_session);
	assert_int_equal(lock.waited_ns, 2000000000);
}

/* It holds a lock of its session, and is idle, or there was no room for it. */
static void test_a_blocker_that_is_not_listed(void **state)
{
	struct asker *a = *state;
	struct sql_frame_session s;
	struct sql_frame_lock lock;

	cells[WAIT] = "Lock: advisory";
	lock_cells[0] = "2225", lock_cells[1] = "4711", lock_cells[2] = "2000000000";
	lock_cells[3] = "app", lock_cells[4] = NULL, lock_cells[5] = "shop";
	lock_cells[6] = "idle", lock_cells[7] = "9000000000", lock_cells[8] = NULL;
	lock_cells[9] = "f";
	assert_int_equal(snapshot(a), 0);
	receive(a, &s);
	receive(a, &s);
	assert_int_equal(s.connection_id, 4711);
	assert_true(s.idle);
	assert_int_equal(s.elapsed_ns, 9000000000);
	assert_int_equal(s.transaction_ns, 0);
	assert_string_equal(s.user, "app@localhost");
	assert_true(recv(a->daemon_fds[1], &lock, sizeof(lock), 0) == sizeof(lock));
	assert_int_equal(lock.lock, RECORD_LOCK_advisory);
	assert_int_equal(lock.blocker_id, 4711);
	/* One that waits itself is not the end. */
	lock_cells[9] = "t";
	a->answer.sent = a->answer.locks = 0;
	assert_int_equal(snapshot(a), 0);
	assert_int_equal(a->answer.sent, 1);
	memset(lock_cells, 0, sizeof(lock_cells));
}

/* A prepared transaction has no process. */
static void test_a_prepared_transaction(void **state)
{
	struct asker *a = *state;
	struct sql_frame_lock lock;

	cells[WAIT] = "Lock: transactionid";
	lock_cells[0] = "2225", lock_cells[1] = "0", lock_cells[2] = "2000000000";
	receive_lock(a, &lock);
	assert_int_equal(lock.blocker_id, 0);
	assert_true(lock.has_no_session);
}

/* Who blocks another session has nothing to do with this one. */
static void test_who_blocks_somebody_else(void **state)
{
	struct asker *a = *state;
	struct sql_frame_lock lock;

	cells[WAIT] = "Lock: transactionid";
	lock_cells[0] = "2226", lock_cells[1] = "4711", lock_cells[2] = "2000000000";
	receive_lock(a, &lock);
	assert_int_equal(lock.blocker_id, 0);
	assert_int_equal(lock.waited_ns, 0);
}

/* The blocker has ended meanwhile. */
static void test_nobody_blocks(void **state)
{
	struct asker *a = *state;
	struct sql_frame_lock lock;

	cells[WAIT] = "Lock: transactionid";
	lock_cells[0] = "2225", lock_cells[1] = NULL, lock_cells[2] = "2000000000";
	receive_lock(a, &lock);
	assert_int_equal(lock.blocker_id, 0);
	assert_int_equal(lock.waited_ns, 2000000000);
}

static void test_an_absurd_blocker(void **state)
{
	struct asker *a = *state;
	struct sql_frame_lock lock;

	cells[WAIT] = "Lock: transactionid";
	lock_cells[0] = "2225", lock_cells[1] = "99999999999", lock_cells[2] = "2000000000";
	receive_lock(a, &lock);
	assert_int_equal(lock.blocker_id, 0);
	assert_int_equal(a->answer.invalid, 1);
}

/* It is given up where an honest server ends, and at no time more than two rows are in memory. */
static void test_server_that_never_ends(void **state)
{
	struct asker *a = *state;
	pid_t reader = fork();
	char byte;

	assert_true(reader >= 0);
	if (reader == 0) {
		close(a->daemon_fds[0]);
		while (recv(a->daemon_fds[1], &byte, 1, 0) > 0)
			;
		_exit(0);
	}
	rows = 1000000000;
	results_most = 0;
	assert_int_equal(snapshot(a), -ENOTCONN);
	assert_string_equal(a->error, "the server sent more than 1024 rows");
	assert_int_equal(a->answer.sent, SQL_SESSIONS_MAX);
	assert_true(results_most <= 2);
	shutdown(a->daemon_fds[0], SHUT_RDWR);
	assert_int_equal(waitpid(reader, NULL, 0), reader);
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH(test_row),
		WITH(test_absurd_numbers_cost_themselves),
		WITH(test_texts_of_no_encoding),
		WITH(test_idle_transactions_do_not_run),
		WITH(test_other_columns),
		WITH(test_an_old_server),
		WITH(test_who_blocks),
		WITH(test_a_blocker_that_is_not_listed),
		WITH(test_a_prepared_transaction),
		WITH(test_who_blocks_somebody_else),
		WITH(test_nobody_blocks),
		WITH(test_an_absurd_blocker),
		WITH(test_server_that_never_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
