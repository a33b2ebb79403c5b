/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/scan.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/parse.h"

/* Our own records nest four deep; what is skipped may be from a later version. */
#define DEPTH_MAX 16
/* The longest double in two decimals has 312 bytes. */
#define NUMBER_SIZE 330

static void scan_blanks(struct scan *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
		s->p++;
}

static bool scan_take(struct scan *s, char c)
{
	if (s->p >= s->end || *s->p != c)
		return false;
	s->p++;
	return true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

int scan_peek(struct scan *s)
{
	scan_blanks(s);
	if (s->p >= s->end)
		return -EINVAL;
	return is_digit(*s->p) ? '0' : (unsigned char)*s->p;
}

int scan_open(struct scan *s, char bracket)
{
	scan_blanks(s);
	return scan_take(s, bracket) ? 0 : -EINVAL;
}

int scan_next(struct scan *s, char open_bracket, bool *first)
{
	scan_blanks(s);
	if (scan_take(s, open_bracket == '{' ? '}' : ']'))
		return 0;
	if (!*first && !scan_take(s, ','))
		return -EINVAL;
	*first = false;
	return 1;
}

/* Where the unescaped bytes go; what does not fit is remembered, the scan goes on. */
struct sink_bytes {
	char *dst;
	size_t size;
	size_t len;
	bool overflow;
};

static void put_byte(struct sink_bytes *out, unsigned char byte)
{
	if (!out->dst)
		return;
	if (out->len + 1 >= out->size)
		out->overflow = true;
	else
		out->dst[out->len++] = (char)byte;
}

static void put_codepoint(struct sink_bytes *out, uint32_t cp)
{
	if (cp == 0xfffd) {
		put_byte(out, 0xff);
	} else if (cp < 0x80) {
		put_byte(out, (unsigned char)cp);
	} else if (cp < 0x800) {
		put_byte(out, (unsigned char)(0xc0 | cp >> 6));
		put_byte(out, (unsigned char)(0x80 | (cp & 0x3f)));
	} else if (cp < 0x10000) {
		put_byte(out, (unsigned char)(0xe0 | cp >> 12));
		put_byte(out, (unsigned char)(0x80 | (cp >> 6 & 0x3f)));
		put_byte(out, (unsigned char)(0x80 | (cp & 0x3f)));
	} else {
		put_byte(out, (unsigned char)(0xf0 | cp >> 18));
		put_byte(out, (unsigned char)(0x80 | (cp >> 12 & 0x3f)));
		put_byte(out, (unsigned char)(0x80 | (cp >> 6 & 0x3f)));
		put_byte(out, (unsigned char)(0x80 | (cp & 0x3f)));
	}
}

/* Four hexadecimal digits. */
static int scan_hex4(struct scan *s, uint32_t *ret_value)
{
	struct cursor c = { s->p, s->p + 4 };
	uint64_t value;

	/* cursor_hex() itself takes blanks and 0x. */
	if (s->end - s->p < 4 || *s->p == ' ' || *s->p == '\t' || s->p[1] == 'x' || s->p[1] == 'X')
		return -EINVAL;
	if (cursor_hex(&c, &value) < 0 || c.p != c.end)
		return -EINVAL;
	s->p = c.p;
	*ret_value = (uint32_t)value;
	return 0;
}

static int scan_unicode_escape(struct scan *s, uint32_t *ret_cp)
{
	uint32_t high, low;

	if (scan_hex4(s, &high) < 0 || high == 0 || (high >= 0xdc00 && high <= 0xdfff))
		return -EINVAL;
	if (high < 0xd800 || high > 0xdbff) {
		*ret_cp = high;
		return 0;
	}
	if (!scan_take(s, '\\') || !scan_take(s, 'u') || scan_hex4(s, &low) < 0 || low < 0xdc00 ||
		low > 0xdfff)
		return -EINVAL;
	*ret_cp = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
	return 0;
}

static int scan_escape(struct scan *s, struct sink_bytes *out)
{
	static const char names[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
	const char *name;
	uint32_t cp;

	if (s->p >= s->end || *s->p == '\0')
		return -EINVAL;
	if (*s->p == 'u') {
		s->p++;
		if (scan_unicode_escape(s, &cp) < 0)
			return -EINVAL;
		put_codepoint(out, cp);
		return 0;
	}
	name = strchr(names, *s->p++);
	if (!name)
		return -EINVAL;
	put_byte(out, (unsigned char)bytes[name - names]);
	return 0;
}

/* One character of several bytes, RFC 3629: no overlong forms, no surrogates. */
static int scan_utf8(struct scan *s, struct sink_bytes *out)
{
	static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned char lead = (unsigned char)*s->p;
	ptrdiff_t n = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
	uint32_t cp;

	if (lead < 0xc0 || lead > 0xf7 || s->end - s->p < n)
		return -EINVAL;
	cp = lead & (0xffU >> (n + 1));
	for (ptrdiff_t i = 1; i < n; i++) {
		unsigned char c = (unsigned char)s->p[i];

		if ((c & 0xc0) != 0x80)
			return -EINVAL;
		cp = cp << 6 | (c & 0x3f);
	}
	if (cp < least[n] || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
		return -EINVAL;
	put_codepoint(out, cp);
	s->p += n;
	return 0;
}

static int scan_string_bytes(struct scan *s, struct sink_bytes *out)
{
	if (scan_open(s, '"') < 0)
		return -EINVAL;
	while (s->p < s->end) {
		unsigned char c = (unsigned char)*s->p;
		int r = 0;

		if (c == '"') {
			s->p++;
			return 0;
		}
		if (c < 0x20)
			return -EINVAL;
		if (c == '\\') {
			s->p++;
			r = scan_escape(s, out);
		} else if (c >= 0x80) {
			r = scan_utf8(s, out);
		} else {
			put_byte(out, c);
			s->p++;
		}
		if (r < 0)
			return r;
	}
	return -EINVAL;
}

int scan_string(struct scan *s, char *dst, size_t size)
{
	struct sink_bytes out = { .dst = dst, .size = size };

	if (scan_string_bytes(s, &out) < 0 || out.overflow)
		return -EINVAL;
	if (dst)
		dst[out.len] = '\0';
	return 0;
}

int scan_string_cut(struct scan *s, char *dst, size_t size)
{
	struct sink_bytes out = { .dst = dst, .size = size };

	if (scan_string_bytes(s, &out) < 0)
		return -EINVAL;
	dst[out.len] = '\0';
	return 0;
}

int scan_key(struct scan *s, char *key, size_t size)
{
	struct sink_bytes out = { .dst = key, .size = size };

	if (scan_string_bytes(s, &out) < 0)
		return -EINVAL;
	key[out.overflow ? 0 : out.len] = '\0';
	return scan_open(s, ':');
}

static bool scan_digits(struct scan *s)
{
	const char *first = s->p;

	while (s->p < s->end && is_digit(*s->p))
		s->p++;
	return s->p > first;
}

/* Checks the grammar and gives the bytes of a number. */
static int scan_number(struct scan *s, struct cursor *ret_number)
{
	scan_blanks(s);
	ret_number->p = s->p;
	scan_take(s, '-');
	if (!scan_take(s, '0') && !scan_digits(s))
		return -EINVAL;
	if (scan_take(s, '.') && !scan_digits(s))
		return -EINVAL;
	if (s->p < s->end && (*s->p == 'e' || *s->p == 'E')) {
		s->p++;
		if (!scan_take(s, '+'))
			scan_take(s, '-');
		if (!scan_digits(s))
			return -EINVAL;
	}
	/* "01" or "1x". */
	if (s->p < s->end && (is_digit(*s->p) || (*s->p >= 'a' && *s->p <= 'z')))
		return -EINVAL;
	ret_number->end = s->p;
	return 0;
}

int scan_u64(struct scan *s, uint64_t *ret_value)
{
	struct cursor c;

	if (scan_number(s, &c) < 0 || cursor_u64(&c, ret_value) < 0 || c.p != c.end)
		return -EINVAL;
	return 0;
}

int scan_i64(struct scan *s, int64_t *ret_value)
{
	struct cursor c;

	if (scan_number(s, &c) < 0 || cursor_i64(&c, ret_value) < 0 || c.p != c.end)
		return -EINVAL;
	return 0;
}

int scan_real(struct scan *s, double *ret_value)
{
	char number[NUMBER_SIZE];
	struct cursor c;
	double value;
	size_t len;

	if (scan_number(s, &c) < 0)
		return -EINVAL;
	len = (size_t)(c.end - c.p);
	if (len >= sizeof(number))
		return -EINVAL;
	memcpy(number, c.p, len);
	number[len] = '\0';
	value = strtod(number, NULL);
	if (!isfinite(value))
		return -EINVAL;
	*ret_value = value;
	return 0;
}

static int scan_word(struct scan *s, const char *word)
{
	size_t len = strlen(word);

	scan_blanks(s);
	if ((size_t)(s->end - s->p) < len || memcmp(s->p, word, len) != 0)
		return -EINVAL;
	s->p += len;
	return 0;
}

int scan_bool(struct scan *s, bool *ret_value)
{
	bool value = scan_peek(s) == 't';

	if (scan_word(s, value ? "true" : "false") < 0)
		return -EINVAL;
	*ret_value = value;
	return 0;
}

int scan_null(struct scan *s)
{
	return scan_word(s, "null");
}

static int scan_skip_deep(struct scan *s, unsigned int depth)
{
	int kind = scan_peek(s), r;
	struct cursor number;
	bool first = true, value;
	char key[1];

	switch (kind) {
	case '{':
	case '[':
		if (depth == 0 || scan_open(s, (char)kind) < 0)
			return -EINVAL;
		while ((r = scan_next(s, (char)kind, &first)) > 0) {
			if (kind == '{' && scan_key(s, key, sizeof(key)) < 0)
				return -EINVAL;
			r = scan_skip_deep(s, depth - 1);
			if (r < 0)
				return r;
		}
		return r;
	case '"':
		return scan_string(s, NULL, 0);
	case 't':
	case 'f':
		return scan_bool(s, &value);
	case 'n':
		return scan_null(s);
	default:
		return scan_number(s, &number);
	}
}

int scan_skip(struct scan *s)
{
	return scan_skip_deep(s, DEPTH_MAX);
}

bool scan_is_at_end(struct scan *s)
{
	scan_blanks(s);
	return s->p == s->end;
}
