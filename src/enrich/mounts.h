/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The mounts of the daemon's namespace: which source is mounted at which mount point.
 * Called by enrich.c.
 * Never reads a file: it is given what /proc/PID/mountinfo says.
 */
#ifndef IOSTALL_ENRICH_MOUNTS_H
#define IOSTALL_ENRICH_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/enums.h"
#include "record/structs.h"

/* A host has three for each container, as a rule. */
#define MOUNTS_MAX 4096
/* Mount namespaces, of containers with watched processes. */
#define MOUNTS_NAMESPACES_MAX 256
#define MOUNTS_PATH_SIZE 256
#define MOUNTS_SOURCE_SIZE RECORD_MOUNT_SIZE

/* A source that is too long is cut off; a root or mount point that is too long is left empty. */
struct mount {
	uint32_t major;
	uint32_t minor;
	/*
	 * The number of a file system with several disks, or of none of its own, is that of no disk
	 * (major 0). Of the former the source is one of them, or begins with the name of a pool of
	 * ZFS; the latter stands on another file system, which has this number.
	 */
	bool source_is_disk;
	bool source_is_pool;
	bool stands_on_other;
	uint32_t other_major;
	uint32_t other_minor;
	enum record_cause
		server; /* what waits for its files are for; NONE: it has a disk, or none */
	char source[MOUNTS_SOURCE_SIZE];
	char root[MOUNTS_PATH_SIZE];  /* the mounted directory of the file system; empty: unknown */
	char point[MOUNTS_PATH_SIZE]; /* the directory where it is mounted */
};

struct watch_mountinfo;

struct mounts {
	unsigned int count;
	unsigned int left_out; /* for which there was no room */
	struct mount *list;
};

/*
 * Replaces all mounts by those in the text of mountinfo, see proc_pid_mountinfo(5). The list has
 * room for `max`. Compares each overlay with all mounts, so it is not for the event loop.
 */
void mounts_parse(struct mounts *mounts, unsigned int max, const char *buf, size_t len);
/*
 * Adds those of another mount namespace, whose file systems are not mounted in this one. Their
 * paths mean nothing here, and are left empty.
 */
void mounts_parse_more(struct mounts *mounts, unsigned int max, const char *buf, size_t len);

/*
 * The directory in an option of an overlay ("upperdir="), of a list its first one. False: there is
 * none, no room, or it is not absolute.
 */
bool mounts_read_directory(const struct watch_mountinfo *m, const char *option,
	char path[static MOUNTS_PATH_SIZE]);

/* Replaces all mounts by a copy that has no more memory than it needs. 0, or -ENOMEM. */
int mounts_copy(struct mounts *mounts, const struct mounts *from);
/* Frees such a copy. */
void mounts_done(struct mounts *mounts);

/*
 * Where the file system with that device number is mounted first; NULL: nowhere. FUSE, overlay, NFS
 * and btrfs subvolumes have numbers without a disk.
 */
const struct mount *mounts_find_device(const struct mounts *mounts, uint32_t major, uint32_t minor);

/* The mount that a path of the namespace is on; NULL: none is known. */
const struct mount *mounts_find_path(const struct mounts *mounts, const char *path);

/*
 * Turns a path from the root of its file system into one from the root of the namespace. False, and
 * the path is unchanged, when no mount shows the file or the path has no room.
 */
bool mounts_add_point(const struct mounts *mounts, uint32_t major, uint32_t minor, char *path,
	size_t size);

#endif
