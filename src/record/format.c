/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "record/fields.h"
#include "record/format.h"
#include "util/clock.h"

/* So many frames say where a thread waits; the record has all of them. */
#define FRAMES_SHOWN 8

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
	return a->probe == b->probe && a->backend == b->backend && a->pairing == b->pairing &&
		strcmp(a->reason, b->reason) == 0;
}

/*
 * Paths of which the same is to be said share a line, which stands where the first of them would.
 */
static void format_coverage(const struct record_open *open, uint32_t first, struct text *t)
{
	const struct record_coverage *c = &open->coverage[first];

	for (uint32_t i = 0; i < first; i++)
		if (coverage_is_same(&open->coverage[i], c))
			return;
	text_add(t, "  coverage  ");
	format_add_or_unknown(t, record_io_path_text(c->path));
	for (uint32_t i = first + 1; i < open->coverage_count && i < RECORD_COVERAGE_MAX; i++)
		if (coverage_is_same(&open->coverage[i], c))
			format_add_known(t, ", ", record_io_path_text(open->coverage[i].path));
	if (c->probe) {
		format_add_known(t, ": ", record_probe_text(c->probe));
		format_add_known(t, " by ", record_backend_text(c->backend));
		format_add_known(t, ", pairing ", record_pairing_text(c->pairing));
	} else {
		text_add(t, ": not seen");
	}
	if (*c->reason) {
		format_add_known(t, " (", c->reason);
		text_add(t, ")");
	}
	text_add(t, "\n");
}

void record_add_coverage(const struct record_open *open, struct text *t)
{
	for (uint32_t i = 0; i < open->coverage_count && i < RECORD_COVERAGE_MAX; i++)
		format_coverage(open, i, t);
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
	format_add_known(t, "\n  continues ", open->continues);
	text_add(t, "\n  armed     ");
	if (open->armed_ns) {
		text_add(t, "after ");
		record_add_duration(t, open->armed_ns);
		text_add(t, ", ");
	}
	text_add(t, "operations from ");
	record_add_duration(t, open->min_stall_ns);
	text_add(t, " on\n");
	record_add_coverage(open, t);
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

/* The name of a file of PostgreSQL is a number. */
static void format_add_file(struct text *t, const char *path, const char *relation)
{
	format_add_or_unknown(t, path);
	if (!*relation)
		return;
	text_add(t, " (");
	record_add_printable(t, relation);
	text_add(t, ")");
}

static void format_file(const struct record_operation *o, struct text *t)
{
	text_add(t, "  ");
	if (o->fd >= 0)
		text_addf(t, "fd %" PRId32 " ", o->fd);
	format_add_file(t, o->path, o->relation);
	if (o->bytes)
		text_addf(t, "  %" PRIu64 " bytes", o->bytes);
	if (o->offset >= 0)
		text_addf(t, " at %" PRId64, o->offset);
	if (*o->dev_name)
		format_add_known(t, "  ", o->dev_name);
	else if (o->dev.major || o->dev.minor)
		text_addf(t, "  %" PRIu32 ":%" PRIu32, o->dev.major, o->dev.minor);
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
	format_add_known(t, "  waits for ", record_cause_text(o->waits_for));
	format_add_known(t, "  ", o->unit);
}

static const char *type_word(const struct record *r)
{
	if (r->type == RECORD_ERROR)
		return "error";
	return r->type == RECORD_STUCK ? "STUCK" : "stall";
}

static void format_operation(const struct record *r, uint64_t opened_mono_ns, struct text *t)
{
	const struct record_operation *o = &r->operation;
	char buf[64];
	struct text length = TEXT_ON(buf);

	text_reset(&length);
	if (o->since == RECORD_SINCE_before_arm)
		text_add(&length, ">=");
	if (r->type != RECORD_ERROR)
		record_add_duration(&length, o->dur_ns);
	format_add_time(t, r, opened_mono_ns);
	text_addf(t, "%-6s %10s  ", type_word(r), buf);
	format_add_or_unknown(t, o->comm);
	text_addf(t, "[%" PRId32 "/%" PRId32 "] ", o->pid, o->tid);
	format_add_or_unknown(t, record_op_text(o->op));
	format_file(o, t);
	format_outcome(r, t);
	if (o->alike.present) {
		text_addf(t, "  and %" PRIu32 " alike", o->alike.count);
	}
	if (o->alike.present && r->type != RECORD_ERROR) {
		text_add(t, ", ");
		record_add_duration(t, o->alike.min_ns);
		text_add(t, " to ");
		record_add_duration(t, o->alike.max_ns);
	}
	text_add(t, "\n");
	format_stack(o->kstack, o->kstack_while_blocked, t);
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
	record_add_duration(t, d->oldest.age_ns);
	if (d->oldest.tid > 0) {
		text_add(t, ", ");
		format_add_or_unknown(t, d->oldest.comm);
		text_addf(t, "[%" PRId32 "/%" PRId32 "]", d->oldest.pid, d->oldest.tid);
	}
	format_add_known(t, " ", d->oldest.path);
}

static void format_device(const struct record *r, uint64_t opened_mono_ns, struct text *t)
{
	const struct record_device *d = &r->device;

	format_add_time(t, r, opened_mono_ns);
	text_add(t, d->final ? "disk    " : "NOTHING ENDS  ");
	add_device(t, d->dev_name, d->dev.major, d->dev.minor);
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
	format_add_or_unknown(t, record_by_text(b->by));
	text_add(t, "  ");
	add_device(t, b->dev_name, b->dev.major, b->dev.minor);
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
		format_add_file(t, b->path, b->relation);
		text_add(t, "  ");
	}
	if (b->cgroup && !*b->comm && !*b->unit)
		text_addf(t, "cgroup %" PRIu64 "  ", b->cgroup);
	add_moved(t, b->read_bytes, b->write_bytes);
	text_addf(t, " in %" PRIu64 " requests", b->requests);
	format_add_known(t, "  ", b->unit);
	text_add(t, b->inferred ? "  inferred\n" : "\n");
}

