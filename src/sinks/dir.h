/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Opening the spool directory and the durable directory.
 * Called by the spool sink, the preallocator, the writer, the retention and doctor.
 * Never called for the durable directory but by the writer: it may wait for a disk.
 */
#ifndef IOSTALL_SINKS_DIR_H
#define IOSTALL_SINKS_DIR_H

#include <dirent.h>
#include <errno.h>
#include <sys/types.h>

/*
 * Records of an open incident must be those of the daemon: the spool and the directory that it is
 * in belong to root or to the user of the process. The durable directory may belong to another
 * user, unless anybody could have made it.
 */
enum dir_use { DIR_SPOOL, DIR_DURABLE };

/* Others could change the records in it: an errno that no file system returns. */
#define DIR_EUNSAFE ENOTUNIQ

/*
 * Returns a descriptor or a negative errno; -DIR_EUNSAFE: see dir_check(). systemd makes the
 * directories for the service; `watch` on a host without the service makes them here, with mode
 * 0750 and that group (FILE_NO_GROUP: leave it). A spool directory is no symbolic link.
 */
int dir_open_or_make(const char *path, enum dir_use use, gid_t group);

/*
 * 0; or -DIR_EUNSAFE: somebody else may change, remove or forge records in the open directory; or
 * another negative errno. Where everybody may write, as in /dev/shm, everybody may have made it; a
 * spool there has to belong to root, and nobody else can move it if the directory is sticky.
 * Directories above that one are not looked at.
 */
int dir_check(int fd, enum dir_use use);

/* A negative errno of these functions in words. */
const char *dir_strerror(int error);

/* A list of its own of an open directory, from the first entry on; NULL and errno on failure. */
DIR *dir_list(int dir_fd);

#endif
