/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * /proc/loadavg, see proc_loadavg(5): how many threads there are, and which id is the newest.
 * Used by every room that needs to know how large the host is, or whether anything is new on it.
 * Never reads a file of a process.
 */
#ifndef IOSTALL_WATCH_LOADAVG_H
#define IOSTALL_WATCH_LOADAVG_H

#include <stdint.h>

struct loadavg {
	uint32_t threads;
	int32_t newest_id; /* that a process or thread of this pid namespace was given */
};

/* 0 or a negative errno; -EINVAL: not such a file. */
int loadavg_read(int dirfd, const char *path, struct loadavg *ret_loadavg);

#endif
