/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The mounts of the daemon's namespace: what is mounted by which name, and where.
 * Called by enrich.c.
 * Never reads a file: it is given what /proc/self/mountinfo says.
 */
#ifndef IOSTALL_ENRICH_MOUNTS_H
#define IOSTALL_ENRICH_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "watch/sample.h"

#define MOUNTS_MAX 256
#define MOUNTS_PATH_SIZE 256

/* Names longer than their place: the source is cut off, a mount is left out of the prefixes. */
struct mount {
	uint32_t major;
	uint32_t minor;
	char source[WATCH_DISK_NAME_SIZE];
	char root[MOUNTS_PATH_SIZE];  /* what of the file system is seen; empty: not known */
	char point[MOUNTS_PATH_SIZE]; /* where */
};

struct mounts {
	unsigned int count;
	struct mount list[MOUNTS_MAX];
};

/* "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw", proc_pid_mountinfo(5) */
void mounts_parse(struct mounts *mounts, const char *buf, size_t len);

/* File systems without a disk of their own: FUSE, overlay, NFS, btrfs subvolumes. NULL: not mounted. */
const char *mounts_find_source(const struct mounts *mounts, uint32_t major, uint32_t minor);

/*
 * Turns a path that begins with the root of its file system into one that can be opened; false, and
 * the path as it was, when the file is under no mount or the path has no room.
 */
bool mounts_add_point(const struct mounts *mounts, uint32_t major, uint32_t minor, char *path,
	size_t size);

#endif
