/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The devices among the facts of an incident, and which of them stand on which.
 * Noted by facts.c, with what each of them did; read by the rules.
 * Never forgets a device; when there is no room for another one, it is not noted.
 */
#ifndef IOSTALL_VERDICT_DEVICES_H
#define IOSTALL_VERDICT_DEVICES_H

#include "verdict/facts.h"

/* The index of a device; -1: it is not noted. */
int verdict_find_device(const struct verdict_facts *f, uint32_t major, uint32_t minor);
/* The same; notes it if it is new. -1: there is no room, or the numbers are those of no device. */
int verdict_get_device(struct verdict_facts *f, uint32_t major, uint32_t minor, const char *name);
/* The device of a file system: the whole disk when the file system is on a partition. */
int verdict_get_fs_device(struct verdict_facts *f, uint32_t major, uint32_t minor,
	const char *name);

/* Notes what a disk stands on: names with a newline between them. */
void verdict_note_below(struct verdict_facts *f, const char *name, const char *label,
	const char *below);

/* Whether the one is the other, or stands on it. */
bool verdict_stands_on(const struct verdict_facts *f, const struct verdict_device *upper,
	const struct verdict_device *lower);

/* The same of two names, whether there are facts of these disks or not. */
bool verdict_name_stands_on(const struct verdict_facts *f, const char *upper, const char *lower);

/* How busy it was at most in a sample, also in those that leave it out, in percent. */
double verdict_util_at_most(const struct verdict_device *d);

/*
 * The busiest of the disks that it stands on directly, if all of them were sampled and none was at
 * work for half of the time; NULL: one was, or it is not known.
 */
const struct verdict_device *verdict_find_idle_below(const struct verdict_facts *f,
	const struct verdict_device *d);

/* Whether a disk stands on it directly: that it is idle says something, then. */
bool verdict_is_below(const struct verdict_facts *f, const char *disk);

#endif
