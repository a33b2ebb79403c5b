/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sleeps of threads inside operations: noted by `wait`, taken over by a probe that saw the same
 * operation return.
 * Included by wait.bpf.c and by probes that pair entry and exit.
 * Never deleted but when the thread ends: an entry is overwritten by the thread's next sleep.
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
 * Least recently used: a fault that is noted and does not sleep leaves its entry behind, and one that
 * sleeps has just been noted.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct event_fault);
} faults SEC(".maps");

/* Both are counted when a fault is done, so during one this is its number. */
static __always_inline __u64 faults_of(struct task_struct *task)
{
	return BPF_CORE_READ(task, min_flt) + BPF_CORE_READ(task, maj_flt);
}

/* Volatile: the program that resolves an entry reads it while its thread may write it. */
static __always_inline __u64 sleep_start(struct event_sleep *sleep)
{
	return *(volatile __u64 *)&sleep->op.start_ns;
}

static __always_inline void sleep_end(struct event_sleep *sleep)
{
	*(volatile __u64 *)&sleep->op.start_ns = 0;
}

/*
 * What is known of the sleeps of the operation that the current thread is ending: into the event that
 * reports it, and gone from here, so that it is reported once. Returns whether there was a stack.
 */
static __always_inline bool sleep_take(__u32 tid, __u64 start_ns, struct event_operation *e)
{
	struct event_sleep *sleep = bpf_map_lookup_elem(&sleeps, &tid);

	if (!sleep || sleep_start(sleep) < start_ns)
		return false;
	e->slept_ns = sleep->slept_ns;
	e->sleeps = sleep->sleeps;
	e->flags |= sleep->flags & (EVENT_IOWAIT | EVENT_STACK_ASLEEP);
	e->stack_len = sleep->stack_len;
	__builtin_memcpy(e->stack, sleep->stack, sizeof(e->stack));
	sleep_end(sleep);
	return sleep->stack_len > 0;
}

#endif
