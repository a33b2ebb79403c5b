/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Text from anywhere, for terminals, logs and JSON; never a byte outside of the buffer. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/text.h"

struct escape_case {
	const char *bytes;
	size_t len;
	const char *printable;
	const char *json;
};

#define CASE(bytes, printable, json)                                                               \
	{                                                                                          \
		(bytes), sizeof(bytes) - 1, (printable), (json)                                    \
	}
#define REPLACED "\\ufffd"

static const struct escape_case escape_cases[] = {
	CASE("", "", ""),
	CASE("plain text 123", "plain text 123", "plain text 123"),
	CASE("a\"b", "a\"b", "a\\\"b"),
	CASE("a\\b", "a\\x5cb", "a\\\\b"),
	CASE("\0", "\\x00", "\\u0000"),
	CASE("\n\r\t\b\f", "\\x0a\\x0d\\x09\\x08\\x0c", "\\u000a\\u000d\\u0009\\u0008\\u000c"),
	CASE("\x1b[31m", "\\x1b[31m", "\\u001b[31m"),
	CASE("\x7f", "\\x7f", "\\u007f"),
	/* Two, three and four bytes; first and last of each length. */
	CASE("\xc3\xa9", "\xc3\xa9", "\xc3\xa9"),
	CASE("\xe2\x82\xac", "\xe2\x82\xac", "\xe2\x82\xac"),
	CASE("\xf0\x9f\x90\x98", "\xf0\x9f\x90\x98", "\xf0\x9f\x90\x98"),
	CASE("\xc2\xa0", "\xc2\xa0", "\xc2\xa0"),
	CASE("\xdf\xbf", "\xdf\xbf", "\xdf\xbf"),
	CASE("\xe0\xa0\x80", "\xe0\xa0\x80", "\xe0\xa0\x80"),
	CASE("\xef\xbf\xbd", "\xef\xbf\xbd", "\xef\xbf\xbd"),
	CASE("\xf0\x90\x80\x80", "\xf0\x90\x80\x80", "\xf0\x90\x80\x80"),
	CASE("\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"),
	CASE("\xed\x9f\xbf", "\xed\x9f\xbf", "\xed\x9f\xbf"),
	/* C1 controls: valid UTF-8, and commands to some terminals. */
	CASE("\xc2\x80", "\\xc2\\x80", "\\u0080"),
	CASE("\xc2\x9b"
	     "31m",
		"\\xc2\\x9b31m", "\\u009b31m"),
	/* The same as single bytes: not UTF-8. */
	CASE("\x9b", "\\x9b", REPLACED),
	/* Overlong forms of '/', NUL and a C1 control. */
	CASE("\xc0\xaf", "\\xc0\\xaf", REPLACED REPLACED),
	CASE("\xe0\x80\xaf", "\\xe0\\x80\\xaf", REPLACED REPLACED REPLACED),
	CASE("\xf0\x80\x80\xaf", "\\xf0\\x80\\x80\\xaf", REPLACED REPLACED REPLACED REPLACED),
	CASE("\xc0\x80", "\\xc0\\x80", REPLACED REPLACED),
	CASE("\xc1\xbf", "\\xc1\\xbf", REPLACED REPLACED),
	CASE("\xe0\x82\x9b", "\\xe0\\x82\\x9b", REPLACED REPLACED REPLACED),
	/* Surrogates, alone and as a pair (CESU-8). */
	CASE("\xed\xa0\x80", "\\xed\\xa0\\x80", REPLACED REPLACED REPLACED),
	CASE("\xed\xbf\xbf", "\\xed\\xbf\\xbf", REPLACED REPLACED REPLACED),
	CASE("\xed\xa0\xbd\xed\xb0\x80", "\\xed\\xa0\\xbd\\xed\\xb0\\x80",
		REPLACED REPLACED REPLACED REPLACED REPLACED REPLACED),
	/* Over U+10FFFF, and bytes that no sequence has. */
	CASE("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80", REPLACED REPLACED REPLACED REPLACED),
	CASE("\xf8\x88\x80\x80\x80", "\\xf8\\x88\\x80\\x80\\x80",
		REPLACED REPLACED REPLACED REPLACED REPLACED),
	CASE("\xfe\xff", "\\xfe\\xff", REPLACED REPLACED),
	/* Cut off, at the end and before another character. */
	CASE("\xc3", "\\xc3", REPLACED),
	CASE("\xe2\x82", "\\xe2\\x82", REPLACED REPLACED),
	CASE("\xf0\x9f\x90", "\\xf0\\x9f\\x90", REPLACED REPLACED REPLACED),
	CASE("\xe2\x82"
	     "a",
		"\\xe2\\x82a", REPLACED REPLACED "a"),
	CASE("\xe2\xe2\x82\xac", "\\xe2\xe2\x82\xac", REPLACED "\xe2\x82\xac"),
	CASE("\x80"
	     "a",
		"\\x80a", REPLACED "a"),
	/* What turns text around or hides in it: U+202E, U+2066, U+200B, U+2028, the byte order
	   mark. */
	CASE("\xe2\x80\xae", "\\xe2\\x80\\xae", "\xe2\x80\xae"),
	CASE("\xe2\x81\xa6", "\\xe2\\x81\\xa6", "\xe2\x81\xa6"),
	CASE("\xe2\x80\x8b", "\\xe2\\x80\\x8b", "\xe2\x80\x8b"),
	CASE("\xe2\x80\xa8", "\\xe2\\x80\\xa8", "\xe2\x80\xa8"),
	CASE("\xef\xbb\xbf", "\\xef\\xbb\\xbf", "\xef\xbb\xbf"),
};

