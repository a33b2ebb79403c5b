/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much of their memory limit the control groups of watched processes hold.
 * Used by the watch room only.
 * Never opens a file while an incident is open: /proc/PID/cgroup takes a lock that may be held for long.
 */
#ifndef IOSTALL_WATCH_CGROUPS_H
#define IOSTALL_WATCH_CGROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/parse.h"
#include "watch/processes.h"
#include "watch/sample.h"

/* Those of the processes and all above them, each counted once. */
#define WATCH_CGROUPS_MAX 16
/* Growth is measured over six to seven steps of 10 s. */
#define CGROUPS_PAST_MAX 7
#define CGROUPS_PAST_STEP_NS (10 * NSEC_PER_SEC)

struct cgroups_past {
	uint64_t ns;
	uint64_t held_bytes;
};

struct cgroups_slot {
	bool used;
	bool limited; /* else there is nothing to judge */
	bool v1;
	uint32_t serial;
	uint64_t path_hash;
	int limit_fd;
	int current_fd;
	int stat_fd;
	uint64_t past_taken; /* so many went into the ring */
	struct cgroups_past past[CGROUPS_PAST_MAX];
	struct watch_cgroup view;
};

struct cgroups {
	int procfs_fd;
	int sysfs_fd;
	uint32_t serial;
	uint32_t left_out; /* by the table */
	struct cgroups_slot slots[WATCH_CGROUPS_MAX];
};

/* The descriptors stay the caller's. */
void cgroups_init(struct cgroups *c, int procfs_fd, int sysfs_fd);
void cgroups_done(struct cgroups *c);
/* Forgets all: other processes are watched from now on. */
void cgroups_reset(struct cgroups *c);

/* Looks up where a few of the processes are that have not been looked at. Only while nothing is armed. */
void cgroups_learn(struct cgroups *c, struct processes *processes);

/* Reads all; buf is for one file at a time. */
void cgroups_update(struct cgroups *c, uint64_t now_ns, char *buf, size_t size);

/* Those nearest to their limit. */
void cgroups_fill_limits(const struct cgroups *c, struct watch_limits *limits);

/* The path in /proc/PID/cgroup that counts memory: of v1 where that has it. 0 or -ENOENT. Pure. */
int cgroups_parse_path(const char *buf, size_t len, struct cursor *ret_path, bool *ret_v1);

/*
 * What of a cgroup's memory the kernel could give back at once, from memory.stat: file pages, and the
 * slab's share. A database that reads through the page cache fills any limit with them. Pure.
 */
uint64_t cgroups_parse_reclaimable(const char *buf, size_t len);

#endif
