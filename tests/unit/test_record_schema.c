/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Every field of every line type, by its table: a new one is tested without being named here. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "test_record_data.h"
#include "util/cleanup.h"

struct buffers {
	struct record first;
	struct record second;
	char line_buf[RECORD_LINE_SIZE];
	char again_buf[RECORD_LINE_SIZE];
};

/* A value that is known, and another one for each n. */
static void fill_field(const struct field *f, char *base, unsigned int n)
{
	void *value = base + f->offset;
	uint32_t count = (uint32_t)f->count_max;

	switch (f->kind) {
	case FIELD_TEXT:
		snprintf(value, f->size, "t%u", n);
		break;
	case FIELD_CHAR:
		*(char *)value = (char)('A' + n % 26);
		break;
	case FIELD_LINES:
		snprintf(value, f->size, "frame+%u\nframe", n);
		break;
	case FIELD_BOOL:
		*(bool *)value = n % 2;
		break;
	case FIELD_U32:
	case FIELD_INDEX:
	case FIELD_PID:
		*(uint32_t *)value = n;
		break;
	case FIELD_U64:
	case FIELD_INDEX64:
	case FIELD_RESULT:
		*(uint64_t *)value = n;
		break;
	case FIELD_REAL:
		*(double *)value = n + 0.25;
		break;
	case FIELD_MS:
		*(uint64_t *)value = n * NSEC_PER_USEC;
		break;
	case FIELD_DEV:
		*(struct record_dev *)value = (struct record_dev){ n, n + 1 };
		break;
	case FIELD_CHOICE:
		*(unsigned int *)value = 1 + n % (f->values->count - 1);
		break;
	case FIELD_EACH:
		for (unsigned int i = 1; i < f->values->count; i++)
			((uint64_t *)value)[i] = n + i;
		break;
	case FIELD_COUNTS:
		for (size_t i = 0; i < f->count_max; i++)
			((uint64_t *)value)[i] = n + i;
		break;
	case FIELD_ARRAY:
		memcpy(base + f->count_offset, &count, sizeof(count));
		break;
	case FIELD_OBJECT:
		if (f->nullable)
			*(bool *)value = true;
		break;
	case FIELD_PART:
		break;
	}
}

static void fill(const struct field *fields, char *base, unsigned int *n)
{
	for (const struct field *f = fields; f->key; f++) {
		fill_field(f, base, ++*n);
		if (f->kind == FIELD_ARRAY)
			for (size_t i = 0; i < f->count_max; i++)
				fill(f->members, base + f->offset + i * f->size, n);
		else if (f->members)
			fill(f->members, base + f->offset, n);
	}
}

static void fill_record(struct record *r, enum record_type type)
{
	unsigned int n = 0;

	data_begin(r, type);
	r->seq = 4711;
	if (type == RECORD_SAMPLE) {
		r->sample.reading.real_ns = r->real_ns;
		r->sample.reading.mono_ns = r->mono_ns;
	}
	fill(record_types[type].fields, data_object(r), &n);
}

/* The first buffer as a line in line_buf, which gives exactly the same record back. */
static void assert_round_trip(struct buffers *b)
{
	struct text line = { .buf = b->line_buf, .size = RECORD_LINE_SIZE };

	record_encode_json(&b->first, &line);
	assert_false(line.overflow);
	assert_int_equal(record_decode_json(line.buf, line.len - 1, &b->second), 0);
	assert_memory_equal(&b->first, &b->second, sizeof(b->first));
}

static void assert_has_keys(const struct field *fields, const char *line)
{
	for (const struct field *f = fields; f->key; f++) {
		char key[80];

		snprintf(key, sizeof(key), "\"%s\":", f->key);
		if (f->kind != FIELD_PART && !strstr(line, key))
			fail_msg("%s is not in %s", key, line);
		if (f->members)
			assert_has_keys(f->members, line);
	}
}

