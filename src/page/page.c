/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The page as a whole, and its head: verdict, parts of it, incident, trigger. */
#include "page/page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/wait_times.h"
#include "page/internal.h"
#include "util/cleanup.h"
#include "util/clock.h"

/* Labels of the head are so wide, with two blanks. */
#define LABEL 10

static void cleanup_page(struct page **page)
{
	page_free(*page);
}

int page_new(struct page **ret_page)
{
	_cleanup_(cleanup_page) struct page *page = calloc(1, sizeof(*page));
	int r;

	if (!page)
		return -ENOMEM;
	r = statements_new(&page->statements);
	if (r < 0)
		return r;
	*ret_page = TAKE_PTR(page);
	return 0;
}

struct page *page_free(struct page *page)
{
	if (page)
		statements_free(page->statements);
	free(page);
	return NULL;
}

static void begin(struct page *p, const struct record *r)
{
	struct statements *statements = p->statements;

	memset(p, 0, sizeof(*p));
	p->statements = statements;
	statements_clear(statements);
	p->opened = true;
	p->opened_real_ns = r->real_ns;
	p->opened_mono_ns = p->last_mono_ns = r->mono_ns;
	memcpy(p->incident, r->incident, sizeof(p->incident));
	p->open = r->open;
	model_begin(&p->model);
	model_add(&p->model, r);
	page_cell_at(p, r->mono_ns);
}

static void note_operation(struct page *p, const struct record *r)
{
	struct page_cell *c = page_cell_at(p, r->mono_ns);
	const struct record_operation *o = &r->operation;
	const uint64_t most_ns =
		o->alike.present && o->alike.max_ns > o->dur_ns ? o->alike.max_ns : o->dur_ns;

	if (r->type == RECORD_STALL) {
		c->stalls += page_count_of(o);
		p->stalls += page_count_of(o);
		p->longest_ns = most_ns > p->longest_ns ? most_ns : p->longest_ns;
	}
	c->thawed |= r->type == RECORD_STALL &&
		r->operation.waits_for == RECORD_CAUSE_frozen_file_system;
	/* Each sample adds how many there are, and those that have no line in this second. */
	if (r->type == RECORD_STUCK && r->operation.dur_ns > c->stuck_ns)
		c->stuck_ns = r->operation.dur_ns;
}

static void note_kernel(struct page *p, const struct record *r)
{
	page_cell_at(p, r->mono_ns)->kernel_lines++;
	if (p->kernel_lines++ == 0)
		memcpy(p->kernel_text, r->kernel.text, sizeof(p->kernel_text));
}

void page_add(struct page *p, const struct record *r)
{
	if (r->type == RECORD_OPEN) {
		begin(p, r);
		return;
	}
	if (!p->opened)
		return;
	if (r->mono_ns > p->last_mono_ns)
		p->last_mono_ns = r->mono_ns;
	if (r->type == RECORD_STUCK)
		p->events.hung_ns = model_waits_hanging_ns(&p->model.waits, r->operation.tid);
	model_add(&p->model, r);
	switch (r->type) {
	case RECORD_SAMPLE:
		page_note_sample(p, r);
		break;
	case RECORD_STALL:
	case RECORD_STUCK:
		note_operation(p, r);
		break;
	case RECORD_DEVICE:
		page_note_device(p, r);
		break;
	case RECORD_LOCK:
		page_note_lock(p, r);
		break;
	case RECORD_OFFCPU:
		page_note_offcpu(p, &r->offcpu);
		break;
	case RECORD_KERNEL:
		note_kernel(p, r);
		break;
	case RECORD_SQL:
		page_note_sql(p, r);
		break;
	case RECORD_VERDICT:
		p->verdict = r->verdict;
		p->has_verdict = true;
		break;
	case RECORD_CLOSE:
		p->close = r->close;
		p->closed = true;
		break;
	default:
		break;
	}
}

static void print_label(struct draw *d, const char *label)
{
	draw_colour(d, DRAW_DIM);
	draw_text(d, LABEL - 1, label);
	draw_colour(d, DRAW_PLAIN);
	draw_to(d, LABEL);
}

static void print_verdict(struct page *p)
{
	struct draw *d = &p->draw;

	if (!p->has_verdict) {
		draw_colour(d, DRAW_BOLD);
		draw_add(d, p->closed ? "VERDICT: none" : "VERDICT: none yet");
		draw_end(d);
		return;
	}
	draw_colour(d, DRAW_BOLD);
	draw_add(d, "VERDICT: ");
	draw_text(d, 20, page_or_dash(record_class_text(p->verdict.class)));
	if (p->verdict.basis) {
		draw_add(d, " (");
		draw_text(d, 12, record_basis_text(p->verdict.basis));
		draw_add(d, ")");
	}
	draw_end(d);
	draw_wrapped(d, 0, d->style.verbose ? 100 : PAGE_SENTENCE_CHARACTERS / d->style.columns + 1,
		p->verdict.sentence);
}

/* What is escaped already. */
static void print_labelled(struct draw *d, const char *label, const char *escaped)
{
	print_label(d, label);
	draw_wrapped_escaped(d, LABEL,
		d->style.verbose		? 10
			: d->style.columns < 96 ? 3
						: 2,
		escaped);
}

static const char *end_of_incident(enum record_reason reason)
{
	switch (reason) {
	case RECORD_REASON_clear:
		return ", ended when all was clear again";
	case RECORD_REASON_max_time:
		return ", ended by incident.max_time";
	case RECORD_REASON_stopped:
		return ", ended because iostall was stopped";
	default:
		return "";
	}
}

