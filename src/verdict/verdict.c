/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds what cost the victims most: the rule that holds, the device, the culprit and the victims.
 */
#include "verdict/verdict.h"

#include <string.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "verdict/culprit.h"
#include "verdict/devices.h"
#include "verdict/figures.h"
#include "verdict/rules.h"

/* Whoever loads a device waits for its own work: that counts little against others who wait. */
#define OWN_COST_DIVISOR 10
/* Other reasons would look the same, such as threads that wait for a CPU. */
#define INFERRED_COST_DIVISOR 10
/* A thread of the same process waited so long for the device: it may hold the lock meanwhile. */
#define HOLDER_NS (NSEC_PER_SEC / 4)
/* What else went wrong is worth a sentence when others waited so long for it. */
#define SECOND_NS NSEC_PER_SEC

static bool load_is_known(const struct verdict_device *d)
{
	return d->load[VERDICT_BY_THREAD].count > 0 || d->load[VERDICT_BY_PROCESS].count > 0;
}

/*
 * Which of two devices with the same trouble is judged. A device mapper device has no requests of
 * its own in the block layer, so the disk below it is judged, whose requests have an owner. A loop
 * device and the disk below it both have requests: a rule that blames takes the upper one, which
 * knows the process that asked; other rules take the lower one, where the trouble comes from.
 */
static bool is_better(const struct verdict_device *a, const struct verdict_device *b, bool blames)
{
	const uint64_t keys[][2] = {
		{ a->has_totals, b->has_totals },
		{ blames && load_is_known(a), blames && load_is_known(b) },
		{ blames ? verdict_waited_ns(a) : 0, blames ? verdict_waited_ns(b) : 0 },
		{ !verdict_is_stacked(a), !verdict_is_stacked(b) },
		{ a->no_completion_ns, b->no_completion_ns },
		{ verdict_waited_ns(a), verdict_waited_ns(b) },
		{ a->busy.ns, b->busy.ns },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(keys); i++)
		if (keys[i][0] != keys[i][1])
			return keys[i][0] > keys[i][1];
	return false;
}

static bool is_same_stack(const struct verdict_facts *f, const struct verdict_device *a,
	const struct verdict_device *b)
{
	return verdict_stands_on(f, a, b) || verdict_stands_on(f, b, a);
}

/* The first rule of the table that holds for the device; NULL: nothing is wrong with it. */
static const struct verdict_rule *rule_of(const struct verdict_facts *f,
	const struct verdict_device *d)
{
	for (const struct verdict_rule *rule = verdict_rules; rule->class != RECORD_CLASS_unknown;
		rule++)
		if (rule->device_holds && rule->device_holds(f, d))
			return rule;
	return NULL;
}

/* Whether another device of its stack says better what is wrong with both. */
static bool is_covered(const struct verdict_facts *f, const struct verdict_device *d,
	const struct verdict_rule *rule)
{
	for (uint32_t i = 0; i < f->devices_count; i++) {
		const struct verdict_device *other = &f->devices[i];
		const struct verdict_rule *others = other == d ? NULL : rule_of(f, other);

		if (!others || !is_same_stack(f, d, other))
			continue;
		if (others < rule || (others == rule && is_better(other, d, rule->blames)))
			return true;
	}
	return false;
}

static bool is_in_stack(const struct verdict_finding *v, const struct verdict_waiter *w)
{
	return w->device >= 0 && (v->stack & 1u << w->device);
}

static bool is_throttled(const struct verdict_finding *v, const struct verdict_waiter *w)
{
	return w->wait == VERDICT_WAIT_dirty && w->device >= 0 && (v->throttled & 1u << w->device);
}

/*
 * All writers share the pages that may be dirty. Whoever is slowed down although nothing is wrong
 * with its own disk waits for the disk behind: one that is written to, or where a writer is slowed
 * down, too.
 */
