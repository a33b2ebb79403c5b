/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "verdict/blame.h"

#include <stdio.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/number.h"

struct scene {
	const struct model *m;
	const struct model_disk *disk;
	const struct model_loads_of *loads;
	double work_ns;
	uint64_t kernel_ns; /* what kernel threads sent for programs that are not known */
};

static bool begins_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* Candidates */

static struct culprit of_load(enum culprit_kind kind, const struct model_load *load)
{
	struct culprit c = {
		.kind = kind,
		.who = load->who,
		.cgroup = load->cgroup,
		.busy_ns = load->busy_ns,
		.bytes = load->bytes,
		.read_bytes = load->read_bytes,
		.is_probable = load->uncertain,
	};

	memcpy(c.requests, load->requests, sizeof(c.requests));
	return c;
}

static void add_load(struct culprit *c, const struct model_load *load, double part)
{
	c->busy_ns += (uint64_t)((double)load->busy_ns * part);
	c->bytes += (uint64_t)((double)load->bytes * part);
	c->read_bytes += (uint64_t)((double)load->read_bytes * part);
	for (unsigned int i = 0; i < MODEL_KINDS; i++)
		c->requests[i] += (uint64_t)((double)load->requests[i] * part);
}

static bool has_half(const struct scene *s, const struct culprit *c)
{
	return (double)c->busy_ns >= s->work_ns / 2 && c->busy_ns > 0;
}

/* The name of a program, for that of its threads: MariaDB calls one "one_connection". */
static void name_program(const struct scene *s, struct model_who *who)
{
	const struct model_database *d = model_sessions_find_server(&s->m->sessions, who->pid);

	if (who->tid == who->pid)
		return;
	for (uint32_t i = 0; i < s->loads->counts[RECORD_BY_process]; i++)
		if (s->loads->processes[i].who.pid == who->pid) {
			*who = model_who_of(who->pid, who->tid, s->loads->processes[i].who.comm);
			return;
		}
	if (d && *d->server.comm)
		*who = model_who_of(who->pid, who->tid, d->server.comm);
}

/* What kernel threads did for programs */

static bool is_worker(const char *comm)
{
	return begins_with(comm, "kworker/");
}

static bool writes_back(const char *comm)
{
	return is_worker(comm) || begins_with(comm, "jbd2/") || begins_with(comm, "xfsaild/");
}

static bool is_several(const struct model_user *a, const struct model_user *b)
{
	return a->is_several || (b->who.pid && (b->is_several || b->who.pid != a->who.pid));
}

/* Of a file that others sent most of, at least: they did not send more than all that they did. */
static uint64_t least_by_kernel_ns(const struct scene *s, const struct model_load *file)
{
	return minus(file->busy_ns, minus(s->disk->traced_ns, s->kernel_ns));
}

/* Who uses the file that kernel threads wrote or read, or of which all was sent before tracing. */
static const struct model_user *user_of(const struct scene *s, const struct model_load *file)
{
	const struct model_used_file *used = model_used_files_find(&s->m->waits.files, &file->file);
	const uint64_t reads = file->requests[MODEL_READ], writes = file->requests[MODEL_WRITE];
	const bool is_from_before = file->before_ns && !reads && !writes;
	const struct model_user *user;

	if (!used || !(file->inferred || is_from_before || least_by_kernel_ns(s, file)))
		return NULL;
	/* Who is slowed down in writes to the file writes it; else probably who waits for it. */
	user = used->slowed.who.pid ? &used->slowed : &used->writing;
	if (reads > writes)
		user = &used->reading;
	/* These may have been reads. */
	if (is_from_before && is_several(user, &used->reading))
		return NULL;
	return user->who.pid && !user->is_several ? user : NULL;
}

/*
 * What kernel threads sent of files that only this process writes, or reads. Its own threads did no
 * more of these files than they sent: the rest of that is in `files_ns` twice, so it is taken off.
 */
