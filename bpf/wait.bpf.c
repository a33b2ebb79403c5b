/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probe `wait`: every sleep of a thread inside an operation, seen at the context switch.
 *
 * A thread that leaves the CPU in D state, in iowait, or in a system call on a file is noted with
 * that call, and its sleeps in the same call are added up. The call is over when the thread is next
 * seen elsewhere: at its next context switch, of which its end is the last, or by wait_resolve(),
 * which user space runs. wait_task_scan() notes the threads that were asleep before the probe was
 * attached. The program runs with the run queue locked and preemption off: it is never skipped, and
 * it must be short. Most context switches have nothing to do with storage. Those end after a look
 * at `sleep_marks` and at the number of the system call.
 */
enum scratch_slot {
	SCRATCH_SWITCH,
	SCRATCH_EXEC,
	SCRATCH_RESOLVE,
	SCRATCH_COUNT,
};

#include "calls.bpf.h"
#include "pairs.bpf.h"
#include "report.bpf.h"
#include "locks.bpf.h"
#include "refusals.bpf.h"
#include "sockets.bpf.h"
#include "tasks.bpf.h"

/* Whether sched_switch passes the state, which kernel_types_count_args() of user space tells. */
const volatile bool cfg_switch_tells_state = false;
/* Whether probe `vfs` notes reads and writes as they begin. */
const volatile bool cfg_paired = false;
#define TASK_DEAD 0x80

/*
 * A stack each millisecond for each CPU and kind of operation, since unwinding costs some
 * microseconds; a second's in advance, for when a disk freezes and many threads fall asleep at
 * once. A kind with more sleeps has short ones and no stalls. They take none from the others: one
 * budget for all was used up by the reads of a database while its fsyncs waited for the journal.
 */
#define STACK_PERIOD_NS 1000000ull
#define STACKS_AHEAD_NS 1000000000ull

struct stack_budget {
	__u64 paid_ns; /* until when what was taken has used the budget up */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, EVENT_OP_COUNT);
	__type(key, __u32);
	__type(value, struct stack_budget);
} stack_budgets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct full_stack);
} stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct event_server_waits);
} server_waits SEC(".maps");

/*
 * From the program itself on: what calls it, the scheduler, what waits. Ceph has most, 8 in all.
 */
#define SERVER_WAIT_FRAMES 12

/*
 * New entries are copied from here into the map, since the BPF stack of 512 bytes cannot hold one.
 * The entry BLANK_SWITCH is never written and stays empty.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct event_sleep);
} blanks SEC(".maps");

enum blank_slot {
	BLANK_SWITCH,
	BLANK_TASK_SCAN,
};

/* The map was found full this long ago, in jiffies: it is not tried again at each sleep. */
#define FULL_PAUSE_JIFFIES 25
__u64 sleeps_full_jiffies = 0;

static __always_inline void sleep_note_path(const struct wait_call *w, struct event_sleep *sleep)
{
	if (w->is.path >= 0)
		bpf_probe_read_user_str(sleep->path, sizeof(sleep->path),
			(void *)call_arg(&w->call, w->is.path));
}

/*
 * Compares the paths themselves, because a program that goes through a directory tree passes each
 * path in the same buffer. The task scan could not read that of a thread that it has noted.
 */
static __always_inline bool is_same_path(const struct event_sleep *sleep, const struct wait_call *w)
{
	char path[EVENT_SLEEP_PATH_SIZE] = {};

	if ((sleep->flags & EVENT_BEFORE_ARM) && !sleep->path[0])
		return true;
	bpf_probe_read_user_str(path, sizeof(path), (void *)call_arg(&w->call, w->is.path));
	for (unsigned int i = 0; i < EVENT_SLEEP_PATH_SIZE / sizeof(__u64); i++)
		if (((__u64 *)path)[i] != ((const __u64 *)sleep->path)[i])
			return false;
	return true;
}

