/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The scan over the threads of watched processes for those that hang in D state.
 * Used by the watch room only.
 * Never takes longer than it is given: an idle scan goes round and continues next time.
 */
#ifndef IOSTALL_WATCH_THREADS_H
#define IOSTALL_WATCH_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#include "watch/clocks.h"
#include "watch/dents.h"
#include "watch/processes.h"
#include "watch/sample.h"

/* Threads in D that are remembered from one scan to the next. */
#define WATCH_THREADS_MAX 8192
#define THREADS_INDEX_SLOTS (2 * WATCH_THREADS_MAX)

/* A thread that was in D when it was read last. */
struct threads_suspect {
	int32_t pid;
	int32_t tid;
	uint64_t start_ticks;
	uint64_t switches; /* runs or context switches, whichever this kernel tells */
	uint64_t since_ns; /* in D with this count since */
	bool blocked;
};

struct threads {
	int procfs_fd;
	int task_fd;	  /* /proc/PID/task of the process the walk is in, -1 between two */
	bool empty;	  /* no thread was met in that directory yet */
	bool restart;	  /* a full scan begins at the first process, unless the last one was cut */
	uint32_t process; /* index */
	uint32_t recheck; /* suspect that a cut recheck goes on with */
	uint32_t left_out; /* threads in D beyond the table, in the last scan */
	uint32_t count;
	struct dents dents;
	struct threads_suspect suspects[WATCH_THREADS_MAX];
	uint16_t index[THREADS_INDEX_SLOTS]; /* by tid, suspect + 1; 0 is free */
};

struct threads_scan {
	const struct watch_clock *clock;
	uint64_t deadline_ns;
	uint64_t min_age_ns; /* in D for this long with nothing in between is blocked */
	bool full;
};

/* procfs_fd stays the caller's. */
void threads_init(struct threads *t, int procfs_fd);
void threads_done(struct threads *t);

/* Forgets everything: the list of processes begins anew. */
void threads_reset(struct threads *t);

/*
 * Suspects first, then the walk from where it stopped, at most once round. Processes that turn out
 * to be gone or another's are removed.
 */
void threads_take_scan(struct threads *t, struct processes *processes,
	const struct threads_scan *scan, struct watch_threads *ret_threads);

#endif