static void print_incident(struct page *p)
{
	struct draw *d = &p->draw;
	char buf[2048], begun[CLOCK_LOCAL_SIZE];
	struct text t = TEXT_ON(buf);

	text_reset(&t);
	record_add_printable(&t, p->incident);
	text_add(&t, " on ");
	record_add_printable(&t, page_or_dash(p->open.host));
	if (d->style.verbose) {
		text_add(&t, ", kernel ");
		record_add_printable(&t, page_or_dash(p->open.kernel));
		text_add(&t, ", iostall ");
		record_add_printable(&t, page_or_dash(p->open.version));
	}
	print_labelled(d, "incident", buf);
	clock_format_local(p->opened_real_ns, begun, sizeof(begun));
	text_reset(&t);
	text_addf(&t, "%s, for ", begun);
	record_add_duration(&t,
		p->closed ? p->close.duration_ns : p->last_mono_ns - p->opened_mono_ns);
	if (p->closed)
		text_add(&t, end_of_incident(p->close.reason));
	print_labelled(d, "when", buf);
	text_reset(&t);
	record_add_trigger(&t, &p->open.trigger);
	print_labelled(d, "trigger", buf);
	if (!*p->open.continues)
		return;
	text_reset(&t);
	text_add(&t, "incident ");
	record_add_printable(&t, p->open.continues);
	text_add(&t, ", which has the beginning");
	print_labelled(d, "continues", buf);
}

#define ORDERS 8

/* In the order in which they are read. */
static unsigned int order_of(enum record_what what)
{
	static const enum record_what order[] = { RECORD_WHAT_cause, RECORD_WHAT_culprit,
		RECORD_WHAT_largest, RECORD_WHAT_statement, RECORD_WHAT_lock, RECORD_WHAT_victims,
		RECORD_WHAT_second, RECORD_WHAT_database };

	for (unsigned int i = 0; i < ARRAY_SIZE(order); i++)
		if (what == order[i])
			return i;
	_Static_assert(ARRAY_SIZE(order) == ORDERS, "all others come last");
	return ORDERS;
}

/*
 * The sentence has the figures of the device, and its entry among the disks has more. Who reads a
 * page at 3 am wants one explanation, and only asks for another one when that is wrong.
 */
static bool is_said_elsewhere(const struct page *p, const struct record_verdict_part *part)
{
	int disk = page_main_disk(p);

	if (part->what == RECORD_WHAT_alternative)
		return !p->draw.style.verbose;
	return part->what == RECORD_WHAT_device && !p->draw.style.verbose && disk >= 0 &&
		p->model.disks.list[disk].has_totals &&
		disk == model_disks_find(&p->model.disks, p->verdict.dev);
}

static void print_part(struct draw *d, const struct record_verdict_part *part)
{
	char buf[4 * RECORD_PART_SIZE + 16]; /* each byte as \xNN */
	struct text t = TEXT_ON(buf);

	text_reset(&t);
	record_add_printable(&t, part->text);
	if (part->basis)
		text_addf(&t, " (%s)", record_basis_text(part->basis));
	print_labelled(d,
		part->what == RECORD_WHAT_alternative ? "or else"
						      : page_or_dash(record_what_text(part->what)),
		buf);
}

static void print_parts(struct page *p)
{
	const struct record_verdict *v = &p->verdict;
	uint32_t count = v->parts_count < RECORD_PARTS_MAX ? v->parts_count : RECORD_PARTS_MAX;

	for (unsigned int order = 0; order <= ORDERS; order++)
		for (uint32_t i = 0; i < count; i++)
			if (order_of(v->parts[i].what) == order &&
				!is_said_elsewhere(p, &v->parts[i]))
				print_part(&p->draw, &v->parts[i]);
	if (!p->has_verdict && p->kernel_lines) {
		print_label(&p->draw, "kernel");
		draw_text(&p->draw, draw_left(&p->draw), p->kernel_text);
		draw_end(&p->draw);
	}
}

/* "17 of 100 ms or longer, the longest 4.04 s; 3 more did not return (9.50 s)" */
static void print_counts(struct page *p)
{
	const struct model_hanging stuck = model_waits_find_hanging(&p->model, -1, p->last_mono_ns);
	char buf[256];
	struct text t = TEXT_ON(buf);

	text_reset(&t);
	text_addf(&t, "%" PRIu64 " of ", p->stalls);
	record_add_duration(&t, p->open.min_stall_ns);
	text_add(&t, " or longer");
	if (p->longest_ns) {
		text_add(&t, ", the longest ");
		record_add_duration(&t, p->longest_ns);
	}
	if (stuck.count) {
		text_addf(&t, "; %" PRIu64 " more %s (", stuck.count,
			p->closed ? "did not return" : "have not returned");
		record_add_duration(&t, stuck.longest_ns);
		text_add(&t, ")");
	}
	print_labelled(&p->draw, "stalls", buf);
}

void page_print(struct page *p, const struct page_style *style, bool being_written,
	struct text *out)
{
	if (!p->opened)
		return;
	draw_begin(&p->draw, style, out);
	print_verdict(p);
	print_parts(p);
	print_incident(p);
	print_counts(p);
	page_print_timeline(p);
	page_print_waits(p);
	page_print_blocked(p);
	page_print_disks(p);
	page_print_statements(p);
	page_print_closing(p, being_written);
}
