/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of control groups say: memory.stat, io.max, io.stat, cpu.max and cpu.stat.
 * Used by the watch room only. Pure.
 */
#ifndef IOSTALL_WATCH_CGROUP_PARSE_H
#define IOSTALL_WATCH_CGROUP_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/structs.h"
#include "util/parse.h"

/* Since the group was made, added up over all CPUs. */
struct cgroup_cpu_counts {
	uint64_t used_ns;
	uint64_t throttled_ns;
};

/* In the order of enum record_io_limit; 0: there is no such limit. */
struct cgroup_io_values {
	uint64_t of[RECORD_IO_LIMIT_COUNT];
};

extern const char *const cgroup_io_max_keys[RECORD_IO_LIMIT_COUNT];
extern const char *const cgroup_io_stat_keys[RECORD_IO_LIMIT_COUNT];

/*
 * The bytes that the kernel could reclaim at once, from the text of memory.stat: file pages and
 * reclaimable slabs. A database that reads through the page cache fills any limit with them, so
 * they do not count as held.
 */
uint64_t cgroup_parse_reclaimable(const char *buf, size_t len);

/* "50000 100000", the text of cpu.max, as a number of CPUs; 0: "max", or it is no such text. */
double cgroup_parse_cpu_max(struct cursor text);

/* The text of cpu.stat; what it does not have stays as it is. */
void cgroup_parse_cpu_stat(struct cursor text, struct cgroup_cpu_counts *counts);

/* Takes "8:0" off a line. 0 or -EINVAL. */
int cgroup_parse_device(struct cursor *line, uint32_t *ret_major, uint32_t *ret_minor);

/*
 * A line of io.max or io.stat, "8:0 rbps=1048576 wbps=max riops=max wiops=max": the values of the
 * four keys in `keys`, 0 where one is absent or "max". 0 or -EINVAL.
 */
int cgroup_parse_io_line(struct cursor line, const char *const keys[static RECORD_IO_LIMIT_COUNT],
	uint32_t *ret_major, uint32_t *ret_minor, struct cgroup_io_values *ret_values);

#endif
