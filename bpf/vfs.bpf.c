/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probe `vfs`: vfs_read(), vfs_write() and their vectored kin, of regular files and block devices, entry
 * paired with exit.
 *
 * Thin stubs around the pairing of pairing.bpf.h; user space loads those of one backend.
 */
enum scratch_slot {
	SCRATCH_READ,
	SCRATCH_WRITE,
	SCRATCH_PREAD,
	SCRATCH_PWRITE,
	SCRATCH_READV,
	SCRATCH_WRITEV,
	SCRATCH_PREADV,
	SCRATCH_PWRITEV,
	SCRATCH_PREADV2,
	SCRATCH_PWRITEV2,
	SCRATCH_RESOLVE,
	SCRATCH_COUNT,
};

#include "pairing.bpf.h"

/* fentry, fexit */

static __always_inline void enter_function(struct file *file, __u32 mode, __u64 buf, __u64 count,
	__u64 pos, __u32 op, __u32 flags, bool is_kprobe)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	const struct pairing_call call = {
		.file = file,
		.buf = buf,
		.bytes = count,
		.pos = pos,
		.fd = -1,
		.op = op,
		.flags = EVENT_INFLIGHT_POS_IS_ADDRESS | flags,
	};

	if (wanted_mode(mode, pid_tgid))
		pairing_enter(&call, pid_tgid);
	else if (is_kprobe)
		pairing_enter_unwanted((__u32)pid_tgid);
}

SEC("fentry/vfs_read")
int BPF_PROG(vfs_read_fentry, struct file *file, char *buf, unsigned long count, loff_t *pos)
{
	enter_function(file, file->f_inode->i_mode, compat_int_pointer_arg(ctx, 1), count,
		compat_int_pointer_arg(ctx, 3), EVENT_OP_READ, 0, false);
	return 0;
}

SEC("fexit/vfs_read")
int BPF_PROG(vfs_read_fexit, struct file *file, char *buf, unsigned long count, loff_t *pos,
	long ret)
{
	struct pairing_return r = { file, ctx, -1, ret, EVENT_OP_READ, SCRATCH_READ };

	pairing_exit(ctx, &r);
	return 0;
}

SEC("fentry/vfs_write")
int BPF_PROG(vfs_write_fentry, struct file *file, char *buf, unsigned long count, loff_t *pos)
{
	enter_function(file, file->f_inode->i_mode, compat_int_pointer_arg(ctx, 1), count,
		compat_int_pointer_arg(ctx, 3), EVENT_OP_WRITE, 0, false);
	return 0;
}

SEC("fexit/vfs_write")
int BPF_PROG(vfs_write_fexit, struct file *file, char *buf, unsigned long count, loff_t *pos,
	long ret)
{
	struct pairing_return r = { file, ctx, -1, ret, EVENT_OP_WRITE, SCRATCH_WRITE };

	pairing_exit(ctx, &r);
	return 0;
}

SEC("fentry/vfs_readv")
int BPF_PROG(vfs_readv_fentry, struct file *file, const struct iovec *vec, unsigned long count, loff_t *pos,
	int flags)
{
	enter_function(file, file->f_inode->i_mode, compat_int_pointer_arg(ctx, 1), count,
		compat_int_pointer_arg(ctx, 3), EVENT_OP_READ, EVENT_INFLIGHT_VECTOR, false);
	return 0;
}

SEC("fexit/vfs_readv")
int BPF_PROG(vfs_readv_fexit, struct file *file, const struct iovec *vec, unsigned long count, loff_t *pos, int flags,
	long ret)
{
	struct pairing_return r = { file, ctx, -1, ret, EVENT_OP_READ, SCRATCH_READV };

	pairing_exit(ctx, &r);
	return 0;
}

SEC("fentry/vfs_writev")
int BPF_PROG(vfs_writev_fentry, struct file *file, const struct iovec *vec, unsigned long count, loff_t *pos,
	int flags)
{
	enter_function(file, file->f_inode->i_mode, compat_int_pointer_arg(ctx, 1), count,
		compat_int_pointer_arg(ctx, 3), EVENT_OP_WRITE, EVENT_INFLIGHT_VECTOR, false);
	return 0;
}

SEC("fexit/vfs_writev")
int BPF_PROG(vfs_writev_fexit, struct file *file, const struct iovec *vec, unsigned long count, loff_t *pos, int flags,
	long ret)
{
	struct pairing_return r = { file, ctx, -1, ret, EVENT_OP_WRITE, SCRATCH_WRITEV };

	pairing_exit(ctx, &r);
	return 0;
}

/* kprobe, kretprobe: attached through events that user space makes in tracefs */

