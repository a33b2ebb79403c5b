/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the counters of the whole host say: CPUs (/proc/stat), pressure, memory (/proc/vmstat).
 * Used by watch.c only.
 * Never allocates, and opens files in host_stats_open() only.
 */
#ifndef IOSTALL_WATCH_HOST_STATS_H
#define IOSTALL_WATCH_HOST_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/structs.h"
#include "watch/clocks.h"
#include "watch/disks.h"
#include "watch/parsers.h"
#include "watch/refaults.h"

enum host_pressure { HOST_PRESSURE_IO, HOST_PRESSURE_MEMORY, HOST_PRESSURE_CPU, HOST_PRESSURES };

struct host_pressure_state {
	int fd;
	bool has_before;
	uint64_t before_ns;
	struct watch_pressure before;
};

struct host_stats {
	double ticks_per_sec;
	int stat_fd;
	uint64_t stat_before_ns;
	struct watch_stat stat_before;
	struct host_pressure_state pressures[HOST_PRESSURES];
	int vmstat_fd;
	bool vmstat_is_read; /* by host_stats_read_vmstat() */
	struct refaults vmstat;
	bool has_vmstat_before;
	struct refaults vmstat_before;
};

/* All descriptors are -1 after it, which host_stats_close() accepts. */
void host_stats_init(struct host_stats *h);
/* 0, or the error of opening `stat`. A kernel may lack the other files. */
int host_stats_open(struct host_stats *h, int procfs_fd);
void host_stats_close(struct host_stats *h);

/*
 * Each of these fills its part of a sample with rates since the call before. buf holds a part of a
 * file. 0, or a negative errno when `stat` cannot be read.
 */
int host_stats_take_cpus(struct host_stats *h, const struct watch_clock *clock, char *buf,
	size_t size, struct record_reading *s);
void host_stats_take_pressures(struct host_stats *h, const struct watch_clock *clock, char *buf,
	size_t size, struct record_reading *s);

/* First of all the counters of memory and swap are read, then what they say is taken. */
void host_stats_read_vmstat(struct host_stats *h, char *buf, size_t size);
void host_stats_take_memory(struct host_stats *h, const struct disks_zram *zram,
	struct record_memory *memory);
/* Since the last host_stats_take_memory() nobody has sent anything to a disk. */
bool host_stats_has_no_io(const struct host_stats *h);

#endif
