/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The JSON text for the scripts of the page, as report/README.md has it. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/internal.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/sort.h"

/* Numbers beyond it are not exact in JavaScript. */
#define EXACT_MAX (1ull << 53)

static void add_string(struct report *p, struct text *out, const char *key, uint32_t index)
{
	text_json_u64(out, key, strings_number(&p->strings, index));
}

static void add_number(struct text *out, const char *key, uint64_t value)
{
	char digits[24];

	if (value < EXACT_MAX) {
		text_json_u64(out, key, value);
		return;
	}
	snprintf(digits, sizeof(digits), "%" PRIu64, value);
	text_json_string(out, key, digits);
}

static void add_time(const struct report *p, struct text *out, const char *key, uint64_t mono_ns)
{
	text_json_real(out, key, report_ms(p, mono_ns));
}

static void add_ms(struct text *out, const char *key, uint64_t ns)
{
	text_json_real(out, key, (double)ns / NSEC_PER_MSEC);
}

static void add_incident(struct report *p, struct text *out)
{
	char opened[RECORD_TIME_SIZE];

	clock_format_rfc3339(p->opened_real_ns, opened, sizeof(opened));
	text_json_open(out, "incident", '{');
	text_json_string(out, "id", p->incident);
	text_json_string(out, "host", p->open.host);
	text_json_string(out, "kernel", p->open.kernel);
	text_json_string(out, "version", p->open.version);
	text_json_string(out, "opened", opened);
	add_ms(out, "opened_ms", p->opened_real_ns);
	add_ms(out, "duration_ms", report_duration_ns(p));
	text_json_bool(out, "closed", p->closed);
	text_json_string(out, "class", record_class_text(p->verdict.class));
	text_json_string(out, "basis", record_basis_text(p->verdict.basis));
	text_json_string(out, "sentence", p->verdict.sentence);
	text_json_close(out, '}');
}

static void add_marks(struct report *p, struct text *out)
{
	text_json_open(out, "marks", '[');
	for (uint32_t i = 0; i < p->marks.count && i < REPORT_MARKS_MAX; i++) {
		const struct report_mark *m = &p->marks.items[i];

		text_json_open(out, NULL, '{');
		add_time(p, out, "t", m->at_ns);
		text_json_string(out, "kind", m->kind);
		add_string(p, out, "text", m->text);
		text_json_close(out, '}');
	}
	text_json_close(out, ']');
	if (p->marks.count > REPORT_MARKS_MAX)
		report_leave_out(p, "marks on the timeline", p->marks.count - REPORT_MARKS_MAX);
}

static const struct model_disk *disk_of(const struct report *p, uint32_t i)
{
	const char *name = strings_get(&p->strings, p->disks[i]);

	for (uint32_t k = 0; k < p->model.disks.count; k++)
		if (strcmp(p->model.disks.list[k].name, name) == 0)
			return &p->model.disks.list[k];
	return NULL;
}

static void add_disks(struct report *p, struct text *out)
{
	text_json_open(out, "disks", '[');
	for (uint32_t i = 0; i < p->disks_count; i++) {
		const struct model_disk *d = disk_of(p, i);
		char dev[24] = "";

		if (d)
			snprintf(dev, sizeof(dev), "%" PRIu32 ":%" PRIu32, d->dev.major,
				d->dev.minor);
		text_json_open(out, NULL, '{');
		add_string(p, out, "name", p->disks[i]);
		text_json_string(out, "dev", dev);
		text_json_bool(out, "judged",
			d && (d->dev.major || d->dev.minor) &&
				record_dev_is_same(d->dev, p->verdict.dev));
		text_json_close(out, '}');
	}
	text_json_close(out, ']');
}

/* Samples: a column for each value */

/* Of more samples than fit each `step`-th is told; the first is always one of them. */
static uint32_t step_of(const struct report *p)
{
	return (p->samples.count + REPORT_SAMPLES_MAX - 1) / REPORT_SAMPLES_MAX;
}

static void add_column(struct report *p, struct text *out, const char *key, int disk,
	double (*get)(const struct report *p, const struct record_sample *s, int disk))
{
	text_json_open(out, key, '[');
	for (uint32_t i = 0; i < p->samples.count; i += step_of(p))
		text_json_real(out, NULL, get(p, &p->samples.items[i], disk));
	text_json_close(out, ']');
}

static double per_second(double value, const struct record_sample *s)
{
	const uint64_t ns = s->reading.interval_ns;

	return ns ? value * NSEC_PER_SEC / (double)ns : NAN;
}

