/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The maps of the BPF objects: the ring buffer, the loss counters, the filters, the operations in
 * flight, the tables. A set of probes has them before its objects are loaded, and a set that
 * replaces it takes them over, so that a reload needs no second room for them.
 * Called by set.c, probe.c, filter.c, the session and tests.
 * Never written by the user side of a single probe.
 */
#ifndef IOSTALL_PROBES_MAPS_H
#define IOSTALL_PROBES_MAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "iostall/event.h"

struct bpf_object;

/*
 * Up to 6.16 each CPU that inserts into an LRU map takes 128 free entries for itself
 * (LOCAL_FREE_TARGET of kernel/bpf/bpf_lru_list.c) and never gives them back. The CPU after the
 * last that found some has a single one, in which each insertion replaces the one before.
 */
#define TRACE_MAPS_LRU_ROOM(cpus) (128 * (uint64_t)(cpus))

/*
 * MAP(owner, name, type, key size, value size, entries): the BPF side declares each under the same
 * name. SHARED: sets of probes that are loaded at the same time may share it. OWN: each set has its
 * own. `sizes` are those of trace_maps_new().
 */
#define TRACE_MAPS(MAP)                                                                            \
	MAP(SHARED, events, RINGBUF, 0, 0, sizes->ring_bytes)                                      \
	MAP(SHARED, losses, PERCPU_ARRAY, sizeof(uint32_t), sizeof(uint64_t), EVENT_LOSS_COUNT)    \
	MAP(OWN, filter_pids, HASH, sizeof(uint32_t), sizeof(uint8_t), sizes->filter_pids)         \
	MAP(OWN, filter_devs, HASH, sizeof(uint32_t), sizeof(uint8_t), sizes->filter_devs)         \
	MAP(OWN, filter_cgroups, CGROUP_ARRAY, sizeof(uint32_t), sizeof(uint32_t),                 \
		EVENT_FILTER_CGROUPS_MAX)                                                          \
	/* The same cgroups by number, for threads that are not the current one. */                \
	MAP(OWN, filter_cgids, ARRAY, sizeof(uint32_t), sizeof(uint64_t),                          \
		EVENT_FILTER_CGROUPS_MAX)                                                          \
	/* By thread id: `wait` writes it, `vfs` and `sync` end an operation in it. */             \
	MAP(SHARED, sleeps, HASH, sizeof(uint32_t), sizeof(struct event_sleep),                    \
		sizes->inflight_max)                                                               \
	MAP(SHARED, sleep_marks, ARRAY, sizeof(uint32_t), sizeof(struct event_sleep_marks), 1)     \
	/* By thread and descriptor, with probe.vfs.pairing = entry: `vfs` writes it. */           \
	MAP(SHARED, vfs_calls, HASH, sizeof(uint64_t), sizeof(struct event_call),                  \
		sizes->vfs_calls)                                                                  \
	/* By thread id: `fault` and `sync` write it, `wait` reads it soon after. */               \
	MAP(SHARED, faults, LRU_HASH, sizeof(uint32_t), sizeof(struct event_fault),                \
		sizes->inflight_max / 2 + TRACE_MAPS_LRU_ROOM(sizes->cpus))                        \
	/* By thread id: `uring` and `aio` write it, `block` reads it. */                          \
	MAP(SHARED, thread_files, LRU_HASH, sizeof(uint32_t), sizeof(struct event_thread_file),    \
		EVENT_THREAD_FILES_MAX + TRACE_MAPS_LRU_ROOM(sizes->cpus))                         \
	/* By thread id, and by what it waits for: of `offcpu`. */                                 \
	MAP(SHARED, offcpu_threads, HASH, sizeof(uint32_t), sizeof(struct event_offcpu_thread),    \
		sizes->inflight_max)                                                               \
	MAP(SHARED, offcpu_kinds, HASH, sizeof(struct event_offcpu_key),                           \
		sizeof(struct event_offcpu), EVENT_OFFCPU_KINDS_MAX)                               \
	MAP(SHARED, offcpu_stacks, HASH, sizeof(struct event_offcpu_key),                          \
		sizeof(struct event_offcpu_stack), EVENT_OFFCPU_STACKS_MAX)                        \
	MAP(SHARED, offcpu_wakers, HASH, sizeof(struct event_offcpu_key),                          \
		sizeof(struct event_offcpu_waker), sizes->offcpu_wakers)                           \
	/* Of one probe each. Requests need not have a thread each, and three maps have them. */   \
	MAP(SHARED, uring_requests, HASH, sizeof(uint64_t), sizeof(struct event_request),          \
		sizes->inflight_max / 4)                                                           \
	MAP(SHARED, aio_requests, HASH, sizeof(uint64_t), sizeof(struct event_request),            \
		sizes->inflight_max / 4)                                                           \
	MAP(SHARED, block_requests, HASH, sizeof(uint64_t), sizeof(struct event_block_request),    \
		sizes->inflight_max / 2)                                                           \
	MAP(SHARED, devices, HASH, sizeof(uint32_t), sizeof(struct event_block_device),            \
		EVENT_BLOCK_DEVICES_MAX)                                                           \
	MAP(SHARED, threads, HASH, sizeof(struct event_block_thread_key),                          \
		sizeof(struct event_block_thread), EVENT_BLOCK_THREADS_MAX)                        \
	MAP(SHARED, files, HASH, sizeof(struct event_block_file_key),                              \
		sizeof(struct event_block_file), EVENT_BLOCK_FILES_MAX)                            \
	MAP(SHARED, cgroups, HASH, sizeof(uint64_t), sizeof(struct event_block_cgroup),            \
		EVENT_BLOCK_CGROUPS_MAX)                                                           \
	MAP(SHARED, dirtiers, LRU_HASH, sizeof(struct event_block_file_key),                       \
		sizeof(struct event_block_dirtier),                                                \
		EVENT_BLOCK_DIRTIERS_MAX + TRACE_MAPS_LRU_ROOM(sizes->cpus))                       \
	MAP(SHARED, flushers, LRU_HASH, sizeof(uint64_t), sizeof(struct event_block_flusher),      \
		EVENT_BLOCK_FLUSHERS_MAX + TRACE_MAPS_LRU_ROOM(sizes->cpus))

