/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the sessions of a MariaDB or MySQL server do, and on which threads they run.
 * Called by mariadb.c for each question of the daemon.
 * Never logs in: the session is there already.
 */
#ifndef IOSTALL_SQL_MARIADB_SESSIONS_H
#define IOSTALL_SQL_MARIADB_SESSIONS_H

#include "sql/helper/mariadb_link.h"

/* Sends all active sessions. Errors are those of mariadb_ask(), or -ENOMEM. */
int mariadb_snapshot(struct sql_link *link, struct sql_answer *answer, struct text *error);

/* Forgets the threads of the server; they are asked for again at the next snapshot. */
void mariadb_forget_threads(struct sql_link *link);

#endif
