/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How many records the durable directory keeps.
 * Called by the writer thread.
 * Never touches a file that is not a record of ours, is a link, or is being written.
 */
#ifndef IOSTALL_SINKS_RETENTION_H
#define IOSTALL_SINKS_RETENTION_H

#include <stdint.h>

/* 0 is no limit. */
struct retention_limits {
	uint64_t max_bytes;
	uint64_t max_count;
	uint64_t max_age_ns;
};

/*
 * Removes the oldest records until all limits hold exactly. Returns how many it removed, or a
 * negative errno of reading the directory or removing a file.
 */
int retention_apply(int dir_fd, const struct retention_limits *limits, uint64_t now_real_ns);

#endif