static uint32_t find_throttled(const struct verdict_finding *v)
{
	const struct verdict_facts *f = v->f;
	uint32_t devices = v->stack;
	bool is_dirty = v->device && v->device->since.write_bytes > v->device->since.read_bytes;

	for (unsigned int i = 0; i < VERDICT_WAITERS_MAX && !is_dirty; i++)
		is_dirty = f->waiters[i].tid != 0 && f->waiters[i].wait == VERDICT_WAIT_dirty &&
			is_in_stack(v, &f->waiters[i]);
	for (uint32_t i = 0; i < f->devices_count && is_dirty; i++)
		if (!rule_of(f, &f->devices[i]))
			devices |= 1u << i;
	return devices;
}

/* Whether a thread of the process waits for the device while this one waits for a lock. */
static bool holder_waits_for_device(const struct verdict_finding *v, const struct verdict_waiter *w)
{
	for (unsigned int i = 0; i < VERDICT_WAITERS_MAX; i++) {
		const struct verdict_waiter *holder = &v->f->waiters[i];

		/* A crowd of several processes may have threads of this one. */
		if (holder->tid == 0 || (holder->pid != w->pid && !holder->processes) ||
			holder->longest_ns < HOLDER_NS)
			continue;
		if (w->device < 0 && holder->wait == VERDICT_WAIT_device && is_in_stack(v, holder))
			return true;
		/* The lock of an inode is held by who writes to it. */
		if ((w->device < 0 || w->device == holder->device) && is_throttled(v, holder))
			return true;
	}
	return false;
}

/*
 * Of an open() it is not known which file system's journal it waits for: that of the others in the
 * same process.
 */
static bool waits_for_same_journal(const struct verdict_finding *v, const struct verdict_waiter *w)
{
	for (unsigned int i = 0; w->device < 0 && i < VERDICT_WAITERS_MAX; i++) {
		const struct verdict_waiter *other = &v->f->waiters[i];

		if (other->tid != 0 && (other->pid == w->pid || other->processes) &&
			other->wait == VERDICT_WAIT_journal && is_in_stack(v, other))
			return true;
	}
	return false;
}

static bool waits_for_device(const struct verdict_finding *v, const struct verdict_waiter *w)
{
	switch ((enum verdict_wait)w->wait) {
	case VERDICT_WAIT_frozen:
	case VERDICT_WAIT_cgroup:
	case VERDICT_WAIT_server:
	case VERDICT_WAIT_memory:
		/* The file is on the device, but the thread waited for something else. */
		return false;
	case VERDICT_WAIT_dirty:
		return is_throttled(v, w);
	case VERDICT_WAIT_lock:
		return !verdict_holder_runs(v->f, w) &&
			(is_in_stack(v, w) || holder_waits_for_device(v, w));
	case VERDICT_WAIT_journal:
		return is_in_stack(v, w) || waits_for_same_journal(v, w);
	default:
		return is_in_stack(v, w);
	}
}

/* Whether the thread waited for what the finding is about, be it as a victim or as the culprit. */
static bool is_concerned(const struct verdict_finding *v, const struct verdict_waiter *w)
{
	if (w->tid == 0 || w->kernel)
		return false;
	if (v->rule->class == RECORD_CLASS_full)
		return false;
	/* What threads of the host waited for is another matter. */
	if (verdict_is_queue(v) || verdict_is_mutex(v) || v->rule->class == RECORD_CLASS_failed ||
		v->rule->class == RECORD_CLASS_cpu || verdict_is_about_stopped(v))
		return false;
	if (verdict_is_kernel_lock(v))
		return verdict_waits_for_lock(v, w);
	if (v->rule->class == RECORD_CLASS_unanswered)
		return verdict_is_of_server(w, v->unresponsive);
	if (v->rule->class == RECORD_CLASS_memory && w->wait == VERDICT_WAIT_memory)
		return true;
	if (v->device)
		return waits_for_device(v, w);
	return v->wait == VERDICT_WAIT_COUNT || w->wait == v->wait;
}

static void add_row(struct verdict_rows *rows, unsigned int i)
{
	rows->bits[i / 64] |= 1ULL << i % 64;
}

