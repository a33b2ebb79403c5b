/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The enumerated values of a record: a C enum for each list of enums.def, and its texts.
 * Used by whoever makes or reads a record.
 * Never changes: a text that a record has had keeps its meaning.
 */
#ifndef IOSTALL_RECORD_ENUMS_H
#define IOSTALL_RECORD_ENUMS_H

#include <stdbool.h>

/* enum record_class { RECORD_CLASS_NONE, RECORD_CLASS_hung, ..., RECORD_CLASS_COUNT } and so on. */
#define ENUM(name, NAME, help)                                                                     \
	enum record_##name                                                                         \
	{                                                                                          \
		RECORD_##NAME##_NONE,
#define VALUE(NAME, id, text, help) RECORD_##NAME##_##id,
#define ENUM_END(NAME)                                                                             \
	RECORD_##NAME##_COUNT                                                                      \
	}                                                                                          \
	;
/* clang-format off */
#include "record/enums.def"
/* clang-format on */
#undef ENUM
#undef VALUE
#undef ENUM_END

struct record_value {
	const char *text;
	const char *help;
};

struct record_enum {
	const char *name; /* "class" */
	const char *help;
	const struct record_value *values; /* the first is NONE, with an empty text */
	unsigned int count;
};

/* record_class_enum, and "hung" of RECORD_CLASS_hung; "" for NONE. */
#define ENUM(name, NAME, help)                                                                     \
	extern const struct record_enum record_##name##_enum;                                      \
	const char *record_##name##_text(enum record_##name value);
#define VALUE(NAME, id, text, help)
#define ENUM_END(NAME)
#include "record/enums.def"
#undef ENUM
#undef VALUE
#undef ENUM_END

/* What kind of trouble a cause is: RECORD_WAIT_none, RECORD_WAIT_device and so on. */
enum record_wait {
#define CAUSE_KIND(id, text) RECORD_WAIT_##id,
#include "record/causes.def"
#undef CAUSE_KIND
	RECORD_WAIT_COUNT,
};
/* RECORD_WAIT_device of RECORD_CAUSE_page; `none` of NONE. */
enum record_wait record_wait_of(enum record_cause cause);
/* Whether a process of this host has to answer; those of NFS and the like are on another one. */
bool record_cause_has_process(enum record_cause cause);

/* Its waiters sleep in operations that have lines; those of a lock of a program need not. */
bool record_lock_is_of_kernel(enum record_kernel_lock kind);
/* It is a pipe or socket from which somebody should read, and no lock. */
bool record_lock_has_reader(enum record_kernel_lock kind);

/*
 * Whether the operations of a probe are requests, for which no thread need wait. A probe that is
 * not known may have requests: less can be said about those.
 */
bool record_probe_has_requests(enum record_probe probe);

/* The value with that text; 0 (NONE) when there is none. */
unsigned int record_enum_find(const struct record_enum *e, const char *text);

#endif
