/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sql/threads.h"

#include <stdio.h>
#include <unistd.h>

#include "watch/thread_status.h"

int32_t sql_read_parent(int procfs_fd, int32_t pid)
{
	struct watch_thread_status status;

	return thread_status_read(procfs_fd, pid, &status) == 0 ? status.parent : 0;
}

bool sql_has_own_ids(int procfs_fd, int32_t server_pid)
{
	struct watch_thread_status status;

	return server_pid > 0 && thread_status_read(procfs_fd, server_pid, &status) == 0 &&
		status.has_own_ids;
}

bool sql_thread_exists(int procfs_fd, int32_t tid)
{
	char path[32];

	snprintf(path, sizeof(path), "%d", tid);
	return faccessat(procfs_fd, path, F_OK, 0) == 0;
}

bool sql_thread_is_of(int procfs_fd, int32_t tid, int32_t server_pid, bool is_process)
{
	char path[64];

	if (tid <= 0 || server_pid <= 0)
		return false;
	if (is_process)
		return sql_read_parent(procfs_fd, tid) == server_pid;
	snprintf(path, sizeof(path), "%d/task/%d", server_pid, tid);
	return faccessat(procfs_fd, path, F_OK, 0) == 0;
}
