/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * To whom a request is charged: the thread that submits it or, when a kernel thread writes pages
 * back, the one that made them dirty; and the names of their control groups.
 * Included by block.bpf.c instead of common.bpf.h.
 * Never counts what a request did.
 */
#ifndef IOSTALL_CHARGE_BPF_H
#define IOSTALL_CHARGE_BPF_H

#include "common.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EVENT_BLOCK_THREADS_MAX);
	__type(key, struct event_block_thread_key);
	__type(value, struct event_block_thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EVENT_BLOCK_CGROUPS_MAX);
	__type(key, __u64);
	__type(value, struct event_block_cgroup);
} cgroups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, EVENT_BLOCK_DIRTIERS_MAX);
	__type(key, struct event_block_file_key);
	__type(value, struct event_block_dirtier);
} dirtiers SEC(".maps");

/* Too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_COUNT);
	__type(key, __u32);
	__type(value, struct event_block_thread);
} fresh_threads SEC(".maps");

static __always_inline void file_identify(struct event_block_file_key *key, struct inode *inode)
{
	key->inode = (__u64)inode;
	key->ino = BPF_CORE_READ(inode, i_ino);
	key->generation = BPF_CORE_READ(inode, i_generation);
	key->fs_dev = BPF_CORE_READ(inode, i_sb, s_dev);
}

/* `fresh` is room for the names. */
static __always_inline void cgroup_note(struct kernfs_node *node, __u64 *ret_id,
	struct event_block_cgroup *fresh)
{
	/* What ret_id points to may be shared, and change meanwhile. */
	__u64 id = BPF_CORE_READ(node, id);

	*ret_id = id;
	if (bpf_map_lookup_elem(&cgroups, &id))
		return;
	cgroup_read_names(node, fresh->names);
	if (bpf_map_update_elem(&cgroups, &id, fresh, BPF_ANY) < 0)
		loss_count(EVENT_LOSS_ACCOUNT_FULL);
}

/* The current thread; `cgroup` is room for the names of its group. */
static __always_inline void who_note(struct task_struct *task, __u64 pid_tgid,
	struct event_block_who *who, struct event_block_cgroup *cgroup)
{
	cgroup_note(cgroup_of(task), &who->cgroup_id, cgroup);
	who->pid = pid_tgid >> 32;
	who->tid = (__u32)pid_tgid;
	who->start_ns = BPF_CORE_READ(task, start_boottime);
	who->process_start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	BPF_CORE_READ_INTO(&who->comm, task, comm);
	BPF_CORE_READ_INTO(&who->process_comm, task, group_leader, comm);
}

/*
 * The thread that dirtied the file's pages, when a kernel thread writes them back; NULL: not
 * known.
 */
static __always_inline struct event_block_dirtier *dirtier_of(const struct event_block_request *r)
{
	struct event_block_file_key key = r->file;

	/* The table of files may have had no room for it. */
	if (!r->is_inferred || !key.inode || r->kind != EVENT_BLOCK_WRITE)
		return NULL;
	key.dev = 0;
	return bpf_map_lookup_elem(&dirtiers, &key);
}

/*
 * The control group that a kernel thread's request belongs to: that which owns the file that is
 * written back, by whoever dirtied most of it, or that of the program whose request a limit has
 * held back. NULL: the root, or not known. In version 1 groups of other controllers have other ids.
 */
static __always_inline struct kernfs_node *owner_of(struct bio *bio)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct kernfs_node *node;
	struct cgroup *owner;

	if (!bio || !bpf_core_field_exists(bio->bi_blkg))
		return NULL;
	owner = BPF_CORE_READ(bio, bi_blkg, blkcg, css.cgroup);
	if (!owner || BPF_CORE_READ(owner, root) != BPF_CORE_READ(task, cgroups, dfl_cgrp, root))
		return NULL;
	node = BPF_CORE_READ(owner, kn);
	return compat_cgroup_parent(node) ? node : NULL;
}

/* False: there is no room. */
static __always_inline bool thread_add(const struct event_block_thread_key *key,
	const struct event_block_thread *fresh)
{
	if (bpf_map_lookup_elem(&threads, key) ||
		bpf_map_update_elem(&threads, key, fresh, BPF_ANY) == 0)
		return true;
	loss_count(EVENT_LOSS_ACCOUNT_FULL);
	return false;
}

/*
 * A thread that executes another program has already read that from a disk, under the old name and
 * maybe in another group. The names are those of its last request.
 */
