/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Looks among all threads of the host for one in D state.
 * The kernel counts as waiting for I/O also who waits for a socket through io_uring, in S; who
 * waits for a disk, a limit or a file server is in D.
 * Used by threads.c, on a thread that may hang.
 * Never takes longer than it may while it does not hang: the next look goes on where it ended.
 */
#ifndef IOSTALL_WATCH_ANY_THREAD_H
#define IOSTALL_WATCH_ANY_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "watch/clocks.h"

struct any_thread {
	int32_t pid;   /* the look goes on with it, or with the first behind it */
	uint32_t seen; /* threads of that process, whose ids may come in any order */
	/* Before each process, which may hang: false: it is passed by. */
	bool (*enter)(void *arg, int32_t pid);
	void *arg;
	struct watch_clock clock;
	uint64_t until_ns; /* by that clock */
};

enum any_thread_found {
	ANY_THREAD_NONE, /* of all threads */
	ANY_THREAD_WAITS,
	ANY_THREAD_UNKNOWN, /* there was no time to look at all of them */
};

/* Threads of the kernel do not count: some are in D for ever, and none of them waits alone. */
enum any_thread_found any_thread_find(struct any_thread *look, int procfs_fd);

#endif
