/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The whole disks of the host and what each did between two readings of /proc/diskstats.
 * Used by the watch room only.
 * Never adds devices up: partitions are left out, dm, md and loop devices are judged alone.
 */
#ifndef IOSTALL_WATCH_DISKS_H
#define IOSTALL_WATCH_DISKS_H

#include "config.h"
#include "util/parse.h"
#include "watch/parsers.h"
#include "watch/sample.h"

/* Rows of /proc/diskstats that are remembered, partitions and ignored devices among them. */
#define DISKS_ROWS_MAX 1024

#define DISKS_ROW_UNJUDGED (-1)

/* What was found out about a row when it was first seen. */
struct disks_row {
	bool used;
	bool left_out; /* would be judged, but the table was full */
	uint32_t major;
	uint32_t minor;
	char name[WATCH_DISK_NAME_SIZE];
	int32_t disk;	  /* index, or DISKS_ROW_UNJUDGED */
	uint64_t reading; /* that saw it last */
};

struct disks_disk {
	bool used;
	uint32_t serial; /* another one for each appearance */
	bool has_before;
	uint64_t before_ns;
	struct watch_diskstats before;
	uint64_t waiting_since_ns; /* in flight and nothing finished since; 0 when that is not so */
	struct watch_disk view;
};

struct disks {
	int sysfs_fd;
	struct config_list device;
	struct config_list device_ignore;
	uint64_t reading;
	uint64_t now_ns;
	uint32_t serial;
	uint32_t row_hint;
	uint32_t rows_count;  /* high-water mark */
	uint32_t disks_count; /* high-water mark */
	uint32_t left_out;    /* whole disks and rows of the last reading beyond the tables */
	struct disks_row rows[DISKS_ROWS_MAX];
	struct disks_disk disks[WATCH_DISKS_MAX];
};

/* sysfs_fd stays the caller's; the lists are copied. */
void disks_init(struct disks *d, int sysfs_fd, const struct config_list *device,
	const struct config_list *device_ignore);

/* Other patterns: every row is looked up again at the next reading, known disks keep their
 * counters. */
void disks_set_patterns(
	struct disks *d, const struct config_list *device, const struct config_list *device_ignore);

/* One reading: begin, each line of the file, end. */
void disks_begin_reading(struct disks *d, uint64_t now_ns);
void disks_take_line(struct disks *d, struct cursor line);
void disks_end_reading(struct disks *d);

/* Any row of the last reading, also of a partition; NULL when there is none. */
const char *disks_find_name(const struct disks *d, uint32_t major, uint32_t minor);

/* The disks with the most to say into the sample, the others counted. */
void disks_fill_sample(const struct disks *d, struct watch_sample *sample);

#endif
