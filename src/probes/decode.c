/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/decode.h"

#include <errno.h>
#include <string.h>

#include "config.h"
#include "util/cleanup.h"
#include "util/text.h"

static const char *const op_names[EVENT_OP_COUNT] = {
	[EVENT_OP_READ] = "read",
	[EVENT_OP_WRITE] = "write",
	[EVENT_OP_FSYNC] = "fsync",
	[EVENT_OP_SYNC] = "sync",
	[EVENT_OP_OPEN] = "open",
	[EVENT_OP_LOOKUP] = "lookup",
	[EVENT_OP_UNLINK] = "unlink",
	[EVENT_OP_RENAME] = "rename",
	[EVENT_OP_TRUNCATE] = "truncate",
	[EVENT_OP_ALLOCATE] = "fallocate",
	[EVENT_OP_COPY] = "copy",
	[EVENT_OP_FAULT] = "fault",
	[EVENT_OP_SUBMIT] = "submit",
	[EVENT_OP_OTHER] = "other",
	[EVENT_OP_KERNEL] = "kernel",
};

static int check_event(const void *data, size_t size)
{
	const struct event_operation *e = data;
	const size_t fixed = offsetof(struct event_operation, path);

	if (size < sizeof(struct event_header) || e->header.size != size)
		return -EINVAL;
	if (e->header.type != EVENT_OPERATION || e->header.version != EVENT_VERSION)
		return -EPROTONOSUPPORT;
	if (size < fixed || e->path_len > EVENT_PATH_SIZE || size != fixed + e->path_len)
		return -EINVAL;
	if (e->op >= EVENT_OP_COUNT || e->probe >= CONFIG_PROBE_COUNT || e->stack_len > EVENT_STACK_DEPTH || e->fd < -1)
		return -EINVAL;
	if (e->path_len > 0 && e->path[e->path_len - 1] != '\0')
		return -EINVAL;
	return 0;
}

/* The names come from the file up to the root; a path is written the other way round. */
bool event_join_path(const char *names, uint32_t len, uint32_t flags, char *ret_path, size_t size)
{
	struct text path = { .buf = ret_path, .size = size };
	const char *end = names + len;
	bool truncated = !(flags & EVENT_PATH_COMPLETE) || (flags & EVENT_PATH_IN_FS);

	text_reset(&path);
	if (flags & EVENT_PATH_GIVEN) {
		text_add(&path, len ? names : "");
		return truncated;
	}
	/* An inode that has no name in memory. */
	if (end == names && (flags & EVENT_PATH_IN_FS) && !(flags & EVENT_PATH_COMPLETE))
		return true;
	if (truncated)
		text_add(&path, "...");
	else if (flags & EVENT_PATH_DETACHED)
		text_add(&path, "(unreachable)");
	if (end == names)
		text_add(&path, "/");
	while (end > names) {
		const char *name = end - 1;

		while (name > names && name[-1] != '\0')
			name--;
		text_add(&path, "/");
		text_add(&path, name);
		end = name;
	}
	/* As in dentry_path(): no name can contain it, unlike d_path()'s " (deleted)". */
	if (flags & EVENT_PATH_DELETED)
		text_add(&path, "//deleted");
	return truncated || path.overflow;
}

int event_decode(const void *data, size_t size, struct decoded_operation *ret_decoded,
	struct record_operation *ret_operation)
{
	const struct event_operation *e = data;
	struct record_operation *op = ret_operation;
	int r = check_event(data, size);

	if (r < 0)
		return r;
	*ret_decoded = (struct decoded_operation){
		.finished = e->flags & EVENT_FINISHED,
		.path_in_fs = (e->flags & EVENT_PATH_IN_FS) && (e->flags & EVENT_PATH_COMPLETE),
		.ts_ns = e->header.ts_ns,
		.process_start_ns = e->process_start_ns,
		.uid = e->uid,
		.probe = e->probe,
		.stack_asleep = e->flags & EVENT_STACK_ASLEEP,
		.stack_len = e->stack_len,
	};
	memcpy(ret_decoded->stack, e->stack, sizeof(e->stack));
	for (unsigned int i = 0; i < EVENT_CGROUP_NAMES; i++)
		memcpy(ret_decoded->cgroup_names[i], e->cgroup_names[i],
			EVENT_CGROUP_NAME_SIZE - 1);
	memset(op, 0, sizeof(*op));
	text_copy(op->op, sizeof(op->op), op_names[e->op]);
	op->pid = (int32_t)e->pid;
	op->tid = (int32_t)e->tid;
	memcpy(op->comm, e->comm, sizeof(op->comm) - 1);
	op->cgroup_id = e->cgroup_id;
	op->fd = e->fd;
	op->mount_ns = e->mount_ns;
	op->dev_major = e->dev >> 20;
	op->dev_minor = e->dev & 0xfffff;
	op->inode = e->inode;
	op->offset = e->offset;
	op->bytes = e->bytes;
	op->ret = e->flags & EVENT_NO_RET ? RECORD_RET_UNKNOWN : e->ret;
	op->before_arm = e->flags & EVENT_BEFORE_ARM;
	op->iowait = e->flags & EVENT_IOWAIT;
	op->syscall = e->syscall;
	op->sleeps = e->sleeps;
	op->slept_ns = e->slept_ns;
	op->path_given = e->flags & EVENT_PATH_GIVEN;
	op->start_mono_ns = e->start_ns;
	op->dur_ns = e->dur_ns;
	op->path_truncated = event_join_path(e->path, e->path_len, e->flags, op->path,
		sizeof(op->path));
	return 0;
}
