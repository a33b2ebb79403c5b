/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For which locks the sessions of a MariaDB or MySQL server wait, and whose these are.
 * Called by mariadb_sessions.c with its list of sessions; mariadb.c asks what the server can tell.
 * Never fails an answer: without what it asks for, only locks are missing in it.
 */
#ifndef IOSTALL_SQL_MARIADB_LOCKS_H
#define IOSTALL_SQL_MARIADB_LOCKS_H

#include "sql/helper/mariadb_list.h"

/* A transaction of InnoDB that is open. */
struct mariadb_transaction {
	uint64_t connection_id;
	uint64_t age_s;
	uint64_t waited_s;
	bool waits; /* for a row */
};

/* Who waits for whom, as the server told it. */
struct mariadb_wait {
	uint64_t connection_id;
	uint64_t blocker_id; /* 0: not known, or has_no_session */
	bool has_no_session;
	uint32_t doubt;
	uint32_t candidates; /* for the blocker; 0: it is sure */
	uint64_t last_id;    /* the last one of them */
	enum record_lock lock;
	char object[SQL_NAME_SIZE];
};

/* What a state of the server's own says; NONE: it is none that waits for a lock. */
enum record_lock mariadb_lock_of_state(const char *state);

/* Chooses among the questions that a new session can ask. */
void mariadb_choose_lock_queries(struct sql_link *link,
	bool (*can_ask)(struct sql_link *link, const char *query));

/* Whether others waited for it when the server told that last. */
bool mariadb_is_blocker(const struct sql_link *link, uint64_t connection_id);
/* Whether it is one of these, has a transaction open, or has locked the server. */
bool mariadb_may_hold_locks(const struct sql_link *link, uint64_t connection_id);

/*
 * Adds to the sessions of the list what they wait for. While idle, transactions are asked for only
 * when several statements last. Only -ENOTCONN is an error.
 */
int mariadb_find_locks(struct sql_link *link, bool is_glance, struct mariadb_list *list,
	struct text *error);

/* In mariadb_infer.c: of those that wait for a table or the server, which does not say for whom. */
void mariadb_infer_blockers(const struct sql_link *link, struct mariadb_list *list);
/* Keeps who was seen to lock the whole server, for as long as it may have that lock. */
void mariadb_note_global(struct sql_link *link, const struct mariadb_list *list);

/* Whether an answer is one about locks. */
bool mariadb_is_about_locks(enum mariadb_question question);
/*
 * Keeps for the next answer what came too late for the last one, and frees it; NULL: it was an
 * error. The server has worked on it since asked_ns: the next question has to wait.
 */
int mariadb_keep_late_locks(struct sql_link *link, MYSQL_RES *result, uint64_t asked_ns,
	struct text *error);

/* After the sessions: those that wait, and those of their blockers that are not in the list. */
void mariadb_send_locks(const struct sql_link *link, const struct mariadb_list *list,
	struct sql_answer *answer);

#endif
