/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What every probe shares: load-time settings, filters, loss counters, the ring buffer, file and path.
 * Included by each <probe>.bpf.c.
 * Never waits, never loses anything without counting it.
 */
#ifndef IOSTALL_COMMON_BPF_H
#define IOSTALL_COMMON_BPF_H

#include "kernel.bpf.h"
#include "compat.bpf.h"
#include "iostall/event.h"

const volatile __u64 cfg_min_stall_ns = 100000000;
const volatile bool cfg_filter_pid = false;
const volatile bool cfg_filter_dev = false;
const volatile __u32 cfg_filter_cgroups = 0; /* number of entries in filter_cgroups */
const volatile __u32 cfg_probe = 0;	     /* whose events these are */
const volatile __u32 cfg_self_pid = 0;	     /* the daemon never reports itself */

/* Shared by all probes; user space makes them once and lends them to each object. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, EVENT_LOSS_COUNT);
	__type(key, __u32);
	__type(value, __u64);
} losses SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EVENT_FILTER_ENTRIES_MAX);
	__type(key, __u32);
	__type(value, __u8);
} filter_pids SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EVENT_FILTER_ENTRIES_MAX);
	__type(key, __u32);
	__type(value, __u8);
} filter_devs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, EVENT_FILTER_CGROUPS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} filter_cgroups SEC(".maps");

/* Their ids, 0 for none: bpf_current_task_under_cgroup() knows no other thread. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, EVENT_FILTER_CGROUPS_MAX);
	__type(key, __u32);
	__type(value, __u64);
} filter_cgids SEC(".maps");

/* Newest submissions count, so it is no loss when an old one makes room. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, EVENT_THREAD_FILES_MAX);
	__type(key, __u32);
	__type(value, struct event_thread_file);
} thread_files SEC(".maps");

/*
 * Events are put together here and then copied into the ring, because bpf_ringbuf_reserve() takes
 * only constant sizes and a path of 20 bytes must not cost 4 KB of ring. Where BPF programs can be
 * preempted, another program may run on the same CPU meanwhile, so each program of a backend has a
 * slot of its own; the kernel does not nest a program in itself. Each object names its slots in
 * `enum scratch_slot`, before it includes this.
 */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_COUNT);
	__type(key, __u32);
	__type(value, struct event_operation);
} scratch SEC(".maps");

static __always_inline void loss_count(__u32 loss)
{
	__u64 *count = bpf_map_lookup_elem(&losses, &loss);

	/* Atomic: a program can be preempted by another on the same CPU. */
	if (count)
		__sync_fetch_and_add(count, 1);
}

/* Process and cgroup filter for the current thread. */
static __always_inline bool filter_task(__u32 pid)
{
	if (pid == cfg_self_pid)
		return false;
	if (cfg_filter_pid && !bpf_map_lookup_elem(&filter_pids, &pid))
		return false;
	if (cfg_filter_cgroups == 0)
		return true;
	for (__u32 i = 0; i < EVENT_FILTER_CGROUPS_MAX; i++) {
		if (i >= cfg_filter_cgroups)
			break;
		if (bpf_current_task_under_cgroup(&filter_cgroups, i) == 1)
			return true;
	}
	return false;
}

/* Nesting that filter_other_task() follows; deeper cgroups are not found. */
#define CGROUP_DEPTH_MAX 12

/* The same for a thread that is not the current one. */
static __always_inline bool filter_other_task(struct task_struct *task)
{
	__u32 pid = (__u32)BPF_CORE_READ(task, tgid);
	struct kernfs_node *node;

	if (pid == cfg_self_pid || (cfg_filter_pid && !bpf_map_lookup_elem(&filter_pids, &pid)))
		return false;
	if (cfg_filter_cgroups == 0)
		return true;
	node = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn);
	for (int depth = 0; node && depth < CGROUP_DEPTH_MAX; depth++) {
		__u64 id = BPF_CORE_READ(node, id);

		for (__u32 i = 0; i < EVENT_FILTER_CGROUPS_MAX; i++) {
			__u32 key = i;
			__u64 *wanted = bpf_map_lookup_elem(&filter_cgids, &key);

			if (wanted && *wanted && *wanted == id)
				return true;
		}
		node = compat_cgroup_parent(node);
	}
	return false;
}

static __always_inline bool file_mode_is_storage(__u32 mode)
{
	return (mode & S_IFMT) == S_IFREG || (mode & S_IFMT) == S_IFBLK;
}