static void add_files(const struct scene *s, struct culprit *c)
{
	uint64_t files_ns = 0, own_ns = c->busy_ns, left_ns = s->kernel_ns;

	for (uint32_t i = 0; i < s->loads->counts[RECORD_BY_file]; i++) {
		const struct model_load *file = &s->loads->files[i];
		const struct model_user *user = user_of(s, file);
		uint64_t ns = file->inferred ? file->busy_ns : least_by_kernel_ns(s, file);

		ns = ns < left_ns ? ns : left_ns;
		if (!user || user->who.pid != c->who.pid ||
			file->busy_ns + file->before_ns < NOTABLE_FILE_NS)
			continue;
		add_load(c, file, file->busy_ns ? (double)ns / (double)file->busy_ns : 0);
		left_ns -= ns;
		files_ns += file->inferred ? ns : 0;
		c->busy_ns += file->before_ns;
		c->bytes += file->before_bytes;
		c->requests[MODEL_WRITE] += file->before_requests;
		c->is_probable = true;
	}
	if (files_ns == 0)
		return;
	/* Kernel threads did at least half of what these lines are about. */
	c->busy_ns -= own_ns < files_ns / 2 ? own_ns : files_ns / 2;
	for (uint32_t i = 0; i < s->loads->counts[RECORD_BY_thread] && !c->through.pid; i++)
		if (s->loads->threads[i].inferred)
			c->through = s->loads->threads[i].who;
}

/* "jbd2/sdb1-8" of "sdb1"; the kernel cuts the names of its threads. */
static bool is_journal_thread(const struct model_journal *j, const char *comm)
{
	char name[sizeof("jbd2/-") + sizeof(j->name)];

	snprintf(name, sizeof(name), "jbd2/%s-", j->name);
	return strncmp(comm, name, strnlen(name, RECORD_COMM_SIZE - 1)) == 0;
}

static bool is_committer(const struct model_journal *j, const struct model_load *load)
{
	return j->who.pid ? load->who.pid == j->who.pid : strcmp(load->who.comm, j->who.comm) == 0;
}

/* With metadata the inode is 0. */
static uint64_t data_ns(const struct scene *s)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < s->loads->counts[RECORD_BY_file]; i++)
		if (s->loads->files[i].inferred && s->loads->files[i].file.inode)
			ns += s->loads->files[i].busy_ns;
	return ns;
}

/*
 * Whoever has the journal committed again and again, as a program does that syncs each line of its
 * log: what the kernel's thread writes for that is that program's work. Before it commits the
 * metadata of new blocks that thread writes the data in them, whoever wrote that: then it is not.
 */
static bool find_committer(const struct scene *s, struct culprit *ret)
{
	const struct model_journal *j = NULL;
	struct culprit c = { .is_probable = true };
	uint64_t journal_ns = 0;

	for (uint32_t i = 0; i < s->m->host.journals_count; i++) {
		const struct model_journal *other = &s->m->host.journals[i];

		if (other->commits && *other->who.comm && other->disk >= 0 &&
			model_disks_is_on(&s->m->disks, other->disk,
				(int)(s->disk - s->m->disks.list)) &&
			(!j || other->commit_ns > j->commit_ns))
			j = other;
	}
	if (!j)
		return false;
	c.kind = j->who.pid ? CULPRIT_PROCESS : CULPRIT_PROGRAM;
	c.who = j->who;
	c.count = j->processes;
	for (uint32_t i = 0; i < s->loads->counts[RECORD_BY_thread]; i++) {
		const struct model_load *load = &s->loads->threads[i];

		if (!load->inferred && is_committer(j, load))
			add_load(&c, load, 1);
	}
	if (100 * c.requests[MODEL_WRITE] < HALF_PCT * j->commits)
		return false;
	for (uint32_t i = 0; i < s->loads->counts[RECORD_BY_thread]; i++) {
		const struct model_load *load = &s->loads->threads[i];

		if (!load->inferred || !is_journal_thread(j, load->who.comm))
			continue;
		add_load(&c, load, j->share_pct / 100);
		journal_ns += load->busy_ns;
		c.through = load->who;
	}
	if (!c.through.pid || data_ns(s) > s->kernel_ns - journal_ns + journal_ns / 2)
		return false;
	*ret = c;
	return true;
}

/*
 * The thread of an array with parity sends all requests of it, those of a resync as well. To write
 * a part of a stripe it reads no more than it writes.
 */
