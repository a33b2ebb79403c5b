/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sinks/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"

int lock_open(int spool_fd)
{
	const int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	/* Making it takes the lock of the directory, which whoever reads that may keep for ever. */
	_cleanup_close_ int fd = openat(spool_fd, LOCK_NAME, flags);
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		fd = openat(spool_fd, LOCK_NAME, flags | O_CREAT, 0600);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return -EPERM;
	if ((st.st_mode & 07777) != 0600 && fchmod(fd, 0600) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/* A lock of the open file description, so that threads of one process exclude each other, too. */
static struct flock lock_of(short type, ino_t inode)
{
	return (struct flock){ .l_type = type,
		.l_whence = SEEK_SET,
		.l_start = (off_t)(inode & INT64_MAX),
		.l_len = 1 };
}

int lock_take(int lock_fd, ino_t inode)
{
	struct flock lock = lock_of(F_WRLCK, inode);

	if (fcntl(lock_fd, F_OFD_SETLK, &lock) == 0)
		return 0;
	return errno == EACCES ? -EAGAIN : -errno;
}

void lock_drop(int lock_fd, ino_t inode)
{
	struct flock lock = lock_of(F_UNLCK, inode);

	fcntl(lock_fd, F_OFD_SETLK, &lock);
}

bool lock_is_taken(int lock_fd, ino_t inode)
{
	struct flock lock = lock_of(F_WRLCK, inode);

	return fcntl(lock_fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}
