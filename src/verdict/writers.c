/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "verdict/writers.h"

#include <string.h>

/* An unlink has the path as the program gave it, perhaps from its working directory. */
static bool is_path_of(const struct verdict_dirtier *d, const char *path)
{
	size_t length = strlen(path), end = strlen(d->path);

	if (*d->path == '/' || length <= end)
		return strcmp(d->path, path) == 0;
	return path[length - end - 1] == '/' && strcmp(path + length - end, d->path) == 0;
}

/* The only program that did that with the file; NULL: nobody did, or several. */
static const struct verdict_who *only_one_of(const struct verdict_facts *f, const char *path,
	bool weak)
{
	const struct verdict_who *found = NULL;

	for (uint32_t i = 0; i < f->dirtiers_count && *path; i++) {
		const struct verdict_dirtier *d = &f->dirtiers[i];

		if (d->weak != weak || !is_path_of(d, path))
			continue;
		if (found && found->pid != d->who.pid)
			return NULL;
		found = &d->who;
	}
	return found;
}

/* Who is slowed down in a write to the file writes it; else probably who waits for it. */
static const struct verdict_who *dirtier_of(const struct verdict_facts *f, const char *path)
{
	const struct verdict_who *writer = only_one_of(f, path, false);

	return writer ? writer : only_one_of(f, path, true);
}

/*
 * What a kernel thread writes back of a file, also from before tracing, was written by the program
 * that is slowed down in a write to it, or that waits in an fsync until all of it is written.
 */
void verdict_find_writer(struct verdict_finding *v)
{
	const struct verdict_load *file = &v->device->load[VERDICT_BY_FILE];
	const struct verdict_who *found = dirtier_of(v->f, v->file);

	if (!found || file->requests[VERDICT_READ] > file->requests[VERDICT_WRITE])
		return;
	if (v->culprit && !v->culprit->inferred && v->culprit->who.pid != found->pid)
		return;
	if (v->culprit && v->culprit->inferred)
		v->writer_back = &v->culprit->who;
	v->group = *file;
	v->group.who = *found;
	v->group.busy_ns += file->before_ns;
	v->group.bytes += file->before_bytes;
	v->group.requests[VERDICT_WRITE] += file->before_requests;
	v->group.inferred = false;
	v->group.uncertain = true;
	v->group_shares = 0;
	v->attributed_ns = file->before_ns;
	v->culprit = &v->group;
	v->culprit_by = VERDICT_BY_PROCESS;
}

bool verdict_is_written_by_others(const struct verdict_facts *f, const char *path, int32_t pid)
{
	for (uint32_t i = 0; i < f->dirtiers_count; i++)
		if (!f->dirtiers[i].weak && f->dirtiers[i].who.pid != pid &&
			strcmp(f->dirtiers[i].path, path) == 0)
			return true;
	return false;
}

uint64_t verdict_work_key(const struct verdict_sql *sql, int32_t pid, int32_t tid)
{
	uint64_t key = sql && sql->statement_key ? sql->statement_key(sql->userdata, tid) : 0;

	return key ? key : (uint32_t)pid;
}

/* Whoever works on one thing, and what was written back for it. */
struct writer {
	uint64_t key;
	uint64_t before_ns;
	struct verdict_load load;
};

struct writers {
	uint32_t count;
	struct writer list[VERDICT_DIRTIERS_MAX];
};

static struct writer *get_writer(struct writers *w, uint64_t key, const struct verdict_who *who)
{
	for (uint32_t i = 0; i < w->count; i++)
		if (w->list[i].key == key)
			return &w->list[i];
	if (w->count == VERDICT_DIRTIERS_MAX)
		return NULL;
	w->list[w->count] = (struct writer){ .key = key, .load = { .count = 1, .who = *who } };
	return &w->list[w->count++];
}

static void add_file(struct writer *w, const struct verdict_file *file)
{
	w->before_ns += file->before_ns;
	w->load.busy_ns += file->busy_ns;
	w->load.bytes += file->bytes + file->before_bytes;
	w->load.requests[VERDICT_WRITE] += file->write_requests + file->before_requests;
}

/* What kernel threads sent to the device: no more can have been written back. */
static uint64_t written_back_ns(const struct verdict_finding *v)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < v->f->shares_count; i++) {
		const struct verdict_share *share = &v->f->shares[i];

		if (share->device == v->device - v->f->devices && share->kernel)
			ns += share->busy_ns;
	}
	return ns;
}

/* What its own threads sent. */
static void add_direct(const struct verdict_finding *v, const struct verdict_sql *sql,
	struct writer *w)
{
	for (uint32_t i = 0; i < v->f->shares_count; i++) {
		const struct verdict_share *share = &v->f->shares[i];

		if (share->device != v->device - v->f->devices || share->kernel ||
			verdict_work_key(sql, share->pid, share->tid) != w->key)
			continue;
		w->load.busy_ns += share->busy_ns;
		w->load.bytes += share->bytes;
		for (unsigned int k = 0; k < VERDICT_KINDS; k++)
			w->load.requests[k] += share->requests[k];
	}
}

static const struct writer *find_largest(const struct verdict_finding *v,
	const struct verdict_sql *sql, struct writers *all)
{
	const uint64_t most_ns = written_back_ns(v);
	const struct writer *largest = NULL;

	for (uint32_t i = 0; i < all->count; i++) {
		struct writer *w = &all->list[i];

		if (w->load.busy_ns > most_ns)
			w->load.busy_ns = most_ns;
		add_direct(v, sql, w);
		w->load.busy_ns += w->before_ns;
		if (!largest || w->load.busy_ns > largest->load.busy_ns)
			largest = w;
	}
	return largest;
}

void verdict_find_writers(struct verdict_finding *v, const struct verdict_sql *sql)
{
	const struct verdict_load *process = &v->device->load[VERDICT_BY_PROCESS];
	struct writers all = { 0 };
	const struct writer *largest;

	for (uint32_t i = 0; i < v->f->files_count; i++) {
		const struct verdict_file *file = &v->f->files[i];
		const struct verdict_who *who;
		struct writer *w;

		who = dirtier_of(v->f, file->path);
		/* If programs sent more of it than the kernel, these are its writers. */
		if (file->device != v->device - v->f->devices || !who ||
			file->busy_ns > written_back_ns(v))
			continue;
		w = get_writer(&all, verdict_work_key(sql, who->pid, who->tid), who);
		if (w)
			add_file(w, file);
	}
	largest = find_largest(v, sql, &all);
	if (!largest ||
		(v->culprit && !v->culprit->inferred &&
			v->culprit->busy_ns >= largest->load.busy_ns))
		return;
	if (process->inferred)
		v->writer_back = &process->who;
	v->group = largest->load;
	v->group.uncertain = true;
	v->group_shares = 0;
	v->group_count = 0;
	v->is_parallel = v->is_resync = false;
	v->snapshot = NULL;
	if (sql && sql->count_alike)
		v->group_count = sql->count_alike(sql->userdata, largest->load.who.tid);
	v->attributed_ns = largest->before_ns;
	v->work_key = largest->key;
	v->culprit = &v->group;
	v->culprit_by = v->group_count ? VERDICT_BY_THREAD : VERDICT_BY_PROCESS;
}
