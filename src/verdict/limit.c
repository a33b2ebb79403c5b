/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What keeps threads from running or from sending I/O: limits, a debugger, the freezer. */
#include <inttypes.h>
#include <string.h>

#include "verdict/words.h"

/* A limit of I/O that no sample showed: index is the disk. */

static void say_io_limit(const struct graph *g, const struct node *n, struct text *t)
{
	text_add(t, "a limit of its control group held back the I/O of ");
	words_add_who(t, &n->victims.who);
	if (n->index >= 0) {
		text_add(t, " on ");
		words_add_disk(t, g->m, n->index);
	}
}

const struct node_kind node_io_limit = {
	.name = "I/O limit",
	.class = RECORD_CLASS_throttled,
	.say = say_io_limit,
};

/* CPUs: index is the limit; -1: the host has too few. */

/* A tenant may be held back all the time and nobody minds: the rule cpu_limit fires for more. */
static bool is_by_design(const struct graph *g, const struct model_cpu_limit *l)
{
	return strcmp(g->m->trigger.rule, "cpu_limit") != 0 &&
		(double)l->held_back_ns < TROUBLE_HELD_BACK * l->wanted_ns;
}

static void find_cpus(struct graph *g)
{
	const struct model_host *h = &g->m->host;
	const struct model_cpu_shortage *s = &h->cpu_shortage;
	struct node *n;

	for (uint32_t i = 0; i < h->cpu_limits_count; i++) {
		const struct model_cpu_limit *l = &h->cpu_limits[i];
		/* As of one thread: how many could have run does not say how many had to. */
		uint64_t ns = l->held_back_ns < l->at_limit_ns ? l->held_back_ns : l->at_limit_ns;

		if (l->held_back_ns < TROUBLE_NS || l->at_limit_ns < SILENT_NS)
			continue;
		n = graph_get(g, NODE_cpu, (int)i);
		if (!n)
			return;
		n->extra = (struct victims){ .waited_ns = ns, .longest_ns = ns, .disk = -1 };
		/* What is over by now keeps nobody waiting any more. */
		n->is_symptom = is_by_design(g, l) || !l->is_since;
	}
	if (s->ns < SILENT_NS || !(n = graph_get(g, NODE_cpu, -1)))
		return;
	/* Nothing shows for whom the CPUs were too few, so whatever has victims comes first. */
	n->basis = RECORD_BASIS_inferred;
	n->is_symptom = true;
}

static void say_cpu(const struct graph *g, const struct node *n, struct text *t)
{
	const struct model_cpu_shortage *s = &g->m->host.cpu_shortage;
	const struct model_cpu_limit *l;

	if (n->index < 0) {
		text_add(t, "the CPUs were too few for ");
		words_add_time(t, s->ns);
		text_addf(t, ": up to %" PRIu64 " threads could run on ", s->running_max);
		text_add_count(t, s->cpus, "CPU", "CPUs");
		return;
	}
	l = &g->m->host.cpu_limits[n->index];
	text_addf(t, "control group %s used up its limit of %.2f CPUs for ", l->path,
		l->limit_cpus);
	words_add_time(t, l->at_limit_ns);
	text_add(t, l->is_since ? "" : " before tracing began");
	text_add(t, ", so its threads could not run for ");
	words_add_pct(t, 100 * (double)l->held_back_ns / l->wanted_ns);
	text_add(t, " of the CPU time that they wanted");
}

const struct node_kind node_cpu = {
	.name = "CPU",
	.find = find_cpus,
	.class = RECORD_CLASS_cpu,
	.say = say_cpu,
};

/* Stopped processes */

static void find_stopped(struct graph *g)
{
	const struct model_stopped *s = &g->m->host.stopped;
	struct node *n;

	if (!s->who.pid || s->longest_ns < STOPPED_NS || !(n = graph_get(g, NODE_stopped, 0)))
		return;
	n->extra = (struct victims){ .threads = s->threads,
		.waited_ns = s->in_incident_ns * (s->threads ? s->threads : 1),
		.longest_ns = s->longest_ns,
		.who = s->who,
		.disk = -1 };
}

static void say_stopped(const struct graph *g, const struct node *n, struct text *t)
{
	const struct model_stopped *s = &g->m->host.stopped;

	(void)n;
	if (s->tracer.pid) {
		text_add(t, "debugger ");
		words_add_who(t, &s->tracer);
		text_add(t, " stopped ");
		words_add_who(t, &s->who);
	} else {
		words_add_who(t, &s->who);
		text_add(t,
			*s->cgroup ? " was frozen" : " was stopped by a signal, such as SIGSTOP,");
	}
	text_add(t, " for at least ");
	words_add_time(t, s->longest_ns);
	if (*s->cgroup)
		text_addf(t, " with its control group %s, as by docker pause", s->cgroup);
}

/* Who debugs it stops it. */
static void add_stopped_parts(const struct graph *g, const struct node *n, struct record_verdict *v)
{
	const struct model_stopped *s = &g->m->host.stopped;
	struct record_verdict_part *part;
	struct text t;

	part = words_add_part(v, s->tracer.pid ? RECORD_WHAT_culprit : RECORD_WHAT_cause,
		RECORD_BASIS_measured, &t);
	if (!part)
		return;
	say_stopped(g, n, &t);
	words_set_who(part, s->tracer.pid ? &s->tracer : &s->who);
	part->threads = s->threads;
	part->longest_ns = s->longest_ns;
}

const struct node_kind node_stopped = {
	.name = "stopped process",
	.find = find_stopped,
	.class = RECORD_CLASS_stopped,
	.say = say_stopped,
	.add_parts = add_stopped_parts,
};
