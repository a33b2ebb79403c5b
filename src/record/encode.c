/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "record/fields.h"
#include "util/clock.h"

/* 31 years: up to there a double tells milliseconds with three decimals apart. */
#define MS_MAX_NS (1000000000000000000ULL)

_Static_assert(RECORD_TIME_SIZE == CLOCK_RFC3339_SIZE, "a time of a line fits exactly");

static void encode_fields(const struct field *fields, const char *base, struct text *t);

static void encode_text(struct text *t, const char *key, const char *s, size_t size)
{
	/* Never more than the decoder has room for. */
	size_t len = strnlen(s, size > 1 ? size - 1 : size);

	if (len == 0)
		text_json_null(t, key);
	else
		text_json_string_bytes(t, key, s, len);
}

static void encode_lines(struct text *t, const char *key, const char *s, size_t size)
{
	const char *end = s + strnlen(s, size);

	text_json_open(t, key, '[');
	while (s < end) {
		const char *newline = memchr(s, '\n', (size_t)(end - s));
		const char *line_end = newline ? newline : end;

		if (line_end > s)
			text_json_string_bytes(t, NULL, s, (size_t)(line_end - s));
		s = line_end + 1;
	}
	text_json_close(t, ']');
}

static void encode_i64_known(struct text *t, const char *key, int64_t value, bool known)
{
	if (known)
		text_json_i64(t, key, value);
	else
		text_json_null(t, key);
}

static void encode_ms(struct text *t, const char *key, uint64_t value_ns)
{
	uint64_t us = (value_ns < MS_MAX_NS ? value_ns : MS_MAX_NS) / NSEC_PER_USEC;

	/* text_json_real() has two decimals, too few for an attach of half a millisecond. */
	text_json_u64(t, key, us / 1000);
	text_addf(t, ".%03u", (unsigned int)(us % 1000));
}

static void encode_dev(struct text *t, const char *key, const struct record_dev *value)
{
	char dev[24];

	if (value->major == 0 && value->minor == 0) {
		text_json_null(t, key);
		return;
	}
	snprintf(dev, sizeof(dev), "%" PRIu32 ":%" PRIu32, value->major, value->minor);
	text_json_string(t, key, dev);
}

static void encode_object(struct text *t, const struct field *f, const char *value)
{
	if (f->nullable && !*(const bool *)(const void *)value) {
		text_json_null(t, f->key);
		return;
	}
	text_json_open(t, f->key, '{');
	encode_fields(f->members, value, t);
	text_json_close(t, '}');
}

static void encode_counts(struct text *t, const struct field *f, const char *value)
{
	const uint64_t *counts = (const void *)value;
	size_t count = f->count_max;

	while (count > 0 && counts[count - 1] == 0)
		count--;
	text_json_open(t, f->key, '[');
	for (size_t i = 0; i < count; i++)
		text_json_u64(t, NULL, counts[i]);
	text_json_close(t, ']');
}

static void encode_choice(struct text *t, const struct field *f, const void *value)
{
	unsigned int i = *(const unsigned int *)value;

	if (i > 0 && i < f->values->count)
		text_json_string(t, f->key, f->values->values[i].text);
	else
		text_json_null(t, f->key);
}

static void encode_each(struct text *t, const struct field *f, const void *value)
{
	const uint64_t *numbers = value;

	text_json_open(t, f->key, '{');
	for (unsigned int i = 1; i < f->values->count; i++)
		text_json_u64(t, f->values->values[i].text, numbers[i]);
	text_json_close(t, '}');
}

static void encode_array(struct text *t, const struct field *f, const char *base)
{
	uint32_t count;

	memcpy(&count, base + f->count_offset, sizeof(count));
	text_json_open(t, f->key, '[');
	for (size_t i = 0; i < count && i < f->count_max; i++) {
		text_json_open(t, NULL, '{');
		encode_fields(f->members, base + f->offset + i * f->size, t);
		text_json_close(t, '}');
	}
	text_json_close(t, ']');
}

static void encode_u64(struct text *t, const struct field *f, uint64_t value)
{
	if (f->nullable && value == 0)
		text_json_null(t, f->key);
	else
		text_json_u64(t, f->key, value);
}

static void encode_number(struct text *t, const struct field *f, const void *value)
{
	switch (f->kind) {
	case FIELD_U32:
		encode_u64(t, f, *(const uint32_t *)value);
		break;
	case FIELD_U64:
		encode_u64(t, f, *(const uint64_t *)value);
		break;
	case FIELD_RESULT:
		encode_i64_known(t, f->key, *(const int64_t *)value,
			*(const int64_t *)value != RECORD_RET_UNKNOWN);
		break;
	case FIELD_PID:
		encode_i64_known(t, f->key, *(const int32_t *)value, *(const int32_t *)value > 0);
		break;
	case FIELD_INDEX:
		encode_i64_known(t, f->key, *(const int32_t *)value, *(const int32_t *)value >= 0);
		break;
	case FIELD_INDEX64:
		encode_i64_known(t, f->key, *(const int64_t *)value, *(const int64_t *)value >= 0);
		break;
	case FIELD_REAL:
		text_json_real(t, f->key, *(const double *)value);
		break;
	default:
		encode_ms(t, f->key, *(const uint64_t *)value);
		break;
	}
}

static void encode_field(struct text *t, const struct field *f, const char *base)
{
	const char *value = base + f->offset;

	switch (f->kind) {
	case FIELD_TEXT:
	case FIELD_CHAR:
		encode_text(t, f->key, value, f->size);
		break;
	case FIELD_LINES:
		encode_lines(t, f->key, value, f->size);
		break;
	case FIELD_BOOL:
		text_json_bool(t, f->key, *(const bool *)(const void *)value);
		break;
	case FIELD_CHOICE:
		encode_choice(t, f, value);
		break;
	case FIELD_EACH:
		encode_each(t, f, value);
		break;
	case FIELD_DEV:
		encode_dev(t, f->key, (const void *)value);
		break;
	case FIELD_OBJECT:
		encode_object(t, f, value);
		break;
	case FIELD_PART:
		encode_fields(f->members, value, t);
		break;
	case FIELD_COUNTS:
		encode_counts(t, f, value);
		break;
	case FIELD_ARRAY:
		encode_array(t, f, base);
		break;
	default:
		encode_number(t, f, value);
		break;
	}
}

static void encode_fields(const struct field *fields, const char *base, struct text *t)
{
	for (const struct field *f = fields; f->key; f++)
		encode_field(t, f, base);
}

void record_encode_json(const struct record *r, struct text *line)
{
	const struct field_type *type = &record_types[r->type];
	struct record_common common = {
		.v = RECORD_VERSION,
		.seq = r->seq,
		.mono_ns = record_line_mono_ns(r),
	};

	text_copy(common.type, sizeof(common.type), type->name);
	memcpy(common.incident, r->incident, sizeof(common.incident));
	clock_format_rfc3339(record_line_real_ns(r), common.ts, sizeof(common.ts));
	text_reset(line);
	text_json_open(line, NULL, '{');
	/* Retention knows our files by the first three, in their order. */
	encode_fields(record_common, (const char *)&common, line);
	encode_fields(type->fields, (const char *)r + type->offset, line);
	text_json_close(line, '}');
	text_add(line, "\n");
}
