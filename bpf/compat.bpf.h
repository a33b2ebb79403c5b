/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every difference between kernels, each behind a function that asks for the feature. Those of
 * io_uring are in compat_uring.bpf.h.
 * Included by common.bpf.h, compat_uring.bpf.h and registers.bpf.c.
 * Never asks for a kernel version.
 */
#ifndef IOSTALL_COMPAT_BPF_H
#define IOSTALL_COMPAT_BPF_H

#include "kernel.bpf.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "iostall/event.h"

/* Filled by probe_open.h of the user side. The verifier sees the values and drops dead branches. */
const volatile struct event_settings cfg_common = {};

#define COMPAT_SYSCALL_32BIT EVENT_SYSCALL_32BIT

struct compat_syscall {
	long nr;
	bool is_done;	       /* the thread is on its way out of the kernel */
	unsigned long args[8]; /* a system call has six, but this can be indexed with a mask */
};

/*
 * Whether the call is one of the 32-bit table, where the same number means another call. On arm64
 * the registers say in which mode the processor was.
 */
static __always_inline bool compat_syscall_is_32bit(struct task_struct *task, struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return BPF_CORE_READ(task, thread_info.status) & 0x2; /* TS_COMPAT */
#elif defined(__TARGET_ARCH_arm64)
	return BPF_CORE_READ(regs, pstate) & 0x10; /* PSR_MODE32_BIT */
#endif
}

/*
 * The system call that a thread is in, from the registers saved at the top of its kernel stack:
 * bpf_task_pt_regs() does not exist in 5.10 and takes only trusted tasks. User space has measured
 * where that is, see registers.bpf.c.
 */
static __always_inline struct pt_regs *compat_user_registers(struct task_struct *task)
{
	return (struct pt_regs *)((unsigned long)BPF_CORE_READ(task, stack) +
		cfg_common.registers_offset);
}

/*
 * Whether the system call that these registers belong to has been carried out, so that the thread
 * is on its way out of the kernel, where it may still sleep. x86 enters a call with ENOSYS as its
 * result; arm64 keeps the first argument where the result will be.
 */
static __always_inline bool compat_syscall_is_done(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return (int)BPF_CORE_READ(regs, ax) != -ENOSYS;
#elif defined(__TARGET_ARCH_arm64)
	return BPF_CORE_READ(regs, regs[0]) != BPF_CORE_READ(regs, orig_x0);
#endif
}

/* Only the number, which costs much less. */
static __always_inline long compat_syscall_number(struct task_struct *task)
{
	struct pt_regs *regs = compat_user_registers(task);

#if defined(__TARGET_ARCH_x86)
	long nr = (long)BPF_CORE_READ(regs, orig_ax);
#elif defined(__TARGET_ARCH_arm64)
	long nr = BPF_CORE_READ(regs, syscallno);
#endif

	if (nr >= 0 && compat_syscall_is_32bit(task, regs))
		nr += COMPAT_SYSCALL_32BIT;
	return nr;
}

/* Only the first argument, which of reads and writes is the descriptor. */
static __always_inline __u64 compat_syscall_first_arg(struct task_struct *task)
{
	struct pt_regs *regs = compat_user_registers(task);

#if defined(__TARGET_ARCH_x86)
	if (compat_syscall_is_32bit(task, regs))
		return BPF_CORE_READ(regs, bx);
	return BPF_CORE_READ(regs, di);
#elif defined(__TARGET_ARCH_arm64)
	return BPF_CORE_READ(regs, orig_x0);
#endif
}

