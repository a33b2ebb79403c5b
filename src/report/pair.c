/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two incidents side by side: the same disk, program, file, statement or stack, or not. */
#include <stdlib.h>
#include <string.h>

#include "report/internal.h"
#include "util/cleanup.h"
#include "util/hash.h"
#include "util/sort.h"

/* Of a stack the innermost functions tell it from others. */
#define FRAMES_MAX 6

enum kind {
	KIND_DISK,
	KIND_LOAD_PROCESS,
	KIND_LOAD_UNIT,
	KIND_LOAD_FILE,
	KIND_LOAD_STATEMENT,
	KIND_WAITER,
	KIND_WAITED_FILE,
	KIND_STATEMENT,
	KIND_STACK,
	KIND_COUNT,
};

static const struct {
	const char *caption, *column;
} kinds[] = {
	[KIND_DISK] = { "Disks: time at work", "Disk" },
	[KIND_LOAD_PROCESS] = { "Programs that loaded disks: time of the disks", "Program" },
	[KIND_LOAD_UNIT] = { "Units that loaded disks", "Unit" },
	[KIND_LOAD_FILE] = { "Files that loaded disks", "File" },
	[KIND_LOAD_STATEMENT] = { "Statements that loaded disks", "Statement" },
	[KIND_WAITER] = { "Programs that waited: time of all their threads", "Program" },
	[KIND_WAITED_FILE] = { "Files for which threads waited", "File" },
	[KIND_STATEMENT] = { "Statements: the longest run", "Statement" },
	[KIND_STACK] = { "Stacks: time that threads were blocked there",
		"Functions, the innermost first" },
};

struct thing {
	enum kind kind;
	uint64_t key; /* the same for what counts as the same */
	const char *name;
	uint64_t ns[2]; /* in the first incident, in the second */
};

struct things {
	struct thing *list;
	uint32_t count, room;
	bool is_out_of_memory;
};

/* Its functions, without where in them. */
static uint64_t key_of_stack(const char *stack)
{
	uint64_t hash = HASH_BEGIN;
	char frame[RECORD_NAME_SIZE];

	while (*stack) {
		const size_t len = strcspn(stack, "\n");

		text_copy(frame, len < sizeof(frame) ? len + 1 : sizeof(frame), stack);
		report_cut_offset(frame);
		hash = hash_bytes(hash, frame, strlen(frame) + 1);
		stack += len + (stack[len] == '\n');
	}
	return hash;
}

static uint64_t key_of(enum kind kind, const char *name)
{
	switch (kind) {
	case KIND_STATEMENT:
	case KIND_LOAD_STATEMENT:
		return statement_shape(name);
	case KIND_STACK:
		return key_of_stack(name);
	default:
		return hash_text(HASH_BEGIN, name);
	}
}

static void add(struct things *t, unsigned int side, enum kind kind, const char *name, uint64_t ns)
{
	struct thing *thing;

	if (!*name || !ns)
		return;
	if (t->count == t->room && report_grow((void **)&t->list, sizeof(*t->list), &t->room) < 0) {
		t->is_out_of_memory = true;
		return;
	}
	thing = &t->list[t->count++];
	*thing = (struct thing){ .kind = kind, .key = key_of(kind, name), .name = name };
	thing->ns[side] = ns;
}

/* Which worker does it is chance. */
static const char *program_of(const char *comm)
{
	return strncmp(comm, "kworker/", strlen("kworker/")) == 0 ? "kworker" : comm;
}

static void add_load(struct things *t, unsigned int side, const struct report *p,
	const struct report_load *l)
{
	const char *name = strings_get(&p->strings, l->name);

	switch (l->by) {
	case RECORD_BY_process:
		add(t, side, KIND_LOAD_PROCESS, program_of(name), l->busy_ns);
		break;
	case RECORD_BY_cgroup:
		add(t, side, KIND_LOAD_UNIT, strings_get(&p->strings, l->unit), l->busy_ns);
		break;
	case RECORD_BY_file:
		add(t, side, KIND_LOAD_FILE, name, l->busy_ns);
		break;
	case RECORD_BY_statement:
		add(t, side, KIND_LOAD_STATEMENT, name, l->busy_ns);
		break;
	default:
		break;
	}
}

