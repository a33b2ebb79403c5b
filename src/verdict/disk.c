/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Disks: threads wait for what they have asked of one. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "verdict/words.h"
#include "util/cleanup.h"

static const struct model_disk *disk_of(const struct graph *g, const struct node *n)
{
	return &g->m->disks.list[n->index];
}

/* What is wrong with a disk is told even if nobody was seen to wait for it. */
static void find_disks(struct graph *g)
{
	for (int i = 0; i < (int)g->m->disks.count; i++)
		if (g->folded[i] == i && g->conditions[i] != CONDITION_NONE)
			graph_get(g, NODE_disk, i);
}

/* The thread of a loop device waits for the file system that its file is on. */
static struct node *follow(struct graph *g, struct node *n)
{
	const struct model_waits *waits = &g->m->waits;

	for (uint32_t i = 0; i < waits->groups_count; i++) {
		const struct model_wait *w = &waits->groups[i];

		if (w->is_kernel && w->cause == RECORD_CAUSE_frozen_file_system &&
			w->longest_ns >= TROUBLE_NS && w->disk >= 0 && w->disk != n->index &&
			model_disks_is_on(&g->m->disks, n->index, w->disk)) {
			n->is_link_inferred = true;
			return graph_get(g, NODE_frozen, w->disk);
		}
	}
	return NULL;
}

/* Whoever loads a disk that has time left has done nothing to those whose limit is used up. */
static bool is_in_limited_group(const struct graph *g, const struct node *n)
{
	const struct model_waits *waits = &g->m->waits;
	const uint64_t limited = condition_find_io_limit(g->m, n->index)->cgroup;

	if (!limited || n->culprit->cgroup)
		return limited && n->culprit->cgroup == limited;
	/* Kernel threads sent it. */
	for (uint32_t i = 0; i < waits->groups_count; i++)
		if (waits->groups[i].cgroup == limited &&
			waits->groups[i].who.pid == n->culprit->who.pid)
			return true;
	return false;
}

static void judge(struct graph *g, struct node *n)
{
	static const enum record_class classes[] = {
		[CONDITION_HUNG] = RECORD_CLASS_hung,
		[CONDITION_SUSPENDED] = RECORD_CLASS_throttled,
		[CONDITION_MEMORY] = RECORD_CLASS_memory,
		[CONDITION_LIMITED] = RECORD_CLASS_throttled,
		[CONDITION_SLOW] = RECORD_CLASS_slow,
		[CONDITION_SATURATED] = RECORD_CLASS_saturated,
		[CONDITION_AT_TIMES] = RECORD_CLASS_slow,
		[CONDITION_DELAYED] = RECORD_CLASS_throttled,
		[CONDITION_NONE] = RECORD_CLASS_unknown,
	};
	const enum condition c = g->conditions[n->index];

	n->class = classes[c];
	/* The limit itself is not visible, only that the time was spent before the queue. */
	if (c == CONDITION_DELAYED)
		n->basis = RECORD_BASIS_inferred;
	if ((c != CONDITION_SATURATED && c != CONDITION_LIMITED) ||
		g->culprits_count == GRAPH_CULPRITS_MAX)
		return;
	n->culprit = &g->culprits[g->culprits_count++];
	blame(g->m, n->index, n->culprit);
	if (c == CONDITION_LIMITED && !is_in_limited_group(g, n)) {
		n->culprit = NULL;
		g->culprits_count--;
		return;
	}
	if (n->culprit->has_half && n->culprit->is_probable)
		n->basis = RECORD_BASIS_inferred;
}

/* Sentences */

static void add_disk(const struct graph *g, const struct node *n, struct text *t)
{
	words_add_disk(t, g->m, n->index);
}

static int idle_below(const struct graph *g, const struct node *n)
{
	int below = model_disks_find_below(&g->m->disks, n->index, g->m->samples);

	return below >= 0 && model_disk_util_pct(&g->m->disks.list[below]) < HALF_PCT ? below : -1;
}

/* LVM gives each volume a name with a dash, and this one to what is below those of a thin pool. */
static bool is_thin(const struct graph *g, int disk)
{
	static const char pool[] = "-tpool";
	const struct model_disks *disks = &g->m->disks;

	for (uint32_t i = 0; i < disks->stack_count; i++) {
		const struct model_stack *below = &disks->stack[i];
		const size_t len = strlen(below->label);

		if (len > strlen(pool) && strcmp(below->label + len - strlen(pool), pool) == 0 &&
			model_disks_name_is_on(disks, disks->list[disk].name, below->name))
			return true;
	}
	return false;
}

