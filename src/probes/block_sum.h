/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Turns the tables of the probe `block` into the numbers of a record: percentiles, sums, the top
 * ten.
 * Called by block.c and by tests.
 * Never reads a map or allocates memory that lasts.
 */
#ifndef IOSTALL_PROBES_BLOCK_SUM_H
#define IOSTALL_PROBES_BLOCK_SUM_H

#include <stddef.h>
#include <stdint.h>

#include "iostall/event.h"
#include "probes/probe.h"
#include "record/record.h"

/* How many processes, threads, files and cgroups are named for each disk; before the end fewer. */
#define BLOCK_TOP_MAX 10
#define BLOCK_TOP_SO_FAR 3

/* Instead of the thread, where an item is a sum over several that are not known any more. */
#define BLOCK_NO_TID UINT32_MAX

/* The load that a thread or a file put on one disk, or the sum of several threads. */
struct block_item {
	uint32_t dev;
	struct event_block_load load;
	struct event_block_work before; /* of a file */
	union {
		struct {
			uint32_t pid;
			uint32_t tid;
			/* As in struct event_block_who: ids are used again. */
			uint64_t start_ns;
			uint64_t process_start_ns;
			uint64_t cgroup_id; /* 0: several, or not known */
			uint64_t owner;	    /* as in struct event_block_thread_key */
			/* Of a statement; the thread above is the one that did most. */
			struct probe_statement statement;
			uint64_t most_ns;
			uint32_t sessions;
			uint32_t workers;
			uint32_t io_workers;
			bool has_leader;
		};
		struct {
			struct event_block_file_key file;
			uint64_t size;
			uint64_t path_key; /* block_path_key() */
		};
	};
};

/* Bytes read and written: a discard moves none. */
uint64_t block_load_bytes(const struct event_block_load *load);
uint64_t block_load_requests(const struct event_block_load *load);
/* How long the device was busy with them. */
uint64_t block_load_busy_ns(const struct event_block_load *load);

void block_load_add(struct event_block_load *sum, const struct event_block_load *load);

/* The same of a file with what was sent before tracing. */
uint64_t block_item_busy_ns(const struct block_item *item);

/*
 * The time within which `share` (0 to 1) of the requests were done, interpolated in its bucket and
 * at most max_ns; 0 without requests.
 */
uint64_t block_percentile(const uint64_t buckets[EVENT_BLOCK_BUCKETS], double share,
	uint64_t max_ns);

/* Fills in everything but the names, what is in flight and the oldest request. */
void block_fill_device(uint32_t dev, const struct event_block_device *device,
	struct record_device *ret_device);

/*
 * What tells files apart that have the same number on the same file system: the path that the
 * kernel gave, if it is known well enough, and else the address.
 */
uint64_t block_path_key(const struct event_block_file_key *key,
	const struct event_block_file *file);

/*
 * Keeps, in place, the items of threads that worked on a statement, as `find` says, and returns how
 * many these are; find is that of struct probe_report.
 */
size_t block_find_statements(struct block_item *items, size_t count,
	const struct probe_report *report);

/*
 * Sums up, in place, the items of the same process, cgroup, statement or file on the same disk,
 * and sorts by
 * disk and then by the time that the disk was busy with it, the most first. Returns how many items
 * are left.
 */
size_t block_sum_items(enum record_by by, struct block_item *items, size_t count);

/*
 * Fills in everything but the names of thread, process, disk, unit and path, and whether it is the
 * last line; `device` is what the disk did in all.
 */
void block_fill_io_by(enum record_by by, uint32_t rank, const struct block_item *item,
	const struct event_block_device *device, struct record_io_by *ret_io_by);

#endif