/* NULL: the sample does not have it. */
static const struct record_disk *find_device(const struct report *p, const struct record_sample *s,
	int disk)
{
	const char *name = strings_get(&p->strings, p->disks[disk]);

	for (uint32_t i = 0; i < s->reading.devices_count; i++)
		if (strcmp(s->reading.devices[i].dev_name, name) == 0)
			return &s->reading.devices[i];
	return NULL;
}

#define OF_SAMPLE(name, value)                                                                     \
	static double name(const struct report *p, const struct record_sample *s, int disk)        \
	{                                                                                          \
		(void)p;                                                                           \
		(void)disk;                                                                        \
		return value;                                                                      \
	}
#define OF_DISK(name, value)                                                                       \
	static double name(const struct report *p, const struct record_sample *s, int disk)        \
	{                                                                                          \
		const struct record_disk *d = find_device(p, s, disk);                             \
                                                                                                   \
		return d ? (value) : NAN;                                                          \
	}

OF_SAMPLE(get_t, report_ms(p, s->reading.mono_ns))
OF_SAMPLE(get_interval, (double)s->reading.interval_ns / NSEC_PER_MSEC)
OF_SAMPLE(get_busy, s->reading.cpu.busy_pct)
OF_SAMPLE(get_iowait, s->reading.cpu.iowait_pct)
OF_SAMPLE(get_io_some, s->reading.psi.io.present ? s->reading.psi.io.some_pct : NAN)
OF_SAMPLE(get_io_full, s->reading.psi.io.present ? s->reading.psi.io.full_pct : NAN)
OF_SAMPLE(get_memory_some, s->reading.psi.memory.present ? s->reading.psi.memory.some_pct : NAN)
OF_SAMPLE(get_memory_full, s->reading.psi.memory.present ? s->reading.psi.memory.full_pct : NAN)
OF_SAMPLE(get_cpu_some, s->reading.psi.cpu.present ? s->reading.psi.cpu.some_pct : NAN)
OF_SAMPLE(get_blocked, (double)s->reading.procs_blocked)
OF_SAMPLE(get_active,
	s->reading.sql.present && s->reading.sql.active >= 0 ? (double)s->reading.sql.active : NAN)
OF_SAMPLE(get_unanswered, s->reading.sql.present ? s->reading.sql.unanswered_s * 1000 : NAN)
OF_DISK(get_util, d->util_pct)
OF_DISK(get_read_await, d->reads ? d->read_await_ms : NAN)
OF_DISK(get_write_await, d->writes ? d->write_await_ms : NAN)
OF_DISK(get_in_flight, (double)d->inflight)
OF_DISK(get_reads, per_second(d->reads, s))
OF_DISK(get_writes, per_second(d->writes, s))
OF_DISK(get_read_bytes, per_second((double)d->read_bytes, s))
OF_DISK(get_write_bytes, per_second((double)d->write_bytes, s))

static void add_samples_of_disk(struct report *p, struct text *out, int disk)
{
	text_json_open(out, NULL, '{');
	text_json_i64(out, "disk", disk);
	add_column(p, out, "util", disk, get_util);
	add_column(p, out, "read_await_ms", disk, get_read_await);
	add_column(p, out, "write_await_ms", disk, get_write_await);
	add_column(p, out, "in_flight", disk, get_in_flight);
	add_column(p, out, "reads_s", disk, get_reads);
	add_column(p, out, "writes_s", disk, get_writes);
	add_column(p, out, "read_bytes_s", disk, get_read_bytes);
	add_column(p, out, "write_bytes_s", disk, get_write_bytes);
	text_json_close(out, '}');
}

static bool has_databases(const struct report *p)
{
	for (uint32_t i = 0; i < p->samples.count; i++)
		if (p->samples.items[i].reading.sql.present)
			return true;
	return false;
}

/* A sample has what all databases do together. */
static void add_databases(struct report *p, struct text *out)
{
	text_json_open(out, "databases", '[');
	if (has_databases(p)) {
		text_json_open(out, NULL, '{');
		add_string(p, out, "name", strings_add(&p->strings, "all databases"));
		add_column(p, out, "active", 0, get_active);
		add_column(p, out, "unanswered_ms", 0, get_unanswered);
		text_json_close(out, '}');
	}
	text_json_close(out, ']');
}

