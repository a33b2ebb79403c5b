/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The I/O limits of the control groups of watched processes (io.max, blkio.throttle.*), and how
 * much of them was used: cgroup_stats.h reads that.
 * Used by the watch room only.
 * Never opens a file while an incident is open, and never adds groups up.
 */
#ifndef IOSTALL_WATCH_IO_LIMITS_H
#define IOSTALL_WATCH_IO_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/structs.h"
#include "watch/cgroup_parse.h"
#include "watch/cgroup_stats.h"
#include "watch/disks.h"

/* The control groups of the processes and all above them, each counted once. */
#define IO_LIMITS_GROUPS_MAX CGROUP_STATS_GROUPS_MAX
#define IO_LIMITS_FILES 4

struct io_limits_device {
	uint32_t major;
	uint32_t minor;
	struct cgroup_io_values per_s;
	struct cgroup_io_values before; /* the counters of the last reading */
	uint64_t before_ns;		/* 0: there is none */
	double used_pct;		/* of the limit that it came nearest to, `nearest` */
	enum record_io_limit nearest;
};

struct io_limits_group {
	bool used;
	bool v1;
	uint64_t id; /* 0: not known */
	uint64_t path_hash;
	uint64_t before_ns; /* version 1: of the last sample */
	/* Version 2: io.max. Version 1: one for each limit. */
	int fds[IO_LIMITS_FILES];
	uint32_t devices_count;
	struct io_limits_device devices[CGROUP_STATS_DEVICES_MAX];
	char path[RECORD_SUBJECT_SIZE];
};

struct io_limits {
	uint32_t left_out; /* groups that found the table full */
	struct io_limits_group groups[IO_LIMITS_GROUPS_MAX];
};

/* Forgets all control groups, because other processes are watched from now on. */
void io_limits_reset(struct io_limits *l);

/*
 * Adds the groups of a process: buf is the text of its /proc/PID/cgroup. Limits of version 1 are
 * not handed down, so there it is one group.
 */
void io_limits_learn(struct io_limits *l, struct cgroup_stats *stats, int sysfs_fd, const char *buf,
	size_t len);

/*
 * Reads all limits, takes what was used of them by the last answer, and asks again. In version 1
 * groups have no counters of what the limit let through, so there it is what the whole device did.
 * buf holds one file at a time.
 */
void io_limits_update(struct io_limits *l, struct cgroup_stats *stats, const struct disks *disks,
	uint64_t now_ns, char *buf, size_t size);

/* Those that most was used of. */
void io_limits_fill(const struct io_limits *l, const struct disks *disks,
	struct record_limits *limits);

#endif
