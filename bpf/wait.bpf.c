/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probe `wait`: every sleep of a thread inside an operation, seen at the context switch.
 *
 * A thread that leaves the CPU in D state, in iowait, or in a system call on a file is noted with that
 * call; what it sleeps in one call is added up. The call is over when the thread is next seen elsewhere:
 * at its next context switch, the last one included, or by user space, which runs wait_resolve(). What
 * slept before anyone looked is noted by wait_seed(). Runs with the run queue locked, preemption off:
 * it is never skipped, and must be short.
 */
enum scratch_slot {
	SCRATCH_SWITCH,
	SCRATCH_RESOLVE,
	SCRATCH_COUNT,
};

#include "calls.bpf.h"
#include "sleeps.bpf.h"
#include "tasks.bpf.h"

/* What sched_switch passes, see tracepoint_args_count() of user space. */
const volatile bool cfg_switch_tells_state = false;
/* Sleeping in io_uring_enter() or io_submit() is no operation where every request is seen itself. */
const volatile bool cfg_uring_seen = false;
const volatile bool cfg_aio_seen = false;
const volatile __s32 cfg_nr_io_uring_enter = -1;

#define TASK_INTERRUPTIBLE 0x1
#define TASK_UNINTERRUPTIBLE 0x2
#define TASK_DEAD 0x80
#define TASK_NOLOAD 0x400

/*
 * Unwinding costs some microseconds. Where sleeps come faster than this they are short, and are no
 * stalls; a storm of threads that fall asleep together is 1000 of them.
 */
#define STACKS_PER_WINDOW 1000
#define STACKS_WINDOW_NS 1000000000ull

struct stack_budget {
	__u64 window_ns;
	__u32 taken;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stack_budget);
} stack_budgets SEC(".maps");

/* Entries before they are in the map: the stack holds 512 bytes. That of switches is never written. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct event_sleep);
} blanks SEC(".maps");

enum blank_slot {
	BLANK_SWITCH,
	BLANK_SEED,
};

/* Who walks a tree gives each path in the same buffer. What differs is mostly the end, the length, or both. */
static __always_inline bool is_same_path(const struct event_sleep *sleep, const struct wait_call *w)
{
	char path[EVENT_SLEEP_PATH_SIZE] = {};

	bpf_probe_read_user_str(path, sizeof(path), (void *)call_arg(&w->call, w->is.path));
	for (unsigned int i = 0; i < EVENT_SLEEP_PATH_SIZE / sizeof(__u64); i++)
		if (((__u64 *)path)[i] != ((const __u64 *)sleep->path)[i])
			return false;
	return true;
}

/*
 * Reads and writes are counted when they are done, faults too; so of two such calls with the same
 * arguments, the second shows. Two fsyncs of one file with nothing written in between are one to us. Of what
 * kernel threads do, each sleep is one.
 */
static __always_inline bool is_same_call(const struct event_sleep *sleep, const struct wait_call *w,
	bool is_preempted)
{
	if (sleep->syscall != w->nr || sleep->op.op != w->op || w->op == EVENT_OP_SUBMIT ||
		w->op == EVENT_OP_KERNEL)
		return false;
	if (sleep->identity[0] != w->call.args[0] || sleep->identity[1] != w->call.args[1] ||
		sleep->identity[2] != w->call.args[3])
		return false;
	/* It may have been counted already and not have returned yet, to a probe that waits for that. */
	if (is_preempted)
		return true;
	return sleep->identity[3] == w->counter && (w->is.path < 0 || is_same_path(sleep, w));
}

static __always_inline bool file_is_storage(struct file *file)
{
	return file && file_mode_is_storage(BPF_CORE_READ(file, f_inode, i_mode));
}

