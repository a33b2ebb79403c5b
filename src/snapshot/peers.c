/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pipes and unix sockets that are full: who writes waits until somebody reads, as all sessions of
 * a database do whose log nobody takes any more. Who could read has the other end open, as /proc
 * says.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "snapshot/lock_search.h"
#include "util/clock.h"
#include "util/file.h"
#include "watch/open_files.h"
#include "watch/thread_status.h"

/* Processes that could read from one end, of which mostly one does. */
#define READERS_MAX 8
/* At most: each session of a database has a socket of its own. */
#define ENDS_MAX (2 * HELD_LOCKS_OF_KIND)
/* Sockets in one second, at some microseconds each. */
#define ASKED_MAX 256

/* The end from which somebody should read: a pipe has one number, each end of a socket its own. */
struct end {
	enum record_kernel_lock kind;
	uint64_t inode;
};

struct readers {
	struct end end;
	uint32_t count; /* READERS_MAX + 1: there are more */
	int32_t pids[READERS_MAX];
};

struct visit {
	struct lock_search *s;
	uint32_t count;
	struct readers ends[ENDS_MAX];
};

static bool is_same(const struct end *a, const struct end *b)
{
	return a->kind == b->kind && a->inode == b->inode;
}

/* False: it is neither a pipe nor a socket, or a pipe that has a name. */
static bool read_end(const struct lock_search *s, int32_t pid, const char *fd, struct end *ret_end)
{
	unsigned long long inode;
	char target[64];
	bool is_pipe;

	if (!open_files_read_link(s->procfs_fd, pid, fd, target, sizeof(target)))
		return false;
	is_pipe = sscanf(target, "pipe:[%llu]", &inode) == 1;
	if (!is_pipe && sscanf(target, "socket:[%llu]", &inode) != 1)
		return false;
	*ret_end = (struct end){ is_pipe ? RECORD_KERNEL_LOCK_pipe : RECORD_KERNEL_LOCK_socket,
		inode };
	return true;
}

/* 0: it is no unix socket, or the kernel does not tell. */
static uint64_t ask_socket(const struct lock_waiter *w, int program_fd)
{
	uint64_t args[3] = { (uint64_t)w->tid, (uint64_t)w->fd, w->address };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args));

	return bpf_prog_test_run_opts(program_fd, &opts) == 0 ? opts.retval : 0;
}

void lock_search_ask_sockets(struct lock_search *s, int program_fd)
{
	uint32_t asked = 0;

	for (uint32_t i = 0; i < s->count && program_fd >= 0 && asked < ASKED_MAX; i++) {
		struct lock_waiter *w = &s->waiters[i];

		if (w->kind != RECORD_KERNEL_LOCK_socket || w->is_asked ||
			!lock_search_stands(s, w))
			continue;
		w->root = ask_socket(w, program_fd);
		w->is_asked = true;
		asked++;
	}
}

static bool is_write(unsigned int number)
{
	switch (number) {
	case SYS_write:
	case SYS_writev:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
		return true;
	default:
		return false;
	}
}

/*
 * "1 0x5 0x7ffc12345678 0x2000 ...". Who waits for a client on a network is looked at in an incident
 * only, since a server does that all the time.
 */
bool lock_search_peers_waits(struct lock_search *s, const char *line, struct lock_waiter *w)
{
	unsigned int number, fd;
	struct end end;
	char name[16];

	if (sscanf(line, "%u 0x%x ", &number, &fd) != 2 || !is_write(number))
		return false;
	snprintf(name, sizeof(name), "%u", fd);
	if (!read_end(s, w->pid, name, &end) ||
		(end.kind == RECORD_KERNEL_LOCK_socket && !s->armed))
		return false;
	w->kind = end.kind;
	w->address = end.inode;
	w->root = end.kind == RECORD_KERNEL_LOCK_pipe ? end.inode : 0;
	w->fd = (int32_t)fd;
	return true;
}

