/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "config/config.h"
#include "probes/probe.h"
#include "record/enums.h"
#include "session/session.h"
#include "session/tally.h"
#include "sql/sql.h"
#include "util/clock.h"
#include "util/memory.h"
#include "version.h"
#include "watch/rules.h"
#include "watch/watch.h"

#define OPENMETRICS_END "# EOF\n"
/* Of the histograms: from 1 us, each four times the one before, up to 67 s. */
#define BUCKET_STEP 2
#define BUCKET_LAST 26

struct metrics {
	const struct daemon_status *status;
	enum metrics_format format;
	struct text *t;
};

/* OpenMetrics names a counter without what its series end in. */
static void begin(const struct metrics *m, const char *name, const char *type, const char *help)
{
	size_t len = strlen(name);

	if (m->format == METRICS_OPENMETRICS && strcmp(type, "counter") == 0)
		len -= strlen("_total");
	text_addf(m->t, "# HELP %.*s %s\n# TYPE %.*s %s\n", (int)len, name, help, (int)len, name,
		type);
}

static void add_labels(const struct metrics *m, const char *label, const char *value, bool is_first)
{
	text_addf(m->t, "%s%s=\"", is_first ? "{" : ",", label);
	for (size_t len; *value; value += len) {
		len = strcspn(value, "\n\"\\");
		text_add_bytes(m->t, value, len);
		if (len > 0)
			continue;
		text_add(m->t, "\\");
		text_add_bytes(m->t, *value == '\n' ? "n" : value, 1);
		len = 1;
	}
	text_add(m->t, "\"");
}

static void add_value(const struct metrics *m, const char *name, double value)
{
	text_addf(m->t, "%s %.15g\n", name, value);
}

static void add_labelled(const struct metrics *m, const char *name, const char *label,
	const char *of, double value)
{
	text_add(m->t, name);
	add_labels(m, label, of, true);
	text_addf(m->t, "} %.15g\n", value);
}

static double seconds(uint64_t ns)
{
	return (double)ns / NSEC_PER_SEC;
}

static void add_build(const struct metrics *m)
{
	begin(m, "iostall_build_info", "gauge", "The version of iostall. Always 1.");
	add_labelled(m, "iostall_build_info", "version", IOSTALL_VERSION, 1);
}

static void add_state(const struct metrics *m)
{
	const struct session *s = m->status->session;
	unsigned int processes;

	begin(m, "iostall_incident_open", "gauge", "1: an incident is open, or being closed.");
	add_value(m, "iostall_incident_open", session_is_open(s));
	begin(m, "iostall_stuck_threads", "gauge",
		"Operations of the open incident that have not returned, by the last look at them.");
	add_value(m, "iostall_stuck_threads", session_stuck_now(s));
	begin(m, "iostall_programs_attached", "gauge", "BPF programs that are attached. 0: idle.");
	add_value(m, "iostall_programs_attached", session_attached_programs(s));
	watch_processes(m->status->watch, &processes);
	begin(m, "iostall_kernel_memory_bytes", "gauge",
		"Memory of BPF maps and programs in the kernel.");
	add_value(m, "iostall_kernel_memory_bytes", (double)session_kernel_bytes(s));
	begin(m, "iostall_watched_processes", "gauge", "Processes that watch.process matches.");
	add_value(m, "iostall_watched_processes", processes);
}

static void add_rules(const struct metrics *m)
{
	const struct daemon_status *s = m->status;

	begin(m, "iostall_rule_value", "gauge",
		"Largest last value of a rule, in the unit of the rule, see iostall.conf(5).");
	for (enum config_rule_name i = 0; i < CONFIG_RULE_COUNT; i++)
		if (s->config->rules[i].enabled && !isnan(rules_value(s->rules, i)))
			add_labelled(m, "iostall_rule_value", "rule", rules_name(i),
				rules_value(s->rules, i));
	begin(m, "iostall_rule_threshold", "gauge", "A rule fires for values above this one.");
	for (enum config_rule_name i = 0; i < CONFIG_RULE_COUNT; i++)
		if (s->config->rules[i].enabled)
			add_labelled(m, "iostall_rule_threshold", "rule", rules_name(i),
				s->config->rules[i].set);
	begin(m, "iostall_rule_active", "gauge",
		"For how many subjects, such as disks, a rule has fired and is not clear yet.");
	for (enum config_rule_name i = 0; i < CONFIG_RULE_COUNT; i++)
		if (s->config->rules[i].enabled)
			add_labelled(m, "iostall_rule_active", "rule", rules_name(i),
				rules_active_subjects(s->rules, i));
}

