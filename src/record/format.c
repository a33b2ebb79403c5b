/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "record/fields.h"
#include "record/format.h"
#include "util/clock.h"

/* So many frames say where a thread waits; the record has all of them. */
#define FRAMES_SHOWN 8

void record_add_printable(struct text *t, const char *s)
{
	const char *replaced;

	/*
	 * A record keeps a byte that was not UTF-8 as 0xff; which byte it was nobody knows any
	 * more.
	 */
	while ((replaced = strchr(s, '\xff'))) {
		text_add_printable(t, s, (size_t)(replaced - s));
		text_add(t, "\xef\xbf\xbd");
		s = replaced + 1;
	}
	text_add_printable(t, s, strlen(s));
}

void format_add_known(struct text *t, const char *before, const char *s)
{
	if (*s == '\0')
		return;
	text_add(t, before);
	record_add_printable(t, s);
}

void format_add_or_unknown(struct text *t, const char *s)
{
	record_add_printable(t, *s ? s : "?");
}

void record_add_duration(struct text *t, uint64_t duration_ns)
{
	uint64_t sec = duration_ns / NSEC_PER_SEC;

	if (duration_ns < NSEC_PER_MSEC)
		text_addf(t, "%llu us", duration_ns / NSEC_PER_USEC);
	else if (duration_ns < 10 * NSEC_PER_MSEC)
		text_addf(t, "%.1f ms", (double)duration_ns / NSEC_PER_MSEC);
	else if (sec < 1)
		text_addf(t, "%llu ms", duration_ns / NSEC_PER_MSEC);
	else if (sec < 60)
		text_addf(t, "%" PRIu64 ".%02u s", sec,
			(unsigned int)(duration_ns % NSEC_PER_SEC / (10 * NSEC_PER_MSEC)));
	else if (sec < 3600)
		text_addf(t, "%" PRIu64 "m%02us", sec / 60, (unsigned int)(sec % 60));
	else
		text_addf(t, "%" PRIu64 "h%02um", sec / 3600, (unsigned int)(sec / 60 % 60));
}

void format_add_real(struct text *t, double value, const char *unit)
{
	if (isfinite(value))
		text_addf(t, "%.4g%s", value, unit);
	else
		text_add(t, "-");
}

/* "  +12.345s  ": behind the open, or before it for the samples that led up to it. */
void format_add_time(struct text *t, const struct record *r, uint64_t opened_mono_ns)
{
	uint64_t mono_ns = record_line_mono_ns(r);
	bool before = mono_ns < opened_mono_ns;
	uint64_t distance_ns = before ? opened_mono_ns - mono_ns : mono_ns - opened_mono_ns;
	uint64_t ms = distance_ns / NSEC_PER_MSEC;
	char number[32];

	snprintf(number, sizeof(number), "%c%" PRIu64 ".%03u", before ? '-' : '+', ms / 1000,
		(unsigned int)(ms % 1000));
	text_addf(t, "%9ss  ", number);
}

void record_add_trigger(struct text *t, const struct record_trigger *trigger)
{
	format_add_or_unknown(t, trigger->rule);
	if (isfinite(trigger->value) && strcmp(trigger->rule, "manual") != 0) {
		char unit[2 + 4 * sizeof(trigger->unit)] = " ";
		struct text u = { .buf = unit, .size = sizeof(unit), .len = 1 };

		record_add_printable(&u, trigger->unit);
		text_add(t, " ");
		format_add_real(t, trigger->value, unit);
		text_add(t, ", threshold ");
		format_add_real(t, trigger->threshold, unit);
	}
	format_add_known(t, ", device ", trigger->device);
	format_add_known(t, ", of ", trigger->subject);
	if (trigger->pid > 0)
		text_addf(t, ", process %" PRId32 " thread %" PRId32, trigger->pid, trigger->tid);
}

static bool coverage_is_same(const struct record_coverage *a, const struct record_coverage *b)
{
	return strcmp(a->probe, b->probe) == 0 && strcmp(a->backend, b->backend) == 0 &&
		strcmp(a->reason, b->reason) == 0;
}