static __always_inline void compat_syscall_read_from(struct pt_regs *regs, struct task_struct *task,
	struct compat_syscall *call)
{
	call->is_done = compat_syscall_is_done(regs);
#if defined(__TARGET_ARCH_x86)
	call->nr = (long)BPF_CORE_READ(regs, orig_ax);
	call->args[0] = BPF_CORE_READ(regs, di);
	call->args[1] = BPF_CORE_READ(regs, si);
	call->args[2] = BPF_CORE_READ(regs, dx);
	call->args[3] = BPF_CORE_READ(regs, r10);
	call->args[4] = BPF_CORE_READ(regs, r8);
	call->args[5] = BPF_CORE_READ(regs, r9);
	if (call->nr >= 0 && compat_syscall_is_32bit(task, regs)) {
		call->nr = (call->nr & (COMPAT_SYSCALL_32BIT - 1)) + COMPAT_SYSCALL_32BIT;
		call->args[3] = call->args[1];
		call->args[4] = call->args[0];
		call->args[5] = BPF_CORE_READ(regs, bp);
		call->args[1] = BPF_CORE_READ(regs, cx);
		call->args[0] = BPF_CORE_READ(regs, bx);
	}
#elif defined(__TARGET_ARCH_arm64)
	call->nr = BPF_CORE_READ(regs, syscallno);
	/* When the call exits, register 0 holds the return value already. */
	call->args[0] = BPF_CORE_READ(regs, orig_x0);
	call->args[1] = BPF_CORE_READ(regs, regs[1]);
	call->args[2] = BPF_CORE_READ(regs, regs[2]);
	call->args[3] = BPF_CORE_READ(regs, regs[3]);
	call->args[4] = BPF_CORE_READ(regs, regs[4]);
	call->args[5] = BPF_CORE_READ(regs, regs[5]);
	if (call->nr >= 0 && compat_syscall_is_32bit(task, regs)) {
		call->nr += COMPAT_SYSCALL_32BIT;
		/* The processor need not clear the upper halves. */
		for (int i = 0; i < 6; i++)
			call->args[i] = (__u32)call->args[i];
	}
#endif
}

static __always_inline void compat_syscall_read(struct task_struct *task,
	struct compat_syscall *call)
{
	compat_syscall_read_from(compat_user_registers(task), task, call);
}

/*
 * An fentry argument that points to a plain integer. Before bb6728d75611 ("bpf: Allow access to int
 * pointer arguments in tracing programs", 5.18) the verifier lets no program load it, but a helper
 * may read the context. The helper asked for came with the same release.
 */
static __always_inline __u64 compat_int_pointer_arg(unsigned long long *ctx, int i)
{
	unsigned long long *place = ctx;
	__u64 value = 0;

	/*
	 * Volatile and the barrier keep the compiler from merging both ways into one load through a
	 * computed address, which every verifier refuses.
	 */
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_copy_from_user_task))
		return ((volatile unsigned long long *)ctx)[i];
	barrier_var(place);
	bpf_probe_read_kernel(&value, sizeof(value), &place[i]);
	return value;
}

/* The TASK_* state; 2f064a59a11f ("sched: Change task_struct::state", 5.14) renamed the member. */
static __always_inline unsigned int compat_task_state(struct task_struct *task)
{
	struct task_struct___state *old = (void *)task;

	if (bpf_core_field_exists(task->__state))
		return BPF_CORE_READ(task, __state);
	return (unsigned int)BPF_CORE_READ(old, state);
}

/*
 * Whether the freezer keeps the thread, in D state: that of a control group of version 1, or a
 * suspend. f5d39b020809 ("freezer,sched: Rewrite core freezer logic", 6.1) took the flag away and
 * made TASK_FROZEN instead, which is none of the states that are looked for.
 */
static __always_inline bool compat_task_is_frozen(struct task_struct *task)
{
	return cfg_common.frozen_flag && BPF_CORE_READ(task, flags) & cfg_common.frozen_flag;
}

/* Reads and writes the thread has done, where they are counted (CONFIG_TASK_XACCT). */
static __always_inline bool compat_counts_io_calls(void)
{
	return bpf_core_field_exists(struct task_struct, ioac.syscr);
}

static __always_inline __u64 compat_task_io_calls(struct task_struct *task)
{
	if (!bpf_core_field_exists(task->ioac.syscr))
		return 0;
	return BPF_CORE_READ(task, ioac.syscr) + BPF_CORE_READ(task, ioac.syscw);
}

/*
 * Bytes that the thread has dirtied or sent to a disk, where they are counted
 * (CONFIG_TASK_IO_ACCOUNTING).
 */
static __always_inline __u64 compat_task_written_bytes(struct task_struct *task)
{
	if (!bpf_core_field_exists(task->ioac.write_bytes))
		return 0;
	return BPF_CORE_READ(task, ioac.write_bytes);
}

/* Lower values of task->prio are those of real-time and deadline threads. */
#define MAX_RT_PRIO 100

