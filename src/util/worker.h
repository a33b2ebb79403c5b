/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A thread that does, one job after the other, what the event loop must not wait for.
 * Called by the event loop's thread; a job is started when the one before it is done.
 * Never joined: a job may hang for ever, and everything it touches belongs to the job meanwhile.
 */
#ifndef IOSTALL_UTIL_WORKER_H
#define IOSTALL_UTIL_WORKER_H

#include <stdbool.h>
#include <stddef.h>

struct loop;
struct worker;

struct worker_job {
	/* On the worker's thread. */
	void (*run)(void *userdata);
	/* On the event loop, when `run` has returned. */
	void (*done)(void *userdata);
	/* On the worker's thread and instead of `done`, when the worker was freed meanwhile. */
	void (*abandon)(void *userdata);
};

/* The whole stack is locked in memory, so stack_bytes should be what the deepest call needs. */
int worker_new(struct loop *loop, size_t stack_bytes, struct worker **ret_worker);
/* Returns at once; a job that is under way goes on until it is abandoned. NULL is accepted. */
struct worker *worker_free(struct worker *worker);

/* Only while the worker is not busy. `job` must stay valid for ever. */
void worker_start(struct worker *worker, const struct worker_job *job, void *userdata);
/* From worker_start() until `done` is called. */
bool worker_is_busy(const struct worker *worker);

#endif
