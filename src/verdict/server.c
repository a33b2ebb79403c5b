/* SPDX-License-Identifier: GPL-2.0-or-later */
/* File servers: a process behind FUSE, or another host. */
#include <string.h>

#include "verdict/words.h"

/* Those of FUSE are processes here, which may wait themselves. */
static struct node *follow(struct graph *g, struct node *n)
{
	const struct record_file_server *s = &g->m->host.file_server;
	struct node *next = s->present && s->pid ? graph_of_process(g, s->pid, "") : NULL;

	return next != n ? next : NULL;
}

static void judge(struct graph *g, struct node *n)
{
	if (g->m->host.file_server.basis == RECORD_BASIS_inferred)
		n->basis = RECORD_BASIS_inferred;
}

static void add_server(const struct graph *g, struct text *t)
{
	const struct record_file_server *s = &g->m->host.file_server;
	const struct model_who who = model_who_of(s->pid, s->pid, s->comm);

	if (s->pid) {
		words_add_who(t, &who);
		text_add(t, *s->source ? ", which serves " : "");
	}
	if (*s->source)
		text_addf(t, "%s on %s", s->source, *s->mount ? s->mount : "a mount");
}

static const char *what_it_did(const struct graph *g)
{
	const struct record_file_server *s = &g->m->host.file_server;

	if (g->m->host.file_server_was_stopped)
		return " was stopped (T)";
	switch (s->state) {
	case 'D':
		return " waited itself (D) and did not answer";
	case 'Z':
	case 'X':
		return " had ended (Z) and did not answer";
	default:
		return " did not answer";
	}
}

static void say(const struct graph *g, const struct node *n, struct text *t)
{
	const struct record_file_server *s = &g->m->host.file_server;

	(void)n;
	if (!s->present || (!s->pid && !*s->source)) {
		text_add(t, "a file server did not answer; which one is not known");
		return;
	}
	text_add(t, s->basis == RECORD_BASIS_inferred ? "probably " : "");
	add_server(g, t);
	text_add(t, s->pid && *s->source ? "," : "");
	text_add(t, what_it_did(g));
}

static void add_parts(const struct graph *g, const struct node *n, struct record_verdict *v)
{
	const struct record_file_server *s = &g->m->host.file_server;
	struct record_verdict_part *part;
	struct text t;

	(void)n;
	if (!s->present || (!s->pid && !*s->source))
		return;
	part = words_add_part(v, RECORD_WHAT_cause,
		s->basis == RECORD_BASIS_inferred ? RECORD_BASIS_inferred : RECORD_BASIS_measured,
		&t);
	if (!part)
		return;
	add_server(g, &t);
	text_add(&t, s->pid && *s->source ? "," : "");
	text_add(&t, what_it_did(g));
	part->pid = s->pid;
	text_copy(part->comm, sizeof(part->comm), s->comm);
}

const struct node_kind node_server = {
	.name = "file server",
	.follow = follow,
	.class = RECORD_CLASS_waiting,
	.judge = judge,
	.say = say,
	.add_parts = add_parts,
	.waited_for = " for it",
};
