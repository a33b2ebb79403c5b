/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * JSON text read in place, value by value, as RFC 8259 has it.
 * Used by the decoder only.
 * Never allocates, never reads past `end`, never takes invalid UTF-8 or a NUL.
 *
 * Not jansson, which the other commands use: its integers end at 2^63, inode and cgroup numbers at
 * 2^64, and the writer thread looks at records too, where nothing is allocated.
 */
#ifndef IOSTALL_RECORD_SCAN_H
#define IOSTALL_RECORD_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct scan {
	const char *p;
	const char *end;
};

/*
 * All return -EINVAL for what is not JSON or not the asked-for kind; the scan is then of no more
 * use.
 */

/* The first byte of the next value: one of { [ " - 0 t f n, where 0 stands for every digit. */
int scan_peek(struct scan *s);

/* Takes '{' or '['. */
int scan_open(struct scan *s, char bracket);
/* 1 when another member or element follows, 0 when it took the closing bracket. */
int scan_next(struct scan *s, char open_bracket, bool *first);
/* A member's key and the colon; a key that does not fit is given as "". */
int scan_key(struct scan *s, char *key, size_t size);

/* Unescapes into dst, NUL-terminated, with U+FFFD as the byte 0xff. A NULL dst skips. */
int scan_string(struct scan *s, char *dst, size_t size);
/* The same, but what does not fit is cut off. */
int scan_string_cut(struct scan *s, char *dst, size_t size);
int scan_u64(struct scan *s, uint64_t *ret_value);
int scan_i64(struct scan *s, int64_t *ret_value);
int scan_real(struct scan *s, double *ret_value);
int scan_bool(struct scan *s, bool *ret_value);
int scan_null(struct scan *s);

/* Any value. */
int scan_skip(struct scan *s);

/* Whether nothing but blanks is left. */
bool scan_is_at_end(struct scan *s);

#endif
