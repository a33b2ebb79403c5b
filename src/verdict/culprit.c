/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "verdict/culprit.h"

#include <assert.h>
#include <string.h>

#include "util/cleanup.h"
#include "verdict/devices.h"
#include "verdict/figures.h"
#include "verdict/writers.h"

/* The journal and the superblock of a file system are written when nobody writes files, too. */
#define FILLS_BYTES (1 << 20)
#define NEARLY_ALL 0.9
/* Sessions with the statement of a thread that has half did so much more together. */
#define OTHERS_MORE 1.25
/* Work for nobody is named as the largest from a fifth on. */
#define NOTABLE_PART 5
/* So much of the device's time must have been traced to say who has half of it. */
#define SEEN_NS NSEC_PER_SEC
#define SEEN_PART 5
/* So little is left for other statements where one stands for all threads of a process. */
#define OTHERS_PART 8

static_assert(VERDICT_SHARES_MAX <= 64, "a group is a set of bits");

bool verdict_has_half(const struct verdict_load *load, double half_ns)
{
	return load->count > 0 && load->busy_ns > 0 && (double)load->busy_ns >= half_ns;
}

static int32_t leader_of(const struct verdict_sql *sql, int32_t tid)
{
	return sql ? sql->leader_of(sql->userdata, tid) : tid;
}

static uint32_t count_served(const struct verdict_sql *sql, int32_t tid)
{
	return sql && sql->count_served ? sql->count_served(sql->userdata, tid) : 0;
}

void verdict_drop_culprit(struct verdict_finding *v)
{
	v->culprit = NULL;
	v->group = (struct verdict_load){ 0 };
	v->group_shares = 0;
	v->group_count = 0;
	v->io_workers = v->served = 0;
	v->is_parallel = v->leader_moved = false;
	v->is_resync = false;
	v->snapshot = NULL;
	v->kernel_threads = 0;
	v->is_write_back = false;
	v->work_key = 0;
	v->writer_back = NULL;
	v->through = (struct verdict_who){ 0 };
	v->by_counters = false;
	v->committers = 0;
	v->attributed_ns = 0;
}

void verdict_set_group(struct verdict_finding *v, const struct verdict_load *group, uint64_t shares)
{
	v->group = *group;
	v->group_shares = shares;
	v->culprit = &v->group;
	v->culprit_by = VERDICT_BY_THREAD;
}

/*
 * One of the threads whose leader has most with them, NULL: there is none; and the leaders of all
 * shares, 0 for those on other devices.
 */
static const struct verdict_share *find_main_leader(const struct verdict_finding *v,
	const struct verdict_sql *sql, int32_t leaders[static VERDICT_SHARES_MAX])
{
	const struct verdict_share *shares = v->f->shares, *main = NULL;
	uint64_t most_ns = 0;

	for (uint32_t i = 0; i < v->f->shares_count; i++)
		if (verdict_is_on_device(v, &shares[i]))
			leaders[i] = leader_of(sql, shares[i].tid);
	for (uint32_t i = 0; i < v->f->shares_count; i++) {
		uint64_t ns = 0;

		for (uint32_t k = 0; leaders[i] && k < v->f->shares_count; k++)
			ns += leaders[k] == leaders[i] ? shares[k].busy_ns : 0;
		if (ns <= most_ns)
			continue;
		most_ns = ns;
		main = &shares[i];
	}
	return main;
}