static void format_offcpu(const struct record *r, uint64_t opened_mono_ns, struct text *t)
{
	const struct record_offcpu *o = &r->offcpu;

	format_add_time(t, r, opened_mono_ns);
	text_add(t, "off CPU ");
	record_add_duration(t, o->time_ns);
	text_add(t, " of ");
	record_add_duration(t, o->window_ns);
	if (o->others) {
		text_addf(t, "  %" PRIu32 " other stacks\n", o->others);
		return;
	}
	text_add(t, "  ");
	record_add_printable(t, o->process);
	text_addf(t, "[%" PRId32 "] ", o->pid);
	record_add_printable(t, o->comm);
	text_addf(t, "  state %c", o->state ? o->state : '?');
	format_add_known(t, ", waits for ", record_cause_text(o->waits_for));
	text_add(t, "  ");
	text_add_count(t, o->threads, "thread", "threads");
	text_add(t, ", the longest ");
	record_add_duration(t, o->longest_ns);
	if (o->runnable_ns) {
		text_add(t, ", without a CPU ");
		record_add_duration(t, o->runnable_ns);
	}
	if (o->waker.present) {
		text_add(t, ", woken by ");
		if (o->waker.interrupt)
			text_add(t, "an interrupt");
		else
			record_add_printable(t, o->waker.comm);
		if (o->waker.tid)
			text_addf(t, "[%" PRId32 "/%" PRId32 "]", o->waker.pid, o->waker.tid);
	}
	text_add(t, "\n");
	format_stack(o->kstack, true, t);
}

static void format_journal(const struct record *r, uint64_t opened_mono_ns, struct text *t)
{
	const struct record_journal *j = &r->journal;

	format_add_time(t, r, opened_mono_ns);
	text_add(t, "journal ");
	add_device(t, j->dev_name, j->dev.major, j->dev.minor);
	text_addf(t, "  %" PRIu64 " commits, the longest ", j->commits);
	record_add_duration(t, j->longest_ns);
	text_addf(t, " with %" PRIu64 " blocks, %" PRIu64 " %% of it for data", j->longest_blocks,
		j->longest_data_pct);
	if (j->early_ns) {
		text_add(t, ", one from before for at least ");
		record_add_duration(t, j->early_ns);
	}
	if (j->under_way_ns) {
		text_add(t, ", one under way for ");
		record_add_duration(t, j->under_way_ns);
	}
	text_addf(t, "  %" PRIu64 " blocks changed", j->blocks);
	if (j->pid) {
		text_add(t, ", ");
		format_add_real(t, j->share_pct, "%");
		text_add(t, " by ");
		record_add_printable(t, j->comm);
		text_addf(t, "[%" PRId32 "]", j->pid);
	}
	text_add(t, "\n");
}

