/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who holds a read-write semaphore or a mutex of the kernel that a thread waits for.
 * Included by wait.bpf.c. User space runs the programs through BPF_PROG_TEST_RUN, a few times a
 * second while threads wait; none is ever attached.
 * Never takes a lock: what changes while it is read names nobody.
 */
#ifndef IOSTALL_LOCKS_BPF_H
#define IOSTALL_LOCKS_BPF_H

#include "contention.bpf.h"
#include "tasks.bpf.h"

/* Bits of rw_semaphore.count and owner, kernel/locking/rwsem.c; the same from 5.3 on. */
#define RWSEM_WRITER_LOCKED 0x1ull
#define RWSEM_FLAG_WAITERS 0x2ull
#define RWSEM_READER_SHIFT 8
#define RWSEM_FLAG_READFAIL (1ull << 63)
#define RWSEM_READER_OWNED 0x1ull
#define RWSEM_OWNER_FLAGS_MASK 0x7ull
/* Bits of mutex.owner, kernel/locking/mutex.c. */
#define MUTEX_FLAG_WAITERS 0x1ull
#define MUTEX_FLAGS_MASK 0x7ull

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct event_lock);
} locks SEC(".maps");

/* The lock that the thread of this sleep waits for; NULL: it is not known where that is. */
static __always_inline struct rw_semaphore *lock_of_sleep(struct task_struct *task,
	const struct event_sleep *sleep, __u32 kind)
{
	struct inode *inode = (struct inode *)sleep->inode;

	if (kind == EVENT_LOCK_MEMORY_MAP)
		return compat_task_map_lock(task);
	/* The file may have been closed and its inode reused. */
	if (!inode || !sleep->ino || BPF_CORE_READ(inode, i_ino) != sleep->ino)
		return NULL;
	return (void *)inode + bpf_core_field_offset(struct inode, i_rwsem);
}

static __always_inline __u32 readers_of(__u64 count)
{
	if (count & RWSEM_WRITER_LOCKED)
		return 0;
	return (__u32)((count & ~RWSEM_FLAG_READFAIL) >> RWSEM_READER_SHIFT);
}

/*
 * Whether the word is that of a thread which lives: a writer clears it when it lets go, but a
 * reader leaves it behind.
 */
static __always_inline bool lock_describe_owner(__u64 owner, struct event_lock *lock)
{
	struct task_struct *task = (struct task_struct *)(owner & ~RWSEM_OWNER_FLAGS_MASK);
	__u32 tid = (__u32)BPF_CORE_READ(task, pid);

	lock->task = 0;
	lock->pid = lock->tid = 0;
	lock->comm[0] = lock->state = 0;
	lock->syscall = lock->cpu = -1;
	if (!task || !tid || task_of_tid(tid) != task)
		return false;
	lock->task = (__u64)task;
	lock->tid = tid;
	lock->pid = (__u32)BPF_CORE_READ(task, tgid);
	lock->state = task_state_letter(task);
	lock->cpu = compat_task_on_cpu(task);
	BPF_CORE_READ_INTO(&lock->comm, task, comm);
	if (!compat_task_is_kernel(BPF_CORE_READ(task, flags)))
		lock->syscall = (__s32)compat_syscall_number(task);
	return true;
}

static __always_inline bool lock_describe_rwsem(struct rw_semaphore *sem, struct event_lock *lock)
{
	__u64 count = (__u64)BPF_CORE_READ(sem, count.counter);
	__u64 owner = (__u64)BPF_CORE_READ(sem, owner.counter);

	/* Without this bit nobody waits: it is another lock that the thread waits for. */
	if (!(count & RWSEM_FLAG_WAITERS))
		return false;
	lock->readers = readers_of(count);
	if (!lock->readers && (!(count & RWSEM_WRITER_LOCKED) || (owner & RWSEM_READER_OWNED)))
		return false;
	if (!lock_describe_owner(owner, lock) && !lock->readers)
		return false;
	/* Both words are written one after the other, and it may have been let go meanwhile. */
	barrier();
	return (__u64)BPF_CORE_READ(sem, owner.counter) == owner &&
		readers_of((__u64)BPF_CORE_READ(sem, count.counter)) == lock->readers;
}

static __always_inline bool lock_describe_mutex(struct mutex *mutex, struct event_lock *lock)
{
	__u64 owner;

	/* On a real-time kernel it is another structure. */
	if (!bpf_core_field_exists(mutex->owner.counter))
		return false;
	owner = (__u64)BPF_CORE_READ(mutex, owner.counter);
	lock->readers = 0;
	if (!(owner & MUTEX_FLAG_WAITERS) || !lock_describe_owner(owner, lock))
		return false;
	barrier();
	owner ^= (__u64)BPF_CORE_READ(mutex, owner.counter);
	return !(owner & ~MUTEX_FLAGS_MASK);
}

static __always_inline bool lock_describe_contended(const struct event_contended *known,
	struct event_lock *lock)
{
	lock->address = known->address;
	lock->is_other = true;
	lock->is_mutex = known->is_mutex;
	return known->is_mutex ? lock_describe_mutex((struct mutex *)known->address, lock)
			       : lock_describe_rwsem((struct rw_semaphore *)known->address, lock);
}

/*
 * Args are the id of a thread, the start of the operation that it sleeps in, and the kind of the
 * lock. Returns 1 and fills `locks` when somebody holds that lock and others wait for it; 2 when
 * that is not known, but which lock it is.
 */
SEC("raw_tp")
int wait_lock(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 tid = (__u32)ctx->args[0], kind = (__u32)ctx->args[2], zero = 0;
	struct event_sleep *sleep = bpf_map_lookup_elem(&sleeps, &tid);
	struct event_lock *lock = bpf_map_lookup_elem(&locks, &zero);
	struct event_contended contended_lock = {};
	struct task_struct *task;
	struct rw_semaphore *sem;

	if (!sleep || !lock || !compat_rwsem_tells_owner() || sleep_start(sleep) != ctx->args[1])
		return 0;
	task = (struct task_struct *)sleep->op.task;
	if ((__u32)BPF_CORE_READ(task, pid) != tid || !task_is_asleep(task))
		return 0;
	lock->stack[0] = 0;
	sem = kind == EVENT_LOCK_CONTENDED ? NULL : lock_of_sleep(task, sleep, kind);
	if (contended_lock_of(task, tid, &contended_lock) && contended_lock.address != (__u64)sem)
		return lock_describe_contended(&contended_lock, lock) && task_is_asleep(task) ? 1
											      : 2;
	if (!sem)
		return 0;
	lock->address = (__u64)sem;
	lock->is_other = lock->is_mutex = false;
	return lock_describe_rwsem(sem, lock) && task_is_asleep(task);
}

/*
 * Run on the CPU on which the holder runs, it interrupts the holder there and takes its stack, that
 * of this interruption included. args[0] is the address of its task. Returns 1 when it has a stack.
 */
SEC("raw_tp")
int wait_lock_stack(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 zero = 0;
	struct event_lock *lock = bpf_map_lookup_elem(&locks, &zero);
	long n;

	if (!lock || bpf_get_current_task() != ctx->args[0] || lock->task != ctx->args[0])
		return 0;
	n = bpf_get_stack(ctx, lock->stack, sizeof(lock->stack), 0);
	return n > 0;
}

#endif
