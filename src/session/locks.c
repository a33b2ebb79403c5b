/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Asks the kernel who holds a lock that threads of the incident wait for. */
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "enrich/enrich.h"
#include "enrich/waits.h"
#include "session/internal.h"
#include "util/cleanup.h"

/*
 * Locks that are asked about in a scan, those with most waiters. A question takes 10 us, and the
 * stack of a thread that runs an interrupt of its CPU.
 */
#define ASKED_MAX 4
/* Threads that turn out to wait for something else; each takes some 100 us. */
#define LEFT_MAX 16
/* Operations between two scans of which it is asked for which lock they wait, if it is another. */
#define OTHERS_ASKED_MAX 64
/* The words of a lock are read again when they change meanwhile. */
#define TRIES 3
/*
 * The kernel waits for the CPU of the holder, which takes microseconds. Where interrupts are off
 * there, as while a message goes to a serial console, or a hypervisor runs something else, it takes
 * as long as that: then no holder is interrupted any more in this incident.
 */
#define LATE_NS (20 * NSEC_PER_MSEC)
/* A line is due as one of a stuck operation is: each second at first. */
#define REPORT_OFTEN_NS (5 * NSEC_PER_SEC)

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

static bool is_uncertain(const struct record_operation *op)
{
	return op->waits_for == RECORD_CAUSE_NONE && waits_may_be_for_inode(op->kstack);
}

static enum record_kernel_lock kind_of(const struct record_operation *op)
{
	/* Of which process is not known where it is not its own. */
	if (op->waits_for == RECORD_CAUSE_memory_map_lock)
		return waits_for_map_of_other(op->kstack) ? RECORD_KERNEL_LOCK_NONE
							  : RECORD_KERNEL_LOCK_memory_map;
	/* It may be another lock than that of the inode: the kernel is asked. */
	if (op->inode && (op->waits_for == RECORD_CAUSE_read_write_lock || is_uncertain(op)))
		return RECORD_KERNEL_LOCK_inode;
	return RECORD_KERNEL_LOCK_NONE;
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

enum lock_state {
	LOCK_NOT_KNOWN, /* nobody holds it now, or the kernel does not tell */
	LOCK_IS_HELD,
	LOCK_IS_LEFT, /* the thread that is asked about waits for something else by now */
};

/* The word of the owner names who wrote, or who became a reader last: that may be the thread. */
static enum lock_state judge_answer(const struct session_lock *lock, struct event_lock *answer)
{
	if (lock->kind == RECORD_KERNEL_LOCK_other && answer->address != lock->address)
		return LOCK_IS_LEFT;
	if (answer->tid != lock->tid)
		return LOCK_IS_HELD;
	if (answer->readers == 0)
		return LOCK_IS_LEFT;
	answer->pid = answer->tid = 0;
	answer->task = 0;
	return LOCK_IS_HELD;
}

/* Of the thread that has waited for it longest. */
static enum lock_state ask(const struct lock_source *source, const struct session_lock *lock,
	struct event_lock *ret_answer)
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
	return LOCK_NOT_KNOWN;
}

static bool is_lock_of(const struct session_lock *lock, enum record_kernel_lock kind,
	const struct record_operation *op, uint64_t address)
{
	const struct model_file_id file = model_file_id_of(op->dev, op->inode, op->path);

	if (lock->kind != kind)
		return false;
	if (kind == RECORD_KERNEL_LOCK_memory_map)
		return lock->pid == op->pid;
	if (kind == RECORD_KERNEL_LOCK_other)
		return lock->address == address;
	return model_is_same_file(&lock->file, &file);
}

/* NULL: there is no room. */
static struct session_lock *find_lock(struct session_locks *locks, enum record_kernel_lock kind,
	const struct record_operation *op, uint64_t address)
{
	struct session_lock *place = NULL;

	for (uint32_t i = 0; i < SESSION_KERNEL_LOCKS_MAX; i++) {
		struct session_lock *lock = &locks->list[i];

		if (lock->id && is_lock_of(lock, kind, op, address))
			return lock;
		if (!lock->id && !place)
			place = lock;
	}
	if (!place)
		return NULL;
	*place = (struct session_lock){
		.kind = kind,
		.id = ++locks->last_id,
		.pid = op->pid,
		.address = address,
	};
	text_copy(place->comm, sizeof(place->comm), op->comm);
	if (kind == RECORD_KERNEL_LOCK_inode) {
		place->file = model_file_id_of(op->dev, op->inode, op->path);
		model_set_path(place->path, op->path);
	}
	waits_taker(op->kstack, place->function, sizeof(place->function));
	return place;
}

