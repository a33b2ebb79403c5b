/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Locks of files, as of flock(2) and fcntl(2): /proc/locks names who waits for each, and who took
 * it. That process may be gone, as the flock(1) of a script is, whose shell has the file open still
 * and so holds the lock: fdinfo says which process it is now.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "snapshot/lock_search.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/text.h"
#include "watch/dents.h"
#include "watch/thread_status.h"

/* Of /proc/locks in one look: about 16,000 locks. Each read takes a lock of all files' locks. */
#define LOCKS_BYTES_MAX (1024 * 1024)
/* The same while no incident is open: it tells how long threads wait when one opens. */
#define IDLE_BYTES_MAX (64 * 1024)

struct line {
	bool waits;
	enum held_locks_file_kind kind;
	bool is_read;
	int32_t pid; /* -1: a lock of an open file (OFD), which belongs to no process */
	struct record_dev dev;
	uint64_t inode;
	uint64_t begin; /* of its range, in bytes */
	uint64_t end;	/* the last byte of it */
};

/* Who waits for a lock. */
struct waiting {
	uint32_t count;
	int32_t first; /* pid of who has waited longest; 0: nobody waits in the kernel */
	const struct held_locks_refusal *tries; /* who has tried longest; NULL: nobody */
};

/* Lines of a file of /proc, which a read may cut off anywhere. */
struct lines {
	int fd;
	size_t begin;
	size_t end;
	size_t bytes_read;
	char buf[4096];
};

static bool fill(struct lines *l)
{
	ssize_t n;

	memmove(l->buf, l->buf + l->begin, l->end - l->begin);
	l->end -= l->begin;
	l->begin = 0;
	n = read(l->fd, l->buf + l->end, sizeof(l->buf) - l->end);
	if (n <= 0)
		return false;
	l->end += (size_t)n;
	l->bytes_read += (size_t)n;
	return true;
}

/* Without its end; NULL: there is none, or one that is too long for a line of these files. */
static char *next_line(struct lines *l)
{
	char *line, *end;

	while (!(end = memchr(l->buf + l->begin, '\n', l->end - l->begin)))
		if (!fill(l))
			return NULL;
	line = l->buf + l->begin;
	l->begin = (size_t)(end + 1 - l->buf);
	*end = '\0';
	return line;
}

static enum held_locks_file_kind parse_kind(const char *text)
{
	if (strncmp(text, "FLOCK ", strlen("FLOCK ")) == 0)
		return HELD_LOCKS_FLOCK;
	if (strncmp(text, "POSIX ", strlen("POSIX ")) == 0)
		return HELD_LOCKS_POSIX;
	return strncmp(text, "OFDLCK ", strlen("OFDLCK ")) == 0 ? HELD_LOCKS_OFD : HELD_LOCKS_LEASE;
}

/* "7: POSIX  ADVISORY  WRITE 4711 fd:00:131 0 EOF"; who waits has "->" before the kind. */
static bool parse(const char *text, struct line *ret_line)
{
	const char *kind = strchr(text, ':');
	unsigned long long inode, begin;
	unsigned int major, minor;
	char type[8] = "";
	int pid, n, at = 0;

	if (!kind)
		return false;
	kind += 1 + strspn(kind + 1, " ");
	ret_line->waits = strncmp(kind, "->", 2) == 0;
	if (ret_line->waits)
		kind += 2;
	kind += strspn(kind, " ");
	ret_line->kind = parse_kind(kind);
	/* Of the kind, and whether it is mandatory. */
	n = sscanf(kind, "%*s %*s %7s %d %x:%x:%llu %llu %n", type, &pid, &major, &minor, &inode,
		&begin, &at);
	ret_line->pid = pid;
	ret_line->dev = (struct record_dev){ major, minor };
	ret_line->inode = inode;
	ret_line->begin = begin;
	/* "EOF" is no number. */
	if (n != 6 || sscanf(kind + at, "%" SCNu64, &ret_line->end) != 1)
		ret_line->end = UINT64_MAX;
	ret_line->is_read = strcmp(type, "READ") == 0;
	return n == 6;
}

/* Those who read share ranges of which one ends before the other, and each has its waiters. */
static bool is_same_lock(const struct held_lock *lock, const struct line *line)
{
	return lock->kind == RECORD_KERNEL_LOCK_file && lock->inode == line->inode &&
		record_dev_is_same(lock->dev, line->dev) && lock->range_begin == line->begin &&
		lock->range_end == line->end && lock->file_kind == line->kind;
}

