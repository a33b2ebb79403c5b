/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The session's second worker: attaches and detaches the programs at the context switch, for which
 * the kernel may wait: for others who attach or detach at a tracepoint, or for a CPU that goes
 * off-line.
 * Used by the session (session.c), which owns these probes while the worker has nothing to do. It
 * is not the tracer, which may be busy for seconds when these programs are needed at once.
 * Never waited for: what hangs in the kernel is left to the worker.
 */
#ifndef IOSTALL_SESSION_SWITCHES_H
#define IOSTALL_SESSION_SWITCHES_H

#include <stdbool.h>
#include <stdint.h>

#include "probes/set.h"

struct loop;
struct switches;

enum switches_task {
	SWITCHES_ATTACH, /* probe_set_attach_scanned() */
	SWITCHES_DETACH, /* probe_set_detach_scanned() */
};

typedef void (*switches_done_fn)(void *userdata, enum switches_task task, uint64_t took_ns);

int switches_new(struct loop *loop, switches_done_fn done, void *userdata,
	struct switches **ret_switches);
/* Never waits: what a task that is under way attaches stays attached. NULL is accepted. */
struct switches *switches_free(struct switches *switches);

/*
 * Only while it is not busy. The worker gets a copy of the set, of which it changes what is
 * scanned, see probes/set.h. Until `done` is called the session changes nothing of that.
 */
void switches_start(struct switches *switches, enum switches_task task,
	const struct probe_set *set);
bool switches_is_busy(const struct switches *switches);
/* What it does, while it is busy. */
enum switches_task switches_get_task(const struct switches *switches);
/* The set as the last task left it. */
const struct probe_set *switches_get_set(const struct switches *switches);

#endif
