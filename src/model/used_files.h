/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who wrote and who read the files that were waited for in an incident, by its `stall` and `stuck`
 * lines: of each file the first one that was seen.
 * Part of struct model_waits, which adds to it; read by the verdict.
 * Never says whose fault a file is: see verdict/blame.h.
 */
#ifndef IOSTALL_MODEL_USED_FILES_H
#define IOSTALL_MODEL_USED_FILES_H

#include "model/who.h"
#include "record/record.h"

#define MODEL_USED_FILES_MAX 48

/* Who writes a file, or waits for reads of it. */
struct model_user {
	struct model_who who; /* the first that was seen; pid 0: nobody was */
	bool is_several;      /* processes */
	bool has_threads;     /* several, of this process */
};

struct model_used_file {
	struct model_file_id id;
	uint64_t longest_ns;	   /* that an operation on it took */
	struct model_user slowed;  /* writers, because too many of its pages were dirty */
	struct model_user writing; /* in a write for something else, or until it was written */
	struct model_user reading;
};

/* Where there is no room, those that were waited for longest. */
struct model_used_files {
	uint32_t count;
	struct model_used_file list[MODEL_USED_FILES_MAX];
};

/* Operations that neither read nor write a file are ignored. */
void model_used_files_add(struct model_used_files *files, const struct record_operation *op);
/* NULL: it is not among them. */
const struct model_used_file *model_used_files_find(const struct model_used_files *files,
	const struct model_file_id *id);

#endif