static void add_samples(struct report *p, struct text *out)
{
	text_json_open(out, "samples", '{');
	add_column(p, out, "t", 0, get_t);
	add_column(p, out, "interval_ms", 0, get_interval);
	text_json_open(out, "cpu", '{');
	add_column(p, out, "busy", 0, get_busy);
	add_column(p, out, "iowait", 0, get_iowait);
	text_json_close(out, '}');
	text_json_open(out, "psi", '{');
	add_column(p, out, "io_some", 0, get_io_some);
	add_column(p, out, "io_full", 0, get_io_full);
	add_column(p, out, "memory_some", 0, get_memory_some);
	add_column(p, out, "memory_full", 0, get_memory_full);
	add_column(p, out, "cpu_some", 0, get_cpu_some);
	text_json_close(out, '}');
	add_column(p, out, "blocked", 0, get_blocked);
	text_json_open(out, "disks", '[');
	for (uint32_t i = 0; i < p->disks_count; i++)
		add_samples_of_disk(p, out, (int)i);
	text_json_close(out, ']');
	add_databases(p, out);
	text_json_close(out, '}');
	if (step_of(p) > 1)
		report_leave_out(p, "samples between those of the timeline",
			p->samples.count - (p->samples.count + step_of(p) - 1) / step_of(p));
}

/* Histograms */

static void add_counts(struct text *out, const char *key,
	const uint64_t counts[static RECORD_HISTOGRAM_MAX])
{
	int last = RECORD_HISTOGRAM_MAX - 1;

	while (last >= 0 && counts[last] == 0)
		last--;
	text_json_open(out, key, '[');
	for (int i = 0; i <= last; i++)
		add_number(out, NULL, counts[i]);
	text_json_close(out, ']');
}

/* Each says what was so far, so those that are left out make the steps longer and nothing else. */
static void add_histograms(struct report *p, struct text *out)
{
	const uint32_t step =
		(p->histograms.count + REPORT_HISTOGRAMS_MAX - 1) / REPORT_HISTOGRAMS_MAX;
	uint32_t of_disk[REPORT_DISKS_MAX] = { 0 };

	text_json_open(out, "histograms", '[');
	for (uint32_t i = 0; i < p->histograms.count; i++) {
		const struct report_histogram *h = &p->histograms.items[i];
		const int disk = report_find_disk(p, h->dev_name);
		const bool is_late = i + MODEL_DISKS_MAX >= p->histograms.count;

		/* The disks take turns, so each has its own count. */
		if (disk < 0 || (of_disk[disk]++ % step && !is_late))
			continue;
		text_json_open(out, NULL, '{');
		add_time(p, out, "t", h->at_ns);
		text_json_i64(out, "disk", disk);
		add_counts(out, "queue", h->queue);
		add_counts(out, "device", h->device);
		text_json_close(out, '}');
	}
	text_json_close(out, ']');
}

/* Stacks: those that the rows below name */

struct stacks {
	uint32_t count;
	uint32_t texts[REPORT_OPERATIONS_MAX + 2 * REPORT_OFFCPU_MAX];
};

static int64_t stack_number(struct stacks *stacks, uint32_t text)
{
	uint32_t i = 0;

	if (!text)
		return -1;
	while (i < stacks->count && stacks->texts[i] != text)
		i++;
	if (i == stacks->count)
		stacks->texts[stacks->count++] = text;
	return i;
}

void report_cut_offset(char *frame)
{
	char *plus = strstr(frame, "+0x");

	/* Of a place in a program that has no name the offset is all that there is. */
	if (plus && plus != frame && strspn(frame, "0123456789abcdef") != (size_t)(plus - frame) &&
		!strchr(frame, '.'))
		*plus = '\0';
}

static void add_frame(struct report *p, struct text *out, char *frame)
{
	report_cut_offset(frame);
	add_string(p, out, NULL, strings_add(&p->strings, frame));
}

static void add_stack(struct report *p, struct text *out, uint32_t index)
{
	char lines[RECORD_USTACK_SIZE], *begin;

	text_copy(lines, sizeof(lines), strings_get(&p->strings, index));
	text_json_open(out, NULL, '[');
	/* The record has the innermost first. */
	while (*lines) {
		begin = strrchr(lines, '\n');
		add_frame(p, out, begin ? begin + 1 : lines);
		*(begin ? begin : lines) = '\0';
	}
	text_json_close(out, ']');
}

static void add_stacks(struct report *p, struct text *out, const struct stacks *stacks)
{
	text_json_open(out, "stacks", '[');
	for (uint32_t i = 0; i < stacks->count; i++)
		add_stack(p, out, stacks->texts[i]);
	text_json_close(out, ']');
}

