/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Databases: sessions wait for a lock of another one, or the server does not answer. */
#include <inttypes.h>
#include <string.h>

#include "verdict/words.h"

static const struct model_database *database_of(const struct graph *g, const struct node *n)
{
	return &g->m->sessions.list[n->index];
}

/* Sessions that wait in the database for what its threads wait for */

/* A server that has filled its file system tries again and again until there is room. */
static bool has_filled_disk(const struct graph *g, const struct model_database *d)
{
	const struct model_full *full = &g->m->host.full;

	return *full->mount && full->used_pct >= QUITE_FULL_PCT && full->writer.pid &&
		(full->writer.pid == d->server.pid ||
			(*d->server.comm && strcmp(full->writer.comm, d->server.comm) == 0));
}

static void find_sessions(struct graph *g, int index)
{
	const struct model_database *d = &g->m->sessions.list[index];
	const uint32_t queued = d->queue_ns ? d->queue.waiters : 0;
	struct node *n = NULL;
	uint64_t waited_ns;

	if (d->lasting <= queued || !d->server.pid)
		return;
	if (has_filled_disk(g, d))
		n = graph_get(g, NODE_full, 0);
	if (!n)
		n = graph_of_server(g, d,
			model_span_to(d->lasting_at_ns, d->lasting_ns / d->lasting));
	waited_ns = d->lasting_ns * (d->lasting - queued) / d->lasting;
	/* That they ran while their server loaded a disk does not say that they waited for it. */
	if (!n) {
		n = graph_of_load(g, d->server.pid, 0);
		waited_ns /= TENTH;
	}
	if (!n)
		return;
	g->of_database[index] = n;
	n->extra.statements += d->lasting - queued;
	n->extra.waited_ns += waited_ns;
	if (model_database_longest_ns(d, NULL) > n->extra.statements_longest_ns)
		n->extra.statements_longest_ns = model_database_longest_ns(d, NULL);
}

/* Locks */

static void find_queues(struct graph *g)
{
	for (int i = 0; i < (int)g->m->sessions.count; i++) {
		const struct record_queue *q = &g->m->sessions.list[i].queue;
		struct node *n;

		find_sessions(g, i);
		if (q->longest_ns < TROUBLE_NS || q->waited_ns < LOCKED_SUM_NS)
			continue;
		n = graph_get(g, NODE_queue, i);
		if (!n)
			return;
		n->extra = (struct victims){ .statements = q->waiters,
			.statements_longest_ns = q->longest_ns,
			.waited_ns = g->m->sessions.list[i].queue_ns,
			.disk = -1 };
	}
}

/*
 * A commit that takes long holds up the sessions behind its locks, and one commits for others: it
 * need not be the holder's thread that waits. All of them take half as long as the lock is waited
 * for, or it is about something else.
 */
static struct node *node_of_commits(struct graph *g, const struct node *n)
{
	const struct model_database *d = database_of(g, n);
	const struct model_waits *waits = &g->m->waits;

	for (uint32_t i = 0; i < waits->groups_count; i++) {
		const struct model_wait *w = &waits->groups[i];

		if (g->of_group[i] && g->of_group[i]->kind == NODE_disk &&
			g->conditions[g->of_group[i]->index] < CONDITION_AT_TIMES &&
			w->writing_ns >= NOTICED_NS &&
			model_wait_ns(w) >= d->queue.longest_ns / 2 &&
			(w->who.pid == d->queue.holder.pid || w->who.pid == d->server.pid))
			return g->of_group[i];
	}
	return NULL;
}

/* What it waited for before is over, and others wait for its next statement. */
static bool is_idle(const struct record_queue *q)
{
	return q->holder.idle && q->holder.elapsed_ns >= q->longest_ns / 2;
}

/* Whoever holds it may wait in the kernel, or for the disk that it loads. */
static struct node *follow_queue(struct graph *g, struct node *n)
{
	const struct record_queue *q = &database_of(g, n)->queue;
	struct node *next = NULL;

	if (!q->holder.present || !q->holder.tid || q->candidates > 1 || is_idle(q))
		return NULL;
	next = graph_of_thread(g, n, q->holder.tid,
		model_span_to(database_of(g, n)->queue_at_ns,
			q->holder.elapsed_ns && q->holder.elapsed_ns < q->longest_ns
				? q->holder.elapsed_ns
				: q->longest_ns));
	if (!next)
		next = graph_of_load(g, q->holder.pid, q->holder.tid);
	if (!next && !q->holder.idle) {
		next = node_of_commits(g, n);
		n->is_link_inferred = true;
	}
	return next;
}

