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
	/* The look goes on with that thread, or with the first behind it; places in directories. */
	int64_t process_place;
	int64_t thread_place; /* of that process */
	int32_t pid;	      /* 0: none */
	/* The one that was found last. */
	int32_t tid;
	uint64_t switches;
	uint32_t count; /* by this look: that one, and those behind it in its process */
	/* Before each process, which may hang: false: it is passed by. */
	bool (*enter)(void *arg, int32_t pid);
	void *arg;
	struct watch_clock clock;
	uint64_t until_ns; /* by that clock */
};

/* No more are counted. */
#define ANY_THREAD_ENOUGH 8

enum any_thread_found {
	ANY_THREAD_NONE,    /* of all threads */
	ANY_THREAD_WAITS,   /* one is in D, perhaps for a moment */
	ANY_THREAD_LASTS,   /* one has been in D since the look before */
	ANY_THREAD_UNKNOWN, /* there was no time to look at all of them */
};

/* Threads of the kernel do not count: some are in D for ever, and none of them waits alone. */
enum any_thread_found any_thread_find(struct any_thread *look, int procfs_fd);

#endif