static void add_devices(const struct metrics *m)
{
	const struct record_reading *last = watch_last(m->status->watch);

	begin(m, "iostall_device_no_completion_seconds", "gauge",
		"How long requests have been in flight without one completing, of the disks in the newest sample.");
	for (uint32_t i = 0; last && i < last->devices_count; i++)
		add_labelled(m, "iostall_device_no_completion_seconds", "device",
			last->devices[i].dev_name, seconds(last->devices[i].no_completion_ns));
}

static void add_probes(const struct metrics *m)
{
	begin(m, "iostall_probe_usable", "gauge",
		"1: an enabled probe has been loaded, with that backend. 0: the kernel refuses it.");
	for (enum config_probe_name i = 0; i < CONFIG_PROBE_COUNT; i++) {
		enum record_backend backend = session_probe_backend(m->status->session, i);

		if (!m->status->config->probes[i].enabled)
			continue;
		text_add(m->t, "iostall_probe_usable");
		add_labels(m, "probe", probe_ops_get(i)->name, true);
		add_labels(m, "backend",
			backend == RECORD_BACKEND_NONE ? "none" : record_backend_text(backend),
			false);
		text_addf(m->t, "} %d\n", backend != RECORD_BACKEND_NONE);
	}
}

static void add_targets(const struct metrics *m)
{
	const struct sql *sql = m->status->sql;
	struct sql_evidence e;

	begin(m, "iostall_sql_target_up", "gauge",
		"1: the database has answered the last question. 0: it has not, or iostall cannot ask it.");
	for (unsigned int i = 0; i < sql_targets_count(sql); i++) {
		sql_get_evidence(sql, i, &e);
		if (!e.is_duplicate)
			add_labelled(m, "iostall_sql_target_up", "target", e.target,
				!e.unanswered_ns && !*e.why);
	}
	begin(m, "iostall_sql_target_unanswered_seconds", "gauge",
		"How long a database has not answered in the session that iostall keeps open.");
	for (unsigned int i = 0; i < sql_targets_count(sql); i++) {
		sql_get_evidence(sql, i, &e);
		if (!e.is_duplicate)
			add_labelled(m, "iostall_sql_target_unanswered_seconds", "target", e.target,
				e.in_session ? seconds(e.unanswered_ns) : 0);
	}
}

/*
 * There is no sum of these times. OpenMetrics has a count only beside a sum, Prometheus always.
 */
static void add_histogram(const struct metrics *m, const char *name, const char *help,
	const uint64_t counts[static RECORD_HISTOGRAM_MAX])
{
	uint64_t sum = 0;

	begin(m, name, "histogram", help);
	for (unsigned int i = 0; i < RECORD_HISTOGRAM_MAX; i++) {
		sum += counts[i];
		if (i <= BUCKET_LAST && i % BUCKET_STEP == 0)
			text_addf(m->t, "%s_bucket{le=\"%.10g\"} %" PRIu64 "\n", name,
				seconds(NSEC_PER_USEC << i), sum);
	}
	text_addf(m->t, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, sum);
	if (m->format != METRICS_OPENMETRICS)
		text_addf(m->t, "%s_count %" PRIu64 "\n", name, sum);
}

/* Every program that Prometheus reads has these. */
static void add_process(const struct metrics *m)
{
	begin(m, "process_cpu_seconds_total", "counter", "CPU time of the daemon.");
	add_value(m, "process_cpu_seconds_total", seconds(clock_process_cpu_ns()));
	begin(m, "process_resident_memory_bytes", "gauge", "Resident memory of the daemon.");
	add_value(m, "process_resident_memory_bytes", (double)memory_resident_bytes());
	begin(m, "process_start_time_seconds", "gauge", "When the daemon was started.");
	add_value(m, "process_start_time_seconds", seconds(m->status->started_real_ns));
}

