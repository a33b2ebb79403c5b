/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scans the threads of watched processes for those that are blocked in D state.
 * Used by the watch room only.
 * Never takes longer than it may: a scan that runs out of time continues there the next time.
 */
#ifndef IOSTALL_WATCH_THREADS_H
#define IOSTALL_WATCH_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#include "watch/clocks.h"
#include "watch/dents.h"
#include "watch/processes.h"
#include "record/structs.h"

/* Threads in D that are remembered from one scan to the next. */
#define WATCH_THREADS_MAX 8192
#define THREADS_INDEX_SLOTS (2 * WATCH_THREADS_MAX)

/* A thread that was in D when it was read last. */
struct threads_suspect {
	int32_t pid;
	int32_t tid;
	uint64_t switches; /* context switches */
	uint64_t since_ns; /* since when it is in D with this count */
	bool blocked;
};

struct threads {
	int procfs_fd;
	int task_fd;  /* /proc/PID/task of the process being scanned; -1: between two processes */
	bool empty;   /* no thread was found in that directory yet */
	bool restart; /* a full scan begins at the first process; false: the last ran out of time */
	uint32_t process;  /* index of the process being scanned */
	uint32_t recheck;  /* the suspect with which a recheck that ran out of time goes on */
	uint32_t left_out; /* threads in D beyond the table, in the last scan */
	uint32_t count;
	struct dents dents;
	struct threads_suspect suspects[WATCH_THREADS_MAX];
	uint16_t index[THREADS_INDEX_SLOTS]; /* hash table by tid of suspect + 1; 0: free */
};

struct threads_scan {
	const struct watch_clock *clock;
	uint64_t deadline_ns;
	uint64_t
		min_age_ns; /* a thread in D for this long that did not run in between is blocked */
	bool full;
	bool armed; /* see processes_scan() */
};

/* procfs_fd stays the caller's. */
void threads_init(struct threads *t, int procfs_fd);
void threads_done(struct threads *t);

/* Forgets all suspects, because the list of processes begins anew. */
void threads_reset(struct threads *t);

/*
 * Checks the suspects first, then scans on from where the last scan stopped, at most once round.
 * Processes that have gone are removed, and so are those for which processes_rename() says so.
 */
void threads_take_scan(struct threads *t, struct processes *processes,
	const struct threads_scan *scan, struct record_threads *ret_threads);

#endif
