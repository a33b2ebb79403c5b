/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/tracer.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#include "config/config.h"
#include "util/clock.h"
#include "util/memory.h"
#include "util/worker.h"
#include "watch/processes.h"

/* libbpf's deepest calls (relocations) need about 60 KB. */
#define STACK_BYTES (128 * 1024)
/* Running processes must be known before anything is armed. */
#define FILTER_BUDGET_NS (5 * NSEC_PER_SEC)
/* Their units too, unless the kernel keeps the thread waiting that reads them. */
#define UNITS_BUDGET_NS NSEC_PER_SEC
#define UNITS_STEP_US 1000

struct tracer {
	struct tracer_options o;
	struct config *config;
	struct worker *worker;
	bool cancelled;
	struct probe_set set; /* the worker's while it is busy */
	bool replaces;
	struct probe_set replaced; /* until TRACER_LOAD has ended; `replaces`: there is one */
	struct tracer_result result;
};

static int find_processes(struct tracer *t)
{
	static const struct watch_clock clock;
	struct processes *filter;
	uint64_t begin_ns = clock_mono_ns();
	int r;

	if (t->config->trace.process.count == 0)
		return 0;
	filter = calloc(1, sizeof(*filter));
	if (!filter)
		return -ENOMEM;
	r = processes_init(filter, t->o.procfs_fd, &t->config->trace.process);
	if (r < 0) {
		free(filter);
		return r;
	}
	processes_scan(filter, &clock, begin_ns + FILTER_BUDGET_NS, false);
	while (processes_want_units(filter) && clock_mono_ns() - begin_ns < UNITS_BUDGET_NS) {
		usleep(UNITS_STEP_US);
		processes_scan(filter, &clock, begin_ns + FILTER_BUDGET_NS, false);
	}
	t->result.filter = filter;
	return 0;
}

static void forget_replaced(struct tracer *t)
{
	if (t->replaces)
		probe_set_forget(&t->replaced);
	t->replaces = false;
}

static int load(struct tracer *t)
{
	int r = probe_set_load(&t->set, t->config, t->o.sysfs, t->o.generation, t->o.kernel_types,
		t->replaces ? &t->replaced : NULL);

	forget_replaced(t);
	if (r == 0) {
		r = find_processes(t);
		if (r < 0)
			probe_set_unload(&t->set);
	}
	/* What libbpf has freed must not stay locked in memory. */
	malloc_trim(MEMORY_HEAP_RESERVE_BYTES);
	return r;
}

static bool is_cancelled(const struct tracer *t)
{
	return __atomic_load_n(&t->cancelled, __ATOMIC_ACQUIRE);
}

static void run_task(void *userdata)
{
	struct tracer *t = userdata;
	uint64_t start_ns = clock_mono_ns();

	switch (t->result.task) {
	case TRACER_LOAD:
		t->result.error = load(t);
		break;
	case TRACER_ATTACH:
		probe_set_attach_rest(&t->set);
		break;
	case TRACER_COUNT:
		t->result.misses = probe_set_count_misses(&t->set);
		break;
	case TRACER_DETACH:
		while (!is_cancelled(t) && probe_set_detach_next(&t->set))
			;
		if (!is_cancelled(t))
			t->result.misses = probe_set_count_misses(&t->set);
		break;
	case TRACER_PREPARE:
		probe_set_prepare(&t->set);
		break;
	case TRACER_UNLOAD:
		probe_set_unload(&t->set);
		break;
	}
	t->result.took_ns = clock_mono_ns() - start_ns;
}

static void finish_task(void *userdata)
{
	struct tracer *t = userdata;
	struct tracer_result result = t->result;

	t->result.filter = NULL;
	t->o.done(t->o.userdata, &result);
}

static void destroy(struct tracer *t)
{
	forget_replaced(t);
	free(t->config);
	free(t);
}

static void abandon_task(void *userdata)
{
	struct tracer *t = userdata;

	if (t->result.filter) {
		processes_done(t->result.filter);
		free(t->result.filter);
	}
	probe_set_unload(&t->set);
	destroy(t);
}

static const struct worker_job tracer_job = { run_task, finish_task, abandon_task };

int tracer_new(const struct tracer_options *options, struct tracer **ret_tracer)
{
	struct tracer *t = calloc(1, sizeof(*t));
	int r = -ENOMEM;

	if (!t)
		return r;
	t->o = *options;
	t->set.maps = TRACE_MAPS_NONE;
	t->config = malloc(sizeof(*t->config));
	if (t->config) {
		*t->config = *options->config;
		r = 0;
	}
	if (r == 0 && options->replaced) {
		r = probe_set_remember(options->replaced, &t->replaced);
		t->replaces = r == 0;
	}
	if (r == 0)
		r = worker_new(options->loop, STACK_BYTES, &t->worker);
	if (r < 0) {
		destroy(t);
		return r;
	}
	*ret_tracer = t;
	return 0;
}

struct tracer *tracer_free(struct tracer *t)
{
	bool busy;

	if (!t)
		return NULL;
	busy = worker_is_busy(t->worker);
	worker_free(t->worker);
	if (!busy)
		destroy(t);
	return NULL;
}

void tracer_start(struct tracer *t, enum tracer_task task, const struct probe_set *set)
{
	t->set = *set;
	if (task != TRACER_UNLOAD)
		probe_set_forget_scanned(&t->set);
	t->cancelled = false;
	t->result = (struct tracer_result){ .task = task };
	worker_start(t->worker, &tracer_job, t);
}

bool tracer_is_busy(const struct tracer *t)
{
	return worker_is_busy(t->worker);
}

enum tracer_task tracer_get_task(const struct tracer *t)
{
	return t->result.task;
}

void tracer_cancel(struct tracer *t)
{
	__atomic_store_n(&t->cancelled, true, __ATOMIC_RELEASE);
}

const struct probe_set *tracer_get_set(const struct tracer *t)
{
	return &t->set;
}
