/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The session with a MariaDB or MySQL server, and questions with a limit of time.
 * Shared by mariadb.c, which logs in, and mariadb_sessions.c, which lists sessions.
 * Never asks while an earlier question has no answer, and never closes a session that may still
 * answer, unless it does not get as far as to describe its server.
 */
#ifndef IOSTALL_SQL_MARIADB_H
#define IOSTALL_SQL_MARIADB_H

#include <mysql.h>
#include <stdbool.h>

#include "sql/driver.h"

#define MARIADB_FUNCTIONS(F)                                                                       \
	F(mysql_init)                                                                              \
	F(mysql_optionsv)                                                                          \
	F(mysql_real_connect)                                                                      \
	F(mysql_send_query)                                                                        \
	F(mysql_read_query_result)                                                                 \
	F(mysql_store_result)                                                                      \
	F(mysql_free_result)                                                                       \
	F(mysql_fetch_row)                                                                         \
	F(mysql_fetch_field_direct)                                                                \
	F(mysql_fetch_lengths)                                                                     \
	F(mysql_num_fields)                                                                        \
	F(mysql_num_rows)                                                                          \
	F(mysql_thread_id)                                                                         \
	F(mysql_get_server_info)                                                                   \
	F(mysql_get_socket)                                                                        \
	F(mysql_errno)                                                                             \
	F(mysql_error)                                                                             \
	F(mysql_close)

struct mariadb_functions {
#define F(name) __typeof__(name) *name;
	MARIADB_FUNCTIONS(F)
#undef F
};

/* What is known of a connection and its statement beside the list of sessions. */
struct mariadb_thread {
	uint64_t connection_id;
	uint64_t query_id;
	uint64_t started_ns; /* of the statement, CLOCK_MONOTONIC */
	int32_t tid;
};

struct sql_link {
	const struct sql_frame_setup *setup;
	struct mariadb_functions lib;
	MYSQL *mysql; /* NULL: no session */
	bool thread_pool;
	bool by_threads;	 /* the list of sessions is performance_schema.threads */
	char threads_query[256]; /* "": the server has nothing more to say of threads */

	uint64_t pending_since_ns; /* of the question without an answer; 0: none */
	bool pending_threads;	   /* it is threads_query */

	struct mariadb_thread *threads; /* by connection_id */
	size_t threads_count;
	uint64_t threads_asked_ns;
	uint64_t asked_at_ns; /* the last snapshot */
};

/*
 * -ENOTCONN when the session is gone, -ETIMEDOUT when there is no answer yet: nothing else can be
 * asked until mariadb_finish() got it. ret_result may be NULL for a statement without a result.
 */
int mariadb_ask(struct sql_link *link, const char *query, int timeout_ms, MYSQL_RES **ret_result,
	struct text *error);

/* Waits for the answer that is pending, if one is; ret_result is NULL when it had no result. */
int mariadb_finish(
	struct sql_link *link, int timeout_ms, MYSQL_RES **ret_result, struct text *error);

int mariadb_snapshot(struct sql_link *link, struct sql_answer *answer, struct text *error);
/* What was known of the threads of a session's server. */
void mariadb_forget_threads(struct sql_link *link);

#endif
