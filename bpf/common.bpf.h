/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What every probe shares: load-time settings, filters, loss counters, the ring buffer, and the
 * description of a thread, a file and its path.
 * Included by the other headers of this directory and by block.bpf.c.
 * Never waits, and never loses anything without counting it.
 */
#ifndef IOSTALL_COMMON_BPF_H
#define IOSTALL_COMMON_BPF_H

#include "kernel.bpf.h"
#include "compat.bpf.h"
#include "iostall/event.h"

/*
 * User space creates these maps once, and every object reuses them: TRACE_MAPS of
 * src/probes/maps.h.
 */
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
	__uint(max_entries, EVENT_FILTER_PIDS_MAX);
	__type(key, __u32);
	__type(value, __u8);
} filter_pids SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EVENT_FILTER_DEVS_MAX);
	__type(key, __u32);
	__type(value, __u8);
} filter_devs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, EVENT_FILTER_CGROUPS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} filter_cgroups SEC(".maps");

/*
 * The ids of the same cgroups, 0 for an unused entry: bpf_current_task_under_cgroup() cannot be
 * asked about another thread than the current one.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, EVENT_FILTER_CGROUPS_MAX);
	__type(key, __u32);
	__type(value, __u64);
} filter_cgids SEC(".maps");

/* Only a thread's newest submission is of use, so evicting an old entry loses nothing. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, EVENT_THREAD_FILES_MAX);
	__type(key, __u32);
	__type(value, struct event_thread_file);
} thread_files SEC(".maps");

/*
 * Events are put together here and then copied into the ring buffer: bpf_ringbuf_reserve() takes
 * only constant sizes, and a path of 20 bytes must not cost 4 KB of the ring. Where BPF programs
 * can be preempted, another program may run on the same CPU at the same time, so each program of a
 * backend has its own slot; the kernel never nests a program in itself. Each object names its slots
 * in `enum scratch_slot` before it includes this header. User space makes room for each slot on
 * each CPU that is on-line: a map for each possible CPU has 128 and more of them where a hypervisor
 * lets CPUs be added, whatever the host has.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
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

/*
 * Added to the slot of a program that only user space runs, one at a time: it has the place of one
 * CPU, so that it runs also on one that came on-line later.
 */
#define SCRATCH_OF_USER 0x100

/* NULL, counted: this CPU came on-line after the object was loaded. */
static __always_inline struct event_operation *scratch_get(__u32 slot)
{
	__u32 cpu = slot & SCRATCH_OF_USER ? 0 : bpf_get_smp_processor_id();
	__u32 index = (slot & ~SCRATCH_OF_USER) * cfg_common.cpus + cpu;

	if (cpu < cfg_common.cpus)
		return bpf_map_lookup_elem(&scratch, &index);
	loss_count(EVENT_LOSS_MAP_FULL);
	return NULL;
}

/* Whether the settings trace.process and trace.cgroup want the current thread. */
static __always_inline bool filter_task(__u32 pid)
{
	if (pid == cfg_common.self_pid)
		return false;
	if (cfg_common.filter_pid && !bpf_map_lookup_elem(&filter_pids, &pid))
		return false;
	if (cfg_common.filter_cgroups == 0)
		return true;
	for (__u32 i = 0; i < EVENT_FILTER_CGROUPS_MAX; i++) {
		if (i >= cfg_common.filter_cgroups)
			break;
		if (bpf_current_task_under_cgroup(&filter_cgroups, i) == 1)
			return true;
	}
	return false;
}

/* Levels that filter_other_task() climbs; it does not find a wanted cgroup further up. */
#define CGROUP_DEPTH_MAX 12

