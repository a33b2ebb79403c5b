/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the two workers of a session do next. */
#include "session/internal.h"
#include "util/clock.h"

/* The tracer may load programs anew, and closes the objects of the old ones. */
static void start_replacing(struct session *s, enum tracer_task task)
{
	tracer_start(s->tracer, task, &s->probes);
	probe_set_forget_replaced(&s->probes);
}

static void start_next_switches(struct session *s, bool armed)
{
	if (switches_is_busy(s->switches))
		return;
	if (armed && s->switches_wanted)
		switches_start(s->switches, SWITCHES_ATTACH, &s->probes);
	else if (!armed && probe_set_scanned_is_attached(&s->probes))
		switches_start(s->switches, SWITCHES_DETACH, &s->probes);
}

void session_start_next_task(struct session *s)
{
	bool armed = s->state == SESSION_ARMING || s->state == SESSION_TRACING;

	if (!s->tracer || (s->state == SESSION_DRAINING && !session_is_scanned(s)))
		return;
	start_next_switches(s, armed);
	if (tracer_is_busy(s->tracer)) {
		if (armed && tracer_get_task(s->tracer) == TRACER_DETACH)
			tracer_cancel(s->tracer);
		return;
	}
	if (armed && s->attach_wanted)
		start_replacing(s, TRACER_ATTACH);
	else if (s->state == SESSION_DRAINING && !s->misses_known)
		tracer_start(s->tracer, TRACER_COUNT, &s->probes);
	else if (!armed && probe_set_rest_is_attached(&s->probes))
		tracer_start(s->tracer, TRACER_DETACH, &s->probes);
	else if (s->state == SESSION_IDLE && probe_set_needs_prepare(&s->probes) &&
		clock_mono_ns() >= s->prepare_after_ns)
		start_replacing(s, TRACER_PREPARE);
}

int session_begin_loading(struct session *s, tracer_done_fn on_task, switches_done_fn on_switches)
{
	const struct tracer_options options = {
		.config = s->o.config,
		.procfs_fd = s->procfs_fd,
		.sysfs = s->o.sysfs,
		.generation = s->o.generation,
		.kernel_types = s->o.kernel_types,
		.replaced = s->o.replaced ? &s->o.replaced->probes : NULL,
		.loop = s->o.loop,
		.done = on_task,
		.userdata = s,
	};
	int r = switches_new(s->o.loop, on_switches, s, &s->switches);

	if (r == 0)
		r = tracer_new(&options, &s->tracer);
	if (r < 0)
		return r;
	s->state = SESSION_LOADING;
	tracer_start(s->tracer, TRACER_LOAD, &s->probes);
	return 0;
}
