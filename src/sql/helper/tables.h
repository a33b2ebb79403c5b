/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which tables a statement of MariaDB or MySQL names, as far as a look at its words can tell.
 * Used by mariadb_locks.c, which may name a session only if it is at the same table.
 * Never takes a doubt for a yes: a statement that is cut off or unusual names no table.
 */
#ifndef IOSTALL_SQL_TABLES_H
#define IOSTALL_SQL_TABLES_H

#include <stdbool.h>

/* A statement, and the database in which names without one are; "" is unknown, and may be any. */
struct tables_statement {
	const char *text; /* NULL: unknown */
	const char *database;
};

/* Whether the statement begins as ALTER TABLE does and others that need a table alone. */
bool tables_is_ddl(const char *text);

/* Whether it stops the whole server: FLUSH TABLES without names, FLUSH ... LOCK, BACKUP. */
bool tables_is_global(const char *text);
/* Whether the session then keeps a lock of the whole server: FLUSH ... LOCK, BACKUP. */
bool tables_keeps_global(const char *text);

/* Whether nobody can write while it does: FLUSH ... LOCK. BACKUP stops writes in its last stage. */
bool tables_stops_writes(const char *text);
/* Whether the statement writes rows, as INSERT and UPDATE do. */
bool tables_writes(const char *text);

/* Whether its tables stand elsewhere, as those of a procedure do. */
bool tables_are_hidden(const char *text);

/* Whether a statement of DDL and another statement, DDL or not, name the same table. */
bool tables_are_shared(const struct tables_statement *ddl, const struct tables_statement *other);

#endif
