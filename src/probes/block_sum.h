/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the tables of probe `block` come to: percentiles, sums, the first ten.
 * Called by block.c and by tests.
 * Pure: reads no map, allocates nothing that lasts.
 */
#ifndef IOSTALL_PROBES_BLOCK_SUM_H
#define IOSTALL_PROBES_BLOCK_SUM_H

#include <stddef.h>
#include <stdint.h>

#include "iostall/event.h"
#include "record/record.h"

/* Of each kind and disk so many are named. */
#define BLOCK_TOP_MAX 10

enum block_by {
	BLOCK_BY_PROCESS,
	BLOCK_BY_THREAD,
	BLOCK_BY_FILE,
	BLOCK_BY_CGROUP,
	BLOCK_BY_COUNT,
};

/* A thread or a file on one disk, or what several of them come to. */
struct block_item {
	uint32_t dev;
	uint32_t pid;
	uint32_t tid;
	uint64_t cgroup_id;
	struct event_block_file_key file;
	struct event_block_load load;
	char comm[EVENT_COMM_SIZE];
	char process_comm[EVENT_COMM_SIZE];
};

const char *block_by_name(enum block_by by);

uint64_t block_load_bytes(const struct event_block_load *load);
uint64_t block_load_requests(const struct event_block_load *load);

/*
 * The time below which `share` (0 to 1) of the requests are, by the bucket's share of it and at most
 * max_ns; 0 without requests.
 */
uint64_t block_percentile(const uint64_t buckets[EVENT_BLOCK_BUCKETS], double share, uint64_t max_ns);

/* All of ret_device but for the names, what is in flight and what is oldest. */
void block_fill_device(uint32_t dev, const struct event_block_device *device,
	struct record_device *ret_device);

/*
 * Adds items of the same process or cgroup on the same disk up, in place, and orders them by disk and
 * then by bytes, the most first. Returns how many are left.
 */
size_t block_sum_items(enum block_by by, struct block_item *items, size_t count);

/* All of ret_io_by but for the names of disk, unit and path. */
void block_fill_io_by(enum block_by by, const struct block_item *item, uint64_t device_bytes,
	struct record_io_by *ret_io_by);

#endif
