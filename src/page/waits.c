/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The waits of a page: a row for those of one program for one thing, what still hangs first. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/wait_times.h"
#include "page/internal.h"
#include "util/sort.h"

/* A row: a group's waits, or those of them that last. */
#define ROW_STUCK 0x8000
#define ROW_GROUP 0x7fff

/* The columns of a page that is wide enough for them. */
#define WIDE_COLUMNS 76
#define COUNT_END 13
#define TOGETHER_END 22
#define LONGEST_END 30
#define WHO_BEGIN 32
/* Of further lines on a narrow page. */
#define NEXT_BEGIN 9

_Static_assert(MODEL_GROUPS_MAX <= ROW_GROUP, "a row is named by 15 bits");

/* sort_in_place() passes no context to the comparison, so each row has its own rank. */
struct row {
	uint64_t rank_ns;
	struct model_hanging stuck;
	uint16_t name;
};

static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	bool x_stuck = x->name & ROW_STUCK, y_stuck = y->name & ROW_STUCK;

	if (x_stuck != y_stuck)
		return x_stuck ? -1 : 1;
	if (x->rank_ns != y->rank_ns)
		return x->rank_ns > y->rank_ns ? -1 : 1;
	return x->name > y->name ? 1 : -1;
}

static const struct model_wait *wait_of(const struct page *p, const struct row *row)
{
	return &p->model.waits.groups[row->name & ROW_GROUP];
}

static uint32_t make_rows(const struct page *p, struct row *rows)
{
	const struct model_waits *waits = &p->model.waits;
	uint32_t count = 0;

	for (uint32_t i = 0; i < waits->groups_count; i++) {
		const struct model_hanging stuck =
			model_waits_find_hanging(&p->model, (int)i, p->last_mono_ns);

		if (stuck.count)
			rows[count++] =
				(struct row){ stuck.longest_ns, stuck, (uint16_t)(i | ROW_STUCK) };
		if (model_wait_threads(&waits->groups[i]) > stuck.count)
			rows[count++] = (struct row){ model_wait_ns(&waits->groups[i]), { 0 },
				(uint16_t)i };
	}
	sort_in_place(rows, count, sizeof(*rows), compare_rows);
	return count;
}

/* What a person calls the thing it waits for: the record's word, else the kernel function. */
static const char *cause_of(const struct model_wait *w)
{
	if (w->cause)
		return record_cause_text(w->cause);
	return *w->function ? w->function : "unknown";
}

/* "device, loop1". Where there is no room for the device, it stands among the disks. */
static void add_cause(struct page *p, const struct model_wait *w)
{
	char buf[RECORD_NAME_SIZE + RECORD_LABEL_SIZE];
	struct text t = TEXT_ON(buf);
	struct draw *d = &p->draw;

	text_reset(&t);
	text_add(&t, cause_of(w));
	if (w->disk >= 0) {
		const char *name = p->model.disks.list[w->disk].name;

		if (*name && t.len + strlen(name) + 2 <= draw_left(d))
			text_addf(&t, ", %s", name);
	}
	draw_text(d, draw_left(d), buf);
}

/* "mariadbd[2211]", "java/GC Thread[40]", "postgres, several" */
static void add_who(struct page *p, const struct model_wait *w, unsigned int columns)
{
	char who[128];
	struct text t = TEXT_ON(who);

	text_reset(&t);
	page_add_name(&t, w->process, w->who.comm);
	if (w->is_several)
		text_add(&t, ", several");
	else
		text_addf(&t, "[%" PRId32 "]", w->who.pid);
	draw_name(&p->draw, columns, who);
}

/* The relation of a file of PostgreSQL, of which the path has only a number. */
static const char *file_of(const struct page *p, const struct model_wait *w)
{
	const struct model_loads *all = &p->model.loads;

	for (uint32_t i = 0; *w->path && i < all->count; i++) {
		const struct model_loads_of *loads = &all->list[i];

		for (uint32_t k = 0; k < loads->counts[RECORD_BY_file]; k++)
			if (*loads->files[k].relation && strcmp(loads->files[k].name, w->path) == 0)
				return loads->files[k].relation;
	}
	return page_or_dash(w->path);
}

static void print_numbers(struct draw *d, const struct model_wait *w, const struct row *row)
{
	const bool stuck = row->name & ROW_STUCK;
	char count[32];

	snprintf(count, sizeof(count), "%" PRIu64,
		stuck ? row->stuck.count : model_wait_threads(w));
	draw_right(d, COUNT_END, count);
	if (stuck) {
		draw_colour(d, DRAW_RED);
		draw_right(d, TOGETHER_END, "STUCK");
		draw_duration(d, LONGEST_END, row->stuck.longest_ns, false);
		draw_colour(d, DRAW_PLAIN);
		return;
	}
	draw_duration(d, TOGETHER_END, model_wait_ns(w), false);
	draw_duration(d, LONGEST_END, w->longest_ns, false);
}