/* Paths of which the same is to be said share a line, which stands where the first of them would. */
static void format_coverage(const struct record_open *open, uint32_t first, struct text *t)
{
	const struct record_coverage *c = &open->coverage[first];

	for (uint32_t i = 0; i < first; i++)
		if (coverage_is_same(&open->coverage[i], c))
			return;
	text_add(t, "  coverage  ");
	format_add_or_unknown(t, c->path);
	for (uint32_t i = first + 1; i < open->coverage_count && i < RECORD_COVERAGE_MAX; i++)
		if (coverage_is_same(&open->coverage[i], c))
			format_add_known(t, ", ", open->coverage[i].path);
	if (*c->probe) {
		format_add_known(t, ": ", c->probe);
		format_add_known(t, " by ", c->backend);
	} else {
		text_add(t, ": not seen");
	}
	if (*c->reason) {
		format_add_known(t, " (", c->reason);
		text_add(t, ")");
	}
	text_add(t, "\n");
}

static void format_open(const struct record *r, struct text *t)
{
	const struct record_open *open = &r->open;
	char ts[CLOCK_RFC3339_SIZE];

	clock_format_rfc3339(r->real_ns, ts, sizeof(ts));
	text_add(t, "incident ");
	format_add_or_unknown(t, r->incident);
	text_addf(t, "\n  opened    %s on ", ts);
	format_add_or_unknown(t, open->host);
	format_add_known(t, ", kernel ", open->kernel);
	format_add_known(t, ", iostall ", open->version);
	text_add(t, "\n  trigger   ");
	record_add_trigger(t, &open->trigger);
	text_add(t, "\n  armed     ");
	if (open->armed_ns) {
		text_add(t, "after ");
		record_add_duration(t, open->armed_ns);
		text_add(t, ", ");
	}
	text_add(t, "operations from ");
	record_add_duration(t, open->min_stall_ns);
	text_add(t, " on\n");
	for (uint32_t i = 0; i < open->coverage_count && i < RECORD_COVERAGE_MAX; i++)
		format_coverage(open, i, t);
}

/* " < " between names, innermost first, without offsets. */
static void format_stack(const char *kstack, bool while_blocked, struct text *t)
{
	const char *separator = while_blocked ? "            at " : "            returned at ";
	unsigned int shown = 0;

	for (const char *frame = kstack; *frame && shown < FRAMES_SHOWN; shown++) {
		size_t len = strcspn(frame, "\n"), name_len = strcspn(frame, "+\n");

		text_add(t, separator);
		text_add_printable(t, frame, name_len);
		separator = " < ";
		frame += len;
		frame += *frame == '\n' ? 1 : 0;
	}
	if (shown > 0)
		text_add(t, "\n");
}

static void format_file(const struct record_operation *o, struct text *t)
{
	text_add(t, "  ");
	if (o->fd >= 0)
		text_addf(t, "fd %" PRId32 " ", o->fd);
	format_add_or_unknown(t, o->path);
	if (o->bytes)
		text_addf(t, "  %" PRIu64 " bytes", o->bytes);
	if (o->offset >= 0)
		text_addf(t, " at %" PRId64, o->offset);
	if (*o->dev_name)
		format_add_known(t, "  ", o->dev_name);
	else if (o->dev_major || o->dev_minor)
		text_addf(t, "  %" PRIu32 ":%" PRIu32, o->dev_major, o->dev_minor);
}

static void format_outcome(const struct record *r, struct text *t)
{
	const struct record_operation *o = &r->operation;
	const char *error = o->ret < 0 && o->ret > -4096 ? strerrorname_np((int)-o->ret) : NULL;

	if (r->type == RECORD_STUCK) {
		if (o->state) {
			text_add(t, "  state ");
			text_add_printable(t, &o->state, 1);
		}
		format_add_known(t, " in ", o->wchan);
	} else if (o->ret == RECORD_RET_UNKNOWN) {
		/* Seen by its sleeps: nobody saw it return. */
	} else if (error) {
		text_addf(t, "  failed: %s", error);
	} else if (o->ret < 0) {
		text_addf(t, "  failed: %" PRId64, o->ret);
	} else if (o->bytes && (uint64_t)o->ret != o->bytes) {
		text_addf(t, "  did %" PRId64, o->ret);
	}
	format_add_known(t, "  waits for ", o->waits_for);
	format_add_known(t, "  ", o->unit);
}

