/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/host.h"

#include <errno.h>
#include <string.h>

#include "model/kept_disks.h"
#include "model/model.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/number.h"
#include "util/syscalls.h"

bool model_is_group_line(const char *a, const char *b)
{
	size_t a_len = strlen(a), b_len = strlen(b), len = a_len < b_len ? a_len : b_len;
	const char *longer = a_len < b_len ? b : a;

	return strncmp(a, b, len) == 0 && (longer[len] == '\0' || longer[len] == '/');
}

/* Full file systems */

void model_host_add_trigger(struct model *m, const struct record_trigger *trigger, bool is_later)
{
	const bool is_inodes = strcmp(trigger->rule, "inodes") == 0;
	struct model_full *full = &m->host.full;

	if (!is_later && strcmp(trigger->rule, "health") == 0)
		m->host.health_failing_s = trigger->value;
	if (*full->mount || (!is_inodes && strcmp(trigger->rule, "space") != 0))
		return;
	model_set_path(full->mount, trigger->subject);
	full->is_later = is_later;
	full->is_inodes = is_inodes;
	full->used_pct = trigger->value;
	full->disk = -1;
}

/* A file that grew comes before one that was changed, and that before one that is just large. */
static bool is_more(const struct record_writer *writer, const struct model_full *full)
{
	if (writer->grown_bytes != full->grown_bytes)
		return writer->grown_bytes > full->grown_bytes;
	if (writer->changed != full->is_changed)
		return writer->changed;
	return writer->bytes > full->bytes;
}

static void add_writer(struct model_full *full, const struct record_writer *writer)
{
	if (!writer->present)
		return;
	full->search = writer->search;
	if (!writer->pid || !is_more(writer, full))
		return;
	full->writer = model_who_of(writer->pid, writer->pid, writer->comm);
	model_set_path(full->path, writer->path);
	text_copy(full->relation, sizeof(full->relation), writer->relation);
	full->bytes = writer->bytes;
	full->grown_bytes = writer->grown_bytes;
	full->is_changed = writer->changed;
}

/* How full it was at most. */
static void add_full(struct model *m, const struct record_sample *sample)
{
	const struct record_limits *limits = &sample->limits;
	struct model_full *full = &m->host.full;

	add_writer(full, &sample->writer);
	for (uint32_t i = 0; i < limits->file_systems_count && i < RECORD_FILE_SYSTEMS_MAX; i++) {
		const struct record_file_system *fs = &limits->file_systems[i];
		double used_pct = full->is_inodes ? fs->inodes_used_pct : fs->used_pct;

		if (strcmp(fs->mount, full->mount) != 0)
			continue;
		/* An unknown value is not a number, and compares false. */
		if (used_pct >= full->used_pct) {
			full->used_pct = used_pct;
			full->free_bytes = fs->free_bytes;
		}
		full->disk = model_disks_get_of_fs(m, fs->dev, fs->dev_name, MODEL_WORTH_NAMED);
	}
}

/* Memory */

/* A group that was never at its limit is not kept. */
static struct model_memory *get_memory_group(struct model_host *h,
	const struct record_cgroup *group)
{
	struct model_memory *m;

	for (uint32_t i = 0; i < h->memory_groups_count; i++)
		if (strcmp(h->memory_groups[i].path, group->path) == 0)
			return &h->memory_groups[i];
	if (group->limit_hits == 0 || h->memory_groups_count == MODEL_GROUPS_OF_MEMORY_MAX)
		return NULL;
	m = &h->memory_groups[h->memory_groups_count++];
	m->cgroup = group->id;
	text_copy(m->path, sizeof(m->path), group->path);
	return m;
}

static void add_memory_group(struct model_host *h, const struct record_cgroup *group)
{
	struct model_memory *m = get_memory_group(h, group);

	if (!m)
		return;
	m->limit_bytes = group->limit_bytes;
	m->reread_bytes += group->reread_bytes;
	m->swapped_in_bytes += group->swapped_in_bytes;
	m->active_bytes += group->active_bytes;
	m->limit_hits += group->limit_hits;
	m->oom_kills += group->oom_kills;
}

/* Swap on zram is in memory and loads no disk. */
static uint64_t on_disks(uint64_t swapped_bytes, uint64_t zram_bytes)
{
	return minus(swapped_bytes, zram_bytes);
}

static void add_memory(struct model_host *h, const struct record_memory *memory)
{
	struct model_memory *m = &h->memory;

	m->reread_bytes += memory->reread_bytes;
	m->swapped_in_bytes += on_disks(memory->swapped_in_bytes, memory->zram_in_bytes);
	m->swapped_out_bytes += on_disks(memory->swapped_out_bytes, memory->zram_out_bytes);
	m->active_bytes += memory->active_bytes;
	m->reclaimed_bytes += memory->reclaimed_bytes;
}