/* The end that it waits for; kind NONE: it does not stand, or that is not known. */
static struct end end_of(const struct lock_search *s, const struct lock_waiter *w)
{
	const bool is_known = w->root &&
		(w->kind == RECORD_KERNEL_LOCK_pipe || w->kind == RECORD_KERNEL_LOCK_socket) &&
		lock_search_stands(s, w);

	return is_known ? (struct end){ w->kind, w->root } : (struct end){ 0 };
}

static bool waits_for(const struct lock_search *s, const struct lock_waiter *w,
	const struct end *end)
{
	const struct end its = end_of(s, w);

	return is_same(&its, end);
}

/* An end, with those who wait for it. A place for each: those with most waiters. */
static void take_end(struct lock_search *s, const struct end *end)
{
	struct held_lock seen = { .kind = end->kind,
		.address = end->inode,
		.is_alone = true,
		.since_ns = s->begin_ns,
		.held_since_ns = s->begin_ns };
	struct held_lock *place;

	for (uint32_t i = 0; i < s->count; i++) {
		const struct lock_waiter *w = &s->waiters[i];

		if (!waits_for(s, w, end))
			continue;
		seen.waiters++;
		seen.is_alone &= w->is_alone;
		/* Each reading wakes one of them: somebody has read when any of them went. */
		if (w->held_since_ns < seen.held_since_ns)
			seen.held_since_ns = w->held_since_ns;
		if (w->since_ns >= seen.since_ns)
			continue;
		seen.since_ns = w->since_ns;
		seen.pid = w->pid;
		seen.fd = w->fd;
	}
	place = lock_search_find_place(s, end->kind, seen.waiters);
	if (place)
		*place = seen;
}

static bool is_first(const struct lock_search *s, const struct lock_waiter *w,
	const struct end *end)
{
	for (const struct lock_waiter *other = s->waiters; other < w; other++)
		if (waits_for(s, other, end))
			return false;
	return true;
}

/* Who could read */

static bool may_read(const struct lock_search *s, int32_t pid, const char *fd)
{
	struct open_files_info info;

	return open_files_read_info(s->procfs_fd, pid, fd, &info) &&
		(info.access_mode == O_RDONLY || info.access_mode == O_RDWR);
}

static void add_reader(struct readers *r, int32_t pid)
{
	if (r->count > READERS_MAX || (r->count && r->pids[r->count - 1] == pid))
		return;
	if (r->count < READERS_MAX)
		r->pids[r->count] = pid;
	r->count++;
}

static bool look_at(void *arg, int32_t pid, const char *fd)
{
	struct visit *v = arg;
	struct end end;

	if (!read_end(v->s, pid, fd, &end))
		return true;
	for (uint32_t i = 0; i < v->count; i++)
		if (is_same(&v->ends[i].end, &end) && may_read(v->s, pid, fd))
			add_reader(&v->ends[i], pid);
	return true;
}

static bool wants(void *arg, int32_t pid)
{
	struct visit *v = arg;

	return lock_search_may_look_at(v->s, pid);
}

static bool has_reader(const struct readers *r, int32_t pid)
{
	for (uint32_t i = 0; i < r->count; i++)
		if (r->pids[i] == pid)
			return true;
	return false;
}

static bool is_waiting(const struct lock_search *s, const struct readers *r, int32_t pid)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (s->waiters[i].pid == pid && waits_for(s, &s->waiters[i], &r->end))
			return true;
	return false;
}

/* Those that wait to write do not read, unless nobody else could. */
static void leave_out_writers(const struct lock_search *s, struct readers *r)
{
	struct readers left = { .end = r->end };

	for (uint32_t i = 0; i < r->count; i++)
		if (!is_waiting(s, r, r->pids[i]))
			left.pids[left.count++] = r->pids[i];
	if (left.count)
		*r = left;
}

