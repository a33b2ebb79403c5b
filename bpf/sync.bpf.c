/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probe `sync`: fsync(), fdatasync() and msync(), entry paired with exit: the system calls themselves, but
 * msync() where vfs_fsync_range() can be probed, which tells the file. In 7.2 the compiler has inlined
 * that function in the other two, which are in the same source file.
 *
 * A write with O_SYNC goes there, too, and so does the fsync of a file system that lies over another.
 * Then the operation nearest to the caller counts, which is in flight already.
 */
enum scratch_slot {
	SCRATCH_FSYNC,
	SCRATCH_FDATASYNC,
	SCRATCH_MSYNC,
	SCRATCH_RESOLVE,
	SCRATCH_COUNT,
};

#include "pairing.bpf.h"

/* Numbers of the system calls, which user space knows. */
const volatile long cfg_nr_fsync = -1;
const volatile long cfg_nr_fdatasync = -1;
const volatile long cfg_nr_msync = -1;

static __always_inline bool wanted_file(struct file *file, __u64 pid_tgid)
{
	__u32 mode = BPF_CORE_READ(file, f_inode, i_mode);

	/* A directory is synced when a file was made or renamed. */
	return (file_mode_is_storage(mode) || (mode & S_IFMT) == S_IFDIR) && filter_task(pid_tgid >> 32);
}

static __always_inline bool is_sync_call(long nr)
{
	return nr == cfg_nr_fsync || nr == cfg_nr_fdatasync || nr == cfg_nr_msync;
}

/* Whether a call of vfs_fsync_range() is a part of what the thread is noted to be in. */
static __always_inline bool is_nested(const struct event_inflight *entry, struct file *file,
	const struct compat_syscall *call)
{
	if (entry->op != EVENT_OP_FSYNC)
		return !is_sync_call(call->nr);
	return entry->file != (__u64)file && entry->buf == call->args[1] &&
		entry->bytes == call->args[2] &&
		(entry->fd < 0 || entry->fd == (__s32)call->args[0]);
}

static __always_inline void enter_function(struct file *file)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct event_inflight *entry;
	struct compat_syscall call;
	__s32 fd;

	/* Requests of libaio and io_uring, which are reported as such, and what the kernel does by itself. */
	if (BPF_CORE_READ(task, flags) & (PF_KTHREAD | PF_IO_WORKER))
		return;
	if (!wanted_file(file, pid_tgid))
		return;
	compat_syscall_read(task, &call);
	/* Noted as system calls, or parts of requests: a write with O_DSYNC. */
	if (call.nr == cfg_nr_fsync || call.nr == cfg_nr_fdatasync || compat_syscall_is_submit(call.nr))
		return;
	entry = pairing_find((__u32)pid_tgid);
	if (entry && entry->start_ns && is_nested(entry, file, &call)) {
		if (entry->op == EVENT_OP_FSYNC)
			entry->flags += EVENT_INFLIGHT_NESTED;
		return;
	}
	fd = (__s32)call.args[0];
	if (file_of_fd(task, (__u32)fd) != file)
		fd = -1;
	{
		const struct pairing_call noted = {
			.file = file,
			.pos = (__u64)-1,
			.buf = call.args[1],
			.bytes = call.args[2],
			.fd = fd,
			.op = EVENT_OP_FSYNC,
			/* Read through a computed place, which is right if it names the file. */
			.flags = fd >= 0 || is_sync_call(call.nr) ? 0 : EVENT_INFLIGHT_BARE,
		};

		pairing_enter(&noted, pid_tgid);
	}
}

SEC("fentry/vfs_fsync_range")
int BPF_PROG(vfs_fsync_range_fentry, struct file *file)
{
	enter_function(file);
	return 0;
}

SEC("fexit/vfs_fsync_range")
int BPF_PROG(vfs_fsync_range_fexit, struct file *file, loff_t start, loff_t end, int datasync, int ret)
{
	struct pairing_return r = { file, NULL, -1, ret, EVENT_OP_FSYNC, SCRATCH_MSYNC };

	pairing_exit(ctx, &r);
	return 0;
}

SEC("kprobe")
int BPF_KPROBE(vfs_fsync_range_kprobe, struct file *file)
{
	enter_function(file);
	return 0;
}

SEC("kretprobe")
int BPF_KRETPROBE(vfs_fsync_range_kretprobe, int ret)
{
	struct pairing_return r = { NULL, NULL, -1, ret, EVENT_OP_FSYNC, SCRATCH_MSYNC };

	pairing_exit(ctx, &r);
	return 0;
}