static void say_hung(const struct graph *g, const struct node *n, struct text *t)
{
	const struct model_disk *d = disk_of(g, n);
	int below = idle_below(g, n);

	add_disk(g, n, t);
	text_add(t, " completed nothing for ");
	words_add_time(t, d->no_completion_ns);
	text_add(t, " with ");
	text_add_count(t, d->no_completion_in_flight, "request", "requests");
	text_add(t, " in flight");
	if (below >= 0)
		text_addf(t, ", none of which reached disk %s below it",
			words_disk_name(g->m, below));
	if (is_thin(g, n->index))
		text_add(t, ", as when its thin pool has no space left");
	else if (below >= 0 && strncmp(d->name, "dm-", 3) == 0 && !strchr(d->label, '-'))
		text_add(t, ", as when a multipath device has lost all its paths");
}

/* The state is read with each sample. */
static void say_suspended(const struct graph *g, const struct node *n, struct text *t)
{
	text_addf(t, "all I/O on volume %s stopped for about ", words_disk_name(g->m, n->index));
	words_add_time(t, disk_of(g, n)->suspended_ns);
	text_add(t,
		", because device mapper had suspended it, as lvcreate --snapshot and lvextend do");
}

static void add_exchanged(const struct model_memory *m, struct text *t)
{
	const char *separator = "";

	if (m->reread_bytes > 0) {
		text_add(t, "read ");
		record_add_size(t, m->reread_bytes);
		text_add(t, " again that had been evicted");
		separator = " and ";
	}
	if (m->swapped_in_bytes + m->swapped_out_bytes > 0) {
		text_addf(t, "%sswapped ", separator);
		record_add_size(t, m->swapped_in_bytes + m->swapped_out_bytes);
	}
}

static void say_memory(const struct graph *g, const struct node *n, struct text *t)
{
	struct model_memory memory = { 0 };

	condition_find_memory(g->m, n->index, &memory);
	if (*memory.path) {
		text_addf(t, "control group %s ran at its memory limit of ", memory.path);
		record_add_size(t, memory.limit_bytes);
	} else {
		text_add(t,
			condition_host_evicted(g->m)
				? "the host was short of memory"
				: "probably a control group that is not watched was short of memory");
	}
	text_add(t, ", so it ");
	add_exchanged(&memory, t);
	text_add(t, ": ");
	words_add_pct(t, condition_evicted_pct(g->m, n->index, &memory));
	text_add(t, " of what ");
	add_disk(g, n, t);
	text_add(t, " did in ");
	words_add_time(t, disk_of(g, n)->since_ns);
}

static void say_limited(const struct graph *g, const struct node *n, struct text *t)
{
	const struct model_io_limit *l = condition_find_io_limit(g->m, n->index);

	text_addf(t, "control group %s", l->path);
	if (n->culprit && n->culprit->has_half && n->culprit->kind != CULPRIT_UNIT) {
		text_add(t, " (");
		words_add_culprit(t, n->culprit, false);
		text_add(t, ")");
	}
	text_add(t, " used up its limit of ");
	record_add_io_limit(t, l->kind, l->per_s);
	text_add(t, " on ");
	words_add_disk(t, g->m, l->disk);
	text_add(t, " for ");
	words_add_time(t, l->at_limit_ns);
	text_add(t, "; the disk itself had time left");
}

/* Requests that wait behind a flush take long, too: then it is what the others wait for. */
static bool has_long_flushes(const struct model_disk *d, enum model_kind kind)
{
	double await_ms = model_disk_await_ms(d, MODEL_FLUSH);

	return kind != MODEL_FLUSH && await_ms > model_disk_await_ms(d, kind) &&
		d->busy.ticks_ns[MODEL_FLUSH] * LONG_FLUSHES_PART >= d->busy.ticks_ns[kind];
}

static void add_rate(struct text *t, double requests)
{
	char number[16];

	snprintf(number, sizeof(number), requests < 10 ? "%.2g" : "%.0f", requests);
	text_addf(t, "with only %s request%s a second", number,
		strcmp(number, "1") == 0 ? "" : "s");
}

static void add_ms(struct text *t, double ms)
{
	text_addf(t, ms >= 10 || ms <= 0 ? "%.0f ms" : ms >= 1 ? "%.1f ms" : "%.2f ms", ms);
}