static void add_rows(struct verdict_rows *rows, const struct verdict_rows *more)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(rows->bits); i++)
		rows->bits[i] |= more->bits[i];
}

/* Whether an earlier entry of the same thread has been counted. */
static bool is_counted(const struct verdict_finding *v, const struct verdict_rows *said,
	unsigned int i)
{
	for (unsigned int j = 0; j < i; j++)
		if (v->f->waiters[j].tid == v->f->waiters[i].tid &&
			verdict_has_row(&v->concerned, j) && !verdict_has_row(said, j) &&
			!verdict_has_row(&v->own, j))
			return true;
	return false;
}

static bool is_single_victim(const struct verdict_finding *v, const struct verdict_rows *said,
	int32_t tid)
{
	for (unsigned int i = 0; i < VERDICT_SINGLES_MAX; i++)
		if (v->f->waiters[i].tid == tid && verdict_has_row(&v->concerned, i) &&
			!verdict_has_row(said, i) && !verdict_has_row(&v->own, i))
			return true;
	return false;
}

/* The threads in any of the crowds that have no entry of their own in the finding. */
static unsigned int count_in_crowds(const struct verdict_finding *v,
	const struct verdict_rows *said, uint32_t crowds)
{
	unsigned int count = 0;

	for (unsigned int i = 0; crowds && i < VERDICT_CROWD_THREADS; i++) {
		const struct verdict_crowd_thread *t = &v->f->crowd_threads[i];

		if ((t->crowds & crowds) &&
			(!(t->crowds & VERDICT_IS_SINGLE) || !is_single_victim(v, said, t->tid)))
			count++;
	}
	return count;
}

/* The culprit does not lead the list of its victims, not even when it is only the largest. */
static bool leads(const struct verdict_finding *v, const struct verdict_waiter *w)
{
	const struct verdict_waiter *first = v->first_victim;
	bool is_largest = v->culprit && w->pid == v->culprit->who.pid;

	if (first && v->culprit && (first->pid == v->culprit->who.pid) != is_largest)
		return !is_largest;
	return !first || w->longest_ns > first->longest_ns;
}

/* `said`: waits that another finding explains. */
static void find_victims(struct verdict_finding *v, const struct verdict_sql *sql,
	const struct verdict_rows *said)
{
	uint32_t crowds = 0, sql_crowds = 0;
	bool is_sql;

	v->victims = v->victims_counted = 0;
	v->victims_ns = v->own_ns = v->victims_longest_ns = 0;
	v->first_victim = NULL;
	for (unsigned int i = 0; i < VERDICT_WAITERS_MAX; i++) {
		const struct verdict_waiter *w = &v->f->waiters[i];

		if (!verdict_has_row(&v->concerned, i) || verdict_has_row(said, i))
			continue;
		if (verdict_has_row(&v->own, i)) {
			v->own_ns += w->waited_ns;
			continue;
		}
		is_sql = sql && sql->is_counted && sql->is_counted(sql->userdata, w->tid);
		if (i >= VERDICT_SINGLES_MAX) {
			crowds |= 1U << (i - VERDICT_SINGLES_MAX);
			sql_crowds |= is_sql ? 1U << (i - VERDICT_SINGLES_MAX) : 0;
		} else if (!is_counted(v, said, i)) {
			v->victims++;
			v->victims_counted += is_sql;
		}
		v->victims_ns += w->waited_ns;
		if (leads(v, w))
			v->first_victim = w;
		if (w->longest_ns > v->victims_longest_ns)
			v->victims_longest_ns = w->longest_ns;
	}
	v->victims += count_in_crowds(v, said, crowds);
	v->victims_counted += count_in_crowds(v, said, sql_crowds);
	verdict_add_behind_mutex(v);
}

