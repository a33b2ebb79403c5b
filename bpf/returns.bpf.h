/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The return of an operation: reports one that slept and took long, with its result.
 * Included by vfs.bpf.c and sync.bpf.c. `wait` has noted when the thread fell asleep and in which
 * call, so an entry need not be hooked, and an operation that has not slept costs only a look at
 * `sleep_marks`. Only a call that the kernel does not count is hooked there, too: nothing else
 * tells it from the one before it. When the kernel skips a run, `wait` reports the operation
 * without its result.
 * One that failed for want of space or by an error of the disk is reported however short it was,
 * at most once a second for each process and error: a database that cannot write may try again at
 * once.
 * Never begins an operation.
 */
#ifndef IOSTALL_RETURNS_BPF_H
#define IOSTALL_RETURNS_BPF_H

#include "report.bpf.h"

/* What is known of an operation when it returns. */
struct sleep_return {
	struct file *file; /* NULL: not known */
	__u64 pos;	   /* address of an loff_t behind the operation; 0: not known */
	__s64 ret;
	__s32 syscall; /* only in this system call; -1: in any */
	__u32 op;
	__u32 slot;	/* enum scratch_slot */
	__u8 counted;	/* operations that the kernel has counted since the thread fell asleep */
	__u8 is_vector; /* the second argument is an iovec, the third its length */
};

/* What only the return tells: the offset of an appending write, the length of a vector. */
static __always_inline void return_complete(struct event_sleep *sleep, const struct sleep_return *r)
{
	struct file *file = r->file;
	__u64 pos = 0;

	if (r->pos && r->ret > 0 && bpf_probe_read_kernel(&pos, sizeof(pos), (void *)r->pos) == 0)
		sleep->op.pos = pos - (__u64)r->ret;
	if (r->is_vector)
		sleep->op.bytes = vector_bytes(sleep->args[1], sleep->args[2]);
	/* The descriptor may have meant another file when the thread fell asleep. */
	if (file) {
		sleep->op.file = (__u64)file;
		sleep->inode = (__u64)BPF_CORE_READ(file, f_inode);
	}
}

/* Ends the operation that the current thread has slept in. Returns whether it was reported. */
static __noinline int return_finish(struct task_struct *task, struct event_sleep *sleep,
	const struct sleep_return *r)
{
	struct event_operation *e = scratch_get(r->slot);
	__u64 start_ns = sleep_start(sleep), now = bpf_ktime_get_ns();
	int reported = 0;

	if (e && now - start_ns >= cfg_common.min_stall_ns) {
		return_complete(sleep, r);
		e->header.ts_ns = now;
		e->dur_ns = now - start_ns;
		e->ret = r->ret;
		e->flags = EVENT_FINISHED;
		reported = sleep_emit(task, sleep, e, r->slot);
	}
	if (!reported)
		sleep_end(sleep);
	return reported;
}

/* The same where the sleep that is noted may be of another operation. */
static __always_inline int return_report(struct task_struct *task, const struct sleep_return *r)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct event_sleep *sleep = bpf_map_lookup_elem(&sleeps, &tid);
	struct compat_syscall call;

	if (!sleep)
		return 0;
	/* The read of a directory, a nested call, the sleep of an earlier call. */
	if (!sleep_start(sleep) || sleep->op.op != r->op ||
		(r->syscall >= 0 && sleep->syscall != r->syscall))
		return 0;
	compat_syscall_read(task, &call);
	if (!sleep_is_of(sleep, task, &call, compat_counts_io_calls() ? r->counted : 0))
		return 0;
	return return_finish(task, sleep, r);
}

#define FAILURES_MAX 256
#define FAILURE_PAUSE_NS 1000000000ULL

struct failure_key {
	__u32 pid;
	__u32 error;
};

struct failure {
	__u64 told_ns;
	__u32 untold; /* since then */
	__u32 reserved;
};

