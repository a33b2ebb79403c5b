/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rows of /proc/diskstats: what is remembered of each device, judged or not.
 * Used by disks.c only.
 * Never searches all rows: the one that followed last time is tried first, then those with the same
 * hash.
 */
#ifndef IOSTALL_WATCH_DISK_ROWS_H
#define IOSTALL_WATCH_DISK_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "record/structs.h"

/* Rows of which something is remembered; a table that is too small grows up to this. */
#define DISK_ROWS_MAX 16384
#define DISK_ROWS_NONE UINT16_MAX

struct disk_row {
	uint32_t major;
	uint32_t minor;
	char name[RECORD_DISK_NAME_SIZE];
	uint64_t text_hash; /* of its line in the last reading; 0: it has had none */
	uint32_t reading;   /* number of the last reading that had it */
	int16_t disk;	    /* index into the disks that are watched; -1: it is not among them */
	uint16_t next_in_file;
	uint16_t next_in_bucket;
	bool used;
	bool is_partition;
	bool judged;  /* a whole disk that the patterns want */
	bool changes; /* its line has to be read although it says the same as last time */
};

struct disk_rows {
	struct disk_row *rows;
	uint16_t *buckets;
	uint32_t size;	 /* of both, a power of two */
	uint32_t count;	 /* in use */
	uint32_t top;	 /* highest index in use, plus 1 */
	uint16_t free;	 /* the first one of a list through next_in_bucket */
	uint16_t first;	 /* of the file */
	uint16_t last;	 /* of this reading so far */
	uint64_t visits; /* rows that were looked at, ever */
};

/* 0 or -ENOMEM. */
int disk_rows_init(struct disk_rows *table);
/* A table of zeros is accepted. */
void disk_rows_done(struct disk_rows *table);
/* Allocates, so that there is room for so many, up to the maximum: while the host is well. */
void disk_rows_grow(struct disk_rows *table, uint32_t wanted);

/* The next line will be the first of the file. */
void disk_rows_begin(struct disk_rows *table);
/* The row that stood next in the last reading; NULL: none did. */
struct disk_row *disk_rows_expect(struct disk_rows *table);
/* The line was that of this row. */
void disk_rows_pass(struct disk_rows *table, struct disk_row *row);

/*
 * The row of a device; NULL: there is none. Several may have the same number, as hidden disks have
 * on 5.10 (0:0), or before it is noticed that one has gone. `name` NULL: any of them.
 */
struct disk_row *disk_rows_find(struct disk_rows *table, uint32_t major, uint32_t minor,
	const char *name);
const char *disk_rows_find_name(const struct disk_rows *table, uint32_t major, uint32_t minor);
/* NULL: there is no room. */
struct disk_row *disk_rows_add(struct disk_rows *table, uint32_t major, uint32_t minor,
	const char *name);
void disk_rows_forget(struct disk_rows *table, struct disk_row *row);

#endif
