/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probe `offcpu`: the time that the threads of watched processes spend off the CPU, summed by what
 * they wait for: their stacks in the kernel and in the program, their name and state.
 *
 * The stack is taken as a thread leaves its CPU, since that of another thread cannot be taken later
 * and one that never wakes has no later. Unwinding costs more than a context switch, so a thread
 * has a stack for each millisecond and no more. What else there is to know of it is
 * looked at when it comes back, and only if that took long enough, which few do. User space reads
 * the sums while they grow, and adds the time of those that are off the CPU then. Nothing of other
 * processes is looked at but a bit.
 */
enum scratch_slot {
	SCRATCH_COUNT = 1, /* this object makes no event, but a map needs an entry */
};

#include "offcpu_kinds.bpf.h"

const volatile __u64 cfg_min_ns = 0;
/* Whether sched_switch passes the state, which kernel_types_count_args() of user space tells. */
const volatile bool cfg_switch_tells_state = false;

#define TASK_DEAD 0x80

/* User space writes both. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct event_offcpu_pids);
} offcpu_pid_bits SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EVENT_FILTER_PIDS_MAX);
	__type(key, __u32);
	__type(value, __u8);
} offcpu_pids SEC(".maps");

/* How many threads with the same hash have an entry in `offcpu_threads`, as in sleeps.bpf.h. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct event_offcpu_marks);
} offcpu_marks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct event_offcpu_thread);
} offcpu_threads SEC(".maps");

/* Of the longest time of each kind. User space reads it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EVENT_OFFCPU_STACKS_MAX);
	__type(key, struct event_offcpu_key);
	__type(value, struct event_offcpu_waker);
} offcpu_wakers SEC(".maps");

static __always_inline __u32 thread_hash(__u64 task)
{
	/* Fibonacci hashing */
	return (task * 0x9e3779b97f4a7c15ull) >> (64 - EVENT_OFFCPU_MARKS_BITS);
}

static __always_inline bool thread_is_marked(__u64 task)
{
	__u32 zero = 0;
	struct event_offcpu_marks *marks = bpf_map_lookup_elem(&offcpu_marks, &zero);

	return marks && marks->counts[thread_hash(task)];
}

static __always_inline void thread_mark_add(__u64 task, __u32 n)
{
	__u32 zero = 0;
	struct event_offcpu_marks *marks = bpf_map_lookup_elem(&offcpu_marks, &zero);

	if (marks)
		__sync_fetch_and_add(&marks->counts[thread_hash(task)], n);
}

static __always_inline bool pid_is_looked_at(__u32 pid)
{
	__u32 zero = 0;
	struct event_offcpu_pids *pids = bpf_map_lookup_elem(&offcpu_pid_bits, &zero);

	return pids && pids->bits[pid % EVENT_OFFCPU_PID_BITS / 64] & 1ull << pid % 64;
}

static __always_inline bool thread_has_kind(const struct event_offcpu_thread *thread)
{
	return thread->key.hash[0] || thread->key.hash[1];
}

static __always_inline void thread_forget_kind(struct event_offcpu_thread *thread)
{
	thread->key.hash[0] = thread->key.hash[1] = 0;
}

/* The entry of a thread that is off the CPU, of a kind without stack if it has none yet. */
static __always_inline struct event_offcpu *thread_get_kind(struct event_offcpu_thread *thread,
	struct task_struct *task, struct offcpu_scratch *made)
{
	struct event_offcpu *entry;

	if (thread_has_kind(thread))
		return bpf_map_lookup_elem(&offcpu_kinds, &thread->key);
	if (!made)
		return NULL;
	entry_describe(&made->entry, task, (__u32)BPF_CORE_READ(task, tgid), thread->state);
	key_of(made, &thread->key);
	entry = entry_get(made, &thread->key);
	if (entry)
		__sync_fetch_and_add(&entry->off, 1);
	else
		thread_forget_kind(thread);
	return entry;
}

