/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who waited for what flows to an end, without those who hold or load it. */
#include <string.h>

#include "util/sort.h"
#include "verdict/graph.h"
#include "verdict/own_work.h"

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

/*
 * Of threads of a server without a line nobody knows which statement they ran: what at least half
 * of the sessions did.
 */
static bool is_unnamed_own(const struct graph *g, const struct node *end,
	const struct model_wait *w)
{
	const struct model_database *d = g->unnamed[w - g->m->waits.groups];
	const struct culprit *c = end->culprit;

	return d && c && c->has_half && c->kind == CULPRIT_STATEMENT &&
		2 * c->statement.sessions >= d->lasting &&
		model_sessions_find_runner(&g->m->sessions, c->who.tid) == d;
}

static bool is_own(const struct graph *g, const struct node *end, const struct model_wait *w,
	const struct model_thread *t)
{
	if (!end->culprit)
		return false;
	return own_work_of_thread(g->m, end->culprit, w, t) ||
		(is_unnamed_own(g, end, w) && !model_sessions_find_runner(&g->m->sessions, t->tid));
}

static bool is_own_group(const struct graph *g, const struct node *end, const struct model_wait *w)
{
	return end->culprit &&
		(own_work_of_group(g->m, end->culprit, w) || is_unnamed_own(g, end, w));
}

/* The thread that stands for many is one of the culprit's: the others are not named by it. */
static bool is_own_lead(const struct graph *g, const struct node *end, const struct model_wait *w)
{
	return is_own(g, end, w, &(struct model_thread){ .pid = w->who.pid, .tid = w->who.tid });
}

/* Whether it may be one of the sessions whose statements are counted as victims of the end. */
static bool is_unnamed(const struct graph *g, const struct node *end, const struct model_wait *w,
	int32_t tid)
{
	const struct model_database *d = g->unnamed[w - g->m->waits.groups];

	return d && graph_end(g->of_database[d - g->m->sessions.list]) == end &&
		!model_sessions_find_runner(&g->m->sessions, tid);
}

/* Threads of a server are sessions for the most part, where no line tells. */
static bool is_of_session(const struct graph *g, const struct node *end, const struct model_wait *w,
	int32_t tid)
{
	if (is_unnamed(g, end, w, tid))
		return true;
	return tid ? model_sessions_find_runner(&g->m->sessions, tid) != NULL
		   : model_sessions_find_server(&g->m->sessions, w->who.pid) != NULL;
}

/* Of those that waited for what flows to an end. */
enum part {
	PART_SESSIONS,
	PART_OTHERS,
	PART_OWN,
};

static enum part part_of(const struct graph *g, const struct node *end, const struct model_wait *w,
	int32_t tid, bool is_own)
{
	if (is_own)
		return PART_OWN;
	return is_of_session(g, end, w, tid) ? PART_SESSIONS : PART_OTHERS;
}

static bool is_counted(const struct graph *g, uint32_t group, const struct node *end,
	enum part part)
{
	const struct model_wait *w = &g->m->waits.groups[group];

	return graph_flows_to(g, group, end) &&
		part_of(g, end, w, 0, is_own_group(g, end, w)) == part;
}

/*
 * The most that lines show at once. Where they stand for many, one thread is in another group when
 * there was time to see what it waits for, so only what was seen together is added up.
 */
static uint32_t count_at_once(const struct graph *g, const struct node *end, enum part part)
{
	const struct model_waits *waits = &g->m->waits;
	uint32_t most = 0;

	for (uint32_t i = 0; i < waits->groups_count; i++) {
		uint32_t count = 0;

		if (!waits->groups[i].has_alike || !is_counted(g, i, end, part))
			continue;
		for (uint32_t j = 0; j < waits->groups_count; j++)
			if (waits->groups[j].at_look == waits->groups[i].at_look &&
				is_counted(g, j, end, part))
				count += waits->groups[j].at_once;
		most = count > most ? count : most;
	}
	return most;
}

static uint32_t collect(struct graph *g, const struct node *end, enum part part)
{
	const struct model_waits *waits = &g->m->waits;
	uint32_t count = 0, at_once;

	for (uint32_t i = 0; i < MODEL_THREADS_MAX; i++) {
		const struct model_thread *t = &waits->threads[i];
		const struct model_wait *w = &waits->groups[t->group];

		if (t->tid > 0 && graph_flows_to(g, t->group, end) &&
			part_of(g, end, w, t->tid, is_own(g, end, w, t)) == part)
			g->tids[count++] = t->tid;
	}
	count = count_different(g->tids, count);
	at_once = count_at_once(g, end, part);
	return count > at_once ? count : at_once;
}

static void add_own(struct victims *v, uint64_t waited_ns, uint64_t longest_ns)
{
	v->own_ns += waited_ns;
	if (longest_ns > v->own_longest_ns)
		v->own_longest_ns = longest_ns;
}

/* Of a session without a line, what its thread waited is what is known. */
static void note_statement(struct victims *v, uint64_t ns)
{
	if (ns > v->statements_longest_ns)
		v->statements_longest_ns = ns;
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
			add_own(v, ns, t->longest_ms * NSEC_PER_MSEC);
		} else {
			is_new = !v->statements || !is_of_session(g, end, w, t->tid);
			if (is_new)
				v->waited_ns += ns;
			if (is_new || !v->threads)
				note_longest(v, w, t, t->longest_ms * NSEC_PER_MSEC);
			if (!is_new && is_unnamed(g, end, w, t->tid))
				note_statement(v, t->longest_ms * NSEC_PER_MSEC);
		}
	}
	for (uint32_t i = 0; i < waits->groups_count; i++) {
		const struct model_wait *w = &waits->groups[i];
		const uint64_t ns = w->alike_ns + w->alike_hanging_ns;

		if (!w->has_alike || !graph_flows_to(g, i, end))
			continue;
		if (is_own_group(g, end, w)) {
			add_own(v, ns, w->longest_ns);
		} else {
			is_new = !v->statements || !is_of_session(g, end, w, 0);
			if (is_new)
				v->waited_ns += ns;
			if ((is_new || !v->threads) && !is_own_lead(g, end, w))
				note_longest(v, w, NULL, w->longest_ns);
			if (!is_new && is_unnamed(g, end, w, 0))
				note_statement(v, w->longest_ns);
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
void graph_add_victims(struct graph *g, struct node *end)
{
	struct victims *v = &end->victims;
	const uint32_t sessions = collect(g, end, PART_SESSIONS);

	add_extra(g, end);
	if (v->statements <= sessions) {
		v->waited_ns -= v->statements_ns;
		v->statements = 0;
		v->statements_longest_ns = 0;
		v->threads += sessions;
	}
	v->threads += collect(g, end, PART_OTHERS);
	v->own_threads = collect(g, end, PART_OWN);
	add_threads(g, end);
}