uint64_t verdict_cost_of(const struct verdict_finding *v)
{
	uint64_t ns = v->victims_ns + v->own_ns / OWN_COST_DIVISOR;

	if (v->rule->is_reason && v->rule->is_reason(v->f))
		return UINT64_MAX;
	/* Its victims are sessions, which wait in no operation of the kernel. */
	if (verdict_is_queue(v))
		return v->f->queue.cost_ns;
	/* Threads that could run wait in no operation either. */
	if (verdict_held_back_ns(v))
		return verdict_held_back_ns(v);
	if (verdict_is_about_stopped(v))
		return verdict_stopped_ns(v->f);
	/* All its sessions may have waited, of which nothing is traced. */
	if (v->rule->class == RECORD_CLASS_unanswered && ns < v->unresponsive->longest.ns)
		return v->unresponsive->longest.ns;
	return v->rule->basis == RECORD_BASIS_inferred ? ns / INFERRED_COST_DIVISOR : ns;
}

/* Whether somebody would miss what it is about, other than who caused it. */
static bool has_victims(const struct verdict_finding *v)
{
	switch (v->rule->class) {
	case RECORD_CLASS_full:
		/* One that became full in the incident may be another matter. */
		return verdict_is_quite_full(v->f) && !v->f->full.later;
	case RECORD_CLASS_unanswered:
		return true;
	case RECORD_CLASS_failed:
		return verdict_find_main_error(v->f) != NULL;
	default:
		break;
	}
	if (verdict_is_queue(v) || verdict_held_back_ns(v) || verdict_is_about_stopped(v))
		return true;
	if (v->rule->basis == RECORD_BASIS_inferred)
		return v->victims_longest_ns / INFERRED_COST_DIVISOR >= HOLDER_NS;
	return v->victims_longest_ns >= HOLDER_NS;
}

static bool is_worse(const struct verdict_finding *a, const struct verdict_finding *b)
{
	if (has_victims(a) != has_victims(b))
		return has_victims(a);
	if (verdict_cost_of(a) != verdict_cost_of(b))
		return verdict_cost_of(a) > verdict_cost_of(b);
	return a->rule == b->rule && a->device && is_better(a->device, b->device, a->rule->blames);
}

/* Everything that was found, in the order of the table. */
struct findings {
	const struct verdict_facts *f;
	const struct verdict_sql *sql;
	struct verdict_rows of_devices; /* waits that devices explain */
	unsigned int count;
	struct verdict_finding list[VERDICT_DEVICES_MAX + VERDICT_HOST_RULES_MAX];
};

/*
 * A pile-up may take longer than the rule that notices it at last: who waited before is a victim of
 * what others began to wait for, too.
 */
static void add_early(struct verdict_finding *v)
{
	for (unsigned int i = 0; i < VERDICT_WAITERS_MAX; i++) {
		const struct verdict_waiter *early = &v->f->waiters[i];

		if (!early->early || !is_concerned(v, early))
			continue;
		for (unsigned int j = 0; j < VERDICT_WAITERS_MAX; j++)
			if (!v->f->waiters[j].early && verdict_has_row(&v->concerned, j) &&
				verdict_waits_alike(early, &v->f->waiters[j]))
				add_row(&v->concerned, i);
		if (verdict_has_row(&v->concerned, i))
			v->early += early->threads;
	}
}

/* The database says it, or the name of the thread. */
static const char *role_of_culprit(const struct verdict_finding *v, const struct verdict_sql *sql)
{
	const struct verdict_who *who = &v->culprit->who;
	const char *role =
		sql && sql->find_role ? sql->find_role(sql->userdata, who->pid, who->tid) : "";

	return !*role && v->culprit->role ? v->culprit->role : role;
}

static const struct verdict_device *failed_device(const struct verdict_facts *f)
{
	const struct verdict_error *e = verdict_find_main_error(f);

	return e && e->device >= 0 ? &f->devices[e->device] : NULL;
}

