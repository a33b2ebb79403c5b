/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probe `vfs`: the returns of vfs_read(), vfs_write(), vfs_readv() and vfs_writev(), for the result
 * of the operations in which `wait` has seen a thread fall asleep. That is in returns.bpf.h.
 *
 * With probe.vfs.pairing = entry also their entries, for those in which no thread falls asleep: an
 * operation is noted as it begins, and its return takes it out. One in which a thread has slept is
 * reported as without the entry, but from its beginning on, which `wait` looks up.
 *
 * A call inside another one of the same system call, as of a file system that reads a file below,
 * belongs to the outer one. User space loads the programs of one backend.
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

#include "pairs.bpf.h"
#include "returns.bpf.h"

/* Whether the programs at the entries are attached, too. */
const volatile bool cfg_paired = false;
/* Whether system calls are hooked and not functions. */
const volatile bool cfg_by_syscalls = false;

/* An operation without a sleep is reported as one with an empty sleep, put together here. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_COUNT);
	__type(key, __u32);
	__type(value, struct event_sleep);
} awakes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_COUNT);
	__type(key, __u32);
	__type(value, struct full_stack);
} stacks SEC(".maps");

/* What is known of an operation when it begins. */
struct call_entry {
	struct file *file;
	__u64 position; /* as in struct event_call */
	__u64 pos;	/* the offset; -1: not known */
	__u64 bytes;
	__u64 fd; /* the first argument of the system call */
	__u32 op;
};

/*
 * `wait` may have noted the thread before the function was called, as one that waited for the
 * position of the file: then the operation began with that sleep.
 */
static __noinline __u64 slept_since(struct task_struct *task, __u64 now)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct event_sleep *sleep = bpf_map_lookup_elem(&sleeps, &tid);
	struct compat_syscall call;
	__u64 start_ns;

	if (!sleep)
		return now;
	start_ns = sleep_start(sleep);
	compat_syscall_read(task, &call);
	return start_ns && sleep_is_of(sleep, task, &call, 0) ? start_ns : now;
}

static __always_inline bool file_is_wanted(struct file *file)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	__u32 mode = BPF_CORE_READ(inode, i_mode);
	__u32 dev;

	if (!file_mode_is_storage(mode))
		return false;
	if (!cfg_common.filter_dev)
		return true;
	dev = (mode & S_IFMT) == S_IFBLK ? BPF_CORE_READ(inode, i_rdev)
					 : BPF_CORE_READ(inode, i_sb, s_dev);
	return bpf_map_lookup_elem(&filter_devs, &dev);
}

static __noinline int call_begin(const struct call_entry *c)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 pid_tgid = bpf_get_current_pid_tgid(), now;
	__u32 tid = (__u32)pid_tgid;
	__u64 key = call_key(tid, c->fd);
	struct file *file = c->file;
	struct event_call *known, fresh = {};

	if (!filter_task(pid_tgid >> 32))
		return 0;
	known = bpf_map_lookup_elem(&vfs_calls, &key);
	if (known && known->op.task == (__u64)task && call_start(known)) {
		if (known->op.file != (__u64)file && file_of_fd(task, (__u32)c->fd) != file) {
			known->nested++;
			return 0;
		}
		call_remove(known, key);
		loss_count(EVENT_LOSS_RETURN_MISSED);
	}
	if (!file_is_wanted(file))
		return 0;
	now = bpf_ktime_get_ns();
	fresh.op.start_ns = sleep_is_marked((__u64)task) ? slept_since(task, now) : now;
	fresh.op.file = (__u64)file;
	fresh.op.pos = c->pos;
	fresh.op.bytes = c->bytes;
	fresh.op.task = (__u64)task;
	fresh.op.pid = pid_tgid >> 32;
	fresh.op.tid = tid;
	fresh.op.fd = (__s32)c->fd;
	fresh.op.op = (__u8)c->op;
	fresh.op.probe = (__u8)cfg_common.probe;
	fresh.inode = (__u64)BPF_CORE_READ(file, f_inode);
	fresh.position = c->position;
	fresh.counter = compat_task_io_calls(task);
	fresh.switches = BPF_CORE_READ(task, nvcsw);
	if (bpf_map_update_elem(&vfs_calls, &key, &fresh, BPF_ANY) < 0)
		loss_count(EVENT_LOSS_MAP_FULL);
	return 0;
}

/* The offset of an appending write is known only when it has been done. */
static __always_inline bool appends(struct file *file, __u32 op)
{
	return op == EVENT_OP_WRITE && (BPF_CORE_READ(file, f_flags) & O_APPEND);
}

