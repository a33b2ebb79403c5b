/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Small files whole, into a buffer the caller owns.
 * Used by every room; depends on nothing above.
 * Never allocates.
 */
#ifndef IOSTALL_UTIL_FILE_H
#define IOSTALL_UTIL_FILE_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Reads from offset 0 to the end and terminates with NUL. Returns the length, -ENOBUFS when the
 * file is larger than size - 1 (buf then holds the beginning), or another negative errno.
 */
ssize_t file_read_fd(int fd, char *buf, size_t size);

/* The same for a path relative to dirfd (AT_FDCWD allowed). */
ssize_t file_read_at(int dirfd, const char *path, char *buf, size_t size);

/* Writes all of it; 0 or a negative errno. For blocking descriptors. */
int file_write_all(int fd, const char *buf, size_t len);

#endif
