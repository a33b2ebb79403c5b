/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The session with a PostgreSQL server, and questions with a time limit.
 * Used by postgres.c, which logs in, postgres_sessions.c, which lists sessions, and
 * postgres_names.c, which names files.
 * Never asks while an earlier question has no answer, never closes a session that may still answer,
 * except during the login, and never holds more of an answer than one row.
 */
#ifndef IOSTALL_SQL_POSTGRES_LINK_H
#define IOSTALL_SQL_POSTGRES_LINK_H

#include <libpq-fe.h>

#include "sql/helper/driver.h"

#define POSTGRES_FUNCTIONS(F)                                                                      \
	F(PQlibVersion)                                                                            \
	F(PQconnectStartParams)                                                                    \
	F(PQconnectPoll)                                                                           \
	F(PQstatus)                                                                                \
	F(PQerrorMessage)                                                                          \
	F(PQconnectionNeedsPassword)                                                               \
	F(PQsetErrorVerbosity)                                                                     \
	F(PQresultErrorField)                                                                      \
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

/* Databases whose files are named: those that read most. */
#define POSTGRES_DATABASES_MAX 32

/* The databases are visited one after the other. */
struct postgres_names {
	uint64_t begin_ns; /* of this round; 0: there was none */
	uint64_t cost_ns;  /* how long its visits took */
	unsigned int count;
	unsigned int next;
	char databases[POSTGRES_DATABASES_MAX][SQL_NAME_SIZE];
};

/* Its data directory, and its tablespaces. */
#define POSTGRES_PLACES_MAX 8

struct postgres_place {
	char path[SQL_PATH_SIZE]; /* as the server tells it; "": free */
	char resolved[SQL_PATH_SIZE];
};

struct sql_link {
	const struct sql_frame_setup *setup;
	struct postgres_functions lib;
	PGconn *pg; /* NULL: no session */
	/* Who may listen at the socket, as found out before the login; "": on the network. */
	char server_user[SQL_NAME_SIZE];
	const int *stop_fd;	   /* when it can be read, waiting ends; NULL: none */
	uint64_t pending_since_ns; /* when the question without an answer was asked; 0: none */
	uint64_t describe_until_ns;
	struct postgres_names names;
	struct postgres_place places[POSTGRES_PLACES_MAX];
	uint64_t bare_ns;	 /* the last time for which texts were not asked for */
	uint64_t bare_until_ns;	 /* until then no texts are asked for: one was in no encoding */
	uint64_t locks_after_ns; /* until then no locks are asked for, since it takes long */
	uint64_t locks_since_ns; /* when they were asked for, if the answer is late; else 0 */
};

/* Takes one row of an answer. */
typedef void (*postgres_row_fn)(struct sql_link *link, PGresult *row, void *userdata);

/* What an answer is for; all are optional. */
struct postgres_taker {
	postgres_row_fn take; /* gets each row as it comes, so that no more than one is in memory */
	void *userdata;
	PGresult **ret_result; /* gets the last result, which with `take` has no rows */
};

/* A service file may name a host, too. */
bool postgres_is_network(const struct sql_frame_setup *setup);
/* libpq 16 and later can be told which methods of a login to refuse. */
bool postgres_has_require_auth(const struct sql_link *link);
/*
 * libpq needs "/run/postgresql/.s.PGSQL.5433" as directory and port. A directory alone is fine,
 * too.
 */
void postgres_split_socket(const char *socket, char *dir, size_t dir_size, char *port,
	size_t port_size);

/*
 * Opens link->pg, which has to be closed also after an error: the session of the setup, or one with
 * that database, within timeout_ns for each address of a host. -ETIMEDOUT, -ENOMEM, -ECANCELED as
 * postgres_wait(), or -ECONNREFUSED, of which PQerrorMessage() tells more.
 */
int postgres_open(struct sql_link *link, const char *password, const char *database,
	uint64_t timeout_ns);

/*
 * The SQLSTATE in a message about a login, which begins there: the words are those of the server's
 * language. "": it is none of the server.
 */
const char *postgres_state(const char *message);

/* The library would print them. */
void postgres_ignore_notices(struct sql_link *link);

/* Until libpq can go on. -ETIMEDOUT, or -ECANCELED when link->stop_fd can be read. */
int postgres_wait(struct sql_link *link, short events, uint64_t deadline_ns);

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
/* The same for a statement that is not prepared. */
int postgres_ask_rows(struct sql_link *link, const char *query, uint64_t deadline_ns,
	const struct postgres_taker *taker, struct text *error);
/* Reads an answer that came too late. It is of no use any more, and neither is an error in it. */
int postgres_finish_last(struct sql_link *link, uint64_t deadline_ns, struct text *error);

/* NULL: it is NULL, or there is no such cell. */
const char *postgres_cell(struct sql_link *link, PGresult *result, int row, int column);

/* Of a cell with a boolean; false for NULL. */
bool postgres_is_true(const char *cell);

/*
 * Messages of libpq have several lines, some with a tab in front; this joins them to one, without
 * the SQLSTATE and the place in the server's code.
 */
void postgres_add_message(struct text *error, const char *message);

#endif
