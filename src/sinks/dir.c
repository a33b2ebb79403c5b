/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sinks/dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/file.h"

static bool is_ours(const struct stat *st)
{
	return st->st_uid == 0 || st->st_uid == geteuid();
}

/* The mode of the directory is its owner's to set: a group that may write in it is meant to. */
int dir_check(int fd, enum dir_use use)
{
	struct stat dir, parent;

	if (fstat(fd, &dir) < 0 || fstatat(fd, "..", &parent, 0) < 0)
		return -errno;
	if (dir.st_mode & S_IWOTH)
		return -DIR_EUNSAFE;
	if ((parent.st_mode & S_IWOTH) && !(parent.st_mode & S_ISVTX))
		return -DIR_EUNSAFE;
	if (use == DIR_SPOOL)
		return is_ours(&dir) && is_ours(&parent) ? 0 : -DIR_EUNSAFE;
	return is_ours(&dir) || !(parent.st_mode & S_IWOTH) ? 0 : -DIR_EUNSAFE;
}

const char *dir_strerror(int error)
{
	switch (-error) {
	case DIR_EUNSAFE:
		return "others could change the records in it; expected a directory of root that only root "
		       "can write, in another such directory";
	case ENOTDIR:
		return "it is a file or a symbolic link; expected the directory itself";
	default:
		return strerror(-error);
	}
}

int dir_open_or_make(const char *path, enum dir_use use, gid_t group)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (use == DIR_SPOOL ? O_NOFOLLOW : 0);
	_cleanup_close_ int fd = open(path, flags);
	bool made = false;
	int r;

	/*
	 * Only then, since mkdir() waits for a frozen file system even where the directory exists.
	 */
	if (fd < 0 && errno == ENOENT) {
		made = mkdir(path, 0750) == 0;
		fd = open(path, flags);
	}
	if (fd < 0)
		return -errno;
	r = dir_check(fd, use);
	if (r < 0)
		return r;
	if (made)
		file_set_access(fd, 0750, group);
	return TAKE_FD(fd);
}

DIR *dir_list(int dir_fd)
{
	_cleanup_close_ int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (dir)
		fd = -1;
	return dir;
}
