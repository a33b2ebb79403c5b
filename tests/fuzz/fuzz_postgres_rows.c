/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Any bytes as the rows of a PostgreSQL server: whatever the helper makes of them, the daemon
 * accepts. The first byte chooses what is asked.
 */
#include <stdbool.h>
#include <stdint.h>

#include "rows.h"
#include "sql/helper/postgres_sessions.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum { ROW, LAST, NO_MORE } state;
static int something;
/* Neither is ever looked into. */
static PGconn *const session = (PGconn *)&something;
static PGresult *const result = (PGresult *)&state;

static int send_query(PGconn *pg, const char *name, int count, const char *const *values,
	const int *lengths, const int *formats, int format)
{
	(void)pg, (void)name, (void)count, (void)values, (void)lengths, (void)formats, (void)format;
	state = ROW;
	return 1;
}

static int single_row(PGconn *pg)
{
	(void)pg;
	return 1;
}

static int is_busy(PGconn *pg)
{
	(void)pg;
	return 0;
}

static PGresult *get_result(PGconn *pg)
{
	(void)pg;
	if (state == LAST)
		state = NO_MORE;
	else if (state == ROW && !rows_next())
		state = LAST;
	return state == NO_MORE ? NULL : result;
}

static ExecStatusType result_status(const PGresult *unused)
{
	(void)unused;
	return state == ROW ? PGRES_SINGLE_TUPLE : PGRES_TUPLES_OK;
}

static int tuples(const PGresult *unused)
{
	(void)unused;
	return state == ROW;
}

static int fields(const PGresult *unused)
{
	(void)unused;
	return ROWS_COLUMNS;
}

static int is_null(const PGresult *unused, int row, int column)
{
	(void)unused;
	(void)row;
	return !rows.cells[column];
}

static char *value(const PGresult *unused, int row, int column)
{
	(void)unused;
	(void)row;
	return rows.cells[column];
}

static void clear(PGresult *unused)
{
	(void)unused;
}

static ConnStatusType status(const PGconn *pg)
{
	(void)pg;
	return CONNECTION_OK;
}

static char *message(const PGconn *pg)
{
	static char none[] = "";

	(void)pg;
	return none;
}

static int pg_socket(const PGconn *pg)
{
	(void)pg;
	return -1;
}

/* All that a snapshot calls. */
static const struct postgres_functions lib = {
	.PQsendQueryPrepared = send_query,
	.PQsetSingleRowMode = single_row,
	.PQisBusy = is_busy,
	.PQgetResult = get_result,
	.PQresultStatus = result_status,
	.PQntuples = tuples,
	.PQnfields = fields,
	.PQgetisnull = is_null,
	.PQgetvalue = value,
	.PQclear = clear,
	.PQstatus = status,
	.PQerrorMessage = message,
	.PQsocket = pg_socket,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sql_frame_setup setup = { .text_bytes = 1024 };
	struct sql_link link = { .setup = &setup, .lib = lib, .pg = session };
	struct sql_answer answer = { .setup = &setup, .dialect = SQL_DIALECT_POSTGRESQL };
	char error_buf[SQL_ERROR_SIZE];
	struct text error = TEXT_ON(error_buf);
	uint8_t how;

	rows.data = data;
	rows.size = size;
	how = rows_byte();
	setup.text_mode = how & 3;
	answer.is_glance = how & 4;
	text_reset(&error);
	(void)postgres_snapshot(&link, &answer, &error);
	rows_free();
	return 0;
}
