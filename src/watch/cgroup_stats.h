/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads the counters of control groups (memory.stat, and io.stat and cpu.stat of version 2) on a
 * thread that may hang: before the kernel answers it adds up those of all CPUs and of all groups
 * below, under a lock that others hold for as long.
 * Used by cgroups.c, io_limits.c and cpu_limits.c, on the event loop.
 * Never waits; a thread that hangs is left behind and replaced, a bounded number of times, and only
 * while no incident is open.
 */
#ifndef IOSTALL_WATCH_CGROUP_STATS_H
#define IOSTALL_WATCH_CGROUP_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "util/renewable_worker.h"
#include "watch/cgroup_parse.h"
#include "watch/cgroup_path.h"
#include "watch/clocks.h"
#include "watch/refaults.h"

enum cgroup_stats_kind {
	CGROUP_STATS_MEMORY,
	CGROUP_STATS_IO,
	CGROUP_STATS_CPU,
	CGROUP_STATS_KINDS,
};

/* Groups of each kind. */
#define CGROUP_STATS_GROUPS_MAX 16
/* Devices that one group has limits for; more are not looked at. */
#define CGROUP_STATS_DEVICES_MAX 4
#define CGROUP_STATS_FILES_MAX (CGROUP_STATS_KINDS * CGROUP_STATS_GROUPS_MAX)
/* A group with a longer path is left out. */
#define CGROUP_STATS_PATH_SIZE 1024

struct cgroup_stats_memory {
	uint64_t reclaimable_bytes; /* see cgroup_parse_reclaimable() */
	struct refaults refaults;
};

struct cgroup_stats_device {
	uint32_t major;
	uint32_t minor;
	bool found; /* it has counters */
	struct cgroup_io_values counters;
};

/* The number of devices and which they are is the question, the rest the answer. */
struct cgroup_stats_io {
	uint32_t devices_count;
	struct cgroup_stats_device devices[CGROUP_STATS_DEVICES_MAX];
};

struct cgroup_stats_reading {
	uint64_t ns; /* when it was read, by the clock of the watch room; 0: it cannot be read */
	union {
		struct cgroup_stats_memory memory;
		struct cgroup_stats_io io;
		struct cgroup_cpu_counts cpu;
	};
};

struct cgroup_stats_file {
	uint32_t generation; /* another one each time that the group of the slot is another one */
	bool has_answer;     /* it has come since the last sample */
	char path[CGROUP_STATS_PATH_SIZE];
};

/* What a thread hangs in, by its place in the worker. */
struct cgroup_stats_hung {
	unsigned int file;
	uint32_t generation;
};

struct cgroup_stats {
	struct renewable_worker worker;
	bool is_asking;	    /* the thread has nothing to do, so this sample may ask */
	unsigned int taken; /* files of the present reading whose answers samples have had */
	bool lacks;	    /* this sample lacks what a thread hangs in */
	uint64_t late;	    /* samples that did */
	struct cgroup_stats_file files[CGROUP_STATS_FILES_MAX];
	struct cgroup_stats_hung hung[RENEWABLE_WORKER_HUNG_MAX];
};

/* sysfs_fd must stay open. 0 or a negative errno. */
int cgroup_stats_init(struct cgroup_stats *s, int sysfs_fd);
/* Returns at once. One of zeros is accepted. */
void cgroup_stats_done(struct cgroup_stats *s);

/*
 * The group of a slot of this kind, 0 to CGROUP_STATS_GROUPS_MAX - 1, is this one from now on. 0 or
 * -ENAMETOOLONG.
 */
int cgroup_stats_set(struct cgroup_stats *s, enum cgroup_stats_kind kind, unsigned int slot,
	const struct cgroup_path *path);

/*
 * Around the calls of the next two functions for one sample. The second begins the next reading,
 * unless the last one has not ended. `armed`: an incident is open, so no thread is started.
 */
void cgroup_stats_begin(struct cgroup_stats *s, const struct watch_clock *clock, bool armed);
void cgroup_stats_end(struct cgroup_stats *s);

/*
 * What was read of a slot and not taken in an earlier sample; NULL: that is not known. Valid until
 * it is asked for again.
 */
const struct cgroup_stats_reading *cgroup_stats_take(struct cgroup_stats *s,
	enum cgroup_stats_kind kind, unsigned int slot);
/*
 * Has a slot read when the sample ends; the caller says in the reading which devices it wants.
 * NULL: it is not read, because the last reading has not ended or a thread hangs in this file.
 */
struct cgroup_stats_reading *cgroup_stats_ask(struct cgroup_stats *s, enum cgroup_stats_kind kind,
	unsigned int slot);

/* Whether the thread reads. */
bool cgroup_stats_is_busy(const struct cgroup_stats *s);

#endif
