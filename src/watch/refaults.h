/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How many pages were evicted from memory and needed again: counters of /proc/vmstat and
 * memory.stat.
 * Used by the watch room, its tests and a fuzzer.
 * Never opens a file, never allocates, never trusts what it reads.
 */
#ifndef IOSTALL_WATCH_REFAULTS_H
#define IOSTALL_WATCH_REFAULTS_H

#include <stddef.h>
#include <stdint.h>

#include "util/parse.h"

/* Pages since boot, or since the control group was made; a counter that the kernel lacks is 0. */
struct refaults {
	/*
	 * Read again after they had been evicted, however long ago: a second dump of a file that
	 * does not fit into memory counts in full (6.18).
	 */
	uint64_t file;
	uint64_t anon; /* memory of processes, read back from swap */
	/*
	 * The part of both that was in active use when it was evicted. workingset_activate_* would
	 * say less: with the multi-generational LRU it is all that was read again (6.12).
	 */
	uint64_t file_active;
	uint64_t anon_active;
	uint64_t major_faults;
	/* Only in /proc/vmstat. */
	uint64_t swapped_in;
	uint64_t swapped_out;
	uint64_t read_kib; /* what was sent to disks, by anybody, whether it has been done or not */
	uint64_t written_kib;
	/* What was evicted because the host was short, not at the limit of a group (6.18). */
	uint64_t reclaimed_kswapd;
	uint64_t reclaimed_direct;
};

/*
 * Takes one line into a structure that was zeroed at first; unknown lines change nothing. In
 * version 1 of control groups each number stands there twice, the second time as `total_`, with the
 * children, which the limit is for.
 */
void refaults_take_line(struct cursor line, struct refaults *refaults);

/* now - before of each counter; 0 where one has decreased. */
struct refaults refaults_since(const struct refaults *now, const struct refaults *before);

#endif
