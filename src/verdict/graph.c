/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "verdict/graph.h"

#include <string.h>

/* Nodes */

struct node *graph_find(const struct graph *g, enum node_kind_id kind, int index)
{
	for (uint32_t i = 0; i < g->count; i++)
		if (g->nodes[i].kind == kind && g->nodes[i].index == index)
			return (struct node *)&g->nodes[i];
	return NULL;
}

struct node *graph_get(struct graph *g, enum node_kind_id id, int index)
{
	const struct node_kind *kind = g->kinds[id];
	struct node *n = graph_find(g, id, index);

	if (n || g->count == GRAPH_NODES_MAX)
		return n;
	n = &g->nodes[g->count++];
	*n = (struct node){ .kind = id,
		.index = index,
		.class = kind->class,
		.basis = kind->basis ? kind->basis : RECORD_BASIS_measured };
	n->extra.disk = n->victims.disk = -1;
	return n;
}

struct node *graph_end(struct node *n)
{
	while (n && n->next)
		n = n->next;
	return n;
}

bool graph_flows_to(const struct graph *g, uint32_t group, const struct node *end)
{
	return g->of_group[group] && graph_end(g->of_group[group]) == end;
}

/* What a group waited for */

/* Containers and volumes have files of the same path, and inodes of the same number. */
static bool is_on(struct record_dev a, struct record_dev b)
{
	return !model_has_number(a) || !model_has_number(b) ||
		(a.major == b.major && a.minor == b.minor);
}

static int find_lock(const struct model *m, const struct model_wait *w,
	const struct model_wait_key *key)
{
	for (int i = 0; w->lock && i < MODEL_LOCKS_MAX; i++)
		if (m->host.locks[i].id == w->lock)
			return i;
	for (int i = 0; i < MODEL_LOCKS_MAX && m->host.locks[i].id; i++) {
		const struct model_lock *l = &m->host.locks[i];

		if (l->kind == RECORD_KERNEL_LOCK_memory_map &&
			w->cause == RECORD_CAUSE_memory_map_lock && l->process.pid == w->who.pid)
			return i;
		if (l->kind == RECORD_KERNEL_LOCK_inode &&
			w->cause != RECORD_CAUSE_memory_map_lock && is_on(l->dev, w->dev) &&
			((key->inode && l->inode == key->inode) ||
				(*l->path && strcmp(l->path, w->path) == 0)))
			return i;
	}
	return -1;
}

bool graph_is_same_lock(const struct model_waits *waits, uint32_t a, uint32_t b)
{
	const struct model_wait *x = &waits->groups[a], *y = &waits->groups[b];
	const bool is_map = x->cause == RECORD_CAUSE_memory_map_lock;

	if (record_wait_of(y->cause) != RECORD_WAIT_lock ||
		is_map != (y->cause == RECORD_CAUSE_memory_map_lock))
		return false;
	if (is_map)
		return x->who.pid == y->who.pid;
	return waits->keys[a].program == waits->keys[b].program &&
		waits->keys[a].inode == waits->keys[b].inode;
}

static struct node *node_of_lock(struct graph *g, uint32_t i)
{
	const struct model_waits *waits = &g->m->waits;
	int lock = find_lock(g->m, &waits->groups[i], &waits->keys[i]);
	uint32_t first = 0;

	if (lock >= 0)
		return graph_get(g, NODE_lock, lock);
	while (first < i && !graph_is_same_lock(waits, i, first))
		first++;
	return graph_get(g, NODE_map, (int)first);
}

/* Of the groups at their limit, the one that they are in; -1: the host, or it is not known. */
static int find_memory_group(const struct model *m, const struct model_wait *w)
{
	for (uint32_t i = 0; i < m->host.memory_groups_count; i++)
		if (m->host.memory_groups[i].cgroup == w->cgroup && w->cgroup)
			return (int)i;
	if (w->cause == RECORD_CAUSE_group_memory && m->host.memory_groups_count == 1)
		return 0;
	return -1;
}

static struct node *node_of_disk(struct graph *g, int disk)
{
	if (disk < 0 || g->conditions[g->folded[disk]] == CONDITION_NONE)
		return NULL;
	return graph_get(g, NODE_disk, g->folded[disk]);
}

