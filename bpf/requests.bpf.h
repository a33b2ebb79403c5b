/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the probes of asynchronous requests share: the map of requests in flight, and their report.
 * Included by uring.bpf.c and aio.bpf.c instead of common.bpf.h.
 * Never waits for a thread's word: who submitted a request may be doing anything meanwhile.
 */
#ifndef IOSTALL_REQUESTS_BPF_H
#define IOSTALL_REQUESTS_BPF_H

enum scratch_slot {
	SCRATCH_END,
	SCRATCH_END_AGAIN,
	SCRATCH_RESOLVE,
	SCRATCH_COUNT,
};

#include "common.bpf.h"

/*
 * By the address of the request, or by what else names it. An entry goes when its request ends: unlike
 * threads, rings and contexts come and go, and their requests' addresses with them.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct event_request);
} requests SEC(".maps");

/* cfg_reuse_tells: whether a request whose address comes again must have ended unseen. */
const volatile bool cfg_reuse_tells = true;

#define IOVECS_MAX 1024

/* The bytes that a vector of the current process asks for; 0 when they cannot be read. */
static __always_inline __u64 request_vector_bytes(__u64 vector, __u64 count)
{
	__u64 bytes = 0;

	for (__u32 i = 0; i < IOVECS_MAX; i++) {
		struct iovec iovec = {};

		if (i >= count)
			break;
		if (bpf_probe_read_user(&iovec, sizeof(iovec),
			    (void *)(vector + i * sizeof(iovec))) < 0)
			return 0;
		bytes += iovec.iov_len;
	}
	return bytes;
}

/* For `block`, whose requests do not say of direct I/O which file it is of. */
static __always_inline void request_note_file(__u32 tid, struct file *file)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct event_thread_file submitted = { .inode = (__u64)inode };

	submitted.ino = BPF_CORE_READ(inode, i_ino);
	/* Refused now and then: then it is one of the files that are not known, which block says. */
	bpf_map_update_elem(&thread_files, &tid, &submitted, BPF_ANY);
}

/* The rest of `fresh` is the caller's: what is asked for, of which file, and what names the request. */
static __always_inline void request_begin(__u64 key, struct event_request *fresh)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct file *file = (struct file *)fresh->op.file;
	struct event_request *known;

	fresh->op.task = bpf_get_current_task();
	fresh->op.pid = pid_tgid >> 32;
	fresh->op.tid = (__u32)pid_tgid;
	fresh->op.probe = (__u8)cfg_probe;
	fresh->inode = file ? BPF_CORE_READ(file, f_inode, i_ino) : 0;
	fresh->op.start_ns = bpf_ktime_get_ns();
	if (file)
		request_note_file(fresh->op.tid, file);
	known = bpf_map_lookup_elem(&requests, &key);
	if (known && known->op.start_ns && cfg_reuse_tells)
		loss_count(EVENT_LOSS_RETURN_MISSED);
	if (bpf_map_update_elem(&requests, &key, fresh, BPF_ANY) < 0)
		loss_count(EVENT_LOSS_MAP_FULL);
}

/* Whether the operation's file is one whose requests are noted; unknown ones are until they end. */
static __always_inline bool request_file_is_wanted(struct file *file)
{
	return !file || file_mode_is_storage(BPF_CORE_READ(file, f_inode, i_mode));
}

/* The submitter, from what was noted of it: the thread itself may have ended. */
static __always_inline void request_forget_task(const struct event_request *r,
	struct event_operation *e)
{
	e->pid = r->op.pid;
	e->tid = r->op.tid;
	e->uid = (__u32)-1;
	e->process_start_ns = 0;
	e->mount_ns = 0;
	e->cgroup_id = 0;
	e->cgroup_names[0][0] = '\0';
	e->cgroup_names[1][0] = '\0';
	e->comm[0] = '\0';
	e->fd = r->op.fd;
}

/* False when its file is none of interest. Without the path, which comes last. */
static __always_inline bool request_describe(const struct event_request *r, struct file *file,
	struct event_operation *e)
{
	struct task_struct *task = (struct task_struct *)r->op.task;

	if (!file || !request_file_is_wanted(file) || !file_describe(file, e))
		return false;
	e->start_ns = r->op.start_ns;
	e->offset = (__s64)r->op.pos;
	e->bytes = r->op.bytes;
	e->op = (__u16)r->op.op;
	e->ret = 0;
	e->slept_ns = 0;
	e->sleeps = 0;
	e->syscall = -1;
	/* Who ends a request, or looks at it, is not where it is stuck. */
	e->stack_len = 0;
	task_describe(task, e);
	e->fd = file_find_fd(task, file, r->op.fd);
	if (e->tid != r->op.tid || e->pid != r->op.pid)
		request_forget_task(r, e);
	return true;
}