static __always_inline int function_entry(struct file *file, __u64 position, __u64 bytes, __u32 op,
	bool is_vector)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct call_entry c = { file, position, (__u64)-1, is_vector ? 0 : bytes,
		compat_syscall_first_arg(task), op };

	if (position && !appends(file, op))
		bpf_probe_read_kernel(&c.pos, sizeof(c.pos), (void *)position);
	return call_begin(&c);
}

/* `offset` is that of the arguments; -1: there is none, and the position of the file counts. */
static __always_inline int syscall_entry(const struct syscall_enter_context *ctx, __u64 bytes,
	__u64 offset, __u32 op)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct call_entry c = { file_of_fd(task, (__u32)ctx->args[0]), 0, offset, bytes,
		ctx->args[0], op };

	if (!c.file)
		return 0;
	if (appends(c.file, op)) {
		c.pos = (__u64)-1;
	} else if (offset == (__u64)-1) {
		c.pos = compat_file_position(c.file, task);
		c.position = (__u64)c.file + bpf_core_field_offset(struct file, f_pos);
	}
	return call_begin(&c);
}

/*
 * The position of the file was read before the kernel took it, and another thread may have moved it
 * since. `done` is by how much the operation has moved it.
 */
static __always_inline void check_position(const struct event_call *call, __s64 done,
	struct event_sleep *awake)
{
	__u64 pos = 0;

	if (!cfg_by_syscalls || !call->position)
		return;
	bpf_probe_read_kernel(&pos, sizeof(pos), (void *)call->position);
	if (pos - (__u64)done != call->op.pos)
		awake->op.pos = (__u64)-1;
}

/* Fills in everything but the stack; `done` is as in check_position(). */
static __always_inline void call_describe(struct task_struct *task, const struct event_call *call,
	__s64 done, struct event_sleep *awake)
{
	struct compat_syscall syscall;

	compat_syscall_read(task, &syscall);
	awake->op = call->op;
	awake->inode = call->inode;
	awake->own_nr = syscall.nr < COMPAT_SYSCALL_32BIT ? (__s16)syscall.nr : -1;
	awake->args[1] = syscall.args[1];
	awake->args[2] = syscall.args[2];
	/* Where `wait` is not attached, or has no room, nobody knows how long it slept. */
	awake->flags = BPF_CORE_READ(task, nvcsw) == call->switches ? EVENT_AWAKE : 0;
	awake->slept_ns = 0;
	awake->sleeps = 0;
	awake->stack_len = 0;
	awake->stack_sleep = 0;
	awake->path[0] = '\0';
	if (file_of_fd(task, (__u32)call->op.fd) != (struct file *)call->op.file)
		awake->op.fd = -1;
	check_position(call, done, awake);
}

/*
 * Whether what returns is what was seen to begin, and not a later operation on a descriptor of the
 * same number: the kernel may have skipped the program at the return, or a detach have been
 * cancelled when that was gone. One that was refused has not been counted.
 */
static __always_inline bool call_returns(struct task_struct *task, const struct event_call *call,
	const struct sleep_return *r)
{
	__u64 done = compat_task_io_calls(task) - call->counter;

	if (!compat_counts_io_calls())
		return true;
	return done == r->counted || (done == 0 && r->ret < 0);
}

/* Reports an operation in which no sleep was noted. Returns whether it was reported. */
static __noinline int call_report(void *ctx, struct task_struct *task,
	const struct event_call *call, const struct sleep_return *r)
{
	__u32 slot = r->slot;
	struct event_sleep *awake = bpf_map_lookup_elem(&awakes, &slot);
	struct event_operation *e = scratch_get(slot);
	struct full_stack *stack = bpf_map_lookup_elem(&stacks, &slot);
	__u64 now = bpf_ktime_get_ns();

	if (!awake || !e || !stack || now - call->op.start_ns < cfg_common.min_stall_ns)
		return 0;
	call_describe(task, call, r->ret > 0 ? r->ret : 0, awake);
	return_complete(awake, r);
	sleep_read_stack(ctx, awake, stack);
	e->header.ts_ns = now;
	e->dur_ns = now - call->op.start_ns;
	e->ret = r->ret;
	e->flags = EVENT_FINISHED;
	return sleep_emit(task, awake, e, slot);
}

/* The return of an operation that has been seen to begin. */
static __noinline void call_end(void *ctx, struct task_struct *task, struct event_call *call,
	struct sleep_return *r)
{
	__u64 key = call_key(call->op.tid, (__u32)call->op.fd), start_ns = call_start(call);
	struct event_sleep *sleep = NULL;
	__u32 tid = call->op.tid;
	int reported;

