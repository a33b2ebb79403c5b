/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The maps that all BPF objects share: the ring buffer, the loss counters, the filters, what is in flight.
 * Made once by the session and lent to each object at load, so a reload loses nothing.
 * Never touched by the probes' own user side.
 */
#ifndef IOSTALL_PROBES_MAPS_H
#define IOSTALL_PROBES_MAPS_H

#include <stdint.h>

#include "iostall/event.h"
#include "snapshot/inflight.h"

struct bpf_object;

struct trace_maps {
	int events;
	int losses;
	int filter_pids;
	int filter_devs;
	int filter_cgroups;
	int filter_cgroup_ids; /* the same by number, for threads that are not the current one */
	struct inflight_map inflight; /* of all pairing probes together */
	int sleeps;   /* struct event_sleep by thread id: of `wait`, and taken over by those */
	int faults;   /* struct event_fault by thread id: of `fault`, for `wait` */
	int thread_files;
	/* What filter_fill() did not find the last time: a bit for each item of the setting. */
	uint32_t missing_devices;
	uint32_t missing_cgroups;
};

#define TRACE_MAPS_NONE                                                                            \
	((struct trace_maps){ .events = -1,                                                        \
		.losses = -1,                                                                      \
		.filter_pids = -1,                                                                 \
		.filter_devs = -1,                                                                 \
		.filter_cgroups = -1,                                                              \
		.filter_cgroup_ids = -1,                                                           \
		.inflight = INFLIGHT_MAP_NONE,                                                                    \
		.sleeps = -1,                                                                      \
		.faults = -1,                                                                      \
		.thread_files = -1 })

int trace_maps_new(uint64_t ring_bytes, uint64_t inflight_max, struct trace_maps *ret_maps);
void trace_maps_close(struct trace_maps *maps);

/* To be called between open and load; maps that the object does not have are passed over. */
int trace_maps_lend(const struct trace_maps *maps, struct bpf_object *object);

/* Sums over CPUs, since the maps were made. */
int trace_maps_read_losses(const struct trace_maps *maps, uint64_t ret_losses[EVENT_LOSS_COUNT]);

/* Removing what is not there is no error. */
int trace_maps_add_pid(const struct trace_maps *maps, uint32_t pid);
int trace_maps_remove_pid(const struct trace_maps *maps, uint32_t pid);
int trace_maps_add_dev(const struct trace_maps *maps, uint32_t major, uint32_t minor);
int trace_maps_clear_devs(const struct trace_maps *maps);
/* Directory in a cgroup2 hierarchy; index below the EVENT_FILTER_CGROUPS_MAX. */
int trace_maps_set_cgroup(const struct trace_maps *maps, uint32_t index, int cgroup_fd);
int trace_maps_clear_cgroup(const struct trace_maps *maps, uint32_t index);

#endif
