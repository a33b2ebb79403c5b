/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/enums.h"

#include <string.h>

/* clang-format off */
#define ENUM(name, NAME, help) static const struct record_value name##_values[] = { { "", "" },
#define VALUE(NAME, id, text, help) { text, help },
#define ENUM_END(NAME) };
#include "record/enums.def"
#undef ENUM
#undef VALUE
#undef ENUM_END
/* clang-format on */

/* What a caller has not checked is not known either. */
static const char *value_text(const struct record_enum *e, unsigned int value)
{
	return value < e->count ? e->values[value].text : "";
}

#define ENUM(name_, NAME, help_)                                                                   \
	const struct record_enum record_##name_##_enum = {                                         \
		.name = #name_,                                                                    \
		.help = help_,                                                                     \
		.values = name_##_values,                                                          \
		.count = RECORD_##NAME##_COUNT,                                                    \
	};                                                                                         \
	const char *record_##name_##_text(enum record_##name_ value)                               \
	{                                                                                          \
		return value_text(&record_##name_##_enum, value);                                  \
	}
#define VALUE(NAME, id, text, help)
#define ENUM_END(NAME)
#include "record/enums.def"
#undef ENUM
#undef VALUE
#undef ENUM_END

enum record_wait record_wait_of(enum record_cause cause)
{
	static const enum record_wait waits[RECORD_CAUSE_COUNT] = {
#define CAUSE(id, text, kind, help) [RECORD_CAUSE_##id] = RECORD_WAIT_##kind,
#include "record/causes.def"
#undef CAUSE
	};

	return cause < RECORD_CAUSE_COUNT ? waits[cause] : RECORD_WAIT_none;
}

bool record_cause_has_process(enum record_cause cause)
{
	return cause == RECORD_CAUSE_fuse_server || cause == RECORD_CAUSE_access_check ||
		cause == RECORD_CAUSE_audit;
}

bool record_lock_is_of_kernel(enum record_kernel_lock kind)
{
	return kind == RECORD_KERNEL_LOCK_memory_map || kind == RECORD_KERNEL_LOCK_inode ||
		kind == RECORD_KERNEL_LOCK_other;
}

bool record_lock_has_reader(enum record_kernel_lock kind)
{
	return kind == RECORD_KERNEL_LOCK_pipe || kind == RECORD_KERNEL_LOCK_socket;
}

bool record_probe_has_requests(enum record_probe probe)
{
	static const bool has_requests[] = {
		[RECORD_PROBE_NONE] = true,
#define CALLS false
#define REQUESTS true
#define PROBE(name, operations, help) [RECORD_PROBE_##name] = operations,
#include "probes/probes.def"
#undef PROBE
#undef CALLS
#undef REQUESTS
	};

	return has_requests[probe];
}

unsigned int record_enum_find(const struct record_enum *e, const char *text)
{
	for (unsigned int i = 1; i < e->count; i++)
		if (strcmp(e->values[i].text, text) == 0)
			return i;
	return 0;
}