/* The work of all threads on one statement counts together: each may have less than half. */
static void find_parallel_group(struct verdict_finding *v, const struct verdict_sql *sql,
	double half_ns)
{
	int32_t leaders[VERDICT_SHARES_MAX] = { 0 };
	const struct verdict_share *first = find_main_leader(v, sql, leaders);
	struct verdict_load group = { 0 };
	bool leader_moved = false;
	uint32_t io_workers = 0, served = 0, alike;
	uint64_t shares = 0;
	int32_t leader;

	if (!first)
		return;
	leader = leaders[first - v->f->shares];
	/* Only PostgreSQL has such workers; their leader is a process of one thread. */
	if (leader == first->tid)
		verdict_set_who(&group.who, first->pid, first->tid, first->comm);
	else
		verdict_set_who(&group.who, leader, leader, first->comm);
	for (uint32_t i = 0; i < v->f->shares_count; i++) {
		const struct verdict_share *share = &v->f->shares[i];

		if (leaders[i] != leader)
			continue;
		verdict_add_share(&group, share, 1);
		shares |= 1ULL << i;
		leader_moved |= share->tid == leader;
		if (count_served(sql, share->tid) == 0)
			continue;
		io_workers++;
		served = count_served(sql, share->tid);
	}
	/* An I/O worker alone does not read for itself, either. */
	if ((group.count < 2 && io_workers == 0) || !verdict_has_half(&group, half_ns))
		return;
	verdict_set_group(v, &group, shares);
	v->is_parallel = true;
	v->leader_moved = leader_moved;
	v->group_count = group.count - leader_moved;
	v->io_workers = io_workers;
	/* The answers were samples: not each of those sessions had a read in hand then. */
	alike = served > 1 && sql->count_alike ? sql->count_alike(sql->userdata, leader) : 0;
	v->served = alike > served ? alike : served;
}

/*
 * Only the ten busiest threads of a device are known. Where these nearly all run that statement, so
 * do the other threads of their process.
 */
static bool stand_for_process(const struct verdict_load *group, const struct verdict_load *process,
	uint64_t others_ns)
{
	return group->who.tid != group->who.pid && group->who.pid == process->who.pid &&
		others_ns <= group->busy_ns / OTHERS_PART;
}

/* The statement for which threads did most; NULL: none is known. `keys` are those of all shares. */
static const struct verdict_share *find_main_statement(const struct verdict_finding *v,
	const uint64_t *keys)
{
	const struct verdict_share *shares = v->f->shares, *main = NULL;
	uint64_t most_ns = 0;

	for (uint32_t i = 0; i < v->f->shares_count; i++) {
		uint64_t ns = 0;

		for (uint32_t k = i; keys[i] && k < v->f->shares_count; k++)
			ns += keys[k] == keys[i] ? shares[k].busy_ns : 0;
		if (ns <= most_ns)
			continue;
		most_ns = ns;
		main = &shares[i];
	}
	return main;
}

/*
 * Sessions that run the same statement, as when a page of a web site reads a table without index.
 */
static void find_sessions(struct verdict_finding *v, const struct verdict_sql *sql, double half_ns)
{
	const struct verdict_load *process = &v->device->load[VERDICT_BY_PROCESS];
	const struct verdict_share *first;
	struct verdict_load group = { 0 };
	uint64_t keys[VERDICT_SHARES_MAX] = { 0 }, shares = 0, others_ns = 0;

	if (!sql || !sql->statement_key)
		return;
	for (uint32_t i = 0; i < v->f->shares_count; i++)
		if (verdict_is_on_device(v, &v->f->shares[i]))
			keys[i] = sql->statement_key(sql->userdata, v->f->shares[i].tid);
	first = find_main_statement(v, keys);
	if (!first)
		return;
	verdict_set_who(&group.who, first->pid, first->tid, first->comm);
	for (uint32_t i = 0; i < v->f->shares_count; i++) {
		const struct verdict_share *share = &v->f->shares[i];

		if (!verdict_is_on_device(v, share))
			continue;
		if (keys[i] != keys[first - v->f->shares]) {
			others_ns += share->pid == group.who.pid ? share->busy_ns : 0;
			continue;
		}
		verdict_add_share(&group, share, 1);
		shares |= 1ULL << i;
	}
	if (group.count < 2)
		return;
	if (!verdict_has_half(&group, half_ns)) {
		if (!stand_for_process(&group, process, others_ns) ||
			!verdict_has_half(process, half_ns))
			return;
		memcpy(group.requests, process->requests, sizeof(group.requests));
		group.bytes = process->bytes;
		group.read_bytes = process->read_bytes;
		group.busy_ns = process->busy_ns;
		group.uncertain = true;
	}
	verdict_set_group(v, &group, shares);
	v->group_count = group.count;
	if (sql->count_alike) {
		v->group_count = sql->count_alike(sql->userdata, group.who.tid);
		if (v->group_count < group.count)
			v->group_count = group.count;
	}
	/* Then all of them are in it, and not only those that are known. */
	if (group.uncertain)
		v->group.count = v->group_count;
}

