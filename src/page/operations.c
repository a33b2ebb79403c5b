/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The operations of a page: one row for each group, those that are still stuck first. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "page/internal.h"
#include "util/cleanup.h"
#include "util/sort.h"

/* A row: a group's operations that are over, or those that are not. */
#define ROW_STUCK 0x8000
#define ROW_GROUP 0x7fff

/* The columns of a page that is wide enough for them. */
#define WIDE_COLUMNS 76
#define COUNT_END 6
#define MEDIAN_END 16
#define LONGEST_END 25
#define WHO_BEGIN 27

_Static_assert(PAGE_GROUPS_MAX + PAGE_COARSE_MAX <= ROW_GROUP, "a row is named by 15 bits");

/* sort_in_place() passes no context to the comparison, so each row has its own rank. */
struct row {
	uint64_t rank_ns;
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

static void count_stuck(struct page *p)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(p->operations.groups); i++) {
		struct page_group *g = &p->operations.groups[i];

		g->stuck = g->alike;
		g->stuck_max_ns = g->alike ? g->alike_max_ns : 0;
		g->stuck_max_is_bound = g->alike_is_bound;
		g->stuck_longest = (struct statement_query){ 0 };
	}
	for (uint32_t i = 0; i < p->operations.stuck.count; i++) {
		const struct page_stuck *s = &p->operations.stuck.items[i];
		struct page_group *g = &p->operations.groups[s->group];

		g->stuck++;
		if (s->operation.dur_ns >= g->stuck_max_ns) {
			g->stuck_max_ns = s->operation.dur_ns;
			g->stuck_max_is_bound = s->before_arm;
			g->stuck_longest = s->operation;
		}
	}
}

static uint32_t make_rows(const struct page_group *groups, uint32_t groups_count, struct row *rows)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < groups_count; i++) {
		const struct page_group *g = &groups[i];

		if (g->stuck)
			rows[count++] = (struct row){ g->stuck_max_ns, (uint16_t)(i | ROW_STUCK) };
		if (g->median.count)
			rows[count++] = (struct row){ g->waited_ns, (uint16_t)i };
	}
	sort_in_place(rows, count, sizeof(*rows), compare_rows);
	return count;
}

static struct page_group *fold_of(struct page_group *folds, uint32_t *count,
	const struct page_group *g)
{
	struct page_group *f;

	for (uint32_t i = 0; i < *count; i++)
		if (strcmp(folds[i].comm, g->comm) == 0 && folds[i].op == g->op &&
			strcmp(folds[i].cause, g->cause) == 0 &&
			strcmp(folds[i].dev_name, g->dev_name) == 0)
			return &folds[i];
	if (*count == PAGE_FOLDS_MAX)
		return NULL;
	f = &folds[(*count)++];
	memset(f, 0, sizeof(*f));
	memcpy(f, g, offsetof(struct page_group, waited_ns));
	return f;
}

/* One group for all files of a process. It has the path of the file that cost the most time. */
static uint32_t fold_files(struct page *p, const struct row *rows, uint32_t count)
{
	uint32_t folds_count = 0;

	p->operations.not_folded = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct page_group *g = &p->operations.groups[rows[i].name & ROW_GROUP], *f;

		/* Both rows of a group would add it twice. */
		if ((rows[i].name & ROW_STUCK) && g->median.count)
			continue;
		f = fold_of(p->operations.folds, &folds_count, g);
		if (!f) {
			p->operations.not_folded += g->median.count + g->stuck;
			continue;
		}
		page_merge_group(f, g);
		if (!*f->path)
			memcpy(f->path, g->path, sizeof(f->path));
		f->files++;
		f->other_files |= g->other_files;
	}
	return folds_count;
}

/* "mariadbd[2211]", "java/GC Thread[40]", "postgres 8 pids" */
static void add_who(struct page *p, const struct page_group *g, unsigned int columns)
{
	const char *process = page_process_name(p, g->pids_count == 1 ? g->pids[0] : 0);
	char who[128];
	struct text t = TEXT_ON(who);

	text_reset(&t);
	page_add_name(&t, *process ? process : g->process, g->comm);
	if (g->pids_count == 1)
		text_addf(&t, "[%" PRId32 "]", g->pids[0]);
	else
		text_addf(&t, " %" PRIu32 "%s pids", g->pids_count, g->more_pids ? "+" : "");
	draw_name(&p->draw, columns, who);
}