static void say_slow(const struct graph *g, const struct node *n, struct text *t)
{
	static const char *const kinds[] = { "read", "write", "discard", "flush" };
	const struct model_disk *d = disk_of(g, n);
	const enum model_kind most = model_disk_main_kind(d);
	const enum model_kind kind = has_long_flushes(d, most) ? MODEL_FLUSH : most;
	const double await_ms = model_disk_await_ms(d, kind);
	double requests, bytes;
	int below = idle_below(g, n);

	model_disk_rates(d, &requests, &bytes);
	add_disk(g, n, t);
	text_add(t, " was slow for ");
	words_add_time(t, d->busy.ns);
	text_addf(t, ": each %s took ", kinds[kind]);
	add_ms(t, isnan(await_ms) ? model_disk_await_max_ms(d) : await_ms);
	text_add(t, ", ");
	if (condition_is_slower_than_before(d))
		text_addf(t,
			"%.0f times as long as in the minute before, though no more was asked of it",
			condition_times_slower(d));
	else
		add_rate(t, requests);
	if (below >= 0)
		text_addf(t, ", while disk %s below it was nearly idle",
			words_disk_name(g->m, below));
}

static void say_at_times(const struct graph *g, const struct node *n, struct text *t)
{
	add_disk(g, n, t);
	text_add(t, " took up to ");
	words_add_time(t, disk_of(g, n)->device.max_ns);
	text_add(t, " for a request, although it was not busy all the time");
}

static void say_delayed(const struct graph *g, const struct node *n, struct text *t)
{
	text_add(t, "a cgroup limit or suspended volume above ");
	add_disk(g, n, t);
	text_add(t, " (at most ");
	words_add_pct(t, model_disk_util_pct(disk_of(g, n)));
	text_add(t, " busy) probably held its I/O back");
}

/* Kernel threads did it, for programs. */
static void say_kernel(const struct graph *g, const struct node *n, struct text *t)
{
	const bool wrote = n->culprit->kind == CULPRIT_WRITE_BACK;

	words_add_culprit(t, n->culprit, false);
	text_add(t, wrote ? " wrote back old pages to " : " loaded ");
	add_disk(g, n, t);
	text_add(t, " for ");
	words_add_time(t, disk_of(g, n)->busy.ns);
	text_add(t, " (");
	words_add_pct(t, n->culprit->pct);
	text_addf(t, " of its time); %s is not known",
		wrote ? "which program had written them" : "for which program");
}

static void say_nobody(const struct graph *g, const struct node *n, struct text *t)
{
	const struct culprit *c = n->culprit;

	add_disk(g, n, t);
	text_add(t, " was at its limit for ");
	words_add_time(t, disk_of(g, n)->busy.ns);
	if (!c || c->kind == CULPRIT_NOBODY) {
		text_add(t, "; who loaded it is not known");
		return;
	}
	text_add(t,
		c->pct + c->untraced_pct >= HALF_PCT ? ". As far as is known, "
						     : "; no program did half of its work: ");
	words_add_culprit(t, c, g->with_statement);
	text_add(t, " did most, ");
	words_add_pct(t, c->pct);
}

static void add_file(struct text *t, const struct culprit *c)
{
	if (!*c->file)
		return;
	text_add(t, ", mostly for ");
	if (*c->relation)
		text_add(t, c->relation);
	else
		words_add_path_end(t, c->file);
}

static void say_saturated(const struct graph *g, const struct node *n, struct text *t)
{
	const struct culprit *c = n->culprit;

	if (c && c->kind >= CULPRIT_WRITE_BACK && c->pct >= HALF_PCT) {
		say_kernel(g, n, t);
	} else if (!c || !c->has_half) {
		say_nobody(g, n, t);
	} else {
		words_add_culprit(t, c, g->with_statement);
		text_add(t, c->is_probable || c->is_likely ? " probably took " : " took ");
		words_add_pct(t, c->pct);
		text_add(t, " of ");
		add_disk(g, n, t);
		text_add(t, " for ");
		words_add_time(t, disk_of(g, n)->busy.ns);
		add_file(t, c);
	}
}

static void remark(const struct graph *g, const struct node *n, struct text *t)
{
	const struct culprit *c = n->culprit;
	int below = idle_below(g, n);

	if (c && c->has_half && c->untraced_pct >= NAMED_PCT) {
		text_add(t, "who took another ");
		words_add_pct(t, c->untraced_pct);
		text_add(t, " is not known: it was sent before tracing began");
	} else if (g->conditions[n->index] == CONDITION_SATURATED && below >= 0) {
		/* A limit, encryption or the copying for a snapshot held requests back. */
		text_addf(t, "disk %s below %s was nearly idle", words_disk_name(g->m, below),
			words_disk_name(g->m, n->index));
	}
}

