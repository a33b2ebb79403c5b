/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Asks the kernel which lock a thread waits for, who holds it, and what that one does. */
#include <sched.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "enrich/enrich.h"
#include "enrich/waits.h"
#include "session/internal.h"
#include "util/cleanup.h"

/* The words of a lock are read again when they change meanwhile. */
#define TRIES 3
/*
 * The kernel waits for the CPU of the holder, which takes microseconds. Where interrupts are off
 * there, as while a message goes to a serial console, or a hypervisor runs something else, it takes
 * as long as that: then no holder is interrupted any more in this incident.
 */
#define LATE_NS (20 * NSEC_PER_MSEC)

/* The programs of the probe that knows about locks, and the map of their answer. */
struct lock_source {
	int lock_fd;
	int stack_fd;
	int answer_fd;
};

static bool find_source(const struct session *s, struct lock_source *ret_source)
{
	for (unsigned int i = 0; i < CONFIG_PROBE_COUNT; i++) {
		const struct probe *probe = &s->probes.probes[i];
		const struct bpf_map *map;

		if (!s->probes.attached[i] || !probe->ops->lock_program)
			continue;
		map = probe_map(probe, "locks");
		*ret_source = (struct lock_source){
			.lock_fd = probe_program_fd(probe, probe->ops->lock_program),
			.stack_fd = probe_program_fd(probe, probe->ops->lock_stack_program),
			.answer_fd = map ? bpf_map__fd(map) : -1,
		};
		return ret_source->lock_fd >= 0 && ret_source->answer_fd >= 0;
	}
	return false;
}

bool session_can_ask_kernel(const struct session *s)
{
	struct lock_source source;

	return find_source(s, &source);
}

/* What wait_lock() of bpf/locks.bpf.h says. */
enum lock_answer {
	LOCK_UNKNOWN,
	LOCK_HELD,
	LOCK_ADDRESS,
};

static enum lock_answer ask_kernel(const struct lock_source *source, uint32_t tid,
	uint64_t start_ns, uint32_t kind, struct event_lock *ret_answer)
{
	uint64_t args[3] = { tid, start_ns, kind };
	const uint32_t zero = 0;
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args));

	if (bpf_prog_test_run_opts(source->lock_fd, &opts) < 0 || !opts.retval ||
		bpf_map_lookup_elem(source->answer_fd, &zero, ret_answer) < 0)
		return LOCK_UNKNOWN;
	return (enum lock_answer)opts.retval;
}

bool session_ask_lock(const struct session *s, const struct record_operation *op,
	struct event_lock *ret_answer)
{
	struct lock_source source;

	return find_source(s, &source) &&
		ask_kernel(&source, (uint32_t)op->tid, op->start_mono_ns, EVENT_LOCK_CONTENDED,
			ret_answer) != LOCK_UNKNOWN;
}

/* The word of the owner names who wrote, or who became a reader last: that may be the thread. */
static enum session_lock_state judge_answer(const struct session_lock *lock,
	struct event_lock *answer)
{
	if (lock->kind == RECORD_KERNEL_LOCK_other && answer->address != lock->address)
		return SESSION_LOCK_LEFT;
	if (answer->tid != lock->tid)
		return SESSION_LOCK_HELD;
	if (answer->readers == 0)
		return SESSION_LOCK_LEFT;
	answer->pid = answer->tid = 0;
	answer->task = 0;
	return SESSION_LOCK_HELD;
}

/* Of the thread that has waited for it longest. */
static enum session_lock_state ask(const struct lock_source *source,
	const struct session_lock *lock, struct event_lock *ret_answer)
{
	static const uint32_t kinds[RECORD_KERNEL_LOCK_COUNT] = {
		[RECORD_KERNEL_LOCK_memory_map] = EVENT_LOCK_MEMORY_MAP,
		[RECORD_KERNEL_LOCK_inode] = EVENT_LOCK_INODE,
		[RECORD_KERNEL_LOCK_other] = EVENT_LOCK_CONTENDED,
	};

	for (unsigned int i = 0; i < TRIES; i++)
		if (ask_kernel(source, lock->tid, lock->start_ns, kinds[lock->kind], ret_answer) ==
			LOCK_HELD)
			return judge_answer(lock, ret_answer);
	return SESSION_LOCK_UNKNOWN;
}

/*
 * The event loop has a real-time priority, and may have been given the CPU of the holder while
 * another one was free. It goes to another one, and the holder runs on.
 */
static void step_aside(const struct session *s)
{
	const struct record_reading *last = watch_last(s->o.watch);
	cpu_set_t all, others;
	int cpu = sched_getcpu();

	if (!last || cpu < 0 || sched_getaffinity(0, sizeof(all), &all) < 0)
		return;
	others = all;
	CPU_CLR((unsigned int)cpu, &others);
	if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof(others), &others) < 0)
		return;
	/* CPUs that come online later are in it, unless it was narrower before. */
	if ((uint32_t)CPU_COUNT(&all) == last->cpu.cpus)
		memset(&all, 0xff, sizeof(all));
	sched_setaffinity(0, sizeof(all), &all);
}

