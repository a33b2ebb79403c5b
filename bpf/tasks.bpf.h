/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds a thread by its id, and since when it sleeps.
 * Included by wait.bpf.c and offcpu.bpf.c.
 * Never takes a lock or a reference: the thread may end while it is looked at.
 */
#ifndef IOSTALL_TASKS_BPF_H
#define IOSTALL_TASKS_BPF_H

#include "common.bpf.h"

/*
 * The thread of an id, found as find_task_by_vpid() does: through the radix tree of the daemon's
 * own pid namespace. Two levels hold 4096 ids, four hold 16 million.
 */
static __always_inline struct task_struct *task_of_tid(__u32 tid)
{
	struct task_struct *self = (struct task_struct *)bpf_get_current_task();
	struct pid *pid = BPF_CORE_READ(self, thread_pid);
	unsigned int level = BPF_CORE_READ(pid, level);
	struct pid_namespace *ns = NULL;
	struct hlist_node *node;
	__u64 entry;

	bpf_probe_read_kernel(&ns, sizeof(ns),
		(void *)pid + bpf_core_field_offset(struct pid, numbers) +
			level * bpf_core_type_size(struct upid) +
			bpf_core_field_offset(struct upid, ns));
	entry = (__u64)BPF_CORE_READ(ns, idr.idr_rt.xa_head);
	for (int i = 0; i < 6; i++) {
		struct xa_node *inner = (struct xa_node *)(entry - 2);
		void *slot = NULL;
		__u64 index;

		/* An inner node carries 2 in its low bits, include/linux/xarray.h. */
		if ((entry & 3) != 2)
			break;
		index = ((__u64)tid >> (BPF_CORE_READ(inner, shift) & 31)) & 63;
		bpf_probe_read_kernel(&slot, sizeof(slot), &inner->slots[index]);
		entry = (__u64)slot;
	}
	if (!entry || (entry & 3))
		return NULL;
	node = BPF_CORE_READ((struct pid *)entry, tasks[0].first);
	if (!node)
		return NULL;
	return (void *)node - bpf_core_field_offset(struct task_struct, pid_links[0]);
}

/*
 * Since when another thread has slept, which is a time of the scheduler's clock `left_ns`. The
 * current thread's own stamp of that clock, see compat_task_left_cpu(), stands for the present.
 */
static __always_inline __u64 task_asleep_since(__u64 left_ns, __u64 now)
{
	__u64 mine_ns = compat_task_left_cpu((struct task_struct *)bpf_get_current_task());

	return left_ns && mine_ns > left_ns && mine_ns - left_ns < now ? now - (mine_ns - left_ns)
								       : now;
}

#endif