static __always_inline void thread_rename(struct event_block_who *known, struct task_struct *task,
	__u64 pid_tgid, struct event_block_cgroup *cgroup)
{
	__u64 comm[2] = {}, *known_comm = (__u64 *)known->comm;

	static_assert(sizeof(comm) == EVENT_COMM_SIZE, "compared as two numbers");
	BPF_CORE_READ_INTO(&comm, task, comm);
	if (comm[0] != known_comm[0] || comm[1] != known_comm[1])
		who_note(task, pid_tgid, known, cgroup);
}

/*
 * Makes entries for the thread that the request is charged to, if it has none. That is the current
 * one, or `sender` unless that is NULL.
 */
static __always_inline void thread_note(struct task_struct *task, __u64 pid_tgid,
	struct event_block_who *sender, struct bio *bio, struct event_block_request *r, __u32 slot)
{
	struct event_block_dirtier *dirtier = dirtier_of(r);
	struct event_block_thread_key key = { .dev = r->dev }, own;
	struct event_block_thread *fresh, *known;
	struct event_operation *e = scratch_get(slot);
	struct event_block_cgroup *cgroup;
	struct kernfs_node *owner = NULL;

	if (!e)
		return;
	cgroup = (struct event_block_cgroup *)e->cgroup_names;
	if (dirtier) {
		sender = &dirtier->who;
		r->is_inferred = false;
		dirtier->written_bytes += r->bytes;
		/* Some of it was dirtied before anybody looked. */
		r->is_uncertain =
			dirtier->is_shared || dirtier->written_bytes > dirtier->dirty_bytes;
	} else if (r->is_inferred) {
		owner = owner_of(bio);
	}
	if (sender) {
		r->tid = sender->tid;
		r->thread_start_ns = sender->start_ns;
	}
	key.tid = r->tid;
	key.start_ns = r->thread_start_ns;
	own = key;
	if (owner)
		key.owner = BPF_CORE_READ(owner, id);
	known = bpf_map_lookup_elem(&threads, &key);
	if (known) {
		known->noted_ns = bpf_ktime_get_ns();
		if (!sender && !owner)
			thread_rename(&known->who, task, pid_tgid, cgroup);
		if (!owner || bpf_map_lookup_elem(&threads, &own))
			return;
	}
	fresh = bpf_map_lookup_elem(&fresh_threads, &slot);
	if (!fresh)
		return;
	fresh->noted_ns = bpf_ktime_get_ns();
	if (sender)
		fresh->who = *sender;
	else
		who_note(task, pid_tgid, &fresh->who, cgroup);
	if (!thread_add(&own, fresh)) {
		r->tid = 0;
		return;
	}
	if (!owner)
		return;
	cgroup_note(owner, &fresh->who.cgroup_id, cgroup);
	thread_add(&key, fresh);
}

/* The current thread has made so many bytes dirty. */
static __always_inline void dirtier_note(struct task_struct *task, __u64 pid_tgid,
	struct inode *inode, __u64 bytes)
{
	struct event_block_file_key key = {};
	struct event_block_dirtier fresh = {};
	struct event_block_dirtier *known;
	struct event_block_cgroup cgroup = {};

	file_identify(&key, inode);
	/* Written in place where it can be: an update of an LRU map takes a lock. */
	known = bpf_map_lookup_elem(&dirtiers, &key);
	if (known) {
		known->dirty_bytes += bytes;
		if (known->who.tid == (__u32)pid_tgid &&
			known->who.start_ns == BPF_CORE_READ(task, start_boottime))
			return;
		known->is_shared = true;
		/* Two threads may do so at once: the names may then be those of either. */
		who_note(task, pid_tgid, &known->who, &cgroup);
		return;
	}
	fresh.dirty_bytes = bytes;
	who_note(task, pid_tgid, &fresh.who, &cgroup);
	/* Without it the request is charged to the kernel thread that submits it. */
	bpf_map_update_elem(&dirtiers, &key, &fresh, BPF_ANY);
}

/*
 * A folio of a file has become dirty; before "writeback: use a folio for writeback tracepoint"
 * (5.18) it is called a page. Argument 1 is its mapping. It becomes dirty as a whole, with the
 * first byte that is written there, and whatever others write there until it is clean again is not
 * seen. The file system may write back only those of its blocks that have changed.
 */
SEC("raw_tp/writeback_dirty_folio")
int block_dirty_raw_tp(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct folio *folio = (struct folio *)ctx->args[0];
	struct address_space *mapping = (struct address_space *)ctx->args[1];
	__u64 id = bpf_get_current_pid_tgid(), page = 1ull << cfg_common.page_shift;

	if (mapping && !(BPF_CORE_READ(task, flags) & PF_KTHREAD) && filter_task(id >> 32))
		dirtier_note(task, id, BPF_CORE_READ(mapping, host),
			page << (compat_folio_order(folio) & 31));
	return 0;
}

#endif
