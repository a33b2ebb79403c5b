/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Has a thread scan those of watched processes (threads.h), since that may hang: whoever reads
 * `status` holds the memory of the process meanwhile, and if the process is killed then, may have
 * to end it, which waits for the asynchronous I/O of the process.
 * Used by watch.c, on the event loop.
 * Never waits; a thread that hangs is left behind and replaced, a bounded number of times: by a
 * spare one also in an incident.
 */
#ifndef IOSTALL_WATCH_THREAD_SCANNER_H
#define IOSTALL_WATCH_THREAD_SCANNER_H

#include <stdbool.h>
#include <stdint.h>

#include "record/structs.h"
#include "util/renewable_worker.h"
#include "watch/clocks.h"
#include "watch/processes.h"
#include "watch/threads.h"

struct freezers;

struct thread_scanner {
	struct renewable_worker worker;
	int done_fd;	    /* an eventfd that is written when a scan has ended */
	bool is_asked;	    /* there is a scan whose results nobody has taken */
	bool is_waited_for; /* it has begun for this sample */
	bool has_late;	    /* the scan before has ended since its sample did */
	bool is_fresh;	    /* the thread that scans has just been replaced */
	bool forget;	    /* the list of processes has begun anew */
	bool has_told;	    /* that this scan hangs */
	bool is_skipping;   /* a process, in which an earlier scan hangs */
	uint64_t late;	   /* scans that lack threads because one hung, or hangs in their process */
	uint32_t left_out; /* threads, by the last scan */
	/* By that scan; see struct threads. */
	enum any_thread_found waiting;
	uint32_t waiting_count;
	int32_t hung
		[RENEWABLE_WORKER_HUNG_MAX]; /* processes in which scans hang, by their places */
	/* Of the last scan. */
	struct record_threads threads;
	struct record_stopped stopped;
};

/* procfs_fd must stay open. 0 or a negative errno. */
int thread_scanner_init(struct thread_scanner *s, int procfs_fd);
/* Returns at once. One of zeros with done_fd -1 is accepted. */
void thread_scanner_done(struct thread_scanner *s);

/* Forgets all threads, because the list of processes begins anew. */
void thread_scanner_reset(struct thread_scanner *s);

/*
 * Begins a scan, unless the last one has not ended. `armed`: an incident is open, so no thread is
 * started.
 */
void thread_scanner_begin(struct thread_scanner *s, struct processes *processes,
	const struct freezers *freezers, const struct threads_scan *scan, bool armed);
/* There is nothing to wait for: the scan has ended, or none could begin. Empties done_fd. */
bool thread_scanner_is_ready(struct thread_scanner *s);
/*
 * What the scan has found, or the one before that ended too late for its own sample. False: neither
 * has ended, and this is what an earlier one has found, said not to be complete; or the thread was
 * replaced, and the new one cannot say yet who lasts. Processes that have gone or do not match any
 * more are removed.
 */
bool thread_scanner_take(struct thread_scanner *s, struct processes *processes,
	const struct freezers *freezers, const struct watch_clock *clock,
	struct record_threads *ret_threads, struct record_stopped *ret_stopped);

#endif