static void say(const struct graph *g, const struct node *n, struct text *t)
{
	switch (g->conditions[n->index]) {
	case CONDITION_HUNG:
		say_hung(g, n, t);
		break;
	case CONDITION_SUSPENDED:
		say_suspended(g, n, t);
		break;
	case CONDITION_MEMORY:
		say_memory(g, n, t);
		break;
	case CONDITION_LIMITED:
		say_limited(g, n, t);
		break;
	case CONDITION_SLOW:
		say_slow(g, n, t);
		break;
	case CONDITION_SATURATED:
		say_saturated(g, n, t);
		break;
	case CONDITION_AT_TIMES:
		say_at_times(g, n, t);
		break;
	default:
		say_delayed(g, n, t);
		break;
	}
}

/* Parts */

/*
 * "util 100 %, r_await 296 ms, queue depth 64": means over the time in which it was busy, named as
 * by iostat(1); of the awaits that of the requests that took most of the time. Without such a time,
 * the highest in a sample.
 */
static void add_figures(struct text *t, const struct model_disk *d)
{
	static const char *const awaits[] = { "r_await ", "w_await ", "d_await ", "f_await " };
	const enum model_kind kind = model_disk_main_kind(d);
	const double queue = model_disk_queue(d), await_ms = model_disk_await_ms(d, kind);

	text_add(t, "util ");
	if (isnan(await_ms)) {
		words_add_pct(t, d->util_max_pct);
		text_add(t,
			d->read_await_max_ms >= d->write_await_max_ms ? ", r_await "
								      : ", w_await ");
		add_ms(t, model_disk_await_max_ms(d));
	} else {
		words_add_pct(t, 100 * d->busy.util_ns / (double)d->busy.ns);
		text_addf(t, ", %s", awaits[kind]);
		add_ms(t, await_ms);
		if (has_long_flushes(d, kind)) {
			text_add(t, ", f_await ");
			add_ms(t, model_disk_await_ms(d, MODEL_FLUSH));
		}
	}
	if (!isnan(queue))
		text_addf(t, queue >= 9.95 ? ", queue depth %.0f" : ", queue depth %.1f", queue);
}

static void add_disk_part(const struct graph *g, const struct node *n, struct record_verdict *v)
{
	const struct model_disk *d = disk_of(g, n);
	struct text t;
	struct record_verdict_part *part =
		words_add_part(v, RECORD_WHAT_device, RECORD_BASIS_measured, &t);

	if (!part)
		return;
	text_addf(&t, *d->label ? "%s (%s): " : "%s%s: ", *d->label ? d->label : "", d->name);
	if (d->is_sampled) {
		add_figures(&t, d);
		part->util_pct = d->util_max_pct;
		part->await_ms = model_disk_await_max_ms(d);
		part->queue = model_disk_queue(d);
	} else {
		text_add(&t, "not sampled");
	}
	if (d->no_completion_ns >= TROUBLE_NS) {
		text_add(&t, ", no completions for at least ");
		record_add_duration(&t, d->no_completion_ns);
		part->longest_ns = d->no_completion_ns;
	}
	if (!d->has_totals)
		return;
	text_add(&t, ", ");
	text_add_count(&t, d->requests, "request", "requests");
	text_add(&t, " that waited in the queue up to ");
	record_add_duration(&t, d->queue.max_ns);
	text_add(&t, " and took the device up to ");
	record_add_duration(&t, d->device.max_ns);
	part->requests = d->requests;
	part->bytes = d->read_bytes + d->write_bytes;
}

/* "2130 reads, 3 writes, 187.9 MiB" */
static void add_work(struct text *t, const struct culprit *c)
{
	static const char *const one[] = { "read", "write", "discard", "flush" };
	static const char *const many[] = { "reads", "writes", "discards", "flushes" };
	const char *separator = "";

	for (unsigned int i = 0; i < MODEL_KINDS; i++) {
		if (c->requests[i] == 0)
			continue;
		text_add(t, separator);
		text_add_count(t, c->requests[i], one[i], many[i]);
		separator = ", ";
	}
	if (c->bytes == 0)
		return;
	text_add(t, separator);
	record_add_size(t, c->bytes);
}