/* Whether a thread that leaves the CPU like this sleeps in something that we tell of. */
static __always_inline bool is_wanted_sleep(struct task_struct *task, unsigned int state, bool iowait,
	const struct wait_call *w)
{
	if (w->op == EVENT_OP_NONE)
		return false;
	if (iowait || ((state & TASK_UNINTERRUPTIBLE) && !(state & TASK_NOLOAD)))
		return true;
	/*
	 * FUSE and network file systems wait so that a signal ends it. Who copies may wait for the other
	 * side in that way, which is a socket or a pipe.
	 */
	return (state & TASK_INTERRUPTIBLE) && w->fd >= 0 && w->op != EVENT_OP_COPY &&
		file_is_storage(file_of_fd(task, (__u32)w->fd));
}

/* Whether another probe reports what the thread waits for: requests that were submitted since arming. */
static __always_inline bool requests_are_seen(const struct wait_call *w)
{
	return w->nr >= 0 && ((w->nr == cfg_nr_io_uring_enter && cfg_uring_seen) ||
				     (w->nr == cfg_nr_io_submit && cfg_aio_seen));
}

static __always_inline bool stack_is_affordable(__u64 now)
{
	__u32 zero = 0;
	struct stack_budget *budget = bpf_map_lookup_elem(&stack_budgets, &zero);

	if (!budget)
		return false;
	if (now - budget->window_ns >= STACKS_WINDOW_NS) {
		budget->window_ns = now;
		budget->taken = 0;
	}
	return budget->taken++ < STACKS_PER_WINDOW;
}

/* In a fault there is no descriptor; the probe `fault` has noted the file, if it is armed. */
static __always_inline void sleep_note_fault(struct event_sleep *sleep, const struct wait_call *w)
{
	__u32 tid = sleep->op.tid;
	struct event_fault *fault = bpf_map_lookup_elem(&faults, &tid);

	if (!fault || fault->faults != w->counter)
		return;
	sleep->op.file = fault->file;
	sleep->inode = fault->inode;
	sleep->op.pos = fault->pos;
}

static __always_inline void sleep_note_file(struct task_struct *task, const struct wait_call *w,
	struct event_sleep *sleep)
{
	struct file *file = sleep->op.fd >= 0 ? file_of_fd(task, (__u32)sleep->op.fd) : NULL;
	struct inode *inode;

	sleep->op.file = (__u64)file;
	sleep->inode = (__u64)BPF_CORE_READ(file, f_inode);
	sleep->op.pos = w->offset;
	sleep->op.buf = w->call.args[1];
	sleep->op.bytes = w->bytes;
	if (w->offset == (__u64)-1 && file && (w->op == EVENT_OP_READ || w->op == EVENT_OP_WRITE))
		sleep->op.pos = (__u64)BPF_CORE_READ(file, f_pos);
	/* Where an appending write goes is not known before. */
	if (w->op == EVENT_OP_WRITE && (BPF_CORE_READ(file, f_flags) & O_APPEND))
		sleep->op.pos = (__u64)-1;
	if (w->op == EVENT_OP_FAULT)
		sleep_note_fault(sleep, w);
	inode = (struct inode *)sleep->inode;
	sleep->ino = BPF_CORE_READ(inode, i_ino);
}

/* All but the times and the stack. */
static __always_inline void sleep_describe(struct task_struct *task, const struct wait_call *w,
	bool is_current, bool iowait, struct event_sleep *sleep)
{
	sleep->op.task = (__u64)task;
	sleep->op.pid = (__u32)BPF_CORE_READ(task, tgid);
	sleep->op.tid = (__u32)BPF_CORE_READ(task, pid);
	sleep->op.op = w->op;
	sleep->op.fd = w->fd;
	sleep->syscall = w->nr;
	sleep->identity[0] = w->call.args[0];
	sleep->identity[1] = w->call.args[1];
	sleep->identity[2] = w->call.args[3];
	sleep->identity[3] = w->counter;
	sleep->flags = iowait ? EVENT_IOWAIT : 0;
	sleep->slept_ns = 0;
	sleep->woken_ns = 0;
	sleep->sleeps = 1;
	sleep->stack_len = 0;
	__builtin_memset(sleep->path, 0, sizeof(sleep->path));
	if (is_current && w->is.path >= 0)
		bpf_probe_read_user_str(sleep->path, sizeof(sleep->path),
			(void *)call_arg(&w->call, w->is.path));
	sleep_note_file(task, w, sleep);
}

