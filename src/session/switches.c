/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/switches.h"

#include <errno.h>
#include <stdlib.h>

#include "util/clock.h"
#include "util/worker.h"

/* Attaching needs much less than loading, for which see tracer.c. */
#define STACK_BYTES (64 * 1024)

struct switches {
	struct worker *worker;
	switches_done_fn done;
	void *userdata;
	enum switches_task task;
	uint64_t took_ns;
	struct probe_set set; /* the worker's while it is busy */
};

static void run_task(void *userdata)
{
	struct switches *w = userdata;
	uint64_t start_ns = clock_mono_ns();

	if (w->task == SWITCHES_ATTACH)
		probe_set_attach_scanned(&w->set);
	else
		probe_set_detach_scanned(&w->set);
	w->took_ns = clock_mono_ns() - start_ns;
}

static void finish_task(void *userdata)
{
	struct switches *w = userdata;

	w->done(w->userdata, w->task, w->took_ns);
}

static const struct worker_job switches_job = { run_task, finish_task, free };

int switches_new(struct loop *loop, switches_done_fn done, void *userdata,
	struct switches **ret_switches)
{
	struct switches *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->done = done;
	w->userdata = userdata;
	r = worker_new(loop, STACK_BYTES, &w->worker);
	if (r < 0) {
		free(w);
		return r;
	}
	*ret_switches = w;
	return 0;
}

struct switches *switches_free(struct switches *w)
{
	bool busy;

	if (!w)
		return NULL;
	busy = worker_is_busy(w->worker);
	worker_free(w->worker);
	if (!busy)
		free(w);
	return NULL;
}

void switches_start(struct switches *w, enum switches_task task, const struct probe_set *set)
{
	w->set = *set;
	w->task = task;
	worker_start(w->worker, &switches_job, w);
}

bool switches_is_busy(const struct switches *w)
{
	return worker_is_busy(w->worker);
}

enum switches_task switches_get_task(const struct switches *w)
{
	return w->task;
}

const struct probe_set *switches_get_set(const struct switches *w)
{
	return &w->set;
}
