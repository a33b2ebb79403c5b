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
static bool waits(int task_fd, const char *tid, bool *ret_goes_on)
{
	struct watch_thread_status status;
	char path[32];

	snprintf(path, sizeof(path), "%.15s/status", tid);
	if (thread_status_read_at(task_fd, path, &status) < 0)
		return false;
	*ret_goes_on = status.parent != KTHREADD_PID;
	return *ret_goes_on && status.state == 'D';
}

static bool process_waits(struct any_thread *look, int procfs_fd, const char *pid)
{
	_cleanup_close_ int task_fd = -1;
	struct dents tasks;
	const char *name;
	bool goes_on = true;
	char path[32];
	int32_t tid;

	snprintf(path, sizeof(path), "%.15s/task", pid);
	task_fd = openat(procfs_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dents_reset(&tasks);
	for (uint32_t i = 0;
		task_fd >= 0 && goes_on && dents_next_number(&tasks, task_fd, &tid, &name) > 0;
		i++) {
		if (i < look->seen)
			continue;
		if (!has_time(look))
			return false;
		if (waits(task_fd, name, &goes_on))
			return true;
		look->seen++;
	}
	look->pid++;
	look->seen = 0;
	return false;
}

enum any_thread_found any_thread_find(struct any_thread *look, int procfs_fd)
{
	_cleanup_close_ int fd = openat(procfs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dents processes;
	const char *name;
	int32_t pid;
	int r = 1;

	if (fd < 0)
		return ANY_THREAD_UNKNOWN;
	dents_reset(&processes);
	while (has_time(look) && (r = dents_next_number(&processes, fd, &pid, &name)) > 0) {
		if (pid < look->pid || !look->enter(look->arg, pid))
			continue;
		if (pid != look->pid)
			look->seen = 0;
		look->pid = pid;
		if (process_waits(look, procfs_fd, name))
			return ANY_THREAD_WAITS;
	}
	if (r != 0)
		return ANY_THREAD_UNKNOWN;
	/* It begins with the first again. */
	look->pid = 0;
	return ANY_THREAD_NONE;
}