/* The same question about any other thread. */
static __always_inline bool filter_other_task(struct task_struct *task)
{
	__u32 pid = (__u32)BPF_CORE_READ(task, tgid);
	struct kernfs_node *node;

	if (pid == cfg_common.self_pid ||
		(cfg_common.filter_pid && !bpf_map_lookup_elem(&filter_pids, &pid)))
		return false;
	if (cfg_common.filter_cgroups == 0)
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

/*
 * The thread's descriptor of `file`: the hint when the file table confirms it, else the first that
 * refers to the file; -1 when there is none among the first FD_SEARCH_MAX.
 */
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
 * Directories and mount points that one path may have; user space completes a deeper one. The
 * verifier goes through each round of the loop: with 192 loading took three times as long as with
 * 64, and loading is most of a start.
 */
#define PATH_DEPTH_MAX 64

/*
 * Collects the names from a dentry up to the root of its file system or, with a mount, to that of
 * the mount namespace, into the event in `slot`. Follows the rules of prepend_path() in
 * fs/d_path.c, but takes none of its locks: a rename at the same time may mix old and new names.
 *
 * A global function, which the verifier goes through once by itself: as part of each caller it took
 * 5 MB of kernel memory at a time (6.18). Such a function gets and returns numbers only on 5.10.
 */
__noinline int names_collect(__u64 dentry_address, __u64 mount_address, __u32 slot)
{
	struct dentry *dentry = (struct dentry *)dentry_address, *parent;
	struct mount *mount = (struct mount *)mount_address, *mount_parent;
	struct event_operation *e = scratch_get(slot);
	const bool follow_mounts = mount_address != 0;
	volatile __u32 *path_len;

	if (!e)
		return 0;
	/*
	 * The length stays in memory: the verifier takes a value that is read back for any number,
	 * so all ways through the loop lead to one state and it need not follow each of them. 5.10
	 * gives up otherwise.
	 */
	path_len = &e->path_len;
	*path_len = 0;
	parent = BPF_CORE_READ(dentry, d_parent);
	if (parent != dentry && !BPF_CORE_READ(dentry, d_hash.pprev))
		e->flags |= EVENT_PATH_DELETED;
	for (int i = 0; i < PATH_DEPTH_MAX; i++) {
		__u32 len = *path_len;
		long n;

		if (follow_mounts && dentry == BPF_CORE_READ(mount, mnt.mnt_root)) {
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
			e->flags |= EVENT_PATH_COMPLETE | (follow_mounts ? EVENT_PATH_DETACHED : 0);
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
	return 0;
}

/* The path of an open file in its mount namespace, into the event `e` in `slot`. */
static __always_inline void path_collect(struct file *file, struct event_operation *e, __u32 slot)
{
	struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry);
	struct vfsmount *vfsmount = BPF_CORE_READ(file, f_path.mnt);
	struct mount *mount = (void *)vfsmount - bpf_core_field_offset(struct mount, mnt);

	names_collect((__u64)dentry, (__u64)mount, slot);
	/* `umount -l` leaves a mount without a namespace to those who have files open in it. */
	if (!BPF_CORE_READ(mount, mnt_ns))
		e->flags |= EVENT_PATH_DETACHED;
}

/*
 * The path of an inode from the root of its file system, for want of an open file. User space adds
 * the mount point. The path stays empty when the kernel has no name of the inode in its cache.
 */
static __always_inline void inode_path_collect(struct inode *inode, struct event_operation *e,
	__u32 slot)
{
	struct hlist_node *alias = BPF_CORE_READ(inode, i_dentry.first);

	e->flags |= EVENT_PATH_IN_FS;
	e->path_len = 0;
	if (alias)
		names_collect((__u64)compat_dentry_of_alias(alias), 0, slot);
}

static __always_inline struct kernfs_node *cgroup_of(struct task_struct *task)
{
	return BPF_CORE_READ(task, cgroups, dfl_cgrp, kn);
}

/*
 * The cgroup's own name and its parent's, which name the unit or the container. Reading
 * /proc/PID/cgroup instead would take a lock. A read that fails leaves an empty string, and so does
 * the root's parent, which is NULL.
 */
static __always_inline void cgroup_read_names(struct kernfs_node *node,
	char names[EVENT_CGROUP_NAMES][EVENT_CGROUP_NAME_SIZE])
{
	struct kernfs_node *parent = compat_cgroup_parent(node);

	bpf_probe_read_kernel_str(names[0], EVENT_CGROUP_NAME_SIZE, BPF_CORE_READ(node, name));
	bpf_probe_read_kernel_str(names[1], EVENT_CGROUP_NAME_SIZE, BPF_CORE_READ(parent, name));
}

/* Bits of a thread's state, include/linux/sched.h. */
#define TASK_INTERRUPTIBLE 0x1
#define TASK_UNINTERRUPTIBLE 0x2
#define TASK_NOLOAD 0x400

static __always_inline bool task_is_asleep(struct task_struct *task)
{
	return compat_task_state(task) & (TASK_INTERRUPTIBLE | TASK_UNINTERRUPTIBLE);
}

/* The letter of /proc/TID/stat, which would have to be read from there otherwise. */
static __always_inline __u8 task_state_letter(struct task_struct *task)
{
	unsigned int state = compat_task_state(task);

	if (state & TASK_UNINTERRUPTIBLE)
		return state & TASK_NOLOAD ? 'I' : 'D';
	return state & TASK_INTERRUPTIBLE ? 'S' : 'R';
}

/*
 * The thread and its process. Everything is read from the task, so that it works for the current
 * thread and for a blocked one.
 */
static __always_inline void task_describe(struct task_struct *task, struct event_operation *e)
{
	struct kernfs_node *node = cgroup_of(task);

	e->pid = (__u32)BPF_CORE_READ(task, tgid);
	e->tid = (__u32)BPF_CORE_READ(task, pid);
	e->uid = BPF_CORE_READ(task, cred, uid.val);
	e->process_start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	e->mount_ns = BPF_CORE_READ(task, nsproxy, mnt_ns, ns.inum);
	BPF_CORE_READ_INTO(&e->comm, task, comm);
	e->cgroup_id = BPF_CORE_READ(node, id);
	cgroup_read_names(node, e->cgroup_names);
	e->probe = cfg_common.probe;
	e->state = e->flags & EVENT_FINISHED ? 0 : task_state_letter(task);
}

/*
 * The mode of files there is that of regular files, but reading one may wait for an event and not
 * for storage: /proc/kmsg, trace_pipe. Values from include/uapi/linux/magic.h.
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

/*
 * Which file; false when it is not on a device of trace.device, or on a pseudo file system and the
 * thread waits for an event. Who sleeps there in D state waits for a lock, memory or a disk, as a
 * reader of /proc/PID/cmdline or who writes to cgroup.procs. The flags of the event are set before.
 */
static __always_inline bool inode_describe(struct inode *inode, struct event_operation *e)
{
	__u32 mode = BPF_CORE_READ(inode, i_mode);

	if (!(e->flags & EVENT_UNINTERRUPTIBLE) &&
		file_system_is_pseudo(BPF_CORE_READ(inode, i_sb, s_magic)))
		return false;

	e->inode = BPF_CORE_READ(inode, i_ino);
	if ((mode & S_IFMT) == S_IFBLK)
		e->dev = BPF_CORE_READ(inode, i_rdev);
	else
		e->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	return !cfg_common.filter_dev || bpf_map_lookup_elem(&filter_devs, &e->dev);
}

static __always_inline bool file_describe(struct file *file, struct event_operation *e)
{
	return inode_describe(BPF_CORE_READ(file, f_inode), e);
}

/* UIO_MAXIOV of include/uapi/linux/uio.h: the kernel accepts no longer vector. */
#define VECTOR_MAX 1024

/* How long one segment is, of a program of 64 bits or of 32. */
static __always_inline long vector_read(__u64 vector, __u32 i, bool is_32bit, __u64 *ret_len)
{
	__u32 segment_32[2] = { 0, 0 };
	struct iovec segment = {};
	long r;

	if (is_32bit)
		r = bpf_probe_read_user(segment_32, sizeof(segment_32),
			(void *)(vector + i * sizeof(segment_32)));
	else
		r = bpf_probe_read_user(&segment, sizeof(segment),
			(void *)(vector + i * sizeof(segment)));
	*ret_len = is_32bit ? segment_32[1] : segment.iov_len;
	return r;
}

/*
 * The bytes that an iovec of the current process asks for; 0 when it cannot be read. A global
 * function, as names_collect() is: as part of its callers it took 14 MB at a time.
 */
__noinline __u64 vector_bytes(__u64 vector, __u64 count)
{
	bool is_32bit = compat_syscall_number((struct task_struct *)bpf_get_current_task()) >=
		COMPAT_SYSCALL_32BIT;
	__u64 bytes = 0, len;

	for (__u32 i = 0; i <= VECTOR_MAX; i++) {
		if (i >= count)
			return bytes;
		if (vector_read(vector, i, is_32bit, &len) < 0)
			return 0;
		bytes += len;
	}
	return 0;
}

/*
 * The verifier only knows the limit of the register that was compared: the barrier makes the
 * compiler pass on that one.
 */
static __always_inline __u64 at_most(__u64 value, __u64 limit)
{
	barrier_var(value);
	return value > limit ? limit : value;
}

/* Puts a name of the control group behind the first `len` bytes of the path. */
static __always_inline __u64 event_add_name(struct event_operation *e, __u64 len, const char *name)
{
	long n = bpf_probe_read_kernel_str(&e->path[len], EVENT_CGROUP_NAME_SIZE, name);

	return n > 0 ? len + at_most((__u64)n, EVENT_CGROUP_NAME_SIZE) : len;
}

/* Puts names and stack behind the path, and copies the used part into the ring buffer. */
static __always_inline void event_emit(struct event_operation *e)
{
	__u64 path_len = at_most(e->path_len, EVENT_PATH_SIZE), len = path_len;
	__u64 stack_bytes = at_most(e->stack_len, EVENT_STACK_DEPTH) * sizeof(e->stack[0]);

	for (unsigned int i = 0; i < EVENT_CGROUP_NAMES; i++)
		len = event_add_name(e, len, e->cgroup_names[i]);
	e->names_len = (__u16)(len - path_len);
	bpf_probe_read_kernel(&e->path[len], stack_bytes, e->stack);
	len += stack_bytes + __builtin_offsetof(struct event_operation, path);
	e->header.size = (__u32)len;
	e->header.type = EVENT_OPERATION;
	e->header.version = EVENT_VERSION;
	if (bpf_ringbuf_output(&events, e, len, 0) < 0)
		loss_count(EVENT_LOSS_RING_FULL);
}

#endif
