/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The CPU limits of the control groups of watched processes (cpu.max, cpu.cfs_quota_us), and how
 * much they held the threads of these groups back.
 * Used by the watch room only.
 * Never opens a file while an incident is open.
 */
#ifndef IOSTALL_WATCH_CPU_LIMITS_H
#define IOSTALL_WATCH_CPU_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/structs.h"
#include "watch/cgroup_parse.h"
#include "watch/cgroup_stats.h"
#include "watch/processes.h"

/* The control groups of the processes and all above them, each counted once. */
#define CPU_LIMITS_GROUPS_MAX CGROUP_STATS_GROUPS_MAX
#define CPU_LIMITS_FILES 4

struct cpu_limits_group {
	bool used;
	bool limited; /* false: it has no limit, so there is nothing to judge */
	bool v1;
	uint32_t serial;
	uint64_t path_hash;
	/*
	 * Version 2: cpu.max; cgroup_stats.h reads cpu.stat. Version 1: quota, cpu.stat, period and
	 * cpuacct.usage, for which the kernel takes no lock.
	 */
	int fds[CPU_LIMITS_FILES];
	uint64_t before_ns; /* 0: there is no reading to compare with */
	struct cgroup_cpu_counts before;
	/* held_back_pct is NAN where no new counters are known; then only the limit counts. */
	struct record_cpu_limited view;
};

struct cpu_limits {
	uint32_t left_out; /* groups that found the table full */
	uint32_t serial;
	struct cpu_limits_group groups[CPU_LIMITS_GROUPS_MAX];
};

/* Forgets all control groups, because other processes are watched from now on. */
void cpu_limits_reset(struct cpu_limits *l);

/* Adds the groups of a process: buf is the text of its /proc/PID/cgroup. */
void cpu_limits_learn(struct cpu_limits *l, struct cgroup_stats *stats, int sysfs_fd,
	struct processes *processes, int32_t pid, const char *buf, size_t len);

/*
 * Reads all limits, takes what they did by the last answer, and asks again. buf holds one file at a
 * time.
 */
void cpu_limits_update(struct cpu_limits *l, struct cgroup_stats *stats, uint64_t now_ns, char *buf,
	size_t size);

/* Those that held their threads back most, of which it is known how much. */
void cpu_limits_fill(const struct cpu_limits *l, struct record_limits *limits);

/* Of the groups that a process is in, the one that held its threads back most; NULL: none. */
const struct record_cpu_limited *cpu_limits_find(const struct cpu_limits *l,
	const struct watch_process *process);

#endif
