/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who has to answer about files: a process behind FUSE, a listener, auditd, or another host. */
#include <string.h>

#include "verdict/words.h"

/* index is the first group that waits for it. */
static const struct model_server *server_of(const struct graph *g, const struct node *n)
{
	static const struct model_server unknown;
	const struct model_server *s =
		model_servers_find(&g->m->host.servers, &g->m->waits.groups[n->index]);

	return s ? s : &unknown;
}

/* That waited longest for it in this incident: index may be of what has hung since long before. */
static const struct model_wait *longest_of(const struct graph *g, const struct node *n)
{
	const struct model_waits *waits = &g->m->waits;
	const struct model_wait *longest = NULL;

	for (uint32_t i = 0; i < waits->groups_count; i++)
		if (g->of_group[i] == n &&
			(!longest || waits->groups[i].longest_ns > longest->longest_ns))
			longest = &waits->groups[i];
	return longest ? longest : &waits->groups[n->index];
}

/*
 * Of an open() it is not known on which file system it waits: where only one has such waits, it is
 * that. NULL: it is known, or there are others.
 */
static struct node *follow_unknown(struct graph *g, const struct node *n)
{
	const struct model_wait *w = &g->m->waits.groups[n->index];
	struct node *only = NULL;

	for (uint32_t i = 0; i < g->count && !model_has_number(w->dev); i++) {
		struct node *other = &g->nodes[i];

		if (other == n || other->kind != NODE_server ||
			g->m->waits.groups[other->index].cause != w->cause)
			continue;
		if (only)
			return NULL;
		only = other;
	}
	return only;
}

/* Those of FUSE are processes here, which may wait themselves. */
static struct node *follow(struct graph *g, struct node *n)
{
	const struct model_wait *w = longest_of(g, n);
	const struct model_server *s = server_of(g, n);

	if (s->found.pid)
		return graph_of_process(g, s->found.pid,
			model_span_to(w->start_ns + w->longest_ns, w->longest_ns));
	return follow_unknown(g, n);
}

static void judge(struct graph *g, struct node *n)
{
	const struct model_server *s = server_of(g, n);

	if (s->found.basis == RECORD_BASIS_inferred)
		n->basis = RECORD_BASIS_inferred;
}

/* What others than file systems are asked for; NULL: it is a file system. */
static const char *duty_of(const struct graph *g, const struct node *n)
{
	switch (g->m->waits.groups[n->index].cause) {
	case RECORD_CAUSE_access_check:
		return "has to allow files to be opened";
	case RECORD_CAUSE_audit:
		return "takes the audit records";
	default:
		return NULL;
	}
}

/* Other mounts of its host at which threads wait. */
static unsigned int count_mounts(const struct graph *g, const struct node *n)
{
	const struct model_waits *waits = &g->m->waits;
	unsigned int count = 0;

	for (uint32_t i = 0; i < waits->groups_count; i++) {
		const struct record_dev dev = waits->groups[i].dev;
		bool is_new = g->of_group[i] == n && model_has_number(dev) &&
			!record_dev_is_same(dev, server_of(g, n)->found.dev);

		for (uint32_t k = 0; k < i && is_new; k++)
			is_new = g->of_group[k] != n ||
				!record_dev_is_same(dev, waits->groups[k].dev);
		count += is_new;
	}
	return count;
}

/* "sshfs (pid 7), which serves host:/data on /srv,", "clamd (pid 9), which has to allow ...," */
static void add_server(const struct graph *g, const struct node *n, struct text *t)
{
	const struct record_file_server *s = &server_of(g, n)->found;
	const struct model_who who = model_who_of(s->pid, s->pid, s->comm);
	const char *duty = duty_of(g, n);
	const unsigned int others = duty ? 0 : count_mounts(g, n);

	if (s->pid)
		words_add_who(t, &who);
	if (duty)
		text_addf(t, "%s %s", s->pid ? ", which" : "a program that", duty);
	else if (*s->source)
		text_addf(t, "%s%s on %s", s->pid ? ", which serves " : "", s->source,
			*s->mount ? s->mount : "a mount");
	if (others)
		text_addf(t, " and %u other mount%s of its host", others, others > 1 ? "s" : "");
	text_add(t, s->pid && (duty || *s->source) ? "," : "");
}

static const char *what_it_did(const struct model_server *s)
{
	if (s->was_stopped)
		return " was stopped by a signal or a debugger";
	switch (s->found.state) {
	case 'D':
		return " waited itself (D) and did not answer";
	case 'Z':
	case 'X':
		return " had ended (Z) and did not answer";
	default:
		return " did not answer";
	}
}

static bool is_known(const struct graph *g, const struct node *n)
{
	const struct model_server *s = server_of(g, n);

	return s->found.pid || *s->found.source || duty_of(g, n);
}

static void say(const struct graph *g, const struct node *n, struct text *t)
{
	const struct model_server *s = server_of(g, n);

	if (!is_known(g, n)) {
		text_add(t, "a file server did not answer; which one is not known");
		return;
	}
	text_add(t, s->found.basis == RECORD_BASIS_inferred ? "probably " : "");
	add_server(g, n, t);
	text_add(t, what_it_did(s));
	text_add(t, !s->found.pid && duty_of(g, n) ? "; which one is not known" : "");
}

static void add_parts(const struct graph *g, const struct node *n, struct record_verdict *v)
{
	const struct model_server *s = server_of(g, n);
	struct record_verdict_part *part;
	struct text t;

	if (!is_known(g, n))
		return;
	part = words_add_part(v, RECORD_WHAT_cause,
		s->found.basis == RECORD_BASIS_inferred ? RECORD_BASIS_inferred
							: RECORD_BASIS_measured,
		&t);
	if (!part)
		return;
	add_server(g, n, &t);
	text_add(&t, what_it_did(s));
	part->pid = s->found.pid;
	text_copy(part->comm, sizeof(part->comm), s->found.comm);
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
