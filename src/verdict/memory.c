/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory: threads wait for it, all tasks are pressed for it, or a process is killed for it. */
#include <string.h>

#include "verdict/words.h"

/* index: of the control group; -1: the host, or a group that is not known. */
static const struct model_memory *group_of(const struct graph *g, const struct node *n)
{
	return n->index >= 0 ? &g->m->host.memory_groups[n->index] : NULL;
}

/* Of several groups at their limits it may be any. */
static int find_only_group(const struct model *m)
{
	int found = -1;

	for (uint32_t i = 0; i < m->host.memory_groups_count; i++) {
		if (found >= 0 &&
			!model_is_group_line(m->host.memory_groups[i].path,
				m->host.memory_groups[found].path))
			return -1;
		found = (int)i;
	}
	return found;
}

/* Each for less than is recorded, but all of them. */
static void find_pressure(struct graph *g)
{
	const struct model_host *h = &g->m->host;
	struct node *n;

	if (h->memory_full_max_pct < NAMED_PCT ||
		h->memory_full_ns < (2 * NSEC_PER_SEC * NAMED_PCT / 100))
		return;
	n = graph_find(g, NODE_memory, find_only_group(g->m));
	if (n)
		return;
	n = graph_get(g, NODE_memory, find_only_group(g->m));
	if (!n)
		return;
	n->basis = RECORD_BASIS_inferred;
	n->is_symptom = true;
}

static void add_killed_of(const struct model_memory *group, struct text *t)
{
	if (!group || group->oom_kills == 0)
		return;
	text_add(t, "; the kernel killed ");
	text_add_count(t, group->oom_kills, "process", "processes");
	text_add(t, " of it");
}

static void say_memory(const struct graph *g, const struct node *n, struct text *t)
{
	const struct model_memory *group = group_of(g, n);
	const struct model_host *h = &g->m->host;

	if (group) {
		text_addf(t, "control group %s ran at its memory limit of ", group->path);
		record_add_size(t, group->limit_bytes);
	} else {
		text_add(t,
			condition_host_evicted(g->m) ? "the host was short of memory"
						     : "memory was short, and whose is not known");
	}
	if (h->memory_full_max_pct >= NAMED_PCT) {
		text_add(t, ", and all tasks that could run waited for memory for up to ");
		words_add_pct(t, h->memory_full_max_pct);
		text_add(t, " of the time");
	}
	add_killed_of(group, t);
}

static void add_memory_parts(const struct graph *g, const struct node *n, struct record_verdict *v)
{
	const struct model_memory *group = group_of(g, n);
	struct record_verdict_part *part;
	struct text t;

	if (!group)
		return;
	part = words_add_part(v, RECORD_WHAT_memory, RECORD_BASIS_measured, &t);
	if (!part)
		return;
	text_addf(&t, "%s: at its limit ", group->path);
	text_add_count(&t, group->limit_hits, "time", "times");
	text_add(&t, ", read ");
	record_add_size(&t, group->reread_bytes);
	text_add(&t, " again and swapped in ");
	record_add_size(&t, group->swapped_in_bytes);
	part->bytes = group->reread_bytes + group->swapped_in_bytes;
}

/* Whether it is what that group, or one around it or in it, evicted. */
static bool is_read_for(const struct graph *g, const struct node *n, int disk)
{
	const struct model_memory *group = group_of(g, n);
	struct model_memory memory = { 0 };

	if (g->folded[disk] != disk || g->conditions[disk] != CONDITION_MEMORY)
		return false;
	condition_find_memory(g->m, disk, &memory);
	return !group || model_is_group_line(memory.path, group->path);
}

/* What was evicted is read again from a disk, which both wait for. */
static struct node *follow_memory(struct graph *g, struct node *n)
{
	for (int i = 0; i < (int)g->m->disks.count; i++)
		if (is_read_for(g, n, i))
			return graph_get(g, NODE_disk, i);
	return NULL;
}

const struct node_kind node_memory = {
	.name = "memory",
	.find = find_pressure,
	.follow = follow_memory,
	.class = RECORD_CLASS_memory,
	.say = say_memory,
	.add_parts = add_memory_parts,
	.waited_for = " for memory",
};

/* Killed processes */

static void find_killed(struct graph *g)
{
	struct node *n = g->m->host.kernel.killed ? graph_get(g, NODE_killed, 0) : NULL;

	if (!n)
		return;
	n->is_symptom = true;
	/* Whoever is killed is missed. */
	n->extra.waited_ns = 1;
}

static void say_killed(const struct graph *g, const struct node *n, struct text *t)
{
	const struct model_kernel_log *log = &g->m->host.kernel;

	(void)n;
	text_add(t, "the kernel killed ");
	if (log->killed > 1) {
		text_add_count(t, log->killed, "process", "processes");
		text_add(t, ", ");
	}
	words_add_who(t, &log->killed_who);
	text_add(t, log->killed > 1 ? " first, for want of memory" : " for want of memory");
	if (log->is_killed_in_group)
		text_add(t, log->killed > 1 ? " in a control group" : " in its control group");
}

static void add_killed_parts(const struct graph *g, const struct node *n, struct record_verdict *v)
{
	struct record_verdict_part *part;
	struct text t;

	part = words_add_part(v, RECORD_WHAT_killed, RECORD_BASIS_measured, &t);
	if (!part)
		return;
	say_killed(g, n, &t);
	words_set_who(part, &g->m->host.kernel.killed_who);
}

const struct node_kind node_killed = {
	.name = "killed process",
	.find = find_killed,
	.class = RECORD_CLASS_memory,
	.say = say_killed,
	.add_parts = add_killed_parts,
};
