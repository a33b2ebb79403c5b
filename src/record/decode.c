/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "record/fields.h"
#include "record/scan.h"
#include "util/clock.h"
#include "util/parse.h"

#define KEY_SIZE 64

struct decoder {
	struct scan s;
	uint32_t unknown_values;
};

static int decode_fields(const struct field *fields, struct decoder *d, char *base);

static int decode_char(struct scan *s, char *ret_char)
{
	char one[2];

	if (scan_string(s, one, sizeof(one)) < 0)
		return -EINVAL;
	*ret_char = one[0];
	return 0;
}

static int decode_lines(struct scan *s, char *dst, size_t size)
{
	size_t len = 0;
	bool first = true;
	int r;

	if (scan_open(s, '[') < 0)
		return -EINVAL;
	while ((r = scan_next(s, '[', &first)) > 0) {
		if (len > 0 && len + 2 >= size)
			return -EINVAL;
		if (len > 0)
			dst[len++] = '\n';
		/* A newline is what stands between the elements, so none has one inside. */
		if (scan_string(s, dst + len, size - len) < 0 || dst[len] == '\0' ||
			strchr(dst + len, '\n'))
			return -EINVAL;
		len += strlen(dst + len);
	}
	return r;
}

static int decode_u32(struct scan *s, uint32_t *ret_value)
{
	uint64_t value;

	if (scan_u64(s, &value) < 0 || value > UINT32_MAX)
		return -EINVAL;
	*ret_value = (uint32_t)value;
	return 0;
}

static int decode_i32(struct scan *s, int32_t min, int32_t *ret_value)
{
	int64_t value;

	if (scan_i64(s, &value) < 0 || value < min || value > INT32_MAX)
		return -EINVAL;
	*ret_value = (int32_t)value;
	return 0;
}

static int decode_index64(struct scan *s, int64_t *ret_value)
{
	int64_t value;

	if (scan_i64(s, &value) < 0 || value < 0)
		return -EINVAL;
	*ret_value = value;
	return 0;
}

static int decode_ms(struct scan *s, uint64_t *ret_ns)
{
	double ms;

	if (scan_real(s, &ms) < 0 || ms < 0 || ms > 1e12)
		return -EINVAL;
	*ret_ns = (uint64_t)(ms * 1000 + 0.5) * NSEC_PER_USEC;
	return 0;
}

static int decode_dev(struct scan *s, struct record_dev *ret_dev)
{
	char text[sizeof("4294967295:4294967295")];
	uint64_t major, minor;
	struct cursor c;

	if (scan_string(s, text, sizeof(text)) < 0)
		return -EINVAL;
	c = (struct cursor){ text, text + strlen(text) };
	if (cursor_u64(&c, &major) < 0 || major > UINT32_MAX || *c.p++ != ':')
		return -EINVAL;
	if (cursor_u64(&c, &minor) < 0 || minor > UINT32_MAX || c.p != c.end)
		return -EINVAL;
	ret_dev->major = (uint32_t)major;
	ret_dev->minor = (uint32_t)minor;
	return 0;
}

/* What a later version says cannot be told: the line is kept, and the value counted. */
static int decode_choice(const struct field *f, struct decoder *d, unsigned int *ret_value)
{
	char text[KEY_SIZE];

	if (scan_string_cut(&d->s, text, sizeof(text)) < 0)
		return -EINVAL;
	*ret_value = record_enum_find(f->values, text);
	if (*ret_value == 0)
		d->unknown_values++;
	return 0;
}

static int decode_each(const struct field *f, struct decoder *d, uint64_t *numbers)
{
	uint64_t seen = 0;
	char key[KEY_SIZE];
	bool first = true;
	int r;

	if (scan_open(&d->s, '{') < 0)
		return -EINVAL;
	while ((r = scan_next(&d->s, '{', &first)) > 0) {
		unsigned int i;

		if (scan_key(&d->s, key, sizeof(key)) < 0)
			return -EINVAL;
		i = record_enum_find(f->values, key);
		if (i && (seen & 1ULL << i))
			return -EINVAL;
		seen |= 1ULL << i;
		r = i ? scan_u64(&d->s, &numbers[i]) : scan_skip(&d->s);
		if (r < 0)
			return r;
	}
	return r;
}

