/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Operations whose entry is paired with their return, one at a time per thread: what is in flight, the
 * report of one that took long, the description of one that hangs.
 * Included by the pairing probes, whose maps of operations in flight are one, and by who asks it.
 * Never keeps two operations of a thread: the one nearest to the caller counts.
 */
#ifndef IOSTALL_PAIRING_BPF_H
#define IOSTALL_PAIRING_BPF_H

#include "sleeps.bpf.h"

/*
 * Shared by all pairing probes. A thread owns the slot of its id, until it ends: an array look-up is a few
 * instructions in the caller, one in a hash some hundred, at each entry and each return. The thread names
 * the operation, and file and kind in the slot confirm it; a slot that is overwritten and still in
 * flight shows a lost return. Ids that differ by a multiple of the slots share one: who comes second
 * has an entry in the hash.
 */
const volatile __u32 cfg_inflight_mask = 0; /* slots - 1, a power of two less one */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct event_inflight);
} inflight SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct event_inflight);
} inflight_more SEC(".maps");

/* What an entry says of the operation. */
struct pairing_call {
	struct file *file;
	__u64 pos;
	__u64 buf;
	__u64 bytes;
	__s32 fd; /* -1: not told */
	__u32 op;
	__u32 flags; /* enum event_inflight_flags */
};

/* What a return says of the call that it is the return of. */
struct pairing_return {
	struct file *file; /* NULL: not told */
	unsigned long long *fentry_context; /* NULL: not from fexit */
	long syscall_nr; /* -1: not from a tracepoint */
	__s64 ret;
	__u32 op;
	__u32 slot; /* enum scratch_slot */
};

static __always_inline struct event_inflight *pairing_slot(__u32 tid)
{
	__u32 slot = tid & cfg_inflight_mask;

	return bpf_map_lookup_elem(&inflight, &slot);
}

/* The thread's entry, which may be of a call that has returned (start_ns 0); NULL: it has none. */
static __always_inline struct event_inflight *pairing_find(__u32 tid)
{
	struct event_inflight *entry = pairing_slot(tid);

	if (!entry || entry->tid == tid)
		return entry;
	return entry->shared ? bpf_map_lookup_elem(&inflight_more, &tid) : NULL;
}

/*
 * Where two threads come for one free slot at once, each adds its id and then looks: at most one finds
 * itself alone. (5.10 has no compare-and-exchange for BPF programs, and fetches nothing when it adds.)
 */
static __always_inline bool pairing_own(struct event_inflight *entry, __u32 tid)
{
	if (*(volatile __u32 *)&entry->tid != 0)
		return false;
	__sync_fetch_and_add(&entry->tid, tid);
	if (*(volatile __u32 *)&entry->tid == tid)
		return true;
	__sync_fetch_and_add(&entry->tid, -tid);
	return false;
}

/* The first time that a thread comes by, or its slot is another's. */
static __always_inline struct event_inflight *pairing_claim(struct event_inflight *entry, __u64 pid_tgid)
{
	__u32 tid = (__u32)pid_tgid;
	struct event_inflight fresh = {};

	if (!pairing_own(entry, tid)) {
		*(volatile __u8 *)&entry->shared = 1;
		entry = bpf_map_lookup_elem(&inflight_more, &tid);
		if (entry)
			return entry;
		fresh.tid = tid;
		if (bpf_map_update_elem(&inflight_more, &tid, &fresh, BPF_ANY) < 0)
			loss_count(EVENT_LOSS_MAP_FULL);
		entry = bpf_map_lookup_elem(&inflight_more, &tid);
		if (!entry)
			return NULL;
	}
	entry->pid = pid_tgid >> 32;
	return entry;
}

static __always_inline void pairing_enter(const struct pairing_call *call, __u64 pid_tgid)
{
	struct event_inflight *entry = pairing_slot((__u32)pid_tgid);

	if (entry && entry->tid != (__u32)pid_tgid)
		entry = pairing_claim(entry, pid_tgid);
	if (!entry)
		return;
	if (entry->start_ns)
		loss_count(EVENT_LOSS_RETURN_MISSED);
	/* Who reads it meanwhile looks at start_ns before and after all else. */
	*(volatile __u64 *)&entry->start_ns = 0;
	barrier();
	entry->file = (__u64)call->file;
	entry->pos = call->pos;
	entry->buf = call->buf;
	entry->bytes = call->bytes;
	entry->task = bpf_get_current_task();
	entry->fd = call->fd;
	entry->op = (__u8)call->op;
	entry->probe = (__u8)cfg_probe;
	entry->flags = (__u8)call->flags;
	barrier();
	*(volatile __u64 *)&entry->start_ns = bpf_ktime_get_ns();
}

/*
 * A thread that enters a call that is not noted has left the one that is. Only the kprobe backend
 * needs to be told: fexit compares the file, the tracepoints the system call's arguments.
 */
