/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reports mutexes of watched programs at which threads stand still. */
#include <string.h>

#include "enrich/waits.h"
#include "session/internal.h"
#include "util/clock.h"

/* What was seen so long before the trigger may have been over then. */
#define OLD_NS (2 * NSEC_PER_SEC)

/* NULL: there is no room. */
static struct session_lock *find_lock(struct session_locks *locks, const struct mutex_seen *seen)
{
	struct session_lock *lock;
	uint32_t mutexes = 0;

	for (uint32_t i = 0; i < locks->count; i++) {
		lock = &locks->list[i];
		if (lock->kind == RECORD_KERNEL_LOCK_mutex && lock->pid == seen->pid &&
			lock->address == seen->address)
			return lock;
		mutexes += lock->kind == RECORD_KERNEL_LOCK_mutex;
	}
	/* The other places are for locks of the kernel. */
	if (mutexes == MUTEXES_MAX || locks->count == SESSION_LOCKS_MAX)
		return NULL;
	lock = &locks->list[locks->count++];
	*lock = (struct session_lock){
		.kind = RECORD_KERNEL_LOCK_mutex,
		.id = locks->count,
		.pid = seen->pid,
		.address = seen->address,
	};
	return lock;
}

static void fill_holder(const struct session *s, const struct mutex_seen *seen, uint64_t look_ns,
	struct record_lock_holder *h)
{
	const struct sql_operation operation = { .tid = seen->holder,
		.start_ns = seen->held_since_ns,
		.end_ns = look_ns };

	h->present = true;
	h->pid = seen->pid;
	h->tid = seen->holder;
	text_copy(h->comm, sizeof(h->comm), seen->holder_comm);
	h->state = seen->holder_state;
	h->syscall = seen->holder_syscall;
	h->held_ns = look_ns - seen->held_since_ns;
	h->deadlocked_with = seen->deadlocked_with;
	h->connection_id = sql_find_connection(s->o.sql, &operation);
	text_copy(h->kstack, sizeof(h->kstack), seen->holder_stack);
	h->waits_for = waits_for(h->kstack);
}

/* Threads may wait for each other for days, and nobody is worse off by it now. */
static bool is_of_incident(const struct session *s, const struct mutex_seen *seen)
{
	const struct record_trigger *trigger = &s->opened.trigger;

	return seen->since_ns >= s->well_ns ||
		(trigger->pid == seen->pid &&
			strcmp(trigger->rule, rules_name(CONFIG_RULE_mutex)) == 0);
}

static void write_mutex(struct session *s, const struct mutex_seen *seen, uint64_t look_ns)
{
	struct session_lock *lock = find_lock(&s->locks, seen);
	struct record_lock_wait *r;

	if (!lock)
		return;
	if (lock->holder != seen->holder)
		lock->reported_ns = 0;
	lock->holder = seen->holder;
	r = &session_begin_line(s, RECORD_LOCK)->lock_wait;
	r->kind = lock->kind;
	r->id = lock->id;
	r->pid = seen->pid;
	text_copy(r->comm, sizeof(r->comm), seen->comm);
	r->waiters = seen->waiters;
	r->longest_ns = look_ns - seen->since_ns;
	if (seen->holder)
		fill_holder(s, seen, look_ns, &r->holder);
	lock->pid = seen->pid;
	text_copy(lock->comm, sizeof(lock->comm), seen->comm);
	session_write_lock(s, lock);
}

static const struct mutexes_answer *find(struct session *s)
{
	const struct watch_process *processes;
	unsigned int count;

	processes = watch_processes(s->o.watch, &count);
	return mutexes_find(s->mutexes, processes, count, session_is_open(s), clock_mono_ns());
}

void session_look_for_mutexes(struct session *s)
{
	const struct mutexes_answer *answer;

	if (!s->mutexes)
		return;
	answer = find(s);
	if (s->state != SESSION_TRACING || answer->look_ns == s->mutexes_look_ns ||
		answer->look_ns + OLD_NS < s->incident.trigger_ns)
		return;
	s->mutexes_look_ns = answer->look_ns;
	for (uint32_t i = 0; i < answer->count; i++)
		if (is_of_incident(s, &answer->list[i]))
			write_mutex(s, &answer->list[i], answer->look_ns);
}

void session_prepare_sample(struct session *s)
{
	struct record_held_mutex mutex = { 0 };
	const struct mutex_seen *worst = NULL;
	bool is_wanted;

	if (!s->mutexes)
		return;
	is_wanted = session_is_open(s) || s->o.config->rules[CONFIG_RULE_mutex].enabled;
	if (is_wanted)
		worst = mutexes_worst(find(s));
	if (worst) {
		mutex.present = true;
		mutex.waiters = worst->waiters;
		mutex.pid = worst->pid;
		mutex.holder = worst->holder;
		text_copy(mutex.comm, sizeof(mutex.comm), worst->comm);
	}
	watch_set_mutex(s->o.watch, &mutex);
	if (is_wanted && mutexes_lacks(s->mutexes, clock_mono_ns()))
		watch_count_unread(s->o.watch);
}