/* The kernel has counted by now what part of its last time off the CPU it waited for a CPU. */
static __always_inline void count_run_delay(struct event_offcpu_thread *thread, __u64 run_delay_ns)
{
	__u64 waited_ns = run_delay_ns - thread->run_delay_ns;
	struct event_offcpu *entry;

	if (!thread->slept_ns || !waited_ns)
		return;
	entry = bpf_map_lookup_elem(&offcpu_kinds, &thread->key);
	if (entry)
		__sync_fetch_and_add(&entry->runnable_ns,
			waited_ns < thread->slept_ns ? waited_ns : thread->slept_ns);
}

/* Forgets the kind in which it is counted as one that is off the CPU. */
static __always_inline void thread_leave_kind(struct event_offcpu_thread *thread)
{
	struct event_offcpu *entry = bpf_map_lookup_elem(&offcpu_kinds, &thread->key);

	if (entry)
		__sync_fetch_and_add(&entry->off, -1);
}

/*
 * A new entry for the thread, or what is left of one that had its id before. The scan at arming may
 * have made one meanwhile, which found the thread asleep.
 */
static __always_inline struct event_offcpu_thread *thread_begin(struct task_struct *task, __u32 tid,
	struct event_offcpu_thread *left)
{
	const struct event_offcpu_thread fresh = { .task = (__u64)task, .tid = tid };

	if (!left && bpf_map_update_elem(&offcpu_threads, &tid, &fresh, BPF_NOEXIST) == 0) {
		thread_mark_add((__u64)task, 1);
		return bpf_map_lookup_elem(&offcpu_threads, &tid);
	}
	if (!left) {
		left = bpf_map_lookup_elem(&offcpu_threads, &tid);
		if (!left || left->task != (__u64)task) {
			loss_count(EVENT_LOSS_ACCOUNT_FULL);
			return NULL;
		}
		thread_leave_kind(left);
	} else {
		thread_mark_add(left->task, -1);
		thread_mark_add((__u64)task, 1);
	}
	*left = fresh;
	return left;
}

static __always_inline __u8 state_letter(unsigned int state)
{
	if (state & TASK_UNINTERRUPTIBLE)
		return state & TASK_NOLOAD ? 'S' : 'D';
	if (state & TASK_INTERRUPTIBLE)
		return 'S';
	return state ? 'T' : 'R';
}

/* The current thread leaves its CPU. A thread that is known has been found to be looked at. */
static __noinline int switch_out(struct bpf_raw_tracepoint_args *ctx, __u64 pid_tgid,
	unsigned int state, __u64 now)
{
	struct task_struct *task = (struct task_struct *)ctx->args[1];
	__u32 tid = (__u32)pid_tgid, pid = pid_tgid >> 32;
	struct event_offcpu_thread *thread;
	struct offcpu_scratch *made;
	struct event_offcpu *entry;
	__u64 run_delay_ns;
	bool is_known;

	thread = bpf_map_lookup_elem(&offcpu_threads, &tid);
	is_known = thread && thread->task == (__u64)task;
	if (!is_known && !bpf_map_lookup_elem(&offcpu_pids, &pid))
		return 0;
	/* A thread that ends has given its id back, and another one may have it by now. */
	if (thread && !is_known && !BPF_CORE_READ(task, thread_pid))
		return 0;
	run_delay_ns = compat_task_run_delay(task);
	if (is_known)
		count_run_delay(thread, run_delay_ns);
	if (state & TASK_DEAD) {
		if (is_known && bpf_map_delete_elem(&offcpu_threads, &tid) == 0)
			thread_mark_add((__u64)task, -1);
		return 0;
	}
	if (!is_known)
		thread = thread_begin(task, tid, thread);
	made = scratch_of_cpu();
	if (!thread)
		return 0;
	thread->slept_ns = 0;
	if (!made) {
		loss_count(EVENT_LOSS_MAP_FULL);
		return 0;
	}
	thread->run_delay_ns = run_delay_ns;
	thread->state = state_letter(state);
	entry = NULL;
	/* Where it was stopped says nothing of what it waits for: a CPU. */
	if (state && now >= made->full_until_ns && stack_is_paid(thread, made, now)) {
		entry_describe(&made->entry, task, pid, thread->state);
		entry = entry_get_with_stack(ctx, made, &thread->key);
	}
	if (entry)
		__sync_fetch_and_add(&entry->off, 1);
	else
		thread_forget_kind(thread);
	thread->has_stack = entry != NULL;
	*(volatile __u64 *)&thread->off_ns = now;
	return 0;
}

