/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/status.h"

#include <unistd.h>

#include "config/config.h"
#include "session/session.h"
#include "sql/sql.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/memory.h"
#include "version.h"
#include "watch/rules.h"
#include "watch/watch.h"

static void add_rules(const struct daemon_status *s, struct text *answer)
{
	const struct session_firings *firings = session_get_firings(s->session);

	text_json_open(answer, "rules", '[');
	for (enum config_rule_name i = 0; i < CONFIG_RULE_COUNT; i++) {
		const struct config_rule *rule = &s->config->rules[i];

		text_json_open(answer, NULL, '{');
		text_json_string(answer, "name", rules_name(i));
		text_json_bool(answer, "enabled", rule->enabled);
		text_json_real(answer, "set", rule->set);
		text_json_real(answer, "clear", rule->clear);
		text_json_string(answer, "unit", rules_unit(i));
		text_json_u64(answer, "hold_samples", rule->hold_samples);
		text_json_u64(answer, "fired_in_cooldown", firings->in_cooldown[i]);
		text_json_close(answer, '}');
	}
	text_json_close(answer, ']');
}

static void add_last_fired(const struct daemon_status *s, uint64_t now_ns, struct text *answer)
{
	const struct session_firings *firings = session_get_firings(s->session);

	if (!firings->last.rule[0]) {
		text_json_null(answer, "last_fired");
		return;
	}
	text_json_open(answer, "last_fired", '{');
	text_json_string(answer, "rule", firings->last.rule);
	text_json_string(answer, "device", firings->last.device);
	text_json_string(answer, "subject", firings->last.subject);
	text_json_real(answer, "value", firings->last.value);
	text_json_real(answer, "threshold", firings->last.threshold);
	text_json_string(answer, "unit", firings->last.unit);
	text_json_u64(answer, "ago_ns", now_ns - firings->last_ns);
	text_json_close(answer, '}');
}

static void add_last_verdict(const struct daemon_status *s, struct text *answer)
{
	const struct session_verdict *last = session_last_verdict(s->session);

	if (!last->incident[0]) {
		text_json_null(answer, "last_verdict");
		return;
	}
	text_json_open(answer, "last_verdict", '{');
	text_json_string(answer, "incident", last->incident);
	text_json_bool(answer, "final", last->final);
	text_json_string(answer, "class", record_class_text(last->class));
	text_json_string(answer, "message", last->message);
	text_json_close(answer, '}');
}

void daemon_add_status(const struct daemon_status *s, struct text *answer)
{
	uint64_t now_ns = clock_mono_ns();
	struct watch_left_out left_out;
	unsigned int processes;
	char buf[256];
	struct text probes = TEXT_ON(buf);

	text_reset(&probes);
	session_describe_probes(s->session, &probes);
	watch_processes(s->watch, &processes);
	watch_get_left_out(s->watch, &left_out);
	text_json_open(answer, NULL, '{');
	text_json_string(answer, "version", IOSTALL_VERSION);
	text_json_i64(answer, "pid", getpid());
	text_json_string(answer, "state", session_state_name(session_get_state(s->session)));
	text_json_u64(answer, "cooldown_ns", session_cooldown_ns(s->session, now_ns));
	text_json_string(answer, "incident", session_incident(s->session));
	text_json_u64(answer, "incidents", session_incidents_count(s->session));
	text_json_u64(answer, "uptime_ns", s->uptime_ns);
	text_json_u64(answer, "cpu_ns", clock_process_cpu_ns());
	text_json_u64(answer, "rss_bytes", memory_resident_bytes());
	text_json_u64(answer, "kernel_bytes", session_kernel_bytes(s->session));
	text_json_string(answer, "configuration", s->config->origin);
	text_json_bool(answer, "reload_waits", s->reload_waits);
	text_json_bool(answer, "detaching", session_is_detaching(s->session));
	text_json_string(answer, "probes", probes.buf);
	text_json_u64(answer, "watched_processes", processes);
	text_json_u64(answer, "processes_left_out", left_out.processes);
	text_json_u64(answer, "disks_left_out", left_out.disks);
	text_json_u64(answer, "samples_unread", left_out.unread);
	text_json_u64(answer, "rules_active", rules_active(s->rules));
	add_rules(s, answer);
	add_last_fired(s, now_ns, answer);
	add_last_verdict(s, answer);
	text_json_u64(answer, "log_dropped", log_dropped_lines());
	sql_add_status(s->sql, answer);
	text_json_close(answer, '}');
}
