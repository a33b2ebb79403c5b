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

struct below_options {
	const char *sysfs;
	const struct mounts *mounts;
	/* The name of the disk that has a mount; NULL: it is on no disk, or it is not known. */
	const char *(*find_disk)(const void *userdata, uint32_t major, uint32_t minor);
	const void *userdata;
};

/*
 * All disks that stand on others, with their names. Returns how many there are, at most
 * RECORD_STACKED_MAX.
 */
uint32_t below_learn(const struct below_options *options,
	struct record_stacked ret_stack[static RECORD_STACKED_MAX]);

#endif
