/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "snapshot/mutexes.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "snapshot/lock_search.h"
#include "util/cleanup.h"

/* Mutexes of a process whose owner waits for the next one. */
#define CHAIN_MAX 8
/*
 * pthread_mutex_t: a thread waits; and the bits of its kind, PTHREAD_MUTEX_KIND_MASK_NP and
 * flags.
 */
#define WORD_CONTENDED 2
#define KIND_KNOWN 0x3f3u

/* The words */

/* "202 0x55d0 0x80 0x2 ...", or "running", or "-1 ..." */
bool mutexes_parse_syscall(const char *line, int32_t *ret_number, uint64_t *ret_address,
	uint32_t *ret_value)
{
	unsigned long long address = 0, op = 0, value = 0;
	int number = -1,
	    n = sscanf(line, "%d 0x%llx 0x%llx 0x%llx", &number, &address, &op, &value);

	*ret_number = n >= 1 ? number : -1;
	if (n < 4 || number != SYS_futex)
		return false;
	*ret_address = address;
	*ret_value = (uint32_t)value;
	switch ((int)op & FUTEX_CMD_MASK) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
		return true;
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
		/* They expect no value: the kernel sets this bit for them. */
		*ret_value = FUTEX_WAITERS;
		return true;
	default:
		return false;
	}
}

/* lock, count, owner, nusers, kind: struct __pthread_mutex_s of 64-bit programs */
int32_t mutexes_owner(const uint32_t words[static MUTEX_WORDS], uint32_t expected)
{
	/* A robust mutex or one with priority inheritance has its owner in the word itself. */
	uint32_t owner = words[0] == WORD_CONTENDED ? words[2] : words[0] & FUTEX_TID_MASK;

	if (words[0] == WORD_CONTENDED ? expected != WORD_CONTENDED
				       : !(words[0] & FUTEX_WAITERS) || words[2] != owner)
		return 0;
	if ((words[4] & ~KIND_KNOWN) || words[3] == 0 || owner > INT32_MAX)
		return 0;
	return (int32_t)owner;
}

static int32_t read_owner(int procfs_fd, int32_t pid, uint64_t address, uint32_t expected)
{
	uint32_t words[MUTEX_WORDS];
	_cleanup_close_ int fd = -1;
	char path[32];

	snprintf(path, sizeof(path), "%d/mem", pid);
	fd = openat(procfs_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || pread(fd, words, sizeof(words), (off_t)address) != (ssize_t)sizeof(words))
		return 0;
	return mutexes_owner(words, expected);
}

/* A look, on the thread */

/* Many wait for the same mutex, so the owner is mostly known. */
static int32_t find_owner(const struct lock_search *s, int32_t pid, uint64_t address,
	uint32_t expected)
{
	for (uint32_t i = 0; i < s->count; i++) {
		const struct lock_waiter *w = &s->waiters[i];

		if (w->kind == RECORD_KERNEL_LOCK_mutex && w->pid == pid && w->address == address &&
			w->seen_ns == s->begin_ns)
			return w->owner;
	}
	return read_owner(s->procfs_fd, pid, address, expected);
}

static bool is_thread_of(const struct lock_search *s, int32_t pid, int32_t tid)
{
	char path[48];

	snprintf(path, sizeof(path), "%d/task/%d", pid, tid);
	return faccessat(s->procfs_fd, path, F_OK, 0) == 0;
}

bool lock_search_mutexes_waits(struct lock_search *s, const char *line, struct lock_waiter *w)
{
	uint32_t expected;
	int32_t number;

	if (!s->may_have_mutexes || !mutexes_parse_syscall(line, &number, &w->address, &expected))
		return false;
	/*
	 * Who waits for a condition or a semaphore expects another value. That memory may be
	 * swapped out, and reading it would keep the lock of the memory map while it is read.
	 */
	if (expected != WORD_CONTENDED && !(expected & FUTEX_WAITERS))
		return false;
	w->kind = RECORD_KERNEL_LOCK_mutex;
	w->owner = find_owner(s, w->pid, w->address, expected);
	return w->owner > 0 && is_thread_of(s, w->pid, w->owner);
}

/* What was found */

/* It waited in an earlier look, too. */
static bool stands(const struct lock_search *s, const struct lock_waiter *w)
{
	return w->kind == RECORD_KERNEL_LOCK_mutex && lock_search_stands(s, w);
}

/* Where the owner of its mutex stands; NULL: it does not wait for another one. */
static const struct lock_waiter *find_next(struct lock_search *s, const struct lock_waiter *w)
{
	const struct lock_waiter *next = lock_search_find_waiter(s, w->owner);

	return next && stands(s, next) && next->pid == w->pid ? next : NULL;
}

/*
 * The mutex for which the owner of this one waits, and so on: the last one of the chain. In a
 * deadlock the chain is a circle, of which the mutex with the lowest address counts.
 */
static uint64_t find_root(struct lock_search *s, const struct lock_waiter *w)
{
	const struct lock_waiter *next = find_next(s, w);
	uint64_t lowest;

	for (unsigned int i = 0; i < CHAIN_MAX && next; i++) {
		w = next;
		next = find_next(s, w);
	}
	lowest = w->address;
	for (unsigned int i = 0; i < CHAIN_MAX && next && next != w; i++) {
		if (next->address < lowest)
			lowest = next->address;
		next = find_next(s, next);
	}
	return next == w ? lowest : w->address;
}

/* The holder is one of those that wait for this mutex in the end. */
static int32_t find_deadlock(struct lock_search *s, const struct lock_waiter *root, int32_t holder)
{
	const struct lock_waiter *w = lock_search_find_waiter(s, holder);

	return w && stands(s, w) && w->pid == root->pid && w->root == root->address ? w->owner : 0;
}

/* Those that wait for a mutex whose holder waits for this one wait for this one. */
static void take_mutex(struct lock_search *s, const struct lock_waiter *root)
{
	struct held_lock seen = { .kind = RECORD_KERNEL_LOCK_mutex,
		.address = root->address,
		.pid = root->pid,
		.held_since_ns = s->begin_ns };
	struct held_lock *place;

	for (uint32_t i = 0; i < s->count; i++) {
		const struct lock_waiter *w = &s->waiters[i];

		if (!stands(s, w) || w->pid != root->pid || w->root != root->address)
			continue;
		if (w->address == root->address && w->held_since_ns < seen.held_since_ns) {
			seen.held_since_ns = w->held_since_ns;
			seen.holder = w->owner;
		}
		if (seen.waiters++ == 0 || w->since_ns < seen.since_ns)
			seen.since_ns = w->since_ns;
	}
	seen.holder_pid = seen.holder ? root->pid : 0;
	seen.deadlocked_with = find_deadlock(s, root, seen.holder);
	place = lock_search_find_place(s, RECORD_KERNEL_LOCK_mutex, seen.waiters);
	if (place)
		*place = seen;
}

/* The first of those that stand still at a mutex at which a chain ends. */
static bool is_first_at_root(const struct lock_search *s, const struct lock_waiter *w)
{
	if (!stands(s, w) || w->root != w->address)
		return false;
	for (const struct lock_waiter *other = s->waiters; other < w; other++)
		if (stands(s, other) && other->pid == w->pid && other->address == w->address)
			return false;
	return true;
}

void lock_search_mutexes(struct lock_search *s)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (s->waiters[i].kind == RECORD_KERNEL_LOCK_mutex)
			s->waiters[i].root = find_root(s, &s->waiters[i]);
	for (uint32_t i = 0; i < s->count; i++)
		if (is_first_at_root(s, &s->waiters[i]))
			take_mutex(s, &s->waiters[i]);
}