/* Or one that was at least written to. */
static bool has_growing_file(const struct verdict_facts *f)
{
	return f->full.writer.pid && (f->full.grown_bytes > 0 || f->full.changed);
}

/* Only who writes much fills a file system. */
static bool fills_its_disk(const struct verdict_load *load)
{
	return load->requests[VERDICT_WRITE] > load->requests[VERDICT_READ] &&
		load->bytes >= FILLS_BYTES;
}

/*
 * Requests from before tracing have a file, but nobody who sent them. Where the culprit sent nearly
 * all others of that file, these were probably its own, too. How much of both is the same is at
 * least what the two have more than everything together.
 */
static void add_before(struct verdict_finding *v)
{
	const struct verdict_load *file = &v->device->load[VERDICT_BY_FILE];
	uint64_t traced_ns = v->device->traced_ns, both_ns;

	if (!v->culprit || v->is_resync || v->snapshot || v->culprit->inferred ||
		file->before_ns == 0 || !*v->file ||
		verdict_is_written_by_others(v, v->culprit->who.pid))
		return;
	both_ns = v->culprit->busy_ns + file->busy_ns;
	both_ns = both_ns > traced_ns ? both_ns - traced_ns : 0;
	/* Without a request since, nothing says that it is the same program. */
	if (both_ns == 0 || (double)both_ns < NEARLY_ALL * (double)file->busy_ns)
		return;
	v->group = *v->culprit;
	v->group.busy_ns += file->before_ns;
	v->group.bytes += file->before_bytes;
	v->group.requests[file->requests[VERDICT_WRITE] > file->requests[VERDICT_READ]
			? VERDICT_WRITE
			: VERDICT_READ] += file->before_requests;
	v->group.uncertain = true;
	v->attributed_ns = file->before_ns;
	v->culprit = &v->group;
}

/* A thread that has half alone is the culprit, unless others with its statement did much of it. */
static void find_sessions_or_thread(struct verdict_finding *v, const struct verdict_sql *sql,
	double half_ns)
{
	const struct verdict_load *thread = &v->device->load[VERDICT_BY_THREAD];
	const struct verdict_finding kept = *v;

	find_sessions(v, sql, half_ns);
	if (v->culprit && verdict_has_half(thread, half_ns) &&
		(double)v->group.busy_ns < OTHERS_MORE * (double)thread->busy_ns)
		*v = kept;
}

/*
 * A resync, the copying for a snapshot, a thread, threads with the same statement, a process or a
 * unit: the smallest that has half.
 */
static void find_with_half(struct verdict_finding *v, const struct verdict_sql *sql, double half_ns)
{
	static const enum verdict_by order[] = { VERDICT_BY_THREAD, VERDICT_BY_PROCESS,
		VERDICT_BY_UNIT };
	const struct verdict_load *load = v->device->load;

	verdict_find_resync(v, half_ns);
	if (!v->culprit)
		verdict_find_copying(v, half_ns);
	if (!v->culprit)
		find_parallel_group(v, sql, half_ns);
	if (!v->culprit)
		find_sessions_or_thread(v, sql, half_ns);
	for (unsigned int i = 0; i < ARRAY_SIZE(order) && !v->culprit; i++) {
		if (!verdict_has_half(&load[order[i]], half_ns))
			continue;
		v->culprit = &load[order[i]];
		v->culprit_by = order[i];
	}
}