/*
 * Whether the thread is still in the call that is noted. The kernel counts reads, writes and faults
 * when they are done, so a second call with the same arguments has another counter. Two fsyncs of
 * one file with nothing written in between cannot be told apart. Each sleep of a kernel thread is
 * an operation of its own.
 */
static __always_inline bool is_same_call(const struct event_sleep *sleep, const struct wait_call *w,
	bool is_preempted)
{
	if (sleep->syscall != w->nr || sleep->op.op != w->op || w->op == EVENT_OP_SUBMIT ||
		w->op == EVENT_OP_KERNEL)
		return false;
	if (sleep->args[0] != w->call.args[0] || sleep->args[1] != w->call.args[1] ||
		sleep->args[2] != w->call.args[2] || sleep->args[3] != w->call.args[3])
		return false;
	/*
	 * A preempted thread may have been counted already without having returned, and a probe
	 * at the return is still to see it.
	 */
	if (is_preempted)
		return true;
	return sleep->counter == w->counter && (w->is.path < 0 || is_same_path(sleep, w));
}

/* Whether a thread that leaves the CPU in this state sleeps in an operation on storage. */
static __always_inline bool is_wanted_sleep(struct task_struct *task, unsigned int state,
	bool iowait, const struct wait_call *w)
{
	if (w->op == EVENT_OP_OTHER && call_is_wait_for_child(task))
		return false;
	/*
	 * In io_uring_enter() a thread sleeps so until its ring has something: a request on a file
	 * has an end that `uring` sees, and one of a socket, a pipe or a timer may never have one.
	 * The kernel counts each as waiting for I/O; 8a796565cec3 ("io_uring: Use io_schedule* in
	 * cqring wait", 6.5, and in stable kernels).
	 */
	if (w->op == EVENT_OP_SUBMIT && !(state & TASK_UNINTERRUPTIBLE))
		return false;
	if (iowait || ((state & TASK_UNINTERRUPTIBLE) && !(state & TASK_NOLOAD)))
		return true;
	/*
	 * FUSE and some network file systems sleep interruptibly. So does a copy that waits for its
	 * other side, a socket or a pipe, which is why copies are left out. An ioctl may wait for
	 * anything. Of calls with a path, see may_sleep_for_server(). A call that is done waits for
	 * nothing: its thread is stopped on its way out, or its control group is frozen.
	 */
	return (state & TASK_INTERRUPTIBLE) && w->fd >= 0 && !w->call.is_done &&
		w->op != EVENT_OP_COPY && w->op != EVENT_OP_OTHER &&
		file_is_storage(file_of_fd(task, (__u32)w->fd));
}

/*
 * Whether a thread that sleeps in no way that is_wanted_sleep() knows may wait for a file server:
 * in a call with a path or on a directory, or a page fault. It may as well wait for a FIFO; the
 * stack tells. A read of something else than storage, as of a socket, never does.
 */
static __always_inline bool may_sleep_for_server(unsigned int state, const struct wait_call *w)
{
	return (state & TASK_INTERRUPTIBLE) && !w->is_kernel && w->op != EVENT_OP_READ &&
		w->op != EVENT_OP_WRITE && call_number_may_be_on_file(w->nr);
}

static __always_inline bool stack_is_affordable(__u32 op, __u64 now)
{
	struct stack_budget *budget = bpf_map_lookup_elem(&stack_budgets, &op);

	if (!budget)
		return false;
	if (budget->paid_ns < now)
		budget->paid_ns = now;
	if (budget->paid_ns - now >= STACKS_AHEAD_NS)
		return false;
	budget->paid_ns += STACK_PERIOD_NS;
	return true;
}

/*
 * Whether the current thread sleeps in one of the functions of `server_waits`; -1: the stack cannot
 * be taken now. Without branches: on 5.10 the verifier goes through all the ways that those would
 * make. Global, as finish_unseen() is: the verifier took 4 MB more for the program at the context
 * switch than for any other.
 */
