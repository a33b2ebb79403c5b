/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For which locks the sessions of a MariaDB or MySQL server wait, and whose these are.
 * Called by mariadb_sessions.c with its list of sessions; mariadb.c asks what the server can tell.
 * Never fails an answer: without what it asks for, only locks are missing in it.
 */
#ifndef IOSTALL_SQL_MARIADB_LOCKS_H
#define IOSTALL_SQL_MARIADB_LOCKS_H

#include "record/enums.h"
#include "sql/helper/mariadb_link.h"
#include "util/clock.h"

#define MARIADB_TIME_S_MAX (SQL_ELAPSED_MAX_NS / NSEC_PER_SEC)

struct mariadb_session {
	uint64_t connection_id;
	uint64_t text_bytes;
	uint64_t time_s;
	int32_t tid; /* by threads only */
	char user[SQL_NAME_SIZE];
	char database[SQL_NAME_SIZE];
	char command[SQL_NAME_SIZE];
	char state[SQL_STATE_SIZE];
	bool background;
	bool idle;   /* it sleeps with its transaction open */
	bool is_ddl; /* its statement changes or locks a table as a whole */
	char *text;  /* its beginning; NULL: none. Not sent where sql.text is off */
	uint64_t transaction_s;
	/* What it waits for; lock NONE: for no lock. */
	enum record_lock lock;
	uint64_t blocker_id; /* 0: not known */
	bool blocker_has_no_session;
	uint64_t inferred_id; /* until all are known */
	uint64_t waited_s;
	uint32_t candidates; /* for the blocker; 0: the server told it */
	char object[SQL_NAME_SIZE];
};

/* Of more users those that come first in the server's list are counted. */
#define MARIADB_USERS_MAX 64

/* Of a list; the others in an answer are for blockers that are told only after it. */
#define MARIADB_SESSIONS_MAX (SQL_SESSIONS_MAX - 16)

/* Rows are read one by one; only as many as an answer may have are kept. */
struct mariadb_list {
	struct mariadb_session *rows; /* active sessions and open transactions, the longest first */
	size_t count;
	size_t sleepers; /* of them, idle */
	uint64_t active; /* with those that are not kept */
	uint64_t idle;
	uint64_t asked_ns;
	uint64_t invalid;
	size_t bytes_read;
	bool is_short; /* only the beginning of each statement was asked for */
	uint32_t connections;
	uint32_t users_count;
	struct mariadb_user {
		char name[SQL_NAME_SIZE];
		uint32_t connections;
		uint32_t idle;
	} users[MARIADB_USERS_MAX];
};

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
	enum record_lock lock;
	char object[SQL_NAME_SIZE];
};

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

/* NULL: it is not in the list. */
struct mariadb_session *mariadb_find_session(const struct mariadb_list *list,
	uint64_t connection_id);

/*
 * Whether what was asked about a session at asked_ns holds for its row: in a list that was made
 * later it is still in that statement, or still without one.
 */
bool mariadb_has_stayed(const struct mariadb_list *list, const struct mariadb_session *row,
	uint64_t asked_ns);

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
