/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The return of an operation: reports one that slept and took long, with its result.
 * Included by vfs.bpf.c and sync.bpf.c. `wait` has noted when the thread fell asleep and in which
 * call, so an entry need not be hooked, and an operation that has not slept costs only a look at
 * `sleep_marks`. Only a call that the kernel does not count is hooked there, too: nothing else
 * tells it from the one before it. When the kernel skips a run, `wait` reports the operation
 * without its result.
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

/*
 * Ends the operation that the current thread has slept in. Not inlined, or each of twenty programs
 * would carry a copy in locked memory.
 */
static __noinline void return_report(struct task_struct *task, const struct sleep_return *r)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid(), slot = r->slot;
	struct event_sleep *sleep = bpf_map_lookup_elem(&sleeps, &tid);
	struct event_operation *e = bpf_map_lookup_elem(&scratch, &slot);
	struct compat_syscall call;
	__u64 start_ns, now;

	if (!sleep || !e)
		return;
	start_ns = sleep_start(sleep);
	/* The read of a directory, a nested call, the sleep of an earlier call. */
	if (!start_ns || sleep->op.op != r->op || (r->syscall >= 0 && sleep->syscall != r->syscall))
		return;
	compat_syscall_read(task, &call);
	if (!sleep_is_of(sleep, task, &call, compat_counts_io_calls() ? r->counted : 0))
		return;
	now = bpf_ktime_get_ns();
	if (now - start_ns >= cfg_common.min_stall_ns) {
		return_complete(sleep, r);
		e->header.ts_ns = now;
		e->dur_ns = now - start_ns;
		e->ret = r->ret;
		e->flags = EVENT_FINISHED;
		sleep_emit(task, sleep, e, slot);
	}
	sleep_end(sleep);
}

static __always_inline void return_from(const struct sleep_return *r)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

	/* Nearly all operations end here. */
	if (sleep_is_marked((__u64)task))
		return_report(task, r);
}

#endif
