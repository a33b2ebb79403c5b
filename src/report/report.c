/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/internal.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/disk_name.h"
#include "util/number.h"

int report_new(struct report **ret_report)
{
	struct report *p = calloc(1, sizeof(*p));

	if (!p || statements_new(&p->runs) < 0 || strings_init(&p->strings) < 0) {
		report_free(p);
		return -ENOMEM;
	}
	*ret_report = p;
	return 0;
}

struct report *report_free(struct report *p)
{
	if (!p)
		return NULL;
	statements_free(p->runs);
	strings_done(&p->strings);
	free(p->samples.items);
	free(p->operations.items);
	free(p->slots);
	free(p->waits.items);
	free(p->offcpu.items);
	free(p->loads.items);
	free(p->histograms.items);
	free(p->statements.items);
	free(p->marks.items);
	free(p->data.buf);
	free(p);
	return NULL;
}

void report_leave_out(struct report *p, const char *what, uint64_t count)
{
	if (!count || p->left_out_count == ARRAY_SIZE(p->left_out))
		return;
	p->left_out[p->left_out_count].what = what;
	p->left_out[p->left_out_count++].count = count;
}

double report_ms(const struct report *p, uint64_t mono_ns)
{
	return ((double)mono_ns - (double)p->opened_mono_ns) / NSEC_PER_MSEC;
}

uint64_t report_duration_ns(const struct report *p)
{
	return p->closed ? p->close.duration_ns : p->last_mono_ns - p->opened_mono_ns;
}

int report_find_disk(const struct report *p, uint32_t dev_name)
{
	const char *name = strings_get(&p->strings, dev_name);

	for (uint32_t i = 0; i < p->disks_count; i++)
		if (p->disks[i] == dev_name)
			return (int)i;
	for (uint32_t i = 0; *name && i < p->disks_count; i++)
		if (disk_name_is_on(name, strings_get(&p->strings, p->disks[i])))
			return (int)i;
	return -1;
}

const struct record_verdict_part *report_find_culprit(const struct report *p)
{
	for (uint32_t i = 0; i < p->verdict.parts_count && i < RECORD_PARTS_MAX; i++)
		if (p->verdict.parts[i].what == RECORD_WHAT_culprit)
			return &p->verdict.parts[i];
	return NULL;
}

/* Numbers of sessions are those of a server, and a session may begin two statements in a second. */
static bool is_same_statement(const struct report *p, const struct report_statement *row,
	const struct statement *s)
{
	return row->connection_id == s->connection_id &&
		statement_is_same_begin(row->begun_ns, s->begun_ns) &&
		strcmp(strings_get(&p->strings, row->target), s->target) == 0 &&
		statement_shape(strings_get(&p->strings, row->text)) == s->shape;
}

int report_find_statement(const struct report *p, const struct statement_query *query)
{
	const struct statement *s = statements_find(p->runs, query);

	for (uint32_t i = 0; s && i < p->statements.count; i++)
		if (is_same_statement(p, &p->statements.items[i], s))
			return (int)i;
	return -1;
}

/* Taking lines */

/*
 * In the order of time: a hang is told after it began. Valid until the next one; NULL: no memory.
 */
static struct report_mark *insert_mark(struct report *p, uint64_t at_ns, const char *kind,
	const char *text)
{
	struct report_mark *m = report_list_add(&p->marks);

	if (!m)
		return NULL;
	for (; m > p->marks.items && m[-1].at_ns > at_ns; m--)
		*m = m[-1];
	*m = (struct report_mark){ at_ns, kind, strings_add(&p->strings, text), 0 };
	return m;
}

static int add_mark(struct report *p, uint64_t at_ns, const char *kind, const char *text)
{
	return insert_mark(p, at_ns, kind, text) ? 0 : -ENOMEM;
}

static int add_trigger(struct report *p, uint64_t at_ns, const char *kind,
	const struct record_trigger *trigger)
{
	char buf[RECORD_LIST_SIZE];
	struct text t = TEXT_ON(buf);

	text_reset(&t);
	record_add_trigger(&t, trigger);
	return add_mark(p, at_ns, kind, buf);
}

