/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The statements of one database that ran longest in an incident, in fixed memory, also those that
 * no kept answer has. Owned by a target, which shows it each answer; read by the session through
 * sql.h. Never allocates; takes two answers for one statement only when nothing speaks against it.
 */
#ifndef IOSTALL_SQL_LONGEST_H
#define IOSTALL_SQL_LONGEST_H

#include <stdbool.h>
#include <stdint.h>

#include "sql/snapshot.h"

#define SQL_LONGEST_MAX 16
/* A longer text is cut. */
#define SQL_LONGEST_TEXT_SIZE 1024

/* A statement as the last answer had it that had it. Times are CLOCK_MONOTONIC. */
struct sql_longest_entry {
	uint64_t connection_id;
	uint64_t query_id;
	uint64_t elapsed_ns;
	uint64_t asked_ns;
	uint64_t answered_ns;
	uint64_t start_min_ns; /* by all answers that had it */
	uint64_t start_max_ns;
	int32_t tid;
	int32_t leader_pid;
	uint32_t text_bytes;
	bool background;
	bool idle;
	bool asleep; /* because it wants to, in all answers */
	char user[SQL_NAME_SIZE];
	char database[SQL_NAME_SIZE];
	char command[SQL_NAME_SIZE];
	char state[SQL_STATE_SIZE];
	char no_tid[SQL_NAME_SIZE];
	char text[SQL_LONGEST_TEXT_SIZE];
};

struct sql_longest {
	uint64_t begin_ns; /* of the incident */
	uint32_t count;
	struct sql_longest_entry entries[SQL_LONGEST_MAX];
};

void sql_longest_begin(struct sql_longest *longest, uint64_t begin_ns);

/*
 * Statements are ranked by how long they ran since the incident began; last come those that put no
 * load on anything themselves: background, idle in a transaction, workers of a leader, asleep
 * because they want to.
 */
void sql_longest_take(struct sql_longest *longest, const struct sql_snapshot *answer);

/* Valid until the next answer is taken. */
void sql_longest_view(
	const struct sql_longest *longest, uint32_t index, struct sql_session_view *ret_view);

/*
 * Of all statements that the thread is known to have run in the incident, by the table and the two
 * answers (worst may be NULL: then there is none; newest may be NULL), the one that ran longest in
 * it, by its last answer; one that was more than asleep comes first. For a worker without a
 * statement of its own it is its leader's. What began after the worst moment, like the first
 * statement of a calm, led to nothing, however long it took; what had ended by then counts.
 */
bool sql_longest_find_thread(const struct sql_longest *longest, const struct sql_snapshot *worst,
	const struct sql_snapshot *newest, int32_t tid, struct sql_session_view *ret_view);

#endif
