/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The session with a PostgreSQL server, and questions with a time limit.
 * Used by postgres.c, which logs in, and postgres_sessions.c, which lists sessions.
 * Never asks while an earlier question has no answer, never closes a session that may still answer,
 * except during the login, and never holds more of an answer than one row.
 */
#ifndef IOSTALL_SQL_POSTGRES_LINK_H
#define IOSTALL_SQL_POSTGRES_LINK_H

#include <libpq-fe.h>

#include "sql/helper/driver.h"

#define POSTGRES_FUNCTIONS(F)                                                                      \
	F(PQlibVersion)                                                                            \
	F(PQconnectdbParams)                                                                       \
	F(PQstatus)                                                                                \
	F(PQerrorMessage)                                                                          \
	F(PQconnectionNeedsPassword)                                                               \
	F(PQsetNoticeProcessor)                                                                    \
	F(PQsendQuery)                                                                             \
	F(PQsendPrepare)                                                                           \
	F(PQsendQueryPrepared)                                                                     \
	F(PQconsumeInput)                                                                          \
	F(PQisBusy)                                                                                \
	F(PQgetResult)                                                                             \
	F(PQresultStatus)                                                                          \
	F(PQntuples)                                                                               \
	F(PQnfields)                                                                               \
	F(PQsetSingleRowMode)                                                                      \
	F(PQgetvalue)                                                                              \
	F(PQgetisnull)                                                                             \
	F(PQclear)                                                                                 \
	F(PQsocket)                                                                                \
	F(PQparameterStatus)                                                                       \
	F(PQfinish)

struct postgres_functions {
#define F(name) __typeof__(name) *name;
	POSTGRES_FUNCTIONS(F)
#undef F
};

struct sql_link {
	const struct sql_frame_setup *setup;
	struct postgres_functions lib;
	PGconn *pg;		   /* NULL: no session */
	uint64_t pending_since_ns; /* when the question without an answer was asked; 0: none */
	uint64_t describe_until_ns;
	uint64_t locks_after_ns; /* until then no locks are asked for, since it takes long */
};

/* Takes one row of an answer. */
typedef void (*postgres_row_fn)(struct sql_link *link, PGresult *row, void *userdata);

/* What an answer is for; all are optional. */
struct postgres_taker {
	postgres_row_fn take; /* gets each row as it comes, so that no more than one is in memory */
	void *userdata;
	PGresult **ret_result; /* gets the last result, which with `take` has no rows */
};

/*
 * Asks a new session, which has until describe_until_ns for all its questions. -ENOTCONN: the
 * session is lost. -ETIMEDOUT: there is no answer yet, and nothing else can be asked before it has
 * come. After other errors the session still exists.
 */
int postgres_ask(struct sql_link *link, const char *query, PGresult **ret_result,
	struct text *error);
/* The same for a statement that is to be prepared. */
int postgres_prepare(struct sql_link *link, const char *name, const char *query,
	struct text *error);
/* Asks with a prepared statement; no answer may be pending. Errors are those of postgres_ask(). */
int postgres_ask_prepared(struct sql_link *link, const char *name, uint64_t deadline_ns,
	const struct postgres_taker *taker, struct text *error);
/* Reads an answer that came too late. It is of no use any more, and neither is an error in it. */
int postgres_finish_last(struct sql_link *link, uint64_t deadline_ns, struct text *error);

/* NULL: it is NULL, or there is no such cell. */
const char *postgres_cell(struct sql_link *link, PGresult *result, int row, int column);

/* Messages of libpq have several lines, some with a tab in front; this joins them to one. */
void postgres_add_message(struct text *error, const char *message);

#endif
