/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads of watched processes that wait for a lock of a program, or for another process to read:
 * which of them have not run since an earlier look.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "snapshot/lock_search.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file.h"
#include "watch/dents.h"
#include "watch/thread_status.h"

/* Mutexes of a container have the ids that its threads have there. */
static bool has_own_ids(const struct lock_search *s, int32_t pid)
{
	struct watch_thread_status status;

	return thread_status_read(s->procfs_fd, pid, &status) == 0 && status.has_own_ids;
}

/* Mutexes are of a process; many may write to a pipe, and each by its own end of a socket. */
static bool is_same(const struct lock_waiter *a, const struct lock_waiter *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == RECORD_KERNEL_LOCK_mutex)
		return a->pid == b->pid && a->address == b->address;
	return a->address == b->address || (a->root && a->root == b->root);
}

/*
 * Whoever lets a mutex go, or reads, wakes one of those that wait: another thread may have had it
 * since, and somebody has read.
 */
static void note_let_go(struct lock_search *s, const struct lock_waiter *left)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (is_same(&s->waiters[i], left))
			s->waiters[i].held_since_ns = s->begin_ns;
}

/* Where the thread waits now, and of which times. */
static void note_waiter(struct lock_search *s, const struct lock_waiter *now)
{
	struct lock_waiter *w = lock_search_find_waiter(s, now->tid);

	if (!w && s->count == LOCK_SEARCH_WAITERS_MAX)
		return;
	if (!w) {
		s->waiters[s->count++] = *now;
		s->has_new = true;
		return;
	}
	if (w->kind != now->kind || w->pid != now->pid || w->address != now->address ||
		w->switches != now->switches) {
		note_let_go(s, w);
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
			note_let_go(s, &s->waiters[i]);
	for (uint32_t i = 0; i < s->count; i++)
		if (s->waiters[i].seen_ns == s->begin_ns)
			s->waiters[kept++] = s->waiters[i];
	s->count = kept;
}

static void look_at_thread(struct lock_search *s, int32_t pid, int32_t tid)
{
	static bool (*const calls[])(struct lock_search *, const char *, struct lock_waiter *) = {
#define SOURCE(name)
#define CALL(name) lock_search_##name##_waits,
#include "snapshot/lock_sources.def"
#undef CALL
#undef SOURCE
	};
	struct watch_thread_status status;
	const uint64_t now_ns = clock_mono_ns();
	struct lock_waiter w = { .pid = pid,
		.tid = tid,
		.since_ns = now_ns,
		.seen_ns = s->begin_ns,
		.held_since_ns = now_ns };
	char path[48], line[256];
	bool waits = false;

	snprintf(path, sizeof(path), "%d/task/%d/syscall", pid, tid);
	if (file_read_at(s->procfs_fd, path, line, sizeof(line)) <= 0)
		return;
	for (unsigned int i = 0; i < ARRAY_SIZE(calls) && !waits; i++)
		waits = calls[i](s, line, &w);
	if (!waits)
		return;
	snprintf(path, sizeof(path), "%d/task/%d/status", pid, tid);
	if (thread_status_read_at(s->procfs_fd, path, &status) < 0 || !status.has_switches)
		return;
	/* It waits to go on. */
	if (status.state == 'T' || status.state == 't')
		return;
	/* Whoever waits for a reader can be interrupted. Else it waits for memory or audit. */
	if (w.kind != RECORD_KERNEL_LOCK_mutex && status.state != 'S')
		return;
	w.switches = status.switches;
	w.is_alone = s->is_alone;
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
	if (fd < 0)
		return;
	/*
	 * A single thread, as a server of PostgreSQL has, waits for no other one. There may be
	 * thousands, so only an incident is worth a look at what else they wait for.
	 */
	s->is_alone = fstat(fd, &st) == 0 && st.st_nlink == 2 + 1;
	if (s->is_alone && !s->armed)
		return;
	s->may_have_mutexes = !s->is_alone && !has_own_ids(s, pid);
	dents_seek(&dents, fd, pid == s->next_pid ? s->next_thread : 0);
	while (dents_next_number(&dents, fd, &tid, &name) > 0) {
		s->next_pid = pid;
		s->next_thread = dents.place;
		if (clock_mono_ns() >= s->deadline_ns)
			return;
		look_at_thread(s, pid, tid);
	}
	s->next_pid = 0;
	s->next_thread = 0;
}

/* None is added to the list, since each is in it. */
static void look_at_waiters(struct lock_search *s)
{
	for (uint32_t i = 0; i < s->count && clock_mono_ns() < s->deadline_ns; i++) {
		const struct lock_waiter w = s->waiters[i];

		s->may_have_mutexes = w.kind == RECORD_KERNEL_LOCK_mutex;
		s->is_alone = w.is_alone;
		if ((s->armed || !w.is_alone) && lock_search_is_about(s, w.pid) &&
			lock_search_may_look_at(s, w.pid))
			look_at_thread(s, w.pid, w.tid);
	}
}

/* Of one that has ended, those that were begun later. */
static uint32_t find_next(const struct lock_search *s)
{
	uint32_t next = 0;

	for (uint32_t i = 0; i < s->pids_count; i++)
		if (s->pids[i] >= s->next_pid &&
			(s->pids[next] < s->next_pid || s->pids[i] < s->pids[next]))
			next = i;
	return next;
}

/*
 * How long it takes is bounded by the deadline, and by LOCK_SEARCH_WAITERS_MAX. Who waited the last
 * time comes first, since nobody else stands still yet, then who comes behind the one at which that
 * look was cut off.
 */
void lock_search_look(struct lock_search *s)
{
	const uint32_t first = find_next(s);
	uint32_t i;

	look_at_waiters(s);
	if (!s->only_known) {
		for (i = 0; i < s->pids_count && clock_mono_ns() < s->deadline_ns; i++)
			look_at_process(s, s->pids[(first + i) % s->pids_count]);
		/* Between two processes. */
		if (i < s->pids_count && !s->next_pid)
			s->next_pid = s->pids[(first + i) % s->pids_count];
	}
	forget_who_left(s);
}