static const char *opened_by(unsigned int rule)
{
	return rule < CONFIG_RULE_COUNT ? rules_name(rule) : "manual";
}

static bool may_open(const struct metrics *m, unsigned int rule)
{
	return rule == CONFIG_RULE_COUNT || m->status->config->rules[rule].enabled;
}

static void add_verdict(const struct metrics *m)
{
	const struct session_verdict *last = session_last_verdict(m->status->session);

	/* That of an earlier incident says nothing of one that has none yet. */
	if (!last->incident[0] || strcmp(last->incident, session_incident(m->status->session)) != 0)
		return;
	begin(m, "iostall_verdict", "gauge",
		"1: the verdict on the newest incident is of this class, so far while it is open.");
	add_labelled(m, "iostall_verdict", "class", record_class_text(last->class), 1);
}

static void add_incidents(const struct metrics *m)
{
	const struct tally *tally = session_get_tally(m->status->session);

	add_histogram(m, "iostall_request_queue_seconds",
		"Time of reads and writes from their creation until they were issued to the disk, in closed incidents.",
		tally->queue);
	add_histogram(m, "iostall_request_device_seconds",
		"Time of reads and writes from their issue to the disk until they completed, in closed incidents.",
		tally->device);
	begin(m, "iostall_lost_total", "counter",
		"What is missing from the records of closed incidents, by cause. Each counts something else.");
	for (unsigned int i = RECORD_LOST_NONE + 1; i < RECORD_LOST_COUNT; i++)
		add_labelled(m, "iostall_lost_total", "cause", record_lost_text(i),
			(double)tally->lost[i]);
	begin(m, "iostall_last_incident_timestamp_seconds", "gauge",
		"When the newest incident was opened by that rule. None: it has not since the daemon started.");
	for (unsigned int rule = 0; rule <= CONFIG_RULE_COUNT; rule++)
		if (tally->last_real_ns[rule])
			add_labelled(m, "iostall_last_incident_timestamp_seconds", "rule",
				opened_by(rule), seconds(tally->last_real_ns[rule]));
	begin(m, "iostall_incidents_opened_total", "counter",
		"Opened incidents, by the rule that opened them. manual: iostall trigger.");
	for (unsigned int rule = 0; rule <= CONFIG_RULE_COUNT; rule++)
		if (may_open(m, rule))
			add_labelled(m, "iostall_incidents_opened_total", "rule", opened_by(rule),
				(double)tally->opened[rule]);
	begin(m, "iostall_incidents_total", "counter",
		"Closed incidents, by the rule that opened them and the class of their verdict.");
	for (unsigned int rule = 0; rule <= CONFIG_RULE_COUNT; rule++)
		for (unsigned int i = RECORD_CLASS_NONE + 1; i < RECORD_CLASS_COUNT; i++) {
			if (!tally->closed[rule][i])
				continue;
			text_add(m->t, "iostall_incidents_total");
			add_labels(m, "rule", opened_by(rule), true);
			add_labels(m, "class", record_class_text(i), false);
			text_addf(m->t, "} %" PRIu64 "\n", tally->closed[rule][i]);
		}
}

/* Half a line would be an error. */
static void end(const struct metrics *m)
{
	struct text *t = m->t;
	const size_t last = t->size - 1 - strlen(OPENMETRICS_END);

	if (t->overflow || t->len > last) {
		t->len = t->len < last ? t->len : last;
		while (t->len > 0 && t->buf[t->len - 1] != '\n')
			t->len--;
		t->buf[t->len] = '\0';
		t->overflow = false;
	}
	if (m->format == METRICS_OPENMETRICS)
		text_add(t, OPENMETRICS_END);
}

void metrics_add(const struct daemon_status *status, enum metrics_format format, struct text *out)
{
	const struct metrics m = { status, format, out };

	add_build(&m);
	add_state(&m);
	add_rules(&m);
	add_devices(&m);
	add_probes(&m);
	add_targets(&m);
	if (format != METRICS_TEXTFILE)
		add_process(&m);

	add_verdict(&m);
	add_incidents(&m);
	end(&m);
}
