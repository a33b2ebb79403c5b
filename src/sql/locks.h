/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who waits for whom in one answer of a database: the queue behind a lock, and who is at its end.
 * Used by the session for each answer of an incident.
 * Pure: never says more than the answer does.
 */
#ifndef IOSTALL_SQL_LOCKS_H
#define IOSTALL_SQL_LOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "sql/snapshot.h"

/* The views are valid as long as the answer. */
struct sql_queue {
	uint32_t waiters;
	uint64_t longest_ns; /* that one of them has waited */
	uint64_t waited_ns;  /* all together, since the time that was asked for */
	enum record_lock lock;
	const char *object;	 /* "" */
	bool is_without_session; /* a transaction without a session, as a prepared one, holds it */
	/* The session at the end of the chain, which waits for no lock itself. */
	bool has_holder;
	struct sql_session_view holder;
	uint32_t candidates; /* 0: the server says so; else it is the likeliest of so many */
	/* Who waits for a whole table, and makes others wait that the holder alone would not. */
	uint32_t behind_first; /* 0: nobody does */
	struct sql_session_view first;
};

/*
 * The queue that has waited most since `since_ns` (CLOCK_MONOTONIC), all sessions together. Whoever
 * has waited for an advisory lock since before may do so on purpose, as for who leads a cluster,
 * and is in no queue. False: no session waits for a lock.
 */
bool sql_find_queue(const struct sql_snapshot *answer, uint64_t since_ns,
	struct sql_queue *ret_queue);

#endif
