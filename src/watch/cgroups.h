/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much memory the control groups of watched processes hold, compared with their limit, and what
 * they read again for want of memory; io_limits.h and cpu_limits.h have their other limits.
 * Used by the watch room; doctor reads the slots through watch.h.
 * Never opens /proc/PID/cgroup or memory.stat itself: see cgroup_reader.h and cgroup_stats.h.
 */
#ifndef IOSTALL_WATCH_CGROUPS_H
#define IOSTALL_WATCH_CGROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/parse.h"
#include "watch/cgroup_reader.h"
#include "watch/cgroup_stats.h"
#include "watch/cpu_limits.h"
#include "watch/freezers.h"
#include "watch/io_limits.h"
#include "watch/processes.h"
#include "watch/refaults.h"
#include "record/structs.h"

/* The control groups of the processes and all their ancestors, each counted once. */
#define WATCH_CGROUPS_MAX 16
/* Growth is measured over the last 60 to 70 s. */
#define CGROUPS_PAST_MAX 7
#define CGROUPS_PAST_STEP_NS (10 * NSEC_PER_SEC)

struct cgroups_past {
	uint64_t ns;
	uint64_t held_bytes;
};

/* What the loop read when it last asked for memory.stat, for the answer to be compared with. */
struct cgroups_asked {
	uint64_t current_bytes;
	uint64_t limit_hits;
};

/* The counters of a control group. */
struct cgroups_counts {
	struct refaults refaults;
	uint64_t limit_hits;
	uint64_t oom_kills;
};

struct cgroups_slot {
	bool used;
	bool limited; /* false: it has no limit, so there is nothing to judge */
	bool v1;
	uint32_t serial;
	uint64_t path_hash;
	int limit_fd;
	int high_fd; /* -1: version 1 has no such limit */
	int current_fd;
	int events_fd;
	int kills_fd; /* -1: version 2, which has them in the same file */
	bool has_before;
	bool has_kills; /* those before are known */
	struct cgroups_counts before;
	struct cgroups_asked asked;
	uint64_t past_taken; /* how many readings have been put into `past`, which is a ring */
	struct cgroups_past past[CGROUPS_PAST_MAX];
	/*
	 * used_pct is NAN where no new memory.stat is known; then no other number of it counts but
	 * the limit and the kills, which are those since it was.
	 */
	struct record_cgroup view;
};

struct cgroups {
	int sysfs_fd;
	struct cgroup_reader reader;
	uint32_t serial;
	uint32_t left_out; /* control groups that found the table full */
	uint64_t asked_again_ns;
	struct cgroups_slot slots[WATCH_CGROUPS_MAX];
	struct cgroup_stats stats;
	struct io_limits io;
	struct cpu_limits cpu;
	struct freezers freezers;
};

/* The descriptors stay the caller's, and must stay open. 0 or a negative errno. */
int cgroups_init(struct cgroups *c, int procfs_fd, int sysfs_fd);
void cgroups_done(struct cgroups *c);
/* Forgets all control groups, because other processes are watched from now on. */
void cgroups_reset(struct cgroups *c);

/*
 * Takes the control groups of the processes that the last call has asked for, and has those of a
 * few others read, of each again after some time. Only called while no incident is open.
 */
void cgroups_learn(struct cgroups *c, struct processes *processes, uint64_t now_ns);
/* Whether they are still being read. */
bool cgroups_are_learning(const struct cgroups *c);

/*
 * Reads all control groups, behind the disks, but for their counters: takes those that a thread has
 * read since the last call, and has it read them again. buf holds one file at a time.
 */
void cgroups_update(struct cgroups *c, const struct disks *disks, const struct watch_clock *clock,
	bool armed, char *buf, size_t size);

/*
 * Of those whose counters are known: those that read most again because they were at their limits,
 * and then the ones nearest to their limits; the I/O limits that most was used of, and the CPU
 * limits that held most back.
 */
void cgroups_fill_limits(const struct cgroups *c, const struct disks *disks,
	struct record_limits *limits);

/*
 * How often the control group was at its limits and how many processes were killed for it, from
 * memory.events.local or, in version 1, memory.failcnt, which is one number, and
 * memory.oom_control. Pure.
 */
void cgroups_parse_events(const char *buf, size_t len, struct cgroups_counts *counts);

#endif
