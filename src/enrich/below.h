/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The devices that a disk stands on: a dm or md device on its slaves, a loop device on the one that
 * has its file.
 * Called by enrich.c now and then while the host is well: a look-up in sysfs takes locks that
 * others may hold while they wait for memory.
 * Never reads anything but sysfs.
 */
#ifndef IOSTALL_ENRICH_BELOW_H
#define IOSTALL_ENRICH_BELOW_H

#include "enrich/mounts.h"
#include "record/record.h"

/* A host of virtual machines may have a few for each. */
#define BELOW_MAX 512

struct below {
	uint32_t count;
	uint32_t left_out; /* for which there was no room, and that may stand on others */
	struct record_stacked list[BELOW_MAX];
};

struct below_options {
	const char *sysfs;
	const struct mounts *mounts;
	/* The name of the disk that has a mount; NULL: it is on no disk, or it is not known. */
	const char *(*find_disk)(const void *userdata, uint32_t major, uint32_t minor);
	const void *userdata;
};

/* All disks that stand on others, with their names. */
void below_learn(const struct below_options *options, struct below *ret_below);

/*
 * Those of them that a record has room for. Of many it has those that are at work, with all below
 * them: `busy` names `busy_count` disks, the busiest first. Then come those that are mounted.
 */
void below_choose(const struct below *below, const char *const *busy, uint32_t busy_count,
	const struct mounts *mounts, struct record_stacked ret_stack[static RECORD_STACKED_MAX],
	uint32_t *ret_count);

#endif