/* Locks of the kernel are taken in D state; what is not known may be one, too. */
static bool may_be_other_lock(const struct record_operation *op)
{
	return op->state == 'D' &&
		(op->waits_for == RECORD_CAUSE_NONE ||
			op->waits_for == RECORD_CAUSE_read_write_lock ||
			op->waits_for == RECORD_CAUSE_mutex);
}

/*
 * Asked once of each wait of an operation. One that has got its lock may hang in the same operation
 * at something else, and come to another lock.
 */
static struct session_lock *find_other_lock(struct session *s, const struct record_operation *op,
	struct incident_stuck *stuck)
{
	struct session_lock *lock = stuck->lock ? &s->locks.list[stuck->lock - 1] : NULL;
	struct lock_source source;
	struct event_lock answer;

	if (!may_be_other_lock(op)) {
		stuck->lock_asked = false;
		return NULL;
	}
	if (lock && lock->kind == RECORD_KERNEL_LOCK_other)
		return lock;
	if (stuck->lock_asked || s->locks.others_asked == OTHERS_ASKED_MAX ||
		!find_source(s, &source))
		return NULL;
	stuck->lock_asked = true;
	s->locks.others_asked++;
	if (!ask_kernel(&source, (uint32_t)op->tid, op->start_mono_ns, EVENT_LOCK_CONTENDED,
		    &answer))
		return NULL;
	lock = find_lock(&s->locks, RECORD_KERNEL_LOCK_other, op, answer.address);
	if (lock)
		lock->is_mutex = answer.is_mutex;
	return lock;
}

void session_note_lock_wait(struct session *s, struct record_operation *op,
	struct incident_stuck *stuck)
{
	enum record_kernel_lock kind = kind_of(op);
	struct session_lock *lock =
		kind ? find_lock(&s->locks, kind, op, 0) : find_other_lock(s, op, stuck);

	/* The kernel has said that another thread has the lock. */
	if (lock && lock->holder && lock->holder != op->tid && is_uncertain(op))
		op->waits_for = RECORD_CAUSE_read_write_lock;
	if (lock && lock->kind == RECORD_KERNEL_LOCK_other)
		op->waits_for = lock->is_mutex ? RECORD_CAUSE_mutex : RECORD_CAUSE_read_write_lock;
	stuck->lock = lock ? (uint8_t)(lock - s->locks.list + 1) : 0;
	op->lock = lock ? lock->id : 0;
}

static void count_waiters(struct session *s)
{
	for (uint32_t i = 0; i < SESSION_KERNEL_LOCKS_MAX; i++) {
		s->locks.list[i].waiters = 0;
		s->locks.list[i].start_ns = 0;
	}
	for (uint32_t i = 0; i < INCIDENT_STUCK_SLOTS; i++) {
		const struct incident_stuck *stuck = &s->incident.stuck[i];
		struct session_lock *lock;

		if (!stuck->start_ns || !stuck->lock)
			continue;
		lock = &s->locks.list[stuck->lock - 1];
		lock->waiters++;
		if (lock->start_ns && lock->start_ns <= stuck->start_ns)
			continue;
		lock->start_ns = stuck->start_ns;
		lock->tid = stuck->tid;
	}
	/*
	 * Whoever waits for it next may wait for somebody else: who wrote last may have become
	 * a reader, and let go, which its word does not show.
	 */
	for (uint32_t i = 0; i < SESSION_KERNEL_LOCKS_MAX; i++)
		if (!s->locks.list[i].waiters) {
			s->locks.list[i].holder = 0;
			s->locks.list[i].task = 0;
			s->locks.list[i].holds = false;
		}
}

static void forget_waiters(struct session *s, const struct session_lock *lock)
{
	for (uint32_t i = 0; i < INCIDENT_STUCK_SLOTS; i++)
		if (s->incident.stuck[i].lock == lock - s->locks.list + 1)
			s->incident.stuck[i].lock = 0;
}

