/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/fields.h"

#include "util/cleanup.h"

/* It is encoded and decoded through a pointer to unsigned int. */
_Static_assert(sizeof(enum record_op) == sizeof(unsigned int), "an enum is an unsigned int");

/* clang-format off */
#define CONCAT(a, b) CONCAT_(a, b)
#define CONCAT_(a, b) a##b
#define STRUCT struct CONCAT(record_, OBJECT)

#define ROW(kind_, null_, name, key_, help_, ...) \
	{ .key = key_, .help = help_, .kind = FIELD_##kind_, .nullable = null_, \
	  .offset = offsetof(STRUCT, name), .size = sizeof(((STRUCT *)NULL)->name), __VA_ARGS__ },

#include "record/rows_none.h"
#define BEGIN static const struct field TABLE[] = {
#define BEGIN_OPTIONAL BEGIN
#define END { .key = NULL } };
#define TEXT(name, size_, help) ROW(TEXT, false, name, #name, help)
#define TEXT_KNOWN(name, size_, help) ROW(TEXT, true, name, #name, help)
#define CHAR_KNOWN(name, help) ROW(CHAR, true, name, #name, help)
#define LINES(name, size_, help) ROW(LINES, false, name, #name, help)
#define BOOL(name, help) ROW(BOOL, false, name, #name, help)
#define U32(name, help) ROW(U32, false, name, #name, help)
#define U32_KNOWN(name, help) ROW(U32, true, name, #name, help)
#define U64(name, help) ROW(U64, false, name, #name, help)
#define U64_KNOWN(name, help) ROW(U64, true, name, #name, help)
#define INDEX_KNOWN(name, help) ROW(INDEX, true, name, #name, help)
#define INDEX64_KNOWN(name, help) ROW(INDEX64, true, name, #name, help)
#define PID_KNOWN(name, help) ROW(PID, true, name, #name, help)
#define RESULT_KNOWN(name, help) ROW(RESULT, true, name, #name, help)
#define REAL(name, help) ROW(REAL, false, name, #name, help)
#define REAL_KNOWN(name, help) ROW(REAL, true, name, #name, help)
#define MS(name, help) ROW(MS, false, name##_ns, #name "_ms", help)
#define MS_OF(name, help) ROW(MS, false, name##_ns, #name, help)
#define DEV_KNOWN(name, help) ROW(DEV, true, name, #name, help)
#define CHOICE(name, e, help) ROW(CHOICE, false, name, #name, help, .values = &record_##e##_enum)
#define CHOICE_KNOWN(name, e, help) \
	ROW(CHOICE, true, name, #name, help, .values = &record_##e##_enum)
#define EACH(name, e, E, help) ROW(EACH, false, name, #name, help, .values = &record_##e##_enum)
#define COUNTS(name, max, help) ROW(COUNTS, false, name, #name, help, .count_max = max)
#define SUB(name, object, help) \
	ROW(OBJECT, false, name, #name, help, .members = record_##object##_fields)
#define SUB_KNOWN(name, object, help) \
	ROW(OBJECT, true, name, #name, help, .members = record_##object##_fields)
#define SUB_MS(name, object, help) \
	ROW(OBJECT, false, name, #name "_ms", help, .members = record_##object##_fields)
#define PART(name, object) ROW(PART, false, name, #name, "", .members = record_##object##_fields)
#define ARRAY(name, max, object, help_) \
	{ .key = #name, .help = help_, .kind = FIELD_ARRAY, .offset = offsetof(STRUCT, name), \
	  .size = sizeof(struct record_##object), .members = record_##object##_fields, \
	  .count_offset = offsetof(STRUCT, name##_count), .count_max = max },
#define HIDDEN(type, name)
#define ALIAS_U64(key, member, help) ROW(U64, false, member, #key, help)
#define TYPE(T, name, object, help)
#define TYPE_TOO(T, name, object, help)

#define TABLE CONCAT(record_, CONCAT(OBJECT, _fields))
#define ON_STALL(...) __VA_ARGS__
#define ON_STUCK(...)
#include "record/schema.def"

#undef TABLE
#undef ON_STALL
#undef ON_STUCK
#define TABLE record_stuck_fields
#define ON_STALL(...)
#define ON_STUCK(...) __VA_ARGS__
#include "record/operation.def"

/* The rows of a `stall` line fit. */
#define record_error_fields record_operation_fields

#include "record/rows_empty.h"
#undef TYPE
#undef TYPE_TOO
#define TYPE_ROW(T, name_, object, fields_, help_) \
	[RECORD_##T] = { .name = #name_, .help = help_, .fields = fields_, \
		.offset = offsetof(struct record, object), .size = sizeof(struct record_##object) },
#define TYPE(T, name, object, help) TYPE_ROW(T, name, object, record_##object##_fields, help)
#define TYPE_TOO(T, name, object, help) TYPE_ROW(T, name, object, record_##name##_fields, help)

const struct field_type record_types[RECORD_TYPE_COUNT] = {
#include "record/schema.def"
};
#include "record/rows_none.h"
/* clang-format on */

const struct field *const record_common = record_common_fields;

const char *record_type_name(enum record_type type)
{
	return record_types[type].name;
}

uint64_t record_line_real_ns(const struct record *r)
{
	if (r->type == RECORD_SAMPLE && r->sample.reading.real_ns)
		return r->sample.reading.real_ns;
	return r->real_ns;
}

uint64_t record_line_mono_ns(const struct record *r)
{
	if (r->type == RECORD_SAMPLE && r->sample.reading.mono_ns)
		return r->sample.reading.mono_ns;
	return r->mono_ns;
}
