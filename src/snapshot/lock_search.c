/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "snapshot/lock_search.h"

#include "util/cleanup.h"

/* Another thread hangs in what it asks of this process. */
bool lock_search_skips(const struct lock_search *s, int32_t pid)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(s->skip); i++)
		if (s->skip[i] == pid)
			return true;
	return false;
}

bool lock_search_is_about(const struct lock_search *s, int32_t pid)
{
	for (uint32_t i = 0; i < s->pids_count; i++)
		if (s->pids[i] == pid)
			return true;
	return false;
}

bool lock_search_may_look_at(struct lock_search *s, int32_t pid)
{
	if (lock_search_skips(s, pid))
		return false;
	__atomic_store_n(&s->looking_at, pid, __ATOMIC_RELEASE);
	return true;
}

struct held_lock *lock_search_find_place(struct lock_search *s, enum record_kernel_lock kind,
	uint32_t waiters)
{
	struct held_lock *least = NULL;
	uint32_t count = 0;

	for (uint32_t i = 0; i < s->answer.count; i++) {
		struct held_lock *lock = &s->answer.list[i];

		if (lock->kind != kind)
			continue;
		count++;
		if (!least || lock->waiters < least->waiters)
			least = lock;
	}
	if (count < HELD_LOCKS_OF_KIND)
		return &s->answer.list[s->answer.count++];
	return least->waiters < waiters ? least : NULL;
}

struct lock_waiter *lock_search_find_waiter(struct lock_search *s, int32_t tid)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (s->waiters[i].tid == tid)
			return &s->waiters[i];
	return NULL;
}

bool lock_search_stands(const struct lock_search *s, const struct lock_waiter *w)
{
	return w->since_ns < s->begin_ns;
}
