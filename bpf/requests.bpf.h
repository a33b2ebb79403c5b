/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the probes of asynchronous requests share: the map of requests in flight, and their report.
 * Included by uring.bpf.c and aio.bpf.c instead of common.bpf.h.
 * Never judges a request by its submitter, which may be doing anything meanwhile.
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
 * Keyed by the address of the request, or by what else identifies it. An entry is deleted when its
 * request completes: rings and contexts come and go, and with them the addresses of their requests.
 * REQUESTS_MAP is its name in src/probes/maps.h, where each of the two objects has its own map.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct event_request);
} REQUESTS_MAP SEC(".maps");

/*
 * Whether a second request at the same address proves that the completion of the first was missed.
 */
const volatile bool cfg_reuse_tells = true;

/* For the probe `block`: requests of direct I/O do not say which file they belong to. */
static __always_inline void request_note_file(__u32 tid, struct file *file)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct event_thread_file submitted = {
		.task = bpf_get_current_task(),
		.inode = (__u64)inode,
	};
	struct event_thread_file *known;

	submitted.ino = BPF_CORE_READ(inode, i_ino);
	/* Written in place where it can be: an update of an LRU map takes a lock. */
	known = bpf_map_lookup_elem(&thread_files, &tid);
	if (known) {
		*known = submitted;
		return;
	}
	/* When the update fails now and then, `block` reports the request's file as not known. */
	bpf_map_update_elem(&thread_files, &tid, &submitted, BPF_ANY);
}

/*
 * Notes a new request. The caller has filled in what is asked for, of which file, and what
 * identifies the request.
 */
static __always_inline void request_begin(__u64 key, struct event_request *fresh)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct file *file = (struct file *)fresh->op.file;
	struct event_request *known;

	fresh->op.task = bpf_get_current_task();
	fresh->op.pid = pid_tgid >> 32;
	fresh->op.tid = (__u32)pid_tgid;
	fresh->op.probe = (__u8)cfg_common.probe;
	fresh->inode = file ? BPF_CORE_READ(file, f_inode, i_ino) : 0;
	fresh->op.start_ns = bpf_ktime_get_ns();
	if (file)
		request_note_file(fresh->op.tid, file);
	known = bpf_map_lookup_elem(&REQUESTS_MAP, &key);
	if (known && known->op.start_ns && cfg_reuse_tells)
		loss_count(EVENT_LOSS_RETURN_MISSED);
	if (bpf_map_update_elem(&REQUESTS_MAP, &key, fresh, BPF_ANY) < 0)
		loss_count(EVENT_LOSS_MAP_FULL);
}

/* Whether requests on this file are noted. While the file is not known, they are. */
static __always_inline bool request_file_is_wanted(struct file *file)
{
	return !file || file_mode_is_storage(BPF_CORE_READ(file, f_inode, i_mode));
}

/* The submitting thread has ended: only what was noted at the submission is known of it. */
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

/* All but the path, which is collected last. False when the file is not of interest. */
static __always_inline bool request_describe(const struct event_request *r, struct file *file,
	struct event_operation *e)
{
	struct task_struct *task = (struct task_struct *)r->op.task;

	if (!file || !request_file_is_wanted(file) || !file_describe(file, e))
		return false;
	e->start_ns = r->op.start_ns;
	e->offset = (__s64)r->op.pos;
	e->bytes = r->op.bytes;
	e->op = (__u8)r->op.op;
	e->ret = 0;
	e->slept_ns = 0;
	e->sleeps = 0;
	e->syscall = -1;
	/* The stack of the thread that completes or describes it says nothing about the request. */
	e->stack_len = 0;
	task_describe(task, e);
	e->fd = file_find_fd(task, file, r->op.fd);
	/* Whether it sleeps says nothing about the request. */
	e->state = 0;
	if (e->tid != r->op.tid || e->pid != r->op.pid)
		request_forget_task(r, e);
	return true;
}

