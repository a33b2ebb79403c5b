/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Mutexes of programs that threads stood still at: who held one, and how that is said. */
#include <inttypes.h>

#include "util/clock.h"
#include "util/syscalls.h"
#include "verdict/rules.h"
#include "verdict/words.h"

/* A holder that waited so long for something else held the mutex meanwhile. */
#define HOLDER_NS (NSEC_PER_SEC / 4)

bool verdict_mutex_matters(const struct record_lock_wait *lock)
{
	const struct record_lock_holder *h = &lock->holder;

	return h->present &&
		(h->deadlocked_with || !syscall_may_wait_for_work(h->state, h->syscall));
}

/* The one that threads waited for most, of those whose holder is known; NULL: there is none. */
static const struct verdict_kernel_lock *find_mutex(const struct verdict_facts *f)
{
	const struct verdict_kernel_lock *worst = NULL;

	for (unsigned int i = 0; i < VERDICT_LOCKS_MAX && f->locks[i].id; i++) {
		const struct verdict_kernel_lock *l = &f->locks[i];

		if (l->kind == RECORD_KERNEL_LOCK_mutex && l->holder.tid &&
			(!worst || l->waited_ns > worst->waited_ns))
			worst = l;
	}
	return worst;
}

static bool is_of_holder(const struct verdict_kernel_lock *l, const struct verdict_waiter *w)
{
	return w->tid == l->holder.tid && w->longest_ns >= HOLDER_NS;
}

/* Whoever holds it waits for a disk, a lock of the kernel or memory: that is the reason. */
static bool holder_waits(const struct verdict_facts *f, const struct verdict_kernel_lock *l)
{
	for (unsigned int i = 0; i < VERDICT_WAITERS_MAX; i++)
		if (is_of_holder(l, &f->waiters[i]))
			return true;
	return l->holder_waits_for != RECORD_CAUSE_NONE;
}

bool verdict_is_mutex_held(const struct verdict_facts *f, enum verdict_wait *ret_wait)
{
	const struct verdict_kernel_lock *l = find_mutex(f);

	*ret_wait = VERDICT_WAIT_COUNT;
	return l && !holder_waits(f, l);
}

bool verdict_is_mutex(const struct verdict_finding *v)
{
	return v->rule->say == verdict_say_mutex;
}

const struct verdict_kernel_lock *verdict_find_mutex(const struct verdict_finding *v)
{
	const struct verdict_kernel_lock *l = find_mutex(v->f);

	if (!l || verdict_is_mutex(v))
		return l;
	/* It was seen to wait while it held the mutex. */
	if (l->holder_waits_for == RECORD_CAUSE_NONE)
		return NULL;
	for (unsigned int i = 0; i < VERDICT_WAITERS_MAX; i++)
		if (is_of_holder(l, &v->f->waiters[i]) && verdict_has_row(&v->concerned, i))
			return l;
	return NULL;
}

void verdict_add_mutex_holder(const struct verdict_kernel_lock *l, struct text *t)
{
	const char *call = verdict_syscall_name(l->syscall);

	text_addf(t, "thread %" PRId32 " (", l->holder.tid);
	record_add_printable(t, l->holder.comm);
	text_add(t, ")");
	if (l->connection_id)
		text_addf(t, ", session %" PRIu64 ",", l->connection_id);
	text_add(t, " held it for at least ");
	record_add_duration(t, l->held_ns);
	if (l->deadlocked_with == l->holder.tid)
		text_add(t, " and waited for it itself: a deadlock");
	else if (l->deadlocked_with)
		text_addf(t,
			" and waited for one that thread %" PRId32
			" held, which waited for this one in turn: a deadlock, which ends only when one "
			"of them gives up",
			l->deadlocked_with);
	else if (l->holder_waits_for)
		text_addf(t, " and waited itself (%s)", record_cause_text(l->holder_waits_for));
	else if (l->holder_state == 'R')
		text_add(t, " and ran meanwhile");
	else if (l->holder_state == 'T' || l->holder_state == 't')
		text_add(t, " and was stopped (T)");
	else if (call)
		text_addf(t, " and slept in %s", call);
}

void verdict_add_mutex_waiters(const struct verdict_kernel_lock *l, struct text *t)
{
	text_add_count(t, l->waiters, "thread", "threads");
	text_add(t, " of ");
	verdict_add_who(t, &l->process);
	text_add(t, l->waiters == 1 ? " waited " : " waited up to ");
	record_add_duration(t, l->longest_ns);
	text_add(t, " for a mutex of that program");
}

void verdict_add_mutex(const struct verdict_kernel_lock *l, struct text *t)
{
	verdict_add_mutex_waiters(l, t);
	text_add(t, ": ");
	verdict_add_mutex_holder(l, t);
}

void verdict_say_mutex(const struct verdict_finding *v, struct text *t)
{
	verdict_add_mutex(v->mutex, t);
	if (verdict_is_no_device_at_fault(v->f))
		text_add(t, "; no disk was at its limit");
}

void verdict_add_behind_mutex(struct verdict_finding *v)
{
	if (!v->mutex || (!verdict_is_mutex(v) && v->victims == 0))
		return;
	v->victims_ns += v->mutex->waited_ns;
	if (!verdict_is_mutex(v))
		return;
	v->victims = v->mutex->waiters;
	v->victims_longest_ns = v->mutex->longest_ns;
}