/*
 * Kernel threads that wrote back more than any program sent, or else a program rather than another
 * kernel thread, which works on behalf of such; a resync and the copying for a snapshot work for
 * nobody.
 */
static void find_largest(struct verdict_finding *v)
{
	static const enum verdict_by order[] = { VERDICT_BY_PROGRAM, VERDICT_BY_PROCESS,
		VERDICT_BY_THREAD };
	const struct verdict_load *load = v->device->load;
	double most_ns = (double)v->device->traced_ns / NOTABLE_PART;

	for (unsigned int i = 0; i < VERDICT_BY_COUNT; i++)
		if (i != VERDICT_BY_FILE && (double)load[i].busy_ns > most_ns)
			most_ns = (double)load[i].busy_ns;
	if (!v->culprit)
		verdict_find_resync(v, most_ns);
	if (!v->culprit)
		verdict_find_copying(v, most_ns);
	/* Behind a limit they only send on what programs of the group had asked for. */
	if (!v->culprit && v->rule->class != RECORD_CLASS_throttled)
		verdict_find_write_back(v);
	for (unsigned int i = 0; i < ARRAY_SIZE(order) && !v->culprit; i++) {
		if (load[order[i]].count == 0 || load[order[i]].busy_ns == 0)
			continue;
		v->culprit = &load[order[i]];
		v->culprit_by = order[i];
	}
}

/*
 * A rule may fire only after most of the freeze. Then whoever has half of what was sent since is
 * probably the culprit of what was before, too; but not if somebody may have had more in the
 * requests that were in flight when tracing began, and waited for them since.
 */
static void judge_what_was_seen(struct verdict_finding *v)
{
	const struct verdict_device *d = v->device;
	double seen_ns = (double)d->traced_ns + (double)v->attributed_ns;

	/* The quiet time after the freeze says nothing of it. */
	if (!v->culprit || v->culprit->inferred || seen_ns < SEEN_NS ||
		2 * d->busy_since_ns < d->traced_ns || seen_ns * SEEN_PART < v->work_ns ||
		!verdict_has_half(v->culprit, seen_ns / 2) ||
		v->culprit->busy_ns + v->attributed_ns < d->before_ns)
		return;
	v->unseen_ns = (uint64_t)(v->work_ns - seen_ns);
	v->work_ns = seen_ns;
	v->culprit_is_most = true;
}

static bool is_most(const struct verdict_finding *v)
{
	return v->culprit && !v->culprit->inferred && verdict_has_half(v->culprit, v->work_ns / 2);
}

/* Whether the culprit has enough for that, of all or at least of what was traced. */
static bool settle(struct verdict_finding *v)
{
	v->culprit_is_most = is_most(v);
	if (!v->culprit_is_most)
		judge_what_was_seen(v);
	return v->culprit_is_most;
}

static void try_committer(struct verdict_finding *v)
{
	const struct verdict_finding kept = *v;

	verdict_find_committer(v);
	if (!is_most(v))
		*v = kept;
}

/*
 * What kernel threads sent belongs to a control group, also where nobody knows which of its
 * programs it was for, or all of these have ended.
 */
static void find_owner(struct verdict_finding *v)
{
	const struct verdict_load *unit = &v->device->load[VERDICT_BY_UNIT],
				  *process = &v->device->load[VERDICT_BY_PROCESS];

	if ((v->culprit && !v->culprit->inferred) || unit->inferred ||
		!verdict_has_half(unit, (double)v->device->traced_ns / 2))
		return;
	verdict_drop_culprit(v);
	v->culprit = unit;
	v->culprit_by = VERDICT_BY_UNIT;
	if (process->inferred)
		v->writer_back = &process->who;
}