/* Rows */

static void add_operation(struct report *p, struct text *out, struct stacks *stacks,
	const struct report_operation *o)
{
	const struct statement_query query = { o->tid, o->request, o->start_ns, o->ns,
		o->connection_id };

	text_json_open(out, NULL, '[');
	add_time(p, out, NULL, o->start_ns);
	add_ms(out, NULL, o->ns);
	text_json_string(out, NULL, o->stuck ? "stuck" : "done");
	text_json_i64(out, NULL, o->pid);
	text_json_i64(out, NULL, o->tid);
	add_string(p, out, NULL, o->comm);
	add_string(p, out, NULL, strings_add(&p->strings, record_op_text(o->op)));
	add_string(p, out, NULL, o->path);
	add_string(p, out, NULL,
		strings_add(&p->strings, o->cause ? record_cause_text(o->cause) : ""));
	text_json_i64(out, NULL, report_find_disk(p, o->dev_name));
	text_json_i64(out, NULL, stack_number(stacks, o->stack));
	text_json_i64(out, NULL, report_find_statement(p, &query));
	text_json_close(out, ']');
}

static void add_operations(struct report *p, struct text *out, struct stacks *stacks)
{
	static const char *const columns[] = { "t", "ms", "state", "pid", "tid", "comm", "op",
		"path", "cause", "disk", "stack", "statement" };

	text_json_open(out, "operations", '{');
	text_json_open(out, "columns", '[');
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		text_json_string(out, NULL, columns[i]);
	text_json_close(out, ']');
	text_json_open(out, "rows", '[');
	for (uint32_t i = 0; i < p->operations.count && i < REPORT_OPERATIONS_MAX; i++)
		add_operation(p, out, stacks, &p->operations.items[i]);
	text_json_close(out, ']');
	text_json_close(out, '}');
	if (p->operations.count > REPORT_OPERATIONS_MAX)
		report_leave_out(p, "operations, the shortest",
			p->operations.count - REPORT_OPERATIONS_MAX);
}

static void add_wait(struct report *p, struct text *out, const struct report_wait *w)
{
	text_json_open(out, NULL, '{');
	add_time(p, out, "t", w->start_ns);
	add_ms(out, "ms", w->ns);
	text_json_i64(out, "pid", w->pid);
	text_json_u64(out, w->is_session ? "session" : "lock", w->id);
	if (w->is_session)
		add_string(p, out, "database", w->target);
	text_json_u64(out, "threads", w->threads);
	add_string(p, out, "comm", w->comm);
	add_string(p, out, "path", w->path);
	add_string(p, out, "cause", strings_add(&p->strings, report_wait_cause(w)));
	text_json_i64(out, "statement", report_find_waiting(p, w));
	text_json_close(out, '}');
}

static void add_waits(struct report *p, struct text *out)
{
	text_json_open(out, "waits", '[');
	for (uint32_t i = 0; i < p->waits.count; i++)
		add_wait(p, out, &p->waits.items[i]);
	text_json_close(out, ']');
	report_leave_out(p, "lines about waits for locks", p->waits_left_out);
}

static int compare_offcpu(const void *a, const void *b)
{
	const struct report_offcpu *x = a, *y = b;

	/* Threads that wait for work sleep longest, and say least. */
	if ((x->state == 'D') != (y->state == 'D'))
		return x->state == 'D' ? -1 : 1;
	return (x->ns < y->ns) - (x->ns > y->ns);
}

static void add_offcpu(struct report *p, struct text *out, struct stacks *stacks)
{
	sort_in_place(p->offcpu.items, p->offcpu.count, sizeof(*p->offcpu.items), compare_offcpu);
	text_json_open(out, "offcpu", '[');
	for (uint32_t i = 0; i < p->offcpu.count && i < REPORT_OFFCPU_MAX; i++) {
		const struct report_offcpu *o = &p->offcpu.items[i];
		const struct statement_query query = { o->tid, false, o->start_ns, o->longest_ns,
			0 };
		const char state[] = { o->state ? o->state : '?', '\0' };

		text_json_open(out, NULL, '{');
		add_time(p, out, "t", o->end_ns);
		add_ms(out, "window_ms", o->window_ns);
		text_json_i64(out, "pid", o->pid);
		add_string(p, out, "process", o->process);
		add_string(p, out, "comm", o->comm);
		text_json_string(out, "state", state);
		add_ms(out, "ms", o->ns);
		add_ms(out, "runnable_ms", o->runnable_ns);
		add_number(out, "times", o->times);
		text_json_u64(out, "threads", o->threads);
		add_ms(out, "longest_ms", o->longest_ns);
		text_json_i64(out, "kernel", stack_number(stacks, o->kernel));
		text_json_i64(out, "user", stack_number(stacks, o->user));
		text_json_i64(out, "statement", report_find_statement(p, &query));
		text_json_close(out, '}');
	}
	text_json_close(out, ']');
	if (p->offcpu.count > REPORT_OFFCPU_MAX)
		report_leave_out(p, "stacks with less blocked time",
			p->offcpu.count - REPORT_OFFCPU_MAX);
}

