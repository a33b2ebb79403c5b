/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The graph of a model: all kinds of nodes add theirs, and say where what they hold leads. */
#include <string.h>

#include "verdict/graph.h"

static const struct node_kind *const kinds[NODE_KINDS] = {
#define KIND(name) [NODE_##name] = &node_##name,
#include "verdict/kinds.def"
#undef KIND
};

/* What is no disk is told by the file system: there may be many servers. */
static bool is_same(const struct graph *g, const struct model_wait *a, const struct model_wait *b)
{
	return a->cause && a->cause == b->cause && a->disk == b->disk &&
		(record_wait_of(a->cause) != RECORD_WAIT_server ||
			model_servers_is_same(&g->m->host.servers, a, b));
}

static void add_groups(struct graph *g)
{
	const struct model_waits *waits = &g->m->waits;

	for (uint32_t i = 0; i < waits->groups_count; i++)
		if (!waits->groups[i].is_kernel && !waits->groups[i].is_early)
			g->of_group[i] = graph_of_wait(g, i);
	/*
	 * A pile-up may take longer than the rule that notices it at last: who waited before is a
	 * victim of what others began to wait for, too. Where nothing else hung, what hung before
	 * is the best explanation after all.
	 */
	for (uint32_t i = 0; i < waits->groups_count; i++) {
		const struct model_wait *w = &waits->groups[i];

		if (w->is_kernel || !w->is_early)
			continue;
		for (uint32_t k = 0; w->is_pile_up && k < waits->groups_count; k++)
			if (g->of_group[k] && is_same(g, &waits->groups[k], w))
				g->of_group[i] = g->of_group[k];
		if (waits->noted == 0)
			g->of_group[i] = graph_of_wait(g, i);
	}
}

static void find_unnamed(struct graph *g)
{
	for (uint32_t i = 0; i < g->m->sessions.count; i++) {
		const struct model_database *d = &g->m->sessions.list[i];
		bool is_of[MODEL_GROUPS_MAX];

		if (!model_sessions_lack_threads(&g->m->sessions, d))
			continue;
		graph_find_groups_of(g, d, is_of);
		for (uint32_t k = 0; k < g->m->waits.groups_count; k++)
			if (is_of[k])
				g->unnamed[k] = d;
	}
}

static bool leads_to(const struct node *from, const struct node *to)
{
	for (; from; from = from->next)
		if (from == to)
			return true;
	return false;
}

/* Holders that wait for one another hold each other: there the chain ends. */
static void follow(struct graph *g)
{
	for (uint32_t i = 0; i < g->count; i++) {
		struct node *n = &g->nodes[i], *next;

		next = kinds[n->kind]->follow ? kinds[n->kind]->follow(g, n) : NULL;
		/* What is not known explains nothing. */
		if (next && next->kind != NODE_unknown && !leads_to(next, n))
			n->next = next;
	}
}

void graph_make(const struct model *m, struct graph *g)
{
	memset(g, 0, sizeof(*g));
	g->m = m;
	g->kinds = kinds;
	for (int i = 0; i < (int)m->disks.count; i++)
		g->conditions[i] = condition_of(m, i);
	for (int i = 0; i < (int)m->disks.count; i++)
		g->folded[i] = condition_fold(m, g->conditions, i);
	add_groups(g);
	find_unnamed(g);
	for (unsigned int i = 0; i < NODE_KINDS; i++)
		if (kinds[i]->find)
			kinds[i]->find(g);
	follow(g);
	for (uint32_t i = 0; i < g->count; i++) {
		if (g->nodes[i].next)
			continue;
		if (kinds[g->nodes[i].kind]->judge)
			kinds[g->nodes[i].kind]->judge(g, &g->nodes[i]);
		graph_add_victims(g, &g->nodes[i]);
	}
}
