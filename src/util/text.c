/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void text_reset(struct text *t)
{
	t->len = 0;
	t->overflow = false;
	t->buf[0] = '\0';
}

void text_add_bytes(struct text *t, const char *s, size_t len)
{
	if (t->overflow || len >= t->size - t->len) {
		t->overflow = true;
		return;
	}
	memcpy(t->buf + t->len, s, len);
	t->len += len;
	t->buf[t->len] = '\0';
}

void text_add(struct text *t, const char *s)
{
	text_add_bytes(t, s, strlen(s));
}

void text_vaddf(struct text *t, const char *format, va_list ap)
{
	size_t room = t->size - t->len;
	int n;

	if (t->overflow)
		return;
	n = vsnprintf(t->buf + t->len, room, format, ap);
	if (n < 0 || (size_t)n >= room) {
		t->buf[t->len] = '\0';
		t->overflow = true;
		return;
	}
	t->len += (size_t)n;
}

void text_addf(struct text *t, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	text_vaddf(t, format, ap);
	va_end(ap);
}

void text_add_count(struct text *t, uint64_t count, const char *one, const char *many)
{
	text_addf(t, "%" PRIu64 " %s", count, count == 1 ? one : many);
}

void text_copy(char *dst, size_t size, const char *s)
{
	size_t len = strnlen(s, size - 1);

	memcpy(dst, s, len);
	dst[len] = '\0';
}

void text_copy_end(char *dst, size_t size, const char *s, size_t len)
{
	if (len < size)
		snprintf(dst, size, "%.*s", (int)len, s);
	else
		snprintf(dst, size, "...%.*s", (int)(size - 4), s + len - (size - 4));
}

/*
 * Decodes one UTF-8 sequence (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF).
 * Returns its length in bytes, or 0 when the first byte does not begin a valid sequence.
 */
static size_t utf8_decode(const unsigned char *s, size_t len, uint32_t *ret_cp)
{
	static const uint32_t min_of_length[5] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t cp;
	size_t n;

	if (s[0] < 0x80) {
		*ret_cp = s[0];
		return 1;
	}
	if ((s[0] & 0xe0) == 0xc0) {
		n = 2;
		cp = s[0] & 0x1f;
	} else if ((s[0] & 0xf0) == 0xe0) {
		n = 3;
		cp = s[0] & 0x0f;
	} else if ((s[0] & 0xf8) == 0xf0) {
		n = 4;
		cp = s[0] & 0x07;
	} else {
		return 0;
	}
	if (n > len)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		cp = cp << 6 | (s[i] & 0x3f);
	}
	if (cp < min_of_length[n] || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
		return 0;
	*ret_cp = cp;
	return n;
}

static bool codepoint_is_control(uint32_t cp)
{
	return cp < 0x20 || (cp >= 0x7f && cp <= 0x9f);
}

/* Characters that are no control characters but change what a terminal shows, or in which order. */
static bool codepoint_is_deceptive(uint32_t cp)
{
	return (cp >= 0x200b && cp <= 0x200f) || (cp >= 0x2028 && cp <= 0x202e) ||
		(cp >= 0x2066 && cp <= 0x2069) || cp == 0xfeff;
}

void text_add_printable(struct text *t, const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s;

	while (len > 0 && !t->overflow) {
		uint32_t cp = 0;
		size_t n = utf8_decode(p, len, &cp);

		if (n > 0 && cp != '\\' && !codepoint_is_control(cp) &&
			!codepoint_is_deceptive(cp)) {
			text_add_bytes(t, (const char *)p, n);
		} else {
			n = n ? n : 1;
			for (size_t i = 0; i < n; i++)
				text_addf(t, "\\x%02x", p[i]);
		}
		p += n;
		len -= n;
	}
}

static const char *html_entity(uint32_t cp)
{
	switch (cp) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

void text_add_html(struct text *t, const char *s)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t len = strlen(s);

	while (len > 0 && !t->overflow) {
		uint32_t cp = 0;
		size_t n = utf8_decode(p, len, &cp);

		if (n > 0 && html_entity(cp))
			text_add(t, html_entity(cp));
		else if (n > 0 && cp != '\\')
			text_add_printable(t, (const char *)p, n);
		else
			text_add(t, n > 0 ? "\\" : "\xef\xbf\xbd");
		n = n ? n : 1;
		p += n;
		len -= n;
	}
}

