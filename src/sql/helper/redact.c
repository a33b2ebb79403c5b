/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sql/helper/redact.h"

#include <string.h>

#include "util/cleanup.h"

/* There are three ways to read quotes and two to read $. */
#define RULES_MAX 6

static bool has(const char *text, size_t len, const char *what)
{
	return memmem(text, len, what, strlen(what)) != NULL;
}

/* The combinations of rules that make a difference for this text; other ones read it alike. */
static unsigned int choose_rules(enum sql_dialect dialect, const char *text, size_t len,
	unsigned int ret_rules[RULES_MAX])
{
	static const unsigned int escapes[] = { LEXER_ESCAPE_IN_SINGLE | LEXER_ESCAPE_IN_DOUBLE, 0,
		LEXER_ESCAPE_IN_SINGLE };
	bool backslash = has(text, len, "\\"), dollars = has(text, len, "$");
	unsigned int count = 0;

	if (dialect == SQL_DIALECT_POSTGRESQL) {
		ret_rules[count++] = LEXER_DOLLAR_QUOTES;
		if (backslash)
			ret_rules[count++] = LEXER_DOLLAR_QUOTES | LEXER_ESCAPE_IN_SINGLE;
		return count;
	}
	for (unsigned int i = 0; i < (backslash ? ARRAY_SIZE(escapes) : 1); i++)
		for (unsigned int d = 0; d <= dollars; d++)
			ret_rules[count++] = escapes[i] | (d ? LEXER_DOLLAR_QUOTES : 0);
	return count;
}

static void mark_all(enum sql_dialect dialect, const char *text, size_t len, bool cut,
	uint8_t *classes)
{
	unsigned int rules[RULES_MAX], count = choose_rules(dialect, text, len, rules), likely = 0;
	bool is_likely[RULES_MAX];

	for (unsigned int i = 0; i < count; i++) {
		is_likely[i] = lexer_mark(dialect, rules[i], text, len, cut, NULL);
		likely += is_likely[i];
	}
	memset(classes, LEXER_CODE, len);
	for (unsigned int i = 0; i < count; i++)
		if (is_likely[i] || likely == 0)
			lexer_mark(dialect, rules[i], text, len, cut, classes);
}

static bool is_blank(char c)
{
	return (unsigned char)c <= ' ' || c == 0x7f;
}

/* C1 in UTF-8 is a letter to the databases, but a control character to a terminal. */
static bool is_control(const char *s, size_t len)
{
	return len > 1 && (unsigned char)s[0] == 0xc2 && (unsigned char)s[1] >= 0x80 &&
		(unsigned char)s[1] <= 0x9f;
}

/* Writes what may be shown: at most len bytes, and no quote that could begin a string. */
static size_t write_code(enum sql_dialect dialect, const char *text, size_t len,
	const uint8_t *classes, char *out)
{
	bool mysql = dialect == SQL_DIALECT_MYSQL, blank = false, after_literal = false;
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		bool literal = classes[i] == LEXER_LITERAL;
		bool quote = text[i] == '\'' || (mysql && text[i] == '"');

		if (classes[i] == LEXER_COMMENT || (!literal && is_blank(text[i]))) {
			blank = true;
			continue;
		}
		/* 'a' 'b' is one value. */
		if (literal && after_literal) {
			blank = false;
			continue;
		}
		if (blank && n > 0)
			out[n++] = ' ';
		blank = false;
		after_literal = literal;
		out[n++] = literal || quote ? '?' : text[i];
		if (!literal && is_control(text + i, len - i)) {
			out[n - 1] = '_';
			i++;
		}
	}
	return n;
}

/* --- lists ------------------------------------------------------------------------- */

static bool skip_text(const char **p, const char *end, const char *what)
{
	size_t n = strlen(what);

	if ((size_t)(end - *p) < n || memcmp(*p, what, n) != 0)
		return false;
	*p += n;
	return true;
}

static void skip_blank(const char **p, const char *end)
{
	skip_text(p, end, " ");
}

/* Moves over ?, -?, or the "..." of a list that is shortened already. False: it is none. */
static bool skip_value(const char **p, const char *end)
{
	const char *q = *p;

	if (skip_text(p, end, "..."))
		return true;
	if (!skip_text(&q, end, "-"))
		skip_text(&q, end, "+");
	if (!skip_text(&q, end, "?"))
		return false;
	*p = q;
	return true;
}

static bool skip_comma(const char **p, const char *end)
{
	const char *q = *p;

	skip_blank(&q, end);
	if (!skip_text(&q, end, ","))
		return false;
	skip_blank(&q, end);
	*p = q;
	return true;
}

/* Moves over "?, ?, ?" and returns how many there are. */
static size_t skip_values(const char **p, const char *end)
{
	const char *q;
	size_t count = 0;

	for (q = *p; skip_value(&q, end); count++) {
		*p = q;
		if (!skip_comma(&q, end))
			return count + 1;
	}
	return count;
}

/* Moves over "(?, ?)" and returns how many values it has; 0: it is none. "(...)" counts as two. */
static size_t skip_row(const char **p, const char *end)
{
	const char *q = *p;
	size_t count;
	bool shortened;

	if (!skip_text(&q, end, "("))
		return 0;
	skip_blank(&q, end);
	shortened = end - q >= 3 && memcmp(q, "...", 3) == 0;
	count = skip_values(&q, end);
	skip_blank(&q, end);
	if (count == 0 || !skip_text(&q, end, ")"))
		return 0;
	*p = q;
	return count + shortened;
}

/* Writes "(?, ?), (?, ?)" as "(...), ..."; false: there are no such rows. */
static bool shorten_rows(const char **p, const char *end, struct text *out)
{
	size_t values = skip_row(p, end);
	bool more = false;
	const char *q = *p;

	if (values == 0)
		return false;
	while (skip_comma(&q, end) && (skip_row(&q, end) > 0 || skip_text(&q, end, "..."))) {
		*p = q;
		more = true;
	}
	text_add(out, values > 1 ? "(...)" : "(?)");
	if (more)
		text_add(out, ", ...");
	return true;
}

/* The length of a quoted name, which is copied as it is; 1 for any other byte. */
static size_t name_len(enum sql_dialect dialect, const char *p, const char *end)
{
	char quote = dialect == SQL_DIALECT_MYSQL ? '`' : '"';
	const char *close = *p == quote ? memchr(p + 1, quote, (size_t)(end - p - 1)) : NULL;

	return close ? (size_t)(close + 1 - p) : 1;
}

static void shorten_lists(enum sql_dialect dialect, const char *text, size_t len, struct text *out)
{
	const char *p = text, *end = text + len;

	while (p < end) {
		size_t values, n;

		if (*p == '(' && shorten_rows(&p, end, out))
			continue;
		if (*p == '?' && (values = skip_values(&p, end)) > 0) {
			text_add(out, values > 1 ? "?, ..." : "?");
			continue;
		}
		n = name_len(dialect, p, end);
		/*
		 * Byte by byte, so that a text that does not fit is filled up to the end of the
		 * room.
		 */
		for (; n > 0; n--)
			text_add_bytes(out, p++, 1);
	}
}

void sql_redact(enum sql_dialect dialect, const char *text, size_t len, bool cut, struct text *out)
{
	uint8_t classes[SQL_REDACT_BYTES_MAX];
	char code[SQL_REDACT_BYTES_MAX];
	size_t code_len;

	if (len > sizeof(classes)) {
		len = sizeof(classes);
		cut = true;
	}
	mark_all(dialect, text, len, cut, classes);
	code_len = write_code(dialect, text, len, classes, code);
	shorten_lists(dialect, code, code_len, out);
}
