/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/disk_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/text.h"

#define ROWS_AT_FIRST 1024

static uint16_t index_of(const struct disk_rows *t, const struct disk_row *row)
{
	return (uint16_t)(row - t->rows);
}

static struct disk_row *row_at(const struct disk_rows *t, uint16_t i)
{
	return i == DISK_ROWS_NONE ? NULL : &t->rows[i];
}

/* Numbers of disks follow one another, or are multiples of 16. */
static uint16_t *bucket_of(const struct disk_rows *t, uint32_t major, uint32_t minor)
{
	const uint64_t mixed = ((uint64_t)major << 32 | minor) * 0x9e3779b97f4a7c15;

	return &t->buckets[mixed >> 40 & (t->size - 1)];
}

static void link_row(struct disk_rows *t, struct disk_row *row)
{
	uint16_t *bucket = bucket_of(t, row->major, row->minor);

	row->next_in_bucket = *bucket;
	*bucket = index_of(t, row);
}

/* The old rows keep their places. */
static int resize(struct disk_rows *t, uint32_t size)
{
	struct disk_row *rows = calloc(size, sizeof(*rows));
	uint16_t *buckets = calloc(size, sizeof(*buckets));

	if (!rows || !buckets) {
		free(rows);
		free(buckets);
		return -ENOMEM;
	}
	if (t->top)
		memcpy(rows, t->rows, t->top * sizeof(*rows));
	free(t->rows);
	free(t->buckets);
	t->rows = rows;
	t->buckets = buckets;
	t->size = size;
	t->free = DISK_ROWS_NONE;
	memset(buckets, 0xff, size * sizeof(*buckets));
	for (uint32_t i = size; i-- > 0;) {
		if (rows[i].used) {
			link_row(t, &rows[i]);
		} else {
			rows[i].next_in_bucket = t->free;
			t->free = (uint16_t)i;
		}
	}
	return 0;
}

int disk_rows_init(struct disk_rows *t)
{
	*t = (struct disk_rows){ .first = DISK_ROWS_NONE, .last = DISK_ROWS_NONE };
	return resize(t, ROWS_AT_FIRST);
}

void disk_rows_done(struct disk_rows *t)
{
	free(t->rows);
	free(t->buckets);
	*t = (struct disk_rows){ 0 };
}

void disk_rows_grow(struct disk_rows *t, uint32_t wanted)
{
	uint32_t size = t->size;

	while (size < wanted && size < DISK_ROWS_MAX)
		size *= 2;
	/* Without memory the rows beyond are counted, and it is tried again. */
	if (size > t->size)
		(void)resize(t, size);
}

void disk_rows_begin(struct disk_rows *t)
{
	t->last = DISK_ROWS_NONE;
}

struct disk_row *disk_rows_expect(struct disk_rows *t)
{
	struct disk_row *last = row_at(t, t->last);
	struct disk_row *row = row_at(t, last ? last->next_in_file : t->first);

	t->visits++;
	return row && row->used ? row : NULL;
}

void disk_rows_pass(struct disk_rows *t, struct disk_row *row)
{
	struct disk_row *last = row_at(t, t->last);

	if (last)
		last->next_in_file = index_of(t, row);
	else
		t->first = index_of(t, row);
	t->last = index_of(t, row);
}

static bool is_row(const struct disk_row *row, uint32_t major, uint32_t minor, const char *name)
{
	return row->used && row->major == major && row->minor == minor &&
		(!name || strcmp(row->name, name) == 0);
}

struct disk_row *disk_rows_find(struct disk_rows *t, uint32_t major, uint32_t minor,
	const char *name)
{
	struct disk_row *row = row_at(t, *bucket_of(t, major, minor));

	for (; row; row = row_at(t, row->next_in_bucket)) {
		t->visits++;
		if (is_row(row, major, minor, name))
			return row;
	}
	return NULL;
}

const char *disk_rows_find_name(const struct disk_rows *t, uint32_t major, uint32_t minor)
{
	const struct disk_row *row = row_at(t, *bucket_of(t, major, minor));

	while (row && !is_row(row, major, minor, NULL))
		row = row_at(t, row->next_in_bucket);
	return row ? row->name : NULL;
}

struct disk_row *disk_rows_add(struct disk_rows *t, uint32_t major, uint32_t minor,
	const char *name)
{
	struct disk_row *row = row_at(t, t->free);

	if (!row)
		return NULL;
	t->free = row->next_in_bucket;
	*row = (struct disk_row){
		.used = true,
		.major = major,
		.minor = minor,
		.disk = -1,
		.next_in_file = DISK_ROWS_NONE,
	};
	text_copy(row->name, sizeof(row->name), name);
	link_row(t, row);
	t->count++;
	if (index_of(t, row) >= t->top)
		t->top = index_of(t, row) + 1u;
	return row;
}

void disk_rows_forget(struct disk_rows *t, struct disk_row *row)
{
	uint16_t *link = bucket_of(t, row->major, row->minor);

	while (*link != index_of(t, row))
		link = &t->rows[*link].next_in_bucket;
	*link = row->next_in_bucket;
	row->used = false;
	row->next_in_bucket = t->free;
	t->free = index_of(t, row);
	t->count--;
}
