/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The session's worker: loads the probes, and attaches and detaches all but those at the context
 * switch (switches.h).
 * Used by the session (session.c), which owns the probes while the worker has nothing to do.
 * Never waited for: what hangs in the kernel is left to the worker.
 */
#ifndef IOSTALL_SESSION_TRACER_H
#define IOSTALL_SESSION_TRACER_H

#include <stdbool.h>
#include <stdint.h>

#include "probes/set.h"

struct config;
struct kernel_types;
struct loop;
struct processes;
struct tracer;

enum tracer_task {
	TRACER_LOAD,	/* loads the set, finds the processes of trace.process */
	TRACER_ATTACH,	/* attaches the rest of the probes, see probes/set.h */
	TRACER_COUNT,	/* counts the hits that kprobes have missed */
	TRACER_DETACH,	/* detaches the rest, until it is cancelled */
	TRACER_PREPARE, /* loads what cannot be attached a second time (5.10) */
	TRACER_UNLOAD,	/* unloads the set */
};

struct tracer_result {
	enum tracer_task task;
	int error; /* of TRACER_LOAD */
	uint64_t took_ns;
	uint64_t misses; /* of TRACER_COUNT and of a TRACER_DETACH that was not cancelled */
	struct processes *filter; /* of TRACER_LOAD: to be taken over; NULL: every process */
};

typedef void (*tracer_done_fn)(void *userdata, const struct tracer_result *result);

struct tracer_options {
	const struct config *config; /* copied */
	int procfs_fd;		     /* borrowed */
	const char *sysfs;	     /* borrowed for ever */
	uint32_t generation;
	struct kernel_types **kernel_types;
	const struct probe_set *replaced; /* what it needs is copied; NULL: the first set */
	struct loop *loop;
	tracer_done_fn done;
	void *userdata;
};

int tracer_new(const struct tracer_options *options, struct tracer **ret_tracer);
/* Never waits: the worker unloads what it has. NULL is accepted. */
struct tracer *tracer_free(struct tracer *tracer);

/*
 * Only while it is not busy. The worker gets a copy of the set, without the probes that are
 * scanned, see probes/set.h. Until `done` is called the session changes nothing of the others.
 */
void tracer_start(struct tracer *tracer, enum tracer_task task, const struct probe_set *set);
bool tracer_is_busy(const struct tracer *tracer);
/* What it does, while it is busy. */
enum tracer_task tracer_get_task(const struct tracer *tracer);
/* TRACER_DETACH ends after the program that it is detaching. */
void tracer_cancel(struct tracer *tracer);
/* The set as the last task left it. */
const struct probe_set *tracer_get_set(const struct tracer *tracer);

#endif
