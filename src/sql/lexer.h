/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Says of each byte of a statement whether it is code, comment or part of a literal.
 * Used by redact.c.
 * Never believes that a statement is whole or well formed: what does not end is a literal to the
 * end.
 */
#ifndef IOSTALL_SQL_LEXER_H
#define IOSTALL_SQL_LEXER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sql/redact.h"

/* Two readings of one text are combined by taking the larger of the two. */
enum lexer_class {
	LEXER_CODE,
	LEXER_COMMENT,
	LEXER_LITERAL,
};

/* What depends on settings of a session that nobody else can ask for. */
enum lexer_rule {
	/* \' is a quote in '': not with MySQL's NO_BACKSLASH_ESCAPES, and usually not in PostgreSQL
	 */
	LEXER_ESCAPE_IN_SINGLE = 1 << 0,
	/* \" is a quote in "": not with ANSI_QUOTES either, then it is an identifier */
	LEXER_ESCAPE_IN_DOUBLE = 1 << 1,
	/* $tag$...$tag$ is a string: always in PostgreSQL, and in MySQL since 9.0 */
	LEXER_DOLLAR_QUOTES = 1 << 2,
};

/*
 * Raises the classes (len of them, or NULL: only look). False when the text cannot be a whole
 * statement that is read with these rules: a literal does not end (cut: that is no reason), or a
 * backslash stands in code.
 */
bool lexer_mark(enum sql_dialect dialect, unsigned int rules, const char *text, size_t len,
	bool cut, uint8_t *classes);

#endif
