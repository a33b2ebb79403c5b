/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Removes old records from the durable directory.
 * Called by the thread of the writer.
 * Never touches a file that is not a record of iostall, is a link, or is being written. Nobody but
 * root can keep it from removing a file.
 */
#ifndef IOSTALL_SINKS_RETENTION_H
#define IOSTALL_SINKS_RETENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "record/record.h"

/* 0 means no limit. */
struct retention_limits {
	uint64_t max_bytes;
	uint64_t max_count;
	uint64_t max_age_ns;
};

/*
 * What tells the age of a record without trusting a clock that was set wrongly: deleting evidence
 * too late does little harm, and a clock that is years ahead for a minute must not delete all of
 * it. A record of this boot is as old as the monotonic clock says. One of an earlier boot is at
 * least as old as this boot; beyond that the time in its name, or of its file, is believed only
 * while the kernel says that its clock is synchronised.
 */
struct retention_clock {
	char boot_id[RECORD_NAME_SIZE]; /* empty: unknown */
	uint64_t mono_ns;
	uint64_t uptime_ns; /* with suspended time */
	uint64_t real_ns;
	bool synchronised;
};

void retention_read_clock(struct retention_clock *ret_clock);

/*
 * Removes records until the limits of bytes and count hold exactly, and all that are too old: the
 * oldest first, but none that has a beginning while there are some that only continue one. Returns
 * how many it removed, or a negative errno of reading the directory or removing a file. `lock_fd`:
 * see sinks/lock.h, when incidents are written in this directory; else -1.
 */
int retention_apply(int dir_fd, int lock_fd, const struct retention_limits *limits,
	const struct retention_clock *clock);

#endif