static __always_inline void pairing_enter_unwanted(__u32 tid)
{
	struct event_inflight *known = pairing_find(tid);

	if (known && known->start_ns) {
		known->start_ns = 0;
		loss_count(EVENT_LOSS_RETURN_MISSED);
	}
}

static __always_inline bool wanted_mode(__u32 mode, __u64 pid_tgid)
{
	return file_mode_is_storage(mode) && filter_task(pid_tgid >> 32);
}

/* More than these are not added up. */
#define VECTOR_MAX 64

/* What an iovec of the current thread asks for; 0: not known. */
static __always_inline __u64 vector_bytes(__u64 vector, __u64 count)
{
	struct iovec segment = {};
	__u64 bytes = 0;

	for (__u32 i = 0; i < VECTOR_MAX; i++) {
		if (i >= count)
			return bytes;
		if (bpf_probe_read_user(&segment, sizeof(segment),
			    (void *)(vector + i * sizeof(segment))) < 0)
			return 0;
		bytes += segment.iov_len;
	}
	return 0;
}

/* Another thread's memory cannot be read, so how much a vector asks for is known when it returns. */
static __always_inline __u64 pairing_bytes(const struct event_inflight *op, bool finished)
{
	if (op->op == EVENT_OP_FSYNC)
		return 0;
	if (!(op->flags & EVENT_INFLIGHT_VECTOR))
		return op->bytes;
	return finished ? vector_bytes(op->buf, op->bytes) : 0;
}

static __always_inline void pairing_describe(struct event_inflight *op, struct event_operation *e,
	struct task_struct *task, struct file *file)
{
	bool pos_is_address = op->flags & EVENT_INFLIGHT_POS_IS_ADDRESS;
	bool position_is_final = pos_is_address && (e->flags & EVENT_FINISHED);

	e->start_ns = op->start_ns;
	e->bytes = pairing_bytes(op, e->flags & EVENT_FINISHED);
	e->op = op->op;
	e->slept_ns = 0;
	e->sleeps = 0;
	e->offset = -1;
	if (!pos_is_address)
		e->offset = (__s64)op->pos;
	else if (op->pos)
		bpf_probe_read_kernel(&e->offset, sizeof(e->offset), (void *)op->pos);
	/* Where an appending write goes is known only when it has been done. */
	if (op->op == EVENT_OP_WRITE && !position_is_final &&
		(BPF_CORE_READ(file, f_flags) & O_APPEND))
		e->offset = -1;
	task_describe(task, e);
	e->probe = op->probe;
}

/*
 * Where programs are preempted, both the return of one call and the entry of the next may have been
 * skipped; then this is the return of another call than the one noted. Its arguments show it,
 * unless a thread reads the same file into the same buffer again and again.
 */
static __always_inline bool pairing_return_is_of(const struct pairing_return *r,
	struct event_inflight *op, const struct compat_syscall *call)
{
	if (r->fentry_context)
		return compat_int_pointer_arg(r->fentry_context, 1) == op->buf &&
			r->fentry_context[2] == op->bytes;
	if (r->syscall_nr >= 0 && call->nr == r->syscall_nr)
		return (op->fd < 0 || (__s32)call->args[0] == op->fd) &&
			call->args[1] == op->buf && call->args[2] == op->bytes;
	return true;
}

/* The file, if it is known, as file_describe() does. */
static __always_inline bool pairing_describe_file(struct file *file, struct event_operation *e)
{
	if (file)
		return file_describe(file, e);
	e->dev = 0;
	e->inode = 0;
	return !cfg_filter_dev;
}

static __always_inline void pairing_collect_path(struct file *file, struct event_operation *e)
{
	if (file) {
		path_collect(file, e);
		return;
	}
	e->path_len = 0;
	e->flags |= EVENT_PATH_GIVEN | EVENT_PATH_COMPLETE;
}

static __always_inline __s32 pairing_fd(struct task_struct *task, struct file *file,
	const struct event_inflight *op, const struct compat_syscall *call)
{
	if (!file)
		return -1;
	return file_find_fd(task, file, op->fd >= 0 ? op->fd : (__s32)call->args[0]);
}

/*
 * A finished operation over the threshold; everything here is off the fast path. A function of its own, or
 * each of twenty programs would carry it, and locked memory with them.
 */
