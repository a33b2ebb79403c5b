/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Statements without their literals: what they look like, and that nothing of a literal is left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "sql/helper/driver.h"
#include "sql/helper/redact.h"
#include "util/cleanup.h"

#define MY SQL_DIALECT_MYSQL
#define PG SQL_DIALECT_POSTGRESQL

static void assert_redacted(enum sql_dialect dialect, const char *in, const char *want)
{
	char buf[SQL_REDACTED_SIZE], again_buf[SQL_REDACTED_SIZE];
	struct text out = TEXT_ON(buf), again = TEXT_ON(again_buf);

	text_reset(&out);
	text_reset(&again);
	sql_redact(dialect, in, strlen(in), false, &out);
	assert_string_equal(buf, want);
	sql_redact(dialect, buf, out.len, false, &again);
	assert_string_equal(again_buf, want);
}

static void test_values(void **state)
{
	(void)state;
	assert_redacted(MY, "SELECT * FROM t WHERE a=1", "SELECT * FROM t WHERE a=?");
	assert_redacted(MY, "SELECT a1, b_2 FROM t3 WHERE a1 = 'x' AND b_2 LIKE \"%y%\"",
		"SELECT a1, b_2 FROM t3 WHERE a1 = ? AND b_2 LIKE ?");
	assert_redacted(MY, "select -1, +2 from `t 1` where d > DATE '2020-01-02'",
		"select -?, ... from `t 1` where d > DATE ?");
	assert_redacted(MY,
		"SET @a = 0x1F, @b = x'1F', @c = b'01', @d = 1.5e-10, @e = .5, @f = 1E+5",
		"SET @a = ?, @b = ?, @c = ?, @d = ?, @e = ?, @f = ?");
	assert_redacted(MY, "SELECT _utf8mb4'x', N'y', 'a' 'b'\n'c', NULL, \\N",
		"SELECT _utf8mb4?, ..., NULL, \\N");
	assert_redacted(PG,
		"SELECT e'a\\'b', U&'\\0041' UESCAPE '!', X'1F', B'01', n'x', '1'::int, $1",
		"SELECT ?, ... UESCAPE ?, ...::int, $1");
	assert_redacted(PG, "SELECT \"Col 1\" FROM \"T\" WHERE x = $$it's$$ OR y = $a$ $$ $a$",
		"SELECT \"Col 1\" FROM \"T\" WHERE x = ? OR y = ?");
	assert_redacted(PG, "SELECT data->'k'->>'l', data ? 'x' FROM j WHERE a = 1_000 + 0x1f",
		"SELECT data->?->>?, data ? ? FROM j WHERE a = ? + ?");
	assert_redacted(MY, "SELECT größe FROM straße WHERE größe = 'größer'",
		"SELECT größe FROM straße WHERE größe = ?");
}

static void test_lists(void **state)
{
	(void)state;
	assert_redacted(MY, "SELECT a FROM t WHERE b IN (1)", "SELECT a FROM t WHERE b IN (?)");
	assert_redacted(MY, "SELECT a FROM t WHERE b IN (1, -2,'3')",
		"SELECT a FROM t WHERE b IN (...)");
	assert_redacted(MY, "INSERT INTO t (a, b) VALUES (1,'x'), (2, 'y'),(3,'z')",
		"INSERT INTO t (a, b) VALUES (...), ...");
	assert_redacted(MY, "INSERT INTO t VALUES (1),(2)", "INSERT INTO t VALUES (?), ...");
	assert_redacted(MY, "SELECT * FROM t LIMIT 10, 20", "SELECT * FROM t LIMIT ?, ...");
	assert_redacted(MY, "SELECT SLEEP(30)", "SELECT SLEEP(?)");
	assert_redacted(MY, "SELECT f(1, a, 2)", "SELECT f(?, a, ?)");
	assert_redacted(MY, "SELECT `a, ?, ?` FROM t", "SELECT `a, ?, ?` FROM t");
	assert_redacted(PG, "SELECT ARRAY['a','b'], (1,2)", "SELECT ARRAY[?, ...], (...)");
}

