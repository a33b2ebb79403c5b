/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "enrich/waits.h"

#include <stdbool.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/text.h"

/* How many frames after functions that many reasons share are searched for the real reason. */
#define WEAK_FRAMES 3

static const struct waits {
	const char *prefix;
	enum record_cause cause;
	bool weak;
} table[] = {
#define WAITS(prefix, cause) { #prefix, RECORD_CAUSE_##cause, false },
#define WEAK(prefix, cause) { #prefix, RECORD_CAUSE_##cause, true },
#define TAKER(prefix, cause)
#define MAP_LOCK(prefix)
#define MAP_HELD(prefix)
#define INODE_LOCK(prefix)
#include "enrich/waits.def"
#undef WAITS
#undef WEAK
#undef TAKER
#undef MAP_LOCK
#undef MAP_HELD
#undef INODE_LOCK
};

#define WAITS(prefix, cause)
#define WEAK(prefix, cause)
static const struct taker {
	const char *prefix;
	enum record_cause cause;
} takers[] = {
#define TAKER(prefix, cause) { #prefix, RECORD_CAUSE_##cause },
#define MAP_LOCK(prefix)
#define MAP_HELD(prefix)
#define INODE_LOCK(prefix)
#include "enrich/waits.def"
#undef TAKER
#undef MAP_LOCK
#undef MAP_HELD
#undef INODE_LOCK
};

#define TAKER(prefix, cause)
static const char *const map_lock[] = {
#define MAP_LOCK(prefix) #prefix,
#define MAP_HELD(prefix)
#define INODE_LOCK(prefix)
#include "enrich/waits.def"
#undef MAP_LOCK
#undef MAP_HELD
#undef INODE_LOCK
};

static const char *const inode_lock[] = {
#define MAP_LOCK(prefix)
#define MAP_HELD(prefix)
#define INODE_LOCK(prefix) #prefix,
#include "enrich/waits.def"
#undef MAP_LOCK
#undef MAP_HELD
#undef INODE_LOCK
};

static const char *const map_held[] = {
#define MAP_LOCK(prefix)
#define MAP_HELD(prefix) #prefix,
#define INODE_LOCK(prefix)
#include "enrich/waits.def"
#undef MAP_LOCK
#undef MAP_HELD
#undef INODE_LOCK
};
#undef WAITS
#undef WEAK
#undef TAKER

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

/* The first function that has no part in taking a lock. */
static const char *skip_lock(const char *kstack)
{
	static const char *const of_lock[] = { "__schedule", "schedule", "preempt_schedule",
		"rwsem_", "down_read", "down_write", "__down_read", "__down_write",
		"mmap_read_lock", "mmap_write_lock", "__mutex_lock", "mutex_lock" };

	while (begins_with(kstack, of_lock, ARRAY_SIZE(of_lock)))
		kstack = next_frame(kstack);
	return kstack;
}

const char *waits_skip_interrupt(const char *kstack)
{
	/* x86, arm64, and arm64 before 5.12 */
	static const char *const entries[] = { "asm_sysvec_", "el1h_64_irq", "el1_irq" };
	const char *found = "";

	for (; *kstack; kstack = next_frame(kstack))
		if (begins_with(kstack, entries, ARRAY_SIZE(entries)))
			found = next_frame(kstack);
	return found;
}

bool waits_is_interrupt(const char *kstack)
{
	/* Of a long stack the entries are missing. */
	static const char *const functions[] = { "asm_common_interrupt", "asm_sysvec_",
		"common_interrupt", "el0_interrupt", "el0t_64_irq", "el1_interrupt", "el1_irq",
		"el1h_64_irq", "__do_softirq", "handle_irq_event", "handle_softirqs" };

	for (; *kstack; kstack = next_frame(kstack))
		if (begins_with(kstack, functions, ARRAY_SIZE(functions)))
			return true;
	return false;
}

bool waits_may_be_for_inode(const char *kstack)
{
	/* With what takes the lock inlined, and also what waits for direct I/O with the lock. */
	static const char *const writers[] = { "ext4_file_write_iter" };

	return begins_with(skip_lock(kstack), writers, ARRAY_SIZE(writers));
}

bool waits_for_map_of_other(const char *kstack)
{
	static const char *const readers[] = { "m_start", "get_mm_cmdline", "__access_remote_vm" };

	return begins_with(skip_lock(kstack), readers, ARRAY_SIZE(readers));
}