__noinline int stack_is_for_server(struct bpf_raw_tracepoint_args *ctx, __u32 op, __u64 now)
{
	__u32 zero = 0;
	struct event_server_waits *waits = bpf_map_lookup_elem(&server_waits, &zero);
	struct full_stack *stack = bpf_map_lookup_elem(&stacks, &zero);
	__u64 found = 0;

	if (!waits || !stack || !waits->count)
		return 0;
	if (!stack_is_affordable(op, now))
		return -1;
	__builtin_memset(stack->frames, 0, SERVER_WAIT_FRAMES * sizeof(stack->frames[0]));
	bpf_get_stack(ctx, stack->frames, SERVER_WAIT_FRAMES * sizeof(stack->frames[0]), 0);
	for (unsigned int i = 0; i < SERVER_WAIT_FRAMES; i++) {
		for (unsigned int j = 0; j < EVENT_SERVER_WAITS_MAX; j++) {
			__u64 distance = stack->frames[i] - waits->ranges[j].begin;

			/* Both are far below 2^63 where the frame is in the function. */
			found |= ~distance & (distance - waits->ranges[j].size);
		}
	}
	return (int)(found >> 63);
}

/* A fault or msync() has no descriptor, but `fault` or `sync` has noted the file, if attached. */
static __always_inline void sleep_note_mapped_file(struct task_struct *task,
	const struct wait_call *w, struct event_sleep *sleep)
{
	__u32 tid = sleep->op.tid;
	struct event_fault *fault = bpf_map_lookup_elem(&faults, &tid);
	struct inode *inode;

	if (!fault || fault->task != (__u64)task ||
		fault->faults != (w->op == EVENT_OP_FAULT ? faults_of(task) : msync_stamp(task)))
		return;
	inode = (struct inode *)fault->inode;
	sleep->op.file = fault->file;
	sleep->inode = fault->inode;
	sleep->ino = BPF_CORE_READ(inode, i_ino);
	sleep->op.pos = fault->pos;
}

/* Where in the file a read or write begins that was given no offset. */
static __always_inline void sleep_note_position(struct task_struct *task, const struct wait_call *w,
	struct event_sleep *sleep)
{
	struct file *file = (struct file *)sleep->op.file;

	if (w->offset != (__u64)-1 || !file || (w->op != EVENT_OP_READ && w->op != EVENT_OP_WRITE))
		return;
	/* The offset of an appending write is known only when it has been done. */
	if (w->op == EVENT_OP_WRITE && (BPF_CORE_READ(file, f_flags) & O_APPEND))
		return;
	sleep->op.pos = compat_file_position(file, task);
}

static __always_inline void sleep_note_file(struct task_struct *task, const struct wait_call *w,
	struct event_sleep *sleep)
{
	struct file *file = sleep->op.fd >= 0 ? file_of_fd(task, (__u32)sleep->op.fd) : NULL;
	struct inode *inode;

	sleep->op.file = (__u64)file;
	sleep->inode = (__u64)BPF_CORE_READ(file, f_inode);
	sleep->op.pos = w->offset;
	sleep->op.bytes = w->bytes;
	/* The offset of an appending write is known only when it has been done. */
	if (w->op == EVENT_OP_WRITE && (BPF_CORE_READ(file, f_flags) & O_APPEND))
		sleep->op.pos = (__u64)-1;
	sleep_note_position(task, w, sleep);
	inode = (struct inode *)sleep->inode;
	sleep->ino = BPF_CORE_READ(inode, i_ino);
	if (w->op == EVENT_OP_FAULT || (w->op == EVENT_OP_FSYNC && w->fd < 0))
		sleep_note_mapped_file(task, w, sleep);
}

