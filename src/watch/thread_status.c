/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/thread_status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/file.h"
#include "util/text.h"

#define STATUS_SIZE 8192
/* Name and ids at the beginning take less than 300 bytes, the switches at the end less than 200. */
#define STATUS_END 1024

/*
 * The status of a process in many groups, or on a host with many CPUs, may be longer than the
 * buffer: then the middle of it is left out. It is one text of one moment, since the kernel writes
 * it when its beginning is read and keeps it until its end is.
 */
static ssize_t read_both_ends(int fd, char *buf, size_t size)
{
	size_t len = 0;
	off_t at = 0;
	ssize_t n;

	do {
		if (len == size - 1) {
			memmove(buf + STATUS_END, buf + len - STATUS_END, STATUS_END);
			len = 2 * STATUS_END;
		}
		n = pread(fd, buf + len, size - 1 - len, at);
		if (n > 0) {
			len += (size_t)n;
			at += n;
		}
	} while (n > 0 || (n < 0 && errno == EINTR));
	return n < 0 ? -errno : (ssize_t)len;
}

int thread_status_read_at(int dir_fd, const char *path, struct watch_thread_status *ret_status)
{
	_cleanup_close_ int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
	char buf[STATUS_SIZE];
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read_both_ends(fd, buf, sizeof(buf));
	return n < 0 ? (int)n : watch_parse_thread_status(buf, (size_t)n, ret_status);
}

int thread_status_read(int procfs_fd, int32_t tid, struct watch_thread_status *ret_status)
{
	char path[32];

	snprintf(path, sizeof(path), "%d/status", tid);
	return thread_status_read_at(procfs_fd, path, ret_status);
}

int thread_comm_read(int procfs_fd, int32_t tid, char *ret_comm, size_t size)
{
	char path[32], buf[2 * WATCH_COMM_SIZE];
	ssize_t n;

	snprintf(path, sizeof(path), "%d/comm", tid);
	n = file_read_at(procfs_fd, path, buf, sizeof(buf));
	if (n < 0)
		return (int)n;
	if (n > 0 && buf[n - 1] == '\n')
		buf[n - 1] = '\0';
	text_copy(ret_comm, size, buf);
	return 0;
}