/* The smallest with half of what was traced says most: a thread has a statement. */
static void find_most(struct verdict_finding *v, const struct verdict_sql *sql)
{
	struct verdict_finding larger = *v, kept;

	find_with_half(v, sql, (double)v->device->traced_ns / 2);
	add_before(v);
	verdict_find_writer(v);
	verdict_find_reader(v);
	if (!v->culprit || v->culprit->inferred)
		try_committer(v);
	if (settle(v))
		return;
	find_with_half(&larger, sql, larger.work_ns / 2);
	larger.culprit_is_most = is_most(&larger);
	if (larger.culprit_is_most) {
		*v = larger;
		if (larger.culprit == &larger.group)
			v->culprit = &v->group;
		return;
	}
	/* Who has less than half of it this way is not even known to be the largest. */
	kept = *v;
	verdict_find_writers(v, sql);
	if (settle(v))
		return;
	*v = kept;
	find_owner(v);
	if (settle(v))
		return;
	kept = *v;
	verdict_find_before(v);
	v->culprit_is_most = is_most(v);
	if (!v->culprit_is_most)
		*v = kept;
}

/*
 * Whoever has half of all that the device did is the culprit, or half of what was sent to it since
 * tracing began. When nobody is known to have that, the largest program is named as such.
 */
void verdict_find_culprit(struct verdict_finding *v, const struct verdict_sql *sql)
{
	const struct verdict_device *d = v->device;

	v->work_ns = verdict_work_ns(d);
	/* What is written need not need more space: a log that is there already does not. */
	if (v->rule->class == RECORD_CLASS_full &&
		(has_growing_file(v->f) || !fills_its_disk(&d->load[VERDICT_BY_PROCESS])))
		return;
	if ((double)(d->load[VERDICT_BY_FILE].busy_ns + d->load[VERDICT_BY_FILE].before_ns) >=
		(double)(d->traced_ns + d->before_ns) / 2)
		v->file = d->file;
	find_most(v, sql);
	find_largest(v);
	/* What is flushed now says little about who filled it: that needs at least half. */
	if (v->rule->class == RECORD_CLASS_full && !v->culprit_is_most)
		v->culprit = NULL;
	/* It is known which group it was; the kernel thread only sends on what was held back. */
	if (v->rule->class == RECORD_CLASS_throttled && v->culprit && v->culprit->inferred)
		v->culprit = NULL;
	/* Looked up once, because each lookup searches all sessions of all databases. */
	if (v->culprit)
		v->culprit_leader = leader_of(sql, v->culprit->who.tid);
}

static bool is_in_group(const struct verdict_finding *v, int32_t tid)
{
	for (uint32_t i = 0; i < v->f->shares_count; i++)
		if ((v->group_shares >> i & 1) && v->f->shares[i].tid == tid)
			return true;
	return false;
}

bool verdict_is_culprit(const struct verdict_finding *v, const struct verdict_sql *sql,
	const struct verdict_waiter *w)
{
	const struct verdict_who *culprit;

	if (!v->culprit || !v->culprit_is_most)
		return false;
	culprit = &v->culprit->who;
	if (v->culprit_by == VERDICT_BY_UNIT)
		return w->cgroup == v->device->cgroup;
	if (v->committers > 1)
		return strcmp(w->comm, culprit->comm) == 0;
	/* In a crowd of others the culprit is one of many. */
	if (w->processes || (w->threads > 1 && v->culprit_by == VERDICT_BY_THREAD))
		return false;
	if (v->work_key && verdict_work_key(sql, w->pid, w->tid) == v->work_key)
		return true;
	if (v->culprit_by != VERDICT_BY_THREAD)
		return w->pid == culprit->pid;
	return w->tid == culprit->tid || is_in_group(v, w->tid) ||
		leader_of(sql, w->tid) == v->culprit_leader;
}
