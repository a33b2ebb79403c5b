/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The disks of each btrfs that has several, and of each pool of ZFS.
 * Learned by mounts_reader.c on its thread: a look-up in sysfs takes locks that others may hold
 * while they wait for memory, and there may be thousands of devices.
 * Never reads anything but sysfs and udev's database.
 */
#ifndef IOSTALL_ENRICH_MEMBERS_H
#define IOSTALL_ENRICH_MEMBERS_H

#include "record/structs.h"

#define MEMBERS_SETS_MAX 8
/* One that has more is as good as unknown: what it waits for may be among the others. */
#define MEMBERS_MAX 128
/* ZFS_MAX_DATASET_NAME_LEN */
#define MEMBERS_POOL_SIZE 256

/* Disks or partitions. */
struct members_set {
	unsigned int count;	      /* more than MEMBERS_MAX: not all of them are in the list */
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

/* Those of that pool of ZFS; NULL: they are not known, or not all of them. */
const struct members_set *members_find_pool(const struct members *members, const char *pool);

/* Those among which that one is; NULL: it is alone, or there are too many. */
const struct members_set *members_find(const struct members *members, const char *name);

#endif
