/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The objects of a record as C structs, made from schema.def: plain data.
 * Filled by the watchdog, the probes and the session; read by rules, verdicts and whoever shows a
 * record.
 * Never owns memory.
 */
#ifndef IOSTALL_RECORD_STRUCTS_H
#define IOSTALL_RECORD_STRUCTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/enums.h"

/* "20261120T031207Z-3f9c" */
#define RECORD_ID_SIZE 22
/* "2026-11-20T03:12:07.123456Z" */
#define RECORD_TIME_SIZE 28
#define RECORD_NAME_SIZE 64
/* TASK_COMM_LEN of the kernel */
#define RECORD_COMM_SIZE 16
#define RECORD_LIST_SIZE 256
#define RECORD_RELATION_SIZE 128
#define RECORD_PATH_SIZE 4400 /* EVENT_PATH_SIZE, a prefix and a suffix */
#define RECORD_STACK_SIZE 2048
/* Names of C++ are long, which take the place of addresses when a record is shown. */
#define RECORD_USTACK_SIZE 4096
#define RECORD_DISK_NAME_SIZE 32
#define RECORD_LABEL_SIZE 64
#define RECORD_BELOW_SIZE 256
/*
 * What a rule's value is of, when it is no disk: a mount point, a cgroup; of a longer one the end.
 */
#define RECORD_SUBJECT_SIZE 96
#define RECORD_MOUNT_SIZE 64
/* A line of the kernel's log; it ends them at 1 KB (LOG_LINE_MAX). */
#define RECORD_MESSAGE_SIZE 1024
/* The most that sql.text_bytes allows, and the terminating NUL. */
#define RECORD_SQL_TEXT_SIZE 4096
#define RECORD_PART_SIZE 512
#define RECORD_SENTENCE_SIZE 2048
/* Of a statement in a verdict; `sql` lines have more of it. */
#define RECORD_VERDICT_STATEMENT_SIZE 512
#define RECORD_COVERAGE_MAX 32
/* What a stored sample keeps: the devices with the most to say. */
#define RECORD_DEVICES_MAX 8
#define RECORD_FILE_SYSTEMS_MAX 4
#define RECORD_CGROUPS_MAX 2
#define RECORD_IO_LIMITS_MAX 4
#define RECORD_CPU_LIMITS_MAX 2
#define RECORD_PROCESS_IO_MAX 3
/*
 * One count for each power of two of a microsecond: below 1, below 2, below 4 us ... and the rest.
 */
#define RECORD_HISTOGRAM_MAX 32
/* Threads that a session without one may be running on. */
#define RECORD_CANDIDATES_MAX 4
#define RECORD_PARTS_MAX 10
#define RECORD_STACKED_MAX 24
#define RECORD_RET_UNKNOWN INT64_MIN

struct record_dev {
	uint32_t major;
	uint32_t minor;
};

static inline bool record_dev_is_same(struct record_dev a, struct record_dev b)
{
	return a.major == b.major && a.minor == b.minor;
}

#include "record/rows_empty.h"
#undef TYPE
#undef TYPE_TOO
#define TYPE(T, name, object, help) RECORD_##T,
#define TYPE_TOO(T, name, object, help) RECORD_##T,

enum record_type {
#include "record/schema.def"
	RECORD_TYPE_COUNT,
};

/* clang-format off */
#include "record/rows_none.h"
#define STRUCT_NAME(object) STRUCT_NAME_(object)
#define STRUCT_NAME_(object) record_##object
#define BEGIN struct STRUCT_NAME(OBJECT) {
#define BEGIN_OPTIONAL BEGIN bool present;
#define END };
#define TEXT(name, size, help) char name[size];
#define TEXT_KNOWN(name, size, help) char name[size];
#define CHAR_KNOWN(name, help) char name;
#define LINES(name, size, help) char name[size];
#define BOOL(name, help) bool name;
#define U32(name, help) uint32_t name;
#define U32_KNOWN(name, help) uint32_t name;
#define U64(name, help) uint64_t name;
#define U64_KNOWN(name, help) uint64_t name;
#define INDEX_KNOWN(name, help) int32_t name;
#define INDEX64_KNOWN(name, help) int64_t name;
#define PID_KNOWN(name, help) int32_t name;
#define RESULT_KNOWN(name, help) int64_t name;
#define REAL(name, help) double name;
#define REAL_KNOWN(name, help) double name;
#define MS(name, help) uint64_t name##_ns;
#define MS_OF(name, help) uint64_t name##_ns;
#define DEV_KNOWN(name, help) struct record_dev name;
#define CHOICE(name, e, help) enum record_##e name;
#define CHOICE_KNOWN(name, e, help) enum record_##e name;
#define EACH(name, e, E, help) uint64_t name[RECORD_##E##_COUNT];
#define COUNTS(name, max, help) uint64_t name[max];
#define SUB(name, object, help) struct record_##object name;
#define SUB_KNOWN(name, object, help) struct record_##object name;
#define SUB_MS(name, object, help) struct record_##object name;
#define PART(name, object) struct record_##object name;
#define ARRAY(name, max, object, help) uint32_t name##_count; struct record_##object name[max];
#define HIDDEN(type, name) type name;
#define ALIAS_U64(key, member, help)
#define ON_STALL(...) __VA_ARGS__
#define ON_STUCK(...) __VA_ARGS__
#define TYPE(T, name, object, help)
#define TYPE_TOO(T, name, object, help)
#include "record/schema.def"
#undef STRUCT_NAME
#undef STRUCT_NAME_
#include "record/rows_empty.h"
#undef TYPE
#define TYPE(T, name, object, help) struct record_##object object;
/* clang-format on */

struct record {
	enum record_type type;
	char incident[RECORD_ID_SIZE];
	uint64_t seq;
	uint64_t real_ns; /* written as `ts` */
	uint64_t mono_ns;
	/* Of a decoded line: enumerated values of a later version, each taken as not known. */
	uint32_t unknown_values;
	union {
#include "record/schema.def"
	};
};
#include "record/rows_none.h"

#endif
