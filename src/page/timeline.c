/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What happened when: a row for each second, or for a few when there are many. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "page/internal.h"
#include "util/cleanup.h"
#include "util/clock.h"

/* A second in which disk and pressure stay below this, and nothing happens, is quiet. */
#define BUSY_PCT 50

static bool has_event(const struct page_cell *c)
{
	return c->stalls || c->stuck || c->no_completion_ns || c->completes_again || c->thawed ||
		c->kernel_lines || c->at_lock.longest_ns || c->at_reader.longest_ns ||
		c->statements || c->connections_used || c->held_back_pct >= 0 || c->stopped_ns ||
		c->unanswered_ns || c->failing_ns;
}

static int util_of(const struct page *p, const struct page_cell *c)
{
	int disk = page_main_disk(p);

	return disk >= 0 ? c->util_pct[disk] : -1;
}

static bool is_quiet(const struct page *p, const struct page_cell *c)
{
	return !has_event(c) && util_of(p, c) < BUSY_PCT && c->psi_pct < BUSY_PCT;
}

static void add_item(struct draw *d, bool *any, const char *item)
{
	draw_add(d, *any ? ", " : "");
	draw_add(d, item);
	*any = true;
}

static void add_timed(struct draw *d, bool *any, const char *item, uint64_t ns)
{
	add_item(d, any, item);
	draw_duration(d, 0, ns, false);
}

/* "5 stuck (3.36 s)"; ns is 0 where it is not known. */
static void add_counted(struct draw *d, bool *any, const char *count, const char *what, uint64_t ns)
{
	char buf[96];
	struct text t = TEXT_ON(buf);

	text_reset(&t);
	text_addf(&t, "%s %s", count, what);
	if (ns) {
		text_add(&t, " (");
		record_add_duration(&t, ns);
		text_add(&t, ")");
	}
	add_item(d, any, buf);
}

static void add_count(struct draw *d, bool *any, uint32_t count, const char *what, uint64_t ns)
{
	char number[16];

	snprintf(number, sizeof(number), "%" PRIu32, count);
	if (count)
		add_counted(d, any, number, what, ns);
}

/* Where it is not known how many wait, one does at least. */
static void add_waiters(struct draw *d, bool *any, const struct page_waiters *w, const char *what)
{
	if (w->longest_ns && !w->count)
		add_counted(d, any, "some", what, w->longest_ns);
	add_count(d, any, w->count, what, w->longest_ns);
}

static void add_counts(struct draw *d, const struct page_cell *c, bool *any)
{
	add_count(d, any, c->stuck, "stuck", c->stuck_ns);
	add_waiters(d, any, &c->at_lock, "waiting for a lock");
	add_waiters(d, any, &c->at_reader, "waiting for a reader");
	add_count(d, any, c->statements, "waiting in a database", 0);
	add_count(d, any, c->stalls, "ended", 0);
	add_count(d, any, c->kernel_lines,
		c->kernel_lines == 1 ? "kernel log line" : "kernel log lines", 0);
}

/* "NO COMPLETIONS for 1.72 s"; a disk that has no column of its own is named. */
static void add_no_completions(struct page *p, const struct page_cell *c, bool *any)
{
	struct draw *d = &p->draw;

	if (!c->no_completion_ns)
		return;
	draw_colour(d, DRAW_RED);
	add_item(d, any, "NO COMPLETIONS");
	if (c->no_completion_disk >= 0 && c->no_completion_disk != page_main_disk(p)) {
		draw_add(d, " on ");
		draw_text(d, 20, p->model.disks.list[c->no_completion_disk].name);
	}
	draw_add(d, " for");
	draw_duration(d, 0, c->no_completion_ns, false);
	draw_colour(d, DRAW_PLAIN);
}

