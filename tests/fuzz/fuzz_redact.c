/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as a statement: what is left is bounded, without strings, numbers and control
 * characters. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sql/helper/redact.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

/*
 * Nothing begins a string, and outside quoted names no digit begins a word. Where a text can be
 * read in several ways, what is a literal in one may have taken one end of a name of all others.
 */
static void check_text(enum sql_dialect dialect, bool is_ambiguous, const struct text *out)
{
	char name_quote = dialect == SQL_DIALECT_MYSQL ? '`' : '"';
	bool in_name = false;

	check(!out->overflow && strlen(out->buf) == out->len);
	for (size_t i = 0; i < out->len; i++) {
		char c = out->buf[i];

		check((unsigned char)c >= ' ' && c != 0x7f && c != '\'');
		check(dialect != SQL_DIALECT_MYSQL || c != '"');
		in_name ^= c == name_quote;
		if (!is_ambiguous && !in_name && c >= '0' && c <= '9')
			check(i > 0 && (is_word(out->buf[i - 1])));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char buf[SQL_REDACTED_SIZE], again_buf[SQL_REDACTED_SIZE];
	struct text out = TEXT_ON(buf), again = TEXT_ON(again_buf);
	enum sql_dialect dialect;
	bool is_ambiguous;

	if (size < 1)
		return 0;
	is_ambiguous = memchr(data, '\\', size);
	dialect = data[0] & 1 ? SQL_DIALECT_MYSQL : SQL_DIALECT_POSTGRESQL;
	text_reset(&out);
	sql_redact(dialect, (const char *)data + 1, size - 1, data[0] & 2, &out);
	check_text(dialect, is_ambiguous, &out);
	/* What can be read in several ways may lose more when it is read again: "--" is code or
	 * comment. */
	if (strstr(buf, "--") || is_ambiguous || memchr(data, '$', size) ||
		size > SQL_REDACT_BYTES_MAX / 3)
		return 0;
	text_reset(&again);
	sql_redact(dialect, buf, out.len, false, &again);
	check(strcmp(buf, again_buf) == 0);
	return 0;
}
