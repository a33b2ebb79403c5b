/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* A record as JSON, back again, and for a person. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "test_record_data.h"
#include "util/cleanup.h"

#define ROUNDS 3000

/* Heap, so that ASan sees a step over either end. */
struct buffers {
	struct record first;
	struct record second;
	char line_buf[RECORD_LINE_SIZE];
	char again_buf[RECORD_LINE_SIZE];
};

static void encode(const struct record *r, char *buf, struct text *ret_line)
{
	*ret_line = (struct text){ .buf = buf, .size = RECORD_LINE_SIZE };
	record_encode_json(r, ret_line);
	assert_false(ret_line->overflow);
	assert_int_equal(ret_line->buf[ret_line->len - 1], '\n');
	assert_null(memchr(ret_line->buf, '\n', ret_line->len - 1));
}

static int decode(const char *line, struct record *ret_record)
{
	/* An exact copy without a terminator: a byte too far is a sanitizer's report. */
	size_t len = strlen(line);
	_cleanup_free_ char *copy = malloc(len ? len : 1);

	memcpy(copy, line, len);
	return record_decode_json(copy, len, ret_record);
}

static void assert_round_trip(struct buffers *b)
{
	struct text line, again;

	encode(&b->first, b->line_buf, &line);
	assert_int_equal(record_decode_json(line.buf, line.len - 1, &b->second), 0);
	encode(&b->second, b->again_buf, &again);
	assert_string_equal(line.buf, again.buf);
}

static void test_random_records_round_trip(void **state)
{
	_cleanup_free_ struct buffers *b = calloc(1, sizeof(*b));
	unsigned int seed = 23;

	(void)state;
	for (unsigned int i = 0; i < ROUNDS; i++) {
		data_random(&b->first, i % RECORD_TYPE_COUNT, &seed);
		assert_round_trip(b);
	}
}

static bool is_same(const struct field *fields, const char *a, const char *b);

static int64_t index_of(const struct field *f, const char *value)
{
	int64_t n = f->kind == FIELD_INDEX64 ? *(const int64_t *)(const void *)value
					     : *(const int32_t *)(const void *)value;

	/* What cannot be is not known. */
	return f->kind == FIELD_PID && n <= 0 ? 0 : n < 0 ? -1 : n;
}

static bool is_same_array(const struct field *f, const char *a, const char *b)
{
	uint32_t count = *(const uint32_t *)(const void *)(a + f->count_offset);

	if (count != *(const uint32_t *)(const void *)(b + f->count_offset))
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (!is_same(f->members, a + f->offset + i * f->size, b + f->offset + i * f->size))
			return false;
	return true;
}

static bool is_same_value(const struct field *f, const char *a, const char *b)
{
	const double *x = (const void *)a, *y = (const void *)b;

	switch (f->kind) {
	case FIELD_TEXT:
	case FIELD_LINES:
		return strcmp(a, b) == 0;
	case FIELD_REAL:
		return *x == *y || (isnan(*x) && isnan(*y));
	case FIELD_U64:
		return memcmp(a, b, sizeof(uint64_t)) == 0;
	case FIELD_MS:
		/* 104 days */
		return *(const uint64_t *)(const void *)a >> 53 ||
			memcmp(a, b, sizeof(uint64_t)) == 0;
	case FIELD_BOOL:
		return *a == *b;
	case FIELD_PID:
	case FIELD_INDEX:
	case FIELD_INDEX64:
		return index_of(f, a) == index_of(f, b);
	case FIELD_OBJECT:
		if (f->nullable && *a != *b)
			return false;
		return (f->nullable && !*a) || is_same(f->members, a, b);
	case FIELD_PART:
		return is_same(f->members, a, b);
	default:
		return memcmp(a, b, sizeof(uint32_t)) == 0;
	}
}

static bool is_same(const struct field *fields, const char *a, const char *b)
{
	for (const struct field *f = fields; f->key; f++)
		if (f->kind == FIELD_ARRAY ? !is_same_array(f, a, b)
					   : f->kind != FIELD_CHAR && f->kind != FIELD_RESULT &&
					f->kind != FIELD_EACH && f->kind != FIELD_COUNTS &&
					!is_same_value(f, a + f->offset, b + f->offset)) {
			print_message("%s is not what is read back\n", f->key);
			return false;
		}
	return true;
}

