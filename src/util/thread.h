/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Starts threads that nobody waits for, because they may hang for ever on a dead disk.
 * Called by the sinks, the log relay and detached_worker.c, before an incident can be open.
 * Never joins: everything that the thread touches must live as long as the thread does.
 */
#ifndef IOSTALL_UTIL_THREAD_H
#define IOSTALL_UTIL_THREAD_H

#include <stddef.h>

/*
 * Starts a detached thread with all signals blocked. Its whole stack is locked in memory, so
 * stack_bytes should be what its deepest call needs and no more. 0 or a negative errno.
 *
 * The thread has a descriptor table of its own, with only standard error and fds[] in it. A process
 * that is killed while such a thread hangs in the kernel therefore closes everything else at once:
 * its locks are free for the next daemon, and its probes are detached. When this returns, fds[] are
 * open in both tables, and each side closes its own.
 */
int thread_start_detached(void *(*run)(void *), void *arg, size_t stack_bytes, const int *fds,
	size_t fds_count);

/* The same for a thread that hands descriptors over: it shares the table of its process. */
int thread_start_sharing_fds(void *(*run)(void *), void *arg, size_t stack_bytes);

#endif
