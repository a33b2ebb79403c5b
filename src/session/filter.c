/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps the map of processes that trace.process matches. */
#include "session/internal.h"
#include "util/clock.h"

/* The filter may search for new processes this long after each sample. */
#define FILTER_BUDGET_NS (2 * NSEC_PER_MSEC)

static bool filter_has(const struct session *s, int32_t pid)
{
	for (uint32_t i = 0; i < s->filter->count; i++)
		if (s->filter->list[i].pid == pid)
			return true;
	return false;
}

static bool was_filtered(const struct session *s, int32_t pid)
{
	for (uint32_t i = 0; i < s->filtered_count; i++)
		if (s->filtered[i] == pid)
			return true;
	return false;
}

void session_update_filter(struct session *s, bool armed)
{
	static const struct watch_clock clock;

	if (!s->filter)
		return;
	processes_check(s->filter, armed);
	processes_scan(s->filter, &clock, clock_mono_ns() + FILTER_BUDGET_NS, armed);
	for (uint32_t i = 0; i < s->filtered_count; i++)
		if (!filter_has(s, s->filtered[i]))
			trace_maps_remove_pid(&s->probes.maps, (uint32_t)s->filtered[i]);
	for (uint32_t i = 0; i < s->filter->count; i++) {
		int32_t pid = s->filter->list[i].pid;

		if (was_filtered(s, pid))
			continue;
		trace_maps_add_pid(&s->probes.maps, (uint32_t)pid);
		/* It may have fallen asleep before the programs knew that it is wanted. */
		if (s->state == SESSION_TRACING)
			session_scan_new_process(s, pid);
	}
	s->filtered_count = s->filter->count;
	for (uint32_t i = 0; i < s->filter->count; i++)
		s->filtered[i] = s->filter->list[i].pid;
}