/* Fills in all but the victims. */
static void add_finding(struct findings *all, const struct verdict_rule *rule,
	const struct verdict_device *d, enum verdict_wait wait)
{
	struct verdict_finding *v = &all->list[all->count++];
	const struct verdict_facts *f = all->f;

	*v = (struct verdict_finding){
		.f = f,
		.rule = rule,
		.device = d,
		.wait = wait,
		.culprit_role = "",
		.file = "",
		.relation = "",
		.unresponsive = verdict_unresponsive_database(f),
	};
	/* Who waits for a disk below waits for this one only if both are at fault together. */
	for (uint32_t i = 0; d && i < f->devices_count; i++)
		if (verdict_stands_on(f, &f->devices[i], d) ||
			(verdict_stands_on(f, d, &f->devices[i]) && rule_of(f, &f->devices[i])))
			v->stack |= 1u << i;
	v->throttled = find_throttled(v);
	if (rule->class == RECORD_CLASS_full && f->full.device >= 0)
		v->device = &f->devices[f->full.device];
	if (rule->class == RECORD_CLASS_failed)
		v->device = failed_device(f);
	if (rule->blames && v->device)
		verdict_find_culprit(v, all->sql);
	if (v->culprit)
		v->culprit_role = role_of_culprit(v, all->sql);
	if (all->sql && all->sql->find_relation)
		v->relation = all->sql->find_relation(all->sql->userdata,
			rule->class == RECORD_CLASS_full && !v->culprit ? f->full.path : v->file);
	for (unsigned int i = 0; i < VERDICT_WAITERS_MAX; i++)
		if (!f->waiters[i].early && is_concerned(v, &f->waiters[i]))
			add_row(&v->concerned, i);
	add_early(v);
	for (unsigned int i = 0; i < VERDICT_WAITERS_MAX; i++)
		if (verdict_has_row(&v->concerned, i) &&
			verdict_is_culprit(v, all->sql, &f->waiters[i]))
			add_row(&v->own, i);
	v->mutex = verdict_find_mutex(v);
	if (d)
		add_rows(&all->of_devices, &v->concerned);
}

static bool has_row_of_server(const struct verdict_finding *v)
{
	for (unsigned int i = 0; i < VERDICT_WAITERS_MAX; i++)
		if (verdict_has_row(&v->concerned, i) &&
			verdict_is_of_server(&v->f->waiters[i], v->unresponsive))
			return true;
	return false;
}

/*
 * Whether the database may not answer because of what the finding is about. A server that is
 * stopped needs no other reason. On a disk the server may wait in ways that are not traced, but not
 * for a frozen file system or a limit: of these it is known who waits for them.
 */
static bool explains_silence(const struct verdict_finding *v)
{
	if (has_row_of_server(v))
		return true;
	if (verdict_is_queue(v))
		return strcmp(v->f->queue.target, v->unresponsive->target) == 0;
	if (verdict_is_mutex(v))
		return v->mutex->process.pid == v->unresponsive->server.pid;
	if (verdict_is_about_stopped(v))
		return v->f->stopped.who.pid == v->unresponsive->server.pid ||
			strcmp(v->f->stopped.who.comm, v->unresponsive->server.comm) == 0;
	/* Sessions that were held up keep the CPUs busy once they are let go. */
	if (v->rule->class == RECORD_CLASS_cpu)
		return !v->unresponsive->longest.stopped &&
			verdict_cpu_ns(v) >= v->unresponsive->longest.ns / 2;
	if (!v->device && v->unresponsive->server.pid && v->rule->class != RECORD_CLASS_full)
		return false;
	return has_victims(v) || (!v->rule->blames && !v->unresponsive->longest.stopped);
}

/* Whether what was found so far is enough to leave out a symptom. */
static bool is_explained(struct findings *all, const struct verdict_rule *symptom)
{
	const struct verdict_rows none = { 0 };

	if (symptom->class != RECORD_CLASS_unanswered)
		return all->count > 0;
	for (unsigned int i = 0; i < all->count; i++) {
		find_victims(&all->list[i], all->sql, &none);
		if (explains_silence(&all->list[i]))
			return true;
	}
	return false;
}

