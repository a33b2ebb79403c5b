/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/parse.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/clock.h"

static void cursor_skip_blanks(struct cursor *c)
{
	while (c->p < c->end && (*c->p == ' ' || *c->p == '\t'))
		c->p++;
}

int cursor_u64(struct cursor *c, uint64_t *ret_value)
{
	uint64_t value = 0;
	const char *p;

	cursor_skip_blanks(c);
	for (p = c->p; p < c->end && *p >= '0' && *p <= '9'; p++) {
		uint64_t digit = (uint64_t)(*p - '0');

		if (value > (UINT64_MAX - digit) / 10)
			return -ERANGE;
		value = value * 10 + digit;
	}
	if (p == c->p)
		return -EINVAL;
	c->p = p;
	*ret_value = value;
	return 0;
}

int cursor_i64(struct cursor *c, int64_t *ret_value)
{
	struct cursor number = *c;
	bool negative = false;
	uint64_t value;
	int r;

	cursor_skip_blanks(&number);
	if (number.p < number.end && *number.p == '-') {
		negative = true;
		number.p++;
	}
	/* A blank between sign and digits is no number. */
	if (number.p >= number.end || *number.p < '0' || *number.p > '9')
		return -EINVAL;
	r = cursor_u64(&number, &value);
	if (r < 0)
		return r;
	if (value > (uint64_t)INT64_MAX + (negative ? 1 : 0))
		return -ERANGE;
	*ret_value = negative ? (int64_t)(0 - value) : (int64_t)value;
	c->p = number.p;
	return 0;
}

