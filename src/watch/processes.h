/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which processes are watched: found by name, pid or unit, told apart from later users of a pid.
 * Used by the watch room only.
 * Never opens a file of a process that takes its mmap_lock (cmdline, environ, maps, smaps).
 */
#ifndef IOSTALL_WATCH_PROCESSES_H
#define IOSTALL_WATCH_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "config.h"
#include "watch/clocks.h"
#include "watch/dents.h"
#include "watch/parsers.h"

/* One PostgreSQL connection is one process, and 100 connections are its default. */
#define WATCH_PROCESSES_MAX 256

struct watch_process {
	int32_t pid;
	bool cgroup_known; /* was looked up once: by cgroups_learn() */
	uint64_t start_ticks;	    /* field 22 of /proc/PID/stat */
	char comm[WATCH_COMM_SIZE]; /* raw */
};

/* A set of pids; three quarters of its slots are used at most, beyond that it takes no more. */
#define PROCESSES_SEEN_SLOTS 16384

struct pid_set {
	uint32_t count;
	int32_t slots[PROCESSES_SEEN_SLOTS];
};

struct processes {
	int procfs_fd;
	int dir_fd; /* of the walk over /proc */
	bool walking;
	bool walked_once;
	uint64_t walk_started_ns;
	uint64_t seen_since_ns;
	bool vanished; /* one of ours, since the last walk began */
	struct config_list patterns;
	uint32_t count;
	uint32_t left_out;	/* by the last whole walk */
	uint32_t left_out_now;	/* by the walk under way */
	unsigned int seen;	/* index of the set of the last whole walk */
	struct pid_set sets[2]; /* and the one that the walk under way fills */
	struct dents dents;
	struct watch_process list[WATCH_PROCESSES_MAX];
};

/* procfs_fd stays the caller's; the list is copied. 0 or a negative errno. */
int processes_init(struct processes *p, int procfs_fd, const struct config_list *patterns);
void processes_done(struct processes *p);

/* Watches what other patterns say from the next walk on, which begins at once. */
void processes_set_patterns(struct processes *p, const struct config_list *patterns);

/*
 * Begins a walk over /proc when one is due and takes it forward until deadline_ns. With `armed`
 * nothing is asked that takes a lock of the cgroup tree.
 */
void processes_walk(
	struct processes *p, const struct watch_clock *clock, uint64_t deadline_ns, bool armed);

/* Forgets an entry that is gone; a walk for its successor begins soon. */
void processes_remove(struct processes *p, uint32_t index);

#endif
