/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tables of the probe `block` that grow with those who load disks: threads, files, requests.
 * Called by block.c.
 * Never allocates memory. Takes out of the tables only what has no request in flight.
 */
#ifndef IOSTALL_PROBES_BLOCK_TABLES_H
#define IOSTALL_PROBES_BLOCK_TABLES_H

#include "probes/block_fold.h"

/* Map entries that one system call reads. */
#define BLOCK_BATCH 128
/* Bits; requests in flight are fewer, so most of what is not in flight is known not to be. */
#define BLOCK_IN_FLIGHT_BITS 65536

struct block_tables {
	/* Descriptors of maps. */
	int threads;
	int files;
	int requests;
	struct block_fold fold;
	struct block_item items[EVENT_BLOCK_THREADS_MAX + BLOCK_FOLDED_MAX];
	uint64_t in_flight[BLOCK_IN_FLIGHT_BITS / 64];
	union {
		uint64_t requests[BLOCK_BATCH];
		struct event_block_thread_key threads[BLOCK_BATCH];
		struct event_block_file_key files[BLOCK_BATCH];
	} keys;
	union {
		struct event_block_request requests[BLOCK_BATCH];
		struct event_block_thread threads[BLOCK_BATCH];
		struct event_block_file files[BLOCK_BATCH];
	} values;
};

/* The position of block_tables_read() in a map. */
struct block_cursor {
	int map;
	uint32_t position;
	bool begun;
	bool ended;
};

/*
 * Reads the next entries of a map into keys and values. Returns their number, 0 after the last, or
 * an error of bpf_map_lookup_batch().
 */
int block_tables_read(struct block_tables *tables, struct block_cursor *cursor);

/* Reads all that had requests, as lines of the kind `by` need it; returns how many items it is. */
size_t block_tables_read_items(struct block_tables *tables, enum record_by by);

/* The name of the thread of an item, or with RECORD_BY_process that of its process. */
void block_tables_find_name(const struct block_tables *tables, enum record_by by,
	const struct block_item *item, char *ret_comm, size_t size);

/*
 * Where a table is nearly full, takes out of it those that loaded disks least, so that whoever
 * begins to load one now finds room. What threads did is kept in sums, and what was done with files
 * is not.
 */
void block_tables_make_room(struct block_tables *tables, const struct probe_report *report);

void block_tables_clear(struct block_tables *tables, int map, const char *name, size_t key_size,
	size_t value_size);

#endif
