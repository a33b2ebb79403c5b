/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the lines about the incident as a whole: open, sample, close. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "enrich/enrich.h"
#include "util/loop.h"
#include "session/internal.h"
#include "sinks/sink.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/log.h"
#include "util/memory.h"
#include "util/number.h"
#include "version.h"
#include "watch/thread_status.h"
#include "watch/watch.h"

/* More than this is worth a warning. */
#define DELAY_MAX_NS NSEC_PER_SEC

void session_read_host(struct session *s)
{
	struct utsname names;
	char boot_id[RECORD_NAME_SIZE];

	uname(&names);
	text_copy(s->host, sizeof(s->host), names.nodename);
	text_copy(s->kernel, sizeof(s->kernel), names.release);
	if (file_read_at(s->procfs_fd, "sys/kernel/random/boot_id", boot_id, sizeof(boot_id)) > 0)
		boot_id[strcspn(boot_id, "\n")] = '\0';
	else
		boot_id[0] = '\0';
	text_copy(s->boot_id, sizeof(s->boot_id), boot_id);
}

struct record *session_begin_line(struct session *s, enum record_type type)
{
	struct record *r = &s->record;

	memset(r, 0, sizeof(*r));
	r->type = type;
	text_copy(r->incident, sizeof(r->incident), s->incident.id);
	r->real_ns = clock_real_ns();
	r->mono_ns = clock_mono_ns();
	return r;
}

void session_set_line_time(struct session *s, uint64_t answered_ns)
{
	struct record *r = &s->record;

	if (answered_ns < r->mono_ns) {
		r->real_ns -= r->mono_ns - answered_ns;
		r->mono_ns = answered_ns;
	}
}

void session_write_line(struct session *s)
{
	record_settle(&s->record);
	model_add(&s->model, &s->record);
	/* Numbered before a sink may drop it: a loss shows as a number that is missing. */
	s->record.seq = s->incident.lines++;
	s->incident.stuck_lines += s->record.type == RECORD_STUCK;
	sinks_write(s->o.sinks, &s->record);
}

void session_write_alike(struct session *s)
{
	const struct alike_line *line;

	while ((line = alike_next(&s->alike))) {
		struct record *r = session_begin_line(s, line->type);

		r->real_ns = line->real_ns;
		r->mono_ns = line->mono_ns;
		r->operation = line->operation;
		session_write_line(s);
	}
}

void session_write_open(struct session *s, const struct record_trigger *trigger)
{
	struct record_open *open = &session_begin_line(s, RECORD_OPEN)->open;

	open->trigger = *trigger;
	text_copy(open->continues, sizeof(open->continues), s->opened.continues);
	text_copy(open->host, sizeof(open->host), s->host);
	text_copy(open->kernel, sizeof(open->kernel), s->kernel);
	text_copy(open->boot_id, sizeof(open->boot_id), s->boot_id);
	text_copy(open->version, sizeof(open->version), IOSTALL_VERSION);
	open->min_stall_ns = s->o.config->trace.min_stall_ns;
	open->well_mono_ns = s->well_ns;
	open->armed_ns = s->incident.armed_ns;
	open->waited_ns = s->incident.waited_ns;
	probe_set_describe_coverage(&s->probes, s->switches_wanted, s->attach_wanted, open);
	enrich_choose_stack(s->o.enrich, open->stack, &open->stack_count, &open->stack_left_out);
	session_write_line(s);
}

static void write_trigger(struct session *s, const struct record_trigger *trigger)
{
	session_begin_line(s, RECORD_TRIGGER)->trigger = *trigger;
	session_write_line(s);
}

void session_note_trigger(struct session *s, const struct record_trigger *trigger)
{
	struct incident *incident = &s->incident;

	if (s->state == SESSION_TRACING)
		write_trigger(s, trigger);
	else if (incident->triggers_count < INCIDENT_TRIGGERS_MAX)
		incident->triggers[incident->triggers_count++] = *trigger;
}

static void set_limits(const struct session *s, struct record_limits *limits)
{
	*limits = *watch_limits(s->o.watch);
	for (uint32_t i = 0; i < limits->file_systems_count; i++) {
		struct record_file_system *fs = &limits->file_systems[i];

		enrich_device(s->o.enrich, fs->dev.major, fs->dev.minor, fs->dev_name,
			sizeof(fs->dev_name));
	}
}

