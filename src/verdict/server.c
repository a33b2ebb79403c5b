/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who has to answer about files: a process behind FUSE, a listener, auditd, or another host. */
#include <string.h>

#include "verdict/words.h"

/* Those of FUSE are processes here, which may wait themselves. */
static struct node *follow(struct graph *g, struct node *n)
{
	const struct record_file_server *s = &g->m->host.file_server;
	struct node *next = s->present && s->pid ? graph_of_process(g, s->pid) : NULL;

	return next != n ? next : NULL;
}

static void judge(struct graph *g, struct node *n)
{
	if (g->m->host.file_server.basis == RECORD_BASIS_inferred)
		n->basis = RECORD_BASIS_inferred;
}

/* What others than file systems are asked for; NULL: it is a file system. */
static const char *duty_of(const struct record_file_server *s)
{
	switch (s->waits_for) {
	case RECORD_CAUSE_access_check:
		return "has to allow files to be opened";
	case RECORD_CAUSE_audit:
		return "takes the audit records";
	default:
		return NULL;
	}
}

/* "sshfs (pid 7), which serves host:/data on /srv,", "clamd (pid 9), which has to allow ...," */
static void add_server(const struct graph *g, struct text *t)
{
	const struct record_file_server *s = &g->m->host.file_server;
	const struct model_who who = model_who_of(s->pid, s->pid, s->comm);
	const char *duty = duty_of(s);

	if (s->pid)
		words_add_who(t, &who);
	if (duty)
		text_addf(t, "%s %s", s->pid ? ", which" : "a program that", duty);
	else if (*s->source)
		text_addf(t, "%s%s on %s", s->pid ? ", which serves " : "", s->source,
			*s->mount ? s->mount : "a mount");
	text_add(t, s->pid && (duty || *s->source) ? "," : "");
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
	if (!s->present || (!s->pid && !*s->source && !duty_of(s))) {
		text_add(t, "a file server did not answer; which one is not known");
		return;
	}
	text_add(t, s->basis == RECORD_BASIS_inferred ? "probably " : "");
	add_server(g, t);
	text_add(t, what_it_did(g));
	text_add(t, !s->pid && duty_of(s) ? "; which one is not known" : "");
}

static void add_parts(const struct graph *g, const struct node *n, struct record_verdict *v)
{
	const struct record_file_server *s = &g->m->host.file_server;
	struct record_verdict_part *part;
	struct text t;

	(void)n;
	if (!s->present || (!s->pid && !*s->source && !duty_of(s)))
		return;
	part = words_add_part(v, RECORD_WHAT_cause,
		s->basis == RECORD_BASIS_inferred ? RECORD_BASIS_inferred : RECORD_BASIS_measured,
		&t);
	if (!part)
		return;
	add_server(g, &t);
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