static void test_comments(void **state)
{
	(void)state;
	assert_redacted(MY, "SELECT /* who */ 1 -- why\n  FROM\tt # end", "SELECT ? FROM t");
	assert_redacted(MY, "SELECT 5--3", "SELECT ?--?");
	assert_redacted(MY, "SELECT /*!40001 SQL_NO_CACHE */ * FROM `t` WHERE a = /*!50000 'x' */",
		"SELECT SQL_NO_CACHE * FROM `t` WHERE a = ?");
	assert_redacted(MY, "SELECT /*M!100101 a */ FROM t", "SELECT a FROM t");
	assert_redacted(PG, "SELECT 1 /* a /* b */ c */ FROM t --x", "SELECT ? FROM t");
	assert_redacted(PG, "SELECT /*!40001 x */ a", "SELECT a");
	assert_redacted(PG, "SELECT 5--3\r+ a", "SELECT ? + a");
}

static void test_statements_about_passwords(void **state)
{
	(void)state;
	assert_redacted(MY, "CREATE USER 'a'@'h' IDENTIFIED BY PASSWORD '*94BDCEBE'",
		"CREATE USER ?@? IDENTIFIED BY PASSWORD ?");
	assert_redacted(MY, "SET PASSWORD FOR x@localhost = PASSWORD(\"x\")",
		"SET PASSWORD FOR x@localhost = PASSWORD(?)");
	assert_redacted(PG, "ALTER ROLE app PASSWORD 'SCRAM-SHA-256$4096:x'",
		"ALTER ROLE app PASSWORD ?");
}

/* Where the session's settings decide, and the text does not tell, nothing is shown. */
static void test_texts_with_two_readings(void **state)
{
	(void)state;
	assert_redacted(MY, "SELECT 'it\\'s', a FROM t", "SELECT ?, a FROM t");
	assert_redacted(MY, "SELECT 'it\\'s', 'it\\'s' FROM t", "SELECT ?, ... FROM t");
	/* With NO_BACKSLASH_ESCAPES only this can be read to the end. */
	assert_redacted(MY, "SELECT 'c:\\', 'x' FROM t", "SELECT ?, ... FROM t");
	assert_redacted(PG, "SELECT 'c:\\', 'x' FROM t", "SELECT ?, ... FROM t");
	/* With standard_conforming_strings=off only this can. */
	assert_redacted(PG, "SELECT 'it\\'s', a FROM t", "SELECT ?, a FROM t");
}

static void test_incomplete_statements(void **state)
{
	(void)state;
	assert_redacted(MY, "", "");
	assert_redacted(MY, " \n\t ", "");
	assert_redacted(MY, "SELECT 'abc", "SELECT ?");
	assert_redacted(MY, "SELECT `abc", "SELECT ?");
	assert_redacted(MY, "SELECT a /* abc", "SELECT a");
	assert_redacted(PG, "SELECT a, $x$ abc $y$", "SELECT a, ?");
	assert_redacted(PG, "SELECT \"abc", "SELECT ?");
	assert_redacted(MY, "SELECT\x01 a\x7f, \xc2\x85 b", "SELECT a , _ b");
	assert_redacted(MY, "SELECT `it's` FROM t", "SELECT `it?s` FROM t");
}