void text_settle_utf8(char *s)
{
	size_t len = strlen(s);
	char *out = s;

	while (len > 0) {
		uint32_t cp = 0;
		size_t n = utf8_decode((const unsigned char *)s, len, &cp), taken = n ? n : 1;

		if (n == 0 || cp == 0xfffd) {
			*out++ = (char)0xff;
		} else {
			memmove(out, s, n);
			out += n;
		}
		s += taken;
		len -= taken;
	}
	*out = '\0';
}

void text_add_json_escaped(struct text *t, const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s;

	while (len > 0 && !t->overflow) {
		uint32_t cp = 0;
		size_t n = utf8_decode(p, len, &cp);

		if (n == 0) {
			text_add(t, "\\ufffd");
			n = 1;
		} else if (cp == '"' || cp == '\\') {
			text_addf(t, "\\%c", (char)cp);
		} else if (codepoint_is_control(cp)) {
			text_addf(t, "\\u%04x", cp);
		} else {
			text_add_bytes(t, (const char *)p, n);
		}
		p += n;
		len -= n;
	}
}

/* Appends one character that a terminal would not show as it is. */
static void add_json_unsafe(struct text *t, uint32_t cp, bool valid, bool in_string)
{
	if (in_string)
		text_addf(t, "\\u%04x", valid ? cp : 0xfffd);
	else
		text_add(t, valid && (cp == '\t' || cp == '\r' || cp == '\n') ? " " : "?");
}

void text_add_json_printable(struct text *t, const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s;
	bool in_string = false, escaped = false;

	while (len > 0 && !t->overflow) {
		uint32_t cp = 0;
		size_t n = utf8_decode(p, len, &cp);
		bool safe = n > 0 && !codepoint_is_control(cp) && !codepoint_is_deceptive(cp);

		if (safe)
			text_add_bytes(t, (const char *)p, n);
		else
			add_json_unsafe(t, cp, n > 0, in_string);
		if (cp == '"' && !escaped)
			in_string = !in_string;
		escaped = in_string && cp == '\\' && !escaped;
		n = n ? n : 1;
		p += n;
		len -= n;
	}
}

static void text_json_key(struct text *t, const char *key)
{
	char last = t->len ? t->buf[t->len - 1] : '{';

	if (last != '{' && last != '[')
		text_add(t, ",");
	if (key) {
		text_add(t, "\"");
		text_add(t, key);
		text_add(t, "\":");
	}
}

void text_json_open(struct text *t, const char *key, char bracket)
{
	if (t->len > 0)
		text_json_key(t, key);
	text_add_bytes(t, &bracket, 1);
}

void text_json_close(struct text *t, char bracket)
{
	text_add_bytes(t, &bracket, 1);
}

void text_json_string_bytes(struct text *t, const char *key, const char *value, size_t len)
{
	text_json_key(t, key);
	text_add(t, "\"");
	text_add_json_escaped(t, value, len);
	text_add(t, "\"");
}

void text_json_string(struct text *t, const char *key, const char *value)
{
	text_json_string_bytes(t, key, value, strlen(value));
}

void text_json_u64(struct text *t, const char *key, uint64_t value)
{
	text_json_key(t, key);
	text_addf(t, "%" PRIu64, value);
}

void text_json_i64(struct text *t, const char *key, int64_t value)
{
	text_json_key(t, key);
	text_addf(t, "%" PRId64, value);
}

void text_json_bool(struct text *t, const char *key, bool value)
{
	text_json_key(t, key);
	text_add(t, value ? "true" : "false");
}

void text_json_null(struct text *t, const char *key)
{
	text_json_key(t, key);
	text_add(t, "null");
}

void text_json_real(struct text *t, const char *key, double value)
{
	if (!isfinite(value)) {
		text_json_null(t, key);
		return;
	}
	text_json_key(t, key);
	text_addf(t, "%.2f", value);
}