/* The daemon judges the lines that it writes, and `iostall judge` those that it reads. */
static void test_a_settled_line_is_what_is_read_back(void **state)
{
	_cleanup_free_ struct buffers *b = calloc(1, sizeof(*b));
	unsigned int seed = 42;
	struct text line;

	(void)state;
	for (unsigned int i = 0; i < ROUNDS; i++) {
		const struct field_type *type = &record_types[i % RECORD_TYPE_COUNT];

		data_random(&b->first, i % RECORD_TYPE_COUNT, &seed);
		encode(&b->first, b->line_buf, &line);
		assert_int_equal(record_decode_json(line.buf, line.len - 1, &b->second), 0);
		record_settle(&b->first);
		assert_true(is_same(type->fields, (char *)&b->first + type->offset,
			(char *)&b->second + type->offset));
	}
}

static void test_plain_records_round_trip_member_by_member(void **state)
{
	_cleanup_free_ struct buffers *b = calloc(1, sizeof(*b));
	struct text line;

	(void)state;
	for (unsigned int type = 0; type < RECORD_TYPE_COUNT; type++) {
		data_any(&b->first, type);
		if (type == RECORD_CLOSE)
			b->first.close.cost.cpu_ns = 12345000; /* microseconds are what is kept */
		encode(&b->first, b->line_buf, &line);
		assert_int_equal(record_decode_json(line.buf, line.len - 1, &b->second), 0);
		if (type == RECORD_SAMPLE) /* absent pressure has no values */
			b->second.sample.reading.psi.cpu = b->first.sample.reading.psi.cpu;
		assert_memory_equal(&b->first, &b->second, sizeof(b->first));
	}
}

/* The longest that each field can be: bytes that JSON writes in six, and the widest numbers. */
static void fill_worst(const struct field *fields, char *base)
{
	for (const struct field *f = fields; f->key; f++) {
		char *value = base + f->offset;
		uint32_t count = (uint32_t)f->count_max;

		if (f->kind == FIELD_REAL)
			*(double *)(void *)value = -DBL_MAX;
		else if (f->kind == FIELD_CHOICE)
			*(unsigned int *)(void *)value = 1;
		else if (f->kind == FIELD_U64 || f->kind == FIELD_MS)
			*(uint64_t *)(void *)value = UINT64_MAX;
		else if (f->kind == FIELD_ARRAY)
			memcpy(base + f->count_offset, &count, sizeof(count));
		else if (f->kind == FIELD_TEXT || f->kind == FIELD_LINES)
			value[f->size - 1] = '\0';
		else if (f->kind == FIELD_EACH)
			memset(value, 0xff, f->values->count * sizeof(uint64_t));
		else if (f->kind == FIELD_COUNTS)
			memset(value, 0xff, f->count_max * sizeof(uint64_t));
		for (uint32_t i = 0; f->kind == FIELD_ARRAY && i < count; i++)
			fill_worst(f->members, value + i * f->size);
		if (f->members && f->kind != FIELD_ARRAY)
			fill_worst(f->members, value);
	}
}

static void test_the_worst_line_fits(void **state)
{
	_cleanup_free_ struct buffers *b = calloc(1, sizeof(*b));
	size_t longest = 0;

	(void)state;
	for (unsigned int type = 0; type < RECORD_TYPE_COUNT; type++) {
		struct text line;

		data_begin(&b->first, type);
		b->first.seq = UINT64_MAX;
		memset(&b->first.open, 1, sizeof(b->first) - offsetof(struct record, open));
		fill_worst(record_types[type].fields, data_object(&b->first));
		if (type == RECORD_SAMPLE)
			b->first.sample.reading.real_ns = DATA_REAL_NS;
		encode(&b->first, b->line_buf, &line);
		longest = line.len > longest ? line.len : longest;
		line = (struct text){ .buf = b->line_buf, .size = RECORD_LINE_SIZE };
		record_format_text(&b->first, 0, &line);
		assert_false(line.overflow);
	}
	assert_in_range(longest, RECORD_LINE_SIZE * 3 / 4, RECORD_LINE_SIZE);
}