static void find_all(struct findings *all)
{
	const struct verdict_facts *f = all->f;
	enum verdict_wait wait;

	for (const struct verdict_rule *rule = verdict_rules;; rule++) {
		for (uint32_t i = 0; rule->device_holds && i < f->devices_count; i++)
			if (rule_of(f, &f->devices[i]) == rule &&
				!is_covered(f, &f->devices[i], rule))
				add_finding(all, rule, &f->devices[i], VERDICT_WAIT_COUNT);
		if (rule->device_holds || !rule->host_holds(f, &wait))
			continue;
		if (!rule->is_symptom || !is_explained(all, rule))
			add_finding(all, rule, NULL, wait);
		if (rule->is_symptom)
			return;
	}
}

/*
 * Beside a disk at its limit, threads that wait for a lock for less than a second mostly wait for
 * somebody who waits for that disk, but each time too short to be recorded.
 */
static bool is_common(const struct verdict_finding *v)
{
	if (v->rule->class != RECORD_CLASS_waiting)
		return false;
	return v->victims_longest_ns < HOLDER_NS ||
		(v->wait == VERDICT_WAIT_lock && v->victims_longest_ns < NSEC_PER_SEC &&
			verdict_is_a_device_at_fault(v->f));
}

/*
 * The finding that cost most of those whose victims have not been named; of two with the same
 * cost the one that stands above in the table, or the device that says more. NULL: there is none.
 */
static struct verdict_finding *find_most(struct findings *all, const struct verdict_finding *first)
{
	struct verdict_finding *most = NULL, *common = NULL;

	for (unsigned int i = 0; i < all->count; i++) {
		struct verdict_finding *v = &all->list[i];
		struct verdict_rows said = { 0 };

		if (v == first)
			continue;
		if (first)
			said = first->concerned;
		/*
		 * Threads may wait for a lock or the journal while its holder waits for a device
		 * that is at fault.
		 */
		if (v->rule->class == RECORD_CLASS_waiting || verdict_is_kernel_lock(v))
			add_rows(&said, &all->of_devices);
		find_victims(v, all->sql, &said);
		/* Such waits are common on a busy host: only where nothing else was found. */
		if (is_common(v)) {
			if (!common || verdict_cost_of(v) > verdict_cost_of(common))
				common = v;
			continue;
		}
		if (!most || is_worse(v, most))
			most = v;
	}
	return most || first ? most : common;
}

/* What else went wrong, for others than the victims of the first finding; NULL: nothing did. */
static const struct verdict_finding *find_second(struct findings *all,
	const struct verdict_finding *first)
{
	const struct verdict_finding *v =
		first->rule->class == RECORD_CLASS_unknown ? NULL : find_most(all, first);

	/* A disk that hangs or becomes full is worth a remark even if nobody waits for it. */
	if (v && v->victims_ns < SECOND_NS && !verdict_held_back_ns(v) &&
		!verdict_is_about_stopped(v) && v->rule->class != RECORD_CLASS_hung &&
		v->rule->class != RECORD_CLASS_full)
		return NULL;
	/* A clause of the sentence has the queue already. */
	if (v && verdict_is_queue(v))
		return NULL;
	return v;
}

/*
 * The next best explanation, whoever its victims are. NULL: nobody waited for anything else, or the
 * second finding is it.
 */
static const struct verdict_finding *find_alternative(struct findings *all,
	const struct verdict_finding *first, const struct verdict_finding *second)
{
	const struct verdict_finding *best = NULL;
	const struct verdict_rows none = { 0 };

	for (unsigned int i = 0; i < all->count; i++) {
		struct verdict_finding *v = &all->list[i];

		if (v == first || v == second)
			continue;
		find_victims(v, all->sql, &none);
		if (verdict_cost_of(v) > (best ? verdict_cost_of(best) : 0))
			best = v;
	}
	return best;
}

void verdict_decide(const struct verdict_facts *f, const struct verdict_sql *sql,
	struct record_verdict *ret_verdict)
{
	struct findings all = { .f = f, .sql = sql };
	const struct verdict_finding *second;
	struct verdict_finding *first;

	find_all(&all);
	first = find_most(&all, NULL);
	second = find_second(&all, first);
	first->alternative = find_alternative(&all, first, second);
	memset(ret_verdict, 0, sizeof(*ret_verdict));
	verdict_say(first, second, sql, ret_verdict);
}