/*
 * For a lock that threads begin to wait for until the next scan. Without waiters it is over; else
 * the one with fewest goes, whose threads may bring it back.
 */
static void make_room(struct session *s)
{
	struct session_lock *least = s->locks.list;

	for (uint32_t i = 0; i < SESSION_KERNEL_LOCKS_MAX; i++) {
		struct session_lock *lock = &s->locks.list[i];

		if (!lock->id)
			return;
		if (lock->waiters < least->waiters)
			least = lock;
	}
	forget_waiters(s, least);
	session_release_lock(s, least);
}

/* The lock with most waiters that has not been asked about in this scan. */
static struct session_lock *find_busiest(struct session_locks *locks, uint32_t asked)
{
	struct session_lock *busiest = NULL;

	for (uint32_t i = 0; i < SESSION_KERNEL_LOCKS_MAX; i++)
		if (locks->list[i].waiters && !(asked & 1u << i) &&
			(!busiest || locks->list[i].waiters > busiest->waiters))
			busiest = &locks->list[i];
	return busiest;
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
static void find_stack(struct session *s, const struct lock_source *source,
	struct session_lock *lock, const struct event_lock *answer)
{
	const struct stack_request request = { lock->asked_ns, answer->tid,
		SESSION_STACK_OF_HOLDER };

