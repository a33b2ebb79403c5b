/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * schema.def as tables: which member of a struct is which key. Encoder and decoder walk them, and
 * so do the generator of the manual and the JSON Schema, and the tests.
 * Used inside this room, by tools/iostall-record-gen.c and by tests.
 * Never holds a value of a record.
 */
#ifndef IOSTALL_RECORD_FIELDS_H
#define IOSTALL_RECORD_FIELDS_H

#include "record/record.h"

/* The head of schema.def says what each is in C and in JSON. */
enum field_kind {
	FIELD_TEXT,
	FIELD_CHAR,
	FIELD_LINES,
	FIELD_BOOL,
	FIELD_U32,
	FIELD_U64,
	FIELD_INDEX,
	FIELD_INDEX64,
	FIELD_PID,
	FIELD_RESULT,
	FIELD_REAL,
	FIELD_MS,
	FIELD_DEV,
	FIELD_CHOICE,
	FIELD_EACH,
	FIELD_COUNTS,
	FIELD_OBJECT,
	FIELD_PART,
	FIELD_ARRAY,
};

struct field {
	const char *key; /* NULL ends a list; of a PART, which has none, the member's name */
	const char *help;
	enum field_kind kind;
	bool nullable; /* an object begins with `bool present` then */
	size_t offset; /* in the struct of the object */
	size_t size;   /* of a text, of an array's element */
	const struct field *members;
	size_t count_offset; /* of an array */
	size_t count_max;
	const struct record_enum *values;
};

struct field_type {
	const char *name;
	const char *help;
	const struct field *fields;
	size_t offset; /* of its object in struct record */
	size_t size;
};

extern const struct field_type record_types[RECORD_TYPE_COUNT];

/* Those of struct record_common, with which every line begins. */
extern const struct field *const record_common;

/* The times a line carries: a sample was taken before it became a record. */
uint64_t record_line_real_ns(const struct record *r);
uint64_t record_line_mono_ns(const struct record *r);

#endif
