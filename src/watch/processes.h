/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the processes to watch by name, pid or unit.
 * Used by the watch room, and by the session for the filter trace.process.
 * Never opens a file of a process that takes its mmap_lock (cmdline, environ, maps, smaps) or
 * cgroup_mutex (cgroup).
 */
#ifndef IOSTALL_WATCH_PROCESSES_H
#define IOSTALL_WATCH_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "watch/clocks.h"
#include "watch/dents.h"
#include "watch/parsers.h"
#include "watch/pid_set.h"
#include "watch/unit_reader.h"

/*
 * One PostgreSQL connection is one process. 100 connections are its default, and large servers
 * allow more than a thousand.
 */
#define WATCH_PROCESSES_MAX 2048
#define PROCESSES_INDEX_SLOTS (2 * WATCH_PROCESSES_MAX)

struct watch_process {
	int32_t pid;
	uint64_t cgroup_asked_ns;   /* when cgroups_learn() had it looked up; 0: not yet */
	bool has_left;		    /* its unit is another one: it is to be removed */
	bool renamed;		    /* it stays while its unit is not known */
	char comm[WATCH_COMM_SIZE]; /* raw */
	uint16_t cpu_groups;	    /* that it is in: bits, as cpu_limits.h numbers them */
	uint32_t scan;		    /* number of the scan that found it last */
	uint64_t freezer_hash;	    /* of the group that can freeze it; 0: none, or not known */
	uint64_t freezer_ns;	    /* when it was in that group, at least */
	bool is_frozen;		    /* that group is frozen */
};

struct processes {
	int procfs_fd;
	int dir_fd;	      /* /proc, for the scan */
	int new_fd;	      /* and for new processes */
	bool has_order;	      /* it is a real one, whose entries are in the order of their ids */
	int64_t place_of_ids; /* of a process in it, beside its id, by the last scan */
	bool armed;	      /* at the last call of processes_scan() */
	bool scanning;
	bool scanned_once;
	uint64_t scan_started_ns;
	uint64_t seen_since_ns;
	bool changed;	/* processes came or went of which a scan must find out more */
	uint32_t scans; /* that have begun */
	/* The newest id in the pid namespace at the last two calls of processes_scan(); 0: none. */
	int32_t newest_id[2];
	/* The newest id when this scan began, and the one before; 0: not known. */
	int32_t scan_newest_id[2];
	struct config_list patterns;
	bool has_units; /* one of them is "unit:NAME" */
	struct unit_reader units;
	uint32_t count;
	uint32_t checked;	/* processes of the list that processes_check() has looked at */
	uint32_t left_out;	/* by the last complete scan */
	uint32_t left_out_now;	/* by the current scan */
	unsigned int seen;	/* index of the set of the last complete scan */
	struct pid_set sets[2]; /* and the one that the current scan fills */
	struct dents dents;
	struct watch_process list[WATCH_PROCESSES_MAX];
	bool index_stale;		       /* the list has lost processes since it was made */
	uint16_t index[PROCESSES_INDEX_SLOTS]; /* hash table by pid of place in the list + 1 */
};

/* procfs_fd stays the caller's; the list is copied. 0 or a negative errno. */
int processes_init(struct processes *p, int procfs_fd, const struct config_list *patterns);
void processes_done(struct processes *p);

/* Sets other patterns, by which the next scan begins at once. False: they are the same. */
bool processes_set_patterns(struct processes *p, const struct config_list *patterns);

/*
 * Looks at the processes that are new since the last calls, begins a scan of /proc when one is due,
 * and continues it until deadline_ns. With `armed` all are looked at again from the first such call
 * on. Which unit a process belongs to is read by a thread, so that it is in the list after the next
 * call at the earliest.
 */
void processes_scan(struct processes *p, const struct watch_clock *clock, uint64_t deadline_ns,
	bool armed);

/* The next calls of processes_scan() will learn of processes which unit they belong to. */
bool processes_want_units(const struct processes *p);

/*
 * Removes processes that the last complete scan did not find, and those that have another name or
 * unit now and do not match any more: looks at some of them, each in its turn. For lists whose
 * threads nobody scans.
 */
void processes_check(struct processes *p);

/*
 * A process of the list has another name: it has executed another program or named itself, or its
 * pid is another process's; is_running: it is a process that has not ended. False: it does not
 * match any more, and the caller is to remove it. Where a pattern is a unit it stays until its unit
 * is known.
 */
bool processes_rename(struct processes *p, uint32_t index, const char *comm, bool is_running);

/* Removes a process that has gone; a scan for its successor begins soon. */
void processes_remove(struct processes *p, uint32_t index);

/* NULL: it is not in the list. Valid until the list changes. */
struct watch_process *processes_find(struct processes *p, int32_t pid);

/* The name of a process of the list, "" of another one. */
void processes_copy_comm(const struct processes *p, int32_t pid, char *ret_comm, size_t size);

/* Whether a process of that number is in the list, or one of that name would be. */
bool processes_match(const struct processes *p, int32_t pid, const char *comm);

/* How many processes match and found no room, by the last complete scan or already by this one. */
uint32_t processes_left_out(const struct processes *p);

#endif
