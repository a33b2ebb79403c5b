/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scans the threads of watched processes for those that are blocked in D state, or stopped.
 * Used by the watch room only.
 * Never takes longer than it may: a scan that runs out of time continues there the next time.
 */
#ifndef IOSTALL_WATCH_THREADS_H
#define IOSTALL_WATCH_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#include "util/clock.h"
#include "watch/clocks.h"
#include "watch/dents.h"
#include "watch/processes.h"
#include "record/structs.h"

struct freezers;

/*
 * A process that has been stopped for so long is left so on purpose, and nobody waits for it any
 * more.
 */
#define THREADS_STOPPED_NS (120 * NSEC_PER_SEC)
/* Threads in D, T or t that are remembered from one scan to the next. */
#define WATCH_THREADS_MAX 8192
#define THREADS_INDEX_SLOTS (2 * WATCH_THREADS_MAX)

/* A thread that was in D, or stopped, when it was read last. */
struct threads_suspect {
	int32_t pid;
	int32_t tid;
	int32_t tracer;
	bool is_stopped;   /* T, by a signal, or t, by a debugger; else D */
	bool lasts;	   /* it has been in this state for long enough */
	uint64_t switches; /* context switches */
	uint64_t since_ns; /* since when it is in this state with this count */
};

struct threads {
	int procfs_fd;
	int task_fd;  /* /proc/PID/task of the process being scanned; -1: between two processes */
	bool empty;   /* no thread was found in that directory yet */
	bool restart; /* a full scan begins at the first process; false: the last ran out of time */
	uint32_t process;  /* index of the process being scanned */
	uint32_t recheck;  /* the suspect with which a recheck that ran out of time goes on */
	uint32_t left_out; /* suspects beyond the table, in the last scan */
	uint32_t count;
	uint32_t fresh; /* those of them that have not been stopped for long */
	struct dents dents;
	struct threads_suspect suspects[WATCH_THREADS_MAX];
	uint16_t index[THREADS_INDEX_SLOTS]; /* hash table by tid of suspect + 1; 0: free */
};

struct threads_scan {
	const struct watch_clock *clock;
	const struct freezers *freezers; /* of the last sample */
	uint64_t deadline_ns;
	uint64_t suspect_deadline_ns; /* the same while there is a suspect, which is seldom alone */
	uint64_t last_ns;	      /* until then it may go on to read a few threads at least */
	uint64_t
		min_age_ns; /* a thread in D for this long that did not run in between is blocked */
	bool full;
};

/* procfs_fd stays the caller's. */
void threads_init(struct threads *t, int procfs_fd);
void threads_done(struct threads *t);

/* Forgets all suspects, because the list of processes begins anew. */
void threads_reset(struct threads *t);

/*
 * Checks the suspects first, then scans on from where the last scan stopped, to the end of the
 * list; in some cases then all of it once more.
 * Processes that have gone are removed, and so are those for which processes_rename() says so.
 */
void threads_take_scan(struct threads *t, struct processes *processes,
	const struct threads_scan *scan, struct record_threads *ret_threads,
	struct record_stopped *ret_stopped);

#endif
