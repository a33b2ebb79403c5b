/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sql/threads.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/file.h"

int32_t sql_read_parent(int procfs_fd, int32_t pid)
{
	char path[32], buf[512], state;
	const char *end;
	int32_t parent;

	snprintf(path, sizeof(path), "%d/stat", pid);
	if (file_read_at(procfs_fd, path, buf, sizeof(buf)) <= 0)
		return 0;
	/* State and parent follow the command, which may have any characters. */
	end = strrchr(buf, ')');
	return end && sscanf(end, ") %c %d", &state, &parent) == 2 ? parent : 0;
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

static uint64_t find_number(const char *text, const char *key)
{
	const char *at = strstr(text, key);
	uint64_t value = 0;

	return at && sscanf(at + strlen(key), "%" SCNu64, &value) == 1 ? value : 0;
}

bool sql_thread_read_bytes(int procfs_fd, int32_t tid, int32_t server_pid, bool is_process,
	uint64_t *ret_bytes)
{
	char path[64], buf[512];

	if (tid <= 0)
		return false;
	if (is_process)
		snprintf(path, sizeof(path), "%d/io", tid);
	else
		snprintf(path, sizeof(path), "%d/task/%d/io", server_pid, tid);
	if (file_read_at(procfs_fd, path, buf, sizeof(buf)) <= 0)
		return false;
	*ret_bytes = find_number(buf, "\nread_bytes: ") + find_number(buf, "\nwrite_bytes: ");
	return true;
}
