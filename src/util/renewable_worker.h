/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A detached worker that is replaced by another one when a run of it hangs, a bounded number of
 * times.
 * Used by who asks the same question again and again, from the event loop.
 * Never waits; allocates in init, keep_spare and renew only.
 */
#ifndef IOSTALL_UTIL_RENEWABLE_WORKER_H
#define IOSTALL_UTIL_RENEWABLE_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/detached_worker.h"

/* So many threads may hang at the same time before none is replaced any more. */
#define RENEWABLE_WORKER_HUNG_MAX 4

/* What is the same for all threads of a worker. */
struct renewable_worker_kind {
	void (*run)(void *state, const int *fds); /* see detached_worker_options */
	size_t stack_bytes;
	size_t state_bytes;
	uint64_t limit_ns; /* whoever is busy for so long hangs or has no CPU */
};

struct renewable_worker {
	const struct renewable_worker_kind *kind;
	int fd;
	int done_fd;

	/*
	 * The state of the thread that is used now, zeros at first: see detached_worker_new(). Both
	 * are NULL while the worker rests.
	 */
	void *state;
	struct detached_worker *thread;
	uint64_t started_ns;
	/* Of renewable_worker_keep_spare(); NULL: there is none. */
	void *spare_state;
	struct detached_worker *spare;
	struct detached_worker *hung[RENEWABLE_WORKER_HUNG_MAX]; /* NULL: free */
};

/* The descriptor is the first of `fds` and must stay open. 0 or a negative errno. */
int renewable_worker_init(struct renewable_worker *worker, const struct renewable_worker_kind *kind,
	int fd);
/*
 * The same for a question that is rare: without that descriptor, and without a thread until the
 * first renew. done_fd, which must stay open, is that of detached_worker_options.
 */
void renewable_worker_init_resting(struct renewable_worker *worker,
	const struct renewable_worker_kind *kind, int done_fd);
/* Returns at once. A worker of zeros is accepted. */
void renewable_worker_done(struct renewable_worker *worker);

/* Allocates an object of zeros whose first member is the worker. NULL, with errno, on error. */
void *renewable_worker_new(size_t size, const struct renewable_worker_kind *kind, int fd);
/* Returns at once. NULL is accepted; returns NULL. */
void *renewable_worker_free(void *object);

/* Has the thread call `run`. Only while it is not busy. */
void renewable_worker_start(struct renewable_worker *worker, uint64_t now_ns);
bool renewable_worker_is_busy(const struct renewable_worker *worker);
/* It has been busy for `limit_ns`. */
bool renewable_worker_is_late(const struct renewable_worker *worker, uint64_t now_ns);

/* Ends the threads that are not busy and frees their states. */
void renewable_worker_rest(struct renewable_worker *worker);
/*
 * Has another thread ready for renew, unless there is one. Allocates: only while no incident is
 * open. 0 or a negative errno.
 */
int renewable_worker_keep_spare(struct renewable_worker *worker);
/*
 * Puts the spare thread, or else a new one, in place of one that is late or rests; its state is of
 * zeros. Without a spare it allocates: then only while no incident is open. Returns the place in
 * which the old one, if any, hangs on, from 0; -EAGAIN: it is not late; -EBUSY: too many hang;
 * -ENOMEM, or the error of starting a thread.
 */
int renewable_worker_renew(struct renewable_worker *worker, uint64_t now_ns);
/* Whether the thread that was put into that place has still not returned. */
bool renewable_worker_hangs_at(const struct renewable_worker *worker, unsigned int place);

#endif