bool waits_holds_map(const char *kstack)
{
	for (; *kstack; kstack = next_frame(kstack))
		if (begins_with(kstack, map_held, ARRAY_SIZE(map_held)))
			return true;
	return false;
}

bool waits_is_server_wait(const char *frame)
{
	static const char *const functions[] = {
#define SERVER_WAIT(function) #function,
#include "enrich/server_waits.def"
#undef SERVER_WAIT
	};
	size_t len = strcspn(frame, "+.\n");

	for (unsigned int i = 0; i < ARRAY_SIZE(functions); i++)
		if (strncmp(frame, functions[i], len) == 0 && functions[i][len] == '\0')
			return true;
	return false;
}

bool waits_for_server(const char *kstack)
{
	for (; *kstack; kstack = next_frame(kstack))
		if (waits_is_server_wait(kstack))
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

/* Who takes such a semaphore, from the frame of the semaphore on; NONE: it is no such frame. */
static enum record_cause waits_for_percpu(const char *kstack)
{
	static const char *const of_lock[] = { "percpu_rwsem_wait", "__percpu_down_read",
		"percpu_down_read" };

	if (!begins_with(kstack, of_lock, ARRAY_SIZE(of_lock)))
		return RECORD_CAUSE_NONE;
	while (begins_with(kstack, of_lock, ARRAY_SIZE(of_lock)))
		kstack = next_frame(kstack);
	/* Who takes it for writing is a function that the table has, or is not known. */
	if (strncmp(kstack, "percpu_down_write", strlen("percpu_down_write")) == 0)
		return RECORD_CAUSE_NONE;
	for (unsigned int i = 0; i < ARRAY_SIZE(takers); i++)
		if (strncmp(kstack, takers[i].prefix, strlen(takers[i].prefix)) == 0)
			return takers[i].cause;
	return RECORD_CAUSE_frozen_file_system;
}

enum record_cause waits_for(const char *kstack)
{
	const struct waits *weak = NULL;
	unsigned int since_weak = 0;
	const char *taker = skip_lock(kstack);

	if (begins_with(taker, map_lock, ARRAY_SIZE(map_lock)))
		return RECORD_CAUSE_memory_map_lock;
	if (begins_with(taker, inode_lock, ARRAY_SIZE(inode_lock)))
		return RECORD_CAUSE_read_write_lock;
	while (*kstack && since_weak <= WEAK_FRAMES) {
		const struct waits *found = find_frame(kstack);
		enum record_cause percpu = waits_for_percpu(kstack);

		if (percpu)
			return percpu;
		if (found && !found->weak)
			return found->cause;
		if (found && !weak)
			weak = found;
		since_weak = found ? 1 : since_weak + (weak != NULL);
		kstack = next_frame(kstack);
	}
	return weak ? weak->cause : RECORD_CAUSE_NONE;
}

enum record_cause waits_at_server(enum record_cause cause, enum record_cause server)
{
	enum kind {
#define CAUSE_KIND(id, text) KIND_##id,
#include "record/causes.def"
#undef CAUSE_KIND
	};
	static const enum kind kinds[RECORD_CAUSE_COUNT] = {
#define CAUSE(id, text, kind, help) [RECORD_CAUSE_##id] = KIND_##kind,
#include "record/causes.def"
#undef CAUSE
	};

	return kinds[cause] == KIND_none || kinds[cause] == KIND_device ||
			kinds[cause] == KIND_server
		? server
		: cause;
}

/* They say that a thread waits, and their caller for what. */
static bool only_waits(const char *frame)
{
	static const char *const prefixes[] = { "__schedule", "schedule", "io_schedule",
		"preempt_schedule", "wait_for_completion", "__wait_for_common", "wait_for_common",
		"do_wait_for_common" };

	for (unsigned int i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (strncmp(frame, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

static void copy_function(const char *frame, char *ret_function, size_t size)
{
	struct text function = { .buf = ret_function, .size = size };

	text_reset(&function);
	text_add_bytes(&function, frame, strcspn(frame, "+\n"));
}

void waits_taker(const char *kstack, char *ret_function, size_t size)
{
	copy_function(skip_lock(kstack), ret_function, size);
}

void waits_in(const char *kstack, char *ret_function, size_t size)
{
	while (only_waits(kstack)) {
		const char *next = strchr(kstack, '\n');

		if (!next)
			break;
		kstack = next + 1;
	}
	copy_function(kstack, ret_function, size);
}
