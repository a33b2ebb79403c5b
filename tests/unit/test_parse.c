/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Numbers out of text that nobody vouches for; buffers are exact, so that ASan sees a byte too
 * many. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/parse.h"

#define UNTOUCHED 0x5a5a5a5a5a5a5a5a

/* On the heap without a terminating NUL. */
static struct cursor cursor_on(const char *s, char **ret_copy)
{
	size_t len = strlen(s);

	*ret_copy = malloc(len ? len : 1);
	assert_non_null(*ret_copy);
	memcpy(*ret_copy, s, len);
	return (struct cursor){ *ret_copy, *ret_copy + len };
}

struct number_case {
	const char *text;
	int r;
	uint64_t value;
	size_t left; /* bytes behind what was taken */
};

static void check_cursor(int (*take)(struct cursor *, uint64_t *), const struct number_case *cases,
	size_t count)
{
	for (size_t i = 0; i < count; i++) {
		_cleanup_free_ char *copy = NULL;
		struct cursor c = cursor_on(cases[i].text, &copy);
		uint64_t value = UNTOUCHED;

		assert_int_equal(take(&c, &value), cases[i].r);
		assert_true(value == (cases[i].r == 0 ? cases[i].value : UNTOUCHED));
		if (cases[i].r == 0)
			assert_int_equal(c.end - c.p, cases[i].left);
	}
}

static void test_cursor_u64(void **state)
{
	static const struct number_case cases[] = {
		{ "0", 0, 0, 0 },
		{ "  \t17 18", 0, 17, 3 },
		{ "007", 0, 7, 0 },
		{ "12ab", 0, 12, 2 },
		{ "18446744073709551615", 0, UINT64_MAX, 0 },
		{ "18446744073709551616", -ERANGE, 0, 0 },
		{ "99999999999999999999999", -ERANGE, 0, 0 },
		{ "", -EINVAL, 0, 0 },
		{ "   ", -EINVAL, 0, 0 },
		{ "\n1", -EINVAL, 0, 0 },
		{ "-1", -EINVAL, 0, 0 },
		{ "+1", -EINVAL, 0, 0 },
		{ "x", -EINVAL, 0, 0 },
	};

	(void)state;
	check_cursor(cursor_u64, cases, ARRAY_SIZE(cases));
}

static void test_cursor_hex(void **state)
{
	static const struct number_case cases[] = {
		{ "0", 0, 0, 0 },
		{ "ff", 0, 255, 0 },
		{ " 0xFf g", 0, 255, 2 },
		{ "0Xdeadbeefcafe0123", 0, 0xdeadbeefcafe0123, 0 },
		{ "ffffffffffffffff", 0, UINT64_MAX, 0 },
		{ "0000ffffffffffffffff", 0, UINT64_MAX, 0 },
		{ "10000000000000000", -ERANGE, 0, 0 },
		{ "0xg", -EINVAL, 0, 0 },
		{ "", -EINVAL, 0, 0 },
		{ "g", -EINVAL, 0, 0 },
	};

	(void)state;
	check_cursor(cursor_hex, cases, ARRAY_SIZE(cases));
}

static int take_i64(struct cursor *c, uint64_t *ret_value)
{
	int64_t value = (int64_t)UNTOUCHED;
	int r = cursor_i64(c, &value);

	*ret_value = (uint64_t)value;
	return r;
}

static void test_cursor_i64(void **state)
{
	static const struct number_case cases[] = {
		{ "-1 2", 0, UINT64_MAX, 2 },
		{ " 5", 0, 5, 0 },
		{ "-0", 0, 0, 0 },
		{ "9223372036854775807", 0, INT64_MAX, 0 },
		{ "-9223372036854775808", 0, 1ULL << 63, 0 },
		{ "9223372036854775808", -ERANGE, 0, 0 },
		{ "-9223372036854775809", -ERANGE, 0, 0 },
		{ "-", -EINVAL, 0, 0 },
		{ "- 1", -EINVAL, 0, 0 },
		{ "--1", -EINVAL, 0, 0 },
		{ "", -EINVAL, 0, 0 },
	};

	(void)state;
	check_cursor(take_i64, cases, ARRAY_SIZE(cases));
}

static void test_cursor_word(void **state)
{
	_cleanup_free_ char *copy = NULL;
	struct cursor c = cursor_on("  one\ttwo \nthree", &copy);
	const char *word = NULL;
	size_t len = 0;

	(void)state;
	assert_int_equal(cursor_word(&c, &word, &len), 0);
	assert_int_equal(len, 3);
	assert_memory_equal(word, "one", 3);
	assert_int_equal(cursor_word(&c, &word, &len), 0);
	assert_memory_equal(word, "two", 3);
	/* A newline ends words: the next line is not this one's. */
	assert_int_equal(cursor_word(&c, &word, &len), -EINVAL);
	assert_memory_equal(word, "two", 3);
	c.p++;
	assert_int_equal(cursor_word(&c, &word, &len), 0);
	assert_int_equal(len, 5);
	assert_int_equal(cursor_word(&c, &word, &len), -EINVAL);
}