static void add_memory_groups(struct model_host *h, const struct record_limits *limits)
{
	for (uint32_t i = 0; i < limits->cgroups_count && i < RECORD_CGROUPS_MAX; i++)
		add_memory_group(h, &limits->cgroups[i]);
}

static void add_reading(struct model_host *h, const struct record_reading *s)
{
	const struct record_pressure *memory = &s->psi.memory;

	if (s->threads.blocked > h->blocked_most)
		h->blocked_most = s->threads.blocked;
	if (!memory->present)
		return;
	if (memory->full_pct > h->memory_full_max_pct)
		h->memory_full_max_pct = memory->full_pct;
	h->memory_full_ns += memory->full_pct / 100 * (double)s->interval_ns;
}

/* Limits */

/* NULL: there is no room, or the disk is not known. */
static struct model_io_limit *get_io_limit(struct model *m, const struct record_io_limited *l)
{
	struct model_host *h = &m->host;
	int disk = model_disks_get_of_fs(m, l->dev, l->dev_name, MODEL_WORTH_NAMED);
	struct model_io_limit *limit = h->io_limits;

	for (; limit < h->io_limits + h->io_limits_count; limit++)
		if (limit->disk == disk && limit->kind == l->kind &&
			strcmp(limit->path, l->path) == 0)
			return limit;
	if (disk < 0 || h->io_limits_count == MODEL_IO_LIMITS_MAX)
		return NULL;
	h->io_limits_count++;
	*limit = (struct model_io_limit){ .cgroup = l->id, .disk = disk, .kind = l->kind };
	text_copy(limit->path, sizeof(limit->path), l->path);
	return limit;
}

static void add_io_limits(struct model *m, const struct record_limits *limits, uint64_t interval_ns)
{
	for (uint32_t i = 0; i < limits->io_count && i < RECORD_IO_LIMITS_MAX; i++) {
		const struct record_io_limited *l = &limits->io[i];
		struct model_io_limit *limit =
			l->used_pct >= AT_LIMIT_PCT ? get_io_limit(m, l) : NULL;

		if (!limit)
			continue;
		limit->per_s = l->per_s;
		limit->at_limit_ns += interval_ns;
	}
}

/* NULL: there is no room. */
static struct model_cpu_limit *get_cpu_limit(struct model_host *h, const char *path)
{
	struct model_cpu_limit *limit = h->cpu_limits;

	for (; limit < h->cpu_limits + h->cpu_limits_count; limit++)
		if (strcmp(limit->path, path) == 0)
			return limit;
	if (h->cpu_limits_count == MODEL_CPU_LIMITS_MAX)
		return NULL;
	h->cpu_limits_count++;
	*limit = (struct model_cpu_limit){ 0 };
	text_copy(limit->path, sizeof(limit->path), path);
	return limit;
}

static void add_cpu_limits(struct model_host *h, const struct record_limits *limits,
	uint64_t interval_ns, bool is_since)
{
	for (uint32_t i = 0; i < limits->cpu_limits_count && i < RECORD_CPU_LIMITS_MAX; i++) {
		const struct record_cpu_limited *l = &limits->cpu_limits[i];
		struct model_cpu_limit *limit =
			l->held_back_pct >= HALF_PCT ? get_cpu_limit(h, l->path) : NULL;

		if (!limit)
			continue;
		limit->limit_cpus = l->limit_cpus;
		limit->at_limit_ns += interval_ns;
		limit->is_since |= is_since;
		limit->held_back_ns += l->held_back_ns;
		limit->wanted_ns += 100 * (double)l->held_back_ns / l->held_back_pct;
	}
}

static void add_cpus(struct model_cpu_shortage *shortage, const struct record_reading *s)
{
	if (s->cpu.cpus == 0 || s->cpu.busy_pct < SHORT_BUSY_PCT ||
		s->procs_running < (uint64_t)SHORT_THREADS * s->cpu.cpus)
		return;
	shortage->ns += s->interval_ns;
	shortage->cpus = s->cpu.cpus;
	if (s->procs_running > shortage->running_max)
		shortage->running_max = s->procs_running;
}

/* Processes */

static bool is_same_stop(const struct model_stopped *a, const struct record_stopped *b)
{
	return a->who.pid == b->pid && a->tracer.pid == b->tracer &&
		strcmp(a->cgroup, b->cgroup) == 0;
}