static void format_operation(const struct record *r, uint64_t opened_mono_ns, struct text *t)
{
	const struct record_operation *o = &r->operation;
	char buf[64];
	struct text length = TEXT_ON(buf);

	text_reset(&length);
	if (o->before_arm)
		text_add(&length, ">=");
	record_add_duration(&length, o->dur_ns);
	format_add_time(t, r, opened_mono_ns);
	text_addf(t, "%-6s %10s  ", r->type == RECORD_STUCK ? "STUCK" : "stall", buf);
	format_add_or_unknown(t, o->comm);
	text_addf(t, "[%" PRId32 "/%" PRId32 "] ", o->pid, o->tid);
	format_add_or_unknown(t, o->op);
	format_file(o, t);
	format_outcome(r, t);
	text_add(t, "\n");
	format_stack(o->kstack, o->kstack_while_blocked, t);
}

void record_add_size(struct text *t, uint64_t bytes)
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
	double value = (double)bytes;
	unsigned int unit = 0;

	while (value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		value /= 1024;
		unit++;
	}
	text_addf(t, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

static void add_device(struct text *t, const char *name, uint32_t major, uint32_t minor)
{
	if (*name)
		record_add_printable(t, name);
	else
		text_addf(t, "%" PRIu32 ":%" PRIu32, major, minor);
}

static void add_moved(struct text *t, uint64_t read_bytes, uint64_t write_bytes)
{
	const char *separator = "";

	if (read_bytes || !write_bytes) {
		text_add(t, "read ");
		record_add_size(t, read_bytes);
		separator = ", ";
	}
	if (write_bytes) {
		text_addf(t, "%swritten ", separator);
		record_add_size(t, write_bytes);
	}
}

static void add_latency(struct text *t, const char *name, const struct record_latency *latency)
{
	text_addf(t, "  %s p50 ", name);
	record_add_duration(t, latency->p50_ns);
	text_add(t, " p99 ");
	record_add_duration(t, latency->p99_ns);
	text_add(t, " max ");
	record_add_duration(t, latency->max_ns);
}

static void add_oldest(struct text *t, const struct record_device *d)
{
	text_addf(t, "  %" PRIu64 " in flight, the oldest for ", d->in_flight);
	record_add_duration(t, d->oldest_age_ns);
	if (d->oldest_tid > 0) {
		text_add(t, ", ");
		format_add_or_unknown(t, d->oldest_comm);
		text_addf(t, "[%" PRId32 "/%" PRId32 "]", d->oldest_pid, d->oldest_tid);
	}
	format_add_known(t, " ", d->oldest_path);
}

static void format_device(const struct record *r, uint64_t opened_mono_ns, struct text *t)
{
	const struct record_device *d = &r->device;

	format_add_time(t, r, opened_mono_ns);
	text_add(t, d->final ? "disk    " : "NOTHING ENDS  ");
	add_device(t, d->dev_name, d->dev_major, d->dev_minor);
	if (d->no_completion_ns) {
		text_add(t, " has finished nothing for ");
		record_add_duration(t, d->no_completion_ns);
	}
	if (d->final) {
		text_addf(t, "  %" PRIu64 " requests, ", d->requests);
		add_moved(t, d->read_bytes, d->write_bytes);
		add_latency(t, "queue", &d->queue);
		add_latency(t, "device", &d->device);
	}
	if (d->in_flight)
		add_oldest(t, d);
	text_add(t, "\n");
}

static void format_io_by(const struct record *r, uint64_t opened_mono_ns, struct text *t)
{
	const struct record_io_by *b = &r->io_by;

	format_add_time(t, r, opened_mono_ns);
	text_add(t, "io by   ");
	format_add_or_unknown(t, b->by);
	text_add(t, "  ");
	add_device(t, b->dev_name, b->dev_major, b->dev_minor);
	text_add(t, " ");
	format_add_real(t, b->share_pct, "%");
	text_add(t, "  ");
	if (*b->comm) {
		record_add_printable(t, b->comm);
		text_addf(t, "[%" PRId32, b->pid);
		if (b->tid > 0)
			text_addf(t, "/%" PRId32, b->tid);
		text_add(t, "]  ");
	}
	if (*b->path || b->inode) {
		format_add_or_unknown(t, b->path);
		text_add(t, "  ");
	}
	if (b->cgroup_id && !*b->comm && !*b->unit)
		text_addf(t, "cgroup %" PRIu64 "  ", b->cgroup_id);
	add_moved(t, b->read_bytes, b->write_bytes);
	text_addf(t, " in %" PRIu64 " requests", b->requests);
	format_add_known(t, "  ", b->unit);
	text_add(t, b->inferred ? "  inferred\n" : "\n");
}

static void format_kernel(const struct record *r, uint64_t opened_mono_ns, struct text *t)
{
	format_add_time(t, r, opened_mono_ns);
	text_add(t, "kernel  ");
	format_add_or_unknown(t, r->kernel.level);
	format_add_known(t, "  ", r->kernel.text);
	text_add(t, "\n");
}

static void format_verdict(const struct record *r, struct text *t)
{
	const struct record_verdict *v = &r->verdict;

	text_add(t, "verdict ");
	format_add_or_unknown(t, v->class_name);
	format_add_known(t, ", ", v->basis);
	text_add(t, "\n  ");
	format_add_or_unknown(t, v->sentence);
	text_add(t, "\n");
	for (uint32_t i = 0; i < v->parts_count && i < RECORD_PARTS_MAX; i++) {
		const struct record_verdict_part *part = &v->parts[i];

		text_add(t, "  ");
		format_add_or_unknown(t, part->what);
		for (size_t len = strlen(part->what); len < 10; len++)
			text_add(t, " ");
		format_add_or_unknown(t, part->text);
		format_add_known(t, "  ", part->basis);
		text_add(t, "\n");
	}
}

static void format_lost(const uint64_t *lost, struct text *t)
{
	bool any = false;

	text_add(t, "  lost      ");
	for (unsigned int i = 0; i < RECORD_LOST_COUNT; i++) {
		if (!lost[i])
			continue;
		text_addf(t, "%s%s %" PRIu64, any ? ", " : "", record_lost_name(i), lost[i]);
		any = true;
	}
	text_add(t, any ? "\n" : "nothing\n");
}

static void format_close(const struct record *r, struct text *t)
{
	const struct record_close *c = &r->close;
	const struct {
		const char *before;
		uint64_t ns;
	} costs[] = {
		{ "cpu ", c->cpu_ns },
		{ ", armed after ", c->armed_ns },
		{ ", attach ", c->attach_ns },
		{ ", detach ", c->detach_ns },
		{ ", longest turn ", c->turn_ns },
	};

	text_add(t, "incident ");
	format_add_or_unknown(t, r->incident);
	text_add(t, "\n  closed    after ");
	record_add_duration(t, c->duration_ns);
	format_add_known(t, ": ", c->reason);
	text_add(t, "\n  seen      ");
	text_add_count(t, c->stalls, "stall, ", "stalls, ");
	text_add_count(t, c->stuck_threads, "stuck operation in ", "stuck operations in ");
	text_add_count(t, c->stuck_lines, "line", "lines");
	if (c->longest_ns) {
		text_add(t, ", longest ");
		record_add_duration(t, c->longest_ns);
	}
	text_add(t, "\n");
	format_lost(c->lost, t);
	text_add(t, "  cost      ");
	for (size_t i = 0; i < sizeof(costs) / sizeof(costs[0]); i++) {
		text_add(t, costs[i].before);
		record_add_duration(t, costs[i].ns);
	}
	text_addf(t, ", memory %.1f MiB\n", (double)c->rss_bytes / (1 << 20));
}

void record_format_text(const struct record *r, uint64_t opened_mono_ns, struct text *out)
{
	text_reset(out);
	switch (r->type) {
	case RECORD_OPEN:
		format_open(r, out);
		break;
	case RECORD_SAMPLE:
		format_sample(r, opened_mono_ns, out);
		break;
	case RECORD_DEVICE:
		format_device(r, opened_mono_ns, out);
		break;
	case RECORD_IO_BY:
		format_io_by(r, opened_mono_ns, out);
		break;
	case RECORD_KERNEL:
		format_kernel(r, opened_mono_ns, out);
		break;
	case RECORD_SQL:
		format_sql_line(r, opened_mono_ns, out);
		break;
	case RECORD_VERDICT:
		format_verdict(r, out);
		break;
	case RECORD_CLOSE:
		format_close(r, out);
		break;
	default:
		format_operation(r, opened_mono_ns, out);
		break;
	}
}
