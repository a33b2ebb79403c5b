/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probe `vfs`: the returns of vfs_read(), vfs_write(), vfs_readv() and vfs_writev(), for the result
 * of the operations in which `wait` has seen a thread fall asleep.
 *
 * All of it is in returns.bpf.h; user space loads the programs of one backend.
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
	SCRATCH_COUNT,
};

#include "returns.bpf.h"

static __always_inline int function_return(struct file *file, __u64 pos, long ret, __u32 op,
	__u32 slot, bool is_vector)
{
	/* vfs_read() counts a read before it returns, the caller of vfs_readv() after. */
	const struct sleep_return r = { file, pos, ret, -1, op, slot, !is_vector, is_vector };

	return_from(&r);
	return 0;
}

#define PLAIN_ARGS struct file *file, char *buf, unsigned long count, loff_t *pos
#define VECTOR_ARGS                                                                                \
	struct file *file, const struct iovec *buf, unsigned long count, loff_t *pos, int flags

/*
 * The programs of one function: <function>_fexit and <function>_kretprobe. `args` are the
 * function's own, since fexit finds the result behind the last of them. User space attaches the
 * kretprobe through an event that it makes in tracefs.
 */
#define FUNCTION_PROGRAMS(function, op, slot, args, is_vector)                                     \
	SEC("fexit/" #function)                                                                    \
	int BPF_PROG(function##_fexit, args, long ret)                                             \
	{                                                                                          \
		return function_return(file, compat_int_pointer_arg(ctx, 3), ret, op, slot,        \
			is_vector);                                                                \
	}                                                                                          \
                                                                                                   \
	SEC("kretprobe")                                                                           \
	int BPF_KRETPROBE(function##_kretprobe, long ret)                                          \
	{                                                                                          \
		return function_return(NULL, 0, ret, op, slot, is_vector);                         \
	}

FUNCTION_PROGRAMS(vfs_read, EVENT_OP_READ, SCRATCH_READ, PLAIN_ARGS, false)
FUNCTION_PROGRAMS(vfs_write, EVENT_OP_WRITE, SCRATCH_WRITE, PLAIN_ARGS, false)
FUNCTION_PROGRAMS(vfs_readv, EVENT_OP_READ, SCRATCH_READV, VECTOR_ARGS, true)
FUNCTION_PROGRAMS(vfs_writev, EVENT_OP_WRITE, SCRATCH_WRITEV, VECTOR_ARGS, true)

/* The program of one system call: sys_exit_<call>_tp. The whole call has been counted by then. */
#define SYSCALL_PROGRAM(call, op, slot, is_vector)                                                 \
	SEC("tracepoint/syscalls/sys_exit_" #call)                                                 \
	int sys_exit_##call##_tp(struct syscall_exit_context *ctx)                                 \
	{                                                                                          \
		const struct sleep_return r = { NULL, 0, ctx->ret, (__s32)ctx->id, op, slot, 1,    \
			is_vector };                                                               \
                                                                                                   \
		return_from(&r);                                                                   \
		return 0;                                                                          \
	}

SYSCALL_PROGRAM(read, EVENT_OP_READ, SCRATCH_READ, false)
SYSCALL_PROGRAM(pread64, EVENT_OP_READ, SCRATCH_PREAD, false)
SYSCALL_PROGRAM(write, EVENT_OP_WRITE, SCRATCH_WRITE, false)
SYSCALL_PROGRAM(pwrite64, EVENT_OP_WRITE, SCRATCH_PWRITE, false)
SYSCALL_PROGRAM(readv, EVENT_OP_READ, SCRATCH_READV, true)
SYSCALL_PROGRAM(preadv, EVENT_OP_READ, SCRATCH_PREADV, true)
SYSCALL_PROGRAM(preadv2, EVENT_OP_READ, SCRATCH_PREADV2, true)
SYSCALL_PROGRAM(writev, EVENT_OP_WRITE, SCRATCH_WRITEV, true)
SYSCALL_PROGRAM(pwritev, EVENT_OP_WRITE, SCRATCH_PWRITEV, true)
SYSCALL_PROGRAM(pwritev2, EVENT_OP_WRITE, SCRATCH_PWRITEV2, true)

char LICENSE[] SEC("license") = "GPL";
