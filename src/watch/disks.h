/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The whole disks of the host, and what each of them did between two readings of /proc/diskstats.
 * Used by the watch room only.
 * Never adds devices up: partitions are left out; dm, md and loop devices are judged by themselves.
 */
#ifndef IOSTALL_WATCH_DISKS_H
#define IOSTALL_WATCH_DISKS_H

#include "config/config.h"
#include "util/parse.h"
#include "watch/parsers.h"
#include "record/structs.h"

/* Whole disks that are judged; what a host has beyond is counted as left out. */
#define WATCH_DISKS_MAX 256
/* Rows of /proc/diskstats that are remembered, including partitions and ignored devices. */
#define DISKS_ROWS_MAX 1024

#define DISKS_ROW_UNJUDGED (-1)

/* What is known of a row since it was first seen. */
struct disks_row {
	bool used;
	bool left_out; /* should be judged, but the table of disks is full */
	uint32_t major;
	uint32_t minor;
	char name[RECORD_DISK_NAME_SIZE];
	int32_t disk;	  /* index into disks, or DISKS_ROW_UNJUDGED */
	uint64_t reading; /* number of the last reading that had it */
};

struct disks_disk {
	bool used;
	uint32_t serial; /* a new one each time that a disk appears */
	bool has_before;
	uint64_t before_ns;
	struct watch_diskstats before;
	uint64_t waiting_since_ns; /* in flight without a completion; 0: not so */
	int suspended_fd;	   /* tells whether a dm device is suspended; -1: there is none */
	struct record_disk view;
};

/* What zram devices have read and written since they exist, whether they are ignored or not. */
struct disks_zram {
	uint64_t read_bytes;
	uint64_t written_bytes;
};

struct disks {
	int sysfs_fd;
	struct config_list device;
	struct config_list device_ignore;
	uint64_t reading;
	uint64_t now_ns;
	struct disks_zram zram, zram_before;
	uint32_t serial;
	uint32_t row_hint;
	uint32_t rows_count;  /* highest index in use, plus 1 */
	uint32_t disks_count; /* highest index in use, plus 1 */
	uint32_t checked;     /* disks, see keep_suspended_open() */
	uint32_t left_out; /* disks and rows of the last reading that did not fit into the tables */
	struct disks_row rows[DISKS_ROWS_MAX];
	struct disks_disk disks[WATCH_DISKS_MAX];
};

/* sysfs_fd stays the caller's; the lists are copied. */
void disks_init(struct disks *d, int sysfs_fd, const struct config_list *device,
	const struct config_list *device_ignore);

/*
 * Sets other patterns. Each known row is judged by them at once; disks that stay keep their
 * counters.
 */
void disks_set_patterns(struct disks *d, const struct config_list *device,
	const struct config_list *device_ignore);

void disks_done(struct disks *d);

/* One reading is a begin, each line of the file, and an end. */
void disks_begin_reading(struct disks *d, uint64_t now_ns);
void disks_take_line(struct disks *d, struct cursor line);
/* `armed`: an incident is open, so it also looks which dm devices are suspended. */
void disks_end_reading(struct disks *d, bool armed);

/* The name in any row of the last reading, including partitions; NULL: there is no such row. */
const char *disks_find_name(const struct disks *d, uint32_t major, uint32_t minor);

/* What a whole disk did in the last interval; NULL: there is no such disk, or it is ignored. */
const struct record_disk *disks_find(const struct disks *d, uint32_t major, uint32_t minor);

/* What zram devices moved between the last two readings; 0 where one has gone meanwhile. */
struct disks_zram disks_zram_since(const struct disks *d);

/* Puts the disks with the most trouble into the sample and counts the others. */
void disks_fill_sample(const struct disks *d, struct record_reading *sample);

#endif
