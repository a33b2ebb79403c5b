/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A line for each event of an incident that is still open. A stuck operation has one when it is
 * first seen and others when it has grown; samples have one when a disk turns busy or calm.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "page/internal.h"
#include "util/clock.h"

/* Further operations of the same second are counted in one line. */
#define LINES_A_SECOND 20
/* A disk becomes busy at the first and calm below the second. */
#define BUSY_PCT 90
#define CALM_PCT 50
/* Something that lasts gets its next line when its length has doubled, and has grown by 2 s. */
#define GROWTH 2
#define GROWTH_NS (2 * NSEC_PER_SEC)
/* "04:12:30  " */
#define TIME_COLUMNS 10

static void add_time(struct page *p, const struct record *r)
{
	time_t sec = (time_t)(page_real_ns(p, r->mono_ns) / NSEC_PER_SEC);
	char buf[16];
	struct tm tm;

	localtime_r(&sec, &tm);
	strftime(buf, sizeof(buf), "%H:%M:%S", &tm);
	draw_add(&p->draw, buf);
	draw_add(&p->draw, "  ");
}

static bool has_grown(uint64_t told_ns, uint64_t ns)
{
	return told_ns == 0 || (ns >= GROWTH * told_ns && ns >= told_ns + GROWTH_NS);
}

/* Whether it is told anew: at first, and when it is 2, 4, 8 s old and so on. */
static bool is_notable(uint64_t before_ns, uint64_t ns)
{
	uint64_t step_ns = GROWTH_NS;

	while (step_ns <= before_ns)
		step_ns *= GROWTH;
	return before_ns == 0 || ns >= step_ns;
}

/*
 * A terminal of 100 columns has no room for everything. It gets the statement and the cause rather
 * than process, disk and user.
 */
static void add_failure(struct draw *d, int64_t ret)
{
	const char *name = ret > -4096 ? strerrorname_np((int)-ret) : NULL;

	if (name)
		draw_addf(d, ", failed: %s", name);
	else
		draw_addf(d, ", failed: %" PRId64, ret);
}

static void add_operation(struct page *p, const struct record *r)
{
	const struct record_operation *o = &r->operation;
	const struct statement_query q = statement_query_of(o);
	const struct statement *s = statements_find(p->statements, &q);
	struct draw *d = &p->draw;
	bool all = !d->style.terminal || d->style.columns >= 140;
	char cause[RECORD_NAME_SIZE], process[RECORD_COMM_SIZE], name[2 * RECORD_COMM_SIZE];
	struct text who = TEXT_ON(name);

	text_reset(&who);
	model_set_process(process, o);
	page_add_name(&who, process, o->comm);
	draw_text(d, all ? sizeof(name) : 16, name);
	if (all)
		draw_addf(d, "[%" PRId32 "/%" PRId32 "] ", o->pid, o->tid);
	else
		draw_addf(d, "[%" PRId32 "] ", o->tid);
	draw_text(d, 10, page_or_dash(record_op_text(o->op)));
	draw_add(d, " ");
	draw_path(d, !d->style.terminal ? 400 : all ? 36 : 22, page_or_dash(page_file_name(o)));
	page_cause(o, cause);
	if (*cause) {
		draw_add(d, ", waits for ");
		draw_text(d, 40, cause);
	}
	if (all && *o->dev_name) {
		draw_add(d, ", ");
		draw_text(d, 20, o->dev_name);
	}
	if (o->ret < 0 && o->ret != RECORD_RET_UNKNOWN && r->type != RECORD_STUCK)
		add_failure(d, o->ret);
	if (o->alike.present)
		draw_addf(d, ", and %" PRIu32 " alike", o->alike.count);
	if (o->alike.present && r->type != RECORD_ERROR) {
		draw_add(d, ",");
		draw_duration(d, 0, o->alike.min_ns, false);
		draw_add(d, " to");
		draw_duration(d, 0, o->alike.max_ns, false);
	}
	if (!s)
		return;
	draw_add(d, ", ran ");
	if (all) {
		draw_text(d, 24, page_or_dash(s->user));
		draw_add(d, ": ");
	}
	draw_text(d, 120, *s->text ? s->text : "(a statement)");
}

/* Whether this second may have another line. */
static bool take_line(struct page *p, const struct record *r)
{
	struct page_events *e = &p->events;
	uint64_t second = (r->mono_ns - p->opened_mono_ns) / NSEC_PER_SEC;

	if (second != e->second) {
		e->second = second;
		e->lines = 0;
	}
	if (e->lines >= LINES_A_SECOND) {
		if (r->operation.dur_ns > e->held_longest_ns)
			e->held_longest_ns = r->operation.dur_ns;
		return false;
	}
	e->lines++;
	return true;
}

