/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Commits of the journal of ext4 (jbd2): how long they take, how large they are, and which process
 * changed how much of the metadata that they write.
 * Included by block.bpf.c after common.bpf.h.
 * Reads nothing but what the tracepoints of jbd2 give: its types are those of a module, which the
 * kernel's own type information does not have.
 */
#ifndef IOSTALL_JOURNAL_BPF_H
#define IOSTALL_JOURNAL_BPF_H

#include "common.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EVENT_JOURNALS_MAX);
	__type(key, __u32);
	__type(value, struct event_journal);
} journals SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EVENT_JOURNAL_USERS_MAX);
	__type(key, struct event_journal_user_key);
	__type(value, struct event_journal_user);
} journal_users SEC(".maps");

/* events/jbd2/jbd2_start_commit/format; jbd2_end_commit begins with the same. */
struct journal_commit_args {
	__u64 common;
	__u32 dev;
};

/* struct transaction_run_stats_s of include/linux/jbd2.h; the times are in jiffies. */
struct journal_stats {
	unsigned long wait;
	unsigned long request_delay;
	unsigned long running;
	unsigned long locked;
	unsigned long flushing;
	unsigned long logging;
	__u32 handle_count;
	__u32 blocks;
	__u32 blocks_logged;
};

static const struct event_journal no_journal = {};

/* NULL, counted: there is no room. */
static __always_inline struct event_journal *journal_get(__u32 dev)
{
	struct event_journal *j = bpf_map_lookup_elem(&journals, &dev);

	if (j)
		return j;
	bpf_map_update_elem(&journals, &dev, &no_journal, BPF_NOEXIST);
	j = bpf_map_lookup_elem(&journals, &dev);
	if (!j)
		loss_count(EVENT_LOSS_ACCOUNT_FULL);
	return j;
}

/* A journal has one commit at a time, by one kernel thread, so nothing of it changes meanwhile. */
SEC("tp/jbd2/jbd2_start_commit")
int journal_start_tp(struct journal_commit_args *ctx)
{
	struct event_journal *j = journal_get(ctx->dev);

	if (!j)
		return 0;
	j->start_ns = bpf_ktime_get_ns();
	j->blocks = 0;
	j->data_pct = 0;
	return 0;
}

/*
 * Just before the end of the commit. In ordered mode the data of new blocks comes before the
 * metadata.
 */
SEC("raw_tp/jbd2_run_stats")
int journal_stats_raw_tp(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 dev = (__u32)ctx->args[0];
	struct event_journal *j = bpf_map_lookup_elem(&journals, &dev);
	struct journal_stats stats;
	__u64 all;

	/* What tracefs prints has had another layout up to 6.1. */
	if (!j || bpf_probe_read_kernel(&stats, sizeof(stats), (void *)ctx->args[2]) < 0)
		return 0;
	all = stats.locked + stats.flushing + stats.logging;
	j->blocks = stats.blocks;
	j->data_pct = all ? (__u32)(100 * stats.flushing / all) : 0;
	return 0;
}

SEC("tp/jbd2/jbd2_end_commit")
int journal_end_tp(struct journal_commit_args *ctx)
{
	__u64 now = bpf_ktime_get_ns(), ns;
	struct event_journal *j = journal_get(ctx->dev);

	if (!j)
		return 0;
	/* The first one that ends was under way already. */
	if (!j->start_ns) {
		if (!j->commits && !j->early_end_ns)
			j->early_end_ns = now;
		return 0;
	}
	ns = now - j->start_ns;
	j->start_ns = 0;
	j->commits++;
	j->commit_ns += ns;
	if (ns <= j->longest_ns)
		return 0;
	j->longest_ns = ns;
	j->longest_blocks = j->blocks;
	j->longest_data_pct = j->data_pct;
	return 0;
}

/* dev, tid, type, line_no, interval, sync, requested_blocks, dirtied_blocks */
SEC("raw_tp/jbd2_handle_stats")
int journal_handle_raw_tp(struct bpf_raw_tracepoint_args *ctx)
{
	struct event_journal_user_key key = { .dev = (__u32)ctx->args[0] };
	struct event_journal_user fresh = {}, *known;
	struct event_journal *j;
	__s32 blocks = (__s32)ctx->args[7];
	struct task_struct *task;

	if (blocks <= 0)
		return 0;
	task = (struct task_struct *)bpf_get_current_task();
	key.pid = (__u32)(bpf_get_current_pid_tgid() >> 32);
	key.process_start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	known = bpf_map_lookup_elem(&journal_users, &key);
	if (known) {
		__sync_fetch_and_add(&known->blocks, (__u64)blocks);
		return 0;
	}
	fresh.blocks = (__u64)blocks;
	fresh.kernel = (BPF_CORE_READ(task, flags) & PF_KTHREAD) != 0;
	bpf_probe_read_kernel_str(fresh.comm, sizeof(fresh.comm),
		BPF_CORE_READ(task, group_leader, comm));
	if (bpf_map_update_elem(&journal_users, &key, &fresh, BPF_NOEXIST) == 0)
		return 0;
	/* Another thread of the process may have been faster. */
	known = bpf_map_lookup_elem(&journal_users, &key);
	if (known) {
		__sync_fetch_and_add(&known->blocks, (__u64)blocks);
		return 0;
	}
	loss_count(EVENT_LOSS_ACCOUNT_FULL);
	/* Else one of those that are known would have changed most of what is known. */
	j = journal_get(key.dev);
	if (j)
		__sync_fetch_and_add(&j->others_blocks, (__u64)blocks);
	return 0;
}

#endif