struct node *graph_of_wait(struct graph *g, uint32_t i)
{
	const struct model_wait *w = &g->m->waits.groups[i];
	struct node *n = NULL;

	switch (record_wait_of(w->cause)) {
	case RECORD_WAIT_none:
	case RECORD_WAIT_device:
		n = node_of_disk(g, w->disk);
		break;
	case RECORD_WAIT_frozen:
		return graph_get(g, NODE_frozen, w->disk);
	case RECORD_WAIT_cgroup:
		n = w->disk >= 0 && g->conditions[g->folded[w->disk]] == CONDITION_LIMITED
			? node_of_disk(g, w->disk)
			: graph_get(g, NODE_io_limit, w->disk);
		break;
	case RECORD_WAIT_journal:
		return graph_get(g, NODE_journal, w->disk);
	case RECORD_WAIT_dirty:
		return graph_get(g, NODE_dirty, w->disk);
	case RECORD_WAIT_lock:
		return node_of_lock(g, i);
	case RECORD_WAIT_memory:
		return graph_get(g, NODE_memory, find_memory_group(g->m, w));
	case RECORD_WAIT_server:
		return graph_get(g, NODE_server, 0);
	case RECORD_WAIT_other:
		return graph_get(g, NODE_worker, (int)w->cause);
	default:
		break;
	}
	return n ? n : graph_get(g, NODE_unknown, 0);
}

/* What holders wait for */

static struct node *node_of_group(struct graph *g, const struct model_wait *w)
{
	const uint32_t i = (uint32_t)(w - g->m->waits.groups);

	/* Of a kernel thread, such as that of a loop device. */
	return g->of_group[i] ? g->of_group[i] : graph_of_wait(g, i);
}

struct node *graph_of_thread(struct graph *g, int32_t tid)
{
	const struct model_wait *w = model_waits_find(&g->m->waits, tid, NOTICED_NS);

	return w ? node_of_group(g, w) : NULL;
}

static bool is_session_of(const struct graph *g, const struct model_database *d, const char *comm)
{
	return d && model_sessions_is_name_of(&g->m->sessions, d, comm);
}

/* Of a process, or of a database whose sessions are processes of the same name. */
static struct node *most_waited_for(struct graph *g, int32_t pid, const struct model_database *d)
{
	const struct model_waits *waits = &g->m->waits;
	uint64_t ns[GRAPH_NODES_MAX] = { 0 };
	struct node *most = NULL;

	for (uint32_t i = 0; i < waits->groups_count; i++) {
		const struct model_wait *w = &waits->groups[i];
		uint32_t n;

		if (!g->of_group[i] || (w->who.pid != pid && !is_session_of(g, d, w->who.comm)))
			continue;
		n = (uint32_t)(g->of_group[i] - g->nodes);
		ns[n] += model_wait_ns(w);
		if (!most || ns[n] > ns[most - g->nodes])
			most = g->of_group[i];
	}
	return most;
}

struct node *graph_of_process(struct graph *g, int32_t pid)
{
	return most_waited_for(g, pid, NULL);
}

struct node *graph_of_server(struct graph *g, const struct model_database *d)
{
	const struct model_waits *waits = &g->m->waits;
	uint64_t ms[GRAPH_NODES_MAX] = { 0 };
	struct node *most = most_waited_for(g, d->server.pid, d);

	if (most)
		return most;
	/* Each session of PostgreSQL is a process. */
	for (uint32_t i = 0; i < MODEL_THREADS_MAX; i++) {
		const struct model_thread *t = &waits->threads[i];
		uint32_t n;

		if (t->tid <= 0 || !g->of_group[t->group] ||
			model_sessions_find_runner(&g->m->sessions, t->tid) != d)
			continue;
		n = (uint32_t)(g->of_group[t->group] - g->nodes);
		ms[n] += t->waited_ms;
		if (!most || ms[n] > ms[most - g->nodes])
			most = g->of_group[t->group];
	}
	return most;
}

uint64_t graph_weight_ns(const struct node *end)
{
	const struct victims *v = &end->victims;
	uint64_t ns = v->waited_ns + v->own_ns / TENTH;

	return end->basis == RECORD_BASIS_inferred && !end->culprit ? ns / TENTH : ns;
}
