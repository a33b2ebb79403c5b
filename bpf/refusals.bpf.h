/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who tries again and again for a lock of a file, as SQLite does: such a thread does not wait in
 * the kernel, which refuses it each time.
 * Included by wait.bpf.c.
 * Never looks at who has the lock: /proc/locks tells that.
 */
#ifndef IOSTALL_REFUSALS_BPF_H
#define IOSTALL_REFUSALS_BPF_H

#include "common.bpf.h"

#define EAGAIN 11
#define F_RDLCK 0
#define F_WRLCK 1
#define F_UNLCK 2

/* User space deletes those that have not tried for some time. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EVENT_REFUSALS_MAX);
	__type(key, struct event_refusal_key);
	__type(value, struct event_refusal);
} refusals SEC(".maps");

/*
 * A lock for writing is progress: SQLite tries for some that it can do without, but none of those
 * that it takes on its way to one that it needs is for writing. The kernel may have joined the
 * range with its neighbour.
 */
static __always_inline bool refusal_is_over(const struct event_refusal *known,
	struct file_lock *lock, unsigned char type)
{
	return type == F_WRLCK ||
		(type == F_RDLCK && (__u64)BPF_CORE_READ(lock, fl_start) <= known->begin &&
			(__u64)BPF_CORE_READ(lock, fl_end) >= known->begin);
}

static __always_inline void refusal_note(const struct bpf_raw_tracepoint_args *ctx, bool is_flock)
{
	struct inode *inode = (struct inode *)ctx->args[0];
	struct file_lock *lock = (struct file_lock *)ctx->args[1];
	int result = (int)ctx->args[2];
	__u64 pid_tgid = bpf_get_current_pid_tgid(), now_ns = bpf_ktime_get_ns();
	struct event_refusal_key key = {};
	struct event_refusal now = {}, *known;
	unsigned char type;

	if (!filter_task(pid_tgid >> 32))
		return;
	key.inode = BPF_CORE_READ(inode, i_ino);
	key.dev = BPF_CORE_READ(inode, i_sb, s_dev);
	key.tid = (__u32)pid_tgid;
	key.is_flock = is_flock;
	known = bpf_map_lookup_elem(&refusals, &key);
	type = compat_file_lock_type(lock);
	if (result != -EAGAIN) {
		/* It waits in the kernel, or has got it. */
		if (known && (result != 0 || refusal_is_over(known, lock, type)))
			bpf_map_delete_elem(&refusals, &key);
		return;
	}
	now.first_ns = now.last_ns = now_ns;
	now.begin = (__u64)BPF_CORE_READ(lock, fl_start);
	now.end = (__u64)BPF_CORE_READ(lock, fl_end);
	now.pid = pid_tgid >> 32;
	now.is_read = type == F_RDLCK;
	if (known && known->pid == now.pid && known->begin == now.begin &&
		now_ns - known->last_ns <= EVENT_REFUSAL_PAUSE_NS)
		now.first_ns = known->first_ns;
	if (bpf_map_update_elem(&refusals, &key, &now, BPF_ANY) < 0)
		loss_count(EVENT_LOSS_MAP_FULL);
}

/* Args are the inode, the lock that is asked for, and the result. */
SEC("raw_tp/posix_lock_inode")
int refusals_posix_lock_raw_tp(struct bpf_raw_tracepoint_args *ctx)
{
	refusal_note(ctx, false);
	return 0;
}

SEC("raw_tp/flock_lock_inode")
int refusals_flock_raw_tp(struct bpf_raw_tracepoint_args *ctx)
{
	refusal_note(ctx, true);
	return 0;
}

#endif
