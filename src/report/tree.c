/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who waited for whom, as a tree: at its roots what waited for nothing else. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/internal.h"
#include "util/sort.h"

/* A chain of holders is no longer than the nodes there are; the graph has no circles. */
#define DEPTH_MAX GRAPH_NODES_MAX

static void begin_entry(struct text *out, const char *kind)
{
	text_addf(out, "<li><p><span class=\"kind\">%s</span> <bdi class=\"name\">", kind);
}

static void add_time(struct text *out, uint64_t ns)
{
	if (!ns)
		return;
	text_add(out, " <span class=\"time\">");
	record_add_duration(out, ns);
	text_add(out, "</span>");
}

static void add_count(struct text *out, uint64_t count, const char *one, const char *many)
{
	if (!count)
		return;
	text_add(out, " <span class=\"count\">");
	text_add_count(out, count, one, many);
	text_add(out, "</span>");
}

struct waiting {
	const struct model_wait *wait;
	uint64_t ns;
};

static int compare_waiting(const void *a, const void *b)
{
	const struct waiting *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

/* "mariadbd[2211] frozen queue": a group has threads of one name and cause. */
static void add_group(const struct waiting *waiting, struct text *out)
{
	const struct model_wait *w = waiting->wait;
	const char *process = *w->process ? w->process : w->who.comm;

	begin_entry(out, "process");
	text_add_html(out, process);
	if (strcmp(process, w->who.comm) != 0) {
		text_add(out, "/");
		text_add_html(out, w->who.comm);
	}
	if (!w->is_several)
		text_addf(out, "[%" PRId32 "]", w->who.pid);
	text_add(out, "</bdi>");
	if (w->cause)
		text_addf(out, " <span class=\"minor\">%s</span>", record_cause_text(w->cause));
	add_time(out, waiting->ns);
	add_count(out, model_wait_threads(w), "thread", "threads");
	text_add(out, "</p></li>\n");
}

/* Threads that wait for it directly, those that waited most first. */
static void add_groups(const struct report *p, const struct node *n, struct text *out)
{
	const struct model_waits *waits = &p->model.waits;
	struct waiting list[MODEL_GROUPS_MAX];
	uint32_t count = 0;

	for (uint32_t i = 0; i < waits->groups_count; i++)
		if (p->graph.of_group[i] == n)
			list[count++] = (struct waiting){ &waits->groups[i],
				model_wait_ns(&waits->groups[i]) };
	sort_in_place(list, count, sizeof(list[0]), compare_waiting);
	for (uint32_t i = 0; i < count; i++)
		add_group(&list[i], out);
}

/* Those who wait for it without a thread in the kernel, as sessions of a database do. */
static void add_extra(const struct node *n, struct text *out)
{
	const struct victims *v = &n->extra;

	if (!v->threads && !v->statements && !v->waited_ns)
		return;
	begin_entry(out, v->statements ? "session" : "process");
	text_add_html(out, v->statements ? "statements" : v->who.comm);
	text_add(out, "</bdi>");
	add_time(out, v->waited_ns);
	add_count(out, v->statements, "statement", "statements");
	add_count(out, v->threads, "thread", "threads");
	text_add(out, "</p></li>\n");
}

static bool has_waiters(const struct report *p, const struct node *n)
{
	for (uint32_t i = 0; i < p->model.waits.groups_count; i++)
		if (p->graph.of_group[i] == n)
			return true;
	for (uint32_t i = 0; i < p->graph.count; i++)
		if (p->graph.nodes[i].next == n)
			return true;
	return n->extra.threads || n->extra.statements || n->extra.waited_ns;
}

/* Who holds it, or what was wrong with it. */
static void add_what_happened(const struct report *p, const struct node *n, struct text *out)
{
	char said[RECORD_SENTENCE_SIZE];
	struct text t = TEXT_ON(said);

	text_reset(&t);
	graph_kind_of(&p->graph, n)->say(&p->graph, n, &t);
	text_add(out, "<p class=\"about\">");
	text_add_html(out, said);
	text_add(out, ".</p>\n");
}

static void add_node(const struct report *p, const struct node *n, unsigned int depth,
	struct text *out)
{
	char object[RECORD_NAME_SIZE];
	struct text t = TEXT_ON(object);

	text_reset(&t);
	judge_add_object(&p->graph, n, &t);
	begin_entry(out, graph_kind_of(&p->graph, n)->name);
	text_add_html(out, object);
	text_add(out, "</bdi>");
	if (!n->next) {
		add_time(out, n->victims.waited_ns + n->victims.own_ns);
		add_count(out, n->victims.threads, "thread", "threads");
		add_count(out, n->victims.statements, "statement", "statements");
	}
	if (n->next ? n->is_link_inferred : n->basis == RECORD_BASIS_inferred) {
		text_add(out, " ");
		html_add_basis(out, RECORD_BASIS_inferred);
	}
	text_add(out, "</p>\n");
	if (!n->next)
		add_what_happened(p, n, out);
	if (depth < DEPTH_MAX && has_waiters(p, n)) {
		text_add(out, "<ul>\n");
		for (uint32_t i = 0; i < p->graph.count; i++)
			if (p->graph.nodes[i].next == n)
				add_node(p, &p->graph.nodes[i], depth + 1, out);
		add_extra(n, out);
		add_groups(p, n, out);
		text_add(out, "</ul>\n");
	}
	text_add(out, "</li>\n");
}

static int compare_ends(const void *a, const void *b)
{
	const uint64_t x = graph_weight_ns(*(const struct node *const *)a),
		       y = graph_weight_ns(*(const struct node *const *)b);

	return (x < y) - (x > y);
}

void report_add_waits(struct report *p, struct text *out)
{
	const struct node *ends[GRAPH_NODES_MAX];
	uint32_t count = 0;

	for (uint32_t i = 0; i < p->graph.count; i++)
		if (!p->graph.nodes[i].next && has_waiters(p, &p->graph.nodes[i]))
			ends[count++] = &p->graph.nodes[i];
	if (!count) {
		text_add(out, "<p class=\"none\">Nobody was seen to wait.</p>\n");
		return;
	}
	sort_in_place(ends, count, sizeof(ends[0]), compare_ends);
	text_add(out, "<ul class=\"tree\">\n");
	for (uint32_t i = 0; i < count; i++)
		add_node(p, ends[i], 0, out);
	text_add(out, "</ul>\n");
}