static int decode_counts(const struct field *f, struct scan *s, uint64_t *counts)
{
	size_t count = 0;
	bool first = true;
	int r;

	if (scan_open(s, '[') < 0)
		return -EINVAL;
	while ((r = scan_next(s, '[', &first)) > 0)
		if (count == f->count_max || scan_u64(s, &counts[count++]) < 0)
			return -EINVAL;
	return r;
}

static int decode_array(const struct field *f, struct decoder *d, char *base)
{
	struct scan *s = &d->s;
	uint32_t count = 0;
	bool first = true;
	int r;

	if (scan_open(s, '[') < 0)
		return -EINVAL;
	while ((r = scan_next(s, '[', &first)) > 0) {
		if (count == f->count_max)
			return -EINVAL;
		r = decode_fields(f->members, d, base + f->offset + count++ * f->size);
		if (r < 0)
			return r;
	}
	memcpy(base + f->count_offset, &count, sizeof(count));
	return r;
}

static int decode_number(const struct field *f, struct scan *s, void *value)
{
	switch (f->kind) {
	case FIELD_U32:
		return decode_u32(s, value);
	case FIELD_U64:
		return scan_u64(s, value);
	case FIELD_RESULT:
		return scan_i64(s, value);
	case FIELD_INDEX64:
		return decode_index64(s, value);
	case FIELD_PID:
		return decode_i32(s, 1, value);
	case FIELD_INDEX:
		return decode_i32(s, 0, value);
	case FIELD_REAL:
		return scan_real(s, value);
	default:
		return decode_ms(s, value);
	}
}

static int decode_object(const struct field *f, struct decoder *d, void *value)
{
	if (f->nullable)
		*(bool *)value = true;
	return decode_fields(f->members, d, value);
}

static int decode_field(const struct field *f, struct decoder *d, char *base)
{
	struct scan *s = &d->s;
	void *value = base + f->offset;

	if (scan_peek(s) == 'n')
		return scan_null(s);
	switch (f->kind) {
	case FIELD_TEXT:
		return scan_string(s, value, f->size);
	case FIELD_CHAR:
		return decode_char(s, value);
	case FIELD_LINES:
		return decode_lines(s, value, f->size);
	case FIELD_BOOL:
		return scan_bool(s, value);
	case FIELD_CHOICE:
		return decode_choice(f, d, value);
	case FIELD_EACH:
		return decode_each(f, d, value);
	case FIELD_DEV:
		return decode_dev(s, value);
	case FIELD_OBJECT:
		return decode_object(f, d, value);
	case FIELD_COUNTS:
		return decode_counts(f, s, value);
	case FIELD_ARRAY:
		return decode_array(f, d, base);
	default:
		return decode_number(f, s, value);
	}
}

/* What a member says when the line does not; all else is 0 in the zeroed structure. */
static void decode_nothing(const struct field *fields, char *base)
{
	for (const struct field *f = fields; f->key; f++) {
		void *value = base + f->offset;

		if (f->kind == FIELD_INDEX)
			*(int32_t *)value = -1;
		else if (f->kind == FIELD_INDEX64)
			*(int64_t *)value = -1;
		else if (f->kind == FIELD_RESULT)
			*(int64_t *)value = RECORD_RET_UNKNOWN;
		else if (f->kind == FIELD_REAL)
			*(double *)value = NAN;
		else if (f->kind == FIELD_OBJECT || f->kind == FIELD_PART)
			decode_nothing(f->members, value);
	}
}

/*
 * A field of an object, or of a part of it: `base` is that of its struct, `index` counts them all.
 */
struct found {
	const struct field *field;
	char *base;
	unsigned int index;
};

static bool find_field(const struct field *fields, char *base, const char *key,
	struct found *ret_found)
{
	for (const struct field *f = fields; f->key; f++) {
		if (f->kind == FIELD_PART) {
			if (find_field(f->members, base + f->offset, key, ret_found))
				return true;
		} else if (strcmp(f->key, key) == 0) {
			ret_found->field = f;
			ret_found->base = base;
			return true;
		} else {
			ret_found->index++;
		}
	}
	return false;
}

