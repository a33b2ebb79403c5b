/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scans the threads of watched processes for those that are blocked in D state, or stopped.
 * Used by thread_scanner.c: threads_take_scan() on a thread that may hang, what is said of its
 * findings on the event loop.
 * Never takes longer than it may while it does not hang: a scan that runs out of time continues
 * there the next time.
 */
#ifndef IOSTALL_WATCH_THREADS_H
#define IOSTALL_WATCH_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#include "util/clock.h"
#include "util/renewable_worker.h"
#include "watch/any_thread.h"
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

/* A process to be scanned, and what the scan has found out about it. */
struct threads_process {
	int32_t pid;
	bool has_gone;
	bool has_name;	 /* its first thread has been read: it has this name */
	bool is_running; /* and that is one of a process that has not ended */
	char comm[WATCH_COMM_SIZE];
};

#define THREADS_SKIP_MAX RENEWABLE_WORKER_HUNG_MAX

struct threads {
	/* In the order of the list of struct processes. */
	uint32_t processes_count;
	struct threads_process processes[WATCH_PROCESSES_MAX];
	int32_t skip[THREADS_SKIP_MAX]; /* processes in which earlier scans hang; 0: none */
	bool forget;	 /* the list of processes has begun anew: so do the suspects */
	int32_t reading; /* the process that is being read, 0: none yet; atomic */
	int procfs_fd;
	int task_fd;  /* /proc/PID/task of the process being scanned; -1: between two processes */
	bool empty;   /* no thread was found in that directory yet */
	bool restart; /* a full scan begins at the first process; false: the last ran out of time */
	uint32_t process;  /* index of the process being scanned */
	int32_t task_pid;  /* whose directory is open */
	uint32_t recheck;  /* the suspect with which a recheck that ran out of time goes on */
	uint32_t left_out; /* suspects beyond the table, in the last scan */
	uint32_t count;
	uint32_t fresh; /* those of them that have not been stopped for long */
	/* Whether one was in D when it was read, of those watched or, with `anybody`, of all. */
	enum any_thread_found waiting;
	uint32_t waiting_count; /* how many were, at least */
	struct any_thread any;
	struct dents dents;
	struct threads_suspect suspects[WATCH_THREADS_MAX];
	uint16_t index[THREADS_INDEX_SLOTS]; /* hash table by tid of suspect + 1; 0: free */
};

/* Times count from the beginning of the scan. */
struct threads_scan {
	struct watch_clock clock;
	uint64_t deadline_ns;
	uint64_t suspect_deadline_ns; /* the same while there is a suspect, which is seldom alone */
	uint64_t last_ns;	      /* until then it may go on to read a few threads at least */
	uint64_t
		min_age_ns; /* a thread in D for this long that did not run in between is blocked */
	bool full;
	bool anybody; /* looks among all threads of the host, too, for one in D */
};

/* Of zeros otherwise. */
void threads_init(struct threads *t);

/*
 * Checks the suspects first, then scans on from where the last scan stopped, to the end of the
 * list; in some cases then all of it once more. procfs_fd stays the caller's. The result has no
 * blocked threads yet: see below.
 */
void threads_take_scan(struct threads *t, int procfs_fd, const struct threads_scan *scan,
	struct record_threads *ret_threads);

/*
 * After a scan: removes processes that have gone, and those for which processes_rename() says so.
 * The list has only become longer since its beginning.
 */
void threads_update_processes(struct threads *t, struct processes *processes);
/* Those that are blocked, and the one that has been for longest. */
void threads_count_blocked(const struct threads *t, struct processes *processes,
	const struct freezers *freezers, struct record_threads *threads);
/* The process of the thread that has been stopped for longest. Opens `comm` of its tracer. */
void threads_fill_stopped(const struct threads *t, const struct processes *processes, int procfs_fd,
	uint64_t now_ns, struct record_stopped *ret_stopped);

#endif
