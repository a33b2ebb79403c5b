/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists of sessions of a client library that a test speaks for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "sql/mariadb.h"
#include "util/cleanup.h"

/* What performance_schema keeps of a statement, when it ends in the middle of a character. */
#define KEPT_BYTES 1021
#define HEAD "INSERT INTO t VALUES ('it\\'s sEcReT "

/* The server: one session. */
static char text[2048];
static char *cells[] = { (char[]){ "17" }, (char[]){ "app" }, (char[]){ "h" }, NULL,
	(char[]){ "Query" }, (char[]){ "3" }, (char[]){ "" }, text, (char[]){ "0" } };
static unsigned long lengths[ARRAY_SIZE(cells)];
static unsigned int rows_left;
static int answers[2];

static my_socket get_socket(MYSQL *mysql)
{
	(void)mysql;
	return answers[1];
}

static int send_query(MYSQL *mysql, const char *query, unsigned long len)
{
	(void)mysql;
	(void)query;
	(void)len;
	rows_left = 1;
	return 0;
}

static my_bool read_query_result(MYSQL *mysql)
{
	(void)mysql;
	return 0;
}

static MYSQL_RES *store_result(MYSQL *mysql)
{
	(void)mysql;
	return (MYSQL_RES *)cells;
}

static void free_result(MYSQL_RES *result)
{
	(void)result;
}

static my_ulonglong num_rows(MYSQL_RES *result)
{
	(void)result;
	return rows_left;
}

static MYSQL_ROW fetch_row(MYSQL_RES *result)
{
	(void)result;
	return rows_left-- ? cells : NULL;
}

static unsigned long *fetch_lengths(MYSQL_RES *result)
{
	(void)result;
	lengths[7] = strlen(text);
	return lengths;
}

static unsigned long thread_id(MYSQL *mysql)
{
	(void)mysql;
	return 1;
}

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
	link.lib = (struct mariadb_functions){ .mysql_get_socket = get_socket,
		.mysql_send_query = send_query,
		.mysql_read_query_result = read_query_result,
		.mysql_store_result = store_result,
		.mysql_free_result = free_result,
		.mysql_num_rows = num_rows,
		.mysql_fetch_row = fetch_row,
		.mysql_fetch_lengths = fetch_lengths,
		.mysql_thread_id = thread_id };
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