static void judge_queue(struct graph *g, struct node *n)
{
	if (database_of(g, n)->queue.basis == RECORD_BASIS_inferred)
		n->basis = RECORD_BASIS_inferred;
}

/* "the metadata lock of shop.orders", "the global read or backup lock" */
static void add_lock(const struct record_queue *q, struct text *t)
{
	static const char *const locks[RECORD_LOCK_COUNT] = {
		[RECORD_LOCK_row] = "a row lock",
		[RECORD_LOCK_metadata] = "the metadata lock",
		[RECORD_LOCK_table] = "a table lock",
		[RECORD_LOCK_flush] = "the lock of FLUSH TABLES",
		[RECORD_LOCK_backup] = "the global read or backup lock",
		[RECORD_LOCK_advisory] = "an advisory lock",
		[RECORD_LOCK_replica] = "a replica",
		[RECORD_LOCK_cluster] = "the other nodes of its cluster",
	};

	/* A statement of DDL runs alone in all of it. */
	if (q->lock == RECORD_LOCK_cluster && q->holder.present)
		text_add(t, "the whole cluster");
	else
		text_add(t, locks[q->lock] ? locks[q->lock] : "a lock");
	if (*q->lock_on)
		text_addf(t, " of %s", q->lock_on);
}

static void add_statement(const struct record_queue_session *s, bool with_statement, struct text *t)
{
	if (!with_statement || !*s->text) {
		words_add_session(t, s->user, s->connection_id);
		return;
	}
	words_add_statement(t, s->text, WORDS_STATEMENT_MAX);
	if (*s->user)
		text_addf(t, " of %s", s->user);
	text_addf(t, " (session %" PRIu64 ")", s->connection_id);
}

/* In the middle of a freeze a database may not tell since when. */
static void add_age(const struct record_queue_session *s, struct text *t)
{
	if (s->idle && s->transaction_ns)
		text_add(t,
			s->elapsed_ns ? " in a transaction that has been idle for "
				      : " in an idle transaction");
	else if (s->idle)
		text_add(t, s->elapsed_ns ? " and has been idle for " : " and is idle");
	else if (s->elapsed_ns)
		text_add(t, " and has run for ");
	if (s->elapsed_ns)
		words_add_time(t, s->elapsed_ns);
}

static void add_holder(const struct record_queue *q, bool with_statement, struct text *t)
{
	const struct record_queue_session *h = &q->holder;

	/* What it ran last is not what holds it. */
	add_statement(h, with_statement && !h->idle, t);
	text_add(t, q->basis == RECORD_BASIS_inferred ? " probably holds " : " holds ");
	add_lock(q, t);
	add_age(h, t);
}

/* What is no lock that a session holds; NULL: it is one. */
static const char *other_host_of(const struct record_queue *q)
{
	if (q->lock == RECORD_LOCK_replica)
		return "had no confirmation of its commits from a replica";
	return q->lock == RECORD_LOCK_cluster && !q->holder.present
		? "waited for the other nodes of its cluster"
		: NULL;
}

static void say_queue(const struct graph *g, const struct node *n, struct text *t)
{
	const struct record_queue *q = &database_of(g, n)->queue;

	if (other_host_of(q)) {
		text_addf(t, "database %s %s", q->target, other_host_of(q));
		return;
	}
	if (q->without_session) {
		text_addf(t,
			"a transaction of database %s that has no session, such as a prepared one, ",
			q->target);
		text_add(t, "holds ");
		add_lock(q, t);
		return;
	}
	if (!q->holder.present) {
		text_addf(t, "sessions of database %s waited for ", q->target);
		add_lock(q, t);
		text_add(t, "; who holds it is not known");
		return;
	}
	add_holder(q, g->with_statement, t);
	if (q->candidates > 1)
		text_addf(t, "; it may be another one of %" PRIu32, q->candidates);
	if (!q->behind_first)
		return;
	text_add(t, ". ");
	text_add_count(t, q->behind_first, "statement waits behind ", "statements wait behind ");
	add_statement(&q->first, g->with_statement, t);
}