static void test_every_field_comes_back(void **state)
{
	_cleanup_free_ struct buffers *b = calloc(1, sizeof(*b));

	(void)state;
	for (unsigned int type = 0; type < RECORD_TYPE_COUNT; type++) {
		fill_record(&b->first, type);
		assert_round_trip(b);
		assert_has_keys(record_common, b->line_buf);
		assert_has_keys(record_types[type].fields, b->line_buf);
	}
}

/* What the decoder leaves in a field that is null. */
static void make_unknown(const struct field *f, char *base)
{
	void *value = base + f->offset;

	if (f->kind == FIELD_REAL)
		*(double *)value = NAN;
	else if (f->kind == FIELD_INDEX)
		*(int32_t *)value = -1;
	else if (f->kind == FIELD_INDEX64)
		*(int64_t *)value = -1;
	else if (f->kind == FIELD_RESULT)
		*(int64_t *)value = RECORD_RET_UNKNOWN;
	else
		memset(value, 0, f->size);
	for (const struct field *m = f->members; m && m->key; m++)
		make_unknown(m, value);
}

/* One field after the other: it is null, and nothing else is another than before. */
static void check_unknown(struct buffers *b, const struct field *fields, char *base)
{
	_cleanup_free_ struct record *before = malloc(sizeof(*before));

	for (const struct field *f = fields; f->key; f++) {
		char null[80];

		if (f->members)
			check_unknown(b, f->members, base + f->offset);
		if (!f->nullable)
			continue;
		*before = b->first;
		make_unknown(f, base);
		assert_round_trip(b);
		snprintf(null, sizeof(null), "\"%s\":null", f->key);
		assert_non_null(strstr(b->line_buf, null));
		b->first = *before;
	}
}

static void test_every_field_may_be_unknown_that_says_so(void **state)
{
	_cleanup_free_ struct buffers *b = calloc(1, sizeof(*b));

	(void)state;
	for (unsigned int type = 0; type < RECORD_TYPE_COUNT; type++) {
		fill_record(&b->first, type);
		check_unknown(b, record_types[type].fields, data_object(&b->first));
	}
}

static unsigned int check_table(const struct field *fields)
{
	unsigned int count = 0;

	for (const struct field *f = fields; f->key; f++) {
		size_t len = strlen(f->help);

		for (const struct field *other = fields; other < f; other++)
			assert_string_not_equal(other->key, f->key);
		if (f->kind != FIELD_PART && (len == 0 || f->help[len - 1] != '.'))
			fail_msg("the help of %s is no sentence: %s", f->key, f->help);
		if (f->kind == FIELD_PART)
			count += check_table(f->members);
		else if (f->members)
			(void)check_table(f->members);
		count += f->kind != FIELD_PART;
	}
	/* The decoder notes in the bits of a word which it has seen. */
	assert_in_range(count, 1, 64);
	return count;
}

static void test_tables(void **state)
{
	(void)state;
	check_table(record_common);
	for (unsigned int type = 0; type < RECORD_TYPE_COUNT; type++) {
		assert_true(record_types[type].help[0]);
		check_table(record_types[type].fields);
	}
}

static void test_enums(void **state)
{
	static const struct record_enum *const enums[] = {
#define ENUM(name, NAME, help) &record_##name##_enum,
#define VALUE(NAME, id, text, help)
#define ENUM_END(NAME)
#include "record/enums.def"
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(enums); i++) {
		const struct record_enum *e = enums[i];

		assert_string_equal(e->values[0].text, "");
		assert_int_equal(record_enum_find(e, ""), 0);
		assert_int_equal(record_enum_find(e, "of tomorrow"), 0);
		assert_in_range(e->count, 2, 64);
		for (unsigned int v = 1; v < e->count; v++) {
			/* Each text is that of one value only, and each value is explained. */
			assert_int_equal(record_enum_find(e, e->values[v].text), v);
			assert_true(e->values[v].help[0]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_field_comes_back),
		cmocka_unit_test(test_every_field_may_be_unknown_that_says_so),
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_enums),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