struct request_end {
	struct file *file; /* NULL: the one that was noted */
	__s64 ret;
	__s64 position; /* file position after the completion; -1: not known */
	__u32 slot;	/* enum scratch_slot of the program that sees it */
};

/*
 * A completion may come in an interrupt, on 5.10 even while another completion is being reported on
 * the same CPU: the slot is in use then. Its `size` is 0 while it is not.
 */
static __always_inline void request_report(const struct event_request *r, __u64 now,
	const struct request_end *end)
{
	struct file *file = end->file ? end->file : (struct file *)r->op.file;
	__u32 slot = end->slot;
	struct event_operation *e = scratch_get(slot);
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
		/* An appending write, or one at the file's position: known only afterwards. */
		if (e->offset < 0 && end->position >= 0 && end->ret > 0)
			e->offset = end->position - end->ret;
		path_collect(file, e, slot);
		event_emit(e);
	}
	*in_use = 0;
}

static __always_inline void request_end(__u64 key, struct event_request *known,
	const struct request_end *end)
{
	__u64 now = bpf_ktime_get_ns();

	if (now - known->op.start_ns >= cfg_common.min_stall_ns)
		request_report(known, now, end);
	known->op.start_ns = 0;
	/*
	 * Deleting may fail in an interrupt. The entry stays then, and start_ns 0 says it is
	 * unused.
	 */
	bpf_map_delete_elem(&REQUESTS_MAP, &key);
}

/* Another request has taken the place of this one, whose completion was missed. */
static __always_inline void request_drop(__u64 key, __u64 start_ns)
{
	struct event_request *known = bpf_map_lookup_elem(&REQUESTS_MAP, &key);

	if (!known || known->op.start_ns != start_ns)
		return;
	known->op.start_ns = 0;
	bpf_map_delete_elem(&REQUESTS_MAP, &key);
	if (cfg_reuse_tells)
		loss_count(EVENT_LOSS_RETURN_MISSED);
}

/* Whether the file that a request was for is another one by now. */
static __always_inline bool request_file_has_changed(const struct event_request *r,
	struct file *file)
{
	return r->inode && file && BPF_CORE_READ(file, f_inode, i_ino) != r->inode;
}

/* IOCB_DSYNC is RWF_DSYNC of include/uapi/linux/fs.h. */
#define REQUEST_DSYNC 2

/*
 * Whether everything has been read or written that was asked for, which the position tells. Such a
 * request is not stuck, even if the program has not fetched its result yet or if its completion was
 * missed. A write with O_DSYNC is not done before it has been synced.
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

/*
 * Copies the request that user space asks about: args are its key and its start. False when it has
 * ended meanwhile.
 */
static __always_inline bool request_find_asked(struct bpf_raw_tracepoint_args *ctx,
	struct event_request *ret_request)
{
	__u64 key = ctx->args[0];
	struct event_request *known = bpf_map_lookup_elem(&REQUESTS_MAP, &key);

	if (!known)
		return false;
	*ret_request = *known;
	return ret_request->op.start_ns == ctx->args[1];
}

/*
 * Describes a request in flight; 1 when emitted, 0 when it has ended meanwhile or is filtered out.
 */
static __always_inline int request_resolve(__u64 key, const struct event_request *r,
	struct file *file)
{
	__u32 slot = SCRATCH_OF_USER + SCRATCH_RESOLVE;
	struct event_operation *e = scratch_get(slot);
	struct event_request *known;
	__u64 now = bpf_ktime_get_ns();

	if (!e)
		return 0;
	e->flags = 0;
	if (!request_describe(r, file, e))
		return 0;
	e->header.ts_ns = now;
	e->dur_ns = now - r->op.start_ns;
	path_collect(file, e, slot);
	/* It completed while it was being read: what was read may belong to another request. */
	known = bpf_map_lookup_elem(&REQUESTS_MAP, &key);
	if (!known || *(volatile __u64 *)&known->op.start_ns != r->op.start_ns)
		return 0;
	event_emit(e);
	return 1;
}

#endif
