/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The operations in flight that programs note in maps, and the walk over them: what has not returned,
 * checked against the threads' own state, since an entry whose return was lost looks just like one that
 * hangs. The pairs' maps are made with the others; called by the session each second while tracing.
 * Never deletes an entry while programs are attached: the thread may be writing a new one.
 */
#ifndef IOSTALL_SNAPSHOT_INFLIGHT_H
#define IOSTALL_SNAPSHOT_INFLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "iostall/event.h"

#define INFLIGHT_WALK_MAX 1024
#define INFLIGHT_BATCH 64
#define INFLIGHT_VALUE_MAX 1024

/* A map of operations in flight: keys of 4 or 8 bytes, values that begin with a struct event_inflight. */
struct inflight_map {
	int fd;
	uint32_t key_size;
	uint32_t value_size;
	/*
	 * Of pairs, see bpf/pairing.bpf.h: an array, mapped, with a slot for each thread. The map above has
	 * those whose slot is another's. Programs write it at any time.
	 */
	struct event_inflight *slots;
	uint32_t slots_count; /* a power of two */
	int slots_fd;
};

#define INFLIGHT_MAP_NONE ((struct inflight_map){ .fd = -1, .slots_fd = -1 })

struct inflight_item {
	uint64_t key; /* thread id, or what names a request */
	struct event_inflight op;
};

struct inflight_walk {
	uint32_t count;
	uint32_t left_out; /* the youngest, beyond INFLIGHT_WALK_MAX */
	/* Oldest first; the second half is room to sort in. */
	struct inflight_item items[2 * INFLIGHT_WALK_MAX];
	_Alignas(8) unsigned char keys[INFLIGHT_BATCH * sizeof(uint64_t)];
	_Alignas(8) unsigned char values[INFLIGHT_BATCH * INFLIGHT_VALUE_MAX];
};

/* Those of pairs, with room for `max` threads; 64 bytes each, and half as many in the hash. */
int inflight_pairs_new(uint64_t max, struct inflight_map *ret_map);
void inflight_pairs_close(struct inflight_map *map);

/* All operations in flight for at least min_age_ns; 0 or a negative errno of the map. */
int inflight_collect(const struct inflight_map *map, uint64_t now_ns, uint64_t min_age_ns,
	struct inflight_walk *ret_walk);

/* One entry; false when there is none of the key or it is not in flight. */
bool inflight_find(const struct inflight_map *map, uint64_t key, struct event_inflight *ret_op);

enum inflight_verdict {
	INFLIGHT_BLOCKED, /* the thread sleeps in this very call */
	INFLIGHT_RUNNING, /* on a CPU just now: neither proved nor disproved */
	INFLIGHT_STALE,	  /* the thread has ended or is elsewhere: the return was missed */
};

/* The pure part, and the one that reads /proc. */
struct thread_syscall;
enum inflight_verdict inflight_judge(const struct event_inflight *op, const struct thread_syscall *call);
enum inflight_verdict inflight_check(int procfs_fd, const struct inflight_item *item);

/* Takes all entries out; only while nothing is attached. */
int inflight_clear(const struct inflight_map *map);

#endif
