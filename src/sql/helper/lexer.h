/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decides for each byte of a statement whether it is code, comment or part of a literal.
 * Used by redact.c.
 * Never assumes that a statement is whole or well formed: a quote without an end makes everything
 * after it a literal.
 */
#ifndef IOSTALL_SQL_LEXER_H
#define IOSTALL_SQL_LEXER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sql_dialect {
	SQL_DIALECT_MYSQL, /* and MariaDB */
	SQL_DIALECT_POSTGRESQL,
};

/* When a text can be read in two ways, each byte gets the larger of its two classes. */
enum lexer_class {
	LEXER_CODE,
	LEXER_COMMENT,
	LEXER_LITERAL,
};

/* Rules that depend on settings of the session, which other sessions cannot see. */
enum lexer_rule {
	/* \' is a quote in '': not with NO_BACKSLASH_ESCAPES in MySQL, usually not in PostgreSQL */
	LEXER_ESCAPE_IN_SINGLE = 1 << 0,
	/* \" is a quote in "": not with ANSI_QUOTES either, then it is an identifier */
	LEXER_ESCAPE_IN_DOUBLE = 1 << 1,
	/* $tag$...$tag$ is a string: always in PostgreSQL, and in MySQL since 9.0 */
	LEXER_DOLLAR_QUOTES = 1 << 2,
};

/*
 * Raises the class of each byte; with classes NULL it only checks. False when the text cannot be a
 * whole statement under these rules: a literal does not end (allowed when the text is cut), or
 * there is a backslash in code.
 */
bool lexer_mark(enum sql_dialect dialect, unsigned int rules, const char *text, size_t len,
	bool cut, uint8_t *classes);

#endif