/* A debugger that is attached to a process which is stopped already has not stopped it. */
static void add_stopped(struct model *m, const struct record_stopped *s, uint64_t now_ns)
{
	const uint64_t since_ns = now_ns + MODEL_LEAD_NS - m->trigger_ns;
	struct model_stopped *stopped = &m->host.stopped;

	if (!s->present || s->stopped_ns < stopped->longest_ns)
		return;
	if (!is_same_stop(stopped, s))
		*stopped = (struct model_stopped){ 0 };
	stopped->who = model_who_of(s->pid, s->pid, s->comm);
	if (s->tracer)
		stopped->tracer = model_who_of(s->tracer, s->tracer, s->tracer_comm);
	text_copy(stopped->cgroup, sizeof(stopped->cgroup), s->cgroup);
	if (s->threads > stopped->threads)
		stopped->threads = s->threads;
	stopped->longest_ns = s->stopped_ns;
	stopped->in_incident_ns = s->stopped_ns < since_ns ? s->stopped_ns : since_ns;
}

void model_host_add_sample(struct model *m, const struct record_sample *sample, bool is_before)
{
	const struct record_reading *s = &sample->reading;
	struct model_host *h = &m->host;

	if (*h->full.mount)
		add_full(m, sample);
	model_servers_add(&h->servers, &sample->file_server);
	if (s->mono_ns > m->trigger_ns) {
		add_memory(h, &s->memory);
		add_memory_groups(h, &sample->limits);
	}
	if (is_before)
		return;
	add_reading(h, s);
	add_io_limits(m, &sample->limits, s->interval_ns);
	add_cpu_limits(h, &sample->limits, s->interval_ns, s->mono_ns > m->trigger_ns);
	add_cpus(&h->cpu_shortage, s);
	add_stopped(m, &sample->limits.stopped, s->mono_ns);
	/* The last sample before the trigger has them, the one that has moved most first. */
	if (sample->limits.process_io_count > 0)
		h->before = sample->limits.process_io[0];
	/* A value that is not known is not a number, and compares false. */
	if (s->health.present && h->health_failing_s > 0 &&
		s->health.failing_s > h->health_failing_s)
		h->health_failing_s = s->health.failing_s;
}

/* Errors and the kernel's log */

static bool is_failure(int64_t ret)
{
	return ret == -EIO || ret == -ENOSPC || ret == -EROFS || ret == -EDQUOT || ret == -ENODEV ||
		ret == -ETIMEDOUT || ret == -EUCLEAN;
}

void model_host_add_error(struct model *m, const struct record_operation *op)
{
	struct model_error *e = m->host.errors;

	if (!is_failure(op->ret))
		return;
	while (e < m->host.errors + MODEL_ERRORS_MAX && e->number && e->number != -op->ret)
		e++;
	if (e == m->host.errors + MODEL_ERRORS_MAX)
		return;
	e->count += 1 + op->alike.count;
	/* Of short ones, those that followed within a second of the last line have none. */
	e->is_at_least |= op->dur_ns == 0;
	if (e->number)
		return;
	e->number = (int32_t)-op->ret;
	e->who = model_who_of(op->pid, op->tid, op->comm);
	model_set_path(e->path, op->path);
	e->disk = model_disks_get_of_fs(m, op->dev, op->dev_name, MODEL_WORTH_NAMED);
}

/* The kernel logs as a warning, too, that a path, a link or a disk is back. */
static bool is_recovery(const char *text)
{
	static const char *const signs[] = { "Reinstating path", "link up", "Link is up",
		"link is up", "reconnected", "ecovery done", "ecovery complete" };

	for (unsigned int i = 0; i < ARRAY_SIZE(signs); i++)
		if (strstr(text, signs[i]))
			return true;
	return false;
}

static void add_killed(struct model_kernel_log *log, const char *text)
{
	struct model_who who = { 0 };
	bool in_group;

	if (!kmsg_parse_killed(text, &who.pid, who.comm, sizeof(who.comm), &in_group) ||
		log->killed++ > 0)
		return;
	who.tid = who.pid;
	log->killed_who = who;
	log->is_killed_in_group = in_group;
}

void model_host_add_kernel(struct model *m, const struct record_kernel *line)
{
	struct model_kernel_log *log = &m->host.kernel;
	bool is_error;

	if (line->oom_kill) {
		add_killed(log, line->text);
		return;
	}
	if (log->fs_stopped == KMSG_STOPPED_NOT)
		log->fs_stopped = kmsg_find_stopped(line->text, log->fs_stopped_disk);
	is_error = line->level != RECORD_LEVEL_NONE && line->level <= RECORD_LEVEL_warning &&
		!is_recovery(line->text);
	if (log->lines++ == 0 || (is_error && log->errors == 0))
		text_copy(log->text, sizeof(log->text), line->text);
	log->errors += is_error;
	log->failures += is_error && line->level <= RECORD_LEVEL_err && kmsg_is_failure(line->text);
}

