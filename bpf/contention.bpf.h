/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For which mutex or read-write semaphore of the kernel a thread waits. Since 5.19 tracepoints tell
 * its address when the wait begins; newer kernels keep it with the thread. Those of memory maps and
 * inodes are found without.
 * Included by locks.bpf.h.
 * Never asks who holds it: wait_lock() does, when user space wants to know.
 */
#ifndef IOSTALL_CONTENTION_BPF_H
#define IOSTALL_CONTENTION_BPF_H

#include "tasks.bpf.h"

/* include/trace/events/lock.h; the same since 5.19, but for MUTEX, which came with 6.0. */
#define LCB_F_SPIN (1u << 0)
#define LCB_F_READ (1u << 1)
#define LCB_F_WRITE (1u << 2)
#define LCB_F_RT (1u << 3)
#define LCB_F_PERCPU (1u << 4)
#define LCB_F_MUTEX (1u << 5)

/* By thread. When it is full, of others it is not known for which lock they wait. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EVENT_CONTENDED_MAX);
	__type(key, __u32);
	__type(value, struct event_contended);
} contended SEC(".maps");

/*
 * How many threads wait for a lock, by a hash of its address. Whoever has got a spin lock ends its
 * wait here, too, with the lock in its hands: where nobody sleeps, that is all it has to read.
 */
#define SLEPT_FOR_BITS 10
__u32 slept_for[1 << SLEPT_FOR_BITS] = {};

static __always_inline __u32 *slept_for_lock(__u64 address)
{
	return &slept_for[(address * 0x9e3779b97f4a7c15ull) >> (64 - SLEPT_FOR_BITS)];
}

/* Args are the lock and the flags. Most are of spin locks, whose waiters do not sleep. */
SEC("raw_tp/contention_begin")
int contention_begin_raw_tp(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 flags = (__u32)ctx->args[1], tid;
	const struct event_contended *known;
	struct event_contended lock = {};
	__u64 pid_tgid, address;

	if ((flags & (LCB_F_SPIN | LCB_F_RT | LCB_F_PERCPU)) ||
		!(flags & (LCB_F_READ | LCB_F_WRITE | LCB_F_MUTEX)))
		return 0;
	pid_tgid = bpf_get_current_pid_tgid();
	if (!filter_task(pid_tgid >> 32))
		return 0;
	tid = (__u32)pid_tgid;
	lock.address = ctx->args[0];
	lock.is_mutex = !!(flags & LCB_F_MUTEX);
	/* A mutex is told again and again, and ends once. */
	known = bpf_map_lookup_elem(&contended, &tid);
	if (known && known->address == lock.address)
		return 0;
	address = known ? known->address : 0;
	if (bpf_map_update_elem(&contended, &tid, &lock, BPF_ANY) < 0)
		return 0;
	if (address)
		__sync_fetch_and_add(slept_for_lock(address), -1);
	__sync_fetch_and_add(slept_for_lock(lock.address), 1);
	return 0;
}

/* Args are the lock and the result. In an interrupt it may be another one than the thread's. */
SEC("raw_tp/contention_end")
int contention_end_raw_tp(struct bpf_raw_tracepoint_args *ctx)
{
	const __u64 address = ctx->args[0];
	const struct event_contended *known;
	__u32 tid;

	if (!*slept_for_lock(address))
		return 0;
	tid = (__u32)bpf_get_current_pid_tgid();
	known = bpf_map_lookup_elem(&contended, &tid);
	if (known && known->address == address && bpf_map_delete_elem(&contended, &tid) == 0)
		__sync_fetch_and_add(slept_for_lock(address), -1);
	return 0;
}

/* False: the kernel does not tell. */
static __always_inline bool contended_lock_of(struct task_struct *task, __u32 tid,
	struct event_contended *ret_lock)
{
	const struct event_contended *known = bpf_map_lookup_elem(&contended, &tid);
	unsigned long blocker = compat_task_blocker(task);

	if (blocker) {
		ret_lock->address = blocker & ~BLOCKER_TYPE_MASK;
		ret_lock->is_mutex = (blocker & BLOCKER_TYPE_MASK) == BLOCKER_TYPE_MUTEX;
		return true;
	}
	/*
	 * Where programs can be preempted, that of the end may have been skipped. A kernel that
	 * keeps the lock with the thread keeps all mutexes so.
	 */
	if (!known || (known->is_mutex && bpf_core_field_exists(task->blocker)))
		return false;
	*ret_lock = *known;
	return true;
}

#endif
