/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/thread_status.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/file.h"

#define STATUS_SIZE 8192

int thread_status_read_at(int dir_fd, const char *path, struct watch_thread_status *ret_status)
{
	char buf[STATUS_SIZE];
	ssize_t n = file_read_at(dir_fd, path, buf, sizeof(buf));

	/* Of a process in very many groups, whose list is long, the first lines are enough. */
	if (n < 0 && n != -ENOBUFS)
		return (int)n;
	return watch_parse_thread_status(buf, strlen(buf), ret_status);
}

int thread_status_read(int procfs_fd, int32_t tid, struct watch_thread_status *ret_status)
{
	char path[32];

	snprintf(path, sizeof(path), "%d/status", tid);
	return thread_status_read_at(procfs_fd, path, ret_status);
}