/* sEcReT and 4242 stand where a literal or a comment is, under the settings named behind it. */
static const struct {
	enum sql_dialect dialect;
	const char *text;
} corpus[] = {
	{ MY, "SELECT 'sEcReT'" },
	{ MY, "SELECT \"sEcReT\"" },
	{ MY, "SELECT 'a''sEcReT' , a" },
	{ MY, "SELECT 'a\\'sEcReT' , a" },
	{ MY, "SELECT 'a\\\\', 'sEcReT'" },
	{ MY, "SELECT 'a\\\\\\'sEcReT', b" },
	{ MY, "SELECT \"a\"\"sEcReT\", 'it\"s sEcReT', \"it's sEcReT\"" },
	{ MY, "SELECT \"a\\\"sEcReT\"" },
	{ MY, "SELECT 4242, -4242, +4242, 4242.4242, .4242, 4242e4242, 1e-4242, 0x4242, 0b4242" },
	{ MY, "SELECT x'4242', X'4242', b'4242', n'sEcReT', N'sEcReT', _latin1'sEcReT', _binary 0x4242" },
	{ MY, "SELECT DATE'2020-4242', TIMESTAMP '4242', {d '4242'}, INTERVAL 4242 DAY" },
	{ MY, "SELECT * FROM t WHERE j->'$.sEcReT' = '{\"a\": \"sEcReT\", \"b\": [4242, \\\"sEcReT\\\"]}'" },
	{ MY, "INSERT INTO t VALUES (4242,'sEcReT',\"sEcReT\"),(4242,'sEcReT','sEcReT')" },
	{ MY, "SELECT 'größe sEcReT', '秘密sEcReT', \"\xf0\x9f\x98\x80sEcReT\", '\xff\xfesEcReT'" },
	{ MY, "SELECT 1 -- sEcReT" },
	{ MY, "SELECT 1 -- it's\n, 'sEcReT'" },
	{ MY, "SELECT 1 # it's sEcReT\n, 'sEcReT'" },
	{ MY, "SELECT /* it's sEcReT */ 'sEcReT'" },
	{ MY, "SELECT /*!50000 'sEcReT' */, /*M!100100 \"sEcReT\" */ 4242" },
	{ MY, "SELECT /*!99999 it's */ 'sEcReT'" },
	{ MY, "SELECT /*!99999 it's /* it's sEcReT */ */ 'sEcReT'" },
	{ MY, "SELECT /*!50000 'a */ sEcReT', b */, /*!99999 it's */ 'sEcReT', 'b'" },
	{ MY, "SELECT /*!50000 a -- it's */ 'sEcReT'\n*/, 'sEcReT'" },
	{ MY, "SELECT /*!50000 -- foo */ it's\n, 'sEcReT' */" },
	{ MY, "SELECT /*!50000 # foo */ it's\n, 'sEcReT' */" },
	{ MY, "SELECT /*+ SET_VAR(x='sEcReT') */ a" },
	{ MY, "SELECT 5--'sEcReT'" },
	{ MY, "SELECT 5 --\x7fit's\n, 'sEcReT' --\x01it's\n, 'sEcReT' --" },
	{ MY, "CREATE USER 'sEcReT'@'sEcReT' IDENTIFIED BY PASSWORD '*4242'" },
	{ MY, "SET PASSWORD = PASSWORD('sEcReT')" },
	{ MY, "CHANGE MASTER TO MASTER_PASSWORD='sEcReT', MASTER_PORT=4242" },
	{ MY, "GRANT ALL ON *.* TO a IDENTIFIED VIA mysql_native_password USING 'sEcReT'" },
	{ MY, "SELECT AES_ENCRYPT('sEcReT','sEcReT'), `co'l` = 'sEcReT', `a``'b` = 'sEcReT'" },
	{ MY, "SELECT 'a' 'sEcReT' \"sEcReT\"" },
	{ MY, "SELECT 'sEcReT\n\r\t sEcReT\\0sEcReT'" },
	/* NO_BACKSLASH_ESCAPES */
	{ MY, "SELECT 'a\\', 'sEcReT'" },
	{ MY, "SELECT 'a\\', \"sEcReT\", 'b\\', 'sEcReT'" },
	{ MY, "SELECT 'a\\', 'sEcReT', 'b', 'sEcReT', 'c'" },
	{ MY, "SELECT 'a\\' /* ' */, 'sEcReT' -- '" },
	{ MY, "SELECT 'a\\', 'sEcReT', \\N" },
	/* ANSI_QUOTES */
	{ MY, "SELECT \"col\\\", 'sEcReT' FROM \"t\"" },
	{ MY, "SELECT \"it's\", 'sEcReT' FROM \"t\"" },
	/* MySQL 9 */
	{ MY, "CREATE FUNCTION f() RETURNS INT LANGUAGE JAVASCRIPT AS $$ return 'sEcReT it' 4242 $$" },
	{ MY, "SELECT $tag$ it's sEcReT $tag$, 'sEcReT'" },
	{ PG, "SELECT 'sEcReT', 'a''sEcReT'" },
	{ PG, "SELECT 'c:\\', 'sEcReT'" },
	{ PG, "SELECT 'c:\\', 'sEcReT', 'd:\\', 'sEcReT'" },
	{ PG, "SELECT E'a\\'sEcReT', e'\\\\', 'sEcReT'" },
	{ PG, "SELECT E'a'\n'\\'sEcReT', 'sEcReT'" },
	{ PG, "SELECT E'a' -- it's sEcReT\n'\\'sEcReT', 'sEcReT'" },
	{ PG, "SELECT U&'sEcReT\\0041', u&'d!0061sEcReT' UESCAPE '!', N'sEcReT'" },
	{ PG, "SELECT B'4242', X'4242', 4242, 4242.4242e+4242, .4242, 4_242, 0o4242" },
	{ PG, "SELECT $$sEcReT$$, $$it's sEcReT$$, $a$ $$ sEcReT $b$ sEcReT $a$, 'sEcReT'" },
	{ PG, "DO $do$ BEGIN PERFORM 'sEcReT'; EXECUTE $q$ sEcReT $q$; END $do$" },
	{ PG, "SELECT 1$$it's sEcReT$$, 'sEcReT', $1$$it's sEcReT$$, 'sEcReT'" },
	{ PG, "SELECT a$b$c, 'sEcReT', a$b$c" },
	{ PG, "SELECT \"it's\", 'sEcReT', \"a\"\"'b\", 'sEcReT'" },
	{ PG, "SELECT /* a /* it's sEcReT */ sEcReT */ 'sEcReT'" },
	{ PG, "SELECT 1--sEcReT\r, 'sEcReT'--sEcReT" },
	{ PG, "SELECT 1 +--it's sEcReT\n 'sEcReT'" },
	{ PG, "SELECT '{\"a\": \"sEcReT\"}'::jsonb @> '{\"b\": 4242}' AND j ? 'sEcReT' AND j #>> '{sEcReT}'" },
	{ PG, "ALTER ROLE x WITH PASSWORD 'sEcReT' VALID UNTIL '4242'" },
	{ PG, "CREATE SUBSCRIPTION s CONNECTION 'host=x password=sEcReT' PUBLICATION p" },
	{ PG, "COPY t FROM PROGRAM 'curl -u sEcReT'" },
	{ PG, "SELECT '秘密sEcReT', E'\\u00e9sEcReT', '\xf0\x9f\x98\x80sEcReT'" },
	/* standard_conforming_strings=off */
	{ PG, "SELECT 'a\\'sEcReT', b" },
	{ PG, "SELECT 'a\\'sEcReT', 'b\\'sEcReT', 'sEcReT'" },
};