/* On the heap and exact, so that ASan sees a byte read too many. */
static char *exact_copy(const char *bytes, size_t len)
{
	char *copy = malloc(len ? len : 1);

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	return copy;
}

static void test_escapes(void **state)
{
	char buf[256];
	struct text t = TEXT_ON(buf);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(escape_cases); i++) {
		const struct escape_case *e = &escape_cases[i];
		_cleanup_free_ char *bytes = exact_copy(e->bytes, e->len);

		text_reset(&t);
		text_add_printable(&t, bytes, e->len);
		assert_string_equal(buf, e->printable);
		text_reset(&t);
		text_add_json_escaped(&t, bytes, e->len);
		assert_string_equal(buf, e->json);
		assert_false(t.overflow);
	}
}

/* Each case into each size of buffer: whole pieces or nothing, always terminated. */
static void test_escapes_overflow(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(escape_cases); i++) {
		const struct escape_case *e = &escape_cases[i];
		size_t needed = strlen(e->printable) + 1;

		for (size_t size = 1; size <= needed + 1; size++) {
			_cleanup_free_ char *buf = malloc(size);
			struct text t = { .buf = buf, .size = size };

			assert_non_null(buf);
			text_reset(&t);
			text_add_printable(&t, e->bytes, e->len);
			assert_int_equal(t.overflow, size < needed);
			assert_int_equal(strlen(buf), t.len);
			assert_memory_equal(buf, e->printable, t.len);
		}
	}
}

/* Any bytes come out printable, and from the printable form the bytes come back. */
static void test_printable_reads_back(void **state)
{
	unsigned char bytes[64], again[64];
	char buf[sizeof(bytes) * 4 + 1];
	struct text t = TEXT_ON(buf);
	uint32_t seed = 1;

	(void)state;
	for (unsigned int round = 0; round < 5000; round++) {
		size_t len = 0;

		for (size_t i = 0; i < sizeof(bytes); i++) {
			seed = seed * 1664525 + 1013904223;
			bytes[i] = (unsigned char)(seed >> 24);
		}
		text_reset(&t);
		text_add_printable(&t, (const char *)bytes, sizeof(bytes));
		assert_false(t.overflow);
		for (const char *p = buf; *p; len++) {
			unsigned int value;

			assert_true((unsigned char)*p >= 0x20 && *p != 0x7f && len < sizeof(again));
			if (*p != '\\') {
				again[len] = (unsigned char)*p++;
				continue;
			}
			assert_int_equal(sscanf(p, "\\x%2x", &value), 1);
			again[len] = (unsigned char)value;
			p += 4;
		}
		assert_int_equal(len, sizeof(bytes));
		assert_memory_equal(again, bytes, sizeof(bytes));
	}
}

static void test_add(void **state)
{
	char buf[8];
	struct text t = TEXT_ON(buf);

	(void)state;
	text_reset(&t);
	text_add(&t, "abc");
	text_addf(&t, "%d", 1234);
	assert_string_equal(buf, "abc1234");
	assert_int_equal(t.len, 7);
	assert_false(t.overflow);
	text_add(&t, "");
	assert_false(t.overflow);
	text_add(&t, "x");
	assert_true(t.overflow);
	assert_string_equal(buf, "abc1234");

	/* Once it overflowed it stays as it is: what follows would stand in the wrong place. */
	text_reset(&t);
	text_add(&t, "abc");
	text_addf(&t, "%s", "12345");
	assert_true(t.overflow);
	assert_string_equal(buf, "abc");
	text_add(&t, "d");
	text_addf(&t, "%s", "d");
	assert_string_equal(buf, "abc");
	text_reset(&t);
	assert_string_equal(buf, "");
	assert_false(t.overflow);
}