/* Each of the members stands in the line, in this order; others may stand between them. */
static void assert_members(const char *line, const char *const *members)
{
	for (; *members; members++) {
		const char *found = strstr(line, *members);

		if (!found)
			fail_msg("%s is not in, or comes too early for, %s", *members, line);
		line = found + strlen(*members);
	}
}

static void test_a_stall_has_these_members(void **state)
{
	static const char *const members[] = {
		"{\"v\":1,\"type\":\"stall\",\"incident\":\"20261120T031207Z-3f9c\",\"seq\":7,"
		"\"ts\":\"2026-11-20T03:12:07.123456Z\",\"mono_ns\":17345000000,",
		"\"op\":\"read\",",
		"\"pid\":2211,\"tid\":2230,\"comm\":\"mariadbd\",\"exe\":\"/usr/sbin/mariadbd\",",
		"\"user\":\"mysql\",\"unit\":\"mariadb.service\",",
		"\"cgroup\":4711,",
		"\"connection_id\":17,\"fd\":23,",
		"\"path\":\"/var/lib/mysql/shop/orders.ibd\",",
		"\"path_truncated\":false,",
		"\"mount_ns\":null,\"dev\":\"8:16\",\"dev_name\":\"sdb\",\"inode\":131,",
		"\"offset\":1048576,\"bytes\":16384,\"syscall\":17,\"path_given\":false,",
		"\"ret\":16384,\"start_mono_ns\":16833000000,\"dur_ns\":512000000,",
		"\"since\":\"after_arm\",\"sleeps\":3,\"slept_ns\":511000000,\"iowait\":true,",
		"\"waits_for\":\"page\",\"probe\":\"vfs\",\"backend\":\"fentry\",",
		"\"kstack\":[\"io_schedule+0x12\",\"folio_wait_bit_common+0x13\","
		"\"filemap_read+0x14\"],\"kstack_while_blocked\":true,\"alike\":null",
		NULL,
	};
	_cleanup_free_ struct buffers *b = calloc(1, sizeof(*b));
	struct text line;

	(void)state;
	data_operation(&b->first, RECORD_STALL);
	b->first.seq = 7;
	encode(&b->first, b->line_buf, &line);
	assert_members(line.buf, members);
	assert_string_equal(line.buf + line.len - 2, "}\n");
}

static void test_a_close_is_exactly_this_line(void **state)
{
	_cleanup_free_ struct buffers *b = calloc(1, sizeof(*b));
	struct text line;

	(void)state;
	data_close(&b->first);
	encode(&b->first, b->line_buf, &line);
	assert_non_null(strstr(line.buf, "\"reason\":\"clear\",\"duration_ns\":23400000000,"));
	assert_non_null(strstr(line.buf,
		"\"lost\":{\"ring_full\":0,\"map_full\":0,"
		"\"return_missed\":2,"));
	assert_non_null(strstr(line.buf,
		"\"cost\":{\"cpu_ms\":12.345,\"armed_ms\":3.412,"
		"\"attach_ms\":2.100,\"disarm_ms\":140.000,"
		"\"turn_ms\":1.500,\"delay_ms\":2.600,\"rss_bytes\":9437184,"
		"\"kernel_bytes\":11534336}}\n"));
}

