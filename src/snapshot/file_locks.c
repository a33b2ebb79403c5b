/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Locks of files, as of flock(2) and fcntl(2): /proc/locks names who waits for each, and who took
 * it. That process may be gone, as the flock(1) of a script is, whose shell has the file open still
 * and so holds the lock: fdinfo says which process it is now.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "snapshot/lock_search.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/text.h"
#include "watch/dents.h"

struct line {
	bool waits;
	int32_t pid; /* -1: a lock of an open file (OFD), which belongs to no process */
	struct record_dev dev;
	uint64_t inode;
};

/* "7: POSIX  ADVISORY  WRITE 4711 fd:00:131 0 EOF"; who waits has "->" before the kind. */
static bool parse(const char *text, struct line *ret_line)
{
	const char *kind = strchr(text, ':');
	unsigned long long inode;
	unsigned int major, minor;
	int pid, n;

	if (!kind)
		return false;
	kind += 1 + strspn(kind + 1, " ");
	ret_line->waits = strncmp(kind, "->", 2) == 0;
	if (ret_line->waits)
		kind += 2;
	/* Of the kind, whether it is mandatory, and what it is for. */
	n = sscanf(kind, "%*s %*s %*s %d %x:%x:%llu", &pid, &major, &minor, &inode);
	ret_line->pid = pid;
	ret_line->dev = (struct record_dev){ major, minor };
	ret_line->inode = inode;
	return n == 4;
}

static bool is_of_file(const struct held_lock *lock, const struct line *line)
{
	return lock->kind == RECORD_KERNEL_LOCK_file && lock->inode == line->inode &&
		lock->dev.major == line->dev.major && lock->dev.minor == line->dev.minor;
}

static struct held_lock *find(struct held_locks_answer *answer, const struct line *line)
{
	for (uint32_t i = 0; i < answer->count; i++)
		if (is_of_file(&answer->list[i], line))
			return &answer->list[i];
	return NULL;
}

/* Who waits first in the list of the kernel has waited longest. */
static void begin_lock(struct lock_search *s, const struct line *holder, int32_t waiter)
{
	const struct held_lock *last = find(&s->last, holder);
	struct held_lock *place;

	/* Ranges of a file are locks of their own: the first that somebody waits for counts. */
	if (find(&s->answer, holder) || !(place = lock_search_find_place(s, 1)))
		return;
	*place = (struct held_lock){ .kind = RECORD_KERNEL_LOCK_file,
		.dev = holder->dev,
		.inode = holder->inode,
		.since_ns = last && last->pid == waiter ? last->since_ns : s->begin_ns,
		.pid = waiter,
		.holder_pid = holder->pid,
		.held_since_ns = s->begin_ns };
}

static void take_line(struct lock_search *s, const char *text, struct line *holder, bool *is_new)
{
	struct held_lock *lock;
	struct line line;

	if (!parse(text, &line))
		return;
	if (!line.waits) {
		*holder = line;
		*is_new = true;
		return;
	}
	if (*is_new)
		begin_lock(s, holder, line.pid);
	*is_new = false;
	lock = find(&s->answer, holder);
	if (lock)
		lock->waiters++;
}

/* The kernel makes whole lines, as many as there is room for. */
static void read_locks(struct lock_search *s)
{
	_cleanup_close_ int fd = openat(s->procfs_fd, "locks", O_RDONLY | O_CLOEXEC);
	struct line holder = { 0 };
	bool is_new = false;
	char buf[4096];
	ssize_t n;

	while (fd >= 0 && clock_mono_ns() < s->deadline_ns &&
		(n = read(fd, buf, sizeof(buf) - 1)) > 0) {
		char *line = buf, *end;

		for (buf[n] = '\0'; (end = strchr(line, '\n')); line = end + 1) {
			*end = '\0';
			take_line(s, line, &holder, &is_new);
		}
	}
}

/* Whether it has that lock by the file of that descriptor, whose path it takes then. */
static bool has_lock(struct lock_search *s, int32_t pid, const char *fd, struct held_lock *lock)
{
	char path[48], info[1024], *text = info, target[sizeof(lock->path)];
	struct line line;
	ssize_t n;

	snprintf(path, sizeof(path), "%d/fdinfo/%s", pid, fd);
	if (file_read_at(s->procfs_fd, path, info, sizeof(info)) <= 0)
		return false;
	while ((text = strstr(text, "lock:\t"))) {
		text += strlen("lock:\t");
		if (!parse(text, &line) || !is_of_file(lock, &line))
			continue;
		snprintf(path, sizeof(path), "%d/fd/%s", pid, fd);
		n = readlinkat(s->procfs_fd, path, target, sizeof(target));
		if (n > 0 && (size_t)n < sizeof(target))
			text_copy(lock->path, (size_t)n + 1, target);
		return true;
	}
	return false;
}

static bool holds(struct lock_search *s, int32_t pid, struct held_lock *lock)
{
	_cleanup_close_ int dir = -1;
	struct dents dents;
	char path[32];
	const char *name;
	int32_t fd;

	if (pid <= 0 || !lock_search_may_look_at(s, pid))
		return false;
	snprintf(path, sizeof(path), "%d/fdinfo", pid);
	dir = openat(s->procfs_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dents_reset(&dents);
	while (dir >= 0 && clock_mono_ns() < s->deadline_ns &&
		dents_next_number(&dents, dir, &fd, &name) > 0)
		if (has_lock(s, pid, name, lock))
			return true;
	return false;
}

/* 0: it was not found in time. */
static int32_t search_holder(struct lock_search *s, struct held_lock *lock)
{
	_cleanup_close_ int dir = openat(s->procfs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dents dents;
	const char *name;
	int32_t pid;

	dents_reset(&dents);
	while (dir >= 0 && clock_mono_ns() < s->deadline_ns &&
		dents_next_number(&dents, dir, &pid, &name) > 0)
		if (holds(s, pid, lock))
			return pid;
	return 0;
}

static void find_holder(struct lock_search *s, struct held_lock *lock)
{
	const struct line line = { .dev = lock->dev, .inode = lock->inode };
	const struct held_lock *last = find(&s->last, &line);

	if (last && last->holder_pid != lock->holder_pid && holds(s, last->holder_pid, lock))
		lock->holder_pid = last->holder_pid;
	else if (!holds(s, lock->holder_pid, lock))
		lock->holder_pid = search_holder(s, lock);
	if (last && last->holder_pid == lock->holder_pid)
		lock->held_since_ns = last->held_since_ns;
}

void lock_search_files(struct lock_search *s)
{
	read_locks(s);
	for (uint32_t i = 0; i < s->answer.count; i++) {
		struct held_lock *lock = &s->answer.list[i];

		/* Most have let go a moment later. */
		if (lock->kind == RECORD_KERNEL_LOCK_file && lock->since_ns < s->begin_ns)
			find_holder(s, lock);
	}
}