static bool is_kept_from_cpu(const struct event_lock *answer)
{
	return answer->tid && answer->cpu < 0 && answer->state == 'R';
}

enum session_lock_state session_ask_holder(const struct session *s, const struct session_lock *lock,
	struct event_lock *ret_answer)
{
	struct lock_source source;
	enum session_lock_state state;

	if (!find_source(s, &source))
		return SESSION_LOCK_UNKNOWN;
	state = ask(&source, lock, ret_answer);
	if (state != SESSION_LOCK_HELD || !is_kept_from_cpu(ret_answer))
		return state;
	step_aside(s);
	return ask(&source, lock, ret_answer);
}

/* Interrupts the thread on its CPU. False: it does not run there any more. */
static bool take_stack(struct session *s, const struct lock_source *source,
	struct session_lock *lock, const struct event_lock *answer)
{
	const uint64_t begin_ns = clock_mono_ns();
	uint64_t args[1] = { answer->task };
	const uint32_t zero = 0;
	char kstack[RECORD_STACK_SIZE];
	struct event_lock taken;
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args),
		.flags = BPF_F_TEST_RUN_ON_CPU, .cpu = (uint32_t)answer->cpu);
	int r;

	r = bpf_prog_test_run_opts(source->stack_fd, &opts);
	s->locks.interrupts_late |= clock_mono_ns() - begin_ns >= LATE_NS;
	if (r < 0 || opts.retval != 1 || bpf_map_lookup_elem(source->answer_fd, &zero, &taken) < 0)
		return false;
	enrich_kernel_stack(s->o.enrich, taken.stack, ARRAY_SIZE(taken.stack), false, kstack);
	text_copy(lock->kstack, sizeof(lock->kstack), waits_skip_interrupt(kstack));
	return true;
}

/* A thread that runs has no stack in /proc, and one that does not run cannot be interrupted. */
static void find_stack(struct session *s, struct session_lock *lock,
	const struct event_lock *answer)
{
	struct lock_source source;
	const bool can_interrupt = find_source(s, &source) && source.stack_fd >= 0;
	const struct stack_request request = { lock->asked_ns, answer->tid,
		SESSION_STACK_OF_HOLDER };

	/* It may be in another interrupt just now, which hides what is behind. */
	for (unsigned int i = 0;
		i < TRIES && answer->cpu >= 0 && can_interrupt && !s->locks.interrupts_late; i++)
		if (take_stack(s, &source, lock, answer) &&
			(answer->readers == 0 || waits_holds_map(lock->kstack)))
			return;
	if (s->stacks)
		stack_reader_ask(s->stacks, &request, clock_mono_ns());
}

/*
 * The word of the owner is that of the writer. For readers it names who became one last: a single
 * reader is that thread if it was the writer before, or if its functions show that it has the lock.
 */
static void judge_holder(struct session_lock *lock, uint32_t readers)
{
	if (readers == 0)
		lock->holds = true;
	else if (readers > 1)
		lock->holds = false;
	else if (lock->kind == RECORD_KERNEL_LOCK_memory_map && !lock->is_other &&
		waits_holds_map(lock->kstack))
		lock->holds = true;
}

void session_note_holder(struct session *s, struct session_lock *lock,
	const struct event_lock *answer)
{
	/* Where others have let go, the stack may be from when the thread held it with them. */
	if (lock->address != answer->address || lock->task != answer->task ||
		(lock->readers > 1 && answer->readers == 1)) {
		lock->address = answer->address;
		lock->task = answer->task;
		lock->held_since_ns = lock->asked_ns = clock_mono_ns();
		lock->reported_ns = 0;
		lock->kstack[0] = '\0';
		lock->holds = false;
	}
	lock->is_other = answer->is_other;
	lock->readers = answer->readers;
	lock->holder = (int32_t)answer->tid;
	/*
	 * The holder may have let go and taken it again since the last scan. But waiters get it in
	 * the order in which they came, so it has not since the first of them came.
	 */
	if (lock->start_ns > lock->held_since_ns)
		lock->held_since_ns = lock->start_ns;
	if (answer->task)
		find_stack(s, lock, answer);
	judge_holder(lock, answer->readers);
}

void session_note_holder_stack(struct session *s, const struct stack_answer *answer)
{
	/* It may have been preempted in an interrupt. */
	const char *behind = waits_skip_interrupt(answer->kstack);

	for (uint32_t i = 0; i < SESSION_KERNEL_LOCKS_MAX && *answer->kstack; i++) {
		struct session_lock *lock = &s->locks.list[i];

		if (lock->asked_ns == answer->request.start_ns)
			text_copy(lock->kstack, sizeof(lock->kstack),
				*behind ? behind : answer->kstack);
	}
}