/* Tells how many operations got no line of their own. */
static void tell_held(struct page *p, const struct record *r)
{
	struct page_events *e = &p->events;
	struct draw *d = &p->draw;

	if (!e->stalls_held && !e->stuck_held)
		return;
	if (r->type != RECORD_CLOSE && r->type != RECORD_SAMPLE)
		return;
	add_time(p, r);
	draw_addf(d,
		"and %" PRIu32 " more that ended, %" PRIu32 " more that are stuck, the longest",
		e->stalls_held, e->stuck_held);
	draw_duration(d, 0, e->held_longest_ns, false);
	draw_end(d);
	e->stalls_held = e->stuck_held = 0;
	e->held_longest_ns = 0;
}

static void tell_operation(struct page *p, const struct record *r)
{
	const struct record_operation *o = &r->operation;
	struct draw *d = &p->draw;

	if (r->type == RECORD_STUCK && !o->alike.present &&
		!is_notable(p->events.hung_ns, o->dur_ns))
		return;
	if (!take_line(p, r)) {
		if (r->type == RECORD_STUCK)
			p->events.stuck_held += page_count_of(o);
		else
			p->events.stalls_held += page_count_of(o);
		return;
	}
	add_time(p, r);
	draw_colour(d, r->type == RECORD_STUCK ? DRAW_RED : DRAW_PLAIN);
	draw_add(d, r->type == RECORD_STUCK ? "STUCK" : "stall");
	draw_duration(d, draw_width(d->line.buf) + 10, o->dur_ns,
		o->since == RECORD_SINCE_before_arm);
	draw_colour(d, DRAW_PLAIN);
	draw_add(d, "  ");
	add_operation(p, r);
	draw_end(d);
}

static void tell_error(struct page *p, const struct record *r)
{
	struct draw *d = &p->draw;

	add_time(p, r);
	draw_colour(d, DRAW_RED);
	draw_add(d, "error");
	draw_colour(d, DRAW_PLAIN);
	draw_add(d, "  ");
	add_operation(p, r);
	draw_end(d);
}

static void tell_disk(struct page *p, const struct record *r, const struct record_disk *w)
{
	int i = page_find_disk(p, w->dev);
	struct draw *d = &p->draw;
	bool busy;

	if (i < 0 || !isfinite(w->util_pct))
		return;
	busy = w->util_pct >= (p->disks[i].is_busy ? CALM_PCT : BUSY_PCT);
	if (busy == p->disks[i].is_busy)
		return;
	p->disks[i].is_busy = busy;
	add_time(p, r);
	draw_add(d, "disk ");
	draw_text(d, 20, w->dev_name);
	draw_addf(d,
		busy ? " is busy: utilisation %.0f %%, %" PRIu64 " in flight"
		     : " is calm again: utilisation %.0f %%, %" PRIu64 " in flight",
		w->util_pct, w->inflight);
	draw_end(d);
}

static void tell_sample(struct page *p, const struct record *r)
{
	const struct record_reading *s = &r->sample.reading;
	struct draw *d = &p->draw;
	bool failing = s->health.present && s->health.failing_s > 0;

	if (r->sample.before_trigger)
		return;
	for (uint32_t i = 0; i < s->devices_count && i < RECORD_DEVICES_MAX; i++)
		tell_disk(p, r, &s->devices[i]);
	if (failing == p->events.failing)
		return;
	p->events.failing = failing;
	add_time(p, r);
	draw_add(d, failing ? "the health check fails" : "the health check succeeds again");
	draw_end(d);
}

static void tell_device(struct page *p, const struct record *r)
{
	const struct record_device *v = &r->device;
	int i = page_find_disk(p, v->dev);
	struct page_disk *disk = &p->disks[i >= 0 ? i : 0];
	struct draw *d = &p->draw;

	if (v->final || i < 0 || !v->no_completion_ns)
		return;
	/* A shorter time than before means that requests completed in between. */
	if (v->no_completion_ns < disk->told_ns)
		disk->told_ns = 0;
	if (!has_grown(disk->told_ns, v->no_completion_ns))
		return;
	disk->told_ns = v->no_completion_ns;
	add_time(p, r);
	draw_colour(d, DRAW_RED);
	draw_add(d, "NO COMPLETIONS");
	draw_colour(d, DRAW_PLAIN);
	draw_add(d, " on ");
	draw_text(d, 20, v->dev_name);
	draw_add(d, " for");
	draw_duration(d, 0, v->no_completion_ns, false);
	draw_addf(d, ", %" PRIu64 " in flight", v->in_flight);
	if (v->oldest.tid) {
		draw_add(d, ", the oldest by ");
		draw_text(d, 16, page_or_dash(v->oldest.comm));
		draw_addf(d, "[%" PRId32 "/%" PRId32 "]", v->oldest.pid, v->oldest.tid);
	}
	draw_end(d);
}

