/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who loaded the disks of an incident, by its `io_by` lines: the first few of each kind for each
 * disk.
 * Part of struct model; filled by model_add(), read by the verdict.
 * Never says for whom a kernel thread worked: see verdict/blame.h.
 */
#ifndef IOSTALL_MODEL_LOADS_H
#define IOSTALL_MODEL_LOADS_H

#include "model/disks.h"
#include "model/who.h"
#include "record/record.h"

#define MODEL_LOADED_DISKS_MAX 8
#define MODEL_LOADS_MAX 10
#define MODEL_STATEMENTS_MAX 2

struct model_load {
	uint64_t busy_ns; /* how long the disk was busy with it */
	uint64_t bytes;	  /* read, written and discarded */
	uint64_t read_bytes;
	uint64_t discard_bytes;
	uint64_t requests[MODEL_KINDS];
	/* Of a file: what had begun before tracing, which is not in the others. */
	uint64_t before_ns;
	uint64_t before_bytes;
	uint64_t before_requests;
	uint64_t cgroup;
	struct model_who who;	   /* of processes, threads and statements */
	struct model_file_id file; /* of files */
	bool inferred;		   /* most of it was sent by a kernel thread, for whom is unknown */
	bool uncertain;		   /* it is not certain that it had dirtied what was written back */
	char name[MODEL_PATH_SIZE]; /* path of a file, unit of a control group, role of a thread */
	char relation[RECORD_RELATION_SIZE]; /* of a file */
};

struct model_statement {
	struct model_load load;
	struct record_io_statement statement;
};

struct model_loads_of {
	int disk; /* index */
	uint32_t counts[RECORD_BY_COUNT];
	/* The most first. */
	struct model_load processes[MODEL_LOADS_MAX];
	struct model_load threads[MODEL_LOADS_MAX];
	struct model_load files[MODEL_LOADS_MAX];
	struct model_load units[MODEL_LOADS_MAX]; /* those that have a name */
	struct model_statement statements[MODEL_STATEMENTS_MAX];
};

struct model_loads {
	uint32_t count;
	struct model_loads_of list[MODEL_LOADED_DISKS_MAX];
};

struct model;

void model_loads_add(struct model *model, const struct record_io_by *line);

/* NULL: nobody is known. */
const struct model_loads_of *model_loads_find(const struct model_loads *loads, int disk);
/* Those of one kind, and how many there are. */
const struct model_load *model_loads_list(const struct model_loads_of *loads, enum record_by by,
	uint32_t *ret_count);

#endif
