/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Locks of the kernel that threads of the incident wait for, and the lines about them. */
#include <string.h>

#include "enrich/enrich.h"
#include "enrich/waits.h"
#include "session/internal.h"

/*
 * Locks that are asked about in a scan, those with most waiters. A question takes 10 us, and the
 * stack of a thread that runs an interrupt of its CPU.
 */
#define ASKED_MAX 4
/* Threads that turn out to wait for something else; each takes some 100 us. */
#define LEFT_MAX 16
/* Operations between two scans of which it is asked for which lock they wait, if it is another. */
#define OTHERS_ASKED_MAX 64
/* A line is due as one of a stuck operation is: each second at first. */
#define REPORT_OFTEN_NS (5 * NSEC_PER_SEC)

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
	struct event_lock answer;

	if (!may_be_other_lock(op)) {
		stuck->lock_asked = false;
		return NULL;
	}
	if (lock && lock->kind == RECORD_KERNEL_LOCK_other)
		return lock;
	if (stuck->lock_asked || s->locks.others_asked == OTHERS_ASKED_MAX ||
		!session_can_ask_kernel(s))
		return NULL;
	stuck->lock_asked = true;
	s->locks.others_asked++;
	if (!session_ask_lock(s, op, &answer))
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

static void ask_about_locks(struct session *s)
{
	struct event_lock answer;
	enum session_lock_state state;
	uint32_t asked = 0, left = 0;

	for (unsigned int i = 0; i < ASKED_MAX; i++) {
		struct session_lock *lock = find_busiest(&s->locks, asked);

		if (!lock)
			return;
		state = session_ask_holder(s, lock, &answer);
		if (state == SESSION_LOCK_LEFT && left++ < LEFT_MAX) {
			forget_longest(s, lock);
			i--;
			continue;
		}
		asked |= 1u << (lock - s->locks.list);
		if (state != SESSION_LOCK_HELD) {
			lock->holder = 0;
			continue;
		}
		session_note_holder(s, lock, &answer);
		write_lock(s, lock, &answer);
	}
}

void session_scan_locks(struct session *s)
{
	/* Also while none of them waits for a lock. */
	s->locks.others_asked = 0;
	if (!s->locks.last_id)
		return;
	count_waiters(s);
	if (session_can_ask_kernel(s))
		ask_about_locks(s);
	make_room(s);
}
