/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/file.h"
#include "watch/parsers.h"

#define STAT_SIZE 1024
#define STATUS_SIZE 8192
#define PATH_SIZE 64

void threads_init(struct threads *t, int procfs_fd)
{
	memset(t, 0, sizeof(*t));
	t->procfs_fd = procfs_fd;
	t->task_fd = -1;
}

void threads_done(struct threads *t)
{
	t->task_fd = close_fd(t->task_fd);
}

void threads_reset(struct threads *t)
{
	t->task_fd = close_fd(t->task_fd);
	t->process = 0;
	t->recheck = 0;
	t->count = 0;
	t->left_out = 0;
	memset(t->index, 0, sizeof(t->index));
}

/*
 * The file is opened for each reading, which takes 2.8 us (6.18, 200 threads). An open descriptor
 * would take 1.2 us, but also a descriptor and a page of kernel memory for each thread of the host.
 */
static int read_stat(int dir_fd, const char *path, struct watch_thread_stat *ret_stat)
{
	_cleanup_close_ int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
	char buf[STAT_SIZE];
	ssize_t n;

	if (fd < 0)
		return -errno;
	/* One read is enough: the kernel generates the whole text at once. */
	n = read(fd, buf, sizeof(buf));
	if (n < 0)
		return -errno;
	return watch_parse_thread_stat(buf, (size_t)n, ret_stat);
}

static int read_thread(const struct threads *t, int32_t pid, int32_t tid,
	struct watch_thread_stat *ret_stat)
{
	struct watch_thread_stat stat;
	char path[PATH_SIZE];
	int r;

	snprintf(path, sizeof(path), "%d/task/%d/stat", pid, tid);
	r = read_stat(t->procfs_fd, path, &stat);
	if (r < 0)
		return r;
	if (stat.id != tid)
		return -EINVAL;
	*ret_stat = stat;
	return 0;
}

static int read_switches(const struct threads *t, int32_t pid, int32_t tid, uint64_t *ret_switches)
{
	char path[PATH_SIZE], buf[STATUS_SIZE];
	uint64_t runs;
	ssize_t n;

	snprintf(path, sizeof(path), "%d/task/%d/schedstat", pid, tid);
	n = file_read_at(t->procfs_fd, path, buf, sizeof(buf));
	/* A thread that sleeps has run before, so 0 means that this kernel does not count. */
	if (n >= 0 && watch_parse_schedstat(buf, (size_t)n, &runs) == 0 && runs > 0) {
		*ret_switches = runs;
		return 0;
	}
	snprintf(path, sizeof(path), "%d/task/%d/status", pid, tid);
	n = file_read_at(t->procfs_fd, path, buf, sizeof(buf));
	if (n < 0)
		return (int)n;
	return watch_parse_status_switches(buf, (size_t)n, ret_switches);
}

static uint32_t index_slot(const struct threads *t, int32_t tid)
{
	uint32_t i = (uint32_t)tid % THREADS_INDEX_SLOTS;

	while (t->index[i] != 0 && t->suspects[t->index[i] - 1].tid != tid)
		i = (i + 1) % THREADS_INDEX_SLOTS;
	return i;
}

static void index_rebuild(struct threads *t)
{
	memset(t->index, 0, sizeof(t->index));
	for (uint32_t i = 0; i < t->count; i++)
		t->index[index_slot(t, t->suspects[i].tid)] = (uint16_t)(i + 1);
}

/*
 * The state is read again after the count. If the thread woke up in between, it is either not in D
 * now, or its count will have changed by the next scan.
 */
static void suspect_add(struct threads *t, int32_t pid, const struct watch_thread_stat *stat,
	uint64_t now_ns)
{
	struct watch_thread_stat again;
	uint64_t switches;
	struct threads_suspect *suspect;

	if (t->count == WATCH_THREADS_MAX) {
		t->left_out++;
		return;
	}
	if (read_switches(t, pid, stat->id, &switches) < 0 ||
		read_thread(t, pid, stat->id, &again) < 0 || again.state != 'D')
		return;
	suspect = &t->suspects[t->count++];
	*suspect = (struct threads_suspect){
		.pid = pid,
		.tid = stat->id,
		.start_ticks = stat->start_ticks,
		.switches = switches,
		.since_ns = now_ns,
	};
	t->index[index_slot(t, suspect->tid)] = (uint16_t)t->count;
}

/* False when the thread is not in D any more. */
static bool suspect_recheck(struct threads *t, struct threads_suspect *suspect, uint64_t now_ns,
	uint64_t min_age_ns)
{
	struct watch_thread_stat stat;
	uint64_t switches;

	if (read_switches(t, suspect->pid, suspect->tid, &switches) < 0 ||
		read_thread(t, suspect->pid, suspect->tid, &stat) < 0)
		return false;
	if (stat.state != 'D' || stat.start_ticks != suspect->start_ticks)
		return false;
	if (switches != suspect->switches) {
		suspect->switches = switches;
		suspect->since_ns = now_ns;
		suspect->blocked = false;
		return true;
	}
	suspect->blocked = now_ns - suspect->since_ns >= min_age_ns;
	return true;
}