static void assert_no_secret(enum sql_dialect dialect, const char *text, size_t len, bool cut)
{
	char buf[SQL_REDACTED_SIZE];
	struct text out = TEXT_ON(buf);

	text_reset(&out);
	sql_redact(dialect, text, len, cut, &out);
	assert_false(out.overflow);
	if (strstr(buf, "Ec") || strstr(buf, "42") || strpbrk(buf, "\n\t"))
		fail_msg("%.*s became %s", (int)len, text, buf);
}

static void test_corpus(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(corpus); i++)
		assert_no_secret(corpus[i].dialect, corpus[i].text, strlen(corpus[i].text), false);
}

/* A statement may be cut anywhere; exact memory, so that a sanitizer sees who reads on. */
static void test_corpus_cut(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(corpus); i++) {
		for (size_t len = 0; len < strlen(corpus[i].text); len++) {
			_cleanup_free_ char *copy = malloc(len + 1);

			assert_non_null(copy);
			memcpy(copy, corpus[i].text, len);
			assert_no_secret(corpus[i].dialect, copy, len, true);
		}
	}
}

/* What a driver says may be cut is read so, even if it has as many bytes as the server knows of. */
static void test_corpus_answered(void **state)
{
	struct sql_frame_setup setup = { .text_mode = SQL_TEXT_REDACTED, .text_bytes = 1024 };
	struct sql_frame_session session = { 0 };
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	for (size_t i = 0; i < ARRAY_SIZE(corpus); i++) {
		for (size_t len = 0; len < strlen(corpus[i].text); len++) {
			struct sql_answer answer = { .fd = fds[0],
				.setup = &setup,
				.dialect = corpus[i].dialect };
			_cleanup_free_ char *copy = strndup(corpus[i].text, len);

			assert_non_null(copy);
			assert_true(sql_answer_add(&answer, &session, copy, len, true));
			assert_true(recv(fds[1], &session, sizeof(session), 0) > 0);
			assert_int_equal(session.text_bytes, len);
			if (strstr(session.text, "Ec") || strstr(session.text, "42"))
				fail_msg("%s became %s", copy, session.text);
		}
	}
	close(fds[0]);
	close(fds[1]);
}

