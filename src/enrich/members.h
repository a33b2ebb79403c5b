/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The disks of each btrfs that has several.
 * Called by enrich.c now and then while the host is well: a look-up in sysfs takes locks that
 * others may hold while they wait for memory.
 * Never reads anything but sysfs.
 */
#ifndef IOSTALL_ENRICH_MEMBERS_H
#define IOSTALL_ENRICH_MEMBERS_H

#include "record/structs.h"

#define MEMBERS_SETS_MAX 8
#define MEMBERS_MAX 16

/* Disks or partitions. */
struct members_set {
	unsigned int count;
	char names[MEMBERS_MAX][RECORD_DISK_NAME_SIZE];
};

struct members {
	unsigned int count;
	struct members_set sets[MEMBERS_SETS_MAX];
};

/* `sysfs` is "/sys" or a fixture. What has no room is left out. */
void members_learn(struct members *members, const char *sysfs);

/* Those among which that one is; NULL: it is alone. */
const struct members_set *members_find(const struct members *members, const char *name);

#endif
