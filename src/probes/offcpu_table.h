/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What threads waited for off the CPU, by kind: the sums that the map of the probe `offcpu` has,
 * what was told of them, and the stacks that were read from /proc.
 * Used by the user side of that probe.
 * Never allocates, never reads a map.
 */
#ifndef IOSTALL_PROBES_OFFCPU_TABLE_H
#define IOSTALL_PROBES_OFFCPU_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "iostall/event.h"
#include "util/number.h"

/* Those in the map, while those of the last reading are still there. */
#define OFFCPU_ITEMS_MAX (2 * EVENT_OFFCPU_KINDS_MAX)
/* Twice as many, so that a search ends soon. */
#define OFFCPU_INDEX_SLOTS (2 * OFFCPU_ITEMS_MAX)
/* Stacks that have been read from /proc; one has 300 to 500 bytes as a rule. */
#define OFFCPU_TEXTS_MAX 128
#define OFFCPU_TEXTS_BYTES (48 * 1024)

/* One kind of waiting. */
struct offcpu_item {
	struct event_offcpu_key key;
	struct offcpu_sums {
		uint64_t ns;
		uint64_t runnable_ns;
		uint64_t times;
	} now, told; /* over the incident so far, and up to the last window */
	uint64_t longest_ns;
	uint64_t longest_start_ns;
	uint32_t longest_tid;
	uint32_t off;	/* threads that are off the CPU, and have been for long enough */
	uint32_t text;	/* place in texts + 1; 0: the kernel has its stack, if there is one */
	bool is_there;	/* in the map */
	bool has_stack; /* in the map of stacks */
	bool is_in_use; /* a thread is off the CPU in it */
};

struct offcpu_table {
	uint32_t count;
	struct offcpu_item items[OFFCPU_ITEMS_MAX];
	uint16_t index[OFFCPU_INDEX_SLOTS]; /* by key, place in items + 1; 0: free */
	uint32_t texts_count;
	uint32_t texts_used;
	uint32_t texts[OFFCPU_TEXTS_MAX]; /* where each begins */
	char texts_buf[OFFCPU_TEXTS_BYTES];
};

void offcpu_table_reset(struct offcpu_table *table);

/* NULL: there is none. Items move when the table is sorted or loses some. */
struct offcpu_item *offcpu_table_find(struct offcpu_table *table,
	const struct event_offcpu_key *key);
/* The same, or a new one. NULL: there are as many as the map can have. */
struct offcpu_item *offcpu_table_get(struct offcpu_table *table,
	const struct event_offcpu_key *key);
/* Drops what is not in the map any more: it had nothing to tell. */
void offcpu_table_drop_gone(struct offcpu_table *table);
/* Those that gained most since they were told first. */
void offcpu_table_sort(struct offcpu_table *table);
/* What all have by now is told. */
void offcpu_table_note_told(struct offcpu_table *table);

static inline uint64_t offcpu_item_gained_ns(const struct offcpu_item *item)
{
	/* A thread may have come back after its time was added and before that of its kind. */
	return minus(item->now.ns, item->told.ns);
}

/* The key of a thread without stack that has this one, which /proc had. */
struct event_offcpu_key offcpu_table_key_of_text(const struct event_offcpu_key *key,
	const char *text);
/* Its place + 1, for an item; 0: there is no room. */
uint32_t offcpu_table_keep_text(struct offcpu_table *table, const char *text);
/* NULL: it has none. */
const char *offcpu_table_text(const struct offcpu_table *table, const struct offcpu_item *item);

#endif