void session_find_writer(struct session *s, struct record_writer *ret_writer)
{
	if (!*s->full_mount)
		return;
	enrich_find_writer(s->o.enrich, s->full_mount, s->incident.trigger_ns, ret_writer);
	text_copy(ret_writer->relation, sizeof(ret_writer->relation),
		sql_find_relation(s->o.sql, ret_writer->path));
}

void session_find_file_server(struct session *s)
{
	const struct model_wait *w = model_servers_to_find(&s->model, clock_mono_ns());

	if (w)
		enrich_find_file_server(s->o.enrich, w->dev.major, w->dev.minor, w->cause,
			s->incident.trigger_ns);
}

/* The database that has been silent for longest. */
static void find_silence(struct session *s, struct record_silence *ret_silence)
{
	const struct record_cpu_limited *limit;
	struct watch_thread_status status;
	struct sql_evidence e;

	for (unsigned int i = 0; i < sql_targets_count(s->o.sql); i++) {
		sql_get_evidence(s->o.sql, i, &e);
		if (!e.in_session || e.unanswered_ns <= ret_silence->unanswered_ns)
			continue;
		*ret_silence = (struct record_silence){ .present = true,
			.unanswered_ns = e.unanswered_ns,
			.pid = e.server_pid };
		text_copy(ret_silence->target, sizeof(ret_silence->target), e.target);
	}
	if (!ret_silence->pid || thread_status_read(s->procfs_fd, ret_silence->pid, &status) < 0)
		return;
	ret_silence->stopped = status.state == 'T' || status.state == 't';
	text_copy(ret_silence->comm, sizeof(ret_silence->comm), status.comm);
	limit = watch_cpu_limit_of(s->o.watch, ret_silence->pid);
	if (limit)
		text_copy(ret_silence->cpu_limit, sizeof(ret_silence->cpu_limit), limit->path);
}

static bool is_of_trigger(const struct session *s, const char *target)
{
	return strcmp(s->opened.trigger.subject, target) == 0;
}

/* Who logs in now is refused. Of several databases the one that opened the incident is told. */
static void find_connections(struct session *s, struct record_connections *ret_connections)
{
	struct watch_thread_status status;
	struct sql_evidence e;

	for (unsigned int i = 0; i < sql_targets_count(s->o.sql); i++) {
		const struct sql_connections *c;

		sql_get_evidence(s->o.sql, i, &e);
		/* An old answer says nothing of now. */
		c = e.current && !e.unanswered_ns && !*e.why ? &e.current->connections : NULL;
		if (!c || !c->allowed || c->used < c->allowed ||
			(ret_connections->present && !is_of_trigger(s, e.target)))
			continue;
		*ret_connections = (struct record_connections){ .present = true,
			.used = c->used,
			.allowed = c->allowed,
			.of_user = c->of_user,
			.of_user_idle = c->of_user_idle,
			.pid = e.server_pid };
		text_copy(ret_connections->target, sizeof(ret_connections->target), e.target);
		text_copy(ret_connections->user, sizeof(ret_connections->user), c->user);
	}
	if (ret_connections->pid &&
		thread_status_read(s->procfs_fd, ret_connections->pid, &status) == 0)
		text_copy(ret_connections->comm, sizeof(ret_connections->comm), status.comm);
}

static void write_sample(struct session *s, const struct record_reading *sample,
	bool before_trigger)
{
	struct record *r = session_begin_line(s, RECORD_SAMPLE);

	r->real_ns = sample->real_ns;
	r->mono_ns = sample->mono_ns;
	r->sample.before_trigger = before_trigger;
	r->sample.reading = *sample;
	if (sample == watch_last(s->o.watch))
		set_limits(s, &r->sample.limits);
	if (!before_trigger) {
		session_find_writer(s, &r->sample.writer);
		enrich_get_file_server(s->o.enrich, s->incident.trigger_ns, &r->sample.file_server);
		find_connections(s, &r->sample.connections);
		find_silence(s, &r->sample.silence);
	}
	s->incident.samples++;
	session_write_line(s);
}

void session_write_history(struct session *s)
{
	/* A trigger that came while the probes were being loaded has samples behind it. */
	for (unsigned int i = 0; i < watch_history_count(s->o.watch); i++) {
		const struct record_reading *sample = watch_history_get(s->o.watch, i);

		write_sample(s, sample, sample->mono_ns <= s->incident.trigger_ns);
	}
	for (uint32_t i = 0; i < s->incident.triggers_count; i++)
		write_trigger(s, &s->incident.triggers[i]);
}

