/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A database that has given away all its connections: who logs in is refused, and waits nowhere. */
#include <inttypes.h>
#include <string.h>

#include "verdict/words.h"

static const struct model_database *database_of(const struct graph *g, const struct node *n)
{
	return &g->m->sessions.list[n->index];
}

static void find(struct graph *g)
{
	for (int i = 0; i < (int)g->m->sessions.count; i++) {
		const struct model_database *d = &g->m->sessions.list[i];
		struct node *n;

		if (d->connections_ns < TROUBLE_NS || !(n = graph_get(g, NODE_connections, i)))
			continue;
		/* Who was refused is not seen: for as long as it was so, somebody may have been. */
		n->extra = (struct victims){ .waited_ns = d->connections_ns, .disk = -1 };
		/* A pool may have them all by design, and nobody else wants one. */
		n->is_symptom = strcmp(g->m->trigger.rule, "sql_connections") != 0;
	}
}

/* Sessions that wait for a lock or a disk pile up. Those that are idle wait for nobody. */
static struct node *follow(struct graph *g, struct node *n)
{
	const struct model_database *d = database_of(g, n);
	const struct record_connections *c = &d->connections;
	struct node *next;

	if (c->of_user_idle > c->of_user / 2)
		return NULL;
	n->is_link_inferred = true;
	next = graph_find(g, NODE_queue, n->index);
	return next || !d->server.pid
		? next
		: graph_of_server(g, d, model_span_to(d->connections_at_ns, d->connections_ns));
}

/* "user shop had 148 of them, 147 idle" */
static void add_user(const struct record_connections *c, struct text *t)
{
	text_addf(t, "user %s had %" PRIu32 " of them", c->user, c->of_user);
	if (c->of_user_idle == c->of_user)
		text_add(t, ", all idle");
	else if (c->of_user_idle)
		text_addf(t, ", %" PRIu32 " idle", c->of_user_idle);
}

static void say(const struct graph *g, const struct node *n, struct text *t)
{
	const struct model_database *d = database_of(g, n);
	const struct record_connections *c = &d->connections;

	text_addf(t, "database %s had all its %" PRIu32 " connections in use for ", d->target,
		c->allowed);
	words_add_time(t, d->connections_ns);
	text_add(t, " and took no others");
	if (!*c->user)
		return;
	text_add(t, "; ");
	add_user(c, t);
}

static void add_parts(const struct graph *g, const struct node *n, struct record_verdict *v)
{
	const struct model_database *d = database_of(g, n);
	const struct record_connections *c = &d->connections;
	struct record_verdict_part *part;
	struct text t;

	if (*c->user && 2 * c->of_user >= c->used) {
		part = words_add_part(v, RECORD_WHAT_culprit, RECORD_BASIS_measured, &t);
		if (part)
			add_user(c, &t);
	}
	part = words_add_part(v, RECORD_WHAT_database, RECORD_BASIS_measured, &t);
	if (!part)
		return;
	text_addf(&t, "%s allowed %" PRIu32 " connections, and clients had %" PRIu32, d->target,
		c->allowed, c->used);
	words_set_who(part, &d->server);
	part->longest_ns = d->connections_ns;
}

const struct node_kind node_connections = {
	.name = "connection limit",
	.find = find,
	.follow = follow,
	.class = RECORD_CLASS_full,
	.say = say,
	.add_parts = add_parts,
};