	if (call->nested) {
		call->nested--;
		call->counter += r->counted;
		return;
	}
	if (!call_returns(task, call, r)) {
		call_remove(call, key);
		loss_count(EVENT_LOSS_RETURN_MISSED);
		return_from(r);
		return;
	}
	if (!cfg_by_syscalls) {
		r->file = (struct file *)call->op.file;
		r->pos = call->position;
	}
	if (sleep_is_marked((__u64)task))
		sleep = bpf_map_lookup_elem(&sleeps, &tid);
	/* A thread does one thing after the other, so this sleep was in this operation. */
	if (sleep && sleep_start(sleep) >= start_ns) {
		sleep->op.start_ns = start_ns;
		reported = return_finish(task, sleep, r);
	} else {
		reported = call_report(ctx, task, call, r);
	}
	call_remove(call, key);
	if (r->ret < 0 && !reported && return_is_failure(r->ret))
		failure_report(task, r);
}

static __always_inline int vfs_return(void *ctx, struct sleep_return *r)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct event_call *call =
		cfg_paired ? call_find(task, (__u32)bpf_get_current_pid_tgid()) : NULL;

	if (call)
		call_end(ctx, task, call, r);
	else
		return_from(r);
	return 0;
}

static __always_inline int function_return(void *ctx, struct file *file, __u64 pos, long ret,
	__u32 op, __u32 slot, bool is_vector)
{
	/* vfs_read() counts a read before it returns, the caller of vfs_readv() after. */
	struct sleep_return r = { file, pos, ret, -1, op, slot, !is_vector, is_vector };

	return vfs_return(ctx, &r);
}

#define PLAIN_ARGS struct file *file, char *buf, unsigned long count, loff_t *pos
#define VECTOR_ARGS                                                                                \
	struct file *file, const struct iovec *buf, unsigned long count, loff_t *pos, int flags

/*
 * The programs of one function: <function>_fentry, _fexit, _kprobe and _kretprobe. `args` are the
 * function's own, since fexit finds the result behind the last of them. User space attaches the
 * kprobes through events that it makes in tracefs.
 */