/* Fills in everything but the times and the stack. */
static __always_inline void sleep_describe(struct task_struct *task, const struct wait_call *w,
	bool is_current, bool iowait, unsigned int state, struct event_sleep *sleep)
{
	sleep->op.task = (__u64)task;
	sleep->op.pid = (__u32)BPF_CORE_READ(task, tgid);
	sleep->op.tid = (__u32)BPF_CORE_READ(task, pid);
	sleep->op.op = w->op;
	sleep->op.fd = w->fd;
	sleep->syscall = w->nr;
	sleep->own_nr = call_own_nr(w);
	for (int i = 0; i < 4; i++)
		sleep->args[i] = w->call.args[i];
	sleep->counter = w->counter;
	sleep->flags = iowait ? EVENT_IOWAIT : 0;
	if (state & TASK_UNINTERRUPTIBLE)
		sleep->flags |= EVENT_UNINTERRUPTIBLE;
	sleep->slept_ns = 0;
	sleep->woken_ns = 0;
	sleep->sleeps = 1;
	sleep->stack_len = 0;
	sleep->stack_sleep = 0;
	__builtin_memset(sleep->path, 0, sizeof(sleep->path));
	if (is_current)
		sleep_note_path(w, sleep);
	sleep_note_file(task, w, sleep);
}

/* An empty entry for the current thread, which has none. */
static __always_inline struct event_sleep *sleep_new(struct task_struct *task, __u32 tid)
{
	__u32 slot = BLANK_SWITCH;
	struct event_sleep *blank = bpf_map_lookup_elem(&blanks, &slot);
	long error;

	if (bpf_jiffies64() - sleeps_full_jiffies >= FULL_PAUSE_JIFFIES && blank) {
		error = bpf_map_update_elem(&sleeps, &tid, blank, BPF_NOEXIST);
		if (error == 0)
			sleep_mark_add((__u64)task, 1);
		/* The task scan has just made the entry, and added its mark. */
		if (error == 0 || error == -EEXIST)
			return bpf_map_lookup_elem(&sleeps, &tid);
		/* Other errors pass by themselves. */
		if (error == -E2BIG)
			sleeps_full_jiffies = bpf_jiffies64();
	}
	loss_count(EVENT_LOSS_MAP_FULL);
	return NULL;
}

/* The thread does something else now, so the entry is free for others. */
static __noinline void sleep_remove(struct event_sleep *sleep, __u32 tid)
{
	__u64 task = sleep->op.task;

	if (bpf_map_delete_elem(&sleeps, &tid) == 0)
		sleep_mark_add(task, -1);
}

/* That of an earlier sleep would be another reason, so it goes. */
static __always_inline void sleep_take_stack(void *ctx, struct event_sleep *sleep, __u64 now)
{
	__u32 zero = 0;
	struct full_stack *stack = bpf_map_lookup_elem(&stacks, &zero);

	sleep->stack_len = 0;
	sleep->flags &= (__u16)~EVENT_STACK_ASLEEP;
	if (!stack || !stack_is_affordable(sleep->op.op, now))
		return;
	if (sleep_read_stack(ctx, sleep, stack)) {
		sleep->stack_sleep = (__u16)sleep->sleeps;
		sleep->flags |= EVENT_STACK_ASLEEP;
	}
}

/* When the operation began in which the thread fell asleep at `asleep_ns`. */
static __noinline __u64 paired_start(struct task_struct *task, __u32 tid, __u64 asleep_ns)
{
	struct event_call *call = call_find(task, tid);

	/* A file system may sleep before it reads, and a thread after its read has been counted. */
	if (!call || compat_task_io_calls(task) != call->counter)
		return asleep_ns;
	return call_start(call);
}

/*
 * Ends an operation of the current thread whose return nobody has seen. The return need not come
 * any more: what is said here is not to be said a second time.
 */
__noinline int finish_unseen(__u32 tid, __u64 now)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct event_sleep *sleep = bpf_map_lookup_elem(&sleeps, &tid);
	struct event_call *call;
	__u64 start_ns, key;

	if (!sleep)
		return 0;
	start_ns = sleep_start(sleep);
	key = call_key(tid, sleep->args[0]);
	if (cfg_paired) {
		call = bpf_map_lookup_elem(&vfs_calls, &key);
		if (call && call->op.task == (__u64)task && call_start(call) == start_ns) {
			call_remove(call, key);
			loss_count(EVENT_LOSS_RETURN_MISSED);
		}
	}
	sleep_finish(task, sleep, now, SCRATCH_SWITCH);
	return 0;
}

