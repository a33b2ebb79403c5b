/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/who.h"
#include "util/hash.h"

#include <string.h>

#define DELETED " (deleted)"

struct model_who model_who_of(int32_t pid, int32_t tid, const char *comm)
{
	struct model_who who = { .pid = pid, .tid = tid };

	text_copy(who.comm, sizeof(who.comm), comm);
	return who;
}

static const char *end_of(const char *path)
{
	size_t len = strlen(path);

	return len < MODEL_PATH_SIZE ? path : path + len - (MODEL_PATH_SIZE - 1);
}

void model_set_path(char to[static MODEL_PATH_SIZE], const char *path)
{
	text_copy(to, MODEL_PATH_SIZE, end_of(path));
}

/* A name in /proc has at most 15 bytes. */
void model_set_process(char ret_process[static RECORD_COMM_SIZE], const struct record_operation *op)
{
	const char *slash = strrchr(op->exe, '/'), *name = slash ? slash + 1 : op->exe;
	size_t len = strlen(name);

	if (op->pid == op->tid) {
		text_copy(ret_process, RECORD_COMM_SIZE, op->comm);
		return;
	}
	if (len > strlen(DELETED) && strcmp(name + len - strlen(DELETED), DELETED) == 0)
		len -= strlen(DELETED);
	if (len >= RECORD_COMM_SIZE)
		len = RECORD_COMM_SIZE - 1;
	memset(ret_process, 0, RECORD_COMM_SIZE);
	memcpy(ret_process, name, len);
}

/* Of what model_set_path() keeps. */
static uint64_t key_of_path(const char *path)
{
	return hash_text(HASH_BEGIN, end_of(path));
}

struct model_file_id model_file_id_of(struct record_dev dev, uint64_t inode, const char *path)
{
	return (struct model_file_id){ .dev = dev,
		.inode = inode,
		.path_key = *path ? key_of_path(path) : 0 };
}

uint32_t model_file_key(const struct model_file_id *id)
{
	uint64_t key = id->dev.major ? HASH_BEGIN : id->path_key;

	if (!id->inode || (!id->dev.major && !id->dev.minor))
		return 0;
	key = hash_bytes(key, &id->dev, sizeof(id->dev));
	key = hash_bytes(key, &id->inode, sizeof(id->inode));
	return (uint32_t)(key ^ key >> 32);
}

bool model_is_same_file(const struct model_file_id *a, const struct model_file_id *b)
{
	const bool is_known = (a->dev.major || a->dev.minor) && (b->dev.major || b->dev.minor);

	if (is_known && (a->dev.major != b->dev.major || a->dev.minor != b->dev.minor))
		return false;
	if (is_known && a->inode && b->inode) {
		if (a->inode != b->inode)
			return false;
		if (a->dev.major || !a->path_key || !b->path_key)
			return true;
	}
	return a->path_key == b->path_key;
}
