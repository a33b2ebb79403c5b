/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the processes to watch by name, pid or unit.
 * Used by the watch room, and by the session for the filter trace.process.
 * Never opens a file of a process that takes its mmap_lock (cmdline, environ, maps, smaps).
 */
#ifndef IOSTALL_WATCH_PROCESSES_H
#define IOSTALL_WATCH_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "watch/clocks.h"
#include "watch/dents.h"
#include "watch/parsers.h"

/* One PostgreSQL connection is one process, and 100 connections are its default. */
#define WATCH_PROCESSES_MAX 256

struct watch_process {
	int32_t pid;
	bool cgroup_known;	    /* cgroups_learn() has looked it up */
	char comm[WATCH_COMM_SIZE]; /* raw */
};

/* A set of pids. At most three quarters of its slots are used; further pids are not added. */
#define PROCESSES_SEEN_SLOTS 8192

struct pid_set {
	uint32_t count;
	int32_t slots[PROCESSES_SEEN_SLOTS];
};

struct processes {
	int procfs_fd;
	int dir_fd; /* /proc, for the scan */
	bool armed; /* at the last call of processes_scan() */
	bool scanning;
	bool scanned_once;
	uint64_t scan_started_ns;
	uint64_t seen_since_ns;
	bool changed; /* processes came or went of which a scan must find out more */
	/* The newest id in the pid namespace at the last two calls of processes_scan(); 0: none. */
	int32_t newest_id[2];
	/* The newest id when this scan began, and the one before; 0: not known. */
	int32_t scan_newest_id[2];
	struct config_list patterns;
	uint32_t count;
	uint32_t checked;	/* processes of the list that processes_check() has looked at */
	uint32_t left_out;	/* by the last complete scan */
	uint32_t left_out_now;	/* by the current scan */
	unsigned int seen;	/* index of the set of the last complete scan */
	struct pid_set sets[2]; /* and the one that the current scan fills */
	struct dents dents;
	struct watch_process list[WATCH_PROCESSES_MAX];
};

/* procfs_fd stays the caller's; the list is copied. 0 or a negative errno. */
int processes_init(struct processes *p, int procfs_fd, const struct config_list *patterns);
void processes_done(struct processes *p);

/* Sets other patterns. The next scan, which begins at once, goes by them. */
void processes_set_patterns(struct processes *p, const struct config_list *patterns);

/*
 * Looks at the processes that are new since the last calls, begins a scan of /proc when one is due,
 * and continues it until deadline_ns. With `armed` all are looked at again from the first such call
 * on, and it reads no file that takes a lock of the cgroup tree, so that new processes of a unit
 * are not found then.
 */
void processes_scan(struct processes *p, const struct watch_clock *clock, uint64_t deadline_ns,
	bool armed);

/*
 * Removes processes that have ended, and those that have another name now and do not match any
 * more: looks at a few of them, each in its turn. For lists whose threads nobody scans.
 */
void processes_check(struct processes *p, bool armed);

/*
 * A process of the list has another name: it has executed another program or named itself, or its
 * pid is another process's. False: it does not match any more, and the caller is to remove it. With
 * `armed` units are not asked, and where a pattern is one, the process stays.
 */
bool processes_rename(struct processes *p, uint32_t index, const char *comm, bool armed);

/* Removes a process that has gone; a scan for its successor begins soon. */
void processes_remove(struct processes *p, uint32_t index);

#endif
