/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "enrich/waits.h"

#include <stdbool.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/text.h"

/* How many frames after a function that many reasons share are searched for the real reason. */
#define WEAK_FRAMES 3

static const struct waits {
	const char *prefix;
	enum record_cause cause;
	bool weak;
} table[] = {
#define WAITS(prefix, cause) { #prefix, RECORD_CAUSE_##cause, false },
#define WEAK(prefix, cause) { #prefix, RECORD_CAUSE_##cause, true },
#define MAP_LOCK(prefix)
#define MAP_HELD(prefix)
#include "enrich/waits.def"
#undef WAITS
#undef WEAK
#undef MAP_LOCK
#undef MAP_HELD
};

#define WAITS(prefix, cause)
#define WEAK(prefix, cause)
static const char *const map_lock[] = {
#define MAP_LOCK(prefix) #prefix,
#define MAP_HELD(prefix)
#include "enrich/waits.def"
#undef MAP_LOCK
#undef MAP_HELD
};

static const char *const map_held[] = {
#define MAP_LOCK(prefix)
#define MAP_HELD(prefix) #prefix,
#include "enrich/waits.def"
#undef MAP_LOCK
#undef MAP_HELD
};
#undef WAITS
#undef WEAK

static bool begins_with(const char *frame, const char *const *prefixes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strncmp(frame, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

static const char *next_frame(const char *kstack)
{
	kstack += strcspn(kstack, "\n");
	return kstack + (*kstack == '\n');
}

static bool waits_for_map(const char *kstack)
{
	static const char *const of_lock[] = { "__schedule", "schedule", "preempt_schedule",
		"rwsem_", "down_read", "down_write", "__down_read", "__down_write",
		"mmap_read_lock", "mmap_write_lock" };

	while (begins_with(kstack, of_lock, ARRAY_SIZE(of_lock)))
		kstack = next_frame(kstack);
	return begins_with(kstack, map_lock, ARRAY_SIZE(map_lock));
}

bool waits_holds_map(const char *kstack)
{
	for (; *kstack; kstack = next_frame(kstack))
		if (begins_with(kstack, map_held, ARRAY_SIZE(map_held)))
			return true;
	return false;
}

static const struct waits *find_frame(const char *frame)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(table); i++)
		if (strncmp(frame, table[i].prefix, strlen(table[i].prefix)) == 0)
			return &table[i];
	return NULL;
}

enum record_cause waits_for(const char *kstack)
{
	const struct waits *weak = NULL;
	unsigned int since_weak = 0;

	if (waits_for_map(kstack))
		return RECORD_CAUSE_memory_map_lock;
	while (*kstack && since_weak <= WEAK_FRAMES) {
		const struct waits *found = find_frame(kstack);

		if (found && !found->weak)
			return found->cause;
		if (found && !weak)
			weak = found;
		since_weak += weak != NULL;
		kstack = next_frame(kstack);
	}
	return weak ? weak->cause : RECORD_CAUSE_NONE;
}

static bool is_scheduler(const char *frame)
{
	static const char *const prefixes[] = { "__schedule", "schedule", "io_schedule",
		"preempt_schedule" };

	for (unsigned int i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (strncmp(frame, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

void waits_in(const char *kstack, char *ret_function, size_t size)
{
	struct text function = { .buf = ret_function, .size = size };

	text_reset(&function);
	while (is_scheduler(kstack)) {
		const char *next = strchr(kstack, '\n');

		if (!next)
			break;
		kstack = next + 1;
	}
	text_add_bytes(&function, kstack, strcspn(kstack, "+\n"));
}
