/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tells what a thread is doing in the kernel: a system call with its arguments, a page fault, or
 * the work of a kernel thread.
 * Included by wait.bpf.c.
 * Never assumes that another thread than the current one is still doing it afterwards.
 */
#ifndef IOSTALL_CALLS_BPF_H
#define IOSTALL_CALLS_BPF_H

#include "sleeps.bpf.h"

const volatile struct event_syscall cfg_syscalls[EVENT_SYSCALLS_MAX] = {};
/* Those of 32-bit programs. */
const volatile struct event_syscall cfg_syscalls_32[EVENT_SYSCALLS_MAX] = {};
const volatile __s32 cfg_nr_io_submit = -1;
/*
 * Whether an interruptible sleep in the call may be one in an operation on files. A byte each, the
 * 32-bit table behind the other: reading a whole entry of those tables cost 30 instructions at each
 * context switch.
 */
const volatile __u8 cfg_sleeps_on_file[EVENT_SYSCALLS_MAX * 2] = {};

/* What a thread is doing, and what tells it from the thread's next call of the same kind. */
struct wait_call {
	struct compat_syscall call;
	__s32 nr; /* -1: in no system call */
	__u32 op;
	bool is_kernel;
	struct event_syscall is;
	__s32 fd;     /* -1: none */
	__u64 offset; /* -1: not known */
	__u64 bytes;
	__u64 counter;
};

/*
 * In `counter` of a sleep on the way out of the kernel: the call has been counted, so without it
 * the next call with the same arguments would look like this one.
 */
#define CALL_IS_DONE (1ull << 63)

/*
 * Calls are read into a map and not onto the stack: there an argument can be chosen by its number.
 * On the stack that takes a branch for each argument, and the verifier of 5.10 gives up over all
 * the ways through them.
 */
enum call_slot {
	CALL_SWITCH,
	CALL_TASK_SCAN,
	CALL_RESOLVE,
	CALL_COUNT,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, CALL_COUNT);
	__type(key, __u32);
	__type(value, struct wait_call);
} calls SEC(".maps");

static __always_inline __u64 call_arg(const struct compat_syscall *call, __s8 i)
{
	__u64 index = (__u64)i & 7;

	barrier_var(index);
	return call->args[index];
}

/*
 * A thread that sleeps while it submits a single request sleeps in that request, which is buffered
 * I/O then. With several requests nothing tells which of them it is.
 */
