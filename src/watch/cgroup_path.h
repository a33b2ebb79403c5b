/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the control groups of a process are, from the text of /proc/PID/cgroup.
 * Used by the watch room, which keeps the limits of groups; doctor and tests through it.
 * Never reads a file.
 */
#ifndef IOSTALL_WATCH_CGROUP_PATH_H
#define IOSTALL_WATCH_CGROUP_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/parse.h"

struct cgroup_path {
	struct cursor path; /* "/system.slice/mariadb.service" */
	bool v1;
	bool is_apart; /* version 2 is mounted at fs/cgroup/unified, beside version 1 */
};

/*
 * The group that counts for a controller of version 1 ("memory", "blkio") where there is one, else
 * that of cgroup2; for "" always the latter. 0 or -ENOENT.
 */
int cgroup_path_parse(const char *buf, size_t len, const char *controller, int sysfs_fd,
	struct cgroup_path *ret_path);

/* False: it is outside the cgroup namespace of this process, so its path leads nowhere. */
bool cgroup_path_is_reachable(const struct cgroup_path *path);

/* Makes it that of the group above; false: that is the root, which has no limits. */
bool cgroup_path_ascend(struct cgroup_path *path);

uint64_t cgroup_path_hash(const struct cgroup_path *path);

/*
 * The id that the kernel's programs get of the group of a thread: the inode number of the directory
 * in version 2. 0: not known, as of version 1.
 */
uint64_t cgroup_path_id(const struct cgroup_path *path, int sysfs_fd);

/*
 * The name of one of its files, relative to sysfs; the controller is that of version 1. 0 or
 * -ENAMETOOLONG.
 */
int cgroup_path_name(const struct cgroup_path *path, const char *controller, const char *name,
	char *buf, size_t size);

/* Opens one of its files for reading; the controller is that of version 1. A negative errno. */
int cgroup_path_open(const struct cgroup_path *path, int sysfs_fd, const char *controller,
	const char *name);

#endif