static void add_what_happened(struct page *p, const struct page_cell *c, bool triggered,
	bool closed)
{
	struct draw *d = &p->draw;
	bool any = false;

	if (triggered) {
		draw_colour(d, DRAW_BOLD);
		add_item(d, &any, "trigger");
		draw_colour(d, DRAW_PLAIN);
	}
	add_no_completions(p, c, &any);
	if (c->unanswered_ns >= 2 * NSEC_PER_SEC)
		add_timed(d, &any, "database silent for", c->unanswered_ns);
	if (c->failing_ns)
		add_timed(d, &any, "health check fails for", c->failing_ns);
	if (c->stopped_ns)
		add_timed(d, &any, "stopped for", c->stopped_ns);
	if (c->held_back_pct >= 0) {
		add_item(d, &any, "CPU limit holds back");
		draw_addf(d, " %d %%", c->held_back_pct);
	}
	if (c->connections_used)
		add_item(d, &any, "all connections used");
	if (c->thawed)
		add_item(d, &any, "thawed");
	if (c->completes_again)
		add_item(d, &any, "completes again");
	add_counts(d, c, &any);
	if (closed)
		add_item(d, &any, "closed");
}

/* "100 %" and a blank before it. */
#define PCT 6

static void add_pct_bar(struct draw *d, unsigned int bar, int pct)
{
	char buf[16];
	unsigned int end = draw_width(d->line.buf) + bar + PCT;

	if (pct >= 90)
		draw_colour(d, DRAW_RED);
	else if (pct >= BUSY_PCT)
		draw_colour(d, DRAW_YELLOW);
	if (bar)
		draw_bar(d, bar, pct < 0 ? 0 : pct / 100.0);
	snprintf(buf, sizeof(buf), pct < 0 ? "-" : "%d %%", pct);
	draw_right(d, end, buf);
	if (pct >= BUSY_PCT)
		draw_colour(d, DRAW_PLAIN);
}

static unsigned int bar_columns(const struct draw *d)
{
	return d->style.columns >= 140 ? 12 : d->style.columns >= 72 ? 5 : 0;
}

static void add_clock(struct draw *d, uint64_t real_ns)
{
	time_t sec = (time_t)(real_ns / NSEC_PER_SEC);
	struct tm tm;
	char buf[16];

	localtime_r(&sec, &tm);
	strftime(buf, sizeof(buf), "%H:%M:%S", &tm);
	draw_add(d, buf);
}

/* The cells of a row; `end` is the first cell of the next row. */
struct span {
	uint64_t from;
	uint64_t end;
};

static int64_t second_of(const struct page_timeline *t, uint64_t cell)
{
	return (int64_t)(cell * t->cell_s) - PAGE_LEAD_S;
}

static void add_begin(struct page *p, uint64_t cell)
{
	/* Unsigned: a damaged record may have any time. */
	uint64_t ns = (uint64_t)second_of(&p->timeline, cell) * NSEC_PER_SEC;

	draw_add(&p->draw, "  ");
	add_clock(&p->draw, p->opened_real_ns + ns);
}

static void add_numbers_of(struct page *p, const struct page_cell *c)
{
	struct draw *d = &p->draw;
	unsigned int bar = bar_columns(d);

	draw_to(d, 12);
	add_pct_bar(d, bar, util_of(p, c));
	if (bar) {
		draw_add(d, "    ");
		add_pct_bar(d, 0, c->psi_pct);
		add_pct_bar(d, 0, c->cpu_pct);
		draw_addf(d, c->sampled ? "%9" PRIu32 : "        -", c->blocked);
	}
	draw_add(d, "  ");
}

static void print_title(struct page *p)
{
	struct draw *d = &p->draw;
	int disk = page_main_disk(p);
	unsigned int bar = bar_columns(d), end = 12 + bar + PCT;

	draw_title(d, "TIMELINE");
	draw_to(d, 12);
	if (bar)
		draw_text(d, bar + PCT - 5, disk >= 0 ? p->model.disks.list[disk].name : "disk");
	draw_right(d, end, "util");
	if (bar) {
		draw_right(d, end + 10, "pressure");
		draw_right(d, end + 10 + PCT, "CPU");
		draw_right(d, end + 10 + PCT + 9, "in I/O");
	}
	draw_add(d, "  what happened");
	draw_end(d);
}

/* Quiet seconds before the trigger get no rows. Returns the first cell that gets one. */
static uint64_t first_cell(const struct page *p)
{
	const struct page_timeline *t = &p->timeline;
	uint64_t lead = PAGE_LEAD_S / t->cell_s, first = 0;

	while (first < lead && first < t->used && is_quiet(p, &t->cells[first]))
		first++;
	return first;
}

