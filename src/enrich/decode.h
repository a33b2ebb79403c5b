/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decodes an event of the ring buffer into an operation as a record has it.
 * Called by the session for each event, by probe `block` for paths, and by the fuzz test.
 * Pure: trusts no byte, allocates nothing, reads no file.
 */
#ifndef IOSTALL_ENRICH_DECODE_H
#define IOSTALL_ENRICH_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "iostall/event.h"
#include "record/record.h"

struct decoded_operation {
	bool finished;
	uint32_t failures; /* it failed at once, and stands for so many that did; 0: it did not */
	bool path_in_fs;   /* the path is "..." and then begins at the root of its file system */
	uint64_t ts_ns;
	uint64_t process_start_ns; /* CLOCK_BOOTTIME */
	uint32_t uid;
	uint32_t probe; /* below CONFIG_PROBE_COUNT */
	char cgroup_names[EVENT_CGROUP_NAMES][EVENT_CGROUP_NAME_SIZE]; /* its own, its parent's */
	bool unproven;	   /* only the stack can say whether it is an operation on a file at all */
	bool stack_asleep; /* the stack was taken when the thread fell asleep, not at the return */
	uint32_t stack_len;
	uint64_t stack[EVENT_STACK_DEPTH];
};

/*
 * Fills what the event knows of ret_operation and zeroes the rest. -EINVAL: it is too short, its
 * sizes contradict each other, or it has a value that no BPF program sends; -EPROTONOSUPPORT:
 * another type or version.
 */
int event_decode(const void *data, size_t size, struct decoded_operation *ret_decoded,
	struct record_operation *ret_operation);

/*
 * Joins names, which come from the file up to the root and each end with NUL, to a path. Flags are
 * those of enum event_flags. A path whose beginning is missing, or that only begins at the root of
 * its file system, gets "..." in front. Returns true in these cases and when the path did not fit.
 * The path is empty when no name is known.
 */
bool event_join_path(const char *names, uint32_t len, uint32_t flags, char *ret_path, size_t size);

#endif