static void test_what_is_not_known_is_null(void **state)
{
	static const char *const members[] = {
		"\"op\":null,\"pid\":null,\"tid\":null,\"comm\":null,",
		"\"exe\":null,\"user\":null,\"unit\":null,",
		"\"cgroup\":null,",
		"\"connection_id\":null,\"fd\":null,\"path\":null,",
		"\"dev\":null,\"dev_name\":null,\"inode\":null,",
		"\"offset\":null,\"bytes\":null,\"syscall\":null,\"path_given\":false,",
		"\"start_mono_ns\":null,",
		"\"age_ns\":0,\"state\":null,",
		"\"sleeps\":null,\"slept_ns\":null,",
		"\"kstack\":[]",
		NULL,
	};
	_cleanup_free_ struct buffers *b = calloc(1, sizeof(*b));
	struct text line;

	(void)state;
	data_begin(&b->first, RECORD_STUCK);
	b->first.operation.fd = -1;
	b->first.operation.offset = -1;
	b->first.operation.syscall = -1;
	b->first.operation.sleeps = -1;
	b->first.operation.slept_ns = -1;
	encode(&b->first, b->line_buf, &line);
	assert_members(line.buf, members);
	assert_round_trip(b);
	assert_int_equal(b->second.operation.fd, -1);
	assert_int_equal(b->second.operation.offset, -1);
	/* A line without any of its own members says the same. */
	assert_int_equal(decode("{\"v\":1,\"type\":\"stuck\",\"incident\":\"" DATA_ID "\","
				"\"ts\":\"2026-11-20T03:12:07.123456Z\",\"mono_ns\":5000000000}",
				 &b->first),
		0);
	assert_memory_equal(&b->first, &b->second, sizeof(b->first));
}

static void test_numbers_go_to_their_limits(void **state)
{
	_cleanup_free_ struct buffers *b = calloc(1, sizeof(*b));

	(void)state;
	data_operation(&b->first, RECORD_STALL);
	b->first.operation.inode = UINT64_MAX;
	b->first.operation.ret = INT64_MIN;
	b->first.operation.offset = INT64_MAX;
	b->first.operation.fd = INT32_MAX;
	b->first.operation.dev.major = b->first.operation.dev.minor = UINT32_MAX;
	assert_round_trip(b);
	assert_true(b->second.operation.inode == UINT64_MAX);
	assert_true(b->second.operation.ret == INT64_MIN);
	assert_true(b->second.operation.offset == INT64_MAX);
	assert_true(b->second.operation.dev.minor == UINT32_MAX);
}

static void test_bytes_that_are_not_utf8_fit_again(void **state)
{
	_cleanup_free_ struct buffers *b = calloc(1, sizeof(*b));

	(void)state;
	data_operation(&b->first, RECORD_STALL);
	memset(b->first.operation.path, 0xe9, RECORD_PATH_SIZE - 1);
	b->first.operation.path[RECORD_PATH_SIZE - 1] = '\0';
	assert_round_trip(b);
	assert_int_equal(strlen(b->second.operation.path), RECORD_PATH_SIZE - 1);
	assert_int_equal(b->second.operation.path[7], '\xff');
}

/* Replaces `find` in a good stall line; what then must come back. */
struct change {
	const char *find;
	const char *replace;
	int result;
};