static void say_behind_queue(const struct graph *g, const struct node *n, const struct node *end,
	struct text *t)
{
	const struct record_queue *q = &database_of(g, n)->queue;
	const struct record_io_statement *s = end->culprit ? &end->culprit->statement : NULL;

	text_add(t, " for ");
	add_lock(q, t);
	text_add(t, ", which ");
	if (s && s->present && s->sessions <= 1 && s->connection_id == q->holder.connection_id)
		text_add(t, "it");
	else
		add_statement(&q->holder, g->with_statement && !q->holder.idle, t);
	text_add(t, q->basis == RECORD_BASIS_inferred ? " probably holds" : " holds");
}

static void add_queue_parts(const struct graph *g, const struct node *n, struct record_verdict *v)
{
	const struct record_queue *q = &database_of(g, n)->queue;
	struct record_verdict_part *part;
	struct text t;

	part = words_add_part(v, RECORD_WHAT_lock, RECORD_BASIS_measured, &t);
	if (part) {
		text_add_count(&t, q->waiters, "session waited", "sessions waited");
		text_add(&t, " for ");
		add_lock(q, &t);
		text_addf(&t, " in database %s", q->target);
		part->threads = q->waiters;
		part->longest_ns = q->longest_ns;
	}
	if (!q->holder.present && !q->without_session && *database_of(g, n)->missing &&
		words_add_part(v, RECORD_WHAT_missing, RECORD_BASIS_NONE, &t))
		text_addf(&t,
			"the database does not tell who holds the lock; what would let it: %s",
			database_of(g, n)->missing);
	if (!q->holder.present || q->candidates > 1)
		return;
	part = words_add_part(v, RECORD_WHAT_culprit, q->basis, &t);
	if (part) {
		words_add_session(&t, q->holder.user, q->holder.connection_id);
		part->pid = q->holder.pid;
		part->tid = q->holder.tid != q->holder.pid ? q->holder.tid : 0;
		text_copy(part->comm, sizeof(part->comm), q->holder.comm);
		part->longest_ns = q->holder.elapsed_ns;
	}
	if (!*q->holder.text)
		return;
	part = words_add_part(v, RECORD_WHAT_statement, q->basis, &t);
	if (part) {
		text_add(&t, q->holder.idle ? "its last statement was " : "it ran ");
		words_add_statement(&t, q->holder.text, SIZE_MAX);
	}
}

const struct node_kind node_queue = {
	.name = "lock of a database",
	.find = find_queues,
	.follow = follow_queue,
	.class = RECORD_CLASS_locked,
	.judge = judge_queue,
	.say = say_queue,
	.add_parts = add_queue_parts,
	.waited_for = " for it",
	.say_behind = say_behind_queue,
};

/* Silence */

static void find_silences(struct graph *g)
{
	for (int i = 0; i < (int)g->m->sessions.count; i++) {
		const struct model_database *d = &g->m->sessions.list[i];
		struct node *n;

		if (d->silence.longest_ns < SILENT_NS || !(n = graph_get(g, NODE_silence, i)))
			continue;
		/* All its sessions may have waited, of which nothing is traced. */
		n->extra = (struct victims){ .waited_ns = d->silence.longest_ns, .disk = -1 };
	}
}

static bool is_of_server(const struct graph *g, const struct node *n,
	const struct model_database *d)
{
	return n->extra.who.pid == d->server.pid ||
		(n->kind == NODE_peer &&
			model_sessions_is_name_of(&g->m->sessions, d, n->extra.who.comm));
}

/* A lock, a pipe or a socket that its threads waited for, for half of that time at least. */
static struct node *find_lock_of(struct graph *g, const struct model_database *d)
{
	struct node *longest = NULL;

	for (uint32_t i = 0; i < g->count; i++) {
		struct node *n = &g->nodes[i];

		if ((n->kind == NODE_held || n->kind == NODE_peer) && is_of_server(g, n, d) &&
			n->extra.longest_ns >= d->silence.longest_ns / 2 &&
			(!longest || n->extra.longest_ns > longest->extra.longest_ns))
			longest = n;
	}
	return longest;
}