static void add_culprit_part(const struct node *n, struct record_verdict *v)
{
	const struct culprit *c = n->culprit;
	struct record_verdict_part *part;
	struct text t;

	if (!c || c->kind == CULPRIT_NOBODY)
		return;
	/* A limit holds requests back until kernel threads send them. */
	if (n->class == RECORD_CLASS_throttled && c->kind >= CULPRIT_WRITE_BACK)
		return;
	part = words_add_part(v, c->has_half ? RECORD_WHAT_culprit : RECORD_WHAT_largest,
		c->is_probable || c->kind >= CULPRIT_WRITE_BACK ? RECORD_BASIS_inferred
								: RECORD_BASIS_measured,
		&t);
	if (!part)
		return;
	words_add_culprit(&t, c, false);
	text_add(&t, ": ");
	words_add_pct(&t, c->pct);
	text_add(&t, " of the disk's time, ");
	add_work(&t, c);
	if (c->is_by_counters)
		text_add(&t, ", most of it before tracing began, by its own counters");
	if (c->through.pid)
		text_addf(&t, ", through kernel thread %s", c->through.comm);
	if (*c->file) {
		text_add(&t, ", mostly for ");
		words_add_path(&t, c->file);
	}
	words_set_who(part, &c->who);
	if (c->kind != CULPRIT_THREAD && c->kind != CULPRIT_STATEMENT)
		part->tid = 0;
	text_copy(part->path, sizeof(part->path), c->file);
	text_copy(part->relation, sizeof(part->relation), c->relation);
	part->share_pct = c->pct;
	part->bytes = c->bytes;
	for (unsigned int i = 0; i < MODEL_KINDS; i++)
		part->requests += c->requests[i];
}

static void add_statement_part(const struct node *n, struct record_verdict *v)
{
	const struct culprit *c = n->culprit;
	const struct record_io_statement *s = c ? &c->statement : NULL;
	struct record_verdict_part *part;
	struct text t;

	if (!s || !s->present)
		return;
	part = words_add_part(v, RECORD_WHAT_statement,
		c->is_likely || c->is_probable ? RECORD_BASIS_inferred : RECORD_BASIS_measured, &t);
	if (!part)
		return;
	words_add_session(&t, s->user, s->connection_id);
	text_add(&t, " had run for ");
	record_add_duration(&t, s->elapsed_ns);
	if (*s->text) {
		text_add(&t, ": ");
		words_add_statement(&t, s->text, SIZE_MAX);
	}
	if (s->workers)
		text_addf(&t, "; %" PRIu32 " parallel workers", s->workers);
	if (s->io_workers)
		text_addf(&t, "; %" PRIu32 " I/O workers read mostly for it", s->io_workers);
	part->longest_ns = s->elapsed_ns;
}

/* A database that reads in threads of its own does not tell for which statement it reads. */
static void add_missing_part(const struct graph *g, const struct node *n, struct record_verdict *v)
{
	const struct culprit *c = n->culprit;
	const struct model_database *d =
		c ? model_sessions_find_server(&g->m->sessions, c->who.pid) : NULL;
	struct text t;

	if (!d || !c->has_half || c->statement.present || *c->role ||
		!words_add_part(v, RECORD_WHAT_missing, RECORD_BASIS_NONE, &t))
		return;
	text_add(&t, "no statement is known for the threads of the server that did it");
	if (*d->no_thread)
		text_addf(&t, "; of sessions it does not tell their threads (%s)", d->no_thread);
}

static void add_memory_part(const struct graph *g, const struct node *n, struct record_verdict *v)
{
	struct model_memory memory = { 0 };
	struct record_verdict_part *part;
	struct text t;

	if (g->conditions[n->index] != CONDITION_MEMORY)
		return;
	condition_find_memory(g->m, n->index, &memory);
	part = words_add_part(v, RECORD_WHAT_memory, RECORD_BASIS_measured, &t);
	if (!part)
		return;
	if (*memory.path)
		text_addf(&t, "%s ", memory.path);
	add_exchanged(&memory, &t);
	part->bytes = memory.reread_bytes + memory.swapped_in_bytes + memory.swapped_out_bytes;
	part->share_pct = condition_evicted_pct(g->m, n->index, &memory);
}

static void add_parts(const struct graph *g, const struct node *n, struct record_verdict *v)
{
	const struct model_disk *d = disk_of(g, n);

	v->dev = d->dev;
	text_copy(v->dev_name, sizeof(v->dev_name), d->name);
	add_disk_part(g, n, v);
	add_memory_part(g, n, v);
	add_culprit_part(n, v);
	add_statement_part(n, v);
	add_missing_part(g, n, v);
}

const struct node_kind node_disk = {
	.name = "disk",
	.find = find_disks,
	.follow = follow,
	.judge = judge,
	.say = say,
	.remark = remark,
	.add_parts = add_parts,
};