static int32_t parent_of(const struct lock_search *s, int32_t pid)
{
	struct watch_thread_status status;

	return thread_status_read(s->procfs_fd, pid, &status) == 0 ? status.parent : 0;
}

/*
 * Who has started both sides keeps the end, to give it to the next reader. That of a reader alone
 * may be the one that reads, and its child have the end by chance.
 */
static void leave_out_parents(const struct lock_search *s, int32_t writer, struct readers *r)
{
	struct readers left = { .end = r->end }, parents = { 0 };
	const int32_t of_writer = parent_of(s, writer);

	for (uint32_t i = 0; i < r->count; i++) {
		const int32_t parent = parent_of(s, r->pids[i]);

		if (parent && (parent == of_writer || parent == writer))
			parents.pids[parents.count++] = parent;
	}
	for (uint32_t i = 0; i < r->count; i++)
		if (!has_reader(&parents, r->pids[i]))
			left.pids[left.count++] = r->pids[i];
	*r = left;
}

/* Of several nobody is named who is not left over alone. */
static void choose(const struct lock_search *s, struct readers *r, struct held_lock *lock)
{
	lock->is_inferred = r->count > 1;
	if (r->count > READERS_MAX)
		return;
	leave_out_writers(s, r);
	leave_out_parents(s, lock->pid, r);
	lock->holder_pid = r->count == 1 ? r->pids[0] : 0;
}

static bool has_readers(const struct held_lock *lock)
{
	return lock->kind == RECORD_KERNEL_LOCK_pipe || lock->kind == RECORD_KERNEL_LOCK_socket;
}

static const struct held_lock *find_last(const struct lock_search *s, const struct held_lock *lock)
{
	for (uint32_t i = 0; i < s->last.count; i++)
		if (s->last.list[i].kind == lock->kind && s->last.list[i].address == lock->address)
			return &s->last.list[i];
	return NULL;
}

static struct readers readers_of(const struct held_lock *lock)
{
	return (struct readers){ .end = { lock->kind, lock->address } };
}

/* Whether the one that was found in the look before has its end still. */
static bool find_again(struct visit *v, const struct open_files *files, struct held_lock *lock)
{
	const struct held_lock *last = find_last(v->s, lock);

	if (!last || !last->holder_pid)
		return false;
	v->count = 1;
	v->ends[0] = readers_of(lock);
	if (!open_files_visit_process(files, last->holder_pid) || v->ends[0].count == 0)
		return false;
	lock->holder_pid = last->holder_pid;
	lock->is_inferred = last->is_inferred;
	return true;
}

static void find_readers(struct lock_search *s)
{
	struct visit v = { .s = s };
	const struct open_files files = { .procfs_fd = s->procfs_fd,
		.deadline_ns = clock_mono_ns() + OPEN_FILES_LIMIT_NS,
		.visit = look_at,
		.arg = &v,
		.wants = wants };
	struct held_lock *unknown[ENDS_MAX];
	uint32_t count = 0;

	for (uint32_t i = 0; i < s->answer.count; i++)
		if (has_readers(&s->answer.list[i]) && !find_again(&v, &files, &s->answer.list[i]))
			unknown[count++] = &s->answer.list[i];
	v.count = count;
	for (uint32_t i = 0; i < count; i++)
		v.ends[i] = readers_of(unknown[i]);
	/*
	 * It takes long. And one of those that were not looked at in time may be the reader, too.
	 */
	if (count == 0 || s->only_known || !open_files_visit(&files))
		return;
	for (uint32_t i = 0; i < count; i++)
		choose(s, &v.ends[i], unknown[i]);
}

/* While no incident is open, it only tells how long threads wait when one opens. */
void lock_search_peers(struct lock_search *s)
{
	for (uint32_t i = 0; i < s->count; i++) {
		const struct end end = end_of(s, &s->waiters[i]);

		if (end.kind && is_first(s, &s->waiters[i], &end))
			take_end(s, &end);
	}
	if (s->armed)
		find_readers(s);
}
