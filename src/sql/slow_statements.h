/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The statements of one database that ran longest in an incident, even when they have ended.
 * Owned by a target, which passes each answer to it; read by the session through sql.h.
 * Never allocates; never merges sessions of two answers that may be different statements.
 */
#ifndef IOSTALL_SQL_SLOW_STATEMENTS_H
#define IOSTALL_SQL_SLOW_STATEMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "sql/snapshot.h"

#define SQL_SLOW_MAX 16
/* A longer text is cut. */
#define SQL_SLOW_TEXT_SIZE 1024

/* A statement as it was in the last answer that had it. Times are CLOCK_MONOTONIC. */
struct sql_slow_entry {
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
	enum record_lock lock;
	uint32_t candidates;
	int32_t tid;
	int32_t leader_pid;
	uint32_t text_bytes;
	bool background;
	bool worker;
	bool idle;
	bool asleep; /* it slept on purpose (SLEEP(), pg_sleep()) in all answers */
	char user[SQL_NAME_SIZE];
	char database[SQL_NAME_SIZE];
	char command[SQL_NAME_SIZE];
	char state[SQL_STATE_SIZE];
	char no_tid[SQL_NAME_SIZE];
	char object[SQL_NAME_SIZE];
	char text[SQL_SLOW_TEXT_SIZE];
};

struct sql_slow_statements {
	uint64_t begin_ns; /* of the incident */
	uint32_t count;
	struct sql_slow_entry entries[SQL_SLOW_MAX];
};

void sql_slow_begin(struct sql_slow_statements *slow, uint64_t begin_ns);

/*
 * Takes the statements of an answer. They are ranked by how long they ran since the incident began.
 * Sessions that cause no load themselves come last: background threads, idle transactions, parallel
 * workers, and statements that sleep on purpose.
 */
void sql_slow_take(struct sql_slow_statements *slow, const struct sql_snapshot *answer);

/* What the statement has moved in all answers so far, as far as it is known. */
uint64_t sql_slow_find_moved(const struct sql_slow_statements *slow,
	const struct sql_session_view *view);

/* The view is valid until the next answer is taken. */
void sql_slow_view(const struct sql_slow_statements *slow, uint32_t index,
	struct sql_session_view *ret_view);

/*
 * Finds the statement that a thread ran longest in the incident, in the table and in the two
 * answers. False: none is known; always so when worst is NULL. newest may be NULL. A statement that
 * moved more bytes is preferred, then one that did more than sleep. A parallel worker without a
 * statement of its own has that of its leader. Statements that began after the worst answer do not
 * count, however long they took, unless they moved bytes: they cannot have led to it. Statements
 * that had ended by then count.
 */
bool sql_slow_find_thread(const struct sql_slow_statements *slow, const struct sql_snapshot *worst,
	const struct sql_snapshot *newest, int32_t tid, struct sql_session_view *ret_view);

#endif
