/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sql/locks.h"

#include <string.h>

#include "util/number.h"

/* A queue is known by the row of its holder; those without a known one by the kind of the lock. */
#define NO_HOLDER SQL_SESSIONS_MAX
#define NO_SESSION (NO_HOLDER + RECORD_LOCK_COUNT)
#define QUEUES (NO_SESSION + 1)

struct sums {
	uint32_t waiters;
	uint64_t longest_ns;
	uint64_t waited_ns;
};

static int find_row(const struct sql_snapshot *s, uint64_t connection_id)
{
	for (uint32_t i = 0; connection_id && i < s->count; i++)
		if (s->rows[i].connection_id == connection_id)
			return (int)i;
	return -1;
}

/*
 * Follows the chain from a row that waits; *ret_last is the last one in it that does. A chain that
 * never ends is a deadlock, or was changed while the server told it: it has no holder.
 */
static unsigned int find_queue_of(const struct sql_snapshot *s, uint32_t i, uint32_t *ret_last)
{
	const struct sql_row *row = &s->rows[i];

	*ret_last = i;
	for (uint32_t steps = 0; steps < s->count; steps++) {
		int next = find_row(s, row->blocker_id);

		*ret_last = (uint32_t)(row - s->rows);
		if (next < 0)
			break;
		row = &s->rows[next];
		if (row->lock == RECORD_LOCK_NONE)
			return (unsigned int)next;
	}
	row = &s->rows[*ret_last];
	return row->blocker_has_no_session ? NO_SESSION : NO_HOLDER + row->lock;
}

static bool is_in_queue(const struct sql_row *row, uint64_t at_most_ns)
{
	return row->lock != RECORD_LOCK_NONE &&
		(row->lock != RECORD_LOCK_advisory || row->waited_ns <= at_most_ns);
}

static unsigned int find_worst(const struct sql_snapshot *s, uint64_t at_most_ns,
	struct sums queues[QUEUES])
{
	unsigned int worst = QUEUES;
	uint32_t last;

	for (uint32_t i = 0; i < s->count; i++) {
		const struct sql_row *row = &s->rows[i];
		unsigned int at;

		if (!is_in_queue(row, at_most_ns))
			continue;
		at = find_queue_of(s, i, &last);
		queues[at].waiters++;
		queues[at].waited_ns += row->waited_ns < at_most_ns ? row->waited_ns : at_most_ns;
		if (row->waited_ns > queues[at].longest_ns)
			queues[at].longest_ns = row->waited_ns;
		if (worst == QUEUES || queues[at].waited_ns > queues[worst].waited_ns)
			worst = at;
	}
	return worst;
}

/* Lock and table are those for which whoever waits for the holder itself waits longest. */
static void set_lock(const struct sql_snapshot *s, uint64_t at_most_ns, unsigned int queue,
	struct sql_queue *q)
{
	uint16_t followers[SQL_SESSIONS_MAX] = { 0 };
	uint64_t longest_ns = 0;
	uint32_t last;

	for (uint32_t i = 0; i < s->count; i++) {
		const struct sql_row *row = &s->rows[i], *direct;

		if (!is_in_queue(row, at_most_ns) || find_queue_of(s, i, &last) != queue)
			continue;
		direct = &s->rows[last];
		if (q->lock == RECORD_LOCK_NONE || direct->waited_ns > longest_ns) {
			longest_ns = direct->waited_ns;
			q->lock = direct->lock;
			q->object = s->texts + direct->object;
			q->candidates = direct->candidates;
		}
		/* Of those that want the same row, none lets the others wait. */
		if (last == i || direct->lock == RECORD_LOCK_row ||
			!is_in_queue(direct, at_most_ns) || ++followers[last] <= q->behind_first)
			continue;
		q->behind_first = followers[last];
		sql_snapshot_view(s, last, &q->first);
	}
}

bool sql_find_queue(const struct sql_snapshot *s, uint64_t since_ns, struct sql_queue *ret_queue)
{
	const uint64_t at_most_ns = minus(s->answered_ns, since_ns);
	struct sums queues[QUEUES] = { 0 };
	unsigned int worst = find_worst(s, at_most_ns, queues);

	if (worst == QUEUES)
		return false;
	*ret_queue = (struct sql_queue){
		.waiters = queues[worst].waiters,
		.longest_ns = queues[worst].longest_ns,
		.waited_ns = queues[worst].waited_ns,
		.object = "",
		.is_without_session = worst == NO_SESSION,
		.has_holder = worst < NO_HOLDER,
	};
	if (ret_queue->has_holder)
		sql_snapshot_view(s, worst, &ret_queue->holder);
	set_lock(s, at_most_ns, worst, ret_queue);
	return true;
}
