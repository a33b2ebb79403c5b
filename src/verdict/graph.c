/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "verdict/graph.h"

#include <string.h>

#include "util/cleanup.h"
#include "util/sort.h"

static const struct node_kind *const kinds[] = {
#define KIND(name) &node_##name,
#include "verdict/kinds.def"
#undef KIND
};

/* Nodes */

struct node *graph_find(const struct graph *g, const struct node_kind *kind, int index)
{
	for (uint32_t i = 0; i < g->count; i++)
		if (g->nodes[i].kind == kind && g->nodes[i].index == index)
			return (struct node *)&g->nodes[i];
	return NULL;
}

struct node *graph_get(struct graph *g, const struct node_kind *kind, int index)
{
	struct node *n = graph_find(g, kind, index);

	if (n || g->count == GRAPH_NODES_MAX)
		return n;
	n = &g->nodes[g->count++];
	*n = (struct node){ .kind = kind,
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

/* What a group waited for */

static int find_lock(const struct model *m, const struct model_wait *w,
	const struct model_wait_key *key)
{
	for (int i = 0; i < MODEL_LOCKS_MAX && m->host.locks[i].id; i++) {
		const struct model_lock *l = &m->host.locks[i];

		if (l->kind == RECORD_KERNEL_LOCK_memory_map &&
			w->cause == RECORD_CAUSE_memory_map_lock && l->process.pid == w->who.pid)
			return i;
		if (l->kind == RECORD_KERNEL_LOCK_inode &&
			w->cause != RECORD_CAUSE_memory_map_lock &&
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
		return graph_get(g, &node_lock, lock);
	while (first < i && !graph_is_same_lock(waits, i, first))
		first++;
	return graph_get(g, &node_map, (int)first);
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
	return graph_get(g, &node_disk, g->folded[disk]);
}

static struct node *node_of_wait(struct graph *g, uint32_t i)
{
	const struct model_wait *w = &g->m->waits.groups[i];
	struct node *n = NULL;

	switch (record_wait_of(w->cause)) {
	case RECORD_WAIT_none:
	case RECORD_WAIT_device:
		n = node_of_disk(g, w->disk);
		break;
	case RECORD_WAIT_frozen:
		return graph_get(g, &node_frozen, w->disk);
	case RECORD_WAIT_cgroup:
		n = w->disk >= 0 && g->conditions[g->folded[w->disk]] == CONDITION_LIMITED
			? node_of_disk(g, w->disk)
			: graph_get(g, &node_io_limit, w->disk);
		break;
	case RECORD_WAIT_journal:
		return graph_get(g, &node_journal, w->disk);
	case RECORD_WAIT_dirty:
		return graph_get(g, &node_dirty, w->disk);
	case RECORD_WAIT_lock:
		return node_of_lock(g, i);
	case RECORD_WAIT_memory:
		return graph_get(g, &node_memory, find_memory_group(g->m, w));
	case RECORD_WAIT_server:
		return graph_get(g, &node_server, 0);
	case RECORD_WAIT_other:
		return graph_get(g, &node_worker, (int)w->cause);
	default:
		break;
	}
	return n ? n : graph_get(g, &node_unknown, 0);
}

static void add_groups(struct graph *g)
{
	const struct model_waits *waits = &g->m->waits;

	for (uint32_t i = 0; i < waits->groups_count; i++)
		if (!waits->groups[i].is_kernel && !waits->groups[i].is_early)
			g->of_group[i] = node_of_wait(g, i);
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
			if (g->of_group[k] && waits->groups[k].cause == w->cause &&
				waits->groups[k].disk == w->disk && w->cause)
				g->of_group[i] = g->of_group[k];
		if (waits->noted == 0)
			g->of_group[i] = node_of_wait(g, i);
	}
}

/* What holders wait for */

static struct node *node_of_group(struct graph *g, const struct model_wait *w)
{
	const uint32_t i = (uint32_t)(w - g->m->waits.groups);

	/* Of a kernel thread, such as that of a loop device. */
	return g->of_group[i] ? g->of_group[i] : node_of_wait(g, i);
}

struct node *graph_of_thread(struct graph *g, int32_t tid)
{
	const struct model_wait *w = model_waits_find(&g->m->waits, tid, NOTICED_NS);

	return w ? node_of_group(g, w) : NULL;
}

struct node *graph_of_process(struct graph *g, int32_t pid, const char *comm)
{
	const struct model_waits *waits = &g->m->waits;
	uint64_t ns[GRAPH_NODES_MAX] = { 0 };
	struct node *most = NULL;

	for (uint32_t i = 0; i < waits->groups_count; i++) {
		const struct model_wait *w = &waits->groups[i];
		uint32_t n;

		/* Each PostgreSQL session is a process of the same name. */
		if (!g->of_group[i] ||
			(w->who.pid != pid && (!*comm || strcmp(w->who.comm, comm) != 0)))
			continue;
		n = (uint32_t)(g->of_group[i] - g->nodes);
		ns[n] += model_wait_ns(w);
		if (!most || ns[n] > ns[most - g->nodes])
			most = g->of_group[i];
	}
	return most;
}

struct node *graph_of_server(struct graph *g, const struct model_database *d)
{
	const struct model_waits *waits = &g->m->waits;
	uint64_t ms[GRAPH_NODES_MAX] = { 0 };
	struct node *most = graph_of_process(g, d->server.pid, d->server.comm);

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

		next = n->kind->follow ? n->kind->follow(g, n) : NULL;
		/* What is not known explains nothing. */
		if (next && next->kind != &node_unknown && !leads_to(next, n))
			n->next = next;
	}
}

/* Victims */

bool graph_flows_to(const struct graph *g, uint32_t group, const struct node *end)
{
	return g->of_group[group] && graph_end(g->of_group[group]) == end;
}

/*
 * Threads have names of their own, of which few people know. Of several that waited as long it is
 * one of which the file is known, and then the first.
 */
static void note_longest(struct victims *v, const struct model_wait *w,
	const struct model_thread *t, uint64_t ns)
{
	const bool is_other = t && t->tid != w->who.tid;
	const int32_t named = is_other ? t->tid : w->who.tid;

	if (ns < v->longest_ns || (ns == v->longest_ns && *v->path && (is_other || !*w->path)))
		return;
	if (ns == v->longest_ns && !*v->path == (is_other || !*w->path) && named >= v->who.tid)
		return;
	v->longest_ns = ns;
	v->who = model_who_of(is_other ? t->pid : w->who.pid, named,
		*w->process ? w->process : w->who.comm);
	v->disk = w->disk;
	text_copy(v->path, sizeof(v->path), is_other ? "" : w->path);
}

static int compare_tids(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return (x > y) - (x < y);
}

static uint32_t count_different(int32_t *tids, uint32_t count)
{
	uint32_t different = 0;

	sort_in_place(tids, count, sizeof(tids[0]), compare_tids);
	for (uint32_t i = 0; i < count; i++)
		different += i == 0 || tids[i] != tids[i - 1];
	return different;
}

static bool is_own(const struct graph *g, const struct node *end, const struct model_wait *w,
	const struct model_thread *t)
{
	return end->culprit && blame_is_own(g->m, end->culprit, w, t);
}

/* Lines that stand for many of a server's threads are about sessions for the most part. */
static bool is_of_session(const struct graph *g, const struct model_wait *w, int32_t tid)
{
	return tid ? model_sessions_find_runner(&g->m->sessions, tid) != NULL
		   : model_sessions_find_server(&g->m->sessions, w->who.pid) != NULL;
}

/* Whether it counts among those that waited for what flows there, and are sessions or are not. */
static bool is_counted(const struct graph *g, uint32_t group, const struct node *end,
	bool of_sessions)
{
	const struct model_wait *w = &g->m->waits.groups[group];

	return graph_flows_to(g, group, end) &&
		!(end->culprit && blame_is_own_group(end->culprit, w)) &&
		is_of_session(g, w, 0) == of_sessions;
}

/*
 * The most that lines show at once. Where they stand for many, one thread is in another group when
 * there was time to see what it waits for, so only what was seen together is added up.
 */
static uint32_t count_at_once(const struct graph *g, const struct node *end, bool of_sessions)
{
	const struct model_waits *waits = &g->m->waits;
	uint32_t most = 0;

	for (uint32_t i = 0; i < waits->groups_count; i++) {
		uint32_t count = 0;

		if (!waits->groups[i].has_alike || !is_counted(g, i, end, of_sessions))
			continue;
		for (uint32_t j = 0; j < waits->groups_count; j++)
			if (waits->groups[j].at_look == waits->groups[i].at_look &&
				is_counted(g, j, end, of_sessions))
				count += waits->groups[j].at_once;
		most = count > most ? count : most;
	}
	return most;
}

/* Threads that waited for what flows there, without its own: those of sessions, or all others. */
static uint32_t collect(struct graph *g, const struct node *end, bool of_sessions)
{
	const struct model_waits *waits = &g->m->waits;
	uint32_t count = 0, at_once;

	for (uint32_t i = 0; i < MODEL_THREADS_MAX; i++) {
		const struct model_thread *t = &waits->threads[i];
		const struct model_wait *w = &waits->groups[t->group];

		if (t->tid > 0 && graph_flows_to(g, t->group, end) && !is_own(g, end, w, t) &&
			is_of_session(g, w, t->tid) == of_sessions)
			g->tids[count++] = t->tid;
	}
	count = count_different(g->tids, count);
	at_once = count_at_once(g, end, of_sessions);
	return count > at_once ? count : at_once;
}

/* Sessions that count by their statements are named only where nobody else waited. */
static void add_threads(struct graph *g, struct node *end)
{
	const struct model_waits *waits = &g->m->waits;
	struct victims *v = &end->victims;
	bool is_new;

	for (uint32_t i = 0; i < MODEL_THREADS_MAX; i++) {
		const struct model_thread *t = &waits->threads[i];
		const struct model_wait *w = &waits->groups[t->group];
		const uint64_t ns = t->waited_ms * NSEC_PER_MSEC;

		if (t->tid <= 0 || !graph_flows_to(g, t->group, end))
			continue;
		if (is_own(g, end, w, t)) {
			v->own_ns += ns;
		} else {
			is_new = !v->statements || !is_of_session(g, w, t->tid);
			if (is_new)
				v->waited_ns += ns;
			if (is_new || !v->threads)
				note_longest(v, w, t, t->longest_ms * NSEC_PER_MSEC);
		}
	}
	for (uint32_t i = 0; i < waits->groups_count; i++) {
		const struct model_wait *w = &waits->groups[i];
		const uint64_t ns = w->alike_ns + w->alike_hanging_ns;

		if (!w->has_alike || !graph_flows_to(g, i, end))
			continue;
		if (end->culprit && blame_is_own_group(end->culprit, w)) {
			v->own_ns += ns;
		} else {
			is_new = !v->statements || !is_of_session(g, w, 0);
			if (is_new)
				v->waited_ns += ns;
			if (is_new || !v->threads)
				note_longest(v, w, NULL, w->longest_ns);
		}
	}
}

static void add_extra(const struct graph *g, struct node *end)
{
	struct victims *v = &end->victims;

	for (uint32_t i = 0; i < g->count; i++) {
		const struct node *n = &g->nodes[i];
		const struct victims *x = &n->extra;

		if (graph_end((struct node *)n) != end)
			continue;
		v->threads += x->threads;
		v->statements += x->statements;
		v->waited_ns += x->waited_ns;
		if (x->statements)
			v->statements_ns += x->waited_ns;
		if (x->statements_longest_ns > v->statements_longest_ns)
			v->statements_longest_ns = x->statements_longest_ns;
		if (x->longest_ns > v->longest_ns) {
			v->longest_ns = x->longest_ns;
			v->who = x->who;
		}
	}
}

/* A session counts once: by its statement, or by its thread where more of these waited. */
static void add_victims(struct graph *g, struct node *end)
{
	struct victims *v = &end->victims;
	const uint32_t sessions = collect(g, end, true);

	add_extra(g, end);
	if (v->statements <= sessions) {
		v->waited_ns -= v->statements_ns;
		v->statements = 0;
		v->statements_longest_ns = 0;
		v->threads += sessions;
	}
	v->threads += collect(g, end, false);
	add_threads(g, end);
}

uint64_t graph_weight_ns(const struct node *end)
{
	const struct victims *v = &end->victims;
	uint64_t ns = v->waited_ns + v->own_ns / TENTH;

	return end->basis == RECORD_BASIS_inferred && !end->culprit ? ns / TENTH : ns;
}

void graph_make(const struct model *m, struct graph *g)
{
	memset(g, 0, sizeof(*g));
	g->m = m;
	for (int i = 0; i < (int)m->disks.count; i++)
		g->conditions[i] = condition_of(m, i);
	for (int i = 0; i < (int)m->disks.count; i++)
		g->folded[i] = condition_fold(m, g->conditions, i);
	add_groups(g);
	for (unsigned int i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i]->find)
			kinds[i]->find(g);
	follow(g);
	for (uint32_t i = 0; i < g->count; i++) {
		if (g->nodes[i].next)
			continue;
		if (g->nodes[i].kind->judge)
			g->nodes[i].kind->judge(g, &g->nodes[i]);
		add_victims(g, &g->nodes[i]);
	}
}
