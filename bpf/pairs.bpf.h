/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The reads and writes that probe `vfs` has seen begin, where it pairs each with its return
 * (probe.vfs.pairing = entry). `wait` asks when the operation began in which a thread falls asleep.
 * Included by vfs.bpf.c and wait.bpf.c.
 * Never has an operation that began before the attach.
 */
#ifndef IOSTALL_PAIRS_BPF_H
#define IOSTALL_PAIRS_BPF_H

#include "sleeps.bpf.h"

/* The key is that of call_key(). An entry is deleted when its operation returns. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct event_call);
} vfs_calls SEC(".maps");

/* `fd` is the first argument of the system call, which stays the same until that returns. */
static __always_inline __u64 call_key(__u32 tid, __u64 fd)
{
	return (__u64)tid << 32 | (__u32)fd;
}

/* Volatile, because vfs_resolve() reads an entry while its thread may write it. */
static __always_inline __u64 call_start(struct event_call *call)
{
	return *(volatile __u64 *)&call->op.start_ns;
}

/* The operation of a thread that stands in its system call; NULL: none has been seen to begin. */
static __always_inline struct event_call *call_find(struct task_struct *task, __u32 tid)
{
	__u64 key = call_key(tid, compat_syscall_first_arg(task));
	struct event_call *call = bpf_map_lookup_elem(&vfs_calls, &key);

	return call && call->op.task == (__u64)task && call_start(call) ? call : NULL;
}

/* Deleting may fail. The entry stays then, and start_ns 0 says that it is unused. */
static __always_inline void call_remove(struct event_call *call, __u64 key)
{
	*(volatile __u64 *)&call->op.start_ns = 0;
	bpf_map_delete_elem(&vfs_calls, &key);
}

#endif
