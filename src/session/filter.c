/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps the maps of processes that trace.process matches, and of those that are watched. */
#include <string.h>

#include "probes/offcpu.h"
#include "session/internal.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/sort.h"
#include "watch/watch.h"

/* The filter may search for new processes this long after each sample. */
#define FILTER_BUDGET_NS (2 * NSEC_PER_MSEC)
/* For the threads of all processes that are new then, in an incident. */
#define NEW_BUDGET_NS (10 * NSEC_PER_MSEC)

static_assert(WATCH_PROCESSES_MAX <= EVENT_FILTER_PIDS_MAX, "the map has room for the whole list");

static int compare_pids(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return (x > y) - (x < y);
}

static void take_pids(const struct watch_process *list, uint32_t count,
	struct session_pids *ret_pids)
{
	ret_pids->count = count;
	for (uint32_t i = 0; i < count; i++)
		ret_pids->pids[i] = list[i].pid;
	sort_in_place(ret_pids->pids, ret_pids->count, sizeof(ret_pids->pids[0]), compare_pids);
}

/* Both are in ascending order: calls `changed` for each pid of `of` that `from` does not have. */
static void each_missing(struct session *s, const struct session_pids *of,
	const struct session_pids *from, void (*changed)(struct session *s, int32_t pid))
{
	uint32_t j = 0;

	for (uint32_t i = 0; i < of->count; i++) {
		while (j < from->count && from->pids[j] < of->pids[i])
			j++;
		if (j == from->count || from->pids[j] != of->pids[i])
			changed(s, of->pids[i]);
	}
}

static void remove_pid(struct session *s, int32_t pid)
{
	trace_maps_remove_pid(&s->probes.maps, (uint32_t)pid);
}

static void add_pid(struct session *s, int32_t pid)
{
	trace_maps_add_pid(&s->probes.maps, (uint32_t)pid);
	/* It may have fallen asleep before the programs knew that it is wanted. */
	if (s->state == SESSION_TRACING)
		session_scan_new_process(s, pid, false);
}

static void remove_watched(struct session *s, int32_t pid)
{
	offcpu_set_process(&s->probes.probes[CONFIG_PROBE_offcpu], pid, false);
}

static void add_watched(struct session *s, int32_t pid)
{
	offcpu_set_process(&s->probes.probes[CONFIG_PROBE_offcpu], pid, true);
	if (s->state != SESSION_TRACING)
		return;
	session_scan_new_process(s, pid, true);
	s->has_new_watched = true;
}

/* Calls `remove` and `add` for what is new since the last sample. */
static void update_pids(struct session *s, struct session_pid_sets *sets,
	const struct watch_process *list, uint32_t count,
	void (*remove)(struct session *s, int32_t pid), void (*add)(struct session *s, int32_t pid))
{
	const struct session_pids *before = session_pids_now(sets);

	sets->now = !sets->now;
	take_pids(list, count, &sets->sets[sets->now]);
	s->new_deadline_ns = clock_mono_ns() + NEW_BUDGET_NS;
	each_missing(s, before, session_pids_now(sets), remove);
	each_missing(s, session_pids_now(sets), before, add);
}

/* What the filter has no room for is missing from the record, and nothing else says so. */
static void note_left_out(struct session *s)
{
	uint32_t left_out = processes_left_out(s->filter);

	if (left_out > s->incident.filter_full)
		s->incident.filter_full = left_out;
	if (left_out == 0 || s->filter->scanning || s->filter_full_logged)
		return;
	log_warning(
		"trace.process: %u processes match beyond the maximum of %d; they are not traced; "
		"expected fewer: trace.cgroup selects any number",
		left_out, WATCH_PROCESSES_MAX);
	s->filter_full_logged = true;
}

void session_update_filter(struct session *s, bool armed)
{
	static const struct watch_clock clock;

	if (!s->filter)
		return;
	processes_check(s->filter);
	processes_scan(s->filter, &clock, clock_mono_ns() + FILTER_BUDGET_NS, armed);
	note_left_out(s);
	update_pids(s, &s->filtered, s->filter->list, s->filter->count, remove_pid, add_pid);
}

void session_update_watched(struct session *s)
{
	unsigned int count;
	const struct watch_process *list = watch_processes(s->o.watch, &count);

	s->has_new_watched = false;
	update_pids(s, &s->watched, list, count, remove_watched, add_watched);
	/* All at once: that looks at each thread of every process. */
	if (s->has_new_watched)
		session_ask_offcpu_stacks(s);
}
