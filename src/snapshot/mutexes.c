/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "snapshot/mutexes.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "snapshot/lock_search.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file.h"
#include "watch/dents.h"
#include "watch/thread_status.h"

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

/* Mutexes of a container have the ids that its threads have there. */
static bool has_own_ids(const struct lock_search *s, int32_t pid)
{
	struct watch_thread_status status;

	return thread_status_read(s->procfs_fd, pid, &status) == 0 && status.has_own_ids;
}

static struct lock_waiter *find_waiter(struct lock_search *s, int32_t tid)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (s->waiters[i].tid == tid)
			return &s->waiters[i];
	return NULL;
}

/* It waited in an earlier look, too. */
static bool stands(const struct lock_search *s, const struct lock_waiter *w)
{
	return w->since_ns < s->begin_ns;
}

/* Many wait for the same mutex, so the owner is mostly known. */
static int32_t find_owner(const struct lock_search *s, int32_t pid, uint64_t address,
	uint32_t expected)
{
	for (uint32_t i = 0; i < s->count; i++) {
		const struct lock_waiter *w = &s->waiters[i];

		if (w->pid == pid && w->address == address && w->seen_ns == s->begin_ns)
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

/* Whoever lets a mutex go wakes one of its waiters: another thread may have had it since. */
static void note_let_go(struct lock_search *s, int32_t pid, uint64_t address)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (s->waiters[i].pid == pid && s->waiters[i].address == address)
			s->waiters[i].held_since_ns = s->begin_ns;
}

/* Where the thread waits now, and of which times. */
static void note_waiter(struct lock_search *s, const struct lock_waiter *now)
{
	struct lock_waiter *w = find_waiter(s, now->tid);

	if (!w && s->count == LOCK_SEARCH_WAITERS_MAX)
		return;
	if (!w) {
		s->waiters[s->count++] = *now;
		s->has_new = true;
		return;
	}
	if (w->pid != now->pid || w->address != now->address || w->switches != now->switches) {
		note_let_go(s, w->pid, w->address);
		*w = *now;
		s->has_new = true;
		return;
	}
	w->seen_ns = s->begin_ns;
	if (w->owner != now->owner)
		w->held_since_ns = s->begin_ns;
	w->owner = now->owner;
}

static void forget_who_left(struct lock_search *s)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s->count; i++)
		if (s->waiters[i].seen_ns != s->begin_ns)
			note_let_go(s, s->waiters[i].pid, s->waiters[i].address);
	for (uint32_t i = 0; i < s->count; i++)
		if (s->waiters[i].seen_ns == s->begin_ns)
			s->waiters[kept++] = s->waiters[i];
	s->count = kept;
}

static void look_at_thread(struct lock_search *s, int32_t pid, int32_t tid)
{
	struct watch_thread_status status;
	struct lock_waiter w = { .pid = pid,
		.tid = tid,
		.since_ns = s->begin_ns,
		.seen_ns = s->begin_ns,
		.held_since_ns = s->begin_ns };
	char path[48], line[256];
	uint32_t expected;
	int32_t number;

	snprintf(path, sizeof(path), "%d/task/%d/syscall", pid, tid);
	if (file_read_at(s->procfs_fd, path, line, sizeof(line)) <= 0 ||
		!mutexes_parse_syscall(line, &number, &w.address, &expected))
		return;
	/*
	 * Who waits for a condition or a semaphore expects another value. That memory may be
	 * swapped out, and reading it would keep the lock of the memory map while it is read.
	 */
	if (expected != WORD_CONTENDED && !(expected & FUTEX_WAITERS))
		return;
	w.owner = find_owner(s, pid, w.address, expected);
	if (w.owner <= 0 || !is_thread_of(s, pid, w.owner))
		return;
	snprintf(path, sizeof(path), "%d/task/%d/status", pid, tid);
	if (thread_status_read_at(s->procfs_fd, path, &status) < 0 || !status.has_switches)
		return;
	w.switches = status.switches;
	note_waiter(s, &w);
}

static void look_at_process(struct lock_search *s, int32_t pid)
{
	_cleanup_close_ int fd = -1;
	struct dents dents;
	const char *name;
	struct stat st;
	char path[32];
	int32_t tid;

	if (!lock_search_may_look_at(s, pid))
		return;
	snprintf(path, sizeof(path), "%d/task", pid);
	fd = openat(s->procfs_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* A single thread, as a server of PostgreSQL has, waits for no other one. */
	if (fd < 0 || (fstat(fd, &st) == 0 && st.st_nlink == 2 + 1) || has_own_ids(s, pid))
		return;
	dents_reset(&dents);
	while (clock_mono_ns() < s->deadline_ns && dents_next_number(&dents, fd, &tid, &name) > 0)
		look_at_thread(s, pid, tid);
}

/* None is added to the list, since each is in it. */
static void look_at_waiters(struct lock_search *s)
{
	for (uint32_t i = 0; i < s->count && clock_mono_ns() < s->deadline_ns; i++)
		if (lock_search_may_look_at(s, s->waiters[i].pid))
			look_at_thread(s, s->waiters[i].pid, s->waiters[i].tid);
}

/* What was found */

/* Where the owner of its mutex stands; NULL: it does not wait for another one. */
static const struct lock_waiter *find_next(struct lock_search *s, const struct lock_waiter *w)
{
	const struct lock_waiter *next = find_waiter(s, w->owner);

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
	const struct lock_waiter *w = find_waiter(s, holder);

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

/* How long it takes is bounded by LOCK_SEARCH_WAITERS_MAX. */
void lock_search_mutexes(struct lock_search *s)
{
	if (s->only_known)
		look_at_waiters(s);
	for (uint32_t i = 0; i < s->pids_count && !s->only_known; i++)
		look_at_process(s, s->pids[i]);
	forget_who_left(s);
	for (uint32_t i = 0; i < s->count; i++)
		s->waiters[i].root = find_root(s, &s->waiters[i]);
	for (uint32_t i = 0; i < s->count; i++)
		if (is_first_at_root(s, &s->waiters[i]))
			take_mutex(s, &s->waiters[i]);
}
