/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which member of struct record is which key: the one list that encoder and decoder both walk.
 * Used inside this room only.
 * Never holds a value.
 */
#ifndef IOSTALL_RECORD_FIELDS_H
#define IOSTALL_RECORD_FIELDS_H

#include "record/record.h"

enum field_kind {
	FIELD_TEXT,	/* char array; empty is null */
	FIELD_CHAR,	/* one char as a string; NUL is null */
	FIELD_LINES,	/* char array, newlines between the elements of an array of strings */
	FIELD_BOOL,
	FIELD_SINCE,	/* bool as "before_arm" or "after_arm" */
	FIELD_U32,
	FIELD_U32_KNOWN, /* 0 is null */
	FIELD_U64,
	FIELD_U64_KNOWN, /* 0 is null */
	FIELD_I64_KNOWN, /* INT64_MIN is null */
	FIELD_PID,	/* int32_t; null unless over 0 */
	FIELD_FD,	/* int32_t; null when negative, also a system call or a count */
	FIELD_OFFSET,	/* int64_t; null when negative */
	FIELD_REAL,	/* double with two decimals; not-a-number is null */
	FIELD_MS,	/* uint64_t nanoseconds as milliseconds with three decimals */
	FIELD_DEV,	/* two uint32_t, major and minor, as "8:16"; 0:0 is null */
	FIELD_OBJECT,
	FIELD_OPTIONAL, /* an object that begins with `bool present`; null when it is not */
	FIELD_COUNTS,	/* array of uint64_t; zeros at its end are left out */
	FIELD_ARRAY,	/* of objects, their number in a uint32_t */
};

struct field {
	const char *key; /* NULL ends a list */
	enum field_kind kind;
	size_t offset;
	size_t size;		     /* of a text, of an array's element */
	const struct field *members; /* of an object */
	size_t count_offset;	     /* of an array */
	size_t count_max;
};

/* Offsets count from the start of struct record. */
extern const struct field *const record_fields[RECORD_TYPE_COUNT];

/* The times a line carries: a sample was taken before it became a record. */
uint64_t record_line_real_ns(const struct record *r);
uint64_t record_line_mono_ns(const struct record *r);

#endif
