/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The statements of a page: those that ran longest, one row for all that are alike. */
#include <inttypes.h>
#include <string.h>

#include "page/internal.h"
#include "util/cleanup.h"
#include "util/sort.h"

#define FOLDS_MAX 256

/* Statements that are alike, by the one that had run longest. */
struct fold {
	const struct statement *longest;
	uint32_t connections;
};

static struct page_target *target_of(struct page *p, const struct record_sql *q)
{
	struct page_target *t;

	for (uint32_t i = 0; i < p->targets_count; i++)
		if (strcmp(p->targets[i].name, q->target) == 0)
			return &p->targets[i];
	if (p->targets_count == PAGE_TARGETS_MAX)
		return NULL;
	t = &p->targets[p->targets_count++];
	memset(t, 0, sizeof(*t));
	t->active_max = -1;
	memcpy(t->name, q->target, sizeof(t->name));
	t->server = q->server;
	return t;
}

void page_note_sql(struct page *p, const struct record *r)
{
	const struct record_sql *q = &r->sql;
	struct page_target *t = target_of(p, q);

	statements_take(p->statements, r);
	if (!t || q->connection_id)
		return;
	t->unanswered = *q->error || q->unanswered_ns;
	if (t->unanswered)
		text_copy(t->error, sizeof(t->error), q->error);
	if (q->unanswered_ns > t->unanswered_ns)
		t->unanswered_ns = q->unanswered_ns;
	if (q->active > t->active_max)
		t->active_max = q->active;
	if (q->left_out > t->left_out_max)
		t->left_out_max = q->left_out;
}

static bool is_alike(const struct statement *a, const struct statement *b)
{
	return a->shape == b->shape && strcmp(a->target, b->target) == 0;
}

static bool was_before(const struct statements *all, uint32_t i)
{
	const struct statement *s = statements_get(all, i);

	for (uint32_t k = 0; k < i; k++) {
		const struct statement *before = statements_get(all, k);

		if (before->connection_id == s->connection_id && is_alike(before, s))
			return true;
	}
	return false;
}

static void fold(const struct statements *all, uint32_t i, struct fold *folds, uint32_t *count)
{
	const struct statement *s = statements_get(all, i);

	for (uint32_t k = 0; k < *count; k++) {
		if (!is_alike(folds[k].longest, s))
			continue;
		folds[k].connections += !was_before(all, i);
		if (s->elapsed_ns > folds[k].longest->elapsed_ns)
			folds[k].longest = s;
		return;
	}
	if (*count < FOLDS_MAX)
		folds[(*count)++] = (struct fold){ s, 1 };
}

static int compare_folds(const void *a, const void *b)
{
	const struct fold *x = a, *y = b;

	if (x->longest->elapsed_ns != y->longest->elapsed_ns)
		return x->longest->elapsed_ns > y->longest->elapsed_ns ? -1 : 1;
	return x->longest > y->longest ? 1 : -1;
}

static void print_target(struct draw *d, const struct page_target *t)
{
	draw_add(d, "  ");
	draw_text(d, 20, t->name);
	draw_add(d, " (");
	draw_text(d, 12, page_or_dash(record_server_text(t->server)));
	draw_add(d, ")");
	if (t->active_max >= 0)
		draw_addf(d, ": at most %" PRId64 " %s active", t->active_max,
			t->active_max == 1 ? "statement" : "statements");
	if (t->left_out_max > 0)
		draw_addf(d, ", %" PRId64 " of them not recorded", t->left_out_max);
	if (t->unanswered_ns || *t->error) {
		draw_colour(d, DRAW_RED);
		draw_add(d, t->active_max >= 0 ? "; NO ANSWER" : ": NO ANSWER");
		if (t->unanswered_ns) {
			draw_add(d, " for");
			draw_duration(d, 0, t->unanswered_ns, false);
		}
		draw_colour(d, DRAW_PLAIN);
		if (*t->error && draw_left(d) > 8) {
			draw_add(d, ": ");
			draw_text(d, draw_left(d), t->error);
		}
	}
	draw_end(d);
}

static void print_fold(struct draw *d, const struct fold *f)
{
	const struct statement *s = f->longest;

	if (s->elapsed_ns)
		draw_duration(d, 10, s->elapsed_ns, false);
	else
		draw_right(d, 10, "unknown");
	draw_to(d, 12);
	if (f->connections > 1)
		draw_addf(d, "%" PRIu32 " connections ", f->connections);
	draw_text(d, 20, page_or_dash(s->user));
	if (*s->database && d->style.columns >= 72) {
		draw_add(d, "/");
		draw_text(d, 16, s->database);
	}
	if (s->tid && d->style.columns >= 72)
		draw_addf(d, " tid %" PRId32, s->tid);
	draw_add(d, "  ");
	draw_text(d, draw_left(d), *s->text ? s->text : "(a statement)");
	draw_end(d);
}

static void print_left_out(struct draw *d, uint32_t statements, bool is_at_least,
	uint32_t databases)
{
	if (statements + databases == 0)
		return;
	draw_add(d, "  left out here: ");
	if (statements)
		draw_addf(d, "%" PRIu32 "%s other %s", statements, is_at_least ? " or more" : "",
			statements == 1 ? "statement" : "statements");
	if (databases)
		draw_addf(d, "%s%" PRIu32 " %s", statements ? ", " : "", databases,
			databases == 1 ? "database" : "databases");
	draw_end(d);
}

void page_print_statements(struct page *p)
{
	struct fold folds[FOLDS_MAX];
	struct draw *d = &p->draw;
	uint32_t count = 0, shown;

	if (p->targets_count == 0)
		return;
	for (uint32_t i = 0; i < statements_count(p->statements); i++)
		fold(p->statements, i, folds, &count);
	sort_in_place(folds, count, sizeof(*folds), compare_folds);
	draw_title(d, "STATEMENTS");
	draw_add(d, count ? "  the longest, as last seen; alike ones on one line" : "");
	draw_end(d);
	for (uint32_t i = 0; i < p->targets_count && i < PAGE_TARGET_ROWS; i++)
		print_target(d, &p->targets[i]);
	shown = count < PAGE_STATEMENT_ROWS ? count : PAGE_STATEMENT_ROWS;
	for (uint32_t i = 0; i < shown; i++)
		print_fold(d, &folds[i]);
	print_left_out(d, count - shown, count == FOLDS_MAX,
		p->targets_count > PAGE_TARGET_ROWS ? p->targets_count - PAGE_TARGET_ROWS : 0);
}