/* A row ends at the trigger, unless the trigger is in the middle of a cell. */
static uint64_t row_end(const struct page_timeline *t, uint64_t from, uint64_t cells)
{
	uint64_t lead = PAGE_LEAD_S / t->cell_s, end = from + cells;

	if (from < lead && end > lead)
		end = lead;
	return end < t->used ? end : t->used;
}

static const struct page_cell *merge_span(struct page *p, const struct span *span)
{
	struct page_cell *row = &p->timeline.row;

	page_cell_clear(row);
	for (uint64_t i = span->from; i < span->end; i++)
		page_cell_merge(row, &p->timeline.cells[i]);
	return row;
}

static bool is_triggered(const struct page_timeline *t, const struct span *span)
{
	return second_of(t, span->from) <= 0 && second_of(t, span->end) > 0;
}

static void print_before(struct page *p, uint64_t first)
{
	struct page_cell *row = &p->timeline.row;

	merge_span(p, &(struct span){ 0, first });
	page_cell_merge(row, &p->timeline.before);
	if (!row->sampled)
		return;
	draw_add(&p->draw, "  before");
	add_numbers_of(p, row);
	draw_add(&p->draw, "highest values");
	draw_end(&p->draw);
}

/*
 * Two or more rows in sequence without any event are printed as one. Returns where such rows end,
 * or `from` if there are fewer than two.
 */
static uint64_t quiet_end(struct page *p, uint64_t from, uint64_t cells)
{
	const struct page_timeline *t = &p->timeline;
	struct span next = { from, row_end(t, from, cells) };
	uint64_t rows = 0;

	while (next.from < t->used && !is_triggered(t, &next) &&
		is_quiet(p, merge_span(p, &next))) {
		next = (struct span){ next.end, row_end(t, next.end, cells) };
		rows++;
	}
	return rows < 2 ? from : next.from;
}

static void print_quiet(struct page *p, const struct span *span)
{
	const struct page_timeline *t = &p->timeline;

	add_begin(p, span->from);
	draw_to(&p->draw, 12);
	draw_colour(&p->draw, DRAW_DIM);
	draw_addf(&p->draw, "quiet for %" PRIu64 " s%s", (span->end - span->from) * t->cell_s,
		span->end == t->used && p->closed ? ", closed" : "");
	draw_end(&p->draw);
}

static void print_row(struct page *p, const struct span *span)
{
	const struct page_timeline *t = &p->timeline;
	const struct page_cell *c = merge_span(p, span);

	add_begin(p, span->from);
	add_numbers_of(p, c);
	add_what_happened(p, c, is_triggered(t, span), p->closed && span->end == t->used);
	draw_end(&p->draw);
}

/* How many rows of so many cells there are from `from` on. */
static unsigned int walk_rows(struct page *p, uint64_t from, uint64_t cells, bool print)
{
	unsigned int rows = 0;

	for (; from < p->timeline.used; rows++) {
		struct span span = { from, quiet_end(p, from, cells) };
		bool quiet = span.end > from;

		if (!quiet)
			span.end = row_end(&p->timeline, from, cells);
		if (print && quiet)
			print_quiet(p, &span);
		else if (print)
			print_row(p, &span);
		from = span.end;
	}
	return rows;
}

/* How many cells make a row. A short incident gets fewer rows, to leave room for the rest. */
static uint64_t row_cells(struct page *p, uint64_t first)
{
	static const uint64_t nice[] = { 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600,
		7200, 14400, 28800, 86400 };
	const struct page_timeline *t = &p->timeline;
	bool is_short = t->used * t->cell_s <= PAGE_TIMELINE_SHORT_S;
	unsigned int max = is_short ? PAGE_TIMELINE_ROWS_SHORT : PAGE_TIMELINE_ROWS;

	for (unsigned int i = 0; i < ARRAY_SIZE(nice); i++)
		if (nice[i] % t->cell_s == 0 &&
			walk_rows(p, first, nice[i] / t->cell_s, false) < max)
			return nice[i] / t->cell_s;
	return t->used / (max - 2) + 1;
}

void page_print_timeline(struct page *p)
{
	uint64_t first;

	if (p->timeline.used == 0)
		return;
	print_title(p);
	first = first_cell(p);
	print_before(p, first);
	walk_rows(p, first, row_cells(p, first), true);
}
