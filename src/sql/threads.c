/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sql/threads.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/file.h"

static bool is_child_of(int procfs_fd, int32_t pid, int32_t parent)
{
	char path[32], buf[512], state;
	const char *end;
	int32_t found;

	snprintf(path, sizeof(path), "%d/stat", pid);
	if (file_read_at(procfs_fd, path, buf, sizeof(buf)) <= 0)
		return false;
	/* Behind the command, which may hold anything: state and parent. */
	end = strrchr(buf, ')');
	return end && sscanf(end, ") %c %d", &state, &found) == 2 && found == parent;
}

bool sql_thread_is_of(int procfs_fd, int32_t tid, int32_t server_pid, bool is_process)
{
	char path[64];

	if (is_process)
		return is_child_of(procfs_fd, tid, server_pid);
	snprintf(path, sizeof(path), "%d/task/%d", server_pid, tid);
	return faccessat(procfs_fd, path, F_OK, 0) == 0;
}