static struct held_lock *find(struct held_locks_answer *answer, const struct line *line)
{
	for (uint32_t i = 0; i < answer->count; i++)
		if (is_same_lock(&answer->list[i], line))
			return &answer->list[i];
	return NULL;
}

/* The same lock in the look before. */
static const struct held_lock *find_last(struct lock_search *s, const struct held_lock *lock)
{
	const struct line line = { .kind = lock->file_kind,
		.dev = lock->dev,
		.inode = lock->inode,
		.begin = lock->range_begin,
		.end = lock->range_end };

	return find(&s->last, &line);
}

static bool is_fcntl(enum held_locks_file_kind kind)
{
	return kind == HELD_LOCKS_POSIX || kind == HELD_LOCKS_OFD;
}

/* Locks of flock(2) and of fcntl(2) do not see each other, nor do those who read. */
static bool is_refused(const struct held_locks_refusal *r, const struct line *holder)
{
	return r->inode == holder->inode && record_dev_is_same(r->dev, holder->dev) &&
		(r->is_flock ? holder->kind == HELD_LOCKS_FLOCK : is_fcntl(holder->kind)) &&
		!(r->is_read && holder->is_read) && r->begin <= holder->end &&
		holder->begin <= r->end && r->pid != holder->pid;
}

/* Those who try for a lock besides those who wait for it. */
static void add_refused(const struct lock_search *s, const struct line *holder,
	struct waiting *waiting)
{
	for (uint32_t i = 0; i < s->refusals_count; i++) {
		const struct held_locks_refusal *r = &s->refusals[i];

		if (!is_refused(r, holder))
			continue;
		waiting->count++;
		if (!waiting->tries || r->tries_ns > waiting->tries->tries_ns)
			waiting->tries = r;
	}
}

/* A lock, with those who wait for it; who waits first in the list has waited longest. */
static void take_lock(struct lock_search *s, const struct line *holder, struct waiting *waiting)
{
	struct held_lock *place = find(&s->answer, holder);

	/* Several share it: the kernel refuses it because of all of them. */
	if (place) {
		place->waiters += waiting->count;
		return;
	}
	add_refused(s, holder, waiting);
	if (waiting->count == 0)
		return;
	place = lock_search_find_place(s, RECORD_KERNEL_LOCK_file, waiting->count);
	if (!place)
		return;
	*place = (struct held_lock){ .kind = RECORD_KERNEL_LOCK_file,
		.dev = holder->dev,
		.inode = holder->inode,
		.file_kind = holder->kind,
		.range_begin = holder->begin,
		.range_end = holder->end,
		.waiters = waiting->count,
		.since_ns = s->begin_ns,
		.pid = waiting->first,
		.holder_pid = holder->pid > 0 ? holder->pid : 0,
		.held_since_ns = s->begin_ns };
	if (waiting->first || !waiting->tries)
		return;
	place->is_inferred = place->tries = true;
	place->pid = waiting->tries->pid;
	place->waiter = waiting->tries->tid;
	place->since_ns = s->begin_ns - waiting->tries->tries_ns;
}

/* Behind each lock, the kernel lists those who wait for it. */
static void read_locks(struct lock_search *s)
{
	_cleanup_close_ int fd = openat(s->procfs_fd, "locks", O_RDONLY | O_CLOEXEC);
	const size_t most = s->armed ? LOCKS_BYTES_MAX : IDLE_BYTES_MAX;
	struct lines lines = { .fd = fd };
	struct line holder = { 0 }, line;
	struct waiting waiting = { 0 };
	const char *text;

	if (fd < 0)
		return;
	while (clock_mono_ns() < s->deadline_ns && lines.bytes_read < most &&
		(text = next_line(&lines))) {
		if (!parse(text, &line))
			continue;
		if (line.waits) {
			waiting.first = waiting.count++ ? waiting.first : line.pid;
			continue;
		}
		take_lock(s, &holder, &waiting);
		holder = line;
		waiting = (struct waiting){ 0 };
	}
	take_lock(s, &holder, &waiting);
}

/* Those that wait for a lock of a file, also of 32-bit programs. */
static bool is_call(int32_t number)
{
	static const int32_t calls[] = { SYS_flock, SYS_fcntl, 55, 143, 221 };

	for (unsigned int i = 0; i < ARRAY_SIZE(calls); i++)
		if (calls[i] == number)
			return true;
	return false;
}