SEC("kprobe")
int BPF_KPROBE(vfs_read_kprobe, struct file *file, char *buf, unsigned long count, loff_t *pos)
{
	enter_function(file, BPF_CORE_READ(file, f_inode, i_mode), (__u64)buf, count, (__u64)pos,
		EVENT_OP_READ, 0, true);
	return 0;
}

SEC("kretprobe")
int BPF_KRETPROBE(vfs_read_kretprobe, long ret)
{
	struct pairing_return r = { NULL, NULL, -1, ret, EVENT_OP_READ, SCRATCH_READ };

	pairing_exit(ctx, &r);
	return 0;
}

SEC("kprobe")
int BPF_KPROBE(vfs_write_kprobe, struct file *file, char *buf, unsigned long count, loff_t *pos)
{
	enter_function(file, BPF_CORE_READ(file, f_inode, i_mode), (__u64)buf, count, (__u64)pos,
		EVENT_OP_WRITE, 0, true);
	return 0;
}

SEC("kretprobe")
int BPF_KRETPROBE(vfs_write_kretprobe, long ret)
{
	struct pairing_return r = { NULL, NULL, -1, ret, EVENT_OP_WRITE, SCRATCH_WRITE };

	pairing_exit(ctx, &r);
	return 0;
}

SEC("kprobe")
int BPF_KPROBE(vfs_readv_kprobe, struct file *file, const struct iovec *buf, unsigned long count,
	loff_t *pos)
{
	enter_function(file, BPF_CORE_READ(file, f_inode, i_mode), (__u64)buf, count, (__u64)pos,
		EVENT_OP_READ, EVENT_INFLIGHT_VECTOR, true);
	return 0;
}

SEC("kretprobe")
int BPF_KRETPROBE(vfs_readv_kretprobe, long ret)
{
	struct pairing_return r = { NULL, NULL, -1, ret, EVENT_OP_READ, SCRATCH_READV };

	pairing_exit(ctx, &r);
	return 0;
}

SEC("kprobe")
int BPF_KPROBE(vfs_writev_kprobe, struct file *file, const struct iovec *buf, unsigned long count,
	loff_t *pos)
{
	enter_function(file, BPF_CORE_READ(file, f_inode, i_mode), (__u64)buf, count, (__u64)pos,
		EVENT_OP_WRITE, EVENT_INFLIGHT_VECTOR, true);
	return 0;
}

SEC("kretprobe")
int BPF_KRETPROBE(vfs_writev_kretprobe, long ret)
{
	struct pairing_return r = { NULL, NULL, -1, ret, EVENT_OP_WRITE, SCRATCH_WRITEV };

	pairing_exit(ctx, &r);
	return 0;
}

/* System call tracepoints: the file is found through the file table. */

static __always_inline int syscall_enter(struct syscall_enter_context *ctx, bool has_offset, __u32 op,
	__u32 flags)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u32 fd = (__u32)ctx->args[0];
	struct file *file = file_of_fd(task, fd);
	/* preadv2() and pwritev2() at -1 are readv() and writev(). */
	bool at_position = !has_offset || ctx->args[3] == (unsigned long)-1;
	const struct pairing_call call = {
		.file = file,
		.buf = ctx->args[1],
		.bytes = ctx->args[2],
		.pos = at_position ? (__u64)BPF_CORE_READ(file, f_pos) : ctx->args[3],
		.fd = (__s32)fd,
		.op = op,
		.flags = flags,
	};

	if (file && wanted_mode(BPF_CORE_READ(file, f_inode, i_mode), pid_tgid))
		pairing_enter(&call, pid_tgid);
	return 0;
}

SEC("tracepoint/syscalls/sys_enter_read")
int sys_enter_read_tp(struct syscall_enter_context *ctx)
{
	return syscall_enter(ctx, false, EVENT_OP_READ, 0);
}

SEC("tracepoint/syscalls/sys_exit_read")
int sys_exit_read_tp(struct syscall_exit_context *ctx)
{
	struct pairing_return r = { NULL, NULL, ctx->id, ctx->ret, EVENT_OP_READ, SCRATCH_READ };

	pairing_exit(ctx, &r);
	return 0;
}

SEC("tracepoint/syscalls/sys_enter_pread64")
int sys_enter_pread64_tp(struct syscall_enter_context *ctx)
{
	return syscall_enter(ctx, true, EVENT_OP_READ, 0);
}

SEC("tracepoint/syscalls/sys_exit_pread64")
int sys_exit_pread64_tp(struct syscall_exit_context *ctx)
{
	struct pairing_return r = { NULL, NULL, ctx->id, ctx->ret, EVENT_OP_READ, SCRATCH_PREAD };

	pairing_exit(ctx, &r);
	return 0;
}

SEC("tracepoint/syscalls/sys_enter_write")
int sys_enter_write_tp(struct syscall_enter_context *ctx)
{
	return syscall_enter(ctx, false, EVENT_OP_WRITE, 0);
}

