/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reports an operation in which a thread has slept, or still sleeps.
 * Included by wait.bpf.c and returns.bpf.h.
 * Never decides whether an operation is over: its callers do.
 */
#ifndef IOSTALL_REPORT_BPF_H
#define IOSTALL_REPORT_BPF_H

#include "sleeps.bpf.h"

/* Where the kernel writes a stack, which is kept in half the space. */
struct full_stack {
	__u64 frames[EVENT_STACK_DEPTH];
};

/*
 * Takes the stack of the current thread, without its first frame, which is the program that asks.
 * False: there is none.
 */
static __always_inline bool sleep_read_stack(void *ctx, struct event_sleep *sleep,
	struct full_stack *stack)
{
	long n = bpf_get_stack(ctx, stack->frames, sizeof(stack->frames), 1);

	if (n <= 0)
		return false;
	sleep->stack_len = (__u16)((__u32)n / sizeof(stack->frames[0]));
	event_stack_pack(stack->frames, sleep->stack_len, &sleep->stack_base, sleep->stack);
	return true;
}

/*
 * Copies the stack. While the operation is in flight, only that of the present sleep says where the
 * thread waits.
 */
static __always_inline void sleep_copy_stack(const struct event_sleep *sleep,
	struct event_operation *e)
{
	e->stack_len = sleep->stack_len;
	if (!(e->flags & EVENT_FINISHED) && sleep->stack_sleep != (__u16)sleep->sleeps) {
		e->stack_len = 0;
		e->flags &= (__u16)~EVENT_STACK_ASLEEP;
	}
	e->stack_base = sleep->stack_base;
	__builtin_memcpy(e->stack, sleep->stack, sizeof(e->stack));
}

/*
 * Writes what is known of the file into the event; false when it is not on a device of
 * trace.device. File and inode may have been freed and used again, so both are compared with what
 * was noted.
 */
static __always_inline bool sleep_describe_file(const struct event_sleep *sleep,
	struct event_operation *e, __u32 slot)
{
	struct file *file = (struct file *)sleep->op.file;
	struct inode *inode = (struct inode *)sleep->inode;
	long n;

	if (file && BPF_CORE_READ(file, f_inode) == inode) {
		if (!file_describe(file, e))
			return false;
		path_collect(file, e, slot);
		return true;
	}
	/* From 6.7 on the kernel gives a closed file to the next open() at once. */
	if (inode && BPF_CORE_READ(inode, i_ino) == sleep->ino) {
		if (!inode_describe(inode, e))
			return false;
		inode_path_collect(inode, e, slot);
		return true;
	}
	e->flags |= EVENT_PATH_GIVEN | EVENT_PATH_COMPLETE;
	if (sleep->path[0]) {
		n = bpf_probe_read_kernel_str(e->path, EVENT_SLEEP_PATH_SIZE, sleep->path);
		e->path_len = n > 0 ? (__u32)n : 0;
		if (n >= EVENT_SLEEP_PATH_SIZE)
			e->flags &= ~EVENT_PATH_COMPLETE;
	}
	/*
	 * Whatever it waits for may be on a wanted device, as an open() or a look-up. Of threads of
	 * the kernel, and of those that submit requests, only a few are.
	 */
	return !cfg_common.filter_dev ||
		(sleep->op.op != EVENT_OP_KERNEL && sleep->op.op != EVENT_OP_SUBMIT);
}

/*
 * Fills the event, in which the caller has set the time, the duration, the result and its own
 * flags. False when it is not to be emitted. The entry of another thread than the current one may
 * change while it is read, and is not emitted then.
 */
static __always_inline bool sleep_fill(struct task_struct *task, struct event_sleep *sleep,
	struct event_operation *e, __u32 slot)
{
	__u64 start_ns = sleep_start(sleep);

	e->flags |= sleep->flags;
	e->start_ns = start_ns;
	e->slept_ns = sleep->slept_ns;
	e->sleeps = sleep->sleeps;
	e->syscall = sleep->own_nr;
	e->offset = (__s64)sleep->op.pos;
	e->bytes = sleep->op.bytes;
	e->op = (__u8)sleep->op.op;
	e->fd = sleep->op.fd;
	e->dev = 0;
	e->inode = 0;
	e->path_len = 0;
	sleep_copy_stack(sleep, e);
	task_describe(task, e);
	return sleep_describe_file(sleep, e, slot) && sleep_start(sleep) == start_ns &&
		e->tid == sleep->op.tid;
}

/*
 * Fills and emits the event. Not inlined, so that the code is in the object once. Returns whether
 * the operation was emitted. One that has ended is then out of the entry, which must not be written
 * any more: where the kernel preempts, the thread may have been switched out meanwhile, and the
 * entry be another thread's.
 */
static __noinline int sleep_emit(struct task_struct *task, struct event_sleep *sleep,
	struct event_operation *e, __u32 slot)
{
	if (!sleep_fill(task, sleep, e, slot))
		return 0;
	/* Before the event is there, so that nobody reports the operation again after its end. */
	if (e->flags & EVENT_FINISHED)
		sleep_end(sleep);
	event_emit(e);
	return 1;
}

/*
 * Ends an operation whose return nobody has seen, and reports it when it took trace.min_stall or
 * longer.
 */
static __always_inline void sleep_finish(struct task_struct *task, struct event_sleep *sleep,
	__u64 now, __u32 slot)
{
	__u64 dur_ns = sleep->woken_ns - sleep->op.start_ns;
	struct event_operation *e;
	int reported = 0;

	/*
	 * Without a waking the length is not known: wait_task_scan() noted the thread as it woke.
	 */
	if (sleep->woken_ns && dur_ns >= cfg_common.min_stall_ns) {
		e = scratch_get(slot);
		if (e) {
			e->header.ts_ns = now;
			e->dur_ns = dur_ns;
			e->ret = 0;
			e->flags = EVENT_FINISHED | EVENT_NO_RET;
			reported = sleep_emit(task, sleep, e, slot);
		}
	}
	if (!reported)
		sleep_end(sleep);
}

#endif
