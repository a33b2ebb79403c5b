/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "watch/thread_status.h"

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

static void suspect_add(struct threads *t, const struct watch_thread_status *status,
	uint64_t now_ns)
{
	struct threads_suspect *suspect;

	if (t->count == WATCH_THREADS_MAX) {
		t->left_out++;
		return;
	}
	suspect = &t->suspects[t->count++];
	*suspect = (struct threads_suspect){
		.pid = status->process,
		.tid = status->id,
		.switches = status->switches,
		.since_ns = now_ns,
	};
	t->index[index_slot(t, suspect->tid)] = (uint16_t)t->count;
}

/*
 * The kernel writes the state before the count. If the thread woke up in between, it is either not
 * in D any more, or its count will have changed by the next scan. A later owner of the id is taken
 * for the same sleep only when it is in D with the very same count.
 */
static bool is_suspect(const struct watch_thread_status *status)
{
	return status->state == 'D' && status->has_switches;
}

/* False when the thread is not in D any more. */
static bool suspect_recheck(struct threads *t, struct threads_suspect *suspect, uint64_t now_ns,
	uint64_t min_age_ns)
{
	struct watch_thread_status status;
	char path[PATH_SIZE];

	snprintf(path, sizeof(path), "%d/task/%d/status", suspect->pid, suspect->tid);
	if (thread_status_read_at(t->procfs_fd, path, &status) < 0 || !is_suspect(&status))
		return false;
	if (status.switches != suspect->switches) {
		suspect->switches = status.switches;
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

/*
 * Reads one thread of the current process. False: the process has another name by now and is not
 * watched any more.
 */
static bool thread_visit(struct threads *t, struct processes *processes, int32_t tid,
	const char *name, uint64_t now_ns, bool armed, uint32_t *scanned)
{
	const struct watch_process *process = &processes->list[t->process];
	struct watch_thread_status status;
	char path[PATH_SIZE];

	if (t->count > 0 && t->index[index_slot(t, tid)] != 0)
		return true;
	snprintf(path, sizeof(path), "%s/status", name);
	if (thread_status_read_at(t->task_fd, path, &status) < 0 || status.id != tid)
		return true;
	(*scanned)++;
	if (tid == process->pid && strcmp(status.comm, process->comm) != 0 &&
		!processes_rename(processes, t->process, status.comm, armed))
		return false;
	if (is_suspect(&status))
		suspect_add(t, &status, now_ns);
	return true;
}

/* One step: opens a process or reads one thread of it. */
static void scan_step(struct threads *t, struct processes *processes, uint64_t now_ns, bool armed,
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
	if (!thread_visit(t, processes, tid, name, now_ns, armed, scanned))
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
		scan_step(t, processes, now_ns, scan->armed, scanned);
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
