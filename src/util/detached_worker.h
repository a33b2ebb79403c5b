/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A thread for calls that may hang for ever, with a descriptor table of its own (see thread.h).
 * Used by who asks the kernel about other processes and file systems; made before an incident can
 * be open, since starting a thread allocates.
 * Never waited for, not even when it starts: whichever of thread and owner leaves last frees what
 * both use.
 */
#ifndef IOSTALL_UTIL_DETACHED_WORKER_H
#define IOSTALL_UTIL_DETACHED_WORKER_H

#include <stdbool.h>
#include <stddef.h>

#define DETACHED_WORKER_FDS_MAX 2

struct detached_worker;

struct detached_worker_options {
	/* On the thread. `fds` are those of below, by their numbers in the table of the thread. */
	void (*run)(void *state, const int *fds);
	size_t stack_bytes; /* locked in memory, so it should be what the deepest call needs */
	/* They, and done_fd, must stay open until the worker is freed. */
	int fds[DETACHED_WORKER_FDS_MAX];
	size_t fds_count;
	int done_fd; /* an eventfd that is written when `run` has returned; -1: none */
};

/*
 * `state` is memory of malloc(). It belongs to the worker from now on, which frees it, also after
 * an error. While the worker is busy only atomic members may be used. 0 or a negative errno.
 */
int detached_worker_new(const struct detached_worker_options *options, void *state,
	struct detached_worker **ret_worker);
/* Returns at once; the state is freed when a run that is under way has ended. NULL is accepted. */
struct detached_worker *detached_worker_free(struct detached_worker *worker);

/* Has the thread call `run`. Only while it is not busy. */
void detached_worker_start(struct detached_worker *worker);
bool detached_worker_is_busy(const struct detached_worker *worker);

#endif
