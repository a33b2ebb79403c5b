/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The session with a MariaDB or MySQL server, and questions with a time limit.
 * Used by mariadb.c, which logs in, and mariadb_sessions.c, which lists sessions.
 * Never asks while an earlier question has no answer, never closes a session that may still answer,
 * except during the login and where only the threads are late, and never holds more of an answer
 * than one row.
 */
#ifndef IOSTALL_SQL_MARIADB_LINK_H
#define IOSTALL_SQL_MARIADB_LINK_H

#include <mysql.h>
#include <stdbool.h>

#include "sql/helper/driver.h"

#define MARIADB_FUNCTIONS(F)                                                                       \
	F(mysql_init)                                                                              \
	F(mysql_optionsv)                                                                          \
	F(mysql_real_connect)                                                                      \
	F(mysql_send_query)                                                                        \
	F(mysql_read_query_result)                                                                 \
	F(mysql_use_result)                                                                        \
	F(mysql_free_result)                                                                       \
	F(mysql_fetch_row)                                                                         \
	F(mysql_fetch_field_direct)                                                                \
	F(mysql_fetch_lengths)                                                                     \
	F(mysql_num_fields)                                                                        \
	F(mysql_thread_id)                                                                         \
	F(mysql_get_server_info)                                                                   \
	F(mysql_get_server_version)                                                                \
	F(mysql_get_socket)                                                                        \
	F(mysql_errno)                                                                             \
	F(mysql_error)                                                                             \
	F(mysql_close)

struct mariadb_functions {
#define F(name) __typeof__(name) *name;
	MARIADB_FUNCTIONS(F)
#undef F
};

/* What threads_query tells about a connection and its statement. */
struct mariadb_thread {
	uint64_t connection_id;
	uint64_t query_id;
	uint64_t started_ns; /* of the statement, CLOCK_MONOTONIC */
	int32_t tid;
};

struct mariadb_transaction;
struct mariadb_wait;

/* What the question without an answer asks for. */
enum mariadb_question {
	MARIADB_ASKS_SESSIONS, /* or anything else that a server answers from its memory */
	MARIADB_ASKS_THREADS,
	MARIADB_ASKS_TRANSACTIONS,
	MARIADB_ASKS_ROW_LOCKS,
	MARIADB_ASKS_METADATA_LOCKS,
};

/* Transactions that are remembered: those that wait, then the oldest ones. */
#define MARIADB_TRANSACTIONS_MAX 1024
/* Sessions that wait for another one; and of others, that these are. */
#define MARIADB_WAITS_MAX SQL_LOCKS_MAX

struct sql_link {
	const struct sql_frame_setup *setup;
	struct mariadb_functions lib;
	MYSQL *mysql;	       /* NULL: no session */
	unsigned long version; /* 80040: 8.0.40 */
	bool thread_pool;
	uint64_t connections_allowed; /* max_connections; 0: not known */
	uint64_t allowed_asked_ns;    /* 0: not in this session */
	bool by_threads;	      /* sessions are listed from performance_schema.threads */
	char threads_query[256];      /* "": the server has no other list of threads */

	uint64_t pending_since_ns; /* when the question without an answer was asked; 0: none */
	enum mariadb_question pending;

	struct mariadb_thread *threads; /* sorted by connection_id */
	size_t threads_count;
	uint64_t threads_asked_ns;
	uint64_t threads_after_ns; /* until then they are not asked for, since the answer hung */
	bool threads_stay;	   /* over the next login */
	const char *transactions_query; /* NULL: the server does not tell; for all three */
	const char *row_locks_query;
	const char *metadata_locks_query;
	struct mariadb_transaction *transactions; /* sorted by connection_id; NULL: none yet */
	size_t transactions_count;
	uint64_t transactions_asked_ns; /* 0: they are not those of the last question */
	struct mariadb_wait *waits;	/* who waits for whom, as last told; NULL: not yet */
	size_t waits_count;
	uint64_t waits_asked_ns;
	bool has_late_locks; /* some came after the answer for which they were asked for */
	/* The session that was last seen to lock the whole server, while it is there; 0: none. */
	uint64_t global_id;
	uint64_t global_waiter_id; /* one that waits to do so */
	unsigned int global_doubts;
	/* These locks are those of a backup, beside which others may write. */
	bool global_lets_write;
	bool waiter_lets_write;
	uint64_t locks_after_ns; /* until then no locks are asked for, since it takes long */
	uint64_t asked_at_ns;	 /* when the last whole snapshot was made */
	/* Until then only the beginnings of statements are asked for, since one was too long. */
	uint64_t short_until_ns;
};

/* After this time the next question asks for whole statements again. */
#define MARIADB_SHORT_NS (60 * NSEC_PER_SEC)
/* A longer row ends the session. MariaDB's own limit for a statement is 16 MiB by default. */
#define MARIADB_ROW_BYTES_MAX (16UL << 20)

/*
 * -ENOTCONN: the session is lost. -ETIMEDOUT: there is no answer yet; nothing else can be asked
 * until mariadb_finish() gets it. -EBADMSG: the answer has another number of columns than
 * `columns`, which is the least; it is freed. ret_result is NULL for a statement without a result.
 */
int mariadb_ask(struct sql_link *link, const char *query, unsigned int columns, int timeout_ms,
	MYSQL_RES **ret_result, struct text *error);

/* Whether an answer has as many columns as were asked for; if not, it is freed. */
bool mariadb_has_columns(struct sql_link *link, MYSQL_RES *result, unsigned int columns,
	struct text *error);

/*
 * The next row of an answer, or NULL behind the last one. *ret_r is then 0, or an error of
 * mariadb_ask() with `error`. An answer is read to its end before it is freed.
 */
MYSQL_ROW mariadb_next_row(struct sql_link *link, MYSQL_RES *result, int *ret_r,
	struct text *error);

/*
 * Frees an answer that is not wanted to its end, and breaks the session off, which can only be
 * closed afterwards.
 */
void mariadb_break_off(struct sql_link *link, MYSQL_RES *result);

/* Waits for the pending answer, if there is one; *ret_result is NULL when it has no result. */
int mariadb_finish(struct sql_link *link, int timeout_ms, MYSQL_RES **ret_result,
	struct text *error);

#endif
