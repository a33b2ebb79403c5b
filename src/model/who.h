/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What names a process, a thread and a file in a model.
 * Used by the parts of struct model and by the verdict.
 * Plain data.
 */
#ifndef IOSTALL_MODEL_WHO_H
#define IOSTALL_MODEL_WHO_H

#include "record/record.h"

/* The end of a path says the most. */
#define MODEL_PATH_SIZE 160

struct model_who {
	int32_t pid; /* 0: nobody is known */
	int32_t tid; /* pid: the process as a whole */
	char comm[RECORD_COMM_SIZE];
};

/*
 * Which file it is: by device and inode where both are known, else by its path. Numbers of inodes
 * may be those of several subvolumes where the device is anonymous (major 0): there the path
 * counts, too.
 */
struct model_file_id {
	struct record_dev dev; /* of its file system; 0:0: not known */
	uint64_t inode;	       /* 0: not known */
	uint64_t path_key;     /* 0: not known */
};

struct model_who model_who_of(int32_t pid, int32_t tid, const char *comm);
/* Of the path only a hash is kept. */
struct model_file_id model_file_id_of(struct record_dev dev, uint64_t inode, const char *path);
/* The same for the same inode; 0: it is not known. */
uint32_t model_file_key(const struct model_file_id *id);
bool model_is_same_file(const struct model_file_id *a, const struct model_file_id *b);
/* The name of the process, by its executable when only a thread of it is known; "": not known. */
void model_set_process(char ret_process[static RECORD_COMM_SIZE],
	const struct record_operation *op);
/* A long path loses its beginning. */
void model_set_path(char to[static MODEL_PATH_SIZE], const char *path);

#endif