static bool is_resync_by_parity(const struct model_load *load, const char *work)
{
	return (strcmp(work, "_raid4") == 0 || strcmp(work, "_raid5") == 0 ||
		       strcmp(work, "_raid6") == 0) &&
		load->requests[MODEL_READ] > 2 * load->requests[MODEL_WRITE];
}

/* The resync of an array: its threads, which write for it what programs write meanwhile, too. */
static bool find_resync(const struct scene *s, struct culprit *ret)
{
	const struct model_load *resync = NULL;
	size_t length = 0;

	for (uint32_t i = 0; i < s->loads->counts[RECORD_BY_thread] && !resync; i++) {
		const struct model_load *load = &s->loads->threads[i];
		const char *work = strrchr(load->who.comm, '_');

		if (!load->inferred || !begins_with(load->who.comm, "md") || !work ||
			(strcmp(work, "_resync") != 0 && strcmp(work, "_reshape") != 0 &&
				!is_resync_by_parity(load, work)))
			continue;
		resync = load;
		length = (size_t)(work - load->who.comm);
	}
	if (!resync)
		return false;
	*ret = of_load(CULPRIT_RESYNC, resync);
	ret->is_probable = is_resync_by_parity(resync, resync->who.comm + length);
	for (uint32_t i = 0; i < s->loads->counts[RECORD_BY_thread]; i++) {
		const struct model_load *load = &s->loads->threads[i];

		/* All arrays that LVM makes have the name "mdX". */
		if (load == resync || !load->inferred ||
			strncmp(load->who.comm, resync->who.comm, length + 1) != 0 ||
			begins_with(load->who.comm, "mdX_"))
			continue;
		add_load(ret, load, 1);
		ret->is_probable = true;
	}
	return true;
}

/*
 * Together, since the kernel divides the write-back of one file among several threads. What workers
 * write is of files then: what they copy for a snapshot, or encrypt, is not.
 */
static bool find_write_back(const struct scene *s, struct culprit *ret)
{
	struct culprit c = { .kind = CULPRIT_WRITE_BACK };
	uint64_t known_ns = 0;

	for (uint32_t i = 0; i < s->loads->counts[RECORD_BY_thread]; i++) {
		const struct model_load *load = &s->loads->threads[i];

		if (!load->inferred || !writes_back(load->who.comm))
			continue;
		if (!c.who.pid)
			c.who = load->who;
		c.count++;
		add_load(&c, load, 1);
		if (!is_worker(load->who.comm))
			known_ns += load->busy_ns;
	}
	if (!c.who.pid || c.requests[MODEL_READ] > c.requests[MODEL_WRITE])
		return false;
	for (uint32_t i = 0; i < s->loads->counts[RECORD_BY_file]; i++)
		if (s->loads->files[i].inferred)
			known_ns += s->loads->files[i].busy_ns;
	if (2 * known_ns < c.busy_ns)
		c.kind = CULPRIT_KERNEL;
	*ret = c;
	return true;
}

/* By their own counters */

/*
 * Whoever moved as much as the disk did in the last seconds before the trigger, if no other disk
 * did as much: a freeze may be over when tracing begins, or nearly so.
 */
static bool find_before(const struct scene *s, struct culprit *ret)
{
	const struct record_process_io *b = &s->m->host.before;
	const bool reads = s->disk->lead_read_bytes >= s->disk->lead_write_bytes;
	const uint64_t moved = reads ? s->disk->lead_read_bytes : s->disk->lead_write_bytes;
	const uint64_t own = reads ? b->read_bytes : b->write_bytes;
	const double unseen_ns = s->work_ns - (double)s->disk->traced_ns;

	if (!b->pid || unseen_ns < s->work_ns / 2 || own < LEAST_BYTES || own < moved / 2)
		return false;
	for (int i = 0; i < (int)s->m->disks.count; i++) {
		const struct model_disk *other = &s->m->disks.list[i];
		int disk = (int)(s->disk - s->m->disks.list);

		if (!model_disks_is_on(&s->m->disks, i, disk) &&
			!model_disks_is_on(&s->m->disks, disk, i) &&
			!begins_with(other->name, "zram") &&
			(reads ? other->lead_read_bytes : other->lead_write_bytes) >= own / 2)
			return false;
	}
	*ret = (struct culprit){ .kind = CULPRIT_PROCESS,
		.who = model_who_of(b->pid, b->pid, b->comm),
		.is_probable = true,
		.is_by_counters = true };
	for (uint32_t i = 0; i < s->loads->counts[RECORD_BY_process]; i++)
		if (s->loads->processes[i].who.pid == b->pid)
			add_load(ret, &s->loads->processes[i], 1);
	ret->busy_ns +=
		(uint64_t)(own < moved ? unseen_ns * (double)own / (double)moved : unseen_ns);
	ret->bytes += own;
	return true;
}

