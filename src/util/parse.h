/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads numbers and words out of /proc buffers, and the values with units that people write.
 * Used by every room; depends on no room.
 * Never reads past `end`, never allocates, never guesses a unit.
 */
#ifndef IOSTALL_UTIL_PARSE_H
#define IOSTALL_UTIL_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A cursor over text that need not be terminated. */
struct cursor {
	const char *p;
	const char *end;
};

/*
 * Each skips leading blanks (not newlines) and leaves the cursor behind what it took; 0 or -EINVAL.
 */
int cursor_u64(struct cursor *c, uint64_t *ret_value); /* decimal; -ERANGE on overflow */
int cursor_i64(struct cursor *c, int64_t *ret_value);  /* decimal with sign */
int cursor_hex(struct cursor *c, uint64_t *ret_value); /* with or without 0x */
int cursor_word(struct cursor *c, const char **ret_word,
	size_t *ret_len); /* up to a blank or newline */

/* Whether what cursor_word() took is `what`. */
bool word_is(const char *word, size_t len, const char *what);

/* The next line without its newline; false at the end. */
bool cursor_line(struct cursor *c, struct cursor *ret_line);

/* Passes over the text; false: something else is there. */
bool cursor_take(struct cursor *c, const char *text);

/*
 * Whole strings as a person writes them. A duration needs a unit (ns us ms s m h) unless it is 0, a
 * size may have K, M or G (1024), a percentage may end in %. A number with a unit may have up to
 * nine decimal places, like 0.5s or 1.5M. 0, -EINVAL (not such a value) or -ERANGE (does not fit).
 */
int parse_unsigned(const char *s, uint64_t *ret_value);
int parse_duration_ns(const char *s, uint64_t *ret_ns);
int parse_size_bytes(const char *s, uint64_t *ret_bytes);
int parse_real(const char *s, double *ret_value); /* finite, >= 0, optional % */
int parse_bool(const char *s, bool *ret_value);	  /* yes no true false on off 1 0 */

/*
 * Undoes the escapes in a path of mountinfo, which has blanks and backslashes as \ooo. False when
 * dst has no room; then dst is "".
 */
bool parse_unescape_octal(const char *s, size_t len, char *dst, size_t size);

#endif