static __always_inline void switch_in(struct task_struct *task)
{
	__u32 tid = (__u32)BPF_CORE_READ(task, pid);
	struct event_sleep *sleep = bpf_map_lookup_elem(&sleeps, &tid);
	__u64 now = bpf_ktime_get_ns();

	if (!sleep || !sleep->asleep_ns || sleep->op.task != (__u64)task)
		return;
	sleep->slept_ns += now - sleep->asleep_ns;
	sleep->woken_ns = now;
	sleep->asleep_ns = 0;
}

/* It sleeps again in the operation that is noted. */
static __always_inline void sleep_again(void *ctx, struct task_struct *task,
	const struct wait_call *w, unsigned int state, struct event_sleep *sleep, __u64 now)
{
	sleep->sleeps++;
	if (!(state & TASK_UNINTERRUPTIBLE))
		sleep->flags &= (__u16)~EVENT_UNINTERRUPTIBLE;
	/* Keep the stack of the sleep in which the operation became a stall. */
	if (sleep->slept_ns < cfg_common.min_stall_ns)
		sleep_take_stack(ctx, sleep, now);
	if (!sleep->path[0])
		sleep_note_path(w, sleep);
	/* It may have waited for the position or for mmap_lock until now. */
	if (sleep->op.pos == (__u64)-1)
		sleep_note_position(task, w, sleep);
	if (w->op == EVENT_OP_FSYNC && w->fd < 0)
		sleep_note_mapped_file(task, w, sleep);
	sleep->asleep_ns = now;
}

static __always_inline void switch_out(struct bpf_raw_tracepoint_args *ctx,
	struct task_struct *task, unsigned int state)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct event_sleep *sleep = bpf_map_lookup_elem(&sleeps, &tid);
	__u64 now = bpf_ktime_get_ns();
	__u32 slot = CALL_SWITCH;
	struct wait_call *w = bpf_map_lookup_elem(&calls, &slot);
	bool iowait, wanted, pending;
	__u32 pid = (__u32)(bpf_get_current_pid_tgid() >> 32);
	int server = 0;

	if (!w)
		return;

	if (sleep && sleep->op.task != (__u64)task) {
		/*
		 * A thread that ends gives its id back before its last switch. By now the next one
		 * that has it sleeps, and ends its operation itself.
		 */
		if (!BPF_CORE_READ(task, thread_pid))
			return;
		/* That of a thread which had this id before this one took it over in an exec. */
		sleep_remove(sleep, tid);
		sleep = NULL;
	}
	pending = sleep && sleep_start(sleep);
	/* The thread's last switch. It may have slept in closing its files on the way out. */
	if (state & TASK_DEAD) {
		if (pending)
			finish_unseen(tid, now);
		if (sleep)
			sleep_remove(sleep, tid);
		return;
	}
	if (!pending && !(state & (TASK_INTERRUPTIBLE | TASK_UNINTERRUPTIBLE))) {
		if (sleep)
			sleep_remove(sleep, tid);
		return;
	}
	call_read((__u64)task, slot);
	iowait = BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait);
	wanted = state && !compat_task_is_frozen(task) && is_wanted_sleep(task, state, iowait, w);
	if (!wanted && may_sleep_for_server(state, w) && filter_task(pid)) {
		server = stack_is_for_server(ctx, w->op, now);
		wanted = server != 0;
	}
	if (pending && is_same_call(sleep, w, !state)) {
		if (!wanted || sleep->asleep_ns)
			return;
		/* This sleep has shown what the task scan could not know. */
		if (server >= 0)
			sleep->flags &= (__u16)~EVENT_UNPROVEN;
		sleep_again(ctx, task, w, state, sleep, now);
		return;
	}
	if (pending)
		finish_unseen(tid, now);
	if (!wanted || !filter_task(pid)) {
		if (sleep)
			sleep_remove(sleep, tid);
		return;
	}
	if (!sleep)
		sleep = sleep_new(task, tid);
	if (!sleep)
		return;
	sleep_describe(task, w, true, iowait, state, sleep);
	/* User space reads its stack from /proc, as that of one that was asleep before. */
	if (server < 0)
		sleep->flags |= EVENT_UNPROVEN;
	sleep->asleep_ns = now;
	sleep_take_stack(ctx, sleep, now);
	*(volatile __u64 *)&sleep->op.start_ns = cfg_paired ? paired_start(task, tid, now) : now;
}

