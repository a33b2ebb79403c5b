/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pipes and sockets that are full, since nobody reads from them. The lines about them have their
 * waiters.
 */
#include "verdict/words.h"

static const struct model_lock *end_of(const struct graph *g, const struct node *n)
{
	return &g->m->host.locks[n->index];
}

static void find(struct graph *g)
{
	for (int i = 0; i < MODEL_LOCKS_MAX && g->m->host.locks[i].id; i++) {
		const struct model_lock *l = &g->m->host.locks[i];
		struct node *n;

		if (!record_lock_has_reader(l->kind))
			continue;
		n = graph_get(g, NODE_peer, i);
		if (!n)
			return;
		n->extra = (struct victims){ .threads = l->waiters,
			.waited_ns = l->waited_ns,
			.longest_ns = l->longest_ns,
			.who = l->process,
			.disk = -1 };
	}
}

/* Who should read may wait itself, as a logger does whose disk hangs. */
static struct node *follow(struct graph *g, struct node *n)
{
	const struct model_who *holder = &end_of(g, n)->holder;

	n->is_link_inferred = end_of(g, n)->is_inferred;
	return holder->pid ? graph_of_process(g, holder->pid, "") : NULL;
}

/* "standard error of mariadbd (pid 7)" */
static void add_end(const struct model_lock *l, struct text *t)
{
	text_add(t,
		l->fd == 1				       ? "standard output of "
			: l->fd == 2			       ? "standard error of "
			: l->kind == RECORD_KERNEL_LOCK_socket ? "a socket of "
							       : "a pipe of ");
	words_add_who(t, &l->process);
}

static void add_reader(const struct model_lock *l, struct text *t)
{
	words_add_who(t, &l->holder);
	text_add(t,
		l->is_inferred ? ", which probably should have, did not read " : " did not read ");
	add_end(l, t);
	text_add(t, " for at least ");
	words_add_time(t, l->held_ns);
	words_add_what_holder_did(l, t);
}

static void say(const struct graph *g, const struct node *n, struct text *t)
{
	const struct model_lock *l = end_of(g, n);

	if (l->holder.pid) {
		add_reader(l, t);
		return;
	}
	text_add(t, "nobody read ");
	add_end(l, t);
	text_add(t, " for at least ");
	words_add_time(t, l->longest_ns);
	text_add(t, "; who should is not known");
}

static void add_parts(const struct graph *g, const struct node *n, struct record_verdict *v)
{
	const struct model_lock *l = end_of(g, n);
	struct record_verdict_part *part;
	struct text t;

	if (!l->holder.pid)
		return;
	part = words_add_part(v, RECORD_WHAT_culprit,
		l->is_inferred ? RECORD_BASIS_inferred : RECORD_BASIS_measured, &t);
	if (!part)
		return;
	add_reader(l, &t);
	words_set_who(part, &l->holder);
	part->longest_ns = l->held_ns;
}

const struct node_kind node_peer = {
	.name = "reader",
	.find = find,
	.follow = follow,
	.class = RECORD_CLASS_waiting,
	.say = say,
	.add_parts = add_parts,
	.waited_for = " to write to it",
};