/* The thread comes back, and what it waited for is over. */
static __noinline int switch_in(__u64 address, __u64 now)
{
	struct task_struct *task = (struct task_struct *)address;
	__u32 tid = (__u32)BPF_CORE_READ(task, pid);
	struct event_offcpu_thread *thread = bpf_map_lookup_elem(&offcpu_threads, &tid);
	struct event_offcpu *entry;
	__u64 start_ns, ns;

	if (!thread || thread->task != address || !thread->off_ns)
		return 0;
	start_ns = thread->off_ns;
	ns = now - start_ns;
	thread->off_ns = 0;
	thread->slept_ns = 0;
	if (ns < cfg_min_ns && !thread_has_kind(thread))
		return 0;
	entry = thread_get_kind(thread, task, scratch_of_cpu());
	if (entry)
		__sync_fetch_and_add(&entry->off, -1);
	if (ns < cfg_min_ns)
		return 0;
	if (!entry) {
		loss_count(EVENT_LOSS_ACCOUNT_FULL);
		return 0;
	}
	entry_add(entry, tid, start_ns, ns);
	/* What part of another sleep it is, the kernel has counted when the thread is seen next. */
	if (thread->state == 'R')
		__sync_fetch_and_add(&entry->runnable_ns, ns);
	else
		thread->slept_ns = ns;
	return 0;
}

SEC("raw_tp/sched_switch")
int offcpu_sched_switch_raw_tp(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 next = ctx->args[2], pid_tgid = bpf_get_current_pid_tgid(), now = 0;
	unsigned int state = 0;

	if (thread_is_marked(next)) {
		now = bpf_ktime_get_ns();
		switch_in(next, now);
	}
	if (!pid_is_looked_at(pid_tgid >> 32))
		return 0;
	if (!now)
		now = bpf_ktime_get_ns();
	/* Preempted: the thread wants to run on, whatever its state says. */
	if (ctx->args[0])
		state = 0;
	else if (cfg_switch_tells_state)
		state = (unsigned int)ctx->args[3];
	else
		state = compat_task_state((struct task_struct *)ctx->args[1]);
	switch_out(ctx, pid_tgid, state, now);
	return 0;
}

/* The current thread, or an interrupt that came while it ran, wakes another one. */
static __noinline int wake(struct bpf_raw_tracepoint_args *ctx, __u64 address)
{
	struct task_struct *task = (struct task_struct *)address;
	__u32 tid = (__u32)BPF_CORE_READ(task, pid);
	struct event_offcpu_thread *thread = bpf_map_lookup_elem(&offcpu_threads, &tid);
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct offcpu_scratch *made = scratch_of_cpu();
	struct event_offcpu_waker waker = {};
	struct event_offcpu *entry;

	if (!thread || thread->task != address || !thread->off_ns || !made)
		return 0;
	if (bpf_ktime_get_ns() - thread->off_ns < cfg_min_ns)
		return 0;
	entry = thread_get_kind(thread, task, made);
	if (!entry || bpf_ktime_get_ns() - thread->off_ns <= entry->longest_ns)
		return 0;
	waker.off_ns = thread->off_ns;
	waker.pid = pid_tgid >> 32;
	waker.tid = (__u32)pid_tgid;
	bpf_get_current_comm(waker.comm, sizeof(waker.comm));
	waker.kernel_len = frames_of(bpf_get_stack(ctx, waker.kernel, sizeof(waker.kernel), 1));
	bpf_map_update_elem(&offcpu_wakers, &thread->key, &waker, BPF_ANY);
	return 0;
}

SEC("raw_tp/sched_waking")
int offcpu_sched_waking_raw_tp(struct bpf_raw_tracepoint_args *ctx)
{
	if (thread_is_marked(ctx->args[0]))
		wake(ctx, ctx->args[0]);
	return 0;
}

/*
 * Never attached: user space runs it through BPF_PROG_TEST_RUN for each thread at arming. It notes
 * the thread args[0] if that is off the CPU and not noted yet. Its stacks cannot be taken any more.
 */
