/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the sessions of a PostgreSQL server do, and for whose locks they wait.
 * Called by postgres.c for each question of the daemon.
 * Never logs in: the session is there already.
 */
#ifndef IOSTALL_SQL_POSTGRES_SESSIONS_H
#define IOSTALL_SQL_POSTGRES_SESSIONS_H

#include "sql/helper/postgres_link.h"

/* What not every version has. */
struct postgres_columns {
	bool leader;	     /* pg_stat_activity.leader_pid */
	bool query_id;	     /* pg_stat_activity.query_id */
	bool wait_start;     /* pg_locks.waitstart */
	bool aios;	     /* the view pg_aios, and we may read it */
	uint64_t text_bytes; /* of a statement that the server keeps */
};

/* Prepares the questions in a new session. Errors are those of postgres_ask(). */
int postgres_prepare_snapshot(struct sql_link *link, const struct postgres_columns *has,
	struct text *error);

/* Asks once, so that the backend has read its catalogs before an incident. */
int postgres_rehearse_snapshot(struct sql_link *link, struct text *error);

/* Sends all active sessions and what they wait for. Errors are those of postgres_ask(). */
int postgres_snapshot(struct sql_link *link, struct sql_answer *answer, struct text *error);

#endif
