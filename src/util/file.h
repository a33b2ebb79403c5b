/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads small files as a whole into a buffer that the caller owns, and writes whole buffers.
 * Used by every room; depends on no room.
 * Never allocates.
 */
#ifndef IOSTALL_UTIL_FILE_H
#define IOSTALL_UTIL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Operators read records and use the control socket through this group where it exists. */
#define FILE_GROUP "adm"
#define FILE_NO_GROUP ((gid_t)-1)

/*
 * Reads from offset 0 to the end and terminates with NUL. Returns the length, -ENOBUFS when the
 * file is larger than size - 1 (buf then holds the beginning), or another negative errno.
 */
ssize_t file_read_fd(int fd, char *buf, size_t size);

/* The same for a path relative to dirfd (AT_FDCWD allowed). */
ssize_t file_read_at(int dirfd, const char *path, char *buf, size_t size);

/* Writes all of it; 0 or a negative errno. For blocking descriptors. */
int file_write_all(int fd, const char *buf, size_t len);

/* Whether a file system without a disk behind it (tmpfs, ramfs) holds the path. */
bool file_is_in_memory(const char *path);
bool file_fd_is_in_memory(int fd);

/* The id of FILE_GROUP, FILE_NO_GROUP when there is none. */
gid_t file_find_group(void);

/*
 * Sets mode and group (FILE_NO_GROUP: leave it). 0, or the negative errno of setting the group; the
 * mode is set all the same.
 */
int file_set_access(int fd, mode_t mode, gid_t group);

#endif
