/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sleeps of threads inside operations: `wait` notes them, and a probe that sees the operation
 * return reports it with its result.
 * Included by calls.bpf.h, report.bpf.h, sync.bpf.c and fault.bpf.c.
 * Never deletes an entry while its thread is still in the operation.
 */
#ifndef IOSTALL_SLEEPS_BPF_H
#define IOSTALL_SLEEPS_BPF_H

#include "common.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct event_sleep);
} sleeps SEC(".maps");

/*
 * How many threads with the same hash have an entry in `sleeps`: 0 for nearly all threads, which
 * spares them the look-up. A thread is known by the address of its task_struct, because that is an
 * argument of the tracepoint and its id is not.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct event_sleep_marks);
} sleep_marks SEC(".maps");

/*
 * The file of a mapping in which a thread is about to sleep, which the registers do not tell. An
 * LRU map: a fault that does not sleep leaves its entry behind, and one that sleeps was noted just
 * before.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct event_fault);
} faults SEC(".maps");

static __always_inline __u32 *sleep_mark_of(struct event_sleep_marks *marks, __u64 task)
{
	/* Fibonacci hashing */
	return &marks->counts[(task * 0x9e3779b97f4a7c15ULL) >> (64 - EVENT_SLEEP_MARKS_BITS)];
}

static __always_inline bool sleep_is_marked(__u64 task)
{
	__u32 zero = 0;
	struct event_sleep_marks *marks = bpf_map_lookup_elem(&sleep_marks, &zero);

	return marks && *sleep_mark_of(marks, task);
}

static __always_inline void sleep_mark_add(__u64 task, __u32 n)
{
	__u32 zero = 0;
	struct event_sleep_marks *marks = bpf_map_lookup_elem(&sleep_marks, &zero);

	if (marks)
		__sync_fetch_and_add(sleep_mark_of(marks, task), n);
}

/*
 * Faults done so far. The kernel counts a fault when it is done, so this stays the same during one.
 */
static __always_inline __u64 faults_of(struct task_struct *task)
{
	return BPF_CORE_READ(task, min_flt) + BPF_CORE_READ(task, maj_flt);
}

/* Of a file that `sync` notes: a note for a fault never has it. */
static __always_inline __u64 msync_stamp(struct task_struct *task)
{
	return ~faults_of(task);
}

/* Volatile, because wait_resolve() reads an entry while its thread may write it. */
static __always_inline __u64 sleep_start(struct event_sleep *sleep)
{
	return *(volatile __u64 *)&sleep->op.start_ns;
}

static __always_inline void sleep_end(struct event_sleep *sleep)
{
	*(volatile __u64 *)&sleep->op.start_ns = 0;
}

/*
 * Whether the sleep belongs to the system call that the current thread is in, and not to an earlier
 * one with the same arguments: `counted` is how many more the thread has counted since.
 */
static __always_inline bool sleep_is_of(const struct event_sleep *sleep, struct task_struct *task,
	const struct compat_syscall *call, __u64 counted)
{
	return sleep->op.task == (__u64)task && sleep->syscall == (__s32)call->nr &&
		sleep->args[0] == call->args[0] && sleep->args[1] == call->args[1] &&
		sleep->args[2] == call->args[2] && sleep->args[3] == call->args[3] &&
		compat_task_io_calls(task) - sleep->counter == counted;
}

#endif
