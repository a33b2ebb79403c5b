/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The disks of each btrfs that has several, and of each pool of ZFS.
 * Called by enrich.c now and then while the host is well: a look-up in sysfs takes locks that
 * others may hold while they wait for memory.
 * Never reads anything but sysfs and udev's database.
 */
#ifndef IOSTALL_ENRICH_MEMBERS_H
#define IOSTALL_ENRICH_MEMBERS_H

#include "record/structs.h"

#define MEMBERS_SETS_MAX 8
#define MEMBERS_MAX 16
/* ZFS_MAX_DATASET_NAME_LEN */
#define MEMBERS_POOL_SIZE 256

/* Disks or partitions. */
struct members_set {
	unsigned int count;
	char pool[MEMBERS_POOL_SIZE]; /* of ZFS; empty: a btrfs */
	char names[MEMBERS_MAX][RECORD_DISK_NAME_SIZE];
};

struct members {
	unsigned int count;
	struct members_set sets[MEMBERS_SETS_MAX];
};

/*
 * `sysfs` is "/sys" or a fixture, `udev` "/run/udev/data" or one; NULL: there is no ZFS. What has
 * no room is left out.
 */
void members_learn(struct members *members, const char *sysfs, const char *udev);

/* Those of that pool of ZFS; NULL: not known. */
const struct members_set *members_find_pool(const struct members *members, const char *pool);

/* Those among which that one is; NULL: it is alone. */
const struct members_set *members_find(const struct members *members, const char *name);

#endif