/* Of a filter that is not set the map has one entry: the kernel makes none that is empty. */
struct trace_maps_sizes {
	uint64_t ring_bytes;
	uint64_t inflight_max;
	uint32_t filter_pids;
	uint32_t filter_devs;
	uint64_t vfs_calls;	/* 1: they are not noted */
	uint32_t offcpu_wakers; /* 1: they are not noted */
	uint32_t cpus;
};

/* What filter_fill() knows of the last time. */
struct trace_filter_state {
	uint8_t filling; /* its number, which the entries of devices have as their value */
	/* The items that it did not find, a bit for each. */
	uint32_t missing_devices;
	uint32_t missing_cgroups;
	bool devices_left_out; /* there was no room for all that stands on the disks */
};

struct trace_maps {
#define MAP(owner, name, ...) int name;
	TRACE_MAPS(MAP)
#undef MAP
	struct trace_filter_state filter;
	uint32_t cpus;	      /* those that the LRU maps have room for */
	uint64_t *cpu_values; /* room for trace_maps_read_losses() */
};

#define TRACE_MAP_NONE(owner, name, ...) .name = -1,
#define TRACE_MAPS_NONE ((struct trace_maps){ TRACE_MAPS(TRACE_MAP_NONE) })

/* `shared`: whose shared maps are taken, which must be of the same size. NULL: all are new. */
int trace_maps_new(const struct trace_maps_sizes *sizes, const struct trace_maps *shared,
	struct trace_maps *ret_maps);
/* Copies the descriptors of the shared maps; the others are -1. 0 or a negative errno. */
int trace_maps_share(const struct trace_maps *maps, struct trace_maps *ret_maps);
void trace_maps_close(struct trace_maps *maps);

/* Whether there is a map of that name. */
bool trace_maps_have(const char *name);
/* What the maps have of the kernel's memory. */
uint64_t trace_maps_bytes(const struct trace_maps *maps);
/* Of one map or program, by its descriptor; 0 when the kernel does not say it. */
uint64_t trace_fd_bytes(int fd);

/* To be called between open and load; skips the maps that the object does not have. */
int trace_maps_reuse(const struct trace_maps *maps, struct bpf_object *object);

/* Sums over all CPUs, counted since the maps were created. */
int trace_maps_read_losses(const struct trace_maps *maps, uint64_t ret_losses[EVENT_LOSS_COUNT]);

/* Removing an entry that does not exist is no error. */
int trace_maps_add_pid(const struct trace_maps *maps, uint32_t pid);
int trace_maps_remove_pid(const struct trace_maps *maps, uint32_t pid);
int trace_maps_add_dev(const struct trace_maps *maps, uint32_t major, uint32_t minor);
/* Those that have not been added in this filling. */
int trace_maps_remove_old_devs(const struct trace_maps *maps);
/* cgroup_fd is a directory of a cgroup2 hierarchy, index is below EVENT_FILTER_CGROUPS_MAX. */
int trace_maps_set_cgroup(const struct trace_maps *maps, uint32_t index, int cgroup_fd);
int trace_maps_clear_cgroup(const struct trace_maps *maps, uint32_t index);

#endif
