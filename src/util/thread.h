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
 * open in both tables, and each side closes its own. It waits until the thread has had a CPU, so it
 * is only for the start of the daemon.
 */
int thread_start_detached(void *(*run)(void *), void *arg, size_t stack_bytes, const int *fds,
	size_t fds_count);

/*
 * The same for a thread that hands descriptors over: it shares the table of its process. It
 * begins with thread_take_priority().
 */
int thread_start_sharing_fds(void *(*run)(void *), void *arg, size_t stack_bytes);

/*
 * Gives the calling thread such a table of its own. 0, or a negative errno, as without memory; it
 * may be called again then.
 */
int thread_keep_only_fds(const int *fds, size_t fds_count);

/*
 * The nice value of the thread that started the calling one. A thread with a real-time policy and
 * SCHED_RESET_ON_FORK hands neither down.
 */
void thread_take_priority(void);

/*
 * Gives the calling thread the lowest real-time priority: it gets a CPU before all programs of
 * normal priority, which a thousand threads that return at once would take away otherwise. No
 * thread and no process that it starts inherits it or may take one. For the event loop, which
 * needs little. 0 or a negative errno: the priority is as it was.
 */
int thread_run_first(void);

#endif