static const struct change changes[] = {
	{ "\"v\":1", "\"v\":2", -EPROTONOSUPPORT },
	{ "\"v\":1", "\"v\":0", -EINVAL },
	{ "\"v\":1", "\"v\":\"1\"", -EINVAL },
	{ "\"v\":1,", "", -EINVAL },
	{ "\"v\":1,", "\"v\":1,\"v\":1,", -EINVAL },
	{ "\"type\":\"stall\"", "\"type\":\"of_tomorrow\"", -EPROTONOSUPPORT },
	{ "\"type\":\"stall\"", "\"type\":7", -EINVAL },
	{ "\"type\":\"stall\",", "", -EINVAL },
	{ DATA_ID, "20261120T031207Z-3F9C", -EINVAL },
	{ DATA_ID, "../../etc/passwd", -EINVAL },
	{ "2026-11-20T03:12:07.123456Z", "2026-11-31T03:12:07.123456Z", -EINVAL },
	{ "2026-11-20T03:12:07.123456Z", "2026-11-20T03:12:60.123456Z", -EINVAL },
	{ "2026-11-20T03:12:07.123456Z", "2026-11-20 03:12:07.123456Z", -EINVAL },
	{ "2026-11-20T03:12:07.123456Z", "2026-11-20T03:12:07.1234567", -EINVAL },
	{ "2026-11-20T03:12:07.123456Z", "1969-11-20T03:12:07.123456Z", -EINVAL },
	{ "2026-11-20T03:12:07.123456Z", "9999-11-20T03:12:07.123456Z", -EINVAL },
	{ "\"mono_ns\":17345000000", "\"mono_ns\":-1", -EINVAL },
	{ "\"mono_ns\":17345000000", "\"mono_ns\":18446744073709551616", -EINVAL },
	{ "\"mono_ns\":17345000000", "\"mono_ns\":1.5", -EINVAL },
	{ "\"pid\":2211", "\"pid\":0", -EINVAL },
	{ "\"pid\":2211", "\"pid\":2147483648", -EINVAL },
	{ "\"pid\":2211", "\"pid\":02211", -EINVAL },
	{ "\"pid\":2211", "\"pid\":null", 0 },
	{ "\"pid\":2211", "\"later\":{\"a\":[1,-2.5e+3,{}],\"b\":\"\\ud83d\\ude00\"}", 0 },
	{ "\"pid\":2211", "\"pid\":2211,\"pid\":2211", -EINVAL },
	{ "\"fd\":23", "\"fd\":-1", -EINVAL },
	{ "\"comm\":\"mariadbd\"", "\"comm\":\"fifteen bytes..\"", 0 },
	{ "\"comm\":\"mariadbd\"", "\"comm\":\"sixteen bytes...\"", -EINVAL },
	{ "\"comm\":\"mariadbd\"", "\"comm\":[\"mariadbd\"]", -EINVAL },
	{ "\"comm\":\"mariadbd\"", "\"comm\":\"a\\u0000b\"", -EINVAL },
	{ "\"comm\":\"mariadbd\"", "\"comm\":\"\\ud83d\"", -EINVAL },
	{ "\"comm\":\"mariadbd\"", "\"comm\":\"\\udc00\"", -EINVAL },
	{ "\"comm\":\"mariadbd\"", "\"comm\":\"\\u 12f\"", -EINVAL },
	{ "\"comm\":\"mariadbd\"", "\"comm\":\"\\u0x1f\"", -EINVAL },
	{ "\"comm\":\"mariadbd\"", "\"comm\":\"\\x41\"", -EINVAL },
	{ "\"comm\":\"mariadbd\"", "\"comm\":\"\x80\"", -EINVAL },
	{ "\"comm\":\"mariadbd\"", "\"comm\":\"\xc0\x80\"", -EINVAL },
	{ "\"comm\":\"mariadbd\"", "\"comm\":\"\xed\xa0\x80\"", -EINVAL },
	{ "\"comm\":\"mariadbd\"", "\"comm\":\"\xf4\x90\x80\x80\"", -EINVAL },
	{ "\"comm\":\"mariadbd\"", "\"comm\":\"\xf0\x9f\x98\x80\"", 0 },
	{ "\"comm\":\"mariadbd\"", "\"comm\":\"tab\there\"", -EINVAL },
	{ "\"path_truncated\":false", "\"path_truncated\":0", -EINVAL },
	{ "\"path_truncated\":false", "\"path_truncated\":falsE", -EINVAL },
	{ "\"dev\":\"8:16\"", "\"dev\":\"8\"", -EINVAL },
	{ "\"dev\":\"8:16\"", "\"dev\":\"8:\"", -EINVAL },
	{ "\"dev\":\"8:16\"", "\"dev\":\"8:16:1\"", -EINVAL },
	{ "\"dev\":\"8:16\"", "\"dev\":\"8:4294967296\"", -EINVAL },
	{ "\"offset\":1048576", "\"offset\":-2", -EINVAL },
	{ "[\"io_schedule+0x12\"", "[\"io_schedule\\n\"", -EINVAL },
	{ "[\"io_schedule+0x12\"", "[\"\"", -EINVAL },
	{ "[\"io_schedule+0x12\"", "[{}", -EINVAL },
	{ "[\"io_schedule+0x12\"", "[,\"a\"", -EINVAL },
	{ "\"kstack_while_blocked\":true,\"alike\":null}", "\"kstack_while_blocked\":true,}",
		-EINVAL },
	{ "\"kstack_while_blocked\":true,\"alike\":null}", "\"kstack_while_blocked\":true}}",
		-EINVAL },
	{ "\"kstack_while_blocked\":true,\"alike\":null}", "\"kstack_while_blocked\":true} ", 0 },
	{ "\"v\":1,", "\"v\":1 , ", 0 },
};

