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

/* A page. A larger folio becomes dirty at once, so this is a lower bound. */
#define DIRTY_BYTES 4096

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

static __always_inline void cgroup_note(struct kernfs_node *node, __u64 *ret_id)
{
	struct event_block_cgroup fresh = {};
	/* What ret_id points to may be shared, and change meanwhile. */
	__u64 id = BPF_CORE_READ(node, id);

	*ret_id = id;
	if (bpf_map_lookup_elem(&cgroups, &id))
		return;
	cgroup_read_names(node, fresh.names);
	if (bpf_map_update_elem(&cgroups, &id, &fresh, BPF_ANY) < 0)
		loss_count(EVENT_LOSS_ACCOUNT_FULL);
}

/*
 * The thread that dirtied the file's pages, when a kernel thread writes them back; NULL: not
 * known.
 */
static __always_inline struct event_block_dirtier *dirtier_of(const struct event_block_request *r)
{
	struct event_block_file_key key = { r->file.inode, r->file.fs_dev, 0 };

	if (!r->is_inferred || !r->has_file || !key.inode || r->kind != EVENT_BLOCK_WRITE)
		return NULL;
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
 * A thread that executes another program has already read that from a disk, under the old name. The
 * names are those of its last request.
 */
static __always_inline void thread_rename(struct event_block_thread *known,
	struct task_struct *task, __u32 pid)
{
	__u64 comm[2] = {}, *known_comm = (__u64 *)known->comm;

	static_assert(sizeof(comm) == EVENT_COMM_SIZE, "compared as two numbers");
	BPF_CORE_READ_INTO(&comm, task, comm);
	if (comm[0] == known_comm[0] && comm[1] == known_comm[1])
		return;
	known_comm[0] = comm[0];
	known_comm[1] = comm[1];
	known->pid = pid;
	BPF_CORE_READ_INTO(&known->process_comm, task, group_leader, comm);
}

/* Makes entries for the thread that the request is charged to, if it has none. */
static __always_inline void thread_note(struct task_struct *task, __u32 pid, struct bio *bio,
	struct event_block_request *r, __u32 slot)
{
	struct event_block_dirtier *dirtier = dirtier_of(r);
	struct event_block_thread_key key = { r->dev, r->tid, 0 }, own;
	struct event_block_thread *fresh, *known;
	struct kernfs_node *owner = NULL;

	if (dirtier) {
		key.tid = r->tid = dirtier->tid;
		r->is_inferred = false;
		dirtier->written_bytes += r->bytes;
		/* Some of it may have been dirtied before anybody looked. */
		r->is_uncertain =
			dirtier->is_shared || dirtier->written_bytes > dirtier->dirty_bytes;
	} else if (r->is_inferred) {
		owner = owner_of(bio);
	}
	own = key;
	if (owner)
		key.owner = BPF_CORE_READ(owner, id);
	known = bpf_map_lookup_elem(&threads, &key);
	if (known) {
		if (!dirtier)
			thread_rename(known, task, pid);
		return;
	}
	fresh = bpf_map_lookup_elem(&fresh_threads, &slot);
	if (!fresh)
		return;
	if (dirtier) {
		fresh->cgroup_id = dirtier->cgroup_id;
		fresh->pid = dirtier->pid;
		__builtin_memcpy(fresh->comm, dirtier->comm, sizeof(fresh->comm));
		__builtin_memcpy(fresh->process_comm, dirtier->process_comm,
			sizeof(fresh->process_comm));
	} else {
		cgroup_note(cgroup_of(task), &fresh->cgroup_id);
		fresh->pid = pid;
		BPF_CORE_READ_INTO(&fresh->comm, task, comm);
		BPF_CORE_READ_INTO(&fresh->process_comm, task, group_leader, comm);
	}
	if (!thread_add(&own, fresh)) {
		r->tid = 0;
		return;
	}
	if (!owner)
		return;
	cgroup_note(owner, &fresh->cgroup_id);
	thread_add(&key, fresh);
}

/* Two threads may do so at once: the names may then be those of either, of one program mostly. */
static __always_inline void dirtier_set(struct event_block_dirtier *d, struct task_struct *task,
	__u64 pid_tgid)
{
	cgroup_note(cgroup_of(task), &d->cgroup_id);
	d->pid = pid_tgid >> 32;
	d->tid = (__u32)pid_tgid;
	BPF_CORE_READ_INTO(&d->comm, task, comm);
	BPF_CORE_READ_INTO(&d->process_comm, task, group_leader, comm);
}

/* The current thread has made a page dirty. */
static __always_inline void dirtier_note(struct task_struct *task, __u64 pid_tgid,
	struct inode *inode)
{
	struct event_block_file_key key = {};
	struct event_block_dirtier fresh = {};
	struct event_block_dirtier *known;

	key.inode = BPF_CORE_READ(inode, i_ino);
	key.fs_dev = BPF_CORE_READ(inode, i_sb, s_dev);
	/* Written in place where it can be: an update of an LRU map takes a lock. */
	known = bpf_map_lookup_elem(&dirtiers, &key);
	if (known) {
		known->dirty_bytes += DIRTY_BYTES;
		if (known->tid == (__u32)pid_tgid)
			return;
		known->is_shared = true;
		dirtier_set(known, task, pid_tgid);
		return;
	}
	fresh.dirty_bytes = DIRTY_BYTES;
	dirtier_set(&fresh, task, pid_tgid);
	/* Without it the request is charged to the kernel thread that submits it. */
	bpf_map_update_elem(&dirtiers, &key, &fresh, BPF_ANY);
}

#endif
