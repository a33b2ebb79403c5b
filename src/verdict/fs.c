/* SPDX-License-Identifier: GPL-2.0-or-later */
/* File systems: threads wait for a journal, for dirty pages to become fewer, for a thaw. */
#include <inttypes.h>

#include "verdict/words.h"

static void add_file_system(const struct graph *g, const struct node *n, struct text *t)
{
	if (n->index >= 0)
		text_addf(t, "the file system on %s", words_disk_name(g->m, n->index));
	else
		text_add(t, "a file system");
}

static struct node *node_of_disk(struct graph *g, int disk)
{
	return disk >= 0 && g->conditions[g->folded[disk]] != CONDITION_NONE
		? graph_get(g, NODE_disk, g->folded[disk])
		: NULL;
}

static void set_disk(const struct graph *g, const struct node *n, struct record_verdict *v)
{
	if (n->index < 0)
		return;
	v->dev = g->m->disks.list[n->index].dev;
	text_copy(v->dev_name, sizeof(v->dev_name), g->m->disks.list[n->index].name);
}

/* The journal */

static const struct model_journal *journal_of(const struct graph *g, const struct node *n)
{
	for (uint32_t i = 0; i < g->m->host.journals_count; i++)
		if (g->m->host.journals[i].disk == n->index && n->index >= 0)
			return &g->m->host.journals[i];
	return NULL;
}

static uint64_t longest_of(const struct model_journal *j)
{
	return j->at_least_ns > j->longest_ns ? j->at_least_ns : j->longest_ns;
}

/*
 * The journal is on its disk. Of an open() it is not known on which file system it waits for the
 * journal: where those of one disk wait for a journal, too, it is that.
 */
static struct node *follow_journal(struct graph *g, struct node *n)
{
	struct node *only = NULL;

	if (n->index >= 0)
		return node_of_disk(g, n->index);
	for (uint32_t i = 0; i < g->count; i++) {
		if (g->nodes[i].kind != NODE_journal || g->nodes[i].index < 0)
			continue;
		if (only)
			return NULL;
		only = &g->nodes[i];
	}
	return only;
}

/* "a commit of the journal on vg0-mysql took 3.1 s for 1203 blocks, 95 % of it for data of files" */
static void add_commit(const struct graph *g, const struct model_journal *j, struct text *t)
{
	text_addf(t, "a commit of the journal on %s took ", words_disk_name(g->m, j->disk));
	text_add(t, j->at_least_ns > j->longest_ns ? "at least " : "");
	words_add_time(t, longest_of(j));
	if (j->at_least_ns > j->longest_ns)
		return;
	text_add(t, " for ");
	text_add_count(t, j->blocks, "block", "blocks");
	if (j->data_pct >= HALF_PCT)
		text_addf(t, ", %" PRIu64 " %% of it to write the data of files first",
			j->data_pct);
}

static bool has_filler(const struct model_journal *j)
{
	return j->who.pid && j->blocks >= LARGE_BLOCKS;
}

static void say_journal(const struct graph *g, const struct node *n, struct text *t)
{
	const struct model_journal *j = journal_of(g, n);

	if (!j || longest_of(j) < NOTICED_NS) {
		text_add(t, "threads waited for the journal of ");
		add_file_system(g, n, t);
		text_add(t, "; what kept it busy is not known");
		return;
	}
	if (!has_filler(j)) {
		add_commit(g, j, t);
		return;
	}
	words_add_who(t, &j->who);
	text_addf(t, " changed %.0f %% of the metadata, and ", j->share_pct);
	add_commit(g, j, t);
}

static void add_journal_parts(const struct graph *g, const struct node *n, struct record_verdict *v)
{
	const struct model_journal *j = journal_of(g, n);
	struct record_verdict_part *part;
	struct text t;

	set_disk(g, n, v);
	if (!j || longest_of(j) < NOTICED_NS)
		return;
	/* Who changed most of it in all commits need not be who filled this one. */
	part = words_add_part(v, RECORD_WHAT_journal,
		has_filler(j) ? RECORD_BASIS_inferred : RECORD_BASIS_measured, &t);
	if (!part)
		return;
	add_commit(g, j, &t);
	part->longest_ns = longest_of(j);
	if (!has_filler(j))
		return;
	words_set_who(part, &j->who);
	part->share_pct = j->share_pct;
}