#define FUNCTION_PROGRAMS(function, op, slot, args, is_vector)                                     \
	SEC("fentry/" #function)                                                                   \
	int BPF_PROG(function##_fentry, args)                                                      \
	{                                                                                          \
		return function_entry(file, compat_int_pointer_arg(ctx, 3), count, op, is_vector); \
	}                                                                                          \
                                                                                                   \
	SEC("kprobe")                                                                              \
	int BPF_KPROBE(function##_kprobe, struct file *file, void *buf, unsigned long count,       \
		loff_t *pos)                                                                       \
	{                                                                                          \
		return function_entry(file, (__u64)pos, count, op, is_vector);                     \
	}                                                                                          \
                                                                                                   \
	SEC("fexit/" #function)                                                                    \
	int BPF_PROG(function##_fexit, args, long ret)                                             \
	{                                                                                          \
		return function_return(ctx, file, compat_int_pointer_arg(ctx, 3), ret, op, slot,   \
			is_vector);                                                                \
	}                                                                                          \
                                                                                                   \
	SEC("kretprobe")                                                                           \
	int BPF_KRETPROBE(function##_kretprobe, long ret)                                          \
	{                                                                                          \
		return function_return(ctx, NULL, 0, ret, op, slot, is_vector);                    \
	}

FUNCTION_PROGRAMS(vfs_read, EVENT_OP_READ, SCRATCH_READ, PLAIN_ARGS, false)
FUNCTION_PROGRAMS(vfs_write, EVENT_OP_WRITE, SCRATCH_WRITE, PLAIN_ARGS, false)
FUNCTION_PROGRAMS(vfs_readv, EVENT_OP_READ, SCRATCH_READV, VECTOR_ARGS, true)
FUNCTION_PROGRAMS(vfs_writev, EVENT_OP_WRITE, SCRATCH_WRITEV, VECTOR_ARGS, true)

/*
 * The programs of one system call: sys_enter_<call>_tp and sys_exit_<call>_tp. The whole call has
 * been counted by the second. `offset` is the number of that argument; -1: there is none.
 */
#define SYSCALL_PROGRAMS(call, op, slot, is_vector, offset)                                        \
	SEC("tracepoint/syscalls/sys_enter_" #call)                                                \
	int sys_enter_##call##_tp(struct syscall_enter_context *ctx)                               \
	{                                                                                          \
		return syscall_entry(ctx, is_vector ? 0 : ctx->args[2],                            \
			(offset) < 0 ? (__u64)-1 : ctx->args[(offset)&3], op);                     \
	}                                                                                          \
                                                                                                   \
	SEC("tracepoint/syscalls/sys_exit_" #call)                                                 \
	int sys_exit_##call##_tp(struct syscall_exit_context *ctx)                                 \
	{                                                                                          \
		struct sleep_return r = { NULL, 0, ctx->ret, (__s32)ctx->id, op, slot, 1,          \
			is_vector };                                                               \
                                                                                                   \
		return vfs_return(ctx, &r);                                                        \
	}

SYSCALL_PROGRAMS(read, EVENT_OP_READ, SCRATCH_READ, false, -1)
SYSCALL_PROGRAMS(pread64, EVENT_OP_READ, SCRATCH_PREAD, false, 3)
SYSCALL_PROGRAMS(write, EVENT_OP_WRITE, SCRATCH_WRITE, false, -1)
SYSCALL_PROGRAMS(pwrite64, EVENT_OP_WRITE, SCRATCH_PWRITE, false, 3)
SYSCALL_PROGRAMS(readv, EVENT_OP_READ, SCRATCH_READV, true, -1)
SYSCALL_PROGRAMS(preadv, EVENT_OP_READ, SCRATCH_PREADV, true, 3)
SYSCALL_PROGRAMS(preadv2, EVENT_OP_READ, SCRATCH_PREADV2, true, 3)
SYSCALL_PROGRAMS(writev, EVENT_OP_WRITE, SCRATCH_WRITEV, true, -1)
SYSCALL_PROGRAMS(pwritev, EVENT_OP_WRITE, SCRATCH_PWRITEV, true, 3)
SYSCALL_PROGRAMS(pwritev2, EVENT_OP_WRITE, SCRATCH_PWRITEV2, true, 3)

/*
 * Whether the thread still stands in the operation. The kernel counts a read or write when it is
 * done, and says in the registers that the system call is.
 */
static __always_inline bool call_is_under_way(struct task_struct *task,
	const struct event_call *call)
{
	return (__u32)BPF_CORE_READ(task, pid) == call->op.tid &&
		!compat_syscall_is_done(compat_user_registers(task)) &&
		(__u32)compat_syscall_first_arg(task) == (__u32)call->op.fd &&
		compat_task_io_calls(task) == call->counter;
}

/* Looks, one each second. A thread that waits for a CPU there takes that long to its return. */
#define SUSPECT_MAX 10

/* The thread is elsewhere, or between the count and the program at the return. */
static __always_inline void call_suspect(struct event_call *call, __u64 key, __u64 start_ns)
{
	if (call->suspect++ < SUSPECT_MAX || call_start(call) != start_ns)
		return;
	call_remove(call, key);
	loss_count(EVENT_LOSS_RETURN_MISSED);
}

/*
 * Never attached: user space runs it through BPF_PROG_TEST_RUN. Args are key and start of an
 * operation. Emits it as one in flight, and returns 1, unless `wait` reports it, because its thread
 * sleeps.
 */
SEC("raw_tp")
int vfs_resolve(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 key = ctx->args[0], start_ns = ctx->args[1];
	__u32 tid = (__u32)(key >> 32), awake_slot = SCRATCH_RESOLVE;
	__u32 slot = SCRATCH_OF_USER + SCRATCH_RESOLVE;
	struct event_call *call = bpf_map_lookup_elem(&vfs_calls, &key);
	struct event_sleep *sleep = bpf_map_lookup_elem(&sleeps, &tid);
	struct event_sleep *awake = bpf_map_lookup_elem(&awakes, &awake_slot);
	struct event_operation *e = scratch_get(slot);
	struct task_struct *task;
	__u64 now = bpf_ktime_get_ns();

	if (!call || !awake || !e || call_start(call) != start_ns)
		return 0;
	if (sleep && sleep_start(sleep) == start_ns && *(volatile __u64 *)&sleep->asleep_ns)
		return 0;
	task = (struct task_struct *)call->op.task;
	if (!call_is_under_way(task, call)) {
		call_suspect(call, key, start_ns);
		return 0;
	}
	call->suspect = 0;
	call_describe(task, call, 0, awake);
	e->header.ts_ns = now;
	e->dur_ns = now - start_ns;
	e->ret = 0;
	e->flags = EVENT_NO_RET;
	if (!sleep_fill(task, awake, e, slot) || call_start(call) != start_ns)
		return 0;
	event_emit(e);
	return 1;
}

char LICENSE[] SEC("license") = "GPL";
