/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sql/helper/lexer.h"

#include <string.h>

struct lexer {
	const char *s;
	size_t len;
	size_t pos;
	uint8_t *classes;
	unsigned int rules;
	bool mysql;
	bool unterminated;
	bool stray_backslash;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Both databases take every byte beyond ASCII for a letter. */
static bool is_word(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
		c == '$' || (unsigned char)c >= 0x80;
}

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The byte at pos; NUL after the end. */
static char at(const struct lexer *l, size_t pos)
{
	return pos < l->len ? l->s[pos] : '\0';
}

static bool starts(const struct lexer *l, size_t pos, const char *with)
{
	size_t n = strlen(with);

	return l->len - pos >= n && memcmp(l->s + pos, with, n) == 0;
}

/* Gives the text up to end this class, and moves on to there. */
static void take(struct lexer *l, size_t end, enum lexer_class class)
{
	for (; l->pos < end; l->pos++)
		if (l->classes && l->classes[l->pos] < class)
			l->classes[l->pos] = (uint8_t) class;
}

/* The position after the quote that ends the text that begins at from. */
static size_t quoted_end(struct lexer *l, size_t from, char quote, bool escape)
{
	for (size_t i = from; i < l->len; i++) {
		if (escape && l->s[i] == '\\')
			i++;
		else if (l->s[i] != quote)
			continue;
		else if (at(l, i + 1) == quote)
			i++;
		else
			return i + 1;
	}
	l->unterminated = true;
	return l->len;
}

static size_t line_end(const struct lexer *l, size_t from)
{
	while (from < l->len && l->s[from] != '\n' && (l->mysql || l->s[from] != '\r'))
		from++;
	return from;
}

/*
 * In PostgreSQL 'a', a newline and 'b' are one string; comments may be in between. Returns where
 * the next part begins, or 0. All parts have the escapes of the first one.
 */
static size_t next_part(const struct lexer *l, size_t from)
{
	bool newline = false;
	size_t i = from;

	while (i < l->len) {
		if (is_blank(l->s[i])) {
			newline |= l->s[i] == '\n' || l->s[i] == '\r';
			i++;
		} else if (starts(l, i, "--")) {
			i = line_end(l, i);
		} else {
			break;
		}
	}
	return newline && at(l, i) == '\'' ? i + 1 : 0;
}

/* Takes a string whose opening quote is at `quote`, with the prefix before it. */
static void take_string(struct lexer *l, size_t quote, bool escape)
{
	size_t end = quoted_end(l, quote + 1, l->s[quote], escape), next;

	while (!l->mysql && (next = next_part(l, end)) > 0)
		end = quoted_end(l, next, '\'', escape);
	take(l, end, LEXER_LITERAL);
}

static void take_identifier(struct lexer *l, char quote)
{
	size_t end = quoted_end(l, l->pos + 1, quote, false);

	/* An identifier without an end may be anything. */
	take(l, end, l->unterminated ? LEXER_LITERAL : LEXER_CODE);
}

/* Takes a number with everything that may belong to it: 0x1F, 1e-5, 1_000, 1abc. */
static void take_number(struct lexer *l)
{
	size_t i = l->pos;
	bool hex = at(l, i) == '0' && (at(l, i + 1) | 0x20) == 'x';

	while (i < l->len) {
		bool sign = l->s[i] == '+' || l->s[i] == '-';
		bool exponent = sign && i > l->pos && (l->s[i - 1] | 0x20) == 'e' && !hex &&
			is_digit(at(l, i + 1));

		if (!is_word(l->s[i]) && l->s[i] != '.' && !exponent)
			break;
		/* A $ may begin a string, so it is left. */
		if (l->s[i] == '$' && !l->mysql)
			break;
		i++;
	}
	take(l, i, LEXER_LITERAL);
}

/* Comments are nested in PostgreSQL. In MySQL the first end is the end. */
static void take_comment(struct lexer *l)
{
	size_t i = l->pos + 2;
	int level = 1;

	while (i < l->len && level > 0) {
		if (starts(l, i, "*/")) {
			level--;
			i += 2;
		} else if (!l->mysql && starts(l, i, "/*")) {
			level++;
			i += 2;
		} else {
			i++;
		}
	}
	l->unterminated |= level > 0;
	take(l, i, LEXER_COMMENT);
}

static void take_next(struct lexer *l);

static bool has_within(const struct lexer *l, size_t from, size_t end, const char *what)
{
	return memmem(l->s + from, end - from, what, strlen(what)) != NULL;
}

/*
 * Takes a comment of MySQL that some versions execute as code. Which version the server has does
 * not matter if the quotes in it are balanced. If they are not, or if another comment may begin in
 * it (as code, that comment would hide its end), everything from here on is taken for a literal.
 */
static bool take_version(struct lexer *l)
{
	size_t start = l->pos + 2 + (at(l, l->pos + 2) == 'M'), len = l->len, end;
	const char *close;

	if (!l->mysql || at(l, start) != '!')
		return false;
	do
		start++;
	while (is_digit(at(l, start)));
	close = memmem(l->s + start, len - start, "*/", 2);
	end = close ? (size_t)(close - l->s) : len;
	if (!close || has_within(l, start, end, "/*") || has_within(l, start, end, "--") ||
		has_within(l, start, end, "#")) {
		take(l, len, LEXER_LITERAL);
		return true;
	}
	take(l, start, LEXER_COMMENT);
	l->len = end;
	while (l->pos < end)
		take_next(l);
	l->len = len;
	if (l->unterminated)
		take(l, len, LEXER_LITERAL);
	else
		take(l, end + 2, LEXER_COMMENT);
	l->unterminated = false;
	return true;
}

static bool take_any_comment(struct lexer *l)
{
	unsigned char behind = (unsigned char)at(l, l->pos + 2);
	/* In MySQL "--" begins a comment only before a blank or a control character. */
	bool dashes = starts(l, l->pos, "--") && (!l->mysql || behind <= ' ' || behind == 0x7f);

	if (dashes || (l->mysql && at(l, l->pos) == '#')) {
		take(l, line_end(l, l->pos), LEXER_COMMENT);
	} else if (starts(l, l->pos, "/*")) {
		if (!take_version(l))
			take_comment(l);
	} else {
		return false;
	}
	return true;
}

/* Takes a parameter of PostgreSQL: $1. A $ after it does not belong to it. */
static void take_parameter(struct lexer *l)
{
	size_t end = l->pos + 1;

	while (is_digit(at(l, end)))
		end++;
	take(l, end, LEXER_CODE);
}

/* Takes a string that begins with $tag$ or $$. False: it is something else. */
static bool take_dollar(struct lexer *l)
{
	size_t tag_end = l->pos + 1, i, tag_len;

	if (!(l->rules & LEXER_DOLLAR_QUOTES) || is_digit(at(l, tag_end)))
		return false;
	while (tag_end < l->len && is_word(l->s[tag_end]) && l->s[tag_end] != '$')
		tag_end++;
	if (at(l, tag_end) != '$')
		return false;
	tag_len = tag_end + 1 - l->pos;
	for (i = tag_end + 1; i + tag_len <= l->len; i++) {
		if (memcmp(l->s + i, l->s + l->pos, tag_len) == 0) {
			take(l, i + tag_len, LEXER_LITERAL);
			return true;
		}
	}
	l->unterminated = true;
	take(l, l->len, LEXER_LITERAL);
	return true;
}

/* Takes a name or keyword, or a string with a prefix: N'', X'', U&''. */
static void take_word(struct lexer *l)
{
	size_t end = l->pos + 1;
	char first = l->s[l->pos] | 0x20;

	while (end < l->len && is_word(l->s[end]))
		end++;
	if (end - l->pos == 1 && !l->mysql && first == 'u' && starts(l, end, "&'")) {
		take_string(l, end + 1, l->rules & LEXER_ESCAPE_IN_SINGLE);
	} else if (end - l->pos == 1 && strchr("nxbe", first) && at(l, end) == '\'') {
		bool always = !l->mysql && first == 'e';

		take_string(l, end, always || (l->rules & LEXER_ESCAPE_IN_SINGLE));
	} else {
		take(l, end, LEXER_CODE);
	}
}

static void take_next(struct lexer *l)
{
	char c = l->s[l->pos];
	bool after_word = l->pos > 0 && is_word(l->s[l->pos - 1]);

	if (c == '\'') {
		take_string(l, l->pos, l->rules & LEXER_ESCAPE_IN_SINGLE);
	} else if (c == '"' && l->mysql) {
		take_string(l, l->pos, l->rules & LEXER_ESCAPE_IN_DOUBLE);
	} else if (c == '"' || (c == '`' && l->mysql)) {
		take_identifier(l, c);
	} else if (take_any_comment(l)) {
		return;
	} else if (is_digit(c) || (c == '.' && !after_word && is_digit(at(l, l->pos + 1)))) {
		take_number(l);
	} else if (c == '$' && take_dollar(l)) {
		return;
	} else if (c == '$' && !l->mysql) {
		take_parameter(l);
	} else if (is_word(c)) {
		take_word(l);
	} else {
		/* In MySQL \N is NULL; the N may have been cut off. */
		bool null = l->mysql && (at(l, l->pos + 1) == 'N' || l->pos + 1 == l->len);

		l->stray_backslash |= c == '\\' && !null;
		take(l, l->pos + 1, LEXER_CODE);
	}
}

bool lexer_mark(enum sql_dialect dialect, unsigned int rules, const char *text, size_t len,
	bool cut, uint8_t *classes)
{
	struct lexer l = {
		.s = text,
		.len = len,
		.classes = classes,
		.rules = rules,
		.mysql = dialect == SQL_DIALECT_MYSQL,
	};

	while (l.pos < len)
		take_next(&l);
	return !l.stray_backslash && (cut || !l.unterminated);
}
