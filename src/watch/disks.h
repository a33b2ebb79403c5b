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
#include "watch/disk_rows.h"
#include "watch/parsers.h"
#include "record/structs.h"

/*
 * Whole disks that are watched at a time. Where a host has more, a disk that does something takes
 * the place of the one that has done nothing for longest.
 */
#define WATCH_DISKS_MAX 256

struct disks_disk {
	bool used;
	uint16_t row;
	uint32_t serial; /* a new one each time that a disk appears or takes the place of another */
	uint64_t worked_ns; /* the last reading in which it did something; 0: none */
	bool has_before;
	uint64_t before_ns;
	struct watch_diskstats before;
	uint64_t waiting_since_ns; /* in flight without a completion; 0: not so */
	bool is_looked_up;	   /* whether it can be suspended */
	int suspended_fd;	   /* tells whether a dm device is suspended; -1: there is none */
	struct record_disk view;
};

/* A disk at work that had no place in this reading. */
struct disks_newcomer {
	uint16_t row;
	struct watch_diskstats stats;
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
	uint32_t reading;
	uint64_t now_ns;
	struct disks_zram zram, zram_before;
	uint32_t serial;
	uint32_t generation;  /* changes with each whole disk that appears */
	uint32_t disks_count; /* highest index in use, plus 1 */
	uint32_t disks_used;
	uint32_t checked; /* disks, see keep_suspended_open() */
	uint32_t seen;	  /* rows of this reading */
	uint32_t rows_left_out;
	uint32_t left_out; /* disks at work that have no place, and rows without one */
	uint16_t whole;	   /* the row of the last whole disk of this reading so far */
	bool in_flight;	   /* a device had requests in flight in the last reading */
	struct disk_rows rows;
	struct disks_disk disks[WATCH_DISKS_MAX];
	uint32_t newcomers_count;
	uint32_t newcomers_replaced; /* those before this one have requests in flight */
	struct disks_newcomer newcomers[WATCH_DISKS_MAX];
};

/* sysfs_fd stays the caller's; the lists are copied. 0 or -ENOMEM. */
int disks_init(struct disks *d, int sysfs_fd, const struct config_list *device,
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
/*
 * `armed`: an incident is open, so it also looks which dm devices are suspended. Otherwise it may
 * allocate, where there was no room for all rows.
 */
void disks_end_reading(struct disks *d, bool armed);

/*
 * Whether a reading would find nothing new, if nobody has sent I/O since the last one: nothing was
 * in flight then. Only where there are more disks than are watched, since the kernel needs 7 us for
 * each row (6.18, 2 CPUs), and now and then one is taken all the same.
 */
bool disks_may_rest(const struct disks *d, uint64_t now_ns);
/* Instead of a reading: no disk did anything. */
void disks_rest(struct disks *d, uint64_t now_ns);

/* The name in any row of the last reading, including partitions; NULL: there is no such row. */
const char *disks_find_name(const struct disks *d, uint32_t major, uint32_t minor);

/*
 * The next row from *at on, which begins as 0: its number and its name, valid until the next
 * reading. False: there are no more.
 */
bool disks_next_row(const struct disks *d, uint32_t *at, struct record_dev *ret_dev,
	const char **ret_name);

/*
 * What a whole disk did in the last interval; NULL: there is no such disk, it is ignored, or has
 * done nothing for long while others did.
 */
const struct record_disk *disks_find(const struct disks *d, uint32_t major, uint32_t minor);

/* What zram devices moved between the last two readings; 0 where one has gone meanwhile. */
struct disks_zram disks_zram_since(const struct disks *d);

/*
 * How busy they were in the last interval, added up, in percent, no request twice: without what
 * stands on others, unless that was busier, as where these are ignored. A disk that completes
 * nothing is busy.
 */
double disks_busy_pct(const struct disks *d);

/* Puts the disks with the most trouble into the sample and counts the others. */
void disks_fill_sample(const struct disks *d, struct record_reading *sample);

#endif