/*
 * When the thread last left the CPU, by the scheduler's clock: when it arrived there, and how long
 * it has run since. se.exec_start alone would be simpler, but its clock leaves out interrupts and
 * stolen time, which differ from CPU to CPU: by 0.1 s on a virtual machine. It is used where
 * CONFIG_SCHED_INFO is missing. For a running thread the result is late by a tick at most. Of a
 * real-time thread the kernel does not keep how long it had run before it arrived (all of it would
 * count), so the result is its arrival: early by its last time on the CPU.
 */
static __always_inline __u64 compat_task_left_cpu(struct task_struct *task)
{
	if (!bpf_core_field_exists(task->sched_info.last_arrival))
		return BPF_CORE_READ(task, se.exec_start);
	if (BPF_CORE_READ(task, prio) < MAX_RT_PRIO)
		return BPF_CORE_READ(task, sched_info.last_arrival);
	return BPF_CORE_READ(task, sched_info.last_arrival) +
		BPF_CORE_READ(task, se.sum_exec_runtime) -
		BPF_CORE_READ(task, se.prev_sum_exec_runtime);
}

/* How long the thread has waited for a CPU in all (CONFIG_SCHED_INFO). */
static __always_inline __u64 compat_task_run_delay(struct task_struct *task)
{
	if (!bpf_core_field_exists(task->sched_info.run_delay))
		return 0;
	return BPF_CORE_READ(task, sched_info.run_delay);
}

/* The CPU that the thread runs on; -1: on none now, or it is not known. */
static __always_inline __s32 compat_task_on_cpu(struct task_struct *task)
{
	struct task_struct___cpu *old = (void *)task;

	/* Kernels for a single CPU have none of this. */
	if (!bpf_core_field_exists(task->on_cpu) || !BPF_CORE_READ(task, on_cpu))
		return -1;
	if (bpf_core_field_exists(task->thread_info.cpu))
		return (__s32)BPF_CORE_READ(task, thread_info.cpu);
	if (bpf_core_field_exists(old->cpu))
		return (__s32)BPF_CORE_READ(old, cpu);
	return -1;
}

/* Whether a read-write semaphore says who holds it; that of a real-time kernel does not. */
static __always_inline bool compat_rwsem_tells_owner(void)
{
	return bpf_core_field_exists(struct rw_semaphore, owner.counter) &&
		bpf_core_field_exists(struct rw_semaphore, count.counter);
}

/* The lock of a process's memory map, NULL: it has none, as kernel threads, or another name. */
static __always_inline struct rw_semaphore *compat_task_map_lock(struct task_struct *task)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);

	if (!mm || !bpf_core_field_exists(mm->mmap_lock))
		return NULL;
	return (void *)mm + bpf_core_field_offset(struct mm_struct, mmap_lock);
}

/*
 * Whether the thread is one of the kernel, which makes no system calls: also the workers of
 * io_uring and vhost, which have the process of a program.
 */
static __always_inline bool compat_task_is_kernel(unsigned int flags)
{
	unsigned int kernel = PF_KTHREAD | PF_IO_WORKER;

	/* Up to 6.3 the bit means something else. */
	if (bpf_core_field_exists(((struct kernel_clone_args *)0)->user_worker))
		kernel |= PF_USER_WORKER;
	return flags & kernel;
}

/*
 * The position of an open file from which a read or write of the thread begins. -1: another thread
 * is using it and will move it, and this one waits for that (fdget_pos()). The lowest three bits of
 * a mutex's owner are flags. The lock of a real-time kernel does not tell.
 */
static __always_inline __u64 compat_file_position(struct file *file, struct task_struct *task)
{
	__u64 owner;

	if (bpf_core_field_exists(file->f_pos_lock.owner.counter)) {
		owner = (__u64)BPF_CORE_READ(file, f_pos_lock.owner.counter) & ~7ull;
		if (owner && owner != (__u64)task)
			return (__u64)-1;
	}
	return (__u64)BPF_CORE_READ(file, f_pos);
}

/* 633488947ef6 ("kernfs: Use RCU to access kernfs_node::parent", 6.15) renamed the member. */
static __always_inline struct kernfs_node *compat_cgroup_parent(struct kernfs_node *node)
{
	struct kernfs_node___rcu *rcu = (void *)node;

	if (bpf_core_field_exists(rcu->__parent))
		return BPF_CORE_READ(rcu, __parent);
	return BPF_CORE_READ(node, parent);
}