/* "device, loop1". Where there is no room for the device, it stands among the disks. */
static void add_cause(struct draw *d, const struct page_group *g)
{
	char buf[RECORD_NAME_SIZE + RECORD_DISK_NAME_SIZE];
	const char *cause = *g->cause ? g->cause : "unknown";
	struct text t = TEXT_ON(buf);

	text_reset(&t);
	text_add(&t, cause);
	if (*g->dev_name && strlen(cause) + strlen(g->dev_name) + 2 <= draw_left(d))
		text_addf(&t, ", %s", g->dev_name);
	draw_text(d, draw_left(d), buf);
}

/* "/srv/db/orders.ibd, 3 files, 2 failed" */
static void add_file(struct draw *d, const struct page_group *g, bool stuck, unsigned int columns)
{
	char suffix[64];
	struct text t = TEXT_ON(suffix);

	text_reset(&t);
	if (g->files > 1)
		text_addf(&t, ", %" PRIu32 "%s files", g->files, g->other_files ? "+" : "");
	if (g->failed && !stuck)
		text_addf(&t, ", %" PRIu32 " failed", g->failed);
	columns -= draw_width(suffix) < columns ? draw_width(suffix) : 0;
	if (g->other_files && !*g->path)
		draw_text(d, columns, "(many files)");
	else
		draw_path(d, columns, page_or_dash(g->path));
	draw_add(d, suffix);
}

