/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which rule holds, of which device, who is the culprit and who the victims. */
#include "verdict/verdict.h"

#include <string.h>

#include "util/cleanup.h"
#include "verdict/rules.h"

/* Whoever has at least half is named alone. */
#define MOST_PCT 50

static bool load_is_known(const struct verdict_device *d)
{
	return d->load[VERDICT_BY_THREAD].count > 0 || d->load[VERDICT_BY_PROCESS].count > 0;
}

/*
 * Of several devices with the same trouble. A device mapper has no requests of its own at the block layer, so
 * the disk below it is judged, which knows whose they are. Of a loop device and the one below both have: to
 * blame, the upper one is better, for it knows who asked; else the lower one is where the trouble comes from.
 */
static bool is_better(const struct verdict_device *a, const struct verdict_device *b, bool blames)
{
	const uint64_t keys[][2] = {
		{ a->has_totals, b->has_totals },
		{ blames && load_is_known(a), blames && load_is_known(b) },
		{ blames ? verdict_waited_ns(a) : 0, blames ? verdict_waited_ns(b) : 0 },
		{ !verdict_is_stacked(a), !verdict_is_stacked(b) },
		{ a->silent_ns, b->silent_ns },
		{ verdict_waited_ns(a), verdict_waited_ns(b) },
		{ a->busy.ns, b->busy.ns },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(keys); i++)
		if (keys[i][0] != keys[i][1])
			return keys[i][0] > keys[i][1];
	return false;
}

static const struct verdict_device *find_device(const struct verdict_facts *f,
	const struct verdict_rule *rule)
{
	const struct verdict_device *best = NULL;

	for (uint32_t i = 0; i < f->devices_count; i++) {
		const struct verdict_device *d = &f->devices[i];

		if (rule->device_holds(f, d) && (!best || is_better(d, best, rule->blames)))
			best = d;
	}
	return best;
}

static void find_rule(const struct verdict_facts *f, struct verdict_finding *v)
{
	for (const struct verdict_rule *rule = verdict_rules;; rule++) {
		v->rule = rule;
		if (rule->host_holds && rule->host_holds(f, &v->wait))
			return;
		v->device = rule->device_holds ? find_device(f, rule) : NULL;
		if (v->device)
			return;
	}
}

static bool has_most(const struct verdict_load *load)
{
	return load->count > 0 && load->share_pct >= MOST_PCT;
}

static int32_t leader_of(const struct verdict_sql *sql, int32_t tid)
{
	return sql ? sql->leader_of(sql->userdata, tid) : tid;
}

/* Threads that work for one statement have what it moves together; each may have less than half. */
static void find_team(struct verdict_finding *v, const struct verdict_sql *sql)
{
	const struct verdict_load *first = &v->device->load[VERDICT_BY_THREAD];
	int32_t leader = leader_of(sql, first->who.tid);
	struct verdict_load team = { .who = first->who };

	/* One that is not the first is a backend of PostgreSQL, a process of one thread. */
	if (leader != first->who.tid)
		team.who.pid = team.who.tid = leader;
	for (uint32_t i = 0; i < v->f->shares_count; i++) {
		const struct verdict_share *share = &v->f->shares[i];

		if (share->device != v->device - v->f->devices || leader_of(sql, share->tid) != leader)
			continue;
		team.count++;
		team.requests += share->requests;
		team.bytes += share->bytes;
		team.share_pct += (double)share->share_pct;
		v->leader_moved |= share->tid == leader;
	}
	if (team.count < 2 || !has_most(&team))
		return;
	v->team = team;
	v->team_workers = team.count - v->leader_moved;
	v->culprit = &v->team;
	v->culprit_by = VERDICT_BY_THREAD;
	v->culprit_is_most = true;
}

/*
 * Whoever has most of the bytes, a thread rather than its process. Of a load that many share the first program
 * is named: a journal or a worker of the kernel with more than that works for them.
 */
static void find_culprit(struct verdict_finding *v, const struct verdict_sql *sql)
{
	static const struct {
		enum verdict_by by;
		bool with_most;
	} order[] = {
		{ VERDICT_BY_THREAD, true },
		{ VERDICT_BY_PROCESS, true },
		{ VERDICT_BY_PROGRAM, false },
		{ VERDICT_BY_PROCESS, false },
		{ VERDICT_BY_THREAD, false },
	};
	const struct verdict_load *load = v->device->load;

	if (has_most(&load[VERDICT_BY_FILE]))
		v->file = v->device->file;
	find_team(v, sql);
	for (unsigned int i = 0; i < ARRAY_SIZE(order) && !v->culprit; i++) {
		const struct verdict_load *candidate = &load[order[i].by];

		if (candidate->count == 0 || (order[i].with_most && !has_most(candidate)))
			continue;
		v->culprit = candidate;
		v->culprit_by = order[i].by;
		v->culprit_is_most = has_most(candidate);
	}
}

static bool is_class(const struct verdict_finding *v, const char *class_name)
{
	return strcmp(v->rule->class_name, class_name) == 0;
}

/* Or works for the same statement. */
static bool is_culprit(const struct verdict_finding *v, const struct verdict_sql *sql,
	const struct verdict_thread *t)
{
	const struct verdict_who *culprit = &v->culprit->who;

	if (v->culprit_by != VERDICT_BY_THREAD)
		return t->pid == culprit->pid;
	return t->tid == culprit->tid || leader_of(sql, t->tid) == v->culprit_leader;
}

static bool is_victim(const struct verdict_finding *v, const struct verdict_sql *sql,
	const struct verdict_thread *t)
{
	if (t->tid == 0 || t->kernel || (v->culprit_is_most && is_culprit(v, sql, t)))
		return false;
	if (is_class(v, "unanswered"))
		return verdict_is_of_server(t, v->silent);
	if (v->device)
		return t->device == v->device - v->f->devices;
	return v->wait == VERDICT_WAIT_COUNT || t->wait == v->wait;
}

static void find_victims(struct verdict_finding *v, const struct verdict_sql *sql)
{
	/* Once: each look goes over all sessions of all targets. */
	if (v->culprit)
		v->culprit_leader = leader_of(sql, v->culprit->who.tid);
	for (unsigned int i = 0; i < VERDICT_THREADS_MAX; i++) {
		const struct verdict_thread *t = &v->f->threads[i];
		uint64_t ns = v->device ? t->device_ns : t->longest_ns;

		if (!is_victim(v, sql, t))
			continue;
		v->victims++;
		if (ns <= v->victims_longest_ns)
			continue;
		v->victims_longest_ns = ns;
		v->first_victim = t;
	}
}

void verdict_decide(const struct verdict_facts *f, const struct verdict_sql *sql,
	struct record_verdict *ret_verdict)
{
	struct verdict_finding v = { .f = f, .file = "" };

	find_rule(f, &v);
	v.silent = verdict_silent_database(f);
	if (v.rule->blames)
		find_culprit(&v, sql);
	find_victims(&v, sql);
	memset(ret_verdict, 0, sizeof(*ret_verdict));
	verdict_say(&v, sql, ret_verdict);
}
