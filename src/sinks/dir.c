/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sinks/dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "util/cleanup.h"
#include "util/file.h"

int dir_open_or_make(const char *path, gid_t group)
{
	bool made = false;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	/*
	 * Only then, since mkdir() waits for a frozen file system even where the directory exists.
	 */
	if (fd < 0 && errno == ENOENT) {
		made = mkdir(path, 0750) == 0;
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (fd < 0)
		return -errno;
	if (made)
		file_set_access(fd, 0750, group);
	return fd;
}

DIR *dir_list(int dir_fd)
{
	_cleanup_close_ int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (dir)
		fd = -1;
	return dir;
}
