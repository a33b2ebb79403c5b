/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "record/fields.h"
#include "util/clock.h"

/* 31 years: up to there a double tells milliseconds with three decimals apart. */
#define MS_MAX_NS (1000000000000000000ULL)

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

static void encode_dev(struct text *t, const char *key, const uint32_t *major_minor)
{
	char dev[24];

	if (major_minor[0] == 0 && major_minor[1] == 0) {
		text_json_null(t, key);
		return;
	}
	snprintf(dev, sizeof(dev), "%" PRIu32 ":%" PRIu32, major_minor[0], major_minor[1]);
	text_json_string(t, key, dev);
}

static void encode_object(struct text *t, const struct field *f, const char *value)
{
	if (f->kind == FIELD_OPTIONAL && !*(const bool *)(const void *)value) {
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

static void encode_number(struct text *t, const struct field *f, const void *value)
{
	switch (f->kind) {
	case FIELD_U32:
		text_json_u64(t, f->key, *(const uint32_t *)value);
		break;
	case FIELD_U32_KNOWN:
		encode_i64_known(t, f->key, *(const uint32_t *)value,
			*(const uint32_t *)value != 0);
		break;
	case FIELD_U64:
		text_json_u64(t, f->key, *(const uint64_t *)value);
		break;
	case FIELD_U64_KNOWN:
		if (*(const uint64_t *)value)
			text_json_u64(t, f->key, *(const uint64_t *)value);
		else
			text_json_null(t, f->key);
		break;
	case FIELD_I64_KNOWN:
		encode_i64_known(t, f->key, *(const int64_t *)value,
			*(const int64_t *)value != INT64_MIN);
		break;
	case FIELD_PID:
		encode_i64_known(t, f->key, *(const int32_t *)value, *(const int32_t *)value > 0);
		break;
	case FIELD_FD:
		encode_i64_known(t, f->key, *(const int32_t *)value, *(const int32_t *)value >= 0);
		break;
	case FIELD_OFFSET:
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
	case FIELD_SINCE:
		text_json_string(t, f->key,
			*(const bool *)(const void *)value ? "before_arm" : "after_arm");
		break;
	case FIELD_DEV:
		encode_dev(t, f->key, (const void *)value);
		break;
	case FIELD_OBJECT:
	case FIELD_OPTIONAL:
		encode_object(t, f, value);
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
	char ts[CLOCK_RFC3339_SIZE];

	text_reset(line);
	clock_format_rfc3339(record_line_real_ns(r), ts, sizeof(ts));
	text_json_open(line, NULL, '{');
	/* Retention knows our files by these three, in this order. */
	text_json_u64(line, "v", RECORD_VERSION);
	text_json_string(line, "type", record_type_name(r->type));
	encode_text(line, "incident", r->incident, sizeof(r->incident));
	text_json_string(line, "ts", ts);
	text_json_u64(line, "mono_ns", record_line_mono_ns(r));
	encode_fields(record_fields[r->type], (const char *)r, line);
	text_json_close(line, '}');
	text_add(line, "\n");
}