	/* It may be in another interrupt just now, which hides what is behind. */
	for (unsigned int i = 0;
		i < TRIES && answer->cpu >= 0 && source->stack_fd >= 0 && !s->locks.interrupts_late;
		i++)
		if (take_stack(s, source, lock, answer) &&
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

static void note_answer(struct session *s, const struct lock_source *source,
	struct session_lock *lock, const struct event_lock *answer)
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
		find_stack(s, source, lock, answer);
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

static void fill_holder(const struct session *s, const struct session_lock *lock,
	const struct event_lock *answer, struct record_lock_holder *h)
{
	const struct sql_operation operation = { .tid = (int32_t)answer->tid,
		.start_ns = lock->held_since_ns,
		.end_ns = clock_mono_ns() };

	h->present = true;
	h->basis = RECORD_BASIS_measured;
	h->pid = (int32_t)answer->pid;
	h->tid = (int32_t)answer->tid;
	text_copy(h->comm, sizeof(h->comm), answer->comm);
	h->state = (char)answer->state;
	h->syscall = answer->syscall;
	h->held_ns = operation.end_ns - lock->held_since_ns;
	h->connection_id = sql_find_connection(s->o.sql, &operation);
	text_copy(h->kstack, sizeof(h->kstack), lock->kstack);
	if (answer->state != 'R')
		h->waits_for = waits_for(lock->kstack);
}

bool session_lock_is_due(const struct session_lock *lock, uint64_t waited_ns)
{
	return lock->reported_ns < REPORT_OFTEN_NS ||
		waited_ns >= lock->reported_ns + lock->reported_ns / 2;
}

static struct record_lock_wait *begin_line(struct session *s, const struct session_lock *lock)
{
	struct record_lock_wait *r = &session_begin_line(s, RECORD_LOCK)->lock_wait;

	r->kind = lock->is_other ? RECORD_KERNEL_LOCK_other : lock->kind;
	r->id = lock->id;
	r->pid = lock->pid;
	text_copy(r->comm, sizeof(r->comm), lock->comm);
	text_copy(r->path, sizeof(r->path), lock->path);
	if (lock->is_other)
		text_copy(r->function, sizeof(r->function), lock->function);
	r->dev = lock->file.dev;
	r->inode = record_lock_has_reader(lock->kind) ? lock->address : lock->file.inode;
	r->fd = -1;
	return r;
}

static void write_lock(struct session *s, struct session_lock *lock,
	const struct event_lock *answer)
{
	struct record_lock_wait *r = begin_line(s, lock);

	r->waiters = lock->waiters;
	r->longest_ns = clock_mono_ns() - lock->start_ns;
	r->readers = answer->readers;
	if (lock->holds)
		fill_holder(s, lock, answer, &r->holder);
	session_write_lock(s, lock);
}

void session_write_lock(struct session *s, struct session_lock *lock)
{
	const struct record_lock_wait *r = &s->record.lock_wait;
	const struct record_lock_holder *h = &r->holder;

	if (session_lock_is_due(lock, r->longest_ns)) {
		lock->reported_ns = r->longest_ns;
		lock->kept.waiters = 0;
		session_write_line(s);
		return;
	}
	lock->kept = (struct session_kept_lock){
		.looked_ns = clock_mono_ns(),
		.waiters = r->waiters,
		.readers = r->readers,
		.fd = r->fd,
		.tries = r->tries,
		.basis = h->basis,
		.longest_ns = r->longest_ns,
		.held_ns = h->held_ns,
		.connection_id = h->connection_id,
		.pid = h->pid,
		.tid = h->tid,
		.syscall = h->syscall,
		.deadlocked_with = h->deadlocked_with,
		.waits_for = h->waits_for,
		.state = h->state,
	};
	text_copy(lock->kept.comm, sizeof(lock->kept.comm), h->comm);
}

static void write_kept(struct session *s, const struct session_lock *lock)
{
	const struct session_kept_lock *kept = &lock->kept;
	struct record_lock_wait *r = begin_line(s, lock);
	struct record_lock_holder *h = &r->holder;

	r->waiters = kept->waiters;
	r->longest_ns = kept->longest_ns;
	r->readers = kept->readers;
	r->fd = kept->fd;
	r->tries = kept->tries;
	if (kept->pid) {
		h->present = true;
		h->basis = kept->basis;
		h->pid = kept->pid;
		h->tid = kept->tid;
		text_copy(h->comm, sizeof(h->comm), kept->comm);
		h->state = kept->state;
		h->syscall = kept->syscall;
		h->waits_for = kept->waits_for;
		h->held_ns = kept->held_ns;
		h->deadlocked_with = kept->deadlocked_with;
		h->connection_id = kept->connection_id;
	}
	session_set_line_time(s, kept->looked_ns);
	session_write_line(s);
}

void session_release_lock(struct session *s, struct session_lock *lock)
{
	if (lock->id && lock->kept.waiters)
		write_kept(s, lock);
	*lock = (struct session_lock){ 0 };
}

void session_end_locks(struct session *s)
{
	for (uint32_t i = 0; i < SESSION_LOCKS_MAX; i++)
		session_release_lock(s, &s->locks.list[i]);
}

/* What it waits for instead is found with its next line. */
static void forget_longest(struct session *s, const struct session_lock *lock)
{
	for (uint32_t i = 0; i < INCIDENT_STUCK_SLOTS; i++) {
		struct incident_stuck *stuck = &s->incident.stuck[i];

		if (stuck->lock != lock - s->locks.list + 1 || stuck->tid != lock->tid ||
			stuck->start_ns != lock->start_ns)
			continue;
		stuck->lock = 0;
		stuck->lock_asked = false;
	}
	count_waiters(s);
}

static void ask_about_locks(struct session *s, const struct lock_source *source)
{
	struct event_lock answer;
	enum lock_state state;
	uint32_t asked = 0, left = 0;

	for (unsigned int i = 0; i < ASKED_MAX; i++) {
		struct session_lock *lock = find_busiest(&s->locks, asked);

		if (!lock)
			return;
		state = ask(source, lock, &answer);
		if (state == LOCK_IS_HELD && is_kept_from_cpu(&answer)) {
			step_aside(s);
			state = ask(source, lock, &answer);
		}
		if (state == LOCK_IS_LEFT && left++ < LEFT_MAX) {
			forget_longest(s, lock);
			i--;
			continue;
		}
		asked |= 1u << (lock - s->locks.list);
		if (state != LOCK_IS_HELD) {
			lock->holder = 0;
			continue;
		}
		note_answer(s, source, lock, &answer);
		write_lock(s, lock, &answer);
	}
}

void session_scan_locks(struct session *s)
{
	struct lock_source source;

	/* Also while none of them waits for a lock. */
	s->locks.others_asked = 0;
	if (!s->locks.last_id)
		return;
	count_waiters(s);
	if (find_source(s, &source))
		ask_about_locks(s, &source);
	make_room(s);
}