/*
 * Requests from before tracing have a file, but nobody who sent them. Where the culprit sent nearly
 * all others of that file, these were probably its own, too. How much of both is the same is at
 * least what the two have more than everything together, without what is of neither: what kernel
 * threads sent of other files.
 */
static void add_before(const struct scene *s, struct culprit *c)
{
	const struct model_load *file = &s->loads->files[0];
	const struct model_used_file *used = model_used_files_find(&s->m->waits.files, &file->file);
	uint64_t traced_ns = s->disk->traced_ns, both_ns = c->busy_ns + file->busy_ns;

	for (uint32_t i = 1; i < s->loads->counts[RECORD_BY_file]; i++)
		if (s->loads->files[i].inferred)
			traced_ns = minus(traced_ns, s->loads->files[i].busy_ns);
	if (s->loads->counts[RECORD_BY_file] == 0 || file->before_ns == 0)
		return;
	if (used && used->slowed.who.pid &&
		(used->slowed.is_several || used->slowed.who.pid != c->who.pid))
		return;
	both_ns = minus(both_ns, traced_ns);
	if (both_ns == 0 || (double)both_ns < NEARLY_ALL * (double)file->busy_ns)
		return;
	c->busy_ns += file->before_ns;
	c->bytes += file->before_bytes;
	c->requests[file->requests[MODEL_WRITE] > file->requests[MODEL_READ] ? MODEL_WRITE
									     : MODEL_READ] +=
		file->before_requests;
	c->is_probable = true;
}

/* Statements */

/*
 * What a thread does is charged each second to the statement that it runs then. What overloads the
 * disk since before one began may have been an earlier one, unless it fits into the time that this
 * one ran, and without that second is enough. A server that tells whole seconds rounds them down.
 */
static bool is_surely_its_own(const struct scene *s, const struct model_statement *st)
{
	const uint64_t busy_ns = st->load.busy_ns, elapsed_ns = st->statement.elapsed_ns;
	const uint64_t rounded_ns = elapsed_ns % NSEC_PER_SEC ? 0 : NSEC_PER_SEC;

	return st->statement.start_mono_ns <= s->m->trigger_ns ||
		(busy_ns <= elapsed_ns + rounded_ns + NSEC_PER_SEC &&
			(double)busy_ns >= s->work_ns / 2 + NSEC_PER_SEC);
}

static bool find_statement(const struct scene *s, uint32_t i, struct culprit *ret)
{
	const struct model_statement *st = &s->loads->statements[i];

	if (i >= s->loads->counts[RECORD_BY_statement])
		return false;
	*ret = of_load(CULPRIT_STATEMENT, &st->load);
	ret->statement = st->statement;
	ret->is_probable |= !is_surely_its_own(s, st);
	return true;
}

static bool only_reads(const char *text)
{
	text += strspn(text, " \t\n(");
	return strncasecmp(text, "SELECT", strlen("SELECT")) == 0;
}

/*
 * A thread of the server writes what statements have changed, or reads ahead for them: the more
 * reads there are beyond what belongs to writes, the more the statement must have read itself. What
 * is written for the most part is not for one that only reads.
 */
