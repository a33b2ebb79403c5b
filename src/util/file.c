/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
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