int cursor_hex(struct cursor *c, uint64_t *ret_value)
{
	uint64_t value = 0;
	const char *p, *first;

	cursor_skip_blanks(c);
	p = c->p;
	if (c->end - p > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
		p += 2;
	for (first = p; p < c->end; p++) {
		unsigned int digit;

		if (*p >= '0' && *p <= '9')
			digit = (unsigned int)(*p - '0');
		else if (*p >= 'a' && *p <= 'f')
			digit = (unsigned int)(*p - 'a') + 10;
		else if (*p >= 'A' && *p <= 'F')
			digit = (unsigned int)(*p - 'A') + 10;
		else
			break;
		if (value >> 60)
			return -ERANGE;
		value = value << 4 | digit;
	}
	if (p == first)
		return -EINVAL;
	c->p = p;
	*ret_value = value;
	return 0;
}

int cursor_word(struct cursor *c, const char **ret_word, size_t *ret_len)
{
	const char *p;

	cursor_skip_blanks(c);
	for (p = c->p; p < c->end && *p != ' ' && *p != '\t' && *p != '\n'; p++)
		;
	if (p == c->p)
		return -EINVAL;
	*ret_word = c->p;
	*ret_len = (size_t)(p - c->p);
	c->p = p;
	return 0;
}

bool cursor_take(struct cursor *c, const char *text)
{
	size_t len = strlen(text);

	if ((size_t)(c->end - c->p) < len || memcmp(c->p, text, len) != 0)
		return false;
	c->p += len;
	return true;
}

bool word_is(const char *word, size_t len, const char *what)
{
	return len == strlen(what) && memcmp(word, what, len) == 0;
}

bool cursor_line(struct cursor *c, struct cursor *ret_line)
{
	const char *newline;

	if (c->p >= c->end)
		return false;
	newline = memchr(c->p, '\n', (size_t)(c->end - c->p));
	ret_line->p = c->p;
	ret_line->end = newline ? newline : c->end;
	c->p = newline ? newline + 1 : c->end;
	return true;
}

struct unit {
	const char *name;
	uint64_t factor;
};

/* What stands after a decimal point, in billionths: more than nine digits mean nothing in ns. */
static int cursor_fraction(struct cursor *c, uint64_t *ret_billionths)
{
	uint64_t value = 0, place = NSEC_PER_SEC;
	const char *p = c->p + 1;

	for (; p < c->end && *p >= '0' && *p <= '9'; p++) {
		place /= 10;
		if (place == 0)
			return -EINVAL;
		value += (uint64_t)(*p - '0') * place;
	}
	if (p == c->p + 1)
		return -EINVAL;
	c->p = p;
	*ret_billionths = value;
	return 0;
}

/* A fraction of the smallest unit is lost, but never all of a value that is not 0. */
static int scale(uint64_t whole, uint64_t billionths, uint64_t factor, uint64_t *ret_value)
{
	unsigned __int128 value = (unsigned __int128)whole * factor +
		(unsigned __int128)billionths * factor / NSEC_PER_SEC;

	if (value > UINT64_MAX || (value == 0 && billionths > 0))
		return -ERANGE;
	*ret_value = (uint64_t)value;
	return 0;
}

static int parse_with_unit(const char *s, const struct unit *units, size_t units_count,
	bool unit_needed, uint64_t *ret_value)
{
	struct cursor c = { s, s + strlen(s) };
	uint64_t value, billionths = 0, factor = 0;
	int r;

	r = cursor_u64(&c, &value);
	if (r == 0 && units_count > 0 && *c.p == '.')
		r = cursor_fraction(&c, &billionths);
	if (r < 0)
		return r;
	while (*c.p == ' ')
		c.p++;
	if (*c.p == '\0' && (!unit_needed || value == 0))
		factor = 1;
	for (size_t i = 0; i < units_count; i++)
		if (strcmp(c.p, units[i].name) == 0)
			factor = units[i].factor;
	if (factor == 0 || (factor == 1 && billionths > 0))
		return -EINVAL;
	return scale(value, billionths, factor, ret_value);
}

int parse_unsigned(const char *s, uint64_t *ret_value)
{
	return parse_with_unit(s, NULL, 0, false, ret_value);
}

int parse_duration_ns(const char *s, uint64_t *ret_ns)
{
	static const struct unit units[] = {
		{ "ns", 1 },
		{ "us", NSEC_PER_USEC },
		{ "ms", NSEC_PER_MSEC },
		{ "s", NSEC_PER_SEC },
		{ "m", 60 * NSEC_PER_SEC },
		{ "min", 60 * NSEC_PER_SEC },
		{ "h", 3600 * NSEC_PER_SEC },
	};

	return parse_with_unit(s, units, ARRAY_SIZE(units), true, ret_ns);
}

int parse_size_bytes(const char *s, uint64_t *ret_bytes)
{
	static const struct unit units[] = {
		{ "K", 1ULL << 10 },
		{ "M", 1ULL << 20 },
		{ "G", 1ULL << 30 },
	};

	return parse_with_unit(s, units, ARRAY_SIZE(units), false, ret_bytes);
}

int parse_real(const char *s, double *ret_value)
{
	double value;
	char *end;

	/*
	 * strtod() also takes "nan", "inf", hexadecimal and leading blanks: a setting is a plain
	 * decimal.
	 */
	if (strspn(s, "0123456789.") == 0 || s[strspn(s, "0123456789.")] != s[strcspn(s, " %")])
		return -EINVAL;
	value = strtod(s, &end);
	if (end == s)
		return -EINVAL;
	while (*end == ' ')
		end++;
	if (*end == '%')
		end++;
	if (*end != '\0')
		return -EINVAL;
	if (!isfinite(value))
		return -ERANGE;
	*ret_value = value;
	return 0;
}

int parse_bool(const char *s, bool *ret_value)
{
	static const char *const yes[] = { "yes", "true", "on", "1" };
	static const char *const no[] = { "no", "false", "off", "0" };

	for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
		if (strcmp(s, yes[i]) == 0) {
			*ret_value = true;
			return 0;
		}
		if (strcmp(s, no[i]) == 0) {
			*ret_value = false;
			return 0;
		}
	}
	return -EINVAL;
}

static bool is_octal(const char *s, const char *end)
{
	return end - s >= 4 && s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' &&
		s[2] <= '7' && s[3] >= '0' && s[3] <= '7';
}

bool parse_unescape_octal(const char *s, size_t len, char *dst, size_t size)
{
	const char *end = s + len;
	size_t n = 0;

	while (s < end && n + 1 < size) {
		if (is_octal(s, end)) {
			dst[n++] = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 4;
		} else {
			dst[n++] = *s++;
		}
	}
	dst[s < end ? 0 : n] = '\0';
	return s == end;
}