/* The secret is there with and without a prefix that makes the text ambiguous. */
static void test_corpus_behind_others(void **state)
{
	char joined[1024];

	(void)state;
	for (size_t a = 0; a < ARRAY_SIZE(corpus); a++) {
		for (size_t b = 0; b < ARRAY_SIZE(corpus); b++) {
			size_t n;

			/* Two statements of one session are read with one setting. */
			if (corpus[a].dialect != corpus[b].dialect ||
				strchr(corpus[a].text, '\\') || strchr(corpus[b].text, '\\') ||
				strstr(corpus[a].text, "--"))
				continue;
			n = (size_t)snprintf(joined, sizeof(joined), "%s; %s", corpus[a].text,
				corpus[b].text);
			assert_no_secret(corpus[a].dialect, joined, n, false);
		}
	}
}

static void test_small_buffer_and_long_statement(void **state)
{
	static char huge[SQL_REDACT_BYTES_MAX + 100];
	char small_buf[16], buf[SQL_REDACTED_SIZE];
	struct text small = TEXT_ON(small_buf), out = TEXT_ON(buf);

	(void)state;
	text_reset(&small);
	sql_redact(MY, "SELECT 'x' FROM table_of_many", 29, false, &small);
	assert_true(small.overflow);
	assert_string_equal(small_buf, "SELECT ? FROM t");
	/* What is behind the limit could tell how to read what is before it. */
	memset(huge, 'a', sizeof(huge));
	huge[0] = '\'';
	text_reset(&out);
	sql_redact(MY, huge, sizeof(huge), false, &out);
	assert_string_equal(buf, "?");
	for (size_t i = 0; i + 1 < sizeof(huge); i += 2)
		memcpy(huge + i, ",1", 2);
	text_reset(&out);
	sql_redact(MY, huge, sizeof(huge), false, &out);
	assert_string_equal(buf, ",?, ...");
	for (size_t i = 0; i + 4 < sizeof(huge); i += 4)
		memcpy(huge + i, "1,1a", 4);
	text_reset(&out);
	sql_redact(MY, huge, sizeof(huge), false, &out);
	assert_false(out.overflow);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_comments),
		cmocka_unit_test(test_statements_about_passwords),
		cmocka_unit_test(test_texts_with_two_readings),
		cmocka_unit_test(test_incomplete_statements),
		cmocka_unit_test(test_corpus),
		cmocka_unit_test(test_corpus_cut),
		cmocka_unit_test(test_corpus_answered),
		cmocka_unit_test(test_corpus_behind_others),
		cmocka_unit_test(test_small_buffer_and_long_statement),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
