/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Any bytes as the rows of a MariaDB or MySQL server: whatever the helper makes of them, the daemon
 * accepts. The first byte chooses what is asked.
 */
#include <fcntl.h>
#include <stdint.h>

#include "rows.h"
#include "sql/helper/mariadb_locks.h"
#include "sql/helper/mariadb_sessions.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned int columns;
static int ready_fd = -1;
/* Neither is ever looked into. */
static MYSQL *const session = (MYSQL *)&ready_fd;
static MYSQL_RES *const result = (MYSQL_RES *)&columns;

static int ask(MYSQL *mysql, const char *query, unsigned long size)
{
	(void)mysql;
	(void)query;
	(void)size;
	return 0;
}

static my_bool read_result(MYSQL *mysql)
{
	(void)mysql;
	return 0;
}

static MYSQL_RES *use_result(MYSQL *mysql)
{
	(void)mysql;
	return result;
}

static void free_result(MYSQL_RES *unused)
{
	(void)unused;
}

static MYSQL_ROW fetch_row(MYSQL_RES *unused)
{
	(void)unused;
	return rows_next();
}

static unsigned long *fetch_lengths(MYSQL_RES *unused)
{
	static unsigned long lengths[ROWS_COLUMNS];

	(void)unused;
	for (unsigned int i = 0; i < ROWS_COLUMNS; i++)
		lengths[i] = rows.cells[i] ? strlen(rows.cells[i]) : 0;
	return lengths;
}

static unsigned int num_fields(MYSQL_RES *unused)
{
	(void)unused;
	return columns;
}

static unsigned long thread_id(MYSQL *mysql)
{
	(void)mysql;
	return 7;
}

static my_socket get_socket(MYSQL *mysql)
{
	(void)mysql;
	return ready_fd;
}

static unsigned int get_errno(MYSQL *mysql)
{
	(void)mysql;
	return 0;
}

static const char *get_error(MYSQL *mysql)
{
	(void)mysql;
	return "";
}

/* All that a snapshot calls. */
static const struct mariadb_functions lib = {
	.mysql_send_query = ask,
	.mysql_read_query_result = read_result,
	.mysql_use_result = use_result,
	.mysql_free_result = free_result,
	.mysql_fetch_row = fetch_row,
	.mysql_fetch_lengths = fetch_lengths,
	.mysql_num_fields = num_fields,
	.mysql_thread_id = thread_id,
	.mysql_get_socket = get_socket,
	.mysql_errno = get_errno,
	.mysql_error = get_error,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sql_frame_setup setup = { .text_bytes = 1024 };
	struct sql_link link = { .setup = &setup, .lib = lib, .mysql = session };
	char error_buf[SQL_ERROR_SIZE];
	struct text error = TEXT_ON(error_buf);
	uint8_t how;

	if (ready_fd < 0)
		ready_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	rows.data = data;
	rows.size = size;
	how = rows_byte();
	setup.text_mode = how & 3;
	link.by_threads = how & 4;
	columns = how & 8 ? ROWS_COLUMNS : 9;
	if (how & 16)
		link.row_locks_query = link.metadata_locks_query = link.transactions_query = "?";
	text_copy(link.threads_query, sizeof(link.threads_query), how & 32 ? "?" : "");
	/* The second answer meets what is remembered of the first. */
	for (unsigned int i = 0; i < 2; i++) {
		struct sql_answer answer = {
			.is_glance = i == 0 && how & 64,
			.setup = &setup,
			.dialect = SQL_DIALECT_MYSQL,
		};

		text_reset(&error);
		(void)mariadb_snapshot(&link, &answer, &error);
	}
	mariadb_forget_threads(&link);
	free(link.transactions);
	rows_free();
	return 0;
}