static void add_likely_statement(const struct scene *s, struct culprit *c)
{
	const struct model_database *d = model_sessions_find_server(&s->m->sessions, c->who.pid);
	uint64_t reads = c->requests[MODEL_READ], of_writes = 0, own, least;

	if (!d || !model_database_has_busiest(d))
		return;
	if (!only_reads(d->busiest.text))
		of_writes = READS_FOR_A_WRITE * c->requests[MODEL_WRITE];
	else if (c->requests[MODEL_WRITE] > reads)
		return;
	own = reads > of_writes
		? (uint64_t)((double)c->read_bytes * (double)(reads - of_writes) / (double)reads)
		: 0;
	least = c->bytes / LIKELY_PART_WRITTEN;
	least = own / LIKELY_PART_READ > least ? own / LIKELY_PART_READ : least;
	if (d->busiest_bytes < (least > LIKELY_BYTES ? least : LIKELY_BYTES))
		return;
	c->statement = d->busiest;
	c->is_likely = true;
}

/* The one */

static void set_file(const struct scene *s, struct culprit *c)
{
	const struct model_load *file = &s->loads->files[0];

	/* Half of all, so at least a part of it is the culprit's; of half of his it is said. */
	if (s->loads->counts[RECORD_BY_file] == 0 || c->kind == CULPRIT_RESYNC ||
		file->busy_ns < s->disk->traced_ns / 2 ||
		(!c->has_half && file->busy_ns + c->busy_ns / 2 < s->disk->traced_ns))
		return;
	text_copy(c->file, sizeof(c->file), file->name);
	text_copy(c->relation, sizeof(c->relation), file->relation);
}

/* Of a server whose sessions are processes, each of these is a thread, too. */
static void set_role(const struct scene *s, struct culprit *c)
{
	for (uint32_t i = 0; i < s->loads->counts[RECORD_BY_thread]; i++) {
		const struct model_load *load = &s->loads->threads[i];

		if (load->who.tid == c->who.tid && load->who.pid == c->who.pid)
			text_copy(c->role, sizeof(c->role), load->name);
	}
}

static void settle(const struct scene *s, const struct culprit *found, struct culprit *ret)
{
	double seen_ns = (double)s->disk->traced_ns;

	*ret = *found;
	ret->pct = s->work_ns > 0 ? 100 * (double)ret->busy_ns / s->work_ns : 0;
	/* Two completions at the same time may both have counted the time before them. */
	ret->pct = ret->pct < 100 ? ret->pct : 100;
	ret->has_half =
		has_half(s, ret) && ret->kind != CULPRIT_KERNEL && ret->kind != CULPRIT_WRITE_BACK;
	if (seen_ns < (double)ret->busy_ns)
		seen_ns = (double)ret->busy_ns;
	ret->untraced_pct = s->work_ns > seen_ns ? 100 * (s->work_ns - seen_ns) / s->work_ns : 0;
	set_file(s, ret);
	name_program(s, &ret->who);
	if (ret->kind != CULPRIT_PROCESS && ret->kind != CULPRIT_THREAD)
		return;
	set_role(s, ret);
	if (ret->has_half)
		add_likely_statement(s, ret);
}

/* The smallest with half of it, as the lines have it. */
static bool find_direct(const struct scene *s, struct culprit *ret)
{
	const struct model_loads_of *l = s->loads;
	struct culprit c;

	if (find_resync(s, &c) && has_half(s, &c)) {
		*ret = c;
		return true;
	}
	for (uint32_t i = 0; find_statement(s, i, &c); i++) {
		add_before(s, &c);
		if (has_half(s, &c)) {
			*ret = c;
			return true;
		}
	}
	for (uint32_t i = 0; i < l->counts[RECORD_BY_thread]; i++) {
		const struct model_load *load = &l->threads[i];

		if (load->inferred)
			continue;
		c = of_load(load->who.tid == load->who.pid ? CULPRIT_PROCESS : CULPRIT_THREAD,
			load);
		add_before(s, &c);
		if (has_half(s, &c)) {
			*ret = c;
			return true;
		}
	}
	for (uint32_t i = 0; i < l->counts[RECORD_BY_process]; i++) {
		if (l->processes[i].inferred)
			continue;
		c = of_load(CULPRIT_PROCESS, &l->processes[i]);
		add_before(s, &c);
		if (has_half(s, &c)) {
			*ret = c;
			return true;
		}
	}
	return false;
}

