/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "snapshot/inflight.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <bpf/bpf.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/sort.h"

/*
 * On the stack, so few: 10,000 entries take 4 ms (6.18), and 20 to 80 ms one by one. The kernel
 * deletes a bucket of its hash table at a time, which has one entry on average at most.
 */
#define CLEAR_BATCH 16

static int compare_age(const void *a, const void *b)
{
	const struct inflight_item *x = a, *y = b;

	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static void keep_oldest(struct inflight_scan *scan)
{
	sort_in_place(scan->items, scan->count, sizeof(scan->items[0]), compare_age);
	if (scan->count > INFLIGHT_SCAN_MAX) {
		scan->left_out += scan->count - INFLIGHT_SCAN_MAX;
		scan->count = INFLIGHT_SCAN_MAX;
		scan->youngest_ns = scan->items[INFLIGHT_SCAN_MAX - 1].start_ns;
	}
}

static void keep(struct inflight_scan *scan, uint64_t key, const struct event_inflight *op,
	uint64_t started_before_ns)
{
	if (op->start_ns == 0 || op->start_ns > started_before_ns)
		return;
	/* Else each thousand of them would be sorted in. */
	if (op->start_ns >= scan->youngest_ns) {
		scan->left_out++;
		return;
	}
	if (scan->count == ARRAY_SIZE(scan->items))
		keep_oldest(scan);
	scan->items[scan->count++] = (struct inflight_item){ .key = key,
		.start_ns = op->start_ns,
		.tid = op->tid,
		.op = op->op };
}

static void collect_batch(struct inflight_scan *scan, const struct inflight_map *map,
	uint32_t count, uint64_t started_before_ns)
{
	for (uint32_t i = 0; i < count; i++) {
		struct event_inflight op;
		uint64_t key = 0;

		memcpy(&key, scan->keys + i * map->key_size, map->key_size);
		memcpy(&op, scan->values + i * map->value_size, sizeof(op));
		keep(scan, key, &op, started_before_ns);
	}
}

int inflight_collect(const struct inflight_map *map, uint64_t now_ns, uint64_t min_age_ns,
	struct inflight_scan *ret_scan)
{
	uint64_t cursor, *in = NULL;
	int r = 0;

	assert(map->key_size <= sizeof(uint64_t) && map->value_size <= INFLIGHT_VALUE_MAX);
	ret_scan->count = 0;
	ret_scan->left_out = 0;
	ret_scan->youngest_ns = UINT64_MAX;
	while (r == 0) {
		uint32_t count = INFLIGHT_BATCH;

		r = bpf_map_lookup_batch(map->fd, in, &cursor, ret_scan->keys, ret_scan->values,
			&count, NULL);
		if (r < 0 && r != -ENOENT)
			return r;
		in = &cursor;
		collect_batch(ret_scan, map, count, now_ns - min_age_ns);
	}
	keep_oldest(ret_scan);
	return 0;
}

bool inflight_find(const struct inflight_map *map, uint64_t key, struct event_inflight *ret_op)
{
	_Alignas(8) unsigned char value[INFLIGHT_VALUE_MAX];

	/*
	 * A 4-byte key is read from the low half of the 64 bits: all supported machines are
	 * little-endian.
	 */
	if (bpf_map_lookup_elem(map->fd, &key, value) < 0)
		return false;
	memcpy(ret_op, value, sizeof(*ret_op));
	return ret_op->start_ns != 0;
}

int inflight_clear(const struct inflight_map *map, uint64_t deadline_ns)
{
	_Alignas(8) unsigned char keys[CLEAR_BATCH * sizeof(uint64_t)];
	_Alignas(8) unsigned char values[CLEAR_BATCH * INFLIGHT_VALUE_MAX];
	uint64_t cursor, *in = NULL;
	int r = 0;

	assert(map->key_size <= sizeof(uint64_t) && map->value_size <= INFLIGHT_VALUE_MAX);
	while (r == 0) {
		uint32_t count = CLEAR_BATCH;

		r = bpf_map_lookup_and_delete_batch(map->fd, in, &cursor, keys, values, &count,
			NULL);
		if (r < 0 && r != -ENOENT)
			return r;
		in = &cursor;
		if (r == 0 && clock_mono_ns() > deadline_ns)
			return -ETIME;
	}
	return 0;
}