static void test_cursor_line(void **state)
{
	static const char *const lines[] = { "a", "", "bc", "d" };
	_cleanup_free_ char *copy = NULL, *ended_copy = NULL;
	struct cursor c = cursor_on("a\n\nbc\nd", &copy), ended = cursor_on("a\n", &ended_copy);
	struct cursor line;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		assert_true(cursor_line(&c, &line));
		assert_int_equal(line.end - line.p, strlen(lines[i]));
		assert_memory_equal(line.p, lines[i], strlen(lines[i]));
	}
	assert_false(cursor_line(&c, &line));
	/* A newline at the end ends a line, it does not begin one. */
	assert_true(cursor_line(&ended, &line));
	assert_false(cursor_line(&ended, &line));
}

static void check_value(int (*parse)(const char *, uint64_t *), const struct number_case *cases,
	size_t count)
{
	for (size_t i = 0; i < count; i++) {
		_cleanup_free_ char *copy = strdup(cases[i].text);
		uint64_t value = UNTOUCHED;

		assert_non_null(copy);
		assert_int_equal(parse(copy, &value), cases[i].r);
		assert_true(value == (cases[i].r == 0 ? cases[i].value : UNTOUCHED));
	}
}

static void test_parse_unsigned(void **state)
{
	static const struct number_case cases[] = {
		{ "0", 0, 0, 0 },
		{ "18446744073709551615", 0, UINT64_MAX, 0 },
		{ "18446744073709551616", -ERANGE, 0, 0 },
		{ "5s", -EINVAL, 0, 0 },
		{ "5 6", -EINVAL, 0, 0 },
		{ "5.0", -EINVAL, 0, 0 },
		{ "-5", -EINVAL, 0, 0 },
		{ "", -EINVAL, 0, 0 },
	};

	(void)state;
	check_value(parse_unsigned, cases, ARRAY_SIZE(cases));
}

static void test_parse_duration(void **state)
{
	static const struct number_case cases[] = {
		{ "0", 0, 0, 0 },
		{ "0s", 0, 0, 0 },
		{ "1ns", 0, 1, 0 },
		{ "1us", 0, 1000, 0 },
		{ "100ms", 0, 100000000, 0 },
		{ "100 ms", 0, 100000000, 0 },
		{ "1s", 0, 1000000000, 0 },
		{ "2m", 0, 120000000000, 0 },
		{ "2min", 0, 120000000000, 0 },
		{ "1h", 0, 3600000000000, 0 },
		{ "18446744073s", 0, 18446744073000000000ULL, 0 },
		{ "18446744074s", -ERANGE, 0, 0 },
		{ "5124096h", -ERANGE, 0, 0 },
		{ "99999999999999999999s", -ERANGE, 0, 0 },
		{ "1", -EINVAL, 0, 0 },
		{ "1S", -EINVAL, 0, 0 },
		{ "1d", -EINVAL, 0, 0 },
		{ "0.5s", 0, 500000000, 0 },
		{ "1.5 ms", 0, 1500000, 0 },
		{ "1.25h", 0, 4500000000000, 0 },
		{ "1.999999999s", 0, 1999999999, 0 },
		{ "0.0s", 0, 0, 0 },
		{ "1.0ns", 0, 1, 0 },
		{ "5124095.576030431h", 0, 18446744073709551600ULL, 0 },
		{ "5124095.576030432h", -ERANGE, 0, 0 },
		{ "0.0001us", -ERANGE, 0, 0 },
		{ "0.5ns", -EINVAL, 0, 0 },
		{ "0.5", -EINVAL, 0, 0 },
		{ "1.0000000000s", -EINVAL, 0, 0 },
		{ "1.s", -EINVAL, 0, 0 },
		{ ".5s", -EINVAL, 0, 0 },
		{ "1.5.5s", -EINVAL, 0, 0 },
		{ "-0.5s", -EINVAL, 0, 0 },
		{ "1ss", -EINVAL, 0, 0 },
		{ "1s 2s", -EINVAL, 0, 0 },
		{ "-1s", -EINVAL, 0, 0 },
		{ "s", -EINVAL, 0, 0 },
		{ "", -EINVAL, 0, 0 },
	};

	(void)state;
	check_value(parse_duration_ns, cases, ARRAY_SIZE(cases));
}