static __noinline void pairing_report(void *ctx, struct event_inflight *op, __u64 now,
	const struct pairing_return *r)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u32 slot = r->slot;
	struct event_operation *e = bpf_map_lookup_elem(&scratch, &slot);
	struct file *file = (struct file *)op->file;
	struct compat_syscall call;
	long n;

	if (!e)
		return;
	compat_syscall_read(task, &call);
	if (!pairing_return_is_of(r, op, &call)) {
		loss_count(EVENT_LOSS_RETURN_MISSED);
		return;
	}
	e->flags = EVENT_FINISHED;
	if (!pairing_describe_file(file, e))
		return;
	pairing_describe(op, e, task, file);
	e->header.ts_ns = now;
	e->dur_ns = now - op->start_ns;
	e->ret = r->ret;
	/* The position has moved on by what was done; where it began is what was asked for. */
	if ((op->flags & EVENT_INFLIGHT_POS_IS_ADDRESS) && e->offset >= 0 && r->ret > 0)
		e->offset -= r->ret;
	e->fd = pairing_fd(task, file, op, &call);
	e->syscall = (__s32)call.nr;
	if (!sleep_take(e->tid, op->start_ns, e)) {
		n = bpf_get_stack(ctx, e->stack, sizeof(e->stack), 0);
		e->stack_len = n > 0 ? (__u32)n / sizeof(e->stack[0]) : 0;
	}
	pairing_collect_path(file, e);
	event_emit(e);
}

static __always_inline void pairing_exit(void *ctx, const struct pairing_return *r)
{
	struct event_inflight *op = pairing_find((__u32)bpf_get_current_pid_tgid());
	__u64 now;

	/* Not entered while attached, filtered out, or inside the one that is noted. */
	if (!op || !op->start_ns || op->op != r->op)
		return;
	if (r->op == EVENT_OP_FSYNC && r->syscall_nr < 0 && (op->flags & EVENT_INFLIGHT_SYSCALL))
		return;
	/* Of one inside it, unless that one's return was skipped. */
	if (r->op == EVENT_OP_FSYNC && op->flags >= EVENT_INFLIGHT_NESTED &&
		op->file != (__u64)r->file) {
		op->flags -= EVENT_INFLIGHT_NESTED;
		return;
	}
	if (r->file && op->file != (__u64)r->file) {
		op->start_ns = 0;
		loss_count(EVENT_LOSS_RETURN_MISSED);
		return;
	}
	now = bpf_ktime_get_ns();
	if (now - op->start_ns >= cfg_min_stall_ns)
		pairing_report(ctx, op, now, r);
	op->start_ns = 0;
}

static __always_inline void pairing_thread_exit(void)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct event_inflight *entry = pairing_slot(tid), *more;

	if (!entry)
		return;
	more = entry->shared ? bpf_map_lookup_elem(&inflight_more, &tid) : NULL;
	if (more) {
		if (more->start_ns)
			loss_count(EVENT_LOSS_RETURN_MISSED);
		bpf_map_delete_elem(&inflight_more, &tid);
	}
	if (entry->tid != tid)
		return;
	if (entry->start_ns)
		loss_count(EVENT_LOSS_RETURN_MISSED);
	*(volatile __u64 *)&entry->start_ns = 0;
	barrier();
	__sync_fetch_and_add(&entry->tid, -tid);
}

static __always_inline int pairing_resolve(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 tid = (__u32)ctx->args[0], slot = SCRATCH_RESOLVE;
	__u64 start_ns = ctx->args[1], now;
	struct event_inflight *known = pairing_find(tid), op;
	struct event_operation *e = bpf_map_lookup_elem(&scratch, &slot);
	struct compat_syscall call;
	struct task_struct *task;
	struct file *file;

	if (!known || !e)
		return 0;
	op = *known;
	if (op.start_ns != start_ns)
		return 0;
	task = (struct task_struct *)op.task;
	file = (struct file *)op.file;
	now = bpf_ktime_get_ns();
	e->flags = 0;
	if (!pairing_describe_file(file, e))
		return 0;
	pairing_describe(&op, e, task, file);
	e->header.ts_ns = now;
	e->dur_ns = now - start_ns;
	e->ret = 0;
	e->stack_len = 0;
	compat_syscall_read(task, &call);
	e->syscall = (__s32)call.nr;
	e->fd = pairing_fd(task, file, &op, &call);
	pairing_collect_path(file, e);
	/* Returned while it was read: what was read may be another file's. */
	if (*(volatile __u64 *)&known->start_ns != start_ns || e->tid != tid)
		return 0;
	event_emit(e);
	return 1;
}

/*
 * The programs that every backend of a pairing probe has.
 *
 * A thread that ends leaves nothing behind: its id may be another's soon.
 *
 * The other is run by user space through BPF_PROG_TEST_RUN, never attached: args are the thread id and
 * the start of an operation that has not returned, of whichever pairing probe. It leaves as an event like
 * any other, without EVENT_FINISHED, so that there is one way to describe an operation. Returns 1
 * when emitted, 0 when the operation has returned meanwhile or is filtered out.
 */
#define PAIRING_PROGRAMS(name)                                                                     \
	SEC("raw_tp/sched_process_exit") int name##_thread_exit_raw_tp(void *ctx)                  \
	{                                                                                          \
		pairing_thread_exit();                                                             \
		return 0;                                                                          \
	}                                                                                          \
                                                                                                   \
	SEC("raw_tp") int name##_inflight_resolve(struct bpf_raw_tracepoint_args *ctx)             \
	{                                                                                          \
		return pairing_resolve(ctx);                                                       \
	}

#endif