static void add_stacks(struct things *t, unsigned int side, const struct report *p)
{
	/* Both are views of the same time, of which the first is the more complete. */
	for (uint32_t i = 0; i < p->offcpu.count; i++)
		add(t, side, KIND_STACK, strings_get(&p->strings, p->offcpu.items[i].kernel),
			p->offcpu.items[i].ns);
	for (uint32_t i = 0; !p->offcpu.count && i < p->operations.count; i++)
		add(t, side, KIND_STACK, strings_get(&p->strings, p->operations.items[i].stack),
			p->operations.items[i].ns);
}

static void add_all(struct things *t, unsigned int side, const struct report *p)
{
	const struct model_disks *disks = &p->model.disks;

	for (uint32_t i = 0; i < disks->count; i++)
		add(t, side, KIND_DISK, disks->list[i].name, disks->list[i].work_ns);
	for (uint32_t i = 0; i < p->loads.count; i++)
		if (report_load_is_last(p, i))
			add_load(t, side, p, &p->loads.items[i]);
	for (uint32_t i = 0; i < p->operations.count; i++) {
		const struct report_operation *o = &p->operations.items[i];

		add(t, side, KIND_WAITER, program_of(strings_get(&p->strings, o->comm)), o->ns);
		add(t, side, KIND_WAITED_FILE, strings_get(&p->strings, o->path), o->ns);
	}
	for (uint32_t i = 0; i < p->waits.count; i++) {
		const struct report_wait *w = &p->waits.items[i];

		const uint64_t ns = w->threads * w->ns;

		add(t, side, KIND_WAITER, strings_get(&p->strings, w->comm), ns);
		add(t, side, KIND_WAITED_FILE, strings_get(&p->strings, w->path), ns);
	}
	for (uint32_t i = 0; i < p->statements.count; i++)
		add(t, side, KIND_STATEMENT, strings_get(&p->strings, p->statements.items[i].text),
			p->statements.items[i].ns);
	add_stacks(t, side, p);
}

static int compare_keys(const void *a, const void *b)
{
	const struct thing *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->key > y->key) - (x->key < y->key);
}

static bool is_in_both(const struct thing *t)
{
	return t->ns[0] && t->ns[1];
}

static uint64_t most_of(const struct thing *t)
{
	return t->ns[0] > t->ns[1] ? t->ns[0] : t->ns[1];
}

static int compare_rows(const void *a, const void *b)
{
	const struct thing *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (is_in_both(x) != is_in_both(y))
		return is_in_both(x) ? -1 : 1;
	return (most_of(x) < most_of(y)) - (most_of(x) > most_of(y));
}

/* One for each that counts as the same: times are added up, but of statements it is the longest. */
static void fold(struct things *t)
{
	uint32_t count = 0;

	sort_in_place(t->list, t->count, sizeof(*t->list), compare_keys);
	for (uint32_t i = 0; i < t->count; i++) {
		struct thing *into = count ? &t->list[count - 1] : NULL;
		const struct thing *one = &t->list[i];

		if (!into || compare_keys(into, one) != 0) {
			t->list[count++] = *one;
			continue;
		}
		for (unsigned int side = 0; side < 2; side++)
			if (one->kind != KIND_STATEMENT)
				into->ns[side] += one->ns[side];
			else if (one->ns[side] > into->ns[side])
				into->ns[side] = one->ns[side];
	}
	t->count = count;
	sort_in_place(t->list, t->count, sizeof(*t->list), compare_rows);
}

/* The heading */

static void add_same(struct text *out, unsigned int *count, const char *words, const char *first,
	const char *second)
{
	if (!first || !second || !*first || strcmp(first, second) != 0)
		return;
	text_addf(out, "%s %s (", (*count)++ ? "," : "", words);
	text_add_html(out, first);
	text_add(out, ")");
}