static int decode_fields(const struct field *fields, struct decoder *d, char *base)
{
	struct scan *s = &d->s;
	uint64_t seen = 0;
	char key[KEY_SIZE];
	bool first = true;
	int r;

	decode_nothing(fields, base);
	if (scan_open(s, '{') < 0)
		return -EINVAL;
	while ((r = scan_next(s, '{', &first)) > 0) {
		struct found found = { 0 };

		if (scan_key(s, key, sizeof(key)) < 0)
			return -EINVAL;
		if (!find_field(fields, base, key, &found)) {
			r = scan_skip(s);
		} else {
			/* The same key twice could say two things. */
			if (seen & 1ULL << found.index)
				return -EINVAL;
			seen |= 1ULL << found.index;
			r = decode_field(found.field, d, found.base);
		}
		if (r < 0)
			return r;
	}
	return r;
}

static int decode_ts(const char *ts, uint64_t *ret_real_ns)
{
	char again[CLOCK_RFC3339_SIZE];
	uint64_t sec, usec = 0;
	struct tm tm = { 0 };
	struct cursor c;
	const char *rest;

	rest = strptime(ts, "%Y-%m-%dT%H:%M:%S.", &tm);
	if (!rest)
		return -EINVAL;
	c = (struct cursor){ rest, rest + strlen(rest) };
	if (cursor_u64(&c, &usec) < 0 || usec >= NSEC_PER_SEC / NSEC_PER_USEC)
		return -EINVAL;
	/* Before 1970 this wraps to what is too large. */
	sec = (uint64_t)timegm(&tm);
	if (sec > UINT64_MAX / NSEC_PER_SEC - 1)
		return -EINVAL;
	*ret_real_ns = sec * NSEC_PER_SEC + usec * NSEC_PER_USEC;
	/* strptime() takes blanks, leap seconds and the 31st of every month. */
	clock_format_rfc3339(*ret_real_ns, again, sizeof(again));
	return strcmp(ts, again) == 0 ? 0 : -EINVAL;
}

static int decode_type(const char *name, enum record_type *ret_type)
{
	for (unsigned int i = 0; i < RECORD_TYPE_COUNT; i++) {
		if (strcmp(name, record_type_name(i)) == 0) {
			*ret_type = i;
			return 0;
		}
	}
	return *name ? -EPROTONOSUPPORT : -EINVAL;
}

/* What a later version writes is told from what nobody wrote. */
static int decode_common(struct decoder d, struct record *ret_record)
{
	struct record_common common = { 0 };

	if (decode_fields(record_common, &d, (char *)&common) < 0 || !scan_is_at_end(&d.s))
		return -EINVAL;
	if (common.v < 1 || decode_ts(common.ts, &ret_record->real_ns) < 0)
		return -EINVAL;
	if (!record_id_is_valid(common.incident, strlen(common.incident)))
		return -EINVAL;
	memcpy(ret_record->incident, common.incident, sizeof(ret_record->incident));
	ret_record->seq = common.seq;
	ret_record->mono_ns = common.mono_ns;
	if (common.v > RECORD_VERSION)
		return -EPROTONOSUPPORT;
	return decode_type(common.type, &ret_record->type);
}

int record_decode_json(const char *line, size_t len, struct record *ret_record)
{
	struct decoder d = { .s = { line, line + len } };
	const struct field_type *type;
	int r;

	memset(ret_record, 0, sizeof(*ret_record));
	/*
	 * Once for the type, which may stand anywhere, and for the syntax; once for the type's
	 * members.
	 */
	r = decode_common(d, ret_record);
	if (r < 0)
		return r;
	type = &record_types[ret_record->type];
	r = decode_fields(type->fields, &d, (char *)ret_record + type->offset);
	if (r < 0)
		return r;
	ret_record->unknown_values = d.unknown_values;
	if (ret_record->type == RECORD_SAMPLE) {
		ret_record->sample.reading.mono_ns = ret_record->mono_ns;
		ret_record->sample.reading.real_ns = ret_record->real_ns;
	}
	return 0;
}