/* False when the time ran out; suspects that were not reached keep their state. */
static bool recheck_suspects(struct threads *t, const struct threads_scan *scan, uint32_t *scanned)
{
	uint32_t total = t->count, done = 0, kept = 0, next = 0;
	bool in_time = true;

	if (total == 0)
		return true;
	for (uint32_t i = t->recheck % total; done < total; done++, i = (i + 1) % total) {
		struct threads_suspect *suspect = &t->suspects[i];
		uint64_t now_ns = watch_clock_ns(scan->clock);

		in_time = now_ns < scan->deadline_ns;
		if (!in_time) {
			next = i;
			break;
		}
		/* One that is dropped is counted when the scan of its process reads it again. */
		if (suspect_recheck(t, suspect, now_ns, scan->min_age_ns))
			(*scanned)++;
		else
			suspect->tid = 0;
	}
	t->recheck = next;
	for (uint32_t i = 0; i < total; i++) {
		if (t->suspects[i].tid != 0)
			t->suspects[kept++] = t->suspects[i];
		else if (i < next)
			t->recheck--;
	}
	t->count = kept;
	index_rebuild(t);
	return in_time;
}

static void process_leave(struct threads *t)
{
	t->task_fd = close_fd(t->task_fd);
	t->process++;
}

/* The process has gone, or its pid is another process's now. The next one takes its index. */
static void process_lose(struct threads *t, struct processes *processes)
{
	t->task_fd = close_fd(t->task_fd);
	processes_remove(processes, t->process);
}

static void process_enter(struct threads *t, struct processes *processes)
{
	char path[PATH_SIZE];

	snprintf(path, sizeof(path), "%d/task", processes->list[t->process].pid);
	t->task_fd = openat(t->procfs_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dents_reset(&t->dents);
	t->empty = true;
	if (t->task_fd >= 0)
		return;
	if (errno == ENOENT || errno == ESRCH)
		process_lose(t, processes);
	else
		process_leave(t);
}

/* Reads one thread of the current process. False: the pid is another process's by now. */
static bool thread_visit(struct threads *t, const struct watch_process *process, int32_t tid,
	const char *name, uint64_t now_ns, uint32_t *scanned)
{
	struct watch_thread_stat stat;
	char path[PATH_SIZE];

	if (t->count > 0 && t->index[index_slot(t, tid)] != 0)
		return true;
	snprintf(path, sizeof(path), "%s/stat", name);
	if (read_stat(t->task_fd, path, &stat) < 0 || stat.id != tid)
		return true;
	(*scanned)++;
	if (tid == process->pid && stat.start_ticks != process->start_ticks)
		return false;
	if (stat.state == 'D')
		suspect_add(t, process->pid, &stat, now_ns);
	return true;
}

/* One step: opens a process or reads one thread of it. */
static void scan_step(struct threads *t, struct processes *processes, uint64_t now_ns,
	uint32_t *scanned)
{
	const char *name;
	int32_t tid;
	int r;

	if (t->task_fd < 0) {
		process_enter(t, processes);
		return;
	}
	r = dents_next_number(&t->dents, t->task_fd, &tid, &name);
	if (r <= 0) {
		if (t->empty)
			process_lose(t, processes);
		else
			process_leave(t);
		return;
	}
	t->empty = false;
	if (!thread_visit(t, &processes->list[t->process], tid, name, now_ns, scanned))
		process_lose(t, processes);
}

/* True when this one scan read every thread. */
static bool scan_threads(struct threads *t, struct processes *processes,
	const struct threads_scan *scan, uint32_t *scanned)
{
	bool whole;

	if (scan->full && t->restart) {
		t->task_fd = close_fd(t->task_fd);
		t->process = 0;
	}
	if (t->process >= processes->count && t->task_fd < 0)
		t->process = 0;
	whole = t->process == 0 && t->task_fd < 0;
	while (t->process < processes->count) {
		uint64_t now_ns = watch_clock_ns(scan->clock);

		if (now_ns >= scan->deadline_ns) {
			/* A full scan that ran out of time goes on, so that the last processes are
			 * seen, too. */
			t->restart = !scan->full;
			return false;
		}
		scan_step(t, processes, now_ns, scanned);
	}
	t->restart = true;
	return whole;
}

void threads_take_scan(struct threads *t, struct processes *processes,
	const struct threads_scan *scan, struct record_threads *ret_threads)
{
	struct record_threads found = { 0 };
	uint64_t oldest_ns = UINT64_MAX;

	t->left_out = 0;
	found.complete = recheck_suspects(t, scan, &found.scanned);
	found.complete &= scan_threads(t, processes, scan, &found.scanned);
	for (uint32_t i = 0; i < t->count; i++) {
		const struct threads_suspect *suspect = &t->suspects[i];

		if (!suspect->blocked)
			continue;
		found.blocked++;
		if (suspect->since_ns >= oldest_ns)
			continue;
		oldest_ns = suspect->since_ns;
		found.blocked_pid = suspect->pid;
		found.blocked_tid = suspect->tid;
	}
	*ret_threads = found;
}