/* Whether the system call is a read or write of its first argument, a descriptor. */
static __always_inline bool compat_syscall_is_transfer(long nr)
{
	switch (nr) {
#if defined(__TARGET_ARCH_x86)
	case 0:	  /* read */
	case 1:	  /* write */
	case 17:  /* pread64 */
	case 18:  /* pwrite64 */
	case 19:  /* readv */
	case 20:  /* writev */
	case 295: /* preadv */
	case 296: /* pwritev */
	case 327: /* preadv2 */
	case 328: /* pwritev2 */
	/* The same in the 32-bit table. */
	case COMPAT_SYSCALL_32BIT + 3:
	case COMPAT_SYSCALL_32BIT + 4:
	case COMPAT_SYSCALL_32BIT + 145:
	case COMPAT_SYSCALL_32BIT + 146:
	case COMPAT_SYSCALL_32BIT + 180:
	case COMPAT_SYSCALL_32BIT + 181:
	case COMPAT_SYSCALL_32BIT + 333:
	case COMPAT_SYSCALL_32BIT + 334:
	case COMPAT_SYSCALL_32BIT + 378:
	case COMPAT_SYSCALL_32BIT + 379:
#elif defined(__TARGET_ARCH_arm64)
	case 63:
	case 64:
	case 65:
	case 66:
	case 67:
	case 68:
	case 69:
	case 70:
	case 286:
	case 287:
	/* The same in the 32-bit table. */
	case COMPAT_SYSCALL_32BIT + 3:
	case COMPAT_SYSCALL_32BIT + 4:
	case COMPAT_SYSCALL_32BIT + 145:
	case COMPAT_SYSCALL_32BIT + 146:
	case COMPAT_SYSCALL_32BIT + 180:
	case COMPAT_SYSCALL_32BIT + 181:
	case COMPAT_SYSCALL_32BIT + 361:
	case COMPAT_SYSCALL_32BIT + 362:
	case COMPAT_SYSCALL_32BIT + 392:
	case COMPAT_SYSCALL_32BIT + 393:
#endif
		return true;
	}
	return false;
}

/* Whether the system call submits I/O on descriptors that its arguments do not name. */
static __always_inline bool compat_syscall_is_submit(long nr)
{
#if defined(__TARGET_ARCH_x86)
	/* io_uring_enter and io_submit, then the same in the 32-bit table */
	return nr == 426 || nr == 209 || nr == COMPAT_SYSCALL_32BIT + 426 ||
		nr == COMPAT_SYSCALL_32BIT + 248;
#elif defined(__TARGET_ARCH_arm64)
	return nr == 426 || nr == 2 || nr == COMPAT_SYSCALL_32BIT + 426 ||
		nr == COMPAT_SYSCALL_32BIT + 246;
#endif
}

/*
 * The second argument of a raw tracepoint. A compiler merges it in C with the first one into one
 * load through a computed address, which 5.10 refuses.
 */
static __always_inline __u64 compat_second_arg(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 value;

	asm volatile("%0 = *(u64 *)(%1 + 8)" : "=r"(value) : "r"(ctx));
	return value;
}

/* The request of block_rq_insert or block_rq_issue, which is the last of one or two arguments. */
static __always_inline struct request *compat_block_request(struct bpf_raw_tracepoint_args *ctx,
	bool has_one_argument)
{
	return (struct request *)(has_one_argument ? ctx->args[0] : compat_second_arg(ctx));
}

/* The bio of block_bio_queue, which is the last of one or two arguments, too. */
static __always_inline struct bio *compat_queued_bio(struct bpf_raw_tracepoint_args *ctx)
{
	return (struct bio *)(bpf_core_type_exists(btf_trace_block_bio_queue___bio)
			? ctx->args[0]
			: compat_second_arg(ctx));
}

/*
 * The request whose link in the list of those that wait for a flush this is. 81ada09cc25e
 * ("blk-flush: reuse rq queuelist in flush state machine") took away the link of its own.
 */
static __always_inline struct request *compat_request_of_flush(struct list_head *link)
{
	if (bpf_core_field_exists(struct request___flush, flush.list))
		return (void *)link - bpf_core_field_offset(struct request___flush, flush.list);
	return (void *)link - bpf_core_field_offset(struct request, queuelist);
}

/*
 * f3fa33acca9f ("block: remove the ->rq_disk field in struct request", 5.17); the queue knows its
 * disk since d152c682f03c ("block: add an explicit ->disk backpointer to the request_queue", 5.15).
 */
