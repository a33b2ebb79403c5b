/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lines of a record that are about the incident as a whole: open, sample, close. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "loop.h"
#include "session/internal.h"
#include "sinks/sink.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/parse.h"
#include "version.h"
#include "watch/watch.h"

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

void session_write_line(struct session *s)
{
	session_note_facts(s);
	sinks_write(s->o.sinks, &s->record);
}

void session_write_open(struct session *s, const struct record_trigger *trigger)
{
	struct record_open *open = &session_begin_line(s, RECORD_OPEN)->open;

	open->trigger = *trigger;
	text_copy(open->host, sizeof(open->host), s->host);
	text_copy(open->kernel, sizeof(open->kernel), s->kernel);
	text_copy(open->boot_id, sizeof(open->boot_id), s->boot_id);
	text_copy(open->version, sizeof(open->version), IOSTALL_VERSION);
	open->min_stall_ns = s->o.config->trace.min_stall_ns;
	open->armed_ns = s->incident.armed_ns;
	probe_set_describe_coverage(&s->probes, open);
	session_write_line(s);
}

static void write_sample(struct session *s, const struct watch_sample *sample, bool before_trigger)
{
	struct record *r = session_begin_line(s, RECORD_SAMPLE);

	r->real_ns = sample->real_ns;
	r->mono_ns = sample->mono_ns;
	r->sample.before_trigger = before_trigger;
	r->sample.sample = *sample;
	if (sample == watch_last(s->o.watch))
		r->sample.limits = *watch_limits(s->o.watch);
	s->incident.samples++;
	session_write_line(s);
}

void session_write_history(struct session *s)
{
	for (unsigned int i = 0; i < watch_history_count(s->o.watch); i++)
		write_sample(s, watch_history_get(s->o.watch, i), true);
}

void session_write_sample(struct session *s)
{
	const struct watch_sample *sample = watch_last(s->o.watch);

	if (sample)
		write_sample(s, sample, false);
}

static uint64_t read_rss_bytes(void)
{
	char buf[128];
	struct cursor c = { buf, buf };
	uint64_t size, resident;
	ssize_t n = file_read_at(AT_FDCWD, "/proc/self/statm", buf, sizeof(buf));

	if (n > 0)
		c.end = buf + n;
	if (cursor_u64(&c, &size) < 0 || cursor_u64(&c, &resident) < 0)
		return 0;
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void fill_lost(struct session *s, uint64_t lost[RECORD_LOST_COUNT])
{
	/* The order of enum event_loss is that of lost.def's first lines. */
	static const enum record_lost of_loss[EVENT_LOSS_COUNT] = {
		[EVENT_LOSS_RING_FULL] = RECORD_LOST_ring_full,
		[EVENT_LOSS_MAP_FULL] = RECORD_LOST_map_full,
		[EVENT_LOSS_RETURN_MISSED] = RECORD_LOST_return_missed,
		[EVENT_LOSS_PATH_TRUNCATED] = RECORD_LOST_path_truncated,
		[EVENT_LOSS_ACCOUNT_FULL] = RECORD_LOST_account_full,
	};
	struct probe_counters now;

	if (!s->o.without_probes) {
		probe_set_read_counters(&s->probes, &now);
		for (unsigned int i = 0; i < EVENT_LOSS_COUNT; i++)
			lost[of_loss[i]] = now.losses[i] - s->counters_at_open.losses[i];
		lost[RECORD_LOST_prog_skipped] =
			now.skipped_runs - s->counters_at_open.skipped_runs;
		lost[RECORD_LOST_probe_missed] =
			now.missed_hits - s->counters_at_open.missed_hits;
	}
	lost[RECORD_LOST_return_missed] += s->incident.returns_missed;
	lost[RECORD_LOST_event_invalid] = s->incident.events_invalid;
	lost[RECORD_LOST_not_visited] = s->incident.not_visited;
	lost[RECORD_LOST_kernel_lines] = s->kmsg.lost + s->incident.kernel_lines_left_out;
	lost[RECORD_LOST_stuck_unreported] = s->incident.stuck_unreported;
	sinks_dropped(s->o.sinks, lost);
}

const struct record_close *session_write_close(struct session *s, uint64_t detach_ns)
{
	const struct incident *incident = &s->incident;
	struct record *r = session_begin_line(s, RECORD_CLOSE);
	struct record_close *close = &r->close;

	text_copy(close->reason, sizeof(close->reason), s->close_reason);
	close->duration_ns = r->mono_ns - incident->trigger_ns;
	close->stalls = incident->stalls;
	close->stuck_lines = incident->stuck_lines;
	close->stuck_threads = incident->stuck_operations;
	close->longest_ns = incident->longest_ns;
	close->samples = incident->samples;
	close->cpu_ns = clock_process_cpu_ns() - incident->cpu_start_ns;
	close->armed_ns = incident->armed_ns;
	close->attach_ns = incident->attach_ns;
	close->detach_ns = detach_ns;
	close->turn_ns = loop_take_longest_turn(s->o.loop);
	close->rss_bytes = read_rss_bytes();
	fill_lost(s, close->lost);
	session_write_line(s);
	return close;
}
