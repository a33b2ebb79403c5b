/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Waits for a worker of the kernel or a core dump, and those of which nothing is known. */
#include <inttypes.h>

#include "verdict/words.h"

/* index: the cause. */
static void say_worker(const struct graph *g, const struct node *n, struct text *t)
{
	(void)g;
	text_addf(t, "threads of ");
	words_add_process(t, &n->victims.who);
	text_addf(t, " waited for a %s", record_cause_text((enum record_cause)n->index));
}

const struct node_kind node_worker = {
	.name = "worker of the kernel",
	.class = RECORD_CLASS_waiting,
	.say = say_worker,
};

/* There is always one, as the last. */
static void find_unknown(struct graph *g)
{
	struct node *n = graph_get(g, NODE_unknown, 0);

	if (n)
		n->is_symptom = true;
}

static bool has_disk_at_limit(const struct graph *g)
{
	for (uint32_t i = 0; i < g->count; i++)
		if (g->nodes[i].kind == NODE_disk)
			return true;
	return false;
}

/* They waited for a disk, and none was at its limit. */
static bool is_for_disks(const struct graph *g, const struct node *n)
{
	const struct model_waits *waits = &g->m->waits;
	uint32_t count = 0;

	for (uint32_t i = 0; i < waits->groups_count; i++) {
		if (g->of_group[i] != n)
			continue;
		if (record_wait_of(waits->groups[i].cause) != RECORD_WAIT_device)
			return false;
		count++;
	}
	return count > 0;
}

static void add_disks(struct text *t, const struct graph *g)
{
	const struct model *m = g->m;

	if (has_disk_at_limit(g))
		return;
	if (m->samples == 0)
		text_add(t, ", and the disks were not sampled");
	else if (m->disks.left_out_ms >= (double)NOTICED_NS / NSEC_PER_MSEC)
		text_addf(t, ", and none of the %" PRIu32 " disks with figures was at its limit",
			m->disks.count);
	else
		text_add(t, ", and no disk was at its limit");
}

static void add_longest(const struct graph *g, const struct node *n, struct text *t)
{
	const struct model_wait *longest = NULL;

	for (uint32_t i = 0; i < g->m->waits.groups_count; i++) {
		const struct model_wait *w = &g->m->waits.groups[i];

		if (g->of_group[i] == n && (!longest || w->longest_ns > longest->longest_ns))
			longest = w;
	}
	if (!longest)
		return;
	text_add(t, ", ");
	words_add_who(t, &longest->who);
	if (*longest->function)
		text_addf(t, " in %s", longest->function);
	text_add(t, " the longest");
}

static void say_unknown(const struct graph *g, const struct node *n, struct text *t)
{
	const struct model *m = g->m;

	if (m->waits.longest_ns == 0) {
		text_add(t, "no cause was found: no operation took ");
		words_add_time(t, m->min_stall_ns);
		text_add(t, " or longer");
		add_disks(t, g);
		return;
	}
	text_add(t, "operations took up to ");
	words_add_time(t, n->victims.longest_ns ? n->victims.longest_ns : m->waits.longest_ns);
	add_longest(g, n, t);
	text_add(t,
		is_for_disks(g, n) ? "; they waited for a disk"
				   : "; what they waited for is not known");
	add_disks(t, g);
}

const struct node_kind node_unknown = {
	.name = "unknown",
	.find = find_unknown,
	.class = RECORD_CLASS_unknown,
	.basis = RECORD_BASIS_inferred,
	.say = say_unknown,
};
