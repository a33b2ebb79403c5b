/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who tries again and again for a lock of a file, as SQLite does: such a thread does not wait in the
 * kernel, which refuses it each time.
 * Included by wait.bpf.c.
 * Never looks at who has the lock: /proc/locks tells that.
 */
#ifndef IOSTALL_REFUSALS_BPF_H
#define IOSTALL_REFUSALS_BPF_H

#include "common.bpf.h"

#define EAGAIN 11
#define F_UNLCK 2

/* When it is full, others are not noted until the next incident. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EVENT_REFUSALS_MAX);
	__type(key, struct event_refusal_key);
	__type(value, struct event_refusal);
} refusals SEC(".maps");

/* Whoever gets the lock does not try for it any more. */
static __always_inline void refusal_note(const struct bpf_raw_tracepoint_args *ctx, bool is_flock)
{
	struct inode *inode = (struct inode *)ctx->args[0];
	struct file_lock *lock = (struct file_lock *)ctx->args[1];
	int result = (int)ctx->args[2];
	__u64 pid_tgid = bpf_get_current_pid_tgid(), now_ns = bpf_ktime_get_ns();
	struct event_refusal_key key = {};
	struct event_refusal fresh = {}, *known;

	if ((result != 0 && result != -EAGAIN) || !filter_task(pid_tgid >> 32))
		return;
	key.inode = BPF_CORE_READ(inode, i_ino);
	key.begin = (__u64)BPF_CORE_READ(lock, fl_start);
	key.tid = (__u32)pid_tgid;
	key.is_flock = is_flock;
	if (result == 0) {
		if (compat_file_lock_type(lock) != F_UNLCK)
			bpf_map_delete_elem(&refusals, &key);
		return;
	}
	known = bpf_map_lookup_elem(&refusals, &key);
	if (known) {
		known->last_ns = now_ns;
		return;
	}
	fresh.first_ns = fresh.last_ns = now_ns;
	fresh.end = (__u64)BPF_CORE_READ(lock, fl_end);
	fresh.pid = pid_tgid >> 32;
	fresh.dev = BPF_CORE_READ(inode, i_sb, s_dev);
	bpf_map_update_elem(&refusals, &key, &fresh, BPF_ANY);
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