/* False: the thread does not sleep in such a call. */
static bool waits(struct lock_search *s, int32_t pid, int32_t tid, uint64_t *ret_switches)
{
	struct watch_thread_status status;
	char path[48], line[256];
	int number;

	snprintf(path, sizeof(path), "%d/task/%d/syscall", pid, tid);
	if (file_read_at(s->procfs_fd, path, line, sizeof(line)) <= 0 ||
		sscanf(line, "%d ", &number) != 1 || !is_call(number))
		return false;
	snprintf(path, sizeof(path), "%d/task/%d/status", pid, tid);
	if (thread_status_read_at(s->procfs_fd, path, &status) < 0 || !status.has_switches)
		return false;
	*ret_switches = status.switches;
	return true;
}

static void find_waiter(struct lock_search *s, struct held_lock *lock)
{
	_cleanup_close_ int dir = -1;
	struct dents dents;
	char path[32];
	const char *name;
	int32_t tid;

	snprintf(path, sizeof(path), "%d/task", lock->pid);
	dir = openat(s->procfs_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dents_reset(&dents);
	while (dir >= 0 && !lock->waiter && clock_mono_ns() < s->deadline_ns &&
		dents_next_number(&dents, dir, &tid, &name) > 0)
		if (waits(s, lock->pid, tid, &lock->switches))
			lock->waiter = tid;
}

/*
 * A lock that goes from one to the other all the time has the same waiter in many looks, too. Who
 * has not run in between stood still; and then nobody let the lock go, or he would have been woken.
 */
static void note_waiter(struct lock_search *s, struct held_lock *lock)
{
	const struct held_lock *last = find_last(s, lock);
	uint64_t switches;

	/* Locks of open files (OFD) are of no process. Who tries does not wait. */
	if (lock->tries || lock->pid <= 0 || !lock_search_may_look_at(s, lock->pid))
		return;
	if (!last || last->pid != lock->pid || !last->waiter ||
		!waits(s, lock->pid, last->waiter, &switches) || switches != last->switches) {
		find_waiter(s, lock);
		return;
	}
	lock->waiter = last->waiter;
	lock->switches = switches;
	lock->since_ns = last->since_ns;
}

static void read_path(struct lock_search *s, int32_t pid, const char *fd, struct held_lock *lock)
{
	char path[48], target[sizeof(lock->path)];
	ssize_t n;

	snprintf(path, sizeof(path), "%d/fd/%s", pid, fd);
	n = readlinkat(s->procfs_fd, path, target, sizeof(target));
	if (n > 0 && (size_t)n < sizeof(target))
		text_copy(lock->path, (size_t)n + 1, target);
}

/* Whether it has that lock by the file of that descriptor, whose path it takes then. */
static bool has_lock(struct lock_search *s, int32_t pid, const char *fd, struct held_lock *lock)
{
	_cleanup_close_ int file = -1;
	struct lines lines;
	struct line line;
	const char *text;
	char path[48];

	snprintf(path, sizeof(path), "%d/fdinfo/%s", pid, fd);
	file = openat(s->procfs_fd, path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return false;
	lines.fd = file;
	lines.begin = lines.end = lines.bytes_read = 0;
	while (clock_mono_ns() < s->deadline_ns && (text = next_line(&lines))) {
		if (strncmp(text, "lock:\t", strlen("lock:\t")) != 0 ||
			!parse(text + strlen("lock:\t"), &line) || !is_same_lock(lock, &line))
			continue;
		read_path(s, pid, fd, lock);
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
	const struct held_lock *last = find_last(s, lock);

	/* A POSIX lock ends with its process, whose id is right. */
	if (!holds(s, lock->holder_pid, lock) && lock->file_kind != HELD_LOCKS_POSIX) {
		if (last && last->holder_pid != lock->holder_pid &&
			holds(s, last->holder_pid, lock))
			lock->holder_pid = last->holder_pid;
		else
			lock->holder_pid = search_holder(s, lock);
	}
	if (last && last->holder_pid == lock->holder_pid)
		lock->held_since_ns = last->held_since_ns;
}

/* Whose lock it is in the end is searched for only while an incident is open. */
void lock_search_files(struct lock_search *s)
{
	read_locks(s);
	for (uint32_t i = 0; i < s->answer.count; i++) {
		struct held_lock *lock = &s->answer.list[i];

		if (lock->kind != RECORD_KERNEL_LOCK_file)
			continue;
		note_waiter(s, lock);
		/* Most have let go a moment later. */
		if (s->armed && lock->since_ns < s->begin_ns)
			find_holder(s, lock);
	}
}