static __always_inline struct gendisk *compat_request_disk(struct request *rq)
{
	struct request___disk *old = (void *)rq;

	if (bpf_core_field_exists(old->rq_disk))
		return BPF_CORE_READ(old, rq_disk);
	return BPF_CORE_READ(rq, q, disk);
}

/* 309dca309fc3 ("block: store a block_device pointer in struct bio"), 5.12. */
struct bio___disk {
	struct gendisk *bi_disk;
} __attribute__((preserve_access_index));

static __always_inline struct gendisk *compat_bio_disk(struct bio *bio)
{
	struct bio___disk *old = (void *)bio;

	if (bpf_core_field_exists(old->bi_disk))
		return BPF_CORE_READ(old, bi_disk);
	return BPF_CORE_READ(bio, bi_bdev, bd_disk);
}

/*
 * Where the head of a page is: a tail page has bit 0 set in this word, and no other page has. The
 * other bits are the address of the head page or, in compound_info since 7.1, a mask that turns the
 * tail's address into the head's. A mask is at least minus 1 GiB, where no page structure lies.
 */
static __always_inline unsigned long compat_page_head(struct page *page)
{
	struct page___info *info = (void *)page;

	if (bpf_core_field_exists(info->compound_info))
		return BPF_CORE_READ(info, compound_info);
	return BPF_CORE_READ(page, compound_head);
}

/* The mapping of the folio that a page belongs to. */
static __always_inline struct address_space *compat_page_mapping(struct page *page)
{
	unsigned long head = compat_page_head(page);

	if (head & 1)
		page = (struct page *)(head >= -(1UL << 30) ? (unsigned long)page & head
							    : head - 1);
	return BPF_CORE_READ(page, mapping);
}

/*
 * A folio has 1 << order pages. Its address is that of its first page; so is that of a page before
 * 5.16, which has no such type. The order is in the second page, if there is one. "mm: add the
 * first tail page to struct folio" (6.1) made that a part of the type, and ebc1baf5c9b4 ("mm: free
 * up a word in the first tail page", 6.6) moved the order into its flags.
 */
static __always_inline unsigned int compat_folio_order(struct folio *folio)
{
	struct page *second = (void *)folio + bpf_core_type_size(struct page);
	struct folio___order *old = (void *)folio;
	struct page___order *oldest = (void *)second;

	if (!(compat_page_head(second) & 1))
		return 0;
	if (bpf_core_field_exists(oldest->compound_order))
		return BPF_CORE_READ(oldest, compound_order);
	if (bpf_core_field_exists(old->_folio_order))
		return BPF_CORE_READ(old, _folio_order);
	return BPF_CORE_READ(folio, _flags_1) & 0xff;
}

/* The union that holds the link of an inode's names lost its name, d_u, between 6.18 and 7.2. */
static __always_inline struct dentry *compat_dentry_of_alias(struct hlist_node *alias)
{
	if (bpf_core_field_exists(((struct dentry *)0)->d_u))
		return (void *)alias - bpf_core_field_offset(struct dentry, d_u.d_alias);
	return (void *)alias - bpf_core_field_offset(struct dentry___anonymous, d_alias);
}

/* F_RDLCK, F_WRLCK or F_UNLCK. */
static __always_inline unsigned char compat_file_lock_type(struct file_lock *lock)
{
	return bpf_core_field_exists(lock->fl_type) ? BPF_CORE_READ(lock, fl_type)
						    : BPF_CORE_READ(lock, c.flc_type);
}

/*
 * Of some kernels since 6.15 the lock that a sleeping thread waits for, include/linux/hung_task.h:
 * its address with its kind in the lowest bits. 0: it waits for none, or the kernel does not keep
 * it; nor is it known who holds a semaphore.
 */
#define BLOCKER_TYPE_MASK 0x3ul
#define BLOCKER_TYPE_MUTEX 0x0ul
#define BLOCKER_TYPE_SEM 0x1ul

static __always_inline unsigned long compat_task_blocker(struct task_struct *task)
{
	unsigned long blocker = 0;

	if (bpf_core_field_exists(task->blocker))
		blocker = BPF_CORE_READ(task, blocker);
	return (blocker & BLOCKER_TYPE_MASK) == BLOCKER_TYPE_SEM ? 0 : blocker;
}

#endif
