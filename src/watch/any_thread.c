/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/any_thread.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "watch/dents.h"
#include "watch/thread_status.h"

/* Of whom all threads of the kernel are children. */
#define KTHREADD_PID 2

static bool has_time(const struct any_thread *look)
{
	return watch_clock_ns(&look->clock) < look->until_ns;
}

/* False also for a thread of the kernel; ret_goes_on: other threads of the process may be in D. */
static bool waits(int task_fd, const char *tid, struct watch_thread_status *ret_status,
	bool *ret_goes_on)
{
	char path[32];

	snprintf(path, sizeof(path), "%.15s/status", tid);
	if (thread_status_read_at(task_fd, path, ret_status) < 0)
		return false;
	*ret_goes_on = ret_status->parent != KTHREADD_PID;
	return *ret_goes_on && ret_status->state == 'D';
}

static enum any_thread_found note_found(struct any_thread *look, int32_t tid, uint64_t switches)
{
	const bool lasts = tid == look->tid && switches == look->switches;

	look->tid = tid;
	look->switches = switches;
	return lasts ? ANY_THREAD_LASTS : ANY_THREAD_WAITS;
}

/* The next look begins with the first of them all the same. */
static uint32_t count_others(const struct any_thread *look, struct dents *tasks, int task_fd)
{
	struct watch_thread_status status;
	const char *name;
	uint32_t count = 0;
	bool goes_on;
	int32_t tid;

	while (count < ANY_THREAD_ENOUGH - 1 && has_time(look) &&
		dents_next_number(tasks, task_fd, &tid, &name) > 0)
		count += waits(task_fd, name, &status, &goes_on);
	return count;
}

static enum any_thread_found look_at_process(struct any_thread *look, int procfs_fd,
	const char *pid)
{
	_cleanup_close_ int task_fd = -1;
	struct watch_thread_status status;
	struct dents tasks;
	const char *name;
	bool goes_on = true;
	char path[32];
	int32_t tid;

	snprintf(path, sizeof(path), "%.15s/task", pid);
	task_fd = openat(procfs_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (task_fd < 0)
		return ANY_THREAD_NONE;
	dents_seek(&tasks, task_fd, look->thread_place);
	while (goes_on && dents_next_number(&tasks, task_fd, &tid, &name) > 0) {
		look->thread_place = tasks.place;
		if (!has_time(look))
			return ANY_THREAD_UNKNOWN;
		if (waits(task_fd, name, &status, &goes_on)) {
			look->count = 1 + count_others(look, &tasks, task_fd);
			return note_found(look, tid, status.switches);
		}
	}
	return ANY_THREAD_NONE;
}

static void go_on_at(struct any_thread *look, int64_t process_place, int32_t pid)
{
	look->process_place = process_place;
	if (pid != look->pid)
		look->thread_place = 0;
	look->pid = pid;
}

enum any_thread_found any_thread_find(struct any_thread *look, int procfs_fd)
{
	_cleanup_close_ int fd = openat(procfs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	enum any_thread_found found = ANY_THREAD_NONE;
	struct dents processes;
	const char *name;
	int32_t pid;
	int r = 1;

	look->count = 0;
	if (fd < 0)
		return ANY_THREAD_UNKNOWN;
	dents_seek(&processes, fd, look->process_place);
	while (has_time(look) && (r = dents_next_number(&processes, fd, &pid, &name)) > 0) {
		go_on_at(look, processes.place, pid);
		if (look->enter(look->arg, pid))
			found = look_at_process(look, procfs_fd, name);
		if (found != ANY_THREAD_NONE)
			return found;
		go_on_at(look, processes.next_place, 0);
	}
	if (r != 0)
		return ANY_THREAD_UNKNOWN;
	/* It begins with the first again. */
	go_on_at(look, 0, 0);
	return ANY_THREAD_NONE;
}