const struct node_kind node_journal = {
	.name = "journal",
	.follow = follow_journal,
	.class = RECORD_CLASS_waiting,
	.say = say_journal,
	.add_parts = add_journal_parts,
	.waited_for = " for it",
};

/* Dirty pages */

/* By the samples, or by what kernel threads did for files. */
static uint64_t written_of(const struct graph *g, int disk)
{
	const struct model_loads_of *loads = model_loads_find(&g->m->loads, disk);
	uint64_t bytes = g->m->disks.list[disk].busy.bytes[MODEL_WRITE];

	for (uint32_t i = 0; loads && i < loads->counts[RECORD_BY_file]; i++)
		if (loads->files[i].inferred &&
			loads->files[i].requests[MODEL_WRITE] >=
				loads->files[i].requests[MODEL_READ])
			bytes += loads->files[i].bytes;
	return bytes;
}

/*
 * All writers share the pages that may be dirty. Whoever is slowed down although nothing is wrong
 * with its own disk waits for the disk at fault that was written most.
 */
static struct node *follow_dirty(struct graph *g, struct node *n)
{
	int most = -1;

	if (node_of_disk(g, n->index))
		return node_of_disk(g, n->index);
	for (int i = 0; i < (int)g->m->disks.count; i++)
		if (g->folded[i] == i && g->conditions[i] != CONDITION_NONE &&
			written_of(g, i) > (most < 0 ? 0 : written_of(g, most)))
			most = i;
	/* A disk that hangs has written nothing since. */
	for (int i = 0; most < 0 && i < (int)g->m->disks.count; i++)
		if (g->folded[i] == i && g->conditions[i] == CONDITION_HUNG)
			most = i;
	n->is_link_inferred = true;
	return most >= 0 ? graph_get(g, NODE_disk, most) : NULL;
}

static void say_dirty(const struct graph *g, const struct node *n, struct text *t)
{
	(void)g;
	(void)n;
	text_add(t,
		"too many pages waited to be written, so the kernel slowed those down who write "
		"(balance_dirty_pages)");
}

const struct node_kind node_dirty = {
	.name = "dirty pages",
	.follow = follow_dirty,
	.class = RECORD_CLASS_waiting,
	.say = say_dirty,
};

/* A frozen file system */

/* A snapshot freezes a file system for some ten milliseconds; only a longer freeze is a fault. */
static bool is_frozen_long(const struct graph *g, const struct node *n)
{
	for (uint32_t i = 0; i < g->m->waits.groups_count; i++)
		if (g->of_group[i] == n && g->m->waits.groups[i].longest_ns >= TROUBLE_NS)
			return true;
	return false;
}

/*
 * device mapper freezes what is on a volume before it suspends that. And a virtual machine that is
 * backed up has all of them frozen at once: the first stands for them.
 */
static struct node *follow_frozen(struct graph *g, struct node *n)
{
	if (n->index >= 0 && g->conditions[n->index] == CONDITION_SUSPENDED)
		return graph_get(g, NODE_disk, n->index);
	for (struct node *first = g->nodes; first < n; first++)
		if (first->kind == NODE_frozen && is_frozen_long(g, first) && is_frozen_long(g, n))
			return first;
	return NULL;
}

static uint32_t count_others(const struct graph *g, const struct node *n)
{
	uint32_t others = 0;

	for (uint32_t i = 0; i < g->count; i++)
		others += g->nodes[i].kind == NODE_frozen && g->nodes[i].next == n;
	return others;
}

static void say_frozen(const struct graph *g, const struct node *n, struct text *t)
{
	const uint32_t others = count_others(g, n);

	add_file_system(g, n, t);
	if (others) {
		text_add(t, " and ");
		text_add_count(t, others, "other", "others");
	}
	text_add(t, others ? " were frozen for at least " : " was frozen for at least ");
	words_add_time(t, n->victims.longest_ns);
	text_add(t, ", as by fsfreeze or a snapshot");
}

static void add_frozen_parts(const struct graph *g, const struct node *n, struct record_verdict *v)
{
	set_disk(g, n, v);
}

const struct node_kind node_frozen = {
	.name = "frozen file system",
	.follow = follow_frozen,
	.class = RECORD_CLASS_frozen,
	.say = say_frozen,
	.add_parts = add_frozen_parts,
	.waited_for = " to write to it",
};
