/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a session says about itself. */
#include "session/internal.h"

#include <string.h>

#include "watch/rules.h"
#include "watch/watch.h"

const char *session_state_name(enum session_state state)
{
	static const char *const names[] = {
		[SESSION_LOADING] = "loading",
		[SESSION_IDLE] = "idle",
		[SESSION_ARMING] = "arming",
		[SESSION_TRACING] = "tracing",
		[SESSION_DRAINING] = "draining",
		[SESSION_COOLDOWN] = "cooldown",
	};

	return names[state];
}

bool session_is_cooling_down(const struct session *s, uint64_t now_ns)
{
	return s->state == SESSION_IDLE && now_ns < s->cooldown.until_ns;
}

enum session_state session_get_state(const struct session *s)
{
	return session_is_cooling_down(s, clock_mono_ns()) ? SESSION_COOLDOWN : s->state;
}

bool session_is_open(const struct session *s)
{
	return s->state == SESSION_ARMING || s->state == SESSION_TRACING ||
		s->state == SESSION_DRAINING;
}

uint64_t session_kernel_bytes(const struct session *s)
{
	return s->probes.kernel_bytes;
}

bool session_is_outgrown(const struct session *s)
{
	return !s->o.without_probes && session_is_settled(s) &&
		probe_set_is_outgrown(&s->probes, watch_cpus_end(s->o.watch));
}

uint64_t session_cooldown_ns(const struct session *s, uint64_t now_ns)
{
	return session_is_cooling_down(s, now_ns) ? s->cooldown.until_ns - now_ns : 0;
}

const struct session_firings *session_get_firings(const struct session *s)
{
	return &s->firings;
}

const struct tally *session_get_tally(const struct session *s)
{
	return &s->tally;
}

uint32_t session_stuck_now(const struct session *s)
{
	return session_is_open(s) ? s->stuck_now : 0;
}

unsigned int session_attached_programs(const struct session *s)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++)
		count += s->probes.probes[i].links_count;
	return count;
}

enum record_backend session_probe_backend(const struct session *s, enum config_probe_name probe)
{
	const struct probe_backend *backend = s->probes.probes[probe].backend;

	return backend ? backend->name : RECORD_BACKEND_NONE;
}

const struct session_verdict *session_last_verdict(const struct session *s)
{
	return &s->last_verdict;
}

const char *session_incident(const struct session *s)
{
	return s->incident.id;
}

uint64_t session_incidents_count(const struct session *s)
{
	return s->incidents;
}

void session_describe_probes(const struct session *s, struct text *out)
{
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++) {
		const struct probe *probe = &s->probes.probes[i];

		text_addf(out, "%s%s=%s", i ? " " : "", probe_ops_get(i)->name,
			probe->backend ? record_backend_text(probe->backend->name) : "none");
	}
}

void session_trigger_of(const struct rules_firing *firing, struct record_trigger *ret_trigger)
{
	*ret_trigger = (struct record_trigger){
		.pid = firing->pid,
		.tid = firing->tid,
		.value = firing->value,
		.threshold = firing->threshold,
	};
	text_copy(ret_trigger->rule, sizeof(ret_trigger->rule), firing->name);
	text_copy(ret_trigger->device, sizeof(ret_trigger->device), firing->device);
	text_copy(ret_trigger->subject, sizeof(ret_trigger->subject), firing->subject);
	text_copy(ret_trigger->unit, sizeof(ret_trigger->unit), firing->unit);
}

bool session_is_about_space(const struct record_trigger *trigger)
{
	return strcmp(trigger->rule, rules_name(CONFIG_RULE_space)) == 0 ||
		strcmp(trigger->rule, rules_name(CONFIG_RULE_inodes)) == 0;
}

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

bool session_has_answers(const struct session *s)
{
	return s->misses_known && sql_is_answered(s->o.sql) && session_is_detached(s);
}

void session_wake_drain(struct session *s)
{
	/* Not at once: this may be called by the database that has answered. */
	if (s->state == SESSION_DRAINING && s->drain_step == SESSION_WAIT_FOR_ANSWERS &&
		session_has_answers(s))
		loop_set_timer(s->max_timer, SESSION_NEXT_TURN_NS, 0);
}

bool session_is_scanned(const struct session *s)
{
	return s->drain_step > SESSION_REPORT_HUNG;
}
