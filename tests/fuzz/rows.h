/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rows of a database server from the bytes of a fuzzer: each cell stands behind its length in
 * one byte, 255 is a NULL and 254 ends an answer.
 * Used by the fuzz targets of the SQL helper's drivers.
 * Never sends anything: send() only checks what the daemon would get.
 */
#ifndef IOSTALL_FUZZ_ROWS_H
#define IOSTALL_FUZZ_ROWS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "sql/frames.h"
#include "sql/snapshot.h"
#include "util/text.h"

#define ROWS_COLUMNS 16
#define ROWS_NULL 255
#define ROWS_END 254

static struct {
	const uint8_t *data;
	size_t size;
	char *cells[ROWS_COLUMNS]; /* each of its own size, so that ASan sees who reads on */
} rows;

static uint8_t rows_byte(void)
{
	if (rows.size == 0)
		return ROWS_END;
	rows.size--;
	return *rows.data++;
}

static char *rows_cell(size_t len)
{
	char *cell;

	if (len > rows.size)
		len = rows.size;
	cell = malloc(len + 1);
	if (!cell)
		abort();
	memcpy(cell, rows.data, len);
	cell[len] = '\0';
	rows.data += len;
	rows.size -= len;
	return cell;
}

/* The next row; NULL: there is none. What is missing at the end of the input is empty. */
static char **rows_next(void)
{
	for (unsigned int i = 0; i < ROWS_COLUMNS; i++) {
		uint8_t len = rows_byte();

		free(rows.cells[i]);
		rows.cells[i] = NULL;
		if (i == 0 && len == ROWS_END)
			return NULL;
		if (len != ROWS_NULL)
			rows.cells[i] = rows_cell(len == ROWS_END ? 0 : len);
	}
	return rows.cells;
}

static void rows_free(void)
{
	for (unsigned int i = 0; i < ROWS_COLUMNS; i++) {
		free(rows.cells[i]);
		rows.cells[i] = NULL;
	}
}

/* What the helper sends to the daemon must be accepted there, and end where it should. */
ssize_t send(int fd, const void *buf, size_t size, int flags)
{
	static struct sql_snapshot snapshot;
	union sql_helper_frame frame;
	int type;

	(void)fd;
	(void)flags;
	memset(&frame, 0xff, sizeof(frame));
	if (size > sizeof(frame))
		abort();
	memcpy(&frame, buf, size);
	type = sql_frame_check(&frame, size);
	if (type != SQL_FRAME_SESSION && type != SQL_FRAME_LOCK)
		abort();
	sql_frame_correct(&frame);
	sql_snapshot_begin(&snapshot, 1);
	if (type == SQL_FRAME_SESSION)
		(void)sql_snapshot_add(&snapshot, &frame.session);
	return (ssize_t)size;
}

#endif
