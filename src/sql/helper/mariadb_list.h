/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sessions of a MariaDB or MySQL server that are sent, out of all that it has.
 * Filled by mariadb_sessions.c, explained by mariadb_locks.c and mariadb_infer.c.
 * Never holds more than an answer may have, however many there are.
 */
#ifndef IOSTALL_SQL_MARIADB_LIST_H
#define IOSTALL_SQL_MARIADB_LIST_H

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

/* Of those that rest so many are told from others. */
#define MARIADB_RESTING_MAX 64

/* Rows are read one by one; only as many as an answer may have are kept. */
struct mariadb_list {
	struct mariadb_session *rows; /* active sessions and open transactions, the longest first */
	size_t count;
	size_t sleepers; /* of them, idle */
	uint64_t active; /* with those that are not kept */
	uint64_t idle;
	/* Threads of replication that wait for more to do, and are not in the list. */
	uint64_t resting[MARIADB_RESTING_MAX];
	size_t resting_count; /* with further ones */
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

/* NULL: it is not in the list. */
struct mariadb_session *mariadb_find_session(const struct mariadb_list *list,
	uint64_t connection_id);

/*
 * Whether what was asked about a session at asked_ns holds for its row: in a list that was made
 * later it is still in that statement, or still without one.
 */
bool mariadb_has_stayed(const struct mariadb_list *list, const struct mariadb_session *row,
	uint64_t asked_ns);

/*
 * Where to keep a session that has run for so long; NULL: all that are kept have run for longer.
 * Who holds a lock is found among many that wait for it.
 */
struct mariadb_session *mariadb_list_find_room(struct mariadb_list *list, bool is_idle,
	uint64_t time_s, bool is_blocker);
void mariadb_list_free(struct mariadb_list *list);

#endif