static __always_inline struct file *file_of_fd(struct task_struct *task, __u32 fd)
{
	struct fdtable *fdt = BPF_CORE_READ(task, files, fdt);
	struct file **files, *file = NULL;

	if (fd >= BPF_CORE_READ(fdt, max_fds))
		return NULL;
	files = BPF_CORE_READ(fdt, fd);
	bpf_probe_read_kernel(&file, sizeof(file), &files[fd]);
	return file;
}

#define FD_SEARCH_MAX 1024

/* The descriptor by which the thread means `file`: the hint if the table agrees, else the first. */
static __always_inline __s32 file_find_fd(struct task_struct *task, struct file *file, __s32 hint)
{
	struct file **files, *candidate;
	struct fdtable *fdt;
	__u32 count;

	if (hint >= 0 && file_of_fd(task, (__u32)hint) == file)
		return hint;
	fdt = BPF_CORE_READ(task, files, fdt);
	count = BPF_CORE_READ(fdt, max_fds);
	files = BPF_CORE_READ(fdt, fd);
	for (__u32 i = 0; i < FD_SEARCH_MAX; i++) {
		if (i >= count)
			break;
		candidate = NULL;
		bpf_probe_read_kernel(&candidate, sizeof(candidate), &files[i]);
		if (candidate == file)
			return (__s32)i;
	}
	return -1;
}

/*
 * Directories and mount points one path may have; deeper ones are completed in user space. The verifier
 * goes through each: at 192 it took three times as long as at 64, most of a start.
 */
#define PATH_DEPTH_MAX 64

/*
 * Walks from the file to the root of its mount namespace, by the rules of prepend_path() in
 * fs/d_path.c, without its locks: a rename meanwhile may mix old and new names.
 */
static __always_inline void path_collect(struct file *file, struct event_operation *e)
{
	struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry), *parent;
	struct vfsmount *vfsmount = BPF_CORE_READ(file, f_path.mnt);
	struct mount *mount, *mount_parent;
	/*
	 * The length stays in memory: read back, it is any number to the verifier, so the states of
	 * all ways through the loop are one, and it need not follow each (5.10 gives up at that).
	 */
	volatile __u32 *path_len = &e->path_len;

	mount = (void *)vfsmount - bpf_core_field_offset(struct mount, mnt);
	*path_len = 0;
	parent = BPF_CORE_READ(dentry, d_parent);
	if (parent != dentry && !BPF_CORE_READ(dentry, d_hash.pprev))
		e->flags |= EVENT_PATH_DELETED;
	for (int i = 0; i < PATH_DEPTH_MAX; i++) {
		__u32 len = *path_len;
		long n;

		if (dentry == BPF_CORE_READ(mount, mnt.mnt_root)) {
			mount_parent = BPF_CORE_READ(mount, mnt_parent);
			if (mount == mount_parent) {
				e->flags |= EVENT_PATH_COMPLETE;
				break;
			}
			dentry = BPF_CORE_READ(mount, mnt_mountpoint);
			mount = mount_parent;
			continue;
		}
		parent = BPF_CORE_READ(dentry, d_parent);
		if (parent == dentry) {
			e->flags |= EVENT_PATH_COMPLETE | EVENT_PATH_DETACHED;
			break;
		}
		if (len >= EVENT_PATH_MAX)
			break;
		n = bpf_probe_read_kernel_str(&e->path[len & (EVENT_PATH_MAX - 1)], 256,
			BPF_CORE_READ(dentry, d_name.name));
		if (n <= 0)
			break;
		*path_len = len + (__u32)n;
		dentry = parent;
	}
	if (!(e->flags & EVENT_PATH_COMPLETE))
		loss_count(EVENT_LOSS_PATH_TRUNCATED);
}

/*
 * The same where only the inode is known: from one of its names up to the root of its file system.
 * Which mount that is seen through only user space knows. Nothing when no name is cached.
 */
