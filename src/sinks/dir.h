/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Opening the spool directory and the durable directory.
 * Called by the spool sink, the preallocator, the writer and the retention.
 * Never called for the durable directory but by the writer: it may wait for a disk.
 */
#ifndef IOSTALL_SINKS_DIR_H
#define IOSTALL_SINKS_DIR_H

#include <dirent.h>
#include <sys/types.h>

/*
 * Returns a descriptor or a negative errno. systemd makes the directories for the service; `watch`
 * on a host without the service makes them here, with mode 0750 and that group (FILE_NO_GROUP:
 * leave it).
 */
int dir_open_or_make(const char *path, gid_t group);

/* A list of its own of an open directory, from the first entry on; NULL and errno on failure. */
DIR *dir_list(int dir_fd);

#endif