static void test_parse_size(void **state)
{
	static const struct number_case cases[] = {
		{ "0", 0, 0, 0 },
		{ "4096", 0, 4096, 0 },
		{ "64K", 0, 65536, 0 },
		{ "1M", 0, 1 << 20, 0 },
		{ "3 G", 0, 3ULL << 30, 0 },
		{ "17179869183G", 0, 17179869183ULL << 30, 0 },
		{ "17179869184G", -ERANGE, 0, 0 },
		{ "1.5M", 0, 3 << 19, 0 },
		{ "0.5K", 0, 512, 0 },
		{ "1.3G", 0, 1395864371, 0 },
		{ "17179869183.999999999G", 0, 18446744073709551614ULL, 0 },
		{ "0.0001K", -ERANGE, 0, 0 },
		{ "1.5", -EINVAL, 0, 0 },
		{ "1k", -EINVAL, 0, 0 },
		{ "1MB", -EINVAL, 0, 0 },
		{ "1T", -EINVAL, 0, 0 },
		{ "K", -EINVAL, 0, 0 },
		{ "", -EINVAL, 0, 0 },
	};

	(void)state;
	check_value(parse_size_bytes, cases, ARRAY_SIZE(cases));
}

static void test_parse_real(void **state)
{
	static const struct {
		const char *text;
		int r;
		double value;
	} cases[] = {
		{ "0", 0, 0 },
		{ "20", 0, 20 },
		{ "2.5", 0, 2.5 },
		{ ".5", 0, 0.5 },
		{ "5.", 0, 5 },
		{ "20%", 0, 20 },
		{ "20 %", 0, 20 },
		{ "", -EINVAL, 0 },
		{ ".", -EINVAL, 0 },
		{ "%", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "+1", -EINVAL, 0 },
		{ "1e3", -EINVAL, 0 },
		{ "0x10", -EINVAL, 0 },
		{ "nan", -EINVAL, 0 },
		{ "inf", -EINVAL, 0 },
		{ "1..2", -EINVAL, 0 },
		{ "1,5", -EINVAL, 0 },
		{ "1 2", -EINVAL, 0 },
		{ "20%%", -EINVAL, 0 },
		{ "20% x", -EINVAL, 0 },
		{ "1x%", -EINVAL, 0 },
		/* strtod() skips blanks and then takes what a plain decimal must not be. */
		{ " -1", -EINVAL, 0 },
		{ " nan", -EINVAL, 0 },
		{ " 0x10", -EINVAL, 0 },
		{ " 1e3", -EINVAL, 0 },
		{ "\t-1", -EINVAL, 0 },
	};
	char digits[400];
	double value = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		value = -7;
		assert_int_equal(parse_real(cases[i].text, &value), cases[i].r);
		assert_true(value == (cases[i].r == 0 ? cases[i].value : -7));
	}
	memset(digits, '9', sizeof(digits) - 1);
	digits[sizeof(digits) - 1] = '\0';
	assert_int_equal(parse_real(digits, &value), -ERANGE);
}

static void test_parse_bool(void **state)
{
	static const char *const yes[] = { "yes", "true", "on", "1" };
	static const char *const no[] = { "no", "false", "off", "0" };
	static const char *const neither[] = { "", "Yes", "y", "2", "yes ", "onn", "tru" };
	bool value;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
		value = false;
		assert_int_equal(parse_bool(yes[i], &value), 0);
		assert_true(value);
		assert_int_equal(parse_bool(no[i], &value), 0);
		assert_false(value);
	}
	for (size_t i = 0; i < ARRAY_SIZE(neither); i++)
		assert_int_equal(parse_bool(neither[i], &value), -EINVAL);
}

/* Every number printed is read back, at each power of two and its neighbours. */
static void test_round_trip(void **state)
{
	(void)state;
	for (unsigned int shift = 0; shift < 64; shift++) {
		for (unsigned int above = 0; above <= 2; above++) {
			uint64_t number = (1ULL << shift) - 1 + above, value = UNTOUCHED;
			char text[32];

			snprintf(text, sizeof(text), "%" PRIu64, number);
			assert_int_equal(parse_unsigned(text, &value), 0);
			assert_true(value == number);
			snprintf(text, sizeof(text), "%" PRIx64, number);
			struct cursor c = { text, text + strlen(text) };

			assert_int_equal(cursor_hex(&c, &value), 0);
			assert_true(value == number && c.p == c.end);
			snprintf(text, sizeof(text), "%" PRIu64 "ns", number);
			assert_int_equal(parse_duration_ns(text, &value), 0);
			assert_true(value == number);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cursor_u64),
		cmocka_unit_test(test_cursor_hex),
		cmocka_unit_test(test_cursor_i64),
		cmocka_unit_test(test_cursor_word),
		cmocka_unit_test(test_cursor_line),
		cmocka_unit_test(test_parse_unsigned),
		cmocka_unit_test(test_parse_duration),
		cmocka_unit_test(test_parse_size),
		cmocka_unit_test(test_parse_real),
		cmocka_unit_test(test_parse_bool),
		cmocka_unit_test(test_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
