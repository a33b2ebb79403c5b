/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the sessions of a PostgreSQL server do, and for whose locks they wait.
 * Called by postgres.c for each question of the daemon.
 * Never logs in: the session is there already.
 */
#ifndef IOSTALL_SQL_POSTGRES_SESSIONS_H
#define IOSTALL_SQL_POSTGRES_SESSIONS_H

#include "sql/helper/postgres_link.h"

/*
 * Prepares the questions in a new session, for the columns that the server has. Errors are those of
 * postgres_ask().
 */
int postgres_prepare_snapshot(struct sql_link *link, bool has_leader, bool has_query_id,
	bool has_wait_start, struct text *error);

/* Asks once, so that the backend has read its catalogs before an incident. */
int postgres_rehearse_snapshot(struct sql_link *link, struct text *error);

/* Sends all active sessions and what they wait for. Errors are those of postgres_ask(). */
int postgres_snapshot(struct sql_link *link, struct sql_answer *answer, struct text *error);

#endif
