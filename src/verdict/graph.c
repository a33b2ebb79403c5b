/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "verdict/graph.h"

#include <string.h>

#include "model/wait_times.h"
#include "util/clock.h"
#include "util/number.h"

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
	return !model_has_number(a) || !model_has_number(b) || record_dev_is_same(a, b);
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
	if (x->lock && y->lock && x->lock != y->lock)
		return false;
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

/* index is the first group that waits for it. */
static struct node *node_of_server(struct graph *g, const struct model_wait *w)
{
	const struct model_wait *first = g->m->waits.groups;

	while (!model_servers_is_same(&g->m->host.servers, first, w))
		first++;
	return graph_get(g, NODE_server, (int)(first - g->m->waits.groups));
}

static bool has_threads(const struct model *m, uint64_t cgroup)
{
	for (uint32_t i = 0; i < m->waits.groups_count; i++)
		if (m->waits.groups[i].cgroup == cgroup && cgroup)
			return true;
	return false;
}

/* Of the groups at their limit, the one that they are in; -1: the host, or it is not known. */
static int find_memory_group(const struct model *m, const struct model_wait *w)
{
	for (uint32_t i = 0; i < m->host.memory_groups_count; i++)
		if (m->host.memory_groups[i].cgroup == w->cgroup && w->cgroup)
			return (int)i;
	/* They may be in a group below. One that has threads of its own has none below. */
	if (w->cause == RECORD_CAUSE_group_memory && m->host.memory_groups_count == 1 &&
		!has_threads(m, m->host.memory_groups[0].cgroup))
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
		return node_of_server(g, w);
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

/* A look is an instant: who waits then has begun before, and goes on. */
static struct model_span widened(struct model_span span)
{
	const uint64_t middle_ns = span.from_ns + (span.until_ns - span.from_ns) / 2;

	return span.until_ns - span.from_ns >= NOTICED_NS
		? span
		: (struct model_span){ minus(middle_ns, NOTICED_NS / 2),
			  middle_ns + NOTICED_NS / 2 };
}

/* Nothing is known of the time before. */
static struct model_span counted(const struct graph *g, struct model_span span)
{
	const uint64_t counted_ns = minus(g->m->trigger_ns, MODEL_LEAD_NS);

	if (span.from_ns < counted_ns)
		span.from_ns = counted_ns;
	return span;
}

/* Who waited for less than half of that time held it for other reasons. */
static bool is_most(const struct graph *g, uint64_t waited_ns, struct model_span span)
{
	span = counted(g, span);
	return waited_ns && 2 * waited_ns >= minus(span.until_ns, span.from_ns);
}

/* Time that was waited for each node. */
struct sums {
	uint64_t ns[GRAPH_NODES_MAX];
	struct node *most; /* NULL: none was waited for */
};

static void add_to(struct sums *sums, const struct graph *g, struct node *n, uint64_t ns)
{
	if (!n || ns == 0)
		return;
	sums->ns[n - g->nodes] += ns;
	if (!sums->most || sums->ns[n - g->nodes] > sums->ns[sums->most - g->nodes])
		sums->most = n;
}

struct node *graph_of_thread(struct graph *g, const struct node *held, int32_t tid,
	struct model_span span)
{
	const struct model_waits *waits = &g->m->waits;
	struct sums sums = { 0 };
	uint64_t all_ns = 0;

	span = widened(span);
	for (uint32_t i = 0; tid > 0 && i < MODEL_THREADS_MAX; i++) {
		const struct model_thread *t = &waits->threads[i];
		struct node *n;
		uint64_t ns;

		if (t->tid != tid || t->longest_ms < NOTICED_NS / NSEC_PER_MSEC)
			continue;
		n = node_of_group(g, &waits->groups[t->group]);
		if (n == held)
			continue;
		ns = model_waits_in_ns(g->m, t, span);
		all_ns += ns;
		add_to(&sums, g, n, ns);
	}
	return is_most(g, all_ns, span) ? sums.most : NULL;
}

static bool is_thread_of(const struct graph *g, const struct model_thread *t, int32_t pid,
	const struct model_database *d)
{
	return t->tid > 0 &&
		(t->pid == pid || (d && model_sessions_find_runner(&g->m->sessions, t->tid) == d));
}

/* By executable and control group; 0: none of its threads waited. */
static uint64_t program_of(const struct graph *g, const struct model_database *d)
{
	const struct model_waits *waits = &g->m->waits;

	for (uint32_t i = 0; i < MODEL_THREADS_MAX; i++)
		if (is_thread_of(g, &waits->threads[i], d->server.pid, d))
			return waits->keys[waits->threads[i].group].program;
	return 0;
}

/*
 * Each session may be a process, and so may what the server does besides. Another server of that
 * name is another service as a rule, and so has another control group.
 */
void graph_find_groups_of(const struct graph *g, const struct model_database *d,
	bool ret_is_of[MODEL_GROUPS_MAX])
{
	const struct model_waits *waits = &g->m->waits;
	const uint64_t program = model_sessions_is_only(&g->m->sessions, d) ? program_of(g, d) : 0;

	for (uint32_t i = 0; i < waits->groups_count; i++)
		ret_is_of[i] = waits->groups[i].who.pid == d->server.pid ||
			(program ? waits->keys[i].program == program
				 : model_sessions_is_name_of(&g->m->sessions, d,
					   waits->groups[i].who.comm));
}

/* What one thread waited; NULL: there are too many threads. */
static uint64_t *waited_of(struct graph *g, int32_t tid)
{
	for (uint32_t i = 0; i < MODEL_THREADS_MAX; i++) {
		const uint32_t slot = ((uint32_t)tid + i) % MODEL_THREADS_MAX;

		if (g->tids[slot] && g->tids[slot] != tid)
			continue;
		g->tids[slot] = tid;
		return &g->waited_ns[slot];
	}
	return NULL;
}

/* Of a process, or of a database whose sessions are processes: what any of its threads waited. */
static struct node *most_waited_for(struct graph *g, int32_t pid, const struct model_database *d,
	struct model_span span)
{
	const struct model_waits *waits = &g->m->waits;
	bool is_of_database[MODEL_GROUPS_MAX] = { 0 };
	struct sums sums = { 0 };
	uint64_t longest_ns = 0;

	span = widened(span);
	memset(g->tids, 0, sizeof(g->tids));
	memset(g->waited_ns, 0, sizeof(g->waited_ns));
	if (d)
		graph_find_groups_of(g, d, is_of_database);
	for (uint32_t i = 0; i < waits->groups_count; i++) {
		const struct model_wait *w = &waits->groups[i];
		uint64_t ns;

		/* Of those whose lines stand for many, the longest is known. */
		if (!g->of_group[i] || !w->has_alike || (w->who.pid != pid && !is_of_database[i]))
			continue;
		ns = model_span_overlap_ns(span,
			model_span_to(w->start_ns + w->longest_ns, w->longest_ns));
		add_to(&sums, g, g->of_group[i], ns);
		longest_ns = ns > longest_ns ? ns : longest_ns;
	}
	for (uint32_t i = 0; i < MODEL_THREADS_MAX; i++) {
		const struct model_thread *t = &waits->threads[i];
		uint64_t ns, *waited_ns;

		if (t->tid <= 0 || !g->of_group[t->group] ||
			(!is_thread_of(g, t, pid, d) && !is_of_database[t->group]))
			continue;
		ns = model_waits_in_ns(g->m, t, span);
		waited_ns = ns ? waited_of(g, t->tid) : NULL;
		if (!waited_ns)
			continue;
		add_to(&sums, g, g->of_group[t->group], ns);
		*waited_ns += ns;
		longest_ns = *waited_ns > longest_ns ? *waited_ns : longest_ns;
	}
	return is_most(g, longest_ns, span) ? sums.most : NULL;
}

struct node *graph_of_process(struct graph *g, int32_t pid, struct model_span span)
{
	return most_waited_for(g, pid, NULL, span);
}

struct node *graph_of_server(struct graph *g, const struct model_database *d,
	struct model_span span)
{
	return most_waited_for(g, d->server.pid, d, span);
}

/*
 * Whoever waits for fewer dirty pages has the lock alone; whoever waits for a thaw, or for a lock,
 * may not have it yet.
 */
static bool may_share_lock(enum record_cause cause)
{
	switch (record_wait_of(cause)) {
	case RECORD_WAIT_device:
	case RECORD_WAIT_cgroup:
	case RECORD_WAIT_journal:
	case RECORD_WAIT_memory:
	case RECORD_WAIT_server:
		return true;
	default:
		return false;
	}
}

struct node *graph_of_file(struct graph *g, uint32_t file, struct model_span span)
{
	const struct model_waits *waits = &g->m->waits;
	const struct model_wait *longest = NULL;
	uint64_t longest_ns = 0;

	span = counted(g, widened(span));
	for (uint32_t i = 0; file && i < MODEL_THREADS_MAX; i++) {
		const struct model_thread *t = &waits->threads[i];
		const struct model_wait *w = &waits->groups[t->group];
		uint64_t ns;

		if (t->tid <= 0 || t->file != file || !may_share_lock(w->cause))
			continue;
		ns = model_waits_longest_in_ns(g->m, t, span);
		if (ns > longest_ns) {
			longest = w;
			longest_ns = ns;
		}
	}
	/* Whoever came behind a thread that waits for all of the lock gets it after that one. */
	return longest && 4 * longest_ns >= 3 * minus(span.until_ns, span.from_ns)
		? node_of_group(g, longest)
		: NULL;
}

struct node *graph_of_load(struct graph *g, int32_t pid, int32_t tid)
{
	for (uint32_t i = 0; i < g->m->loads.count; i++) {
		const struct model_loads_of *loads = &g->m->loads.list[i];
		const double work_ns = model_disk_work_ns(&g->m->disks.list[loads->disk]);
		uint32_t count;
		const struct model_load *list =
			model_loads_list(loads, tid ? RECORD_BY_thread : RECORD_BY_process, &count);

		if (g->conditions[g->folded[loads->disk]] == CONDITION_NONE)
			continue;
		for (uint32_t k = 0; k < count; k++)
			if ((tid ? list[k].who.tid == tid : list[k].who.pid == pid) &&
				100 * (double)list[k].busy_ns >= TENTH * work_ns)
				return graph_get(g, NODE_disk, g->folded[loads->disk]);
	}
	return NULL;
}

uint64_t graph_weight_ns(const struct node *end)
{
	const struct victims *v = &end->victims;
	uint64_t ns = v->waited_ns + v->own_ns / TENTH;

	return end->basis == RECORD_BASIS_inferred && !end->culprit ? ns / TENTH : ns;
}