static void test_each_wrong_member_is_refused(void **state)
{
	_cleanup_free_ struct buffers *b = calloc(1, sizeof(*b));
	struct text line, changed;

	(void)state;
	data_operation(&b->first, RECORD_STALL);
	encode(&b->first, b->line_buf, &line);
	line.buf[--line.len] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		const char *at = strstr(line.buf, changes[i].find);

		assert_non_null(at);
		changed = (struct text){ .buf = b->again_buf, .size = RECORD_LINE_SIZE };
		text_add_bytes(&changed, line.buf, (size_t)(at - line.buf));
		text_add(&changed, changes[i].replace);
		text_add(&changed, at + strlen(changes[i].find));
		if (decode(changed.buf, &b->second) != changes[i].result)
			fail_msg("%s instead of %s: not %d", changes[i].replace, changes[i].find,
				changes[i].result);
	}
}

/* The rest of the line is as good as before. */
static void test_a_value_of_a_later_version_is_not_known_and_counted(void **state)
{
	static const char line[] =
		"{\"v\":1,\"type\":\"stall\",\"incident\":\"" DATA_ID "\","
		"\"ts\":\"2026-11-20T03:12:07.123456Z\",\"mono_ns\":5000000000,\"op\":\"teleport\","
		"\"waits_for\":\"a cause with a name that is far longer than any that there is today\","
		"\"pid\":7,\"probe\":\"vfs\",\"backend\":null}";
	_cleanup_free_ struct record *r = malloc(sizeof(*r));

	(void)state;
	assert_int_equal(decode(line, r), 0);
	assert_int_equal(r->unknown_values, 2);
	assert_int_equal(r->operation.op, RECORD_OP_NONE);
	assert_int_equal(r->operation.waits_for, RECORD_CAUSE_NONE);
	assert_int_equal(r->operation.probe, RECORD_PROBE_vfs);
	assert_int_equal(r->operation.pid, 7);
}