/* The whole system call; which file msync() is about is not told. */
static __always_inline void enter_syscall(bool has_fd)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct file *file = NULL;
	struct compat_syscall call;

	compat_syscall_read(task, &call);
	if (has_fd)
		file = file_of_fd(task, (__u32)call.args[0]);
	if (has_fd ? !file || !wanted_file(file, pid_tgid) : !filter_task(pid_tgid >> 32))
		return;
	{
		const struct pairing_call noted = {
			.file = file,
			.pos = (__u64)-1,
			.buf = call.args[1],
			.bytes = call.args[2],
			.fd = has_fd ? (__s32)call.args[0] : -1,
			.op = EVENT_OP_FSYNC,
			.flags = EVENT_INFLIGHT_SYSCALL,
		};

		pairing_enter(&noted, pid_tgid);
	}
}

static __always_inline void exit_syscall(void *ctx, long nr, long ret, __u32 slot)
{
	struct pairing_return r = { NULL, NULL, nr, ret, EVENT_OP_FSYNC, slot };

	pairing_exit(ctx, &r);
}

/*
 * Their functions, not their tracepoints: one system call tracepoint makes every system call of every
 * thread take the slow way, 250 instructions more.
 */
#if defined(__TARGET_ARCH_x86)
#define SYSCALL_FUNCTION(name) "__x64_sys_" #name
#elif defined(__TARGET_ARCH_arm64)
#define SYSCALL_FUNCTION(name) "__arm64_sys_" #name
#endif

SEC("fentry/" SYSCALL_FUNCTION(fsync))
int sys_fsync_fentry(void *ctx)
{
	enter_syscall(true);
	return 0;
}

SEC("fexit/" SYSCALL_FUNCTION(fsync))
int BPF_PROG(sys_fsync_fexit, const struct pt_regs *regs, long ret)
{
	exit_syscall(ctx, cfg_nr_fsync, ret, SCRATCH_FSYNC);
	return 0;
}

SEC("fentry/" SYSCALL_FUNCTION(fdatasync))
int sys_fdatasync_fentry(void *ctx)
{
	enter_syscall(true);
	return 0;
}

SEC("fexit/" SYSCALL_FUNCTION(fdatasync))
int BPF_PROG(sys_fdatasync_fexit, const struct pt_regs *regs, long ret)
{
	exit_syscall(ctx, cfg_nr_fdatasync, ret, SCRATCH_FDATASYNC);
	return 0;
}

SEC("kprobe")
int sys_fsync_kprobe(void *ctx)
{
	enter_syscall(true);
	return 0;
}

SEC("kretprobe")
int BPF_KRETPROBE(sys_fsync_kretprobe, long ret)
{
	exit_syscall(ctx, cfg_nr_fsync, ret, SCRATCH_FSYNC);
	return 0;
}

SEC("kprobe")
int sys_fdatasync_kprobe(void *ctx)
{
	enter_syscall(true);
	return 0;
}

SEC("kretprobe")
int BPF_KRETPROBE(sys_fdatasync_kretprobe, long ret)
{
	exit_syscall(ctx, cfg_nr_fdatasync, ret, SCRATCH_FDATASYNC);
	return 0;
}

SEC("tracepoint/syscalls/sys_enter_fsync")
int sys_enter_fsync_tp(void *ctx)
{
	enter_syscall(true);
	return 0;
}

SEC("tracepoint/syscalls/sys_exit_fsync")
int sys_exit_fsync_tp(struct syscall_exit_context *ctx)
{
	exit_syscall(ctx, ctx->id, ctx->ret, SCRATCH_FSYNC);
	return 0;
}

SEC("tracepoint/syscalls/sys_enter_fdatasync")
int sys_enter_fdatasync_tp(void *ctx)
{
	enter_syscall(true);
	return 0;
}

SEC("tracepoint/syscalls/sys_exit_fdatasync")
int sys_exit_fdatasync_tp(struct syscall_exit_context *ctx)
{
	exit_syscall(ctx, ctx->id, ctx->ret, SCRATCH_FDATASYNC);
	return 0;
}

SEC("tracepoint/syscalls/sys_enter_msync")
int sys_enter_msync_tp(void *ctx)
{
	enter_syscall(false);
	return 0;
}

SEC("tracepoint/syscalls/sys_exit_msync")
int sys_exit_msync_tp(struct syscall_exit_context *ctx)
{
	exit_syscall(ctx, ctx->id, ctx->ret, SCRATCH_MSYNC);
	return 0;
}

PAIRING_PROGRAMS(sync);

char LICENSE[] SEC("license") = "GPL";