static __always_inline void call_read_iocb(struct wait_call *w)
{
	struct iocb iocb;
	__u64 address = 0;

	if (w->call.args[1] != 1 ||
		bpf_probe_read_user(&address, sizeof(address), (void *)w->call.args[2]) < 0 ||
		bpf_probe_read_user(&iocb, sizeof(iocb), (void *)address) < 0)
		return;
	switch (iocb.aio_lio_opcode) {
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
	w->fd = (__s32)iocb.aio_fildes;
	w->offset = (__u64)iocb.aio_offset;
	/* PREADV and PWRITEV have the number of vectors there. */
	w->bytes = iocb.aio_lio_opcode < 7 ? iocb.aio_nbytes : 0;
	/* is_same_call() compares it, so that the next submission counts as another call. */
	w->call.args[3] = (unsigned long)iocb.aio_offset;
}

/* What the tables know of a system call; of one that is not in them, nothing. */
static __always_inline void call_look_up(long nr, struct event_syscall *ret_is)
{
	__u64 index = (__u64)nr & (COMPAT_SYSCALL_32BIT - 1);

	*ret_is = EVENT_SYSCALL_OTHER;
	if (nr < 0 || index >= EVENT_SYSCALLS_MAX || nr >= COMPAT_SYSCALL_32BIT * 2)
		return;
	/*
	 * Without the barrier the compiler indexes by another register than the one it masked, and
	 * the verifier of 5.10 refuses that.
	 */
	index &= EVENT_SYSCALLS_MAX - 1;
	barrier_var(index);
	if (nr >= COMPAT_SYSCALL_32BIT)
		__builtin_memcpy(ret_is, (const void *)&cfg_syscalls_32[index], sizeof(*ret_is));
	else
		__builtin_memcpy(ret_is, (const void *)&cfg_syscalls[index], sizeof(*ret_is));
}

/* For records, which know only the numbers of the machine's own table. */
static __always_inline __s16 call_own_nr(const struct wait_call *w)
{
	return w->nr < COMPAT_SYSCALL_32BIT ? (__s16)w->nr : w->is.own_nr;
}

static __always_inline __u64 call_number_arg(const struct wait_call *w, __s8 i,
	enum event_wide wide)
{
	if (!(w->is.wide & wide))
		return call_arg(&w->call, i);
	return (call_arg(&w->call, i) & 0xffffffff) | call_arg(&w->call, (__s8)(i + 1)) << 32;
}

static __always_inline bool file_is_storage(struct file *file)
{
	return file && file_mode_is_storage(BPF_CORE_READ(file, f_inode, i_mode));
}

/* The descriptor of the call; of a copy, the side that is on storage. */
static __always_inline __s32 call_fd(struct task_struct *task, const struct wait_call *w)
{
	__u32 fd = (__u32)call_arg(&w->call, w->is.fd);

	if (w->is.other_fd >= 0 && !file_is_storage(file_of_fd(task, fd)))
		fd = (__u32)call_arg(&w->call, w->is.other_fd);
	return (__s32)fd;
}

static __always_inline void call_read_syscall(struct task_struct *task, bool is_current,
	struct wait_call *w)
{
	struct file *file;

	w->counter = compat_task_io_calls(task);
	call_look_up(w->call.nr, &w->is);
	w->op = w->is.op;
	if (w->is.fd >= 0)
		w->fd = call_fd(task, w);
	if (w->is.offset >= 0)
		w->offset = call_number_arg(w, w->is.offset, EVENT_WIDE_OFFSET);
	if (w->is.bytes >= 0)
		w->bytes = call_number_arg(w, w->is.bytes, EVENT_WIDE_BYTES);
	/*
	 * Requests and mappings write without a call that is counted. Some file systems dirty
	 * metadata in an fsync itself, so the bytes count only where no probe reports it.
	 */
	if (w->op == EVENT_OP_FSYNC && !w->is.reported)
		w->counter += compat_task_written_bytes(task);
	/* Each getdents moves the position of its directory when it is done. */
	if (w->op == EVENT_OP_LOOKUP && w->fd >= 0) {
		file = file_of_fd(task, (__u32)w->fd);
		w->counter += (__u64)BPF_CORE_READ(file, f_pos);
	}
	if (w->call.is_done)
		w->counter |= CALL_IS_DONE;
	if (is_current && w->nr == cfg_nr_io_submit)
		call_read_iocb(w);
}

/*
 * Into the slot of `calls`; the thread of CALL_SWITCH is the current one. Global, as
 * names_collect() is: the ways through it do not multiply those of its callers.
 */
__noinline int call_read(__u64 address, __u32 slot)
{
	struct task_struct *task = (struct task_struct *)address;
	struct wait_call *w = bpf_map_lookup_elem(&calls, &slot);
	unsigned int flags;

	if (!w)
		return 0;
	w->nr = -1;
	w->fd = -1;
	w->offset = (__u64)-1;
	w->bytes = 0;
	w->counter = 0;
	w->is = EVENT_SYSCALL_OTHER;
	flags = BPF_CORE_READ(task, flags);
	w->is_kernel = compat_task_is_kernel(flags);
	/* A thread that ends has left its call, which its registers may still have. */
	if (w->is_kernel || (flags & PF_EXITING)) {
		w->op = w->is_kernel ? EVENT_OP_KERNEL : EVENT_OP_OTHER;
		__builtin_memset(&w->call, 0, sizeof(w->call));
		return 0;
	}
	compat_syscall_read(task, &w->call);
	w->nr = (__s32)w->call.nr;
	if (w->nr >= 0) {
		call_read_syscall(task, slot == CALL_SWITCH, w);
		return 0;
	}
	/* No system call: from user mode only an exception, such as a page fault, leads here. */
	w->nr = -1;
	w->op = EVENT_OP_FAULT;
	w->counter = faults_of(task);
	__builtin_memset(&w->call, 0, sizeof(w->call));
	return 0;
}

/*
 * Whether the thread waits for the child of its vfork() to execute a program or to end, which is in
 * D state and has nothing to do with storage. What the child ends is on the stack of its parent. It
 * is the youngest child of that; CLONE_PARENT would make it a sister, and is not in use for that.
 */
static __always_inline bool call_is_wait_for_child(struct task_struct *task)
{
	struct list_head *none = (void *)task + bpf_core_field_offset(task->children);
	struct list_head *youngest = BPF_CORE_READ(task, children.prev);
	struct task_struct *child = (void *)youngest - bpf_core_field_offset(task->sibling);

	return youngest != none &&
		(__u64)BPF_CORE_READ(child, vfork_done) - (__u64)BPF_CORE_READ(task, stack) <
		cfg_common.registers_offset;
}

static __always_inline bool call_number_may_be_on_file(long nr)
{
	__u64 index;

	/* -1: a page fault */
	if (nr & ~(COMPAT_SYSCALL_32BIT | (EVENT_SYSCALLS_MAX - 1)))
		return nr == -1;
	index = event_syscall_index((__u64)nr);
	barrier_var(index);
	return cfg_sleeps_on_file[index & (EVENT_SYSCALLS_MAX * 2 - 1)];
}

/*
 * Whether the current thread, which falls asleep interruptibly, may be in an operation on files:
 * the number of its system call, and nothing else is read. All but a few per cent of the sleeps of
 * a host end here.
 */
static __always_inline bool call_may_be_on_file(struct task_struct *task)
{
	long nr;

#if defined(__TARGET_ARCH_x86)
	struct task_struct *current;
	struct pt_regs *regs;

	/* 5.15: a load through a pointer that the verifier knows costs one instruction. */
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs)) {
		current = bpf_get_current_task_btf();
		if (BPF_CORE_READ_BITFIELD(current, in_iowait))
			return true;
		if (compat_task_is_kernel(current->flags))
			return false;
		regs = (struct pt_regs *)bpf_task_pt_regs(current);
		nr = (long)regs->orig_ax;
		if (current->thread_info.status & 0x2)
			nr += COMPAT_SYSCALL_32BIT;
	} else
#endif
	{
		if (BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait))
			return true;
		nr = compat_syscall_number(task);
	}
	return call_number_may_be_on_file(nr);
}

#endif