/* The last lists are always there; of those before them each `step`-th second has its lists. */
static bool is_told(const struct report *p, const struct report_load *l, uint64_t step)
{
	return l->final || step <= 1 ||
		(l->at_ns - p->opened_mono_ns) / (5 * NSEC_PER_SEC) % step == 0;
}

static void add_loads(struct report *p, struct text *out)
{
	const uint64_t step = (p->loads.count + REPORT_LOADS_MAX - 1) / REPORT_LOADS_MAX;

	text_json_open(out, "loads", '[');
	for (uint32_t i = 0; i < p->loads.count; i++) {
		const struct report_load *l = &p->loads.items[i];
		const int disk = report_find_disk(p, l->dev_name);

		if (disk < 0 || !is_told(p, l, step))
			continue;
		text_json_open(out, NULL, '{');
		add_time(p, out, "t", l->at_ns);
		text_json_bool(out, "final", l->final);
		text_json_i64(out, "disk", disk);
		text_json_string(out, "by", record_by_text(l->by));
		text_json_u64(out, "rank", l->rank);
		text_json_i64(out, "pid", l->pid);
		text_json_i64(out, "tid", l->tid);
		add_string(p, out, "name", l->name);
		add_string(p, out, "unit", l->unit);
		add_ms(out, "busy_ms", l->busy_ns);
		add_number(out, "bytes", l->bytes);
		add_number(out, "requests", l->requests);
		text_json_bool(out, "inferred", l->inferred);
		text_json_close(out, '}');
	}
	text_json_close(out, ']');
}

static void add_id(struct text *out, const char *key, uint64_t id)
{
	if (id)
		add_number(out, key, id);
	else
		text_json_null(out, key);
}

static void add_statements(struct report *p, struct text *out)
{
	text_json_open(out, "statements", '[');
	for (uint32_t i = 0; i < p->statements.count; i++) {
		const struct report_statement *s = &p->statements.items[i];

		text_json_open(out, NULL, '{');
		add_string(p, out, "database", s->target);
		add_string(p, out, "user", s->user);
		add_id(out, "connection", s->connection_id);
		text_json_i64(out, "tid", s->tid);
		add_time(p, out, "begun", s->begun_ns);
		add_time(p, out, "seen", s->seen_ns);
		add_ms(out, "ms", s->ns);
		add_string(p, out, "text", s->text);
		add_string(p, out, "lock",
			strings_add(&p->strings, s->lock ? record_lock_text(s->lock) : ""));
		add_id(out, "blocked_by", s->blocked_by);
		text_json_close(out, '}');
	}
	text_json_close(out, ']');
}

static void add_left_out(struct report *p, struct text *out)
{
	text_json_open(out, "left_out", '[');
	for (uint32_t i = 0; i < p->left_out_count; i++) {
		text_json_open(out, NULL, '{');
		add_string(p, out, "what", strings_add(&p->strings, p->left_out[i].what));
		add_number(out, "count", p->left_out[i].count);
		text_json_close(out, '}');
	}
	text_json_close(out, ']');
}

void report_add_data(struct report *p, struct text *out)
{
	struct stacks *stacks = calloc(1, sizeof(*stacks));

	if (!stacks)
		return;
	text_json_open(out, NULL, '{');
	text_json_u64(out, "format", 1);
	add_incident(p, out);
	add_marks(p, out);
	add_disks(p, out);
	add_samples(p, out);
	add_histograms(p, out);
	add_operations(p, out, stacks);
	add_waits(p, out);
	add_offcpu(p, out, stacks);
	add_loads(p, out);
	add_statements(p, out);
	add_left_out(p, out);
	add_stacks(p, out, stacks);
	strings_add_json(&p->strings, out);
	text_json_close(out, '}');
	free(stacks);
}
