/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "util/cleanup.h"

ssize_t file_read_fd(int fd, char *buf, size_t size)
{
	size_t len = 0;

	for (;;) {
		ssize_t n;

		if (len == size - 1) {
			char more;

			buf[len] = '\0';
			n = pread(fd, &more, 1, (off_t)len);
			return n == 0 ? (ssize_t)len : -ENOBUFS;
		}
		n = pread(fd, buf + len, size - 1 - len, (off_t)len);
		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (n == 0) {
			buf[len] = '\0';
			return (ssize_t)len;
		}
		len += (size_t)n;
	}
}

ssize_t file_read_at(int dirfd, const char *path, char *buf, size_t size)
{
	_cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return file_read_fd(fd, buf, size);
}

int file_write_all(int fd, const char *buf, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, buf, len);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		buf += n;
		len -= (size_t)n;
	}
	return 0;
}

static bool is_memory(const struct statfs *fs)
{
	return fs->f_type == TMPFS_MAGIC || fs->f_type == RAMFS_MAGIC;
}

bool file_is_in_memory(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && is_memory(&fs);
}

bool file_fd_is_in_memory(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && is_memory(&fs);
}

gid_t file_find_group(void)
{
	/* Not getgrnam(): it loads name service modules, which then stay in locked memory. */
	_cleanup_fclose_ FILE *f = fopen("/etc/group", "re");
	const struct group *group;

	while (f && (group = fgetgrent(f)))
		if (strcmp(group->gr_name, FILE_GROUP) == 0)
			return group->gr_gid;
	return FILE_NO_GROUP;
}

int file_set_access(int fd, mode_t mode, gid_t group)
{
	int r = 0;

	if (group != FILE_NO_GROUP && fchown(fd, (uid_t)-1, group) < 0)
		r = -errno;
	/* The umask may have taken the group's bits. */
	fchmod(fd, mode);
	return r;
}