/* The same, with what kernel threads did for programs. */
static bool find_behind(const struct scene *s, struct culprit *ret)
{
	const struct model_loads_of *l = s->loads;
	struct culprit c;

	if (find_committer(s, &c) && has_half(s, &c)) {
		*ret = c;
		return true;
	}
	for (uint32_t i = 0; i < s->m->waits.files.count; i++) {
		const struct model_used_file *f = &s->m->waits.files.list[i];
		const struct model_user *user = f->slowed.who.pid ? &f->slowed
			: f->writing.who.pid			  ? &f->writing
								  : &f->reading;

		c = (struct culprit){ .kind = CULPRIT_PROCESS,
			.who = model_who_of(user->who.pid, user->who.pid, user->who.comm) };
		for (uint32_t k = 0; k < l->counts[RECORD_BY_process]; k++)
			if (l->processes[k].who.pid == c.who.pid)
				add_load(&c, &l->processes[k], 1);
		add_files(s, &c);
		if (has_half(s, &c)) {
			*ret = c;
			return true;
		}
	}
	for (uint32_t i = 0; i < l->counts[RECORD_BY_cgroup]; i++) {
		c = of_load(CULPRIT_UNIT, &l->units[i]);
		text_copy(c.unit, sizeof(c.unit), l->units[i].name);
		if (!l->units[i].inferred && has_half(s, &c)) {
			*ret = c;
			return true;
		}
	}
	return find_before(s, ret) && has_half(s, ret);
}

/* Nobody has half: whoever did most, if that is much. */
static bool find_largest(const struct scene *s, struct culprit *ret)
{
	const struct model_loads_of *l = s->loads;
	struct culprit c;
	bool any = false;

	for (uint32_t i = 0; i < l->counts[RECORD_BY_process] && !any; i++) {
		if (l->processes[i].inferred)
			continue;
		*ret = of_load(CULPRIT_PROCESS, &l->processes[i]);
		any = true;
	}
	/* One of many sessions of a process, or of many processes. */
	if (find_statement(s, 0, &c) && (!any || c.busy_ns >= ret->busy_ns)) {
		*ret = c;
		any = true;
	}
	if (find_write_back(s, &c) && (!any || c.busy_ns > ret->busy_ns)) {
		*ret = c;
		any = true;
	}
	for (uint32_t i = 0; i < l->counts[RECORD_BY_thread] && !any; i++) {
		*ret = of_load(l->threads[i].inferred ? CULPRIT_KERNEL : CULPRIT_THREAD,
			&l->threads[i]);
		any = true;
	}
	return any && 100 * (double)ret->busy_ns >= NAMED_PCT * s->work_ns;
}

/* Of each kind there are ten lines. */
static uint64_t kernel_ns(const struct scene *s)
{
	uint64_t threads_ns = 0, processes_ns = 0;

	for (uint32_t i = 0; i < s->loads->counts[RECORD_BY_thread]; i++)
		threads_ns += s->loads->threads[i].inferred ? s->loads->threads[i].busy_ns : 0;
	for (uint32_t i = 0; i < s->loads->counts[RECORD_BY_process]; i++)
		processes_ns +=
			s->loads->processes[i].inferred ? s->loads->processes[i].busy_ns : 0;
	return threads_ns > processes_ns ? threads_ns : processes_ns;
}

void blame(const struct model *m, int disk, struct culprit *ret)
{
	static const struct model_loads_of nothing;
	struct scene s = {
		.m = m,
		.disk = &m->disks.list[disk],
		.loads = model_loads_find(&m->loads, disk),
		.work_ns = model_disk_work_ns(&m->disks.list[disk]),
	};
	struct culprit found = { 0 };

	*ret = (struct culprit){ .kind = CULPRIT_NOBODY };
	/* A freeze may be over when tracing begins. */
	if (!s.loads)
		s.loads = &nothing;
	s.kernel_ns = kernel_ns(&s);
	if (find_direct(&s, &found) || find_behind(&s, &found) || find_largest(&s, &found))
		settle(&s, &found, ret);
	else
		settle(&s, ret, ret);
}