SEC("raw_tp")
int offcpu_task_scan(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = task_of_tid((__u32)ctx->args[0]);
	struct event_offcpu_thread fresh = {};
	struct offcpu_scratch *made;
	struct event_offcpu *entry;
	unsigned int state;
	__u32 pid, tid, slot = cfg_common.cpus;
	__u64 left_ns;

	if (!task)
		return 0;
	pid = (__u32)BPF_CORE_READ(task, tgid);
	tid = (__u32)BPF_CORE_READ(task, pid);
	state = compat_task_state(task);
	made = bpf_map_lookup_elem(&offcpu_scratch, &slot);
	if (!made || !bpf_map_lookup_elem(&offcpu_pids, &pid) ||
		!(state & (TASK_INTERRUPTIBLE | TASK_UNINTERRUPTIBLE)))
		return 0;
	left_ns = compat_task_left_cpu(task);
	entry_describe(&made->entry, task, pid, state_letter(state));
	key_of(made, &fresh.key);
	entry = entry_get(made, &fresh.key);
	if (!entry)
		thread_forget_kind(&fresh);
	fresh.task = (__u64)task;
	fresh.tid = tid;
	fresh.state = made->entry.state;
	fresh.off_ns = task_asleep_since(left_ns, bpf_ktime_get_ns());
	fresh.run_delay_ns = compat_task_run_delay(task);
	/* It has run meanwhile, so the program at the context switch has noted it. */
	if (compat_task_state(task) != state || compat_task_left_cpu(task) != left_ns)
		return 0;
	/* Before the entry exists, since the thread may wake up at any time. */
	thread_mark_add((__u64)task, 1);
	if (bpf_map_update_elem(&offcpu_threads, &tid, &fresh, BPF_NOEXIST) < 0)
		thread_mark_add((__u64)task, -1);
	else if (entry)
		__sync_fetch_and_add(&entry->off, 1);
	return 0;
}

/*
 * Never attached: user space runs it for a thread, args[0], that has been off the CPU since args[1]
 * and counts in no entry. Returns 1 when it does.
 */
SEC("raw_tp")
int offcpu_name_kind(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 tid = (__u32)ctx->args[0], slot = cfg_common.cpus;
	struct event_offcpu_thread *thread = bpf_map_lookup_elem(&offcpu_threads, &tid);
	struct offcpu_scratch *made = bpf_map_lookup_elem(&offcpu_scratch, &slot);
	struct task_struct *task = task_of_tid(tid);

	if (!thread || !made || thread->task != (__u64)task || thread->off_ns != ctx->args[1])
		return 0;
	return thread_get_kind(thread, task, made) != NULL;
}

/*
 * Never attached: user space runs it when it has read the stack of a thread from /proc. The thread
 * args[0], which has been off the CPU since args[1], counts from now on in an entry of its own key,
 * args[2] and args[3]. Returns 1 when it does.
 */
SEC("raw_tp")
int offcpu_note_stack(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 tid = (__u32)ctx->args[0], slot = cfg_common.cpus;
	struct event_offcpu_thread *thread = bpf_map_lookup_elem(&offcpu_threads, &tid);
	struct event_offcpu_key key = { { ctx->args[2], ctx->args[3] } };
	struct event_offcpu *entry, *before;
	struct offcpu_scratch *made;

	if (!thread || thread->off_ns != ctx->args[1])
		return 0;
	before = bpf_map_lookup_elem(&offcpu_kinds, &thread->key);
	made = bpf_map_lookup_elem(&offcpu_scratch, &slot);
	if (!before || !made)
		return 0;
	made->entry = (struct event_offcpu){
		.pid = before->pid,
		.process_start_ns = before->process_start_ns,
		.syscall = before->syscall,
		.state = before->state,
	};
	__builtin_memcpy(made->entry.comm, before->comm, sizeof(before->comm));
	entry = entry_get(made, &key);
	if (!entry)
		return 0;
	__sync_fetch_and_add(&before->off, -1);
	__sync_fetch_and_add(&entry->off, 1);
	thread->key = key;
	return 1;
}

char LICENSE[] SEC("license") = "GPL";