static __always_inline struct event_sleep *sleep_new(__u32 tid, __u32 slot)
{
	struct event_sleep *sleep = bpf_map_lookup_elem(&sleeps, &tid), *blank;

	if (sleep)
		return sleep;
	blank = bpf_map_lookup_elem(&blanks, &slot);
	if (blank)
		bpf_map_update_elem(&sleeps, &tid, blank, BPF_NOEXIST);
	sleep = bpf_map_lookup_elem(&sleeps, &tid);
	if (!sleep)
		loss_count(EVENT_LOSS_MAP_FULL);
	return sleep;
}

/*
 * The file, or what is known of it, into the event; false when the device filter does not want it. The file
 * may be closed by now and its memory another's, the inode too.
 */
static __always_inline bool sleep_describe_file(const struct event_sleep *sleep,
	struct event_operation *e)
{
	struct file *file = (struct file *)sleep->op.file;
	struct inode *inode = (struct inode *)sleep->inode;
	long n;

	if (file && BPF_CORE_READ(file, f_inode) == inode) {
		if (!file_describe(file, e))
			return false;
		path_collect(file, e);
		return true;
	}
	if (!file && inode && BPF_CORE_READ(inode, i_ino) == sleep->ino) {
		if (!inode_describe(inode, e))
			return false;
		inode_path_collect(inode, e);
		return true;
	}
	e->flags |= EVENT_PATH_GIVEN | EVENT_PATH_COMPLETE;
	if (sleep->path[0]) {
		n = bpf_probe_read_kernel_str(e->path, EVENT_SLEEP_PATH_SIZE, sleep->path);
		e->path_len = n > 0 ? (__u32)n : 0;
		if (n >= EVENT_SLEEP_PATH_SIZE)
			e->flags &= ~EVENT_PATH_COMPLETE;
	}
	return !cfg_filter_dev;
}

/*
 * Into the ring; `e` has its time, length and own flags already. Of another thread than the current one
 * everything may change meanwhile: then it is left out. A function of its own, so that it stands once in the
 * object. Returns whether it was emitted.
 */
static __noinline int sleep_emit(struct task_struct *task, struct event_sleep *sleep,
	struct event_operation *e)
{
	__u64 start_ns = sleep_start(sleep);

	e->flags |= (__u16)(sleep->flags | EVENT_NO_RET);
	e->start_ns = start_ns;
	e->slept_ns = sleep->slept_ns;
	e->sleeps = sleep->sleeps;
	e->syscall = sleep->syscall;
	e->offset = (__s64)sleep->op.pos;
	e->bytes = sleep->op.bytes;
	e->ret = 0;
	e->op = (__u16)sleep->op.op;
	e->fd = sleep->op.fd;
	e->dev = 0;
	e->inode = 0;
	e->path_len = 0;
	e->stack_len = sleep->stack_len;
	__builtin_memcpy(e->stack, sleep->stack, sizeof(e->stack));
	task_describe(task, e);
	if (!sleep_describe_file(sleep, e) || sleep_start(sleep) != start_ns || e->tid != sleep->op.tid)
		return 0;
	event_emit(e);
	return 1;
}

/* The operation is over. */
static __always_inline void sleep_finish(struct task_struct *task, struct event_sleep *sleep, __u64 now,
	__u32 slot)
{
	__u64 dur_ns = sleep->woken_ns - sleep->op.start_ns;
	struct event_operation *e;

	/* Without a waking nothing is known: it was seeded while it woke. */
	if (sleep->woken_ns && dur_ns >= cfg_min_stall_ns) {
		e = bpf_map_lookup_elem(&scratch, &slot);
		if (e) {
			e->header.ts_ns = now;
			e->dur_ns = dur_ns;
			e->flags = EVENT_FINISHED;
			sleep_emit(task, sleep, e);
		}
	}
	sleep_end(sleep);
}