/* Where the columns of a wide page begin. */
struct columns {
	unsigned int operation;
	unsigned int file;
	unsigned int cause;
};

static struct columns columns_of(const struct draw *d)
{
	unsigned int width = d->style.columns;
	unsigned int who = width >= 140 ? 32 : width >= 96 ? 21 : 15;

	return (struct columns){
		.operation = WHO_BEGIN + who + 1,
		.file = WHO_BEGIN + who + 1 + 6,
		.cause = width -
			(width >= 140		      ? 34
					: width >= 96 ? 21
						      : 16),
	};
}

static void print_wide(struct page *p, const struct model_wait *w)
{
	struct draw *d = &p->draw;
	struct columns c = columns_of(d);

	add_who(p, w, c.operation - WHO_BEGIN - 1);
	draw_to(d, c.operation);
	draw_text(d, 10, page_or_dash(record_op_text(w->op)));
	draw_to(d, c.file);
	draw_path(d, c.cause - 2 - draw_width(d->line.buf), file_of(p, w));
	draw_to(d, c.cause);
	add_cause(p, w);
	draw_end(d);
}

static void print_narrow(struct page *p, const struct model_wait *w)
{
	struct draw *d = &p->draw;

	add_who(p, w, draw_left(d));
	draw_end(d);
	draw_to(d, NEXT_BEGIN);
	draw_text(d, 10, page_or_dash(record_op_text(w->op)));
	draw_add(d, " ");
	draw_path(d, draw_left(d), file_of(p, w));
	draw_end(d);
	draw_to(d, NEXT_BEGIN);
	draw_add(d, "waits for ");
	add_cause(p, w);
	draw_end(d);
}

/* What the thread ran that waited longest. */
static void print_statement(struct page *p, const struct model_wait *w)
{
	const struct statement_query q = { .tid = w->who.tid,
		.start_ns = w->start_ns,
		.dur_ns = w->longest_ns };
	const struct statement *s = statements_find(p->statements, &q);
	struct draw *d = &p->draw;

	if (!s)
		return;
	draw_to(d, d->style.columns >= WIDE_COLUMNS ? WHO_BEGIN : NEXT_BEGIN);
	draw_colour(d, DRAW_DIM);
	draw_add(d, "ran ");
	draw_text(d, 24, page_or_dash(s->user));
	draw_add(d, ": ");
	draw_text(d, draw_left(d), *s->text ? s->text : "(a statement)");
	draw_end(d);
}

static void print_title(struct page *p)
{
	struct draw *d = &p->draw;
	struct columns c = columns_of(d);

	draw_title(d, "WAITS");
	if (d->style.columns < WIDE_COLUMNS) {
		draw_add(d, "  threads, together, longest");
		draw_end(d);
		return;
	}
	draw_right(d, COUNT_END, "threads");
	draw_right(d, TOGETHER_END, "together");
	draw_right(d, LONGEST_END, "longest");
	draw_to(d, WHO_BEGIN);
	draw_add(d, "process");
	draw_to(d, c.operation);
	draw_add(d, "operation, file");
	draw_to(d, c.cause);
	draw_add(d, "waits for");
	draw_end(d);
}

static void print_left_out(struct page *p, const struct row *rows, uint32_t count)
{
	uint64_t threads = 0, longest_ns = 0;
	struct draw *d = &p->draw;

	for (uint32_t i = 0; i < count; i++) {
		const struct model_wait *w = wait_of(p, &rows[i]);

		threads += rows[i].name & ROW_STUCK ? rows[i].stuck.count : model_wait_threads(w);
		longest_ns = w->longest_ns > longest_ns ? w->longest_ns : longest_ns;
	}
	if (threads == 0)
		return;
	draw_addf(d, "  left out here: %" PRIu64 " %s of %" PRIu32 " more %s", threads,
		threads == 1 ? "thread" : "threads", count, count == 1 ? "row" : "rows");
	if (longest_ns) {
		draw_add(d, ", the longest");
		draw_duration(d, 0, longest_ns, false);
	}
	draw_end(d);
}

void page_print_waits(struct page *p)
{
	struct row rows[2 * MODEL_GROUPS_MAX];
	uint32_t count = make_rows(p, rows);
	uint32_t shown = count < PAGE_GROUP_ROWS ? count : PAGE_GROUP_ROWS;

	if (count == 0)
		return;
	print_title(p);
	for (uint32_t i = 0; i < shown; i++) {
		const struct model_wait *w = wait_of(p, &rows[i]);

		print_numbers(&p->draw, w, &rows[i]);
		draw_to(&p->draw, WHO_BEGIN);
		if (p->draw.style.columns >= WIDE_COLUMNS)
			print_wide(p, w);
		else
			print_narrow(p, w);
		print_statement(p, w);
	}
	print_left_out(p, rows + shown, count - shown);
}
