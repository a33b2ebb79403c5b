/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the two workers of a session do next, and what follows from what they have done. */
#include "session/internal.h"
#include "util/clock.h"
#include "util/log.h"

/* Between tries to load programs anew; the tracer can do nothing else in them. */
#define PREPARE_PAUSE_NS (5 * NSEC_PER_SEC)
#define PREPARE_PAUSE_MAX_NS (320 * NSEC_PER_SEC)

bool session_is_busy(const struct session *s)
{
	return s->tracer && (tracer_is_busy(s->tracer) || switches_is_busy(s->switches));
}

bool session_is_detaching(const struct session *s)
{
	return s->tracer &&
		((tracer_is_busy(s->tracer) && tracer_get_task(s->tracer) == TRACER_DETACH) ||
			(switches_is_busy(s->switches) &&
				switches_get_task(s->switches) == SWITCHES_DETACH));
}

bool session_is_settled(const struct session *s)
{
	return s->state == SESSION_IDLE && !session_is_busy(s);
}

bool session_is_detached(const struct session *s)
{
	return !switches_is_busy(s->switches) && !probe_set_scanned_is_attached(&s->probes);
}

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

static void note_attached(struct session *s, bool attached, uint64_t took_ns)
{
	s->incident.attach_ns += took_ns;
	if (s->state == SESSION_TRACING && attached)
		log_warning("incident %s: some probes were attached only after %.1f s",
			s->incident.id, (double)(clock_mono_ns() - s->attached_ns) / NSEC_PER_SEC);
	else if (s->state == SESSION_ARMING && !s->attach_wanted && !s->switches_wanted)
		session_begin_tracing(s);
}

/* From here on it is known who falls asleep. So those who sleep already can be looked for. */
static void on_switches_attached(struct session *s, uint64_t took_ns)
{
	s->switches_wanted = false;
	s->switches_ns = clock_mono_ns();
	s->tasks.complete = false;
	if (!session_begin_task_scan(s) && !s->pass.start_ns)
		loop_set_timer(s->scan_timer, SESSION_TASK_SCAN_PAUSE_NS, 0);
	note_attached(s, s->probes.attached[CONFIG_PROBE_wait], took_ns);
}

static void on_switches(void *userdata, enum switches_task task, uint64_t took_ns)
{
	struct session *s = userdata;
	bool attached = task == SWITCHES_ATTACH && s->switches_wanted &&
		(s->state == SESSION_ARMING || s->state == SESSION_TRACING);

	/* An incident that has been closed meanwhile has none of them. */
	probe_set_copy_scanned(&s->probes, switches_get_set(s->switches), attached);
	if (attached)
		on_switches_attached(s, took_ns);
	session_start_next_task(s);
	session_wake_drain(s);
}

/* What has failed, as without memory, is tried again with a later sample, more and more seldom. */
static void on_prepared(struct session *s)
{
	if (!probe_set_needs_prepare(&s->probes))
		s->prepare_pause_ns = 0;
	else if (s->prepare_pause_ns == 0)
		s->prepare_pause_ns = PREPARE_PAUSE_NS;
	else if (s->prepare_pause_ns < PREPARE_PAUSE_MAX_NS)
		s->prepare_pause_ns *= 2;
	s->prepare_after_ns = clock_mono_ns() + s->prepare_pause_ns;
}

static void on_task(void *userdata, const struct tracer_result *result)
{
	struct session *s = userdata;

	if (result->task == TRACER_LOAD) {
		session_handle_loaded(s, result);
		return;
	}
	if (result->task == TRACER_UNLOAD) {
		s->probes = (struct probe_set){ .maps = TRACE_MAPS_NONE };
		session_free(s);
		return;
	}
	probe_set_copy_rest(&s->probes, tracer_get_set(s->tracer), result->task == TRACER_ATTACH);
	if (result->misses > s->misses)
		s->misses = result->misses;
	if (result->task == TRACER_ATTACH) {
		s->attach_wanted = false;
		/* An incident that began meanwhile has said that none is. */
		probe_set_tell_attached(&s->probes);
		note_attached(s, probe_set_rest_is_attached(&s->probes), result->took_ns);
	}
	if (result->task == TRACER_COUNT)
		s->misses_known = true;
	if (result->task == TRACER_PREPARE)
		on_prepared(s);
	if (result->task == TRACER_DETACH)
		log_debug("probes detached after %.1f s", (double)result->took_ns / NSEC_PER_SEC);
	session_start_next_task(s);
	session_wake_drain(s);
}

int session_begin_loading(struct session *s)
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