/* One line for each answer. Statements stand in the lines of stalled threads and on the page. */
static void tell_sql(struct page *p, const struct record *r)
{
	const struct record_sql *q = &r->sql;
	struct draw *d = &p->draw;

	if (q->connection_id)
		return;
	add_time(p, r);
	draw_add(d, "database ");
	draw_text(d, 20, page_or_dash(q->target));
	if (q->unanswered_ns || *q->error) {
		draw_colour(d, DRAW_RED);
		draw_add(d, " does not answer");
		draw_colour(d, DRAW_PLAIN);
		if (q->unanswered_ns) {
			draw_add(d, " for");
			draw_duration(d, 0, q->unanswered_ns, false);
		}
		draw_add(d, *q->error ? ": " : "");
		draw_text(d, 100, q->error);
	} else {
		draw_addf(d, ", %" PRId64 " statements active (", q->active);
		draw_text(d, 10, record_phase_text(q->phase));
		draw_add(d, ")");
	}
	draw_end(d);
}

static void tell_open(struct page *p, const struct record *r)
{
	struct draw *d = &p->draw;
	char buf[1024];
	struct text t = TEXT_ON(buf);

	text_reset(&t);
	record_add_trigger(&t, &r->open.trigger);
	add_time(p, r);
	draw_colour(d, DRAW_BOLD);
	draw_add(d, "incident ");
	draw_text(d, RECORD_ID_SIZE, r->incident);
	draw_colour(d, DRAW_PLAIN);
	draw_add(d, ": ");
	draw_add(d, buf);
	draw_end(d);
}

static void tell_lock(struct page *p, const struct record *r)
{
	char buf[RECORD_PATH_SIZE + RECORD_LIST_SIZE];
	struct text t = TEXT_ON(buf);

	text_reset(&t);
	record_add_lock(&r->lock_wait, &t);
	add_time(p, r);
	draw_add(&p->draw, "lock ");
	draw_add(&p->draw, buf);
	draw_end(&p->draw);
}

static void tell_verdict(struct page *p, const struct record *r)
{
	const struct record_verdict *v = &r->verdict;
	struct draw *d = &p->draw;

	if (v->final || v->class == RECORD_CLASS_unknown || !record_blame_is_news(&p->told, v))
		return;
	add_time(p, r);
	draw_colour(d, DRAW_BOLD);
	draw_add(d, "so far: ");
	draw_colour(d, DRAW_PLAIN);
	draw_wrapped(d, TIME_COLUMNS, PAGE_SENTENCE_CHARACTERS / d->style.columns + 1, v->sentence);
}

static void tell_trigger(struct page *p, const struct record *r)
{
	char buf[RECORD_LIST_SIZE];
	struct text t = TEXT_ON(buf);

	text_reset(&t);
	record_add_trigger(&t, &r->trigger);
	add_time(p, r);
	draw_add(&p->draw, "trigger ");
	draw_add(&p->draw, buf);
	draw_end(&p->draw);
}

void page_add_event(struct page *p, const struct page_style *style, const struct record *r,
	struct text *out)
{
	struct page_style events = *style;

	if (!p->opened)
		return;
	/* Lines are cut for a terminal only: a file or a program takes them whole. */
	if (!style->terminal)
		events.columns = UINT32_MAX;
	draw_begin(&p->draw, &events, out);
	tell_held(p, r);
	switch (r->type) {
	case RECORD_OPEN:
		tell_open(p, r);
		break;
	case RECORD_SAMPLE:
		tell_sample(p, r);
		break;
	case RECORD_STALL:
	case RECORD_STUCK:
		tell_operation(p, r);
		break;
	case RECORD_ERROR:
		tell_error(p, r);
		break;
	case RECORD_DEVICE:
		tell_device(p, r);
		break;
	case RECORD_SQL:
		tell_sql(p, r);
		break;
	case RECORD_TRIGGER:
		tell_trigger(p, r);
		break;
	case RECORD_LOCK:
		tell_lock(p, r);
		break;
	case RECORD_VERDICT:
		tell_verdict(p, r);
		break;
	case RECORD_KERNEL:
		add_time(p, r);
		draw_add(&p->draw, "kernel ");
		draw_text(&p->draw, RECORD_MESSAGE_SIZE, r->kernel.text);
		draw_end(&p->draw);
		break;
	default:
		break;
	}
}
