/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a thread is doing in the kernel: the system call with its arguments, a fault, or a kernel thread.
 * Included by wait.bpf.c.
 * Never believes that the thread stays in it, unless it is the current one.
 */
#ifndef IOSTALL_CALLS_BPF_H
#define IOSTALL_CALLS_BPF_H

#include "sleeps.bpf.h"

const volatile struct event_syscall cfg_syscalls[EVENT_SYSCALLS_MAX] = {};
const volatile __s32 cfg_nr_io_submit = -1;
const volatile bool cfg_sync_seen = false;

/* What a thread is in, and how to tell it from the next call alike. */
struct wait_call {
	struct compat_syscall call;
	__s32 nr; /* -1: in none */
	__u32 op;
	bool is_kernel;
	struct event_syscall is;
	__s32 fd; /* -1: none */
	__u64 offset; /* -1: not known */
	__u64 bytes;
	__u64 counter;
};

/* A request of libaio, include/uapi/linux/aio_abi.h. */
struct aio_iocb {
	__u64 data;
	__u64 key_and_flags;
	__u16 opcode;
	__s16 priority;
	__u32 fd;
	__u64 buf;
	__u64 bytes;
	__s64 offset;
};

static __always_inline __u64 call_arg(const struct compat_syscall *call, __s8 i)
{
	switch (i) {
	case 0:
		return call->args[0];
	case 1:
		return call->args[1];
	case 2:
		return call->args[2];
	case 3:
		return call->args[3];
	case 4:
		return call->args[4];
	}
	return 0;
}

/*
 * Whoever submits one request and sleeps in that sleeps in the request itself: it is buffered. Of several
 * nothing says which one it is.
 */
static __always_inline void call_read_iocb(struct wait_call *w)
{
	struct aio_iocb iocb;
	__u64 address = 0;

	if (w->call.args[1] != 1 ||
		bpf_probe_read_user(&address, sizeof(address), (void *)w->call.args[2]) < 0 ||
		bpf_probe_read_user(&iocb, sizeof(iocb), (void *)address) < 0)
		return;
	switch (iocb.opcode) {
	case 0: /* IOCB_CMD_PREAD */
	case 7: /* IOCB_CMD_PREADV */
		w->op = EVENT_OP_READ;
		break;
	case 1: /* IOCB_CMD_PWRITE */
	case 8: /* IOCB_CMD_PWRITEV */
		w->op = EVENT_OP_WRITE;
		break;
	default:
		return;
	}
	w->fd = (__s32)iocb.fd;
	w->offset = (__u64)iocb.offset;
	/* Of the vectored ones it is the number of vectors. */
	w->bytes = iocb.opcode < 7 ? iocb.bytes : 0;
	/* Part of what tells one call from the next. */
	w->call.args[3] = (unsigned long)iocb.offset;
}

static __always_inline void call_read_syscall(struct task_struct *task, bool is_current,
	struct wait_call *w)
{
	__u32 index = (__u32)w->nr & (EVENT_SYSCALLS_MAX - 1);

	w->counter = compat_task_io_calls(task);
	/* The very register that was masked must be used, or 5.10 does not see that it was. */
	barrier_var(index);
	if (w->nr < EVENT_SYSCALLS_MAX && !compat_syscall_is_32bit(task))
		__builtin_memcpy(&w->is, (const void *)&cfg_syscalls[index], sizeof(w->is));
	w->op = w->is.op;
	if (w->is.fd >= 0)
		w->fd = (__s32)call_arg(&w->call, w->is.fd);
	if (w->is.offset >= 0)
		w->offset = call_arg(&w->call, w->is.offset);
	if (w->is.bytes >= 0)
		w->bytes = call_arg(&w->call, w->is.bytes);
	/*
	 * Requests and mappings write without a call that is counted. Some file systems dirty metadata in an
	 * fsync itself, so only where nobody pairs it.
	 */
	if (w->op == EVENT_OP_FSYNC && !cfg_sync_seen)
		w->counter += compat_task_written_bytes(task);
	if (is_current && w->nr == cfg_nr_io_submit)
		call_read_iocb(w);
}

static __always_inline void call_read(struct task_struct *task, bool is_current, struct wait_call *w)
{
	w->nr = -1;
	w->fd = -1;
	w->offset = (__u64)-1;
	w->bytes = 0;
	w->counter = 0;
	w->is = (struct event_syscall){ EVENT_OP_OTHER, -1, -1, -1, -1, {} };
	w->is_kernel = BPF_CORE_READ(task, flags) & (PF_KTHREAD | PF_IO_WORKER);
	if (w->is_kernel) {
		w->op = EVENT_OP_KERNEL;
		__builtin_memset(&w->call, 0, sizeof(w->call));
		return;
	}
	compat_syscall_read(task, &w->call);
	w->nr = (__s32)w->call.nr;
	if (w->nr >= 0) {
		call_read_syscall(task, is_current, w);
		return;
	}
	/* An exception: in user mode nothing else makes a thread sleep. */
	w->nr = -1;
	w->op = EVENT_OP_FAULT;
	w->counter = faults_of(task);
	__builtin_memset(&w->call, 0, sizeof(w->call));
}

#endif