/* Locks */

/*
 * A thread that sleeps until there is work for it keeps nobody waiting, as those of a pool do, or
 * the process of a service that waits for the next client with the lock that gives it the turn.
 */
static bool matters(const struct record_lock_wait *line)
{
	const struct record_lock_holder *h = &line->holder;

	/* A pipe or socket is full: somebody has kept others waiting. */
	return record_lock_is_of_kernel(line->kind) || record_lock_has_reader(line->kind) ||
		(h->present &&
			(h->deadlocked_with || !syscall_may_wait_for_work(h->state, h->syscall)));
}

/* All its waiters together; what was waited before the lead does not count. */
static uint64_t waited_ns_of(const struct model *m, const struct record_lock_wait *line)
{
	const uint64_t most_ns = minus(m->now_ns, model_counted_from_ns(m));

	return line->waiters * (line->longest_ns < most_ns ? line->longest_ns : most_ns);
}

/* Its own place, a free one, or that of a lock that cost less; NULL: there is none. */
static struct model_lock *find_lock(struct model *m, const struct record_lock_wait *line)
{
	struct model_lock *least = NULL;

	for (struct model_lock *l = m->host.locks; l < m->host.locks + MODEL_LOCKS_MAX; l++) {
		if (!l->id || l->id == line->id)
			return l;
		if (!least || l->waited_ns < least->waited_ns)
			least = l;
	}
	return least->waited_ns < waited_ns_of(m, line) ? least : NULL;
}

void model_host_add_lock(struct model *m, const struct record_lock_wait *line)
{
	const struct record_lock_holder *h = &line->holder;
	const struct model_file_id file = model_file_id_of(line->dev, line->inode, line->path);
	struct model_lock *l = find_lock(m, line);

	if (!l || !matters(line))
		return;
	if (l->id != line->id)
		*l = (struct model_lock){ .id = line->id };
	l->kind = line->kind;
	l->dev = line->dev;
	l->inode = line->inode;
	l->file = line->kind == RECORD_KERNEL_LOCK_inode ? model_file_key(&file) : 0;
	l->process = model_who_of(line->pid, 0, line->comm);
	l->fd = line->fd;
	l->tries = line->tries;
	model_set_path(l->path, line->path);
	text_copy(l->function, sizeof(l->function), line->function);
	if (waited_ns_of(m, line) > l->waited_ns)
		l->waited_ns = waited_ns_of(m, line);
	if (line->waiters > l->waiters)
		l->waiters = line->waiters;
	if (line->longest_ns > l->longest_ns) {
		l->longest_ns = line->longest_ns;
		l->longest_at_ns = m->now_ns;
		l->readers = line->readers;
	}
	if (!h->present || (l->holder.pid && h->held_ns <= l->held_ns))
		return;
	/* Whoever has it at a look may just have got it, while others took turns before. */
	if (line->tries && 2 * h->held_ns < line->longest_ns)
		return;
	l->holder = model_who_of(h->pid, h->tid, h->comm);
	l->is_inferred = h->basis == RECORD_BASIS_inferred;
	l->held_ns = h->held_ns;
	l->held_until_ns = m->now_ns;
	l->syscall = h->syscall;
	l->holder_state = h->state;
	l->holder_cause = h->waits_for;
	l->deadlocked_with = h->deadlocked_with;
	l->connection_id = h->connection_id;
}

/* Journals */

void model_host_add_journal(struct model *m, const struct record_journal *line)
{
	struct model_host *h = &m->host;
	struct model_journal *j = h->journals;

	while (j < h->journals + h->journals_count && strcmp(j->name, line->dev_name) != 0)
		j++;
	if (j == h->journals + MODEL_JOURNALS_MAX)
		return;
	if (j == h->journals + h->journals_count)
		h->journals_count++;
	*j = (struct model_journal){
		.disk = model_disks_get_of_fs(m, line->dev, line->dev_name, MODEL_WORTH_NAMED),
		.longest_ns = line->longest_ns,
		.at_least_ns =
			line->early_ns > line->under_way_ns ? line->early_ns : line->under_way_ns,
		.blocks = line->longest_blocks,
		.data_pct = line->longest_data_pct,
		.commits = line->commits,
		.commit_ns = line->commit_ns,
		.who = model_who_of(line->pid, line->pid, line->comm),
		.processes = line->processes,
		.share_pct = line->share_pct,
	};
	text_copy(j->name, sizeof(j->name), line->dev_name);
}
