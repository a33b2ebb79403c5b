/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Text in a buffer of fixed size: append, escape, and JSON objects built in place.
 * Used by every room; depends on nothing above.
 * Never allocates; text that does not fit sets `overflow` and leaves the buffer terminated.
 */
#ifndef IOSTALL_UTIL_TEXT_H
#define IOSTALL_UTIL_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
	char *buf;
	size_t size; /* of buf, the terminating NUL included */
	size_t len;
	bool overflow;
};

#define TEXT_ON(array) ((struct text){ .buf = (array), .size = sizeof(array) })

void text_reset(struct text *t);
void text_add(struct text *t, const char *s);
void text_add_bytes(struct text *t, const char *s, size_t len);
void text_addf(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "1 stall", "2 stalls" */
void text_add_count(struct text *t, uint64_t count, const char *one, const char *many);
void text_vaddf(struct text *t, const char *format, va_list ap)
	__attribute__((format(printf, 2, 0)));

/*
 * Appends bytes of unknown origin for a person's eyes: valid UTF-8 stays, control characters (C0,
 * DEL, C1), line and paragraph separators, bidirectional overrides, backslashes and bytes that are
 * not UTF-8 become \xNN, byte by byte, so the original can be read back.
 */
void text_add_printable(struct text *t, const char *s, size_t len);

/*
 * The body of a JSON string without its quotes: control characters (C0, DEL, C1) become \u00NN,
 * each byte that is not part of valid UTF-8 becomes U+FFFD.
 */
void text_add_json_escaped(struct text *t, const char *s, size_t len);

/*
 * JSON written in place. Members are separated by looking at the last byte written, so there is no
 * state beside the text. A NULL key writes an array element.
 */
void text_json_open(struct text *t, const char *key, char bracket); /* '{' or '[' */
void text_json_close(struct text *t, char bracket);                 /* '}' or ']' */
void text_json_string(struct text *t, const char *key, const char *value);
void text_json_string_bytes(struct text *t, const char *key, const char *value, size_t len);
void text_json_u64(struct text *t, const char *key, uint64_t value);
void text_json_i64(struct text *t, const char *key, int64_t value);
void text_json_bool(struct text *t, const char *key, bool value);
void text_json_null(struct text *t, const char *key);
/* Two decimals; not-a-number and infinities are written as null. */
void text_json_real(struct text *t, const char *key, double value);

/* Copies s into an array of size bytes, truncated if need be, always terminated. */
void text_copy(char *dst, size_t size, const char *s);

#endif
