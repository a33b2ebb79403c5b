/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Statements made at random of what is difficult, read by a real server and redacted by us: no
 * value that the server returns may be left in the redacted text.
 *
 * usage: sqlredact mariadb|postgresql SOCKET PORT COUNT SEED
 *
 * Prints what leaks, and at the end how many statements were tried, were valid and returned values.
 * Exit status: 0 nothing leaked, 1 something did or there is no server, 2 usage.
 */
#include <libpq-fe.h>
#include <mysql.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sql/helper/redact.h"
#include "util/cleanup.h"

/* A setting of the session holds for so many statements. */
#define STATEMENTS_PER_SETTING 2000
#define PIECES_MAX 18
#define STATEMENT_SIZE 1024
/* "QZa07": found in a value, it must not be found in the redacted text. */
#define MARKER "QZ"
#define MARKER_LEN 5

struct counts {
	unsigned long tried;
	unsigned long valid;
	unsigned long with_values;
	unsigned long leaks;
};

static const char *const mysql_pieces[] = { "'", "'", "'", "\"", "\"", "\\", "\\'", "''", "\"\"",
	"`", "-- ", "--", "--\x7f", "#", "\n", " ", " ", ",", ",", "/*", "*/", "/*!", "/*!50000 ",
	"/*!99999 ", "/*M!", "$$", "$a$", "$", "N", "x", "_utf8mb4", "1", "1e", "0x", "+", "||",
	"\\\\", "(", ")", "AS ", "@a", "\\N", ".", "e'" };
static const char *const mysql_settings[] = { "SET sql_mode = ''",
	"SET sql_mode = 'NO_BACKSLASH_ESCAPES'", "SET sql_mode = 'ANSI_QUOTES'",
	"SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'" };
static const char *const postgres_pieces[] = { "'", "'", "'", "\"", "\\", "\\'", "''", "--", "\n",
	" ", " ", ",", ",", "/*", "*/", "$$", "$$", "$a$", "$a$", "$", "E'", "e'", "U&'", "N'",
	"B'", "1", "1e", "+", "||", "\\\\", "::text", "(", ")", "AS ", "\r", "U&\"", ".", "x'",
	"$1", "_" };
static const char *const postgres_settings[] = { "SET standard_conforming_strings = on",
	"SET standard_conforming_strings = off; SET backslash_quote = on" };

static size_t make_statement(const char *const *pieces, size_t count, char ret_text[STATEMENT_SIZE])
{
	size_t len = (size_t)sprintf(ret_text, "SELECT ");
	int n = 3 + rand() % (PIECES_MAX - 3);

	for (int i = 0; i < n; i++) {
		if (rand() % 3 == 0)
			len += (size_t)sprintf(ret_text + len, MARKER "%c%02d", 'a' + rand() % 26,
				i);
		else
			len += (size_t)sprintf(ret_text + len, "%s",
				pieces[(size_t)rand() % count]);
	}
	return len;
}

/* False when the value holds no marker. */
static bool check_value(enum sql_dialect dialect, const char *statement, size_t len,
	const char *value, struct counts *counts)
{
	static char buf[SQL_REDACTED_SIZE];
	struct text redacted = TEXT_ON(buf);
	const char *p = value ? strstr(value, MARKER) : NULL;
	char marker[MARKER_LEN + 1];

	if (!p)
		return false;
	text_reset(&redacted);
	sql_redact(dialect, statement, len, false, &redacted);
	for (; p && strlen(p) >= MARKER_LEN; p = strstr(p + 1, MARKER)) {
		text_copy(marker, sizeof(marker), p);
		if (!strstr(buf, marker))
			continue;
		printf("%s is left of: %s\n  in: %s\n", marker, statement, buf);
		counts->leaks++;
	}
	return true;
}

static void try_mariadb(MYSQL *mysql, struct counts *counts)
{
	char statement[STATEMENT_SIZE];
	size_t len = make_statement(mysql_pieces, ARRAY_SIZE(mysql_pieces), statement);
	bool has_value = false;
	MYSQL_RES *result;
	MYSQL_ROW row;

	counts->tried++;
	if (mysql_real_query(mysql, statement, len) != 0)
		return;
	result = mysql_store_result(mysql);
	counts->valid++;
	while (result && (row = mysql_fetch_row(result)))
		for (unsigned int i = 0; i < mysql_num_fields(result); i++)
			has_value |= check_value(SQL_DIALECT_MYSQL, statement, len, row[i], counts);
	mysql_free_result(result);
	counts->with_values += has_value;
}

static bool run_mariadb(const char *socket, unsigned long count, struct counts *counts)
{
	MYSQL *mysql = mysql_init(NULL);

	mysql_options(mysql, MYSQL_SET_CHARSET_NAME, "utf8mb4");
	if (!mysql_real_connect(mysql, NULL, "root", NULL, NULL, 0, socket, 0)) {
		fprintf(stderr, "sqlredact: %s\n", mysql_error(mysql));
		return false;
	}
	for (unsigned long i = 0; i < count; i++) {
		if (i % STATEMENTS_PER_SETTING == 0)
			mysql_query(mysql,
				mysql_settings[i / STATEMENTS_PER_SETTING %
					ARRAY_SIZE(mysql_settings)]);
		try_mariadb(mysql, counts);
	}
	mysql_close(mysql);
	return true;
}

static void try_postgres(PGconn *pg, struct counts *counts)
{
	char statement[STATEMENT_SIZE];
	size_t len = make_statement(postgres_pieces, ARRAY_SIZE(postgres_pieces), statement);
	PGresult *result = PQexec(pg, statement);
	bool has_value = false;

	counts->tried++;
	counts->valid += PQresultStatus(result) == PGRES_TUPLES_OK;
	for (int row = 0; row < PQntuples(result); row++)
		for (int i = 0; i < PQnfields(result); i++)
			has_value |= check_value(SQL_DIALECT_POSTGRESQL, statement, len,
				PQgetvalue(result, row, i), counts);
	PQclear(result);
	counts->with_values += has_value;
}

static bool run_postgres(const char *socket, const char *port, unsigned long count,
	struct counts *counts)
{
	PGconn *pg = PQsetdbLogin(socket, port, NULL, NULL, "postgres", "postgres", NULL);

	if (PQstatus(pg) != CONNECTION_OK) {
		fprintf(stderr, "sqlredact: %s\n", PQerrorMessage(pg));
		return false;
	}
	PQclear(PQexec(pg, "SET client_min_messages = error; SET escape_string_warning = off"));
	for (unsigned long i = 0; i < count; i++) {
		if (i % STATEMENTS_PER_SETTING == 0)
			PQclear(PQexec(pg,
				postgres_settings[i / STATEMENTS_PER_SETTING %
					ARRAY_SIZE(postgres_settings)]));
		try_postgres(pg, counts);
	}
	PQfinish(pg);
	return true;
}

int main(int argc, char **argv)
{
	struct counts counts = { 0 };
	bool ran;

	if (argc != 6) {
		fprintf(stderr, "usage: sqlredact mariadb|postgresql SOCKET PORT COUNT SEED\n");
		return 2;
	}
	srand((unsigned int)atoi(argv[5]));
	if (strcmp(argv[1], "mariadb") == 0)
		ran = run_mariadb(argv[2], strtoul(argv[4], NULL, 10), &counts);
	else
		ran = run_postgres(argv[2], argv[3], strtoul(argv[4], NULL, 10), &counts);
	printf("%lu statements, %lu valid, %lu with values, %lu leaks\n", counts.tried,
		counts.valid, counts.with_values, counts.leaks);
	return ran && counts.leaks == 0 ? 0 : 1;
}