SEC("tracepoint/syscalls/sys_exit_write")
int sys_exit_write_tp(struct syscall_exit_context *ctx)
{
	struct pairing_return r = { NULL, NULL, ctx->id, ctx->ret, EVENT_OP_WRITE, SCRATCH_WRITE };

	pairing_exit(ctx, &r);
	return 0;
}

SEC("tracepoint/syscalls/sys_enter_pwrite64")
int sys_enter_pwrite64_tp(struct syscall_enter_context *ctx)
{
	return syscall_enter(ctx, true, EVENT_OP_WRITE, 0);
}

SEC("tracepoint/syscalls/sys_exit_pwrite64")
int sys_exit_pwrite64_tp(struct syscall_exit_context *ctx)
{
	struct pairing_return r = { NULL, NULL, ctx->id, ctx->ret, EVENT_OP_WRITE, SCRATCH_PWRITE };

	pairing_exit(ctx, &r);
	return 0;
}

SEC("tracepoint/syscalls/sys_enter_readv")
int sys_enter_readv_tp(struct syscall_enter_context *ctx)
{
	return syscall_enter(ctx, false, EVENT_OP_READ, EVENT_INFLIGHT_VECTOR);
}

SEC("tracepoint/syscalls/sys_exit_readv")
int sys_exit_readv_tp(struct syscall_exit_context *ctx)
{
	struct pairing_return r = { NULL, NULL, ctx->id, ctx->ret, EVENT_OP_READ, SCRATCH_READV };

	pairing_exit(ctx, &r);
	return 0;
}

SEC("tracepoint/syscalls/sys_enter_preadv")
int sys_enter_preadv_tp(struct syscall_enter_context *ctx)
{
	return syscall_enter(ctx, true, EVENT_OP_READ, EVENT_INFLIGHT_VECTOR);
}

SEC("tracepoint/syscalls/sys_exit_preadv")
int sys_exit_preadv_tp(struct syscall_exit_context *ctx)
{
	struct pairing_return r = { NULL, NULL, ctx->id, ctx->ret, EVENT_OP_READ, SCRATCH_PREADV };

	pairing_exit(ctx, &r);
	return 0;
}

SEC("tracepoint/syscalls/sys_enter_preadv2")
int sys_enter_preadv2_tp(struct syscall_enter_context *ctx)
{
	return syscall_enter(ctx, true, EVENT_OP_READ, EVENT_INFLIGHT_VECTOR);
}

SEC("tracepoint/syscalls/sys_exit_preadv2")
int sys_exit_preadv2_tp(struct syscall_exit_context *ctx)
{
	struct pairing_return r = { NULL, NULL, ctx->id, ctx->ret, EVENT_OP_READ, SCRATCH_PREADV2 };

	pairing_exit(ctx, &r);
	return 0;
}

SEC("tracepoint/syscalls/sys_enter_writev")
int sys_enter_writev_tp(struct syscall_enter_context *ctx)
{
	return syscall_enter(ctx, false, EVENT_OP_WRITE, EVENT_INFLIGHT_VECTOR);
}

SEC("tracepoint/syscalls/sys_exit_writev")
int sys_exit_writev_tp(struct syscall_exit_context *ctx)
{
	struct pairing_return r = { NULL, NULL, ctx->id, ctx->ret, EVENT_OP_WRITE, SCRATCH_WRITEV };

	pairing_exit(ctx, &r);
	return 0;
}

SEC("tracepoint/syscalls/sys_enter_pwritev")
int sys_enter_pwritev_tp(struct syscall_enter_context *ctx)
{
	return syscall_enter(ctx, true, EVENT_OP_WRITE, EVENT_INFLIGHT_VECTOR);
}

SEC("tracepoint/syscalls/sys_exit_pwritev")
int sys_exit_pwritev_tp(struct syscall_exit_context *ctx)
{
	struct pairing_return r = { NULL, NULL, ctx->id, ctx->ret, EVENT_OP_WRITE, SCRATCH_PWRITEV };

	pairing_exit(ctx, &r);
	return 0;
}

SEC("tracepoint/syscalls/sys_enter_pwritev2")
int sys_enter_pwritev2_tp(struct syscall_enter_context *ctx)
{
	return syscall_enter(ctx, true, EVENT_OP_WRITE, EVENT_INFLIGHT_VECTOR);
}

SEC("tracepoint/syscalls/sys_exit_pwritev2")
int sys_exit_pwritev2_tp(struct syscall_exit_context *ctx)
{
	struct pairing_return r = { NULL, NULL, ctx->id, ctx->ret, EVENT_OP_WRITE, SCRATCH_PWRITEV2 };

	pairing_exit(ctx, &r);
	return 0;
}

PAIRING_PROGRAMS(vfs);

char LICENSE[] SEC("license") = "GPL";
