/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "enrich/decode.h"

#include <errno.h>
#include <string.h>

#include "config/config.h"
#include "util/cleanup.h"
#include "util/text.h"

static const enum record_op ops[EVENT_OP_COUNT] = {
	[EVENT_OP_READ] = RECORD_OP_read,
	[EVENT_OP_WRITE] = RECORD_OP_write,
	[EVENT_OP_FSYNC] = RECORD_OP_fsync,
	[EVENT_OP_SYNC] = RECORD_OP_sync,
	[EVENT_OP_OPEN] = RECORD_OP_open,
	[EVENT_OP_LOOKUP] = RECORD_OP_lookup,
	[EVENT_OP_UNLINK] = RECORD_OP_unlink,
	[EVENT_OP_RENAME] = RECORD_OP_rename,
	[EVENT_OP_TRUNCATE] = RECORD_OP_truncate,
	[EVENT_OP_ALLOCATE] = RECORD_OP_fallocate,
	[EVENT_OP_COPY] = RECORD_OP_copy,
	[EVENT_OP_FAULT] = RECORD_OP_fault,
	[EVENT_OP_SUBMIT] = RECORD_OP_submit,
	[EVENT_OP_OTHER] = RECORD_OP_other,
	[EVENT_OP_KERNEL] = RECORD_OP_kernel,
};

static int check_event(const void *data, size_t size)
{
	const struct event_operation *e = data;
	const size_t fixed = offsetof(struct event_operation, path);
	const char *names_end;

	if (size < sizeof(struct event_header) || e->header.size != size)
		return -EINVAL;
	if (e->header.type != EVENT_OPERATION || e->header.version != EVENT_VERSION)
		return -EPROTONOSUPPORT;
	if (size < fixed || e->path_len > EVENT_PATH_SIZE || e->stack_len > EVENT_STACK_DEPTH ||
		e->names_len > EVENT_CGROUP_NAMES * EVENT_CGROUP_NAME_SIZE)
		return -EINVAL;
	if (size != fixed + e->path_len + e->names_len + e->stack_len * sizeof(e->stack[0]))
		return -EINVAL;
	if (e->op >= EVENT_OP_COUNT || e->probe >= CONFIG_PROBE_COUNT || e->fd < -1)
		return -EINVAL;
	if (e->state && !strchr("DISR", e->state))
		return -EINVAL;
	if ((e->flags & EVENT_FAILED) && (!(e->flags & EVENT_FINISHED) || e->failures == 0))
		return -EINVAL;
	if (e->path_len > 0 && e->path[e->path_len - 1] != '\0')
		return -EINVAL;
	names_end = e->path + e->path_len + e->names_len;
	return e->names_len > 0 && names_end[-1] != '\0' ? -EINVAL : 0;
}

static void decode_names(const struct event_operation *e, struct decoded_operation *decoded)
{
	const char *name = e->path + e->path_len, *end = name + e->names_len;

	for (unsigned int i = 0; i < EVENT_CGROUP_NAMES && name < end; i++) {
		text_copy(decoded->cgroup_names[i], EVENT_CGROUP_NAME_SIZE, name);
		name += strlen(name) + 1;
	}
}

/* The offsets follow strings of any length, so they are not aligned. */
static void decode_stack(const struct event_operation *e, struct decoded_operation *decoded)
{
	const char *from = e->path + e->path_len + e->names_len;

	for (unsigned int i = 0; i < e->stack_len; i++, from += sizeof(e->stack[0])) {
		int32_t offset;

		memcpy(&offset, from, sizeof(offset));
		if (offset != EVENT_STACK_FAR)
			decoded->stack[decoded->stack_len++] =
				e->stack_base + (uint64_t)(int64_t)offset;
	}
}

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
	/* The kernel had no name of this inode in memory. */
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
	/*
	 * Like dentry_path(): no name can contain "//", but a name may end with d_path()'s "
	 * (deleted)".
	 */
	if (flags & EVENT_PATH_DELETED)
		text_add(&path, "//deleted");
	return truncated || path.overflow;
}

int event_decode(const void *data, size_t size, struct decoded_operation *ret_decoded,
	struct record_operation *ret_operation)
{
	const struct event_operation *e = data;
	struct record_operation *op = ret_operation;
	bool is_awake;
	int r = check_event(data, size);

	if (r < 0)
		return r;
	*ret_decoded = (struct decoded_operation){
		.finished = e->flags & EVENT_FINISHED,
		.failures = e->flags & EVENT_FAILED ? e->failures : 0,
		.path_in_fs = (e->flags & EVENT_PATH_IN_FS) && (e->flags & EVENT_PATH_COMPLETE),
		.ts_ns = e->header.ts_ns,
		.process_start_ns = e->process_start_ns,
		.uid = e->uid,
		.probe = e->probe,
		.unproven = e->flags & EVENT_UNPROVEN,
		.stack_asleep = e->flags & EVENT_STACK_ASLEEP,
	};
	decode_names(e, ret_decoded);
	decode_stack(e, ret_decoded);
	memset(op, 0, sizeof(*op));
	op->op = ops[e->op];
	op->pid = (int32_t)e->pid;
	op->tid = (int32_t)e->tid;
	memcpy(op->comm, e->comm, sizeof(op->comm) - 1);
	op->cgroup = e->cgroup_id;
	op->fd = e->fd;
	op->mount_ns = e->mount_ns;
	op->dev.major = e->dev >> 20;
	op->dev.minor = e->dev & 0xfffff;
	op->inode = e->inode;
	op->offset = e->offset;
	op->bytes = e->bytes;
	op->ret = e->flags & EVENT_NO_RET ? RECORD_RET_UNKNOWN : e->ret;
	op->since = e->flags & EVENT_BEFORE_ARM ? RECORD_SINCE_before_arm : RECORD_SINCE_after_arm;
	op->iowait = e->flags & EVENT_IOWAIT;
	op->syscall = e->syscall;
	op->state = (char)e->state;
	is_awake = e->flags & EVENT_AWAKE;
	op->sleeps =
		is_awake || (e->sleeps && !(e->flags & EVENT_FAILED)) ? (int32_t)e->sleeps : -1;
	op->slept_ns = is_awake || e->slept_ns ? (int64_t)e->slept_ns : -1;
	op->path_given = e->flags & EVENT_PATH_GIVEN;
	op->start_mono_ns = e->start_ns;
	op->dur_ns = e->dur_ns;
	op->path_truncated =
		event_join_path(e->path, e->path_len, e->flags, op->path, sizeof(op->path));
	return 0;
}