static __always_inline void sleep_take_stack(void *ctx, struct event_sleep *sleep, __u64 now)
{
	long n;

	if (!stack_is_affordable(now))
		return;
	n = bpf_get_stack(ctx, sleep->stack, sizeof(sleep->stack), 0);
	if (n > 0) {
		sleep->stack_len = (__u32)n / sizeof(sleep->stack[0]);
		sleep->flags |= EVENT_STACK_ASLEEP;
	}
}

static __always_inline void switch_in(struct task_struct *task, __u64 now)
{
	__u32 tid = (__u32)BPF_CORE_READ(task, pid);
	struct event_sleep *sleep = bpf_map_lookup_elem(&sleeps, &tid);

	if (!sleep || !sleep->asleep_ns)
		return;
	sleep->slept_ns += now - sleep->asleep_ns;
	sleep->woken_ns = now;
	sleep->asleep_ns = 0;
}

static __always_inline void switch_out(void *ctx, struct task_struct *task, unsigned int state,
	__u64 now)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct event_sleep *sleep = bpf_map_lookup_elem(&sleeps, &tid);
	bool iowait, wanted, pending = sleep && sleep_start(sleep);
	struct wait_call w;

	/* Its last switch, after the exit hook: what it closed on its way out may have slept. */
	if (state & TASK_DEAD) {
		if (pending)
			sleep_finish(task, sleep, now, SCRATCH_SWITCH);
		if (sleep)
			bpf_map_delete_elem(&sleeps, &tid);
		return;
	}
	if (!pending && !(state & (TASK_INTERRUPTIBLE | TASK_UNINTERRUPTIBLE)))
		return;
	call_read(task, true, &w);
	iowait = BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait);
	wanted = state && !requests_are_seen(&w) && is_wanted_sleep(task, state, iowait, &w);
	if (pending && is_same_call(sleep, &w, !state)) {
		if (wanted && !sleep->asleep_ns) {
			/* The stack shall be that of the sleep that makes it a stall. */
			if (sleep->slept_ns < cfg_min_stall_ns)
				sleep_take_stack(ctx, sleep, now);
			sleep->sleeps++;
			sleep->asleep_ns = now;
		}
		return;
	}
	if (pending)
		sleep_finish(task, sleep, now, SCRATCH_SWITCH);
	if (!wanted || !filter_task(bpf_get_current_pid_tgid() >> 32))
		return;
	sleep = sleep_new(tid, BLANK_SWITCH);
	if (!sleep)
		return;
	sleep_describe(task, &w, true, iowait, sleep);
	sleep->asleep_ns = now;
	sleep_take_stack(ctx, sleep, now);
	*(volatile __u64 *)&sleep->op.start_ns = now;
}

SEC("raw_tp/sched_switch")
int wait_sched_switch_raw_tp(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *prev = (struct task_struct *)ctx->args[1];
	__u64 now = bpf_ktime_get_ns();
	unsigned int state;

	switch_in((struct task_struct *)ctx->args[2], now);
	/* Preempted: whatever its state says, it runs. */
	if (ctx->args[0])
		state = 0;
	/* Since 9c2136be0878 ("sched/tracing: Append prev_state to tp args instead", 5.19). */
	else if (cfg_switch_tells_state)
		state = (unsigned int)ctx->args[3];
	else
		state = compat_task_state(prev);
	if (BPF_CORE_READ(prev, pid))
		switch_out(ctx, prev, state, now);
	return 0;
}

/*
 * Run by user space through BPF_PROG_TEST_RUN, never attached: notes the thread args[0] if it is asleep in
 * something and not known yet. It sleeps since it was last charged for running; the daemon's own stamp,
 * taken by the same clock, says when now is (that clock is not ktime's), a tick late at most. Returns 1
 * when the thread is asleep.
 */
