/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "verdict/writers.h"

#include <string.h>

#include "verdict/culprit.h"

/*
 * Who is slowed down in writes to the file writes it; else probably who waits for it. NULL: nobody
 * is known, or several are.
 */
static const struct verdict_writer *writer_of(const struct verdict_facts *f,
	const struct verdict_file_id *id)
{
	for (uint32_t i = 0; i < f->dirtiers_count; i++) {
		const struct verdict_dirtier *d = &f->dirtiers[i];
		const struct verdict_writer *w = d->slowed.who.pid ? &d->slowed : &d->waiting;

		if (verdict_is_same_file(&d->id, id))
			return w->who.pid && !w->several ? w : NULL;
	}
	return NULL;
}

/* All that was done on the finding's file is of this program. */
static void stand_for_file(struct verdict_finding *v, const struct verdict_writer *found,
	enum verdict_kind kind)
{
	const struct verdict_load *file = &v->device->load[VERDICT_BY_FILE];

	v->group = *file;
	v->group.who = found->who;
	v->group.busy_ns += file->before_ns;
	v->group.bytes += file->before_bytes;
	v->group.requests[kind] += file->before_requests;
	v->group.inferred = false;
	v->group.uncertain = true;
	v->group_shares = 0;
	v->attributed_ns = file->before_ns;
	v->culprit = &v->group;
	v->culprit_by = VERDICT_BY_PROCESS;
}

/*
 * What a kernel thread writes back of a file, also from before tracing, was written by the program
 * that is slowed down in a write to it, or that waits in an fsync until all of it is written.
 */
void verdict_find_writer(struct verdict_finding *v)
{
	const struct verdict_load *file = &v->device->load[VERDICT_BY_FILE];
	const struct verdict_writer *found = *v->file ? writer_of(v->f, &v->device->file_id) : NULL;

	if (!found || file->requests[VERDICT_READ] > file->requests[VERDICT_WRITE])
		return;
	if (v->culprit && !v->culprit->inferred && v->culprit->who.pid != found->who.pid)
		return;
	if (v->culprit && v->culprit->inferred)
		v->writer_back = &v->culprit->who;
	stand_for_file(v, found, VERDICT_WRITE);
}

void verdict_add_share(struct verdict_load *sum, const struct verdict_share *share, double part)
{
	sum->count++;
	sum->busy_ns += (uint64_t)((double)share->busy_ns * part);
	sum->bytes += (uint64_t)((double)share->bytes * part);
	sum->read_bytes += (uint64_t)((double)share->read_bytes * part);
	for (unsigned int i = 0; i < VERDICT_KINDS; i++)
		sum->requests[i] += (uint64_t)((double)share->requests[i] * part);
}

bool verdict_is_on_device(const struct verdict_finding *v, const struct verdict_share *share)
{
	return share->device == v->device - v->f->devices;
}

/* What kernel threads sent to the device: no more can have been on behalf of programs. */
uint64_t verdict_kernel_ns(const struct verdict_finding *v)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < v->f->shares_count; i++)
		if (verdict_is_on_device(v, &v->f->shares[i]) && v->f->shares[i].kernel)
			ns += v->f->shares[i].busy_ns;
	return ns;
}

static const struct verdict_writer *reader_of(const struct verdict_facts *f,
	const struct verdict_file_id *id)
{
	for (uint32_t i = 0; i < f->readers_count; i++)
		if (verdict_is_same_file(&f->readers[i].id, id))
			return f->readers[i].by.several ? NULL : &f->readers[i].by;
	return NULL;
}

/*
 * A kernel thread sends on what a limit has held back. What it reads of a file was asked for by the
 * only program that waits for reads of it.
 */
void verdict_find_reader(struct verdict_finding *v)
{
	const struct verdict_load *file = &v->device->load[VERDICT_BY_FILE];
	const struct verdict_writer *found = *v->file ? reader_of(v->f, &v->device->file_id) : NULL;

	if (!found || file->requests[VERDICT_READ] <= file->requests[VERDICT_WRITE] ||
		!v->culprit || !v->culprit->inferred || file->busy_ns > verdict_kernel_ns(v))
		return;
	stand_for_file(v, found, VERDICT_READ);
	if (found->threads)
		v->group.who.tid = v->group.who.pid;
}

bool verdict_is_written_by_others(const struct verdict_finding *v, int32_t pid)
{
	const struct verdict_facts *f = v->f;

	for (uint32_t i = 0; i < f->dirtiers_count; i++) {
		const struct verdict_writer *w = &f->dirtiers[i].slowed;

		if (w->who.pid && verdict_is_same_file(&f->dirtiers[i].id, &v->device->file_id))
			return w->several || w->who.pid != pid;
	}
	return false;
}

