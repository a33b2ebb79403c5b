/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "snapshot/inflight.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "snapshot/thread.h"
#include "util/cleanup.h"
#include "util/sort.h"

static size_t slots_bytes(const struct inflight_map *map)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t bytes = map->slots_count * sizeof(map->slots[0]);

	return (bytes + page - 1) / page * page;
}

int inflight_pairs_new(uint64_t max, struct inflight_map *ret_map)
{
	LIBBPF_OPTS(bpf_map_create_opts, mappable, .map_flags = BPF_F_MMAPABLE);
	struct inflight_map map = INFLIGHT_MAP_NONE;
	void *slots;
	int r;

	map.key_size = sizeof(uint32_t);
	map.value_size = sizeof(struct event_inflight);
	/* The other half is in the hash. */
	map.slots_count = 2;
	while (2 * map.slots_count < max)
		map.slots_count *= 2;
	map.slots_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "inflight", map.key_size, map.value_size,
		map.slots_count, &mappable);
	if (map.slots_fd < 0)
		return map.slots_fd;
	map.fd = bpf_map_create(BPF_MAP_TYPE_HASH, "inflight_more", map.key_size, map.value_size,
		map.slots_count, NULL);
	if (map.fd < 0) {
		r = map.fd;
		inflight_pairs_close(&map);
		return r;
	}
	slots = mmap(NULL, slots_bytes(&map), PROT_READ | PROT_WRITE, MAP_SHARED, map.slots_fd, 0);
	if (slots == MAP_FAILED) {
		r = -errno;
		inflight_pairs_close(&map);
		return r;
	}
	map.slots = slots;
	*ret_map = map;
	return 0;
}

void inflight_pairs_close(struct inflight_map *map)
{
	if (map->slots)
		munmap(map->slots, slots_bytes(map));
	map->slots = NULL;
	map->slots_fd = close_fd(map->slots_fd);
	map->fd = close_fd(map->fd);
}

/* The programs write start_ns before and after all else. */
static bool read_slot(const struct event_inflight *slot, struct event_inflight *ret_op)
{
	uint64_t start_ns = __atomic_load_n(&slot->start_ns, __ATOMIC_ACQUIRE);

	if (start_ns == 0)
		return false;
	memcpy(ret_op, slot, sizeof(*ret_op));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return ret_op->start_ns == start_ns &&
		__atomic_load_n(&slot->start_ns, __ATOMIC_RELAXED) == start_ns;
}

static int compare_age(const void *a, const void *b)
{
	const struct inflight_item *x = a, *y = b;

	return (x->op.start_ns > y->op.start_ns) - (x->op.start_ns < y->op.start_ns);
}

static void keep_oldest(struct inflight_walk *walk)
{
	sort_in_place(walk->items, walk->count, sizeof(walk->items[0]), compare_age);
	if (walk->count > INFLIGHT_WALK_MAX) {
		walk->left_out += walk->count - INFLIGHT_WALK_MAX;
		walk->count = INFLIGHT_WALK_MAX;
	}
}

static void keep(struct inflight_walk *walk, const struct inflight_item *item,
	uint64_t started_before_ns)
{
	if (item->op.start_ns == 0 || item->op.start_ns > started_before_ns)
		return;
	if (walk->count == ARRAY_SIZE(walk->items))
		keep_oldest(walk);
	walk->items[walk->count++] = *item;
}

static void collect_slots(struct inflight_walk *walk, const struct inflight_map *map,
	uint64_t started_before_ns)
{
	for (uint32_t i = 0; i < map->slots_count; i++) {
		struct inflight_item item;

		if (!read_slot(&map->slots[i], &item.op))
			continue;
		item.key = item.op.tid;
		keep(walk, &item, started_before_ns);
	}
}

static void collect_batch(struct inflight_walk *walk, const struct inflight_map *map, uint32_t count,
	uint64_t started_before_ns)
{
	for (uint32_t i = 0; i < count; i++) {
		struct inflight_item item = {};

		memcpy(&item.key, walk->keys + i * map->key_size, map->key_size);
		memcpy(&item.op, walk->values + i * map->value_size, sizeof(item.op));
		keep(walk, &item, started_before_ns);
	}
}

int inflight_collect(const struct inflight_map *map, uint64_t now_ns, uint64_t min_age_ns,
	struct inflight_walk *ret_walk)
{
	uint64_t cursor, *in = NULL;
	int r = 0;

	assert(map->key_size <= sizeof(uint64_t) && map->value_size <= INFLIGHT_VALUE_MAX);
	ret_walk->count = 0;
	ret_walk->left_out = 0;
	if (map->slots)
		collect_slots(ret_walk, map, now_ns - min_age_ns);
	while (r == 0) {
		uint32_t count = INFLIGHT_BATCH;

		r = bpf_map_lookup_batch(map->fd, in, &cursor, ret_walk->keys, ret_walk->values, &count,
			NULL);
		if (r < 0 && r != -ENOENT)
			return r;
		in = &cursor;
		collect_batch(ret_walk, map, count, now_ns - min_age_ns);
	}
	keep_oldest(ret_walk);
	return 0;
}

bool inflight_find(const struct inflight_map *map, uint64_t key, struct event_inflight *ret_op)
{
	_Alignas(8) unsigned char value[INFLIGHT_VALUE_MAX];

	if (map->slots) {
		const struct event_inflight *slot = &map->slots[key & (map->slots_count - 1)];

		if (slot->tid == key)
			return read_slot(slot, ret_op);
	}
	/* The low half of a key is first, as on every machine that this runs on. */
	if (bpf_map_lookup_elem(map->fd, &key, value) < 0)
		return false;
	memcpy(ret_op, value, sizeof(*ret_op));
	return ret_op->start_ns != 0;
}

enum inflight_verdict inflight_judge(const struct event_inflight *op, const struct thread_syscall *call)
{
	if (call->running)
		return INFLIGHT_RUNNING;
	if (call->nr < 0)
		return INFLIGHT_STALE;
	/* read and write alike, also with an offset: descriptor, buffer, length; of fsync what is in their place. */
	if (!(op->flags & EVENT_INFLIGHT_BARE) &&
		(call->args[1] != op->buf || call->args[2] != op->bytes))
		return INFLIGHT_STALE;
	if (op->fd >= 0 && (int32_t)call->args[0] != op->fd)
		return INFLIGHT_STALE;
	return INFLIGHT_BLOCKED;
}

enum inflight_verdict inflight_check(int procfs_fd, const struct inflight_item *item)
{
	struct thread_syscall call;
	char state;
	int r = thread_read_syscall(procfs_fd, (int32_t)item->op.tid, &call);

	if (r == 0)
		return inflight_judge(&item->op, &call);
	if (r == -ENOENT || r == -ESRCH)
		return INFLIGHT_STALE;
	/* Refused, or a kernel without the file: only D proves that the thread waits in the kernel. */
	r = thread_read_state(procfs_fd, (int32_t)item->op.tid, &state);
	if (r < 0)
		return INFLIGHT_STALE;
	return state == 'D' ? INFLIGHT_BLOCKED : INFLIGHT_RUNNING;
}

int inflight_clear(const struct inflight_map *map)
{
	uint64_t key, next;
	int r = bpf_map_get_next_key(map->fd, NULL, &next);

	if (map->slots)
		memset(map->slots, 0, slots_bytes(map));
	/* The next is asked for before this one goes: behind a deleted key the search starts anew. */
	while (r == 0) {
		key = next;
		r = bpf_map_get_next_key(map->fd, &key, &next);
		if (bpf_map_delete_elem(map->fd, &key) < 0)
			return -errno;
	}
	return 0;
}
