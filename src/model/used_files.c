/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/used_files.h"

static void note_user(struct model_user *user, const struct record_operation *op)
{
	if (user->who.pid == 0)
		user->who = model_who_of(op->pid, op->tid, op->comm);
	user->is_several |= user->who.pid != op->pid;
	user->has_threads |= user->who.tid != op->tid;
}

/* Of all files that which was waited for least. */
static struct model_used_file *find_shortest(struct model_used_files *files)
{
	struct model_used_file *shortest = files->list;

	for (uint32_t i = 1; i < files->count; i++)
		if (files->list[i].longest_ns < shortest->longest_ns)
			shortest = &files->list[i];
	return shortest;
}

void model_used_files_add(struct model_used_files *files, const struct record_operation *op)
{
	/* Whoever removes a file need not have written it. */
	const bool is_write = op->op == RECORD_OP_write || op->op == RECORD_OP_fsync ||
		op->op == RECORD_OP_fallocate;
	const bool is_read = op->op == RECORD_OP_read || op->op == RECORD_OP_fault;
	/* A writer waits for its dirty pages to become fewer, or for one that is being written. */
	const bool is_slowed = op->op == RECORD_OP_write &&
		(op->waits_for == RECORD_CAUSE_dirty_throttling ||
			op->waits_for == RECORD_CAUSE_writeback);
	const struct model_file_id id = model_file_id_of(op->dev, op->inode, op->path);
	struct model_used_file *f = files->list;

	if (!*op->path || (!is_write && !is_read))
		return;
	while (f < files->list + files->count && !model_is_same_file(&f->id, &id))
		f++;
	if (f == files->list + MODEL_USED_FILES_MAX)
		f = find_shortest(files);
	else if (f == files->list + files->count)
		files->count++;
	if (!model_is_same_file(&f->id, &id)) {
		if (op->dur_ns <= f->longest_ns)
			return;
		*f = (struct model_used_file){ .id = id };
	}
	if (op->dur_ns > f->longest_ns)
		f->longest_ns = op->dur_ns;
	note_user(is_read ? &f->reading : is_slowed ? &f->slowed : &f->writing, op);
}

const struct model_used_file *model_used_files_find(const struct model_used_files *files,
	const struct model_file_id *id)
{
	for (uint32_t i = 0; i < files->count; i++)
		if (model_is_same_file(&files->list[i].id, id))
			return &files->list[i];
	return NULL;
}