SEC("raw_tp/sched_switch")
int wait_sched_switch_raw_tp(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *prev = (struct task_struct *)ctx->args[1];
	struct task_struct *next = (struct task_struct *)ctx->args[2];
	__u32 zero = 0;
	struct event_sleep_marks *marks = bpf_map_lookup_elem(&sleep_marks, &zero);
	unsigned int state;

	if (!marks)
		return 0;
	if (*sleep_mark_of(marks, (__u64)next))
		switch_in(next);
	/* Preempted: the thread wants to run on, whatever its state says. */
	if (ctx->args[0])
		state = 0;
	/* 9c2136be0878 ("sched/tracing: Append prev_state to tp args instead", 5.19) */
	else if (cfg_switch_tells_state)
		state = (unsigned int)ctx->args[3];
	else
		state = compat_task_state(prev);
	/* Without a mark there is nothing to end, and most threads do not begin anything. */
	if (!*sleep_mark_of(marks, (__u64)prev)) {
		if (!(state & (TASK_INTERRUPTIBLE | TASK_UNINTERRUPTIBLE)))
			return 0;
		if ((state & (TASK_UNINTERRUPTIBLE | TASK_NOLOAD)) != TASK_UNINTERRUPTIBLE &&
			!call_may_be_on_file(prev))
			return 0;
	}
	switch_out(ctx, prev, state);
	return 0;
}

/*
 * A thread that calls exec() becomes the leader of its process and takes over the leader's id. What
 * it slept in under the old id is over, or nearly so.
 */
SEC("raw_tp/sched_process_exec")
int wait_exec_raw_tp(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx->args[0];
	__u32 old_tid = (__u32)ctx->args[1], tid = (__u32)bpf_get_current_pid_tgid();
	struct event_sleep *sleep;

	if (old_tid == tid)
		return 0;
	sleep = bpf_map_lookup_elem(&sleeps, &old_tid);
	if (!sleep || sleep->op.task != (__u64)task)
		return 0;
	if (sleep_start(sleep)) {
		sleep->op.tid = tid;
		sleep_finish(task, sleep, bpf_ktime_get_ns(), SCRATCH_EXEC);
	}
	sleep_remove(sleep, old_tid);
	return 0;
}

/*
 * Never attached: user space runs it through BPF_PROG_TEST_RUN for each thread at arming. It notes
 * the thread args[0] if that sleeps in an operation and is not noted yet. Returns 1 when the thread
 * is asleep.
 */