uint64_t verdict_work_key(const struct verdict_sql *sql, int32_t pid, int32_t tid)
{
	uint64_t key = sql && sql->statement_key ? sql->statement_key(sql->userdata, tid) : 0;

	return key ? key : (uint32_t)pid;
}

/* Whoever works on one thing, what was written back for it, and what its own threads sent. */
struct writer {
	uint64_t key;
	struct verdict_who who;
	struct verdict_load files;
	struct verdict_load sent;
};

struct writers {
	uint32_t count;
	struct writer list[VERDICT_FILES_MAX];
};

static struct writer *find_or_add(struct writers *w, uint64_t key, const struct verdict_who *who)
{
	for (uint32_t i = 0; i < w->count; i++)
		if (w->list[i].key == key)
			return &w->list[i];
	w->list[w->count] = (struct writer){ .key = key, .who = *who };
	return &w->list[w->count++];
}

static void add_file(struct writer *w, const struct verdict_file *file)
{
	w->files.before_ns += file->before_ns;
	w->files.before_bytes += file->before_bytes;
	w->files.before_requests += file->before_requests;
	w->files.busy_ns += file->busy_ns;
	w->files.bytes += file->bytes;
	w->files.requests[VERDICT_WRITE] += file->write_requests;
}

static void add_sent(struct writers *all, uint64_t key, const struct verdict_share *share)
{
	for (uint32_t i = 0; i < all->count; i++)
		if (all->list[i].key == key)
			verdict_add_share(&all->list[i].sent, share, 1);
}

/* What the threads of each writer sent themselves. */
static void add_shares(const struct verdict_finding *v, const struct verdict_sql *sql,
	struct writers *all)
{
	for (uint32_t i = 0; i < v->f->shares_count && all->count > 0; i++) {
		const struct verdict_share *share = &v->f->shares[i];

		if (verdict_is_on_device(v, share) && !share->kernel)
			add_sent(all, verdict_work_key(sql, share->pid, share->tid), share);
	}
}

/*
 * Kernel threads did at least half of the work on these files, and its own threads no more than
 * they sent.
 */
static uint64_t by_kernel(uint64_t of_files, uint64_t sent)
{
	uint64_t rest = of_files > sent ? of_files - sent : 0;

	return rest > of_files / 2 ? rest : of_files / 2;
}

static struct verdict_load sum_of(const struct writer *w, uint64_t most_ns)
{
	struct verdict_load sum = w->sent;
	uint64_t ns = by_kernel(w->files.busy_ns, w->sent.busy_ns);

	sum.count = 1;
	sum.who = w->who;
	sum.uncertain = true;
	sum.busy_ns += (ns < most_ns ? ns : most_ns) + w->files.before_ns;
	sum.bytes += by_kernel(w->files.bytes, w->sent.bytes) + w->files.before_bytes;
	sum.requests[VERDICT_WRITE] +=
		by_kernel(w->files.requests[VERDICT_WRITE], w->sent.requests[VERDICT_WRITE]) +
		w->files.before_requests;
	return sum;
}

void verdict_find_writers(struct verdict_finding *v, const struct verdict_sql *sql)
{
	const struct verdict_load *process = &v->device->load[VERDICT_BY_PROCESS];
	struct writers all = { 0 };
	const struct writer *largest = NULL;
	struct verdict_load most = { 0 };
	const uint64_t most_ns = verdict_kernel_ns(v);

	for (uint32_t i = 0; i < v->f->files_count; i++) {
		const struct verdict_file *file = &v->f->files[i];
		const struct verdict_writer *writer = writer_of(v->f, &file->id);
		struct verdict_who who;

		/* If programs sent more of it than the kernel, these are its writers. */
		if (file->device != v->device - v->f->devices || !writer || file->busy_ns > most_ns)
			continue;
		who = writer->who;
		/* Which of the threads' statements it was for is not known. */
		if (writer->threads)
			who.tid = who.pid;
		add_file(find_or_add(&all, verdict_work_key(sql, who.pid, who.tid), &who), file);
	}
	add_shares(v, sql, &all);
	for (uint32_t i = 0; i < all.count; i++) {
		struct verdict_load sum = sum_of(&all.list[i], most_ns);

		if (largest && sum.busy_ns <= most.busy_ns)
			continue;
		largest = &all.list[i];
		most = sum;
	}
	if (!largest ||
		(v->culprit && !v->culprit->inferred && v->culprit->busy_ns >= most.busy_ns))
		return;
	verdict_drop_culprit(v);
	if (process->inferred)
		v->writer_back = &process->who;
	v->group = most;
	if (sql && sql->count_alike)
		v->group_count = sql->count_alike(sql->userdata, most.who.tid);
	v->attributed_ns = largest->files.before_ns;
	v->work_key = largest->key;
	v->culprit = &v->group;
	v->culprit_by = v->group_count ? VERDICT_BY_THREAD : VERDICT_BY_PROCESS;
}