static void format_kernel(const struct record *r, uint64_t opened_mono_ns, struct text *t)
{
	format_add_time(t, r, opened_mono_ns);
	text_add(t, "kernel  ");
	format_add_or_unknown(t, record_level_text(r->kernel.level));
	format_add_known(t, "  ", r->kernel.text);
	text_add(t, "\n");
}

static void format_verdict(const struct record *r, struct text *t)
{
	const struct record_verdict *v = &r->verdict;

	text_add(t, "verdict ");
	format_add_or_unknown(t, record_class_text(v->class));
	format_add_known(t, ", ", record_basis_text(v->basis));
	text_add(t, "\n  ");
	format_add_or_unknown(t, v->sentence);
	text_add(t, "\n");
	for (uint32_t i = 0; i < v->parts_count && i < RECORD_PARTS_MAX; i++) {
		const struct record_verdict_part *part = &v->parts[i];

		text_add(t, "  ");
		format_add_or_unknown(t, record_what_text(part->what));
		text_add(t, " ");
		for (size_t len = strlen(record_what_text(part->what)); len < 9; len++)
			text_add(t, " ");
		format_add_or_unknown(t, part->text);
		format_add_known(t, "  ", record_basis_text(part->basis));
		text_add(t, "\n");
	}
}

void record_add_lost(const uint64_t lost[RECORD_LOST_COUNT], struct text *t)
{
	bool any = false;

	text_add(t, "  lost      ");
	for (unsigned int i = 0; i < RECORD_LOST_COUNT; i++) {
		if (!lost[i])
			continue;
		text_addf(t, "%s%s %" PRIu64, any ? ", " : "", record_lost_text(i), lost[i]);
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
		{ "cpu ", c->cost.cpu_ns },
		{ ", armed after ", c->cost.armed_ns },
		{ ", attach ", c->cost.attach_ns },
		{ ", disarm ", c->cost.disarm_ns },
		{ ", longest turn ", c->cost.turn_ns },
		{ ", latest timer ", c->cost.delay_ns },
	};

	text_add(t, "incident ");
	format_add_or_unknown(t, r->incident);
	text_add(t, "\n  closed    after ");
	record_add_duration(t, c->duration_ns);
	format_add_known(t, ": ", record_reason_text(c->reason));
	text_add(t, "\n  seen      ");
	text_add_count(t, c->stalls, "stall, ", "stalls, ");
	text_add_count(t, c->stuck_threads, "stuck operation in ", "stuck operations in ");
	text_add_count(t, c->stuck_lines, "line", "lines");
	if (c->longest_ns) {
		text_add(t, ", longest ");
		record_add_duration(t, c->longest_ns);
	}
	text_add(t, "\n");
	record_add_lost(c->lost, t);
	text_add(t, "  cost      ");
	for (size_t i = 0; i < sizeof(costs) / sizeof(costs[0]); i++) {
		text_add(t, costs[i].before);
		record_add_duration(t, costs[i].ns);
	}
	text_addf(t, ", memory %.1f MiB and %.1f MiB in the kernel\n",
		(double)c->cost.rss_bytes / (1 << 20), (double)c->cost.kernel_bytes / (1 << 20));
}

static void format_trigger(const struct record *r, uint64_t opened_mono_ns, struct text *t)
{
	format_add_time(t, r, opened_mono_ns);
	text_add(t, "trigger ");
	record_add_trigger(t, &r->trigger);
	text_add(t, "\n");
}

void record_format_text(const struct record *r, uint64_t opened_mono_ns, struct text *out)
{
	text_reset(out);
	switch (r->type) {
	case RECORD_OPEN:
		format_open(r, out);
		break;
	case RECORD_TRIGGER:
		format_trigger(r, opened_mono_ns, out);
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
	case RECORD_JOURNAL:
		format_journal(r, opened_mono_ns, out);
		break;
	case RECORD_OFFCPU:
		format_offcpu(r, opened_mono_ns, out);
		break;
	case RECORD_KERNEL:
		format_kernel(r, opened_mono_ns, out);
		break;
	case RECORD_LOCK:
		format_lock(r, opened_mono_ns, out);
		break;
	case RECORD_SQL:
		format_sql_line(r, opened_mono_ns, out);
		break;
	case RECORD_QUEUE:
		format_queue(r, opened_mono_ns, out);
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