static int add_open(struct report *p, const struct record *r)
{
	int e;

	if (p->opened)
		return 0;
	p->opened = true;
	p->open = r->open;
	p->opened_real_ns = r->real_ns;
	p->opened_mono_ns = r->mono_ns;
	memcpy(p->incident, r->incident, sizeof(p->incident));
	e = add_trigger(p, r->mono_ns - r->open.armed_ns, "trigger", &r->open.trigger);
	return e < 0 ? e : add_mark(p, r->mono_ns, "armed", "the probes are live");
}

static int add_sample(struct report *p, const struct record_sample *sample)
{
	struct record_sample *s = report_list_add(&p->samples);

	if (!s)
		return -ENOMEM;
	*s = *sample;
	return 0;
}

/* The mark of the same hang; NULL: there is none yet. */
static struct report_mark *find_hang(struct report *p, uint32_t dev_name, uint64_t since_ns)
{
	for (uint32_t i = 0; i < p->marks.count; i++) {
		struct report_mark *m = &p->marks.items[i];

		if (m->dev_name && m->dev_name == dev_name && since_ns < m->at_ns + NSEC_PER_SEC)
			return m;
	}
	return NULL;
}

/* The lines of one hang tell its begin again and again. */
static int add_hang(struct report *p, const struct record *r)
{
	const uint64_t since_ns = r->mono_ns - r->device.no_completion_ns;
	const uint32_t dev_name = strings_add(&p->strings, r->device.dev_name);
	struct report_mark *mark = find_hang(p, dev_name, since_ns);
	char buf[RECORD_DISK_NAME_SIZE + 96];
	struct text t = TEXT_ON(buf);

	text_reset(&t);
	text_addf(&t, "disk %s completed nothing from here on for at least ", r->device.dev_name);
	record_add_duration(&t, r->device.no_completion_ns);
	if (mark) {
		mark->text = strings_add(&p->strings, buf);
		return 0;
	}
	mark = insert_mark(p, since_ns, "hung", buf);
	if (!mark)
		return -ENOMEM;
	mark->dev_name = dev_name;
	return 0;
}

static int add_device(struct report *p, const struct record *r)
{
	struct report_histogram *h = report_list_add(&p->histograms);

	if (!h || (r->device.no_completion_ns >= NSEC_PER_SEC && add_hang(p, r) < 0))
		return -ENOMEM;
	h->at_ns = r->mono_ns;
	h->dev_name = strings_add(&p->strings, r->device.dev_name);
	memcpy(h->queue, r->device.queue_histogram, sizeof(h->queue));
	memcpy(h->device, r->device.device_histogram, sizeof(h->device));
	return 0;
}

static const char *name_of_load(const struct record_io_by *b)
{
	switch (b->by) {
	case RECORD_BY_file:
		return *b->relation ? b->relation : b->path;
	case RECORD_BY_cgroup:
		return b->unit;
	case RECORD_BY_statement:
		return b->statement.text;
	default:
		return *b->role ? b->role : b->comm;
	}
}

static int add_load(struct report *p, const struct record *r)
{
	const struct record_io_by *b = &r->io_by;
	struct report_load *l = report_list_add(&p->loads);

	if (!l)
		return -ENOMEM;
	*l = (struct report_load){
		.at_ns = r->mono_ns,
		.busy_ns = b->busy_ns,
		.bytes = b->bytes + b->discard_bytes,
		.requests = b->requests,
		.share_pct = b->busy_share_pct,
		.pid = b->pid,
		.tid = b->tid,
		.dev_name = strings_add(&p->strings, b->dev_name),
		.name = strings_add(&p->strings, name_of_load(b)),
		.unit = strings_add(&p->strings, b->unit),
		.rank = b->rank,
		.by = (uint8_t)b->by,
		.final = b->final,
		.inferred = b->inferred,
		.uncertain = b->uncertain,
	};
	return 0;
}

