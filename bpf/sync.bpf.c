/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probe `sync`: the returns of fsync(), fdatasync() and msync(), for the result of the operations
 * in which `wait` has seen a thread fall asleep. Their entries tell two of them on the same file
 * apart when the return of the first was not seen. A tracepoint sees each return.
 *
 * fsync() and fdatasync() are hooked as system calls, because the compiler of 7.2 has inlined
 * vfs_fsync_range() there. msync() is hooked at vfs_fsync_range(), whose entry tells the file;
 * where functions cannot be probed it is hooked as a system call without a file.
 *
 * A write with O_SYNC calls vfs_fsync_range(), too, and so does the fsync of a file system that is
 * stacked on another. `wait` has noted the system call, and only msync() ends here.
 */
enum scratch_slot {
	SCRATCH_FSYNC,
	SCRATCH_FDATASYNC,
	SCRATCH_MSYNC,
	SCRATCH_FSYNC_ENTRY,
	SCRATCH_FDATASYNC_ENTRY,
	SCRATCH_MSYNC_ENTRY,
	SCRATCH_COUNT,
};

#include "returns.bpf.h"

/* The numbers of the system calls, filled in by src/probes/sync.c. */
const volatile __s32 cfg_nr_fsync = -1;
const volatile __s32 cfg_nr_fdatasync = -1;
const volatile __s32 cfg_nr_msync = -1;

static __always_inline int sync_return(struct file *file, __s32 nr, long ret, __u32 slot)
{
	const struct sleep_return r = { file, 0, ret, nr, EVENT_OP_FSYNC, slot, 0, false };

	return_from(&r);
	return 0;
}

/*
 * The return of the function of a system call. On arm64 programs of 32 bits call it, too, by
 * another number.
 */
static __always_inline int function_return(__s32 nr, long ret, __u32 slot)
{
#if defined(__TARGET_ARCH_arm64)
	long now = compat_syscall_number((struct task_struct *)bpf_get_current_task());

	if (now >= COMPAT_SYSCALL_32BIT)
		nr = (__s32)now;
#endif
	return sync_return(NULL, nr, ret, slot);
}

/*
 * The current thread begins a system call. What it slept in before is over, even if no program has
 * seen it return: it was called before the attach, or the kernel skipped the run.
 */
static __noinline void entry_end_earlier(struct task_struct *task, __u32 slot)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct event_sleep *sleep = bpf_map_lookup_elem(&sleeps, &tid);

	if (sleep && sleep_start(sleep) && sleep->op.task == (__u64)task)
		sleep_finish(task, sleep, bpf_ktime_get_ns(), slot);
}

static __always_inline int sync_entry(__u32 slot)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

	if (sleep_is_marked((__u64)task))
		entry_end_earlier(task, slot);
	return 0;
}

/* The registers of msync() have an address, so the file is noted for `wait`. */
static __always_inline int note_mapped_file(struct file *file)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct event_fault mapped = {
		.task = (__u64)task,
		.inode = (__u64)BPF_CORE_READ(file, f_inode),
		.file = (__u64)file,
		.pos = (__u64)-1,
		.faults = msync_stamp(task),
	};
	struct event_fault *known;

	if (compat_syscall_number(task) != cfg_nr_msync)
		return 0;
	known = bpf_map_lookup_elem(&faults, &tid);
	if (known)
		*known = mapped;
	else if (bpf_map_update_elem(&faults, &tid, &mapped, BPF_ANY) < 0)
		loss_count(EVENT_LOSS_MAP_FULL);
	return 0;
}

static __always_inline int msync_return(struct file *file, long ret)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct event_fault *known = bpf_map_lookup_elem(&faults, &tid);

	if (known)
		known->faults = 0;
	return sync_return(file, cfg_nr_msync, ret, SCRATCH_MSYNC);
}

SEC("fentry/vfs_fsync_range")
int BPF_PROG(vfs_fsync_range_fentry, struct file *file)
{
	return note_mapped_file(file);
}

SEC("fexit/vfs_fsync_range")
int BPF_PROG(vfs_fsync_range_fexit, struct file *file, loff_t start, loff_t end, int datasync,
	int ret)
{
	return msync_return(file, ret);
}

SEC("kprobe")
int BPF_KPROBE(vfs_fsync_range_kprobe, struct file *file)
{
	return note_mapped_file(file);
}

SEC("kretprobe")
int BPF_KRETPROBE(vfs_fsync_range_kretprobe, int ret)
{
	return msync_return(NULL, ret);
}

/*
 * The functions are hooked rather than the tracepoints: a single system call tracepoint sends every
 * system call of every thread through the slow path, which costs 250 instructions.
 */
#if defined(__TARGET_ARCH_x86)
#define SYSCALL_FUNCTION(name) "__x64_sys_" #name
#elif defined(__TARGET_ARCH_arm64)
#define SYSCALL_FUNCTION(name) "__arm64_sys_" #name
#endif

/* The programs at the entry of one of these functions: sys_<call>_fentry and sys_<call>_kprobe. */
#define ENTRY_PROGRAMS(call, slot)                                                                 \
	SEC("fentry/" SYSCALL_FUNCTION(call))                                                      \
	int BPF_PROG(sys_##call##_fentry)                                                          \
	{                                                                                          \
		return sync_entry(slot);                                                           \
	}                                                                                          \
                                                                                                   \
	SEC("kprobe")                                                                              \
	int BPF_KPROBE(sys_##call##_kprobe)                                                        \
	{                                                                                          \
		return sync_entry(slot);                                                           \
	}

ENTRY_PROGRAMS(fsync, SCRATCH_FSYNC_ENTRY)
ENTRY_PROGRAMS(fdatasync, SCRATCH_FDATASYNC_ENTRY)
ENTRY_PROGRAMS(msync, SCRATCH_MSYNC_ENTRY)

/*
 * The programs at their return: sys_<call>_fexit and sys_<call>_kretprobe. User space knows the
 * number of the system call and the name of its function.
 */
#define FUNCTION_PROGRAMS(call, nr, slot)                                                          \
	SEC("fexit/" SYSCALL_FUNCTION(call))                                                       \
	int BPF_PROG(sys_##call##_fexit, const struct pt_regs *regs, long ret)                     \
	{                                                                                          \
		return function_return(nr, ret, slot);                                             \
	}                                                                                          \
                                                                                                   \
	SEC("kretprobe")                                                                           \
	int BPF_KRETPROBE(sys_##call##_kretprobe, long ret)                                        \
	{                                                                                          \
		return function_return(nr, ret, slot);                                             \
	}

FUNCTION_PROGRAMS(fsync, cfg_nr_fsync, SCRATCH_FSYNC)
FUNCTION_PROGRAMS(fdatasync, cfg_nr_fdatasync, SCRATCH_FDATASYNC)

/* The program of one system call: sys_exit_<call>_tp. */
#define SYSCALL_PROGRAM(call, slot)                                                                \
	SEC("tracepoint/syscalls/sys_exit_" #call)                                                 \
	int sys_exit_##call##_tp(struct syscall_exit_context *ctx)                                 \
	{                                                                                          \
		return sync_return(NULL, (__s32)ctx->id, ctx->ret, slot);                          \
	}

SYSCALL_PROGRAM(fsync, SCRATCH_FSYNC)
SYSCALL_PROGRAM(fdatasync, SCRATCH_FDATASYNC)
SYSCALL_PROGRAM(msync, SCRATCH_MSYNC)

char LICENSE[] SEC("license") = "GPL";
