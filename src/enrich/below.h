/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The devices that a disk stands on: a dm or md device on its slaves, a loop device on the one that
 * has its file.
 * Called by enrich.c for each `device` line, and now and then while the host is well.
 * Never reads anything but sysfs, never allocates.
 */
#ifndef IOSTALL_ENRICH_BELOW_H
#define IOSTALL_ENRICH_BELOW_H

#include "enrich/mounts.h"
#include "record/record.h"

/* Names with a newline between them; empty: it stands on no other, or it is not known. */
void below_read_slaves(const char *sysfs, uint32_t major, uint32_t minor, char *ret_names,
	size_t size);

/* The mount that has the file of a loop device; NULL: it is no loop device, or it is not known. */
const struct mount *below_find_mount(const char *sysfs, uint32_t major, uint32_t minor,
	const struct mounts *mounts);

/*
 * All disks that stand on others, with their names; call it while the host is well. Returns how
 * many there are, at most RECORD_STACKED_MAX.
 */
uint32_t below_learn(const char *sysfs, const struct mounts *mounts,
	struct record_stacked ret_stack[static RECORD_STACKED_MAX]);

#endif
