/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Text in a buffer of fixed size: append, escape, and JSON objects built in place.
 * Used by every room; depends on no room.
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
/* Appends "1 stall" or "2 stalls". */
void text_add_count(struct text *t, uint64_t count, const char *one, const char *many);
void text_vaddf(struct text *t, const char *format, va_list ap)
	__attribute__((format(printf, 2, 0)));

/*
 * Appends bytes of unknown origin so that they are safe on a terminal. Valid UTF-8 stays. Control
 * characters (C0, DEL, C1), line and paragraph separators, bidirectional overrides, backslashes and
 * bytes that are not UTF-8 become \xNN for each byte, so the original can be read back.
 */
void text_add_printable(struct text *t, const char *s, size_t len);

/*
 * The same for the text of an HTML element, or of an attribute in double quotes: nothing of it is
 * markup. Backslashes stay.
 */
void text_add_html(struct text *t, const char *s);

/*
 * The body of a JSON string without its quotes: control characters (C0, DEL, C1) become \u00NN,
 * each byte that is not part of valid UTF-8 becomes U+FFFD.
 */
void text_add_json_escaped(struct text *t, const char *s, size_t len);

/*
 * Appends len bytes that should be JSON so that they are safe on a terminal: inside strings all
 * that text_add_printable() replaces becomes \uNNNN (bytes that are not UTF-8: U+FFFD), outside of
 * them a blank or a question mark. Valid JSON keeps its meaning. The bytes are the whole of a line.
 */
void text_add_json_printable(struct text *t, const char *s, size_t len);

/* Makes each byte that is not part of valid UTF-8 0xff, and each U+FFFD, which says the same. */
void text_settle_utf8(char *s);

/*
 * JSON is written in place. Whether a comma is needed shows in the last byte written, so there is
 * no state besides the text. A NULL key writes an array element.
 */
void text_json_open(struct text *t, const char *key, char bracket); /* '{' or '[' */
void text_json_close(struct text *t, char bracket);		    /* '}' or ']' */
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

/*
 * Copies the end of len bytes behind "..." when they do not fit: of a path the end says the most.
 * Always terminated.
 */
void text_copy_end(char *dst, size_t size, const char *s, size_t len);

#endif