static void test_copy(void **state)
{
	char dst[4];

	(void)state;
	text_copy(dst, sizeof(dst), "abc");
	assert_string_equal(dst, "abc");
	text_copy(dst, sizeof(dst), "abcd");
	assert_string_equal(dst, "abc");
	text_copy(dst, sizeof(dst), "");
	assert_string_equal(dst, "");
	text_copy(dst, 1, "abc");
	assert_string_equal(dst, "");
}

static void build_json(struct text *t)
{
	text_reset(t);
	text_json_open(t, NULL, '{');
	text_json_string(t, "name", "a \"b\"\n{");
	text_json_u64(t, "most", UINT64_MAX);
	text_json_i64(t, "least", INT64_MIN);
	text_json_bool(t, "yes", true);
	text_json_null(t, "none");
	text_json_real(t, "pct", 12.345);
	text_json_real(t, "nan", NAN);
	text_json_real(t, "inf", -INFINITY);
	text_json_open(t, "empty", '[');
	text_json_close(t, ']');
	text_json_open(t, "list", '[');
	text_json_u64(t, NULL, 1);
	text_json_string(t, NULL, "[");
	text_json_open(t, NULL, '{');
	text_json_bool(t, "no", false);
	text_json_close(t, '}');
	text_json_open(t, NULL, '{');
	text_json_close(t, '}');
	text_json_close(t, ']');
	text_json_string_bytes(t, "bytes", "a\0\xff", 3);
	text_json_close(t, '}');
}

static const char json_expected[] =
	"{\"name\":\"a \\\"b\\\"\\u000a{\",\"most\":18446744073709551615,"
	"\"least\":-9223372036854775808,\"yes\":true,\"none\":null,\"pct\":12.35,\"nan\":null,"
	"\"inf\":null,\"empty\":[],\"list\":[1,\"[\",{\"no\":false},{}],"
	"\"bytes\":\"a\\u0000\\ufffd\"}";

static void test_json(void **state)
{
	char buf[512];
	struct text t = TEXT_ON(buf);

	(void)state;
	build_json(&t);
	assert_false(t.overflow);
	assert_string_equal(buf, json_expected);
}

static void test_json_overflow(void **state)
{
	(void)state;
	for (size_t size = 1; size <= sizeof(json_expected); size++) {
		_cleanup_free_ char *buf = malloc(size);
		struct text t = { .buf = buf, .size = size };

		assert_non_null(buf);
		build_json(&t);
		assert_int_equal(t.overflow, size < sizeof(json_expected));
		assert_int_equal(strlen(buf), t.len);
		assert_memory_equal(buf, json_expected, t.len);
	}
}

static void assert_json_printable(const char *json, size_t len, const char *want)
{
	char buf[256];
	struct text t = TEXT_ON(buf);

	text_reset(&t);
	text_add_json_printable(&t, json, len);
	assert_false(t.overflow);
	assert_string_equal(buf, want);
}

static void test_json_printable(void **state)
{
#define ASSERT(json, want) assert_json_printable(json, sizeof(json) - 1, want)
	(void)state;
	/* What iostall itself writes stays byte for byte. */
	ASSERT("{\"a\":[1,\"\\u001b \\\"\xc3\xa4\\\\\"]}",
		"{\"a\":[1,\"\\u001b \\\"\xc3\xa4\\\\\"]}");
	ASSERT("{\"a\":\"\x1b[2J\x7f\xc2\x9b\xe2\x80\xae\"}",
		"{\"a\":\"\\u001b[2J\\u007f\\u009b\\u202e\"}");
	ASSERT("{\"\xff\":\"\0\"}", "{\"\\ufffd\":\"\\u0000\"}");
	/* An escaped quote does not end a string, an escaped backslash does not escape. */
	ASSERT("\"\\\"\x1b\\\\\"\x1b", "\"\\\"\\u001b\\\\\"?");
	ASSERT("{\t\"a\"\r:\x1b 1\xff}", "{ \"a\" :? 1?}");
#undef ASSERT
}

static void test_count(void **state)
{
	char buf[32];
	struct text t = TEXT_ON(buf);

	(void)state;
	text_reset(&t);
	text_add_count(&t, 0, "stall, ", "stalls, ");
	text_add_count(&t, 1, "stall, ", "stalls, ");
	text_add_count(&t, 2, "stall", "stalls");
	assert_string_equal(buf, "0 stalls, 1 stall, 2 stalls");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_escapes),
		cmocka_unit_test(test_escapes_overflow),
		cmocka_unit_test(test_printable_reads_back),
		cmocka_unit_test(test_add),
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_json_overflow),
		cmocka_unit_test(test_json_printable),
		cmocka_unit_test(test_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