SEC("raw_tp")
int wait_seed(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = task_of_tid((__u32)ctx->args[0]);
	struct task_struct *self = (struct task_struct *)bpf_get_current_task();
	__u64 now, mine_ns, its_ns, start_ns;
	struct event_sleep *sleep, *known;
	__u32 tid, slot = BLANK_SEED;
	struct wait_call w;
	unsigned int state;
	bool iowait;
	long error;

	if (!task)
		return 0;
	tid = (__u32)BPF_CORE_READ(task, pid);
	state = compat_task_state(task);
	iowait = BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait);
	if (!filter_other_task(task))
		return 0;
	if (!(state & (TASK_INTERRUPTIBLE | TASK_UNINTERRUPTIBLE)))
		return 0;
	call_read(task, false, &w);
	if (!is_wanted_sleep(task, state, iowait, &w))
		return 0;
	now = bpf_ktime_get_ns();
	mine_ns = compat_task_left_cpu(self);
	its_ns = compat_task_left_cpu(task);
	start_ns = now;
	if (its_ns && mine_ns > its_ns && mine_ns - its_ns < now)
		start_ns -= mine_ns - its_ns;
	sleep = bpf_map_lookup_elem(&blanks, &slot);
	if (!sleep)
		return 0;
	sleep_describe(task, &w, false, iowait, sleep);
	sleep->flags |= EVENT_BEFORE_ARM;
	sleep->asleep_ns = start_ns;
	sleep->op.start_ns = start_ns;
	/* It has run meanwhile: then the switches have noted what it is in now. */
	if (compat_task_state(task) != state || compat_task_left_cpu(task) != its_ns)
		return 0;
	known = bpf_map_lookup_elem(&sleeps, &tid);
	if (known && sleep_start(known))
		return 1;
	/* What a thread left behind that is over is replaced. */
	error = bpf_map_update_elem(&sleeps, &tid, sleep, known ? BPF_ANY : BPF_NOEXIST);
	if (error < 0 && error != -EEXIST)
		loss_count(EVENT_LOSS_MAP_FULL);
	return 1;
}

/*
 * Run by user space like wait_seed(): args are the thread id and the start of its operation, which
 * leaves as an event, in flight, when the thread still sleeps in it: then it returns 1. args[2] is set
 * once nothing is attached any more: what has woken then leaves, finished, since no switch will tell.
 */
SEC("raw_tp")
int wait_resolve(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 tid = (__u32)ctx->args[0], slot = SCRATCH_RESOLVE;
	__u64 start_ns = ctx->args[1], asleep_ns, now, dur_ns;
	struct event_sleep *sleep = bpf_map_lookup_elem(&sleeps, &tid);
	struct event_operation *e = bpf_map_lookup_elem(&scratch, &slot);
	struct task_struct *task;
	struct wait_call w;
	bool settle;

	if (!sleep || !e || sleep_start(sleep) != start_ns)
		return 0;
	task = (struct task_struct *)sleep->op.task;
	if ((__u32)BPF_CORE_READ(task, pid) != tid)
		return 0;
	now = bpf_ktime_get_ns();
	asleep_ns = *(volatile __u64 *)&sleep->asleep_ns;
	settle = ctx->args[2];
	if (settle != !asleep_ns)
		return 0;
	dur_ns = now - start_ns;
	if (settle) {
		dur_ns = sleep->woken_ns - start_ns;
		if (!sleep->woken_ns || dur_ns < cfg_min_stall_ns)
			return 0;
	} else {
		call_read(task, false, &w);
		if (sleep->syscall != w.nr || sleep->identity[0] != w.call.args[0] ||
			!(compat_task_state(task) & (TASK_INTERRUPTIBLE | TASK_UNINTERRUPTIBLE)))
			return 0;
	}
	e->header.ts_ns = now;
	e->dur_ns = dur_ns;
	e->flags = settle ? EVENT_FINISHED : 0;
	return sleep_emit(task, sleep, e) && !settle;
}

char LICENSE[] SEC("license") = "GPL";
