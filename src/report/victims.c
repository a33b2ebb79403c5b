/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of who waited: operations that are alike in one row, and so are waits for locks. */
#include <inttypes.h>
#include <stdlib.h>

#include "report/internal.h"
#include "util/cleanup.h"
#include "util/sort.h"

struct victims_row {
	uint32_t comm, path, dev_name;
	int32_t pid;
	const char *cause, *op;
	uint64_t ns, longest_ns;
	uint64_t operations, threads;
};

/* What tells rows apart; then the threads of one stand together. */
static int compare_alike(const struct report_operation *x, const struct report_operation *y)
{
	const int64_t differences[] = { (int64_t)x->pid - y->pid, (int64_t)x->op - y->op,
		(int64_t)x->path - y->path, (int64_t)x->cause - y->cause };

	for (size_t i = 0; i < ARRAY_SIZE(differences); i++)
		if (differences[i])
			return differences[i] < 0 ? -1 : 1;
	return 0;
}

static int compare_operation_pointers(const void *a, const void *b)
{
	const struct report_operation *x = *(const struct report_operation *const *)a,
				      *y = *(const struct report_operation *const *)b;
	const int r = compare_alike(x, y);

	return r ? r : (x->tid > y->tid) - (x->tid < y->tid);
}

static int compare_rows(const void *a, const void *b)
{
	const struct victims_row *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

/* Name and disk of the row are those of the operation that took longest. */
static void add_operation(struct victims_row *row, const struct report_operation *o,
	bool is_of_another_thread)
{
	row->threads += is_of_another_thread;
	row->operations++;
	row->ns += o->ns;
	if (row->operations > 1 && o->ns <= row->longest_ns)
		return;
	row->longest_ns = o->ns;
	row->comm = o->comm;
	row->dev_name = o->dev_name;
}

static uint32_t fold_operations(const struct report *p, const struct report_operation **list,
	struct victims_row *rows)
{
	const uint32_t count = p->operations.count;
	uint32_t rows_count = 0;

	for (uint32_t i = 0; i < count; i++)
		list[i] = &p->operations.items[i];
	sort_in_place(list, count, sizeof(*list), compare_operation_pointers);
	for (uint32_t i = 0; i < count; i++) {
		const struct report_operation *o = list[i], *before = i ? list[i - 1] : NULL;
		bool is_alike = before && compare_alike(before, o) == 0;

		if (!is_alike)
			rows[rows_count++] = (struct victims_row){
				.path = o->path,
				.pid = o->pid,
				.op = record_op_text(o->op),
				.cause = o->cause ? record_cause_text(o->cause) : "-",
			};
		add_operation(&rows[rows_count - 1], o, !is_alike || before->tid != o->tid);
	}
	return rows_count;
}

static struct victims_row *find_row(struct victims_row *rows, uint32_t count,
	const struct report_wait *w)
{
	for (uint32_t i = 0; i < count; i++)
		if (rows[i].comm == w->comm && rows[i].pid == w->pid && rows[i].path == w->path &&
			rows[i].cause == report_wait_cause(w))
			return &rows[i];
	return NULL;
}

/* A session that waits again is one session. */
static bool is_first_of(const struct report *p, uint32_t i)
{
	const struct report_wait *w = &p->waits.items[i];

	for (uint32_t k = 0; w->is_session && k < i; k++)
		if (p->waits.items[k].is_session && p->waits.items[k].id == w->id &&
			p->waits.items[k].target == w->target &&
			p->waits.items[k].path == w->path && p->waits.items[k].lock == w->lock)
			return false;
	return true;
}

/* Threads at one lock count for as long as the one that waited longest, as in the verdict. */
static uint32_t fold_waits(const struct report *p, struct victims_row *rows)
{
	uint32_t rows_count = 0;

	for (uint32_t i = 0; i < p->waits.count; i++) {
		const struct report_wait *w = &p->waits.items[i];
		struct victims_row *row = find_row(rows, rows_count, w);

		if (!row) {
			row = &rows[rows_count++];
			*row = (struct victims_row){
				.comm = w->comm,
				.path = w->path,
				.pid = w->pid,
				.op = w->is_session ? "statement" : "-",
				.cause = report_wait_cause(w),
			};
		}
		row->threads += is_first_of(p, i) ? w->threads : 0;
		row->operations += w->threads;
		row->ns += w->threads * w->ns;
		row->longest_ns = w->ns > row->longest_ns ? w->ns : row->longest_ns;
	}
	return rows_count;
}

static void add_row(struct report *p, const struct victims_row *row, struct text *out)
{
	const char *disk = strings_get(&p->strings, row->dev_name);

	text_add(out, "<tr><td><bdi>");
	text_add_html(out, strings_get(&p->strings, row->comm));
	text_add(out, "</bdi>");
	if (row->pid)
		text_addf(out, " <span class=\"minor\">pid %" PRId32 "</span>", row->pid);
	text_add(out, "</td><td>");
	text_add(out, row->cause);
	if (*disk) {
		text_add(out, ", ");
		text_add_html(out, disk);
	}
	text_add(out, "</td>");
	html_add_duration_cell(out, row->ns);
	html_add_duration_cell(out, row->longest_ns);
	html_add_count_cell(out, row->threads);
	html_add_count_cell(out, row->operations);
	html_add_cell(out, row->op);
	text_add(out, "<td><bdi class=\"path\">");
	text_add_html(out, row->path ? strings_get(&p->strings, row->path) : "-");
	text_add(out, "</bdi></td></tr>\n");
}

static void add_table(struct report *p, const struct victims_row *rows, uint32_t count,
	struct text *out)
{
	/* A phone has room for the first ones. */
	static const char *const columns[] = { "Who", "Waited for", "#Together", "#Longest",
		"#Threads", "#Operations", "Operation", "File", NULL };
	char caption[96];
	struct text t = TEXT_ON(caption);

	if (!count) {
		text_add(out, "<p class=\"none\">Nobody was seen to wait.</p>\n");
		return;
	}
	text_reset(&t);
	text_add(&t, "Operations of ");
	record_add_duration(&t, p->open.min_stall_ns);
	text_add(&t, " or longer, and waits for locks");
	html_begin_table(out, caption, columns);
	for (uint32_t i = 0; i < count && i < REPORT_ROWS_MAX; i++)
		add_row(p, &rows[i], out);
	html_end_table(out);
	if (count > REPORT_ROWS_MAX)
		report_leave_out(p, "rows of victims, those with least time",
			count - REPORT_ROWS_MAX);
}

void report_add_blocked(struct report *p, struct text *out)
{
	const struct report_operation **list = malloc((p->operations.count + 1) * sizeof(*list));
	struct victims_row *rows =
		malloc((p->operations.count + p->waits.count + 1) * sizeof(*rows));
	uint32_t count = 0;

	if (list && rows) {
		count = fold_operations(p, list, rows);
		count += fold_waits(p, &rows[count]);
		sort_in_place(rows, count, sizeof(*rows), compare_rows);
	}
	add_table(p, rows, count, out);
	free(list);
	free(rows);
}