static __always_inline void inode_path_collect(struct inode *inode, struct event_operation *e)
{
	struct hlist_node *alias = BPF_CORE_READ(inode, i_dentry.first);
	struct dentry *dentry, *parent;
	volatile __u32 *path_len = &e->path_len; /* as in path_collect() */

	e->flags |= EVENT_PATH_IN_FS;
	*path_len = 0;
	if (!alias)
		return;
	dentry = compat_dentry_of_alias(alias);
	parent = BPF_CORE_READ(dentry, d_parent);
	if (parent != dentry && !BPF_CORE_READ(dentry, d_hash.pprev))
		e->flags |= EVENT_PATH_DELETED;
	for (int i = 0; i < PATH_DEPTH_MAX; i++) {
		__u32 len = *path_len;
		long n;

		parent = BPF_CORE_READ(dentry, d_parent);
		if (parent == dentry) {
			e->flags |= EVENT_PATH_COMPLETE;
			break;
		}
		if (len >= EVENT_PATH_MAX)
			break;
		n = bpf_probe_read_kernel_str(&e->path[len & (EVENT_PATH_MAX - 1)], 256,
			BPF_CORE_READ(dentry, d_name.name));
		if (n <= 0)
			break;
		*path_len = len + (__u32)n;
		dentry = parent;
	}
	if (!(e->flags & EVENT_PATH_COMPLETE))
		loss_count(EVENT_LOSS_PATH_TRUNCATED);
}

/* The unit or the container, without the lock that reading /proc/PID/cgroup takes. */
static __always_inline void cgroup_describe(struct task_struct *task, struct event_operation *e)
{
	struct kernfs_node *node = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn);
	struct kernfs_node *parent = compat_cgroup_parent(node);

	e->cgroup_id = BPF_CORE_READ(node, id);
	e->cgroup_names[0][0] = '\0';
	e->cgroup_names[1][0] = '\0';
	bpf_probe_read_kernel_str(e->cgroup_names[0], EVENT_CGROUP_NAME_SIZE,
		BPF_CORE_READ(node, name));
	if (parent)
		bpf_probe_read_kernel_str(e->cgroup_names[1], EVENT_CGROUP_NAME_SIZE,
			BPF_CORE_READ(parent, name));
}

/* Who: from the task itself, so that it serves the current thread and a blocked one alike. */
static __always_inline void task_describe(struct task_struct *task, struct event_operation *e)
{
	e->pid = (__u32)BPF_CORE_READ(task, tgid);
	e->tid = (__u32)BPF_CORE_READ(task, pid);
	e->uid = BPF_CORE_READ(task, cred, uid.val);
	e->process_start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	e->mount_ns = BPF_CORE_READ(task, nsproxy, mnt_ns, ns.inum);
	BPF_CORE_READ_INTO(&e->comm, task, comm);
	cgroup_describe(task, e);
	e->probe = cfg_probe;
}

/*
 * Files of these are regular by their mode, but reading them waits for a person or an event: /proc/kmsg,
 * trace_pipe. Values from include/uapi/linux/magic.h.
 */
static __always_inline bool file_system_is_pseudo(unsigned long magic)
{
	switch (magic) {
	case 0x9fa0:	 /* proc */
	case 0x62656572: /* sysfs */
	case 0x64626720: /* debugfs */
	case 0x74726163: /* tracefs */
	case 0x27e0eb:	 /* cgroup */
	case 0x63677270: /* cgroup2 */
	case 0xcafe4a11: /* bpf */
	case 0x73636673: /* securityfs */
	case 0xf97cff8c: /* selinuxfs */
	case 0x62656570: /* configfs */
	case 0x6165676c: /* pstore */
		return true;
	}
	return false;
}

/* Which file; false when it is of no interest or the device filter does not want it. */
static __always_inline bool inode_describe(struct inode *inode, struct event_operation *e)
{
	__u32 mode = BPF_CORE_READ(inode, i_mode);

	if (file_system_is_pseudo(BPF_CORE_READ(inode, i_sb, s_magic)))
		return false;

	e->inode = BPF_CORE_READ(inode, i_ino);
	if ((mode & S_IFMT) == S_IFBLK)
		e->dev = BPF_CORE_READ(inode, i_rdev);
	else
		e->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	return !cfg_filter_dev || bpf_map_lookup_elem(&filter_devs, &e->dev);
}

static __always_inline bool file_describe(struct file *file, struct event_operation *e)
{
	return inode_describe(BPF_CORE_READ(file, f_inode), e);
}

/* Copies what is used of the event into the ring. */
static __always_inline void event_emit(struct event_operation *e)
{
	__u64 len = e->path_len;

	/* The compiler must compare the very register that it passes on, or the verifier loses it. */
	barrier_var(len);
	if (len > EVENT_PATH_SIZE)
		len = EVENT_PATH_SIZE;
	len += __builtin_offsetof(struct event_operation, path);
	e->header.size = (__u32)len;
	e->header.type = EVENT_OPERATION;
	e->header.version = EVENT_VERSION;
	if (bpf_ringbuf_output(&events, e, len, 0) < 0)
		loss_count(EVENT_LOSS_RING_FULL);
}

#endif