static void test_nothing_but_an_object_is_a_record(void **state)
{
	static const char *const lines[] = { "", " ", "null", "[]", "1", "\"\"", "{}", "{", "}",
		"{\"", "nul", "{\"v\":1}", "{\"v\" 1}", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[" };
	_cleanup_free_ struct buffers *b = calloc(1, sizeof(*b));
	_cleanup_free_ char *deep = malloc(200001);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		assert_int_equal(decode(lines[i], &b->first), -EINVAL);
	memset(deep, '[', 200000);
	memcpy(deep, "{\"a\":", 5);
	deep[200000] = '\0';
	assert_int_equal(decode(deep, &b->first), -EINVAL);
}

static void test_a_line_cut_at_any_byte_is_refused(void **state)
{
	_cleanup_free_ struct buffers *b = calloc(1, sizeof(*b));
	struct text line;

	(void)state;
	for (unsigned int type = 0; type < RECORD_TYPE_COUNT; type++) {
		data_any(&b->first, type);
		encode(&b->first, b->line_buf, &line);
		for (size_t len = 0; len < line.len - 1; len++) {
			_cleanup_free_ char *cut = malloc(len ? len : 1);

			memcpy(cut, line.buf, len);
			assert_int_equal(record_decode_json(cut, len, &b->second), -EINVAL);
		}
	}
}

static void test_a_line_with_any_byte_changed_never_breaks(void **state)
{
	_cleanup_free_ struct buffers *b = calloc(1, sizeof(*b));
	struct text line, out;

	(void)state;
	for (unsigned int type = 0; type < RECORD_TYPE_COUNT; type++) {
		data_any(&b->first, type);
		encode(&b->first, b->line_buf, &line);
		for (size_t i = 0; i < line.len - 1; i++) {
			char was = line.buf[i];

			line.buf[i] = (char)(was ^ (1 << i % 8));
			if (record_decode_json(line.buf, line.len - 1, &b->second) == 0) {
				out = (struct text){ .buf = b->again_buf,
					.size = RECORD_LINE_SIZE };
				record_format_text(&b->second, 0, &out);
				assert_false(out.overflow);
			}
			line.buf[i] = was;
		}
	}
}

/* Zeros at the end of a histogram are left out, and come back. */
static void test_counts(void **state)
{
	_cleanup_free_ struct buffers *b = calloc(1, sizeof(*b));
	const char *histogram;
	struct text line;

	(void)state;
	data_device(&b->first);
	memset(b->first.device.queue_histogram, 0, sizeof(b->first.device.queue_histogram));
	b->first.device.device_histogram[RECORD_HISTOGRAM_MAX - 1] = UINT64_MAX;
	encode(&b->first, b->line_buf, &line);
	assert_non_null(
		strstr(line.buf, "\"queue_histogram\":[],\"device_histogram\":[0,1,0,0,1233,0,"));
	assert_non_null(strstr(line.buf, ",0,18446744073709551615],\"in_flight\":12,"));
	assert_int_equal(record_decode_json(line.buf, line.len - 1, &b->second), 0);
	assert_memory_equal(&b->first, &b->second, sizeof(b->first));
	/* One more than there is room for. */
	histogram = strstr(line.buf, "[0,1,");
	memmove(line.buf + (histogram - line.buf) + 3, histogram + 1,
		line.len - (size_t)(histogram - line.buf));
	memcpy(line.buf + (histogram - line.buf), "[0,", 3);
	assert_int_equal(record_decode_json(line.buf, line.len + 1, &b->second), -EINVAL);
}

static void test_ids(void **state)
{
	char id[RECORD_ID_SIZE];

	(void)state;
	record_make_id(DATA_REAL_NS, 0xabc3f9c, id);
	assert_string_equal(id, DATA_ID);
	assert_true(record_id_is_valid(id, strlen(id)));
	assert_false(record_id_is_valid(id, strlen(id) - 1));
	assert_true(record_id_real_ns(id) == DATA_REAL_NS / NSEC_PER_SEC * NSEC_PER_SEC);
	assert_true(record_id_real_ns("99999999T999999Z-0000") == 0);
	assert_true(record_file_name_is_valid(DATA_ID ".jsonl"));
	assert_false(record_file_name_is_valid(DATA_ID ".jsonl.part"));
	assert_false(record_file_name_is_valid("." DATA_ID ".jsonl"));
	assert_false(record_file_name_is_valid(DATA_ID ".json"));
	assert_false(record_file_name_is_valid("20261120T031207z-3f9c.jsonl"));
	assert_false(record_file_name_is_valid("20261120T031207Z-3f9C.jsonl"));
	assert_false(record_file_name_is_valid("0026112xT031207Z-3f9c.jsonl"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_records_round_trip),
		cmocka_unit_test(test_a_settled_line_is_what_is_read_back),
		cmocka_unit_test(test_plain_records_round_trip_member_by_member),
		cmocka_unit_test(test_the_worst_line_fits),
		cmocka_unit_test(test_a_stall_has_these_members),
		cmocka_unit_test(test_a_close_is_exactly_this_line),
		cmocka_unit_test(test_what_is_not_known_is_null),
		cmocka_unit_test(test_numbers_go_to_their_limits),
		cmocka_unit_test(test_bytes_that_are_not_utf8_fit_again),
		cmocka_unit_test(test_each_wrong_member_is_refused),
		cmocka_unit_test(test_a_value_of_a_later_version_is_not_known_and_counted),
		cmocka_unit_test(test_nothing_but_an_object_is_a_record),
		cmocka_unit_test(test_a_line_cut_at_any_byte_is_refused),
		cmocka_unit_test(test_a_line_with_any_byte_changed_never_breaks),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