/* Sessions that were held up keep the CPUs busy once they are let go: that alone is no reason. */
static struct node *find_cpu(struct graph *g, const struct model_database *d)
{
	for (uint32_t i = 0; i < g->m->host.cpu_limits_count; i++)
		if (g->m->host.cpu_limits[i].at_limit_ns >= d->silence.longest_ns / 2 &&
			strcmp(g->m->host.cpu_limits[i].path, d->silence.cpu_limit) == 0)
			return graph_find(g, NODE_cpu, (int)i);
	return g->m->host.cpu_shortage.ns >= d->silence.longest_ns / 2 ? graph_find(g, NODE_cpu, -1)
								       : NULL;
}

/* Whether any request or wait of its processes was seen there. */
static bool uses_disk(const struct graph *g, const struct model_database *d, int disk)
{
	bool is_of[MODEL_GROUPS_MAX];

	graph_find_groups_of(g, d, is_of);
	for (uint32_t i = 0; i < g->m->waits.groups_count; i++)
		if (is_of[i] && g->m->waits.groups[i].disk >= 0 &&
			g->folded[g->m->waits.groups[i].disk] == disk)
			return true;
	for (uint32_t i = 0; i < g->m->loads.count; i++) {
		const struct model_loads_of *loads = &g->m->loads.list[i];
		uint32_t count;
		const struct model_load *list = model_loads_list(loads, RECORD_BY_process, &count);

		for (uint32_t k = 0; k < count && g->folded[loads->disk] == disk; k++)
			if (list[k].who.pid == d->server.pid ||
				model_sessions_is_name_of(&g->m->sessions, d, list[k].who.comm))
				return true;
	}
	return false;
}

/* On a disk that it uses the server may wait in ways that are not traced. */
static struct node *find_disk(struct graph *g, const struct model_database *d)
{
	struct node *n = graph_of_load(g, d->server.pid, 0);

	for (uint32_t i = 0; i < g->count && !n; i++) {
		const enum condition c = g->nodes[i].kind == NODE_disk
			? g->conditions[g->nodes[i].index]
			: CONDITION_NONE;

		if ((c == CONDITION_HUNG || c == CONDITION_SUSPENDED || c == CONDITION_SLOW) &&
			uses_disk(g, d, g->nodes[i].index))
			n = &g->nodes[i];
	}
	return n;
}

static struct node *follow_silence(struct graph *g, struct node *n)
{
	const struct model_database *d = database_of(g, n);
	const struct model_stopped *s = &g->m->host.stopped;
	struct node *next;

	if (s->who.pid &&
		(s->who.pid == d->server.pid ||
			model_sessions_is_name_of(&g->m->sessions, d, s->who.comm)))
		return graph_find(g, NODE_stopped, 0);
	if (d->silence.is_stopped)
		return NULL;
	next = graph_of_server(g, d, model_span_to(d->silence.until_ns, d->silence.longest_ns));
	if (!next)
		next = find_lock_of(g, d);
	if (!next)
		next = graph_find(g, NODE_queue, n->index);
	if (!next)
		next = find_disk(g, d);
	return next ? next : find_cpu(g, d);
}

static void say_silence(const struct graph *g, const struct node *n, struct text *t)
{
	const struct model_database *d = database_of(g, n);

	text_addf(t, "database %s", d->target);
	if (d->server.pid) {
		text_add(t, " (");
		text_addf(t, "%s, pid %" PRId32 ")", *d->server.comm ? d->server.comm : "?",
			d->server.pid);
	}
	text_add(t, " did not answer for ");
	words_add_time(t, d->silence.longest_ns);
	text_add(t,
		d->silence.is_stopped ? ", because its process was stopped" : "; why is not known");
}

static void add_silence_parts(const struct graph *g, const struct node *n, struct record_verdict *v)
{
	const struct model_database *d = database_of(g, n);
	struct record_verdict_part *part;
	struct text t;

	part = words_add_part(v, RECORD_WHAT_database, RECORD_BASIS_measured, &t);
	if (!part)
		return;
	text_addf(&t, "%s did not answer for ", d->target);
	record_add_duration(&t, d->silence.longest_ns);
	words_set_who(part, &d->server);
	part->longest_ns = d->silence.longest_ns;
}

const struct node_kind node_silence = {
	.name = "silent database",
	.find = find_silences,
	.follow = follow_silence,
	.class = RECORD_CLASS_unanswered,
	.say = say_silence,
	.add_parts = add_silence_parts,
};