/* "Two incidents of the same class (saturated), on the same disk (sdb), with the same culprit (dd)" */
static void add_heading(const struct report *p, struct text *out)
{
	const struct record_verdict *x = &p->verdict, *y = &p->second->verdict;
	const struct record_verdict_part *a = report_find_culprit(p),
					 *b = report_find_culprit(p->second);
	unsigned int count = 0;

	text_add(out, "<h1>Two incidents");
	add_same(out, &count, "of the same class", record_class_text(x->class),
		record_class_text(y->class));
	add_same(out, &count, "on the same disk", x->dev_name, y->dev_name);
	add_same(out, &count, "with the same culprit", a ? a->comm : NULL, b ? b->comm : NULL);
	if (!count)
		text_add(out, " whose class, disk and culprit differ");
	text_add(out, "</h1>\n");
}

static void add_one(struct report *p, const char *name, struct text *out)
{
	text_addf(out, "<section aria-label=\"%s incident\">\n<p class=\"side\">%s</p>\n", name,
		name);
	report_add_verdict_as(p, "h2", out);
	text_add(out, "</section>\n");
}

void report_add_pair(struct report *p, struct text *out)
{
	add_heading(p, out);
	text_add(out, "<div class=\"pair\">\n");
	add_one(p, "First", out);
	add_one(p->second, "Second", out);
	text_add(out, "</div>\n");
}

/* The tables */

static void add_stack(struct text *out, const char *stack)
{
	char frame[RECORD_NAME_SIZE];

	for (unsigned int i = 0; *stack && i < FRAMES_MAX; i++) {
		const size_t len = strcspn(stack, "\n");

		text_copy(frame, len < sizeof(frame) ? len + 1 : sizeof(frame), stack);
		report_cut_offset(frame);
		text_add(out, i ? "\n" : "");
		text_add_html(out, frame);
		stack += len + (stack[len] == '\n');
	}
	text_add(out, *stack ? "\n..." : "");
}

static void add_row(const struct thing *t, struct text *out)
{
	text_add(out, "<tr><td>");
	switch (t->kind) {
	case KIND_STACK:
		text_add(out, "<code class=\"sql\">");
		add_stack(out, t->name);
		text_add(out, "</code>");
		break;
	case KIND_STATEMENT:
	case KIND_LOAD_STATEMENT:
		text_add(out, "<code class=\"sql\">");
		html_add_lines(out, t->name);
		text_add(out, "</code>");
		break;
	default:
		text_add(out, "<bdi class=\"path\">");
		text_add_html(out, t->name);
		text_add(out, "</bdi>");
	}
	text_add(out, "</td>");
	html_add_duration_cell(out, t->ns[0]);
	html_add_duration_cell(out, t->ns[1]);
	html_add_cell(out, is_in_both(t) ? "both" : t->ns[0] ? "first only" : "second only");
	text_add(out, "</tr>\n");
}

static void add_table(const struct thing *rows, uint32_t count, struct text *out)
{
	const char *const columns[] = { kinds[rows->kind].column, "#First", "#Second", "In", NULL };
	uint32_t i;

	/* Whoever has no mouse scrolls it by keys. */
	text_addf(out,
		"<div class=\"scroll shared\" role=\"region\" tabindex=\"0\" aria-label=\"%s\">\n",
		kinds[rows->kind].caption);
	html_begin_table(out, kinds[rows->kind].caption, columns);
	for (i = 0; i < count && i < REPORT_SHARED_MAX; i++)
		add_row(&rows[i], out);
	html_end_table(out);
	text_add(out, "</div>\n");
	if (i == count)
		return;
	text_add(out, "<p class=\"none\">Left out: ");
	text_add_count(out, count - i, "further one with less time", "further ones with less time");
	text_add(out, ".</p>\n");
}

void report_add_shared(struct report *p, struct text *out)
{
	struct things t = { 0 };

	add_all(&t, 0, p);
	add_all(&t, 1, p->second);
	fold(&t);
	if (t.is_out_of_memory)
		text_add(out,
			"<p class=\"none\">Some are missing: there was no memory for them.</p>\n");
	if (!t.count)
		text_add(out, "<p class=\"none\">Neither has any load, waiter or statement.</p>\n");
	for (uint32_t begin = 0, end; begin < t.count; begin = end) {
		for (end = begin; end < t.count && t.list[end].kind == t.list[begin].kind;)
			end++;
		add_table(&t.list[begin], end - begin, out);
	}
	free(t.list);
}