struct request_end {
	struct file *file; /* NULL: the one noted */
	__s64 ret;
	__s64 position; /* the request's after the end; -1: not known */
	__u32 slot; /* enum scratch_slot of the program that sees it */
};

/*
 * An end may come in an interrupt, on 5.10 even in one of another end: then the slot is in use. `size`
 * is 0 while it is not.
 */
static __always_inline void request_report(const struct event_request *r, __u64 now,
	const struct request_end *end)
{
	struct file *file = end->file ? end->file : (struct file *)r->op.file;
	__u32 slot = end->slot;
	struct event_operation *e = bpf_map_lookup_elem(&scratch, &slot);
	volatile __u32 *in_use;

	if (!e)
		return;
	in_use = &e->header.size;
	if (*in_use) {
		loss_count(EVENT_LOSS_RETURN_MISSED);
		return;
	}
	*in_use = 1;
	e->flags = EVENT_FINISHED;
	if (request_describe(r, file, e)) {
		e->header.ts_ns = now;
		e->dur_ns = now - r->op.start_ns;
		e->ret = end->ret;
		/* At the end of the file, or wherever the file stood: known only afterwards. */
		if (e->offset < 0 && end->position >= 0 && end->ret > 0)
			e->offset = end->position - end->ret;
		path_collect(file, e);
		event_emit(e);
	}
	*in_use = 0;
}

static __always_inline void request_end(__u64 key, struct event_request *known,
	const struct request_end *end)
{
	__u64 now = bpf_ktime_get_ns();

	if (now - known->op.start_ns >= cfg_min_stall_ns)
		request_report(known, now, end);
	known->op.start_ns = 0;
	/* Refused now and then in an interrupt; then the entry stays, and is none. */
	bpf_map_delete_elem(&requests, &key);
}

/* What `key` stands for has proved to be another request: the end of this one was missed. */
static __always_inline void request_drop(__u64 key, __u64 start_ns)
{
	struct event_request *known = bpf_map_lookup_elem(&requests, &key);

	if (!known || known->op.start_ns != start_ns)
		return;
	known->op.start_ns = 0;
	bpf_map_delete_elem(&requests, &key);
	if (cfg_reuse_tells)
		loss_count(EVENT_LOSS_RETURN_MISSED);
}

/* Whether the file that a request was for is another one by now. */
static __always_inline bool request_file_has_changed(const struct event_request *r, struct file *file)
{
	return r->inode && file && BPF_CORE_READ(file, f_inode, i_ino) != r->inode;
}

/* IOCB_DSYNC is RWF_DSYNC of include/uapi/linux/fs.h. */
#define REQUEST_DSYNC 2

/*
 * Whether all that was asked for has been read or written: the position tells. Then the request no
 * longer hangs, even if nobody has taken its result yet, or if its end was missed. But a write that
 * is to be synced waits for that afterwards.
 */
static __always_inline bool request_is_done(const struct event_request *r, struct kiocb *iocb)
{
	if (r->op.op != EVENT_OP_READ && r->op.op != EVENT_OP_WRITE)
		return false;
	if (r->op.op == EVENT_OP_WRITE && (BPF_CORE_READ(iocb, ki_flags) & REQUEST_DSYNC))
		return false;
	return r->op.bytes && (__s64)r->op.pos >= 0 &&
		BPF_CORE_READ(iocb, ki_pos) == (loff_t)(r->op.pos + r->op.bytes);
}

/* Describes a request in flight; 1 when emitted, 0 when it has ended meanwhile or is filtered out. */
static __always_inline int request_resolve(__u64 key, const struct event_request *r, struct file *file)
{
	__u32 slot = SCRATCH_RESOLVE;
	struct event_operation *e = bpf_map_lookup_elem(&scratch, &slot);
	struct event_request *known;
	__u64 now = bpf_ktime_get_ns();

	if (!e)
		return 0;
	e->flags = 0;
	if (!request_describe(r, file, e))
		return 0;
	e->header.ts_ns = now;
	e->dur_ns = now - r->op.start_ns;
	path_collect(file, e);
	/* Ended while it was read: what was read may be another one's. */
	known = bpf_map_lookup_elem(&requests, &key);
	if (!known || *(volatile __u64 *)&known->op.start_ns != r->op.start_ns)
		return 0;
	event_emit(e);
	return 1;
}

#endif
