/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a disk did between two readings of its row of /proc/diskstats.
 * Used by disks.c only.
 * Never keeps anything: it is given both readings.
 */
#ifndef IOSTALL_WATCH_DISK_RATES_H
#define IOSTALL_WATCH_DISK_RATES_H

#include <stdbool.h>
#include <stdint.h>

#include "record/structs.h"
#include "watch/parsers.h"

/* Requests and sectors only grow: fewer than before means another device with the same number. */
bool disk_rates_went_back(const struct watch_diskstats *now, const struct watch_diskstats *before);
/* Whether a request was completed. */
bool disk_rates_completed(const struct watch_diskstats *now, const struct watch_diskstats *before);
/* Whether a request was completed or was under way. */
bool disk_rates_worked(const struct watch_diskstats *now, const struct watch_diskstats *before);

void disk_rates_clear(struct record_disk *view);
/* `passed_ns`, which is not 0, lies between the two. */
void disk_rates_fill(struct record_disk *view, const struct watch_diskstats *now,
	const struct watch_diskstats *before, uint64_t passed_ns);

#endif