SEC("raw_tp")
int wait_task_scan(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = task_of_tid((__u32)ctx->args[0]);
	__u64 its_ns, start_ns;
	struct event_sleep *sleep, *known;
	__u32 tid, slot = BLANK_TASK_SCAN, call_slot = CALL_TASK_SCAN;
	struct wait_call *w = bpf_map_lookup_elem(&calls, &call_slot);
	unsigned int state;
	bool iowait, proven;
	long error;

	if (!task || !w)
		return 0;
	tid = (__u32)BPF_CORE_READ(task, pid);
	state = compat_task_state(task);
	iowait = BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait);
	if (!filter_other_task(task))
		return 0;
	if (!(state & (TASK_INTERRUPTIBLE | TASK_UNINTERRUPTIBLE)) || compat_task_is_frozen(task))
		return 0;
	call_read((__u64)task, call_slot);
	proven = is_wanted_sleep(task, state, iowait, w);
	/*
	 * The stack of another thread cannot be taken here; user space reads it from /proc. A
	 * frozen thread sleeps on its way out.
	 */
	if (!proven && (!may_sleep_for_server(state, w) || (w->nr >= 0 && w->call.is_done)))
		return 0;
	its_ns = compat_task_left_cpu(task);
	start_ns = task_asleep_since(its_ns, bpf_ktime_get_ns());
	sleep = bpf_map_lookup_elem(&blanks, &slot);
	if (!sleep)
		return 0;
	sleep_describe(task, w, false, iowait, state, sleep);
	sleep->flags |= EVENT_BEFORE_ARM;
	if (!proven)
		sleep->flags |= EVENT_UNPROVEN;
	sleep->asleep_ns = start_ns;
	/* `vfs` may have been attached before this program. */
	sleep->op.start_ns = cfg_paired ? paired_start(task, tid, start_ns) : start_ns;
	/* It has run meanwhile, so the program at the context switch has noted it. */
	if (compat_task_state(task) != state || compat_task_left_cpu(task) != its_ns)
		return 0;
	known = bpf_map_lookup_elem(&sleeps, &tid);
	if (known && sleep_start(known))
		return 1;
	/* The entry of an operation that is over is replaced; it has its mark already. */
	if (known && bpf_map_update_elem(&sleeps, &tid, sleep, BPF_EXIST) == 0)
		return 1;
	/* Before the entry exists, since the thread may wake up at any time. */
	sleep_mark_add((__u64)task, 1);
	error = bpf_map_update_elem(&sleeps, &tid, sleep, BPF_NOEXIST);
	if (error < 0)
		sleep_mark_add((__u64)task, -1);
	if (error < 0 && error != -EEXIST)
		loss_count(EVENT_LOSS_MAP_FULL);
	return 1;
}

/*
 * Never attached: user space runs it like wait_task_scan(). Args are the thread id and the start of
 * its operation. When the thread still sleeps in it, the operation is emitted as one in flight, and
 * the result is 1, or 2 where it is not proven to be one, see EVENT_UNPROVEN. args[2] is set once
 * nothing is attached any more, to drain the map: no context switch will end the operations of
 * threads that have woken, so those are emitted as finished here.
 */
SEC("raw_tp")
int wait_resolve(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 tid = (__u32)ctx->args[0], slot = SCRATCH_OF_USER + SCRATCH_RESOLVE;
	__u64 start_ns = ctx->args[1], asleep_ns, now, dur_ns;
	struct event_sleep *sleep = bpf_map_lookup_elem(&sleeps, &tid);
	struct event_operation *e = scratch_get(slot);
	__u32 call_slot = CALL_RESOLVE;
	struct wait_call *w = bpf_map_lookup_elem(&calls, &call_slot);
	struct task_struct *task;
	int in_flight;
	bool drain;

	if (!sleep || !e || !w || sleep_start(sleep) != start_ns)
		return 0;
	task = (struct task_struct *)sleep->op.task;
	if ((__u32)BPF_CORE_READ(task, pid) != tid)
		return 0;
	now = bpf_ktime_get_ns();
	asleep_ns = *(volatile __u64 *)&sleep->asleep_ns;
	drain = ctx->args[2];
	if (drain != !asleep_ns)
		return 0;
	dur_ns = now - start_ns;
	if (drain) {
		dur_ns = sleep->woken_ns - start_ns;
		if (!sleep->woken_ns || dur_ns < cfg_common.min_stall_ns)
			return 0;
	} else {
		call_read((__u64)task, call_slot);
		if (sleep->syscall != w->nr || sleep->args[0] != w->call.args[0] ||
			!task_is_asleep(task))
			return 0;
	}
	e->header.ts_ns = now;
	e->dur_ns = dur_ns;
	e->ret = 0;
	e->flags = EVENT_NO_RET | (drain ? EVENT_FINISHED : 0);
	in_flight = sleep->flags & EVENT_UNPROVEN ? 2 : 1;
	return sleep_emit(task, sleep, e, slot) && !drain ? in_flight : 0;
}

char LICENSE[] SEC("license") = "GPL";
