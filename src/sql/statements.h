/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The statements of one database in an incident, also those that have ended: the one table from
 * which their lines are written, and in which the statement of a thread is found.
 * Owned by a target, which passes each answer to it; read and marked by the session through sql.h.
 * Never allocates; never merges sessions of two answers that may be different statements.
 */
#ifndef IOSTALL_SQL_STATEMENTS_H
#define IOSTALL_SQL_STATEMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "sql/snapshot.h"

#define SQL_STATEMENTS_MAX 48
/* A longer text is cut. */
#define SQL_STATEMENT_TEXT_SIZE 1024

/* A statement as it was in the last answer that had it. Times are CLOCK_MONOTONIC. */
struct sql_statement {
	uint64_t connection_id;
	uint64_t query_id;
	uint64_t elapsed_ns;
	uint64_t asked_ns;
	uint64_t answered_ns;
	uint64_t start_min_ns; /* when it began at the earliest, by all answers that had it */
	uint64_t start_max_ns;
	uint64_t transaction_ns;
	uint64_t blocker_id;
	uint64_t waited_ns;
	uint64_t moved_bytes; /* by its thread while it was in an answer */
	uint64_t key;	      /* as in struct sql_row */
	enum record_lock lock;
	uint32_t candidates;
	uint32_t alike; /* of clients with that text, the most in one answer */
	int32_t tid;
	int32_t leader_pid;
	uint32_t text_bytes;
	bool background;
	bool worker;
	bool idle;
	bool asleep; /* it slept on purpose (SLEEP(), pg_sleep()) in all answers */
	/* By the session: what its last line said; elapsed_ns 0: it has none. */
	struct {
		uint64_t elapsed_ns;
		uint64_t blocker_id;
		uint64_t key;
		enum record_lock lock;
	} written;
	char user[SQL_NAME_SIZE];
	char database[SQL_NAME_SIZE];
	char command[SQL_NAME_SIZE];
	char state[SQL_STATE_SIZE];
	char no_tid[SQL_NAME_SIZE];
	char object[SQL_NAME_SIZE];
	char text[SQL_STATEMENT_TEXT_SIZE];
};

struct sql_statements {
	uint64_t begin_ns; /* of the incident */
	/* The worst answer: most statements of clients, and of such answers the longest one. */
	uint64_t worst_ns; /* when it was given; 0: there was none */
	uint32_t worst_active;
	uint64_t worst_longest_ns;
	uint32_t count;
	struct sql_statement list[SQL_STATEMENTS_MAX];
};

void sql_statements_begin(struct sql_statements *statements, uint64_t begin_ns);

/*
 * Takes the statements of an answer; those whose time is unknown are too new to matter. In a full
 * table the ones stay that moved most, then those that ran longest since the incident began.
 * Sessions that cause no load themselves come last: background threads, idle transactions, parallel
 * workers, and statements that sleep on purpose.
 */
void sql_statements_take(struct sql_statements *statements, const struct sql_snapshot *answer);

/* How many statements of clients of that answer are not in the table. */
uint32_t sql_statements_count_missing(const struct sql_statements *statements,
	const struct sql_snapshot *answer);

/* The view is valid until the next answer is taken. */
void sql_statement_view(const struct sql_statement *statement, struct sql_session_view *ret_view);

/*
 * Finds the statement that a thread ran longest in the incident, in the table and in the newest
 * answer (NULL: there is none). A statement that moved more bytes is preferred, then one that did
 * more than sleep. A parallel worker without a statement of its own has that of its leader.
 * Statements that began after the worst answer do not count, however long they took, unless they
 * moved bytes: they cannot have led to it. Statements that had ended by then count.
 */
bool sql_statements_find_thread(const struct sql_statements *statements,
	const struct sql_snapshot *newest, int32_t tid, struct sql_session_view *ret_view);

/* The backend that a parallel worker worked for; 0: the thread is no such worker. */
int32_t sql_statements_find_leader(const struct sql_statements *statements, int32_t tid);

#endif