static void print_numbers(struct draw *d, const struct page_group *g, bool stuck)
{
	char count[32];
	struct text t = TEXT_ON(count);
	uint64_t n = stuck ? g->stuck : g->median.count;

	text_reset(&t);
	text_addf(&t, "%" PRIu64, n);
	draw_right(d, COUNT_END, count);
	if (stuck) {
		draw_colour(d, DRAW_RED);
		draw_right(d, MEDIAN_END, "STUCK");
		draw_duration(d, LONGEST_END, g->stuck_max_ns, g->stuck_max_is_bound);
		draw_colour(d, DRAW_PLAIN);
		return;
	}
	if (n > 1)
		draw_duration(d, MEDIAN_END, median_get(&g->median, g->min_ns, g->max_ns), false);
	draw_duration(d, LONGEST_END, g->max_ns, g->max_is_bound);
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

static void print_wide(struct page *p, const struct page_group *g, bool stuck)
{
	struct draw *d = &p->draw;
	struct columns c = columns_of(d);

	add_who(p, g, c.operation - WHO_BEGIN - 1);
	draw_to(d, c.operation);
	draw_text(d, 10, page_or_dash(record_op_text(g->op)));
	draw_to(d, c.file);
	add_file(d, g, stuck, c.cause - 2 - draw_width(d->line.buf));
	draw_to(d, c.cause);
	add_cause(d, g);
	draw_end(d);
}

static void print_narrow(struct page *p, const struct page_group *g, bool stuck)
{
	struct draw *d = &p->draw;

	add_who(p, g, draw_left(d));
	draw_end(d);
	draw_to(d, COUNT_END + 2);
	draw_text(d, 10, page_or_dash(record_op_text(g->op)));
	draw_add(d, " ");
	add_file(d, g, stuck, draw_left(d));
	draw_end(d);
	draw_to(d, COUNT_END + 2);
	draw_add(d, "waits for ");
	add_cause(d, g);
	draw_end(d);
}

static const struct statement *statement_of(const struct page *p, const struct page_group *g,
	uint32_t *ret_others)
{
	const struct statement *longest = NULL;
	uint64_t longest_ns = 0;

	*ret_others = 0;
	for (uint32_t i = 0; i < g->kept; i++) {
		const struct statement *s = statements_find(p->statements, &g->longest[i]);

		if (s && g->longest[i].dur_ns > longest_ns) {
			longest = s;
			longest_ns = g->longest[i].dur_ns;
		}
	}
	for (uint32_t i = 0; longest && i < g->kept; i++) {
		const struct statement *s = statements_find(p->statements, &g->longest[i]);

		*ret_others += s && s->shape != longest->shape;
	}
	return longest;
}

static void print_statement(struct page *p, const struct page_group *g, bool stuck)
{
	struct draw *d = &p->draw;
	uint32_t others = 0;
	const struct statement *s = stuck ? statements_find(p->statements, &g->stuck_longest)
					  : statement_of(p, g, &others);

	if (!s)
		return;
	draw_to(d, d->style.columns >= WIDE_COLUMNS ? WHO_BEGIN : COUNT_END + 2);
	draw_colour(d, DRAW_DIM);
	draw_add(d, "ran ");
	draw_text(d, 24, page_or_dash(s->user));
	draw_add(d, ": ");
	draw_text(d, draw_left(d) - (others && draw_left(d) > 30 ? 14 : 0),
		*s->text ? s->text : "(a statement)");
	if (others)
		draw_add(d, ", and others");
	draw_end(d);
}

static void print_row(struct page *p, const struct page_group *groups, const struct row *row)
{
	const struct page_group *g = &groups[row->name & ROW_GROUP];
	bool stuck = row->name & ROW_STUCK;
	struct draw *d = &p->draw;

	print_numbers(d, g, stuck);
	draw_to(d, WHO_BEGIN);
	if (d->style.columns >= WIDE_COLUMNS)
		print_wide(p, g, stuck);
	else
		print_narrow(p, g, stuck);
	print_statement(p, g, stuck);
}

static void print_title(struct page *p)
{
	struct draw *d = &p->draw;
	struct columns c = columns_of(d);

	draw_title(d, "OPERATIONS");
	if (d->style.columns < WIDE_COLUMNS) {
		draw_add(d, "  count, median, longest");
		draw_end(d);
		return;
	}
	draw_right(d, MEDIAN_END, "median");
	draw_right(d, LONGEST_END, "longest");
	draw_to(d, WHO_BEGIN);
	draw_add(d, "process");
	draw_to(d, c.operation);
	draw_add(d, "operation, file");
	draw_to(d, c.cause);
	draw_add(d, "waits for");
	draw_end(d);
}

static void print_left_out(struct page *p, const struct page_group *groups, const struct row *rows,
	uint32_t count)
{
	uint64_t operations = p->operations.left_out + p->operations.not_folded, longest_ns = 0;
	struct draw *d = &p->draw;

	for (uint32_t i = 0; i < count; i++) {
		const struct page_group *g = &groups[rows[i].name & ROW_GROUP];
		bool stuck = rows[i].name & ROW_STUCK;
		uint64_t ns = stuck ? g->stuck_max_ns : g->max_ns;

		operations += stuck ? g->stuck : g->median.count;
		longest_ns = ns > longest_ns ? ns : longest_ns;
	}
	if (operations == 0)
		return;
	draw_addf(d, "  left out here: %" PRIu64 " %s of %" PRIu32 " more %s", operations,
		operations == 1 ? "operation" : "operations", count, count == 1 ? "row" : "rows");
	if (longest_ns) {
		draw_add(d, ", the longest");
		draw_duration(d, 0, longest_ns, false);
	}
	draw_end(d);
}

void page_print_operations(struct page *p)
{
	struct row rows[2 * (PAGE_GROUPS_MAX + PAGE_COARSE_MAX)];
	const struct page_group *groups = p->operations.groups;
	uint32_t count, shown;

	count_stuck(p);
	count = make_rows(groups, ARRAY_SIZE(p->operations.groups), rows);
	if (count == 0)
		return;
	if (count > PAGE_GROUP_ROWS) {
		uint32_t folds = fold_files(p, rows, count);

		groups = p->operations.folds;
		count = make_rows(groups, folds, rows);
	}
	print_title(p);
	shown = count < PAGE_GROUP_ROWS ? count : PAGE_GROUP_ROWS;
	for (uint32_t i = 0; i < shown; i++)
		print_row(p, groups, &rows[i]);
	print_left_out(p, groups, rows + shown, count - shown);
}
