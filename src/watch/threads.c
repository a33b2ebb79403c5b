/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/text.h"
#include "watch/freezers.h"
#include "watch/thread_status.h"

#define PATH_SIZE 64
/*
 * However slow the CPU is, or whatever else it ran meanwhile, a scan reads at least so many threads
 * unless that takes longer than a full scan. In a pile-up nearly every thread of a server is in D,
 * and one that is makes the scan go on.
 */
#define THREADS_MIN 4

void threads_init(struct threads *t)
{
	t->task_fd = -1;
}

static void forget(struct threads *t)
{
	t->task_fd = close_fd(t->task_fd);
	t->process = 0;
	t->recheck = 0;
	t->count = t->fresh = 0;
	memset(t->index, 0, sizeof(t->index));
	t->forget = false;
}

/* If it does not return, its owner leaves that process out. */
static void note_reading(struct threads *t, int32_t pid)
{
	__atomic_store_n(&t->reading, pid, __ATOMIC_RELAXED);
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

static bool is_stopped(const struct watch_thread_status *status)
{
	return status->state == 'T' || status->state == 't';
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
	t->fresh++;
	*suspect = (struct threads_suspect){
		.pid = status->process,
		.tid = status->id,
		.tracer = status->tracer,
		.is_stopped = is_stopped(status),
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
	return (status->state == 'D' || is_stopped(status)) && status->has_switches;
}

/* False when the thread is no suspect any more. */
static bool suspect_recheck(struct threads *t, struct threads_suspect *suspect, uint64_t now_ns,
	uint64_t min_age_ns)
{
	struct watch_thread_status status;
	char path[PATH_SIZE];

	snprintf(path, sizeof(path), "%d/task/%d/status", suspect->pid, suspect->tid);
	note_reading(t, suspect->pid);
	if (thread_status_read_at(t->procfs_fd, path, &status) < 0 || !is_suspect(&status))
		return false;
	suspect->tracer = status.tracer;
	if (status.switches != suspect->switches || is_stopped(&status) != suspect->is_stopped) {
		suspect->switches = status.switches;
		suspect->is_stopped = is_stopped(&status);
		suspect->since_ns = now_ns;
		suspect->lasts = false;
		return true;
	}
	suspect->lasts = now_ns - suspect->since_ns >= min_age_ns;
	return true;
}

static uint64_t deadline_of(const struct threads *t, const struct threads_scan *scan)
{
	return t->fresh > 0 ? scan->suspect_deadline_ns : scan->deadline_ns;
}

static bool is_left_stopped(const struct threads_suspect *suspect, uint64_t now_ns)
{
	return suspect->is_stopped && now_ns - suspect->since_ns >= THREADS_STOPPED_NS;
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
		uint64_t now_ns = watch_clock_ns(&scan->clock);

		in_time = now_ns < deadline_of(t, scan);
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
	t->fresh = 0;
	for (uint32_t i = 0; i < kept; i++)
		t->fresh += !is_left_stopped(&t->suspects[i], watch_clock_ns(&scan->clock));
	index_rebuild(t);
	return in_time;
}

static void process_leave(struct threads *t)
{
	t->task_fd = close_fd(t->task_fd);
	t->process++;
}

/* The process has ended, or a later one has its id. */
static void process_lose(struct threads *t)
{
	t->processes[t->process].has_gone = true;
	process_leave(t);
}

static bool is_skipped(const struct threads *t, int32_t pid)
{
	for (unsigned int i = 0; i < THREADS_SKIP_MAX; i++)
		if (t->skip[i] == pid)
			return true;
	return false;
}

static void process_enter(struct threads *t)
{
	const struct threads_process *process = &t->processes[t->process];
	char path[PATH_SIZE];

	if (process->has_gone || is_skipped(t, process->pid)) {
		process_leave(t);
		return;
	}
	note_reading(t, process->pid);
	snprintf(path, sizeof(path), "%d/task", process->pid);
	t->task_fd = openat(t->procfs_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	t->task_pid = process->pid;
	dents_reset(&t->dents);
	t->empty = true;
	if (t->task_fd >= 0)
		return;
	if (errno == ENOENT || errno == ESRCH)
		process_lose(t);
	else
		process_leave(t);
}

/* Reads one thread of the current process. */
static void thread_visit(struct threads *t, int32_t tid, const char *name, uint64_t now_ns,
	uint32_t *scanned)
{
	struct threads_process *process = &t->processes[t->process];
	struct watch_thread_status status;
	char path[PATH_SIZE];

	if (t->count > 0 && t->index[index_slot(t, tid)] != 0)
		return;
	snprintf(path, sizeof(path), "%s/status", name);
	note_reading(t, process->pid);
	if (thread_status_read_at(t->task_fd, path, &status) < 0 || status.id != tid)
		return;
	(*scanned)++;
	if (tid == process->pid) {
		process->has_name = true;
		process->is_running =
			status.process == tid && status.state != 'Z' && status.state != 'X';
		text_copy(process->comm, sizeof(process->comm), status.comm);
	}
	if (is_suspect(&status))
		suspect_add(t, &status, now_ns);
}

/* One step: opens a process or reads one thread of it. */
static void scan_step(struct threads *t, uint64_t now_ns, uint32_t *scanned)
{
	const char *name;
	int32_t tid;
	int r;

	if (t->task_fd < 0) {
		process_enter(t);
		return;
	}
	r = dents_next_number(&t->dents, t->task_fd, &tid, &name);
	if (r <= 0) {
		if (t->empty)
			process_lose(t);
		else
			process_leave(t);
		return;
	}
	t->empty = false;
	thread_visit(t, tid, name, now_ns, scanned);
}

static void restart(struct threads *t)
{
	t->task_fd = close_fd(t->task_fd);
	t->process = 0;
}

/* `read` threads were read in this scan, rechecks not counted. */
static bool is_over(const struct threads *t, const struct threads_scan *scan, uint64_t now_ns,
	uint32_t read)
{
	return now_ns >= scan->last_ns || (now_ns >= deadline_of(t, scan) && read >= THREADS_MIN);
}

/*
 * Whether a scan that began in the middle is to begin anew: where one thread is in D, those that
 * were read in earlier scans may be by now; and when it comes to the end of the list early, it may
 * have read only the last few.
 */
static bool must_begin_anew(const struct threads *t, bool full, uint32_t known, uint32_t read)
{
	return t->count > known ||
		(t->process >= t->processes_count && (full || read < THREADS_MIN));
}

/* True when this one scan read every thread. */
static bool scan_threads(struct threads *t, const struct threads_scan *scan, uint32_t *scanned)
{
	const uint32_t known = t->count, rechecked = *scanned;
	bool whole;

	if (scan->full && t->restart)
		restart(t);
	if (t->process >= t->processes_count && t->task_fd < 0)
		t->process = 0;
	whole = t->process == 0 && t->task_fd < 0;
	while (t->process < t->processes_count) {
		uint64_t now_ns = watch_clock_ns(&scan->clock);

		if (is_over(t, scan, now_ns, *scanned - rechecked)) {
			/* A full scan that ran out of time goes on, so that the last processes are
			 * seen, too. */
			t->restart = !scan->full;
			return false;
		}
		scan_step(t, now_ns, scanned);
		if (!whole && must_begin_anew(t, scan->full, known, *scanned - rechecked)) {
			restart(t);
			whole = true;
			/* What was read is read again, but for the suspects. */
			*scanned = rechecked + t->count - known;
			t->left_out = 0;
		}
	}
	t->restart = true;
	return whole;
}

/* Its directory may be that of a process which is not in the list any more. */
static void begin(struct threads *t, int procfs_fd)
{
	t->procfs_fd = procfs_fd;
	t->left_out = 0;
	if (t->forget)
		forget(t);
	if (t->task_fd >= 0 &&
		(t->process >= t->processes_count || t->processes[t->process].pid != t->task_pid))
		t->task_fd = close_fd(t->task_fd);
}

/* For any_thread.h. */
static bool enter(void *arg, int32_t pid)
{
	struct threads *t = arg;

	note_reading(t, pid);
	return !is_skipped(t, pid);
}

static enum any_thread_found find_waiting(struct threads *t, const struct threads_scan *scan)
{
	enum any_thread_found found = ANY_THREAD_NONE, other;

	t->waiting_count = 0;
	for (uint32_t i = 0; i < t->count; i++) {
		if (t->suspects[i].is_stopped)
			continue;
		t->waiting_count++;
		if (t->suspects[i].lasts)
			return ANY_THREAD_LASTS;
		found = ANY_THREAD_WAITS;
	}
	if (!scan->anybody)
		return found;
	t->any.enter = enter;
	t->any.arg = t;
	t->any.clock = scan->clock;
	t->any.until_ns = watch_clock_ns(&scan->clock) + scan->suspect_deadline_ns;
	other = any_thread_find(&t->any, t->procfs_fd);
	/* They may be the same. */
	if (t->any.count > t->waiting_count)
		t->waiting_count = t->any.count;
	return other == ANY_THREAD_LASTS || found == ANY_THREAD_NONE ? other : found;
}

void threads_take_scan(struct threads *t, int procfs_fd, const struct threads_scan *scan,
	struct record_threads *ret_threads)
{
	const uint64_t now_ns = watch_clock_ns(&scan->clock);
	struct threads_scan limits = *scan;
	struct record_threads found = { 0 };

	limits.deadline_ns += now_ns;
	limits.suspect_deadline_ns += now_ns;
	limits.last_ns += now_ns;
	begin(t, procfs_fd);
	found.complete = recheck_suspects(t, &limits, &found.scanned);
	found.complete &= scan_threads(t, &limits, &found.scanned);
	t->waiting = find_waiting(t, scan);
	*ret_threads = found;
}

/* No thread of it is a suspect any more. The next scan drops what has no process. */
static void suspects_forget(struct threads *t, int32_t pid)
{
	for (uint32_t i = 0; i < t->count; i++)
		if (t->suspects[i].pid == pid)
			t->suspects[i].pid = t->suspects[i].lasts = 0;
}

static bool is_other(const struct threads_process *found, struct processes *processes,
	uint32_t index)
{
	const struct watch_process *listed = &processes->list[index];

	return listed->has_left ||
		(found->has_name && strcmp(found->comm, listed->comm) != 0 &&
			!processes_rename(processes, index, found->comm, found->is_running));
}

/* From the end of the list, since what is behind a process that is removed moves. */
void threads_update_processes(struct threads *t, struct processes *processes)
{
	for (uint32_t i = t->processes_count; i-- > 0;) {
		const struct threads_process *process = &t->processes[i];

		if (!process->has_gone) {
			if (!is_other(process, processes, i))
				continue;
			suspects_forget(t, process->pid);
		}
		processes_remove(processes, i);
		t->process -= i < t->process;
	}
}

void threads_count_blocked(const struct threads *t, struct processes *processes,
	const struct freezers *freezers, struct record_threads *threads)
{
	uint64_t oldest_ns = UINT64_MAX;

	for (uint32_t i = 0; i < t->count; i++) {
		const struct threads_suspect *suspect = &t->suspects[i];

		if (!suspect->lasts || suspect->is_stopped ||
			freezers_keep(freezers, processes, suspect->pid, suspect->since_ns))
			continue;
		threads->blocked++;
		if (suspect->since_ns >= oldest_ns)
			continue;
		oldest_ns = suspect->since_ns;
		threads->blocked_pid = suspect->pid;
		threads->blocked_tid = suspect->tid;
	}
}

static const struct threads_suspect *find_stopped(const struct threads *t, uint64_t now_ns)
{
	const struct threads_suspect *oldest = NULL;

	for (uint32_t i = 0; i < t->count; i++) {
		const struct threads_suspect *suspect = &t->suspects[i];

		if (suspect->lasts && suspect->is_stopped && !is_left_stopped(suspect, now_ns) &&
			(!oldest || suspect->since_ns < oldest->since_ns))
			oldest = suspect;
	}
	return oldest;
}

void threads_fill_stopped(const struct threads *t, const struct processes *processes, int procfs_fd,
	uint64_t now_ns, struct record_stopped *ret_stopped)
{
	const struct threads_suspect *oldest = find_stopped(t, now_ns);

	*ret_stopped = (struct record_stopped){ .present = oldest != NULL };
	if (!oldest)
		return;
	ret_stopped->pid = oldest->pid;
	ret_stopped->stopped_ns = now_ns - oldest->since_ns;
	for (uint32_t i = 0; i < t->count; i++)
		ret_stopped->threads += t->suspects[i].lasts && t->suspects[i].is_stopped &&
			t->suspects[i].pid == oldest->pid;
	processes_copy_comm(processes, oldest->pid, ret_stopped->comm, sizeof(ret_stopped->comm));
	/* One that has ended since does not stop it any more. */
	if (oldest->tracer &&
		thread_comm_read(procfs_fd, oldest->tracer, ret_stopped->tracer_comm,
			sizeof(ret_stopped->tracer_comm)) == 0)
		ret_stopped->tracer = oldest->tracer;
}