/* The oldest entry makes room: a process whose entry is gone is reported once more. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, FAILURES_MAX);
	__type(key, struct failure_key);
	__type(value, struct failure);
} failures SEC(".maps");

/* Errors of file systems and disks, none that a program brings about by what it asks for. */
static __always_inline bool return_is_failure(__s64 ret)
{
	switch (ret) {
	case -5:   /* EIO */
	case -19:  /* ENODEV */
	case -28:  /* ENOSPC */
	case -30:  /* EROFS */
	case -110: /* ETIMEDOUT */
	case -117: /* EUCLEAN */
	case -122: /* EDQUOT */
		return true;
	}
	return false;
}

/* How many failed since the last report; 0: it is not yet time for another. */
static __always_inline __u32 failure_count(__u32 pid, __u32 error, __u64 now)
{
	struct failure_key key = { pid, error };
	struct failure first = { .told_ns = now }, *known = bpf_map_lookup_elem(&failures, &key);
	__u32 untold;

	if (!known) {
		bpf_map_update_elem(&failures, &key, &first, BPF_ANY);
		return 1;
	}
	__sync_fetch_and_add(&known->untold, 1);
	if (now - known->told_ns < FAILURE_PAUSE_NS)
		return 0;
	/* Two threads may both get here: then one of them counts nothing. */
	untold = known->untold;
	known->told_ns = now;
	known->untold = 0;
	return untold;
}

/*
 * All these calls but msync() have the descriptor as their first argument. A function that others
 * call, too, counts in its own system call only: the others have programs of their own.
 */
static __always_inline struct file *failure_file(struct task_struct *task,
	const struct sleep_return *r, __s32 *ret_fd)
{
	struct compat_syscall call;
	struct file *file;

	compat_syscall_read(task, &call);
	if (r->syscall >= 0 && (__s32)call.nr != r->syscall)
		return NULL;
	/* That of msync() is an address. */
	if (call.args[0] >> 31) {
		*ret_fd = -1;
		return r->file;
	}
	*ret_fd = (__s32)call.args[0];
	file = file_of_fd(task, (__u32)*ret_fd);
	if (r->file && r->file != file) {
		*ret_fd = -1;
		return r->file;
	}
	return file;
}

static __noinline void failure_report(struct task_struct *task, const struct sleep_return *r)
{
	__u32 slot = r->slot, pid = (__u32)(bpf_get_current_pid_tgid() >> 32);
	struct event_operation *e = scratch_get(slot);
	struct file *file;
	__u32 count;
	__u64 now;

	if (!e || compat_task_is_kernel(BPF_CORE_READ(task, flags)) || !filter_task(pid))
		return;
	file = failure_file(task, r, &e->fd);
	/* A socket and a pipe time out, too. */
	if (!file || !file_mode_is_storage(BPF_CORE_READ(file, f_inode, i_mode)))
		return;
	e->flags = EVENT_FINISHED | EVENT_FAILED;
	if (!file_describe(file, e))
		return;
	now = bpf_ktime_get_ns();
	count = failure_count(pid, (__u32)-r->ret, now);
	if (count == 0)
		return;
	e->header.ts_ns = now;
	e->start_ns = now;
	e->dur_ns = 0;
	e->slept_ns = 0;
	e->offset = -1;
	e->bytes = 0;
	e->ret = r->ret;
	e->syscall = -1;
	e->op = (__u8)r->op;
	e->failures = count;
	e->stack_len = 0;
	e->path_len = 0;
	task_describe(task, e);
	path_collect(file, e, slot);
	event_emit(e);
}

static __always_inline void return_from(const struct sleep_return *r)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	int reported = 0;

	/* Nearly all operations end here. */
	if (sleep_is_marked((__u64)task))
		reported = return_report(task, r);
	if (r->ret < 0 && !reported && return_is_failure(r->ret))
		failure_report(task, r);
}

#endif