static int add_offcpu(struct report *p, const struct record *r)
{
	const struct record_offcpu *o = &r->offcpu;
	struct report_offcpu *row = report_list_add(&p->offcpu);

	if (!row)
		return -ENOMEM;
	*row = (struct report_offcpu){
		.end_ns = r->mono_ns,
		.window_ns = o->window_ns,
		.ns = o->time_ns,
		.runnable_ns = o->runnable_ns,
		.longest_ns = o->longest_ns,
		.start_ns = o->start_mono_ns,
		.times = o->times,
		.pid = o->pid,
		.tid = o->tid,
		.process = strings_add(&p->strings, o->process),
		.comm = strings_add(&p->strings, o->comm),
		.kernel = strings_add(&p->strings, o->kstack),
		.user = strings_add(&p->strings, o->ustack),
		.threads = o->threads,
		.state = o->state,
	};
	return 0;
}

static struct report_statement *find_statement(struct report *p,
	const struct report_statement *seen)
{
	for (uint32_t i = p->statements.count; i > 0; i--) {
		struct report_statement *s = &p->statements.items[i - 1];

		if (s->connection_id == seen->connection_id && s->target == seen->target &&
			s->text == seen->text &&
			statement_is_same_begin(s->begun_ns, seen->begun_ns))
			return s;
	}
	return NULL;
}

static int add_statement(struct report *p, const struct record *r)
{
	const struct record_sql *q = &r->sql;
	struct report_statement seen = {
		.begun_ns = minus(r->mono_ns, q->elapsed_ns),
		.seen_ns = r->mono_ns,
		.ns = q->elapsed_ns,
		.connection_id = q->connection_id,
		.blocked_by = q->blocked_by,
		.tid = q->tid,
		.target = strings_add(&p->strings, q->target),
		.user = strings_add(&p->strings, q->user),
		.database = strings_add(&p->strings, q->database),
		.text = strings_add(&p->strings, q->text),
		.lock_on = strings_add(&p->strings, q->lock_on),
		.lock = (uint8_t)q->lock,
		.inferred = q->blocked_basis == RECORD_BASIS_inferred,
	};
	struct report_statement *s;

	statements_take(p->runs, r);
	if (!q->connection_id || (q->background && !*q->text))
		return 0;
	s = find_statement(p, &seen);
	if (s && s->ns > seen.ns)
		return 0;
	if (s && !seen.lock) {
		seen.lock = s->lock;
		seen.lock_on = s->lock_on;
		seen.blocked_by = s->blocked_by;
	}
	if (!s)
		s = report_list_add(&p->statements);
	if (!s)
		return -ENOMEM;
	*s = seen;
	return 0;
}

static int add_verdict(struct report *p, const struct record *r)
{
	const enum record_class last = p->verdict.class;

	p->has_final = r->verdict.final;
	p->verdict = r->verdict;
	if (r->verdict.final || r->verdict.class == last)
		return 0;
	return add_mark(p, r->mono_ns, "verdict", r->verdict.sentence);
}

static int take(struct report *p, const struct record *r)
{
	int e;

	switch (r->type) {
	case RECORD_OPEN:
		return add_open(p, r);
	case RECORD_TRIGGER:
		return add_trigger(p, r->mono_ns, "rule", &r->trigger);
	case RECORD_SAMPLE:
		return add_sample(p, &r->sample);
	case RECORD_STALL:
	case RECORD_STUCK:
		return report_add_operation(p, r);
	case RECORD_DEVICE:
		return add_device(p, r);
	case RECORD_IO_BY:
		return add_load(p, r);
	case RECORD_OFFCPU:
		return add_offcpu(p, r);
	case RECORD_LOCK:
		return report_add_lock(p, r);
	case RECORD_SQL:
		e = report_add_session(p, r);
		return e < 0 ? e : add_statement(p, r);
	case RECORD_KERNEL:
		return add_mark(p, r->mono_ns, "kernel", r->kernel.text);
	case RECORD_VERDICT:
		return add_verdict(p, r);
	case RECORD_CLOSE:
		p->closed = true;
		p->close = r->close;
		return add_mark(p, r->mono_ns, "close", record_reason_text(r->close.reason));
	default:
		return 0;
	}
}

void report_note_lines(struct report *p, const struct record_reader_counts *counts)
{
	p->lines = *counts;
}

int report_add(struct report *p, const struct record *r)
{
	model_add(&p->model, r);
	if (r->type != RECORD_SAMPLE || !r->sample.before_trigger)
		p->last_mono_ns = r->mono_ns;
	return take(p, r);
}