void session_write_sample(struct session *s)
{
	const struct record_reading *sample = watch_last(s->o.watch);

	struct watch_left_out left_out;

	if (!sample)
		return;
	watch_get_left_out(s->o.watch, &left_out);
	if (left_out.disks > s->incident.disks_left_out)
		s->incident.disks_left_out = left_out.disks;
	write_sample(s, sample, false);
}

static void fill_lost(struct session *s, uint64_t lost[RECORD_LOST_COUNT])
{
	static const enum record_lost of_loss[EVENT_LOSS_COUNT] = {
		[EVENT_LOSS_RING_FULL] = RECORD_LOST_ring_full,
		[EVENT_LOSS_MAP_FULL] = RECORD_LOST_map_full,
		[EVENT_LOSS_RETURN_MISSED] = RECORD_LOST_return_missed,
		[EVENT_LOSS_PATH_TRUNCATED] = RECORD_LOST_path_truncated,
		[EVENT_LOSS_ACCOUNT_FULL] = RECORD_LOST_account_full,
	};
	struct watch_left_out left_out;
	struct probe_counters now;

	if (!s->o.without_probes) {
		probe_set_read_counters(&s->probes, &now);
		for (unsigned int i = 0; i < EVENT_LOSS_COUNT; i++)
			lost[of_loss[i]] = minus(now.losses[i], s->counters_at_open.losses[i]);
		lost[RECORD_LOST_prog_skipped] =
			minus(now.skipped_runs, s->counters_at_open.skipped_runs);
		lost[RECORD_LOST_stack_unread] = stack_reader_unread(s->stacks);
		lost[RECORD_LOST_probe_missed] = s->misses - s->misses_at_open;
	}
	lost[RECORD_LOST_stack_unread] += s->incident.stacks_left_out;
	lost[RECORD_LOST_names_unread] = enrich_names_unread(s->o.enrich);
	lost[RECORD_LOST_ring_full] += s->incident.events_unread;
	lost[RECORD_LOST_account_full] += s->incident.account_full;
	lost[RECORD_LOST_event_invalid] = s->incident.events_invalid;
	lost[RECORD_LOST_not_visited] = s->incident.not_visited + s->incident.new_not_visited;
	lost[RECORD_LOST_filter_full] = s->incident.filter_full;
	watch_get_left_out(s->o.watch, &left_out);
	lost[RECORD_LOST_watch_full] = left_out.processes + s->incident.disks_left_out;
	lost[RECORD_LOST_watch_unread] = left_out.unread - s->unread_at_open;
	lost[RECORD_LOST_kernel_lines] = s->kmsg.lost + s->incident.kernel_lines_left_out;
	lost[RECORD_LOST_stuck_unreported] = s->incident.stuck_unreported;
	lost[RECORD_LOST_sql_invalid] = sql_count_invalid(s->o.sql);
	sinks_dropped(s->o.sinks, lost);
}

const struct record_close *session_write_close(struct session *s)
{
	const struct incident *incident = &s->incident;
	struct record *r = session_begin_line(s, RECORD_CLOSE);
	struct record_close *close = &r->close;

	close->reason = s->close_reason;
	close->duration_ns = r->mono_ns - incident->trigger_ns;
	close->stalls = incident->stalls;
	close->stuck_lines = incident->stuck_lines;
	close->stuck_threads = incident->stuck_operations;
	close->longest_ns = incident->longest_ns;
	close->samples = incident->samples;
	close->cost.cpu_ns = clock_process_cpu_ns() - incident->cpu_start_ns;
	close->cost.armed_ns = incident->armed_ns;
	close->cost.attach_ns = incident->attach_ns;
	close->cost.disarm_ns = r->mono_ns - s->disarm_start_ns;
	close->cost.turn_ns = loop_take_longest_turn(s->o.loop);
	close->cost.delay_ns = loop_take_longest_delay(s->o.loop);
	if (close->cost.delay_ns > DELAY_MAX_NS)
		log_warning("incident %s: the event loop was late by up to %.1f s", s->incident.id,
			(double)close->cost.delay_ns / NSEC_PER_SEC);
	close->cost.rss_bytes = memory_resident_bytes();
	close->cost.kernel_bytes = s->probes.kernel_bytes;
	fill_lost(s, close->lost);
	session_write_line(s);
	return close;
}
