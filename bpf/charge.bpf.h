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

static __always_inline void cgroup_note(struct task_struct *task, __u64 *ret_id)
{
	struct kernfs_node *node = cgroup_of(task);
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

/* Makes an entry for the thread that the request is charged to, if it has none. */
static __always_inline void thread_note(struct task_struct *task, __u32 pid,
	struct event_block_request *r, __u32 slot)
{
	struct event_block_dirtier *dirtier = dirtier_of(r);
	struct event_block_thread_key key = { r->dev, r->tid };
	struct event_block_thread *fresh;

	if (dirtier) {
		key.tid = r->tid = dirtier->tid;
		r->is_inferred = false;
		dirtier->written_bytes += r->bytes;
		/* Some of it may have been dirtied before anybody looked. */
		r->is_uncertain =
			dirtier->is_shared || dirtier->written_bytes > dirtier->dirty_bytes;
	}
	if (bpf_map_lookup_elem(&threads, &key))
		return;
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
		cgroup_note(task, &fresh->cgroup_id);
		fresh->pid = pid;
		BPF_CORE_READ_INTO(&fresh->comm, task, comm);
		BPF_CORE_READ_INTO(&fresh->process_comm, task, group_leader, comm);
	}
	if (bpf_map_update_elem(&threads, &key, fresh, BPF_ANY) < 0) {
		loss_count(EVENT_LOSS_ACCOUNT_FULL);
		r->tid = 0;
	}
}

/* Two threads may do so at once: the names may then be those of either, of one program mostly. */
static __always_inline void dirtier_set(struct event_block_dirtier *d, struct task_struct *task,
	__u64 pid_tgid)
{
	cgroup_note(task, &d->cgroup_id);
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
