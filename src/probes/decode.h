/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bytes from the ring buffer to an operation in the record's terms.
 * Called by the session for each event, and by the replay and fuzz tests.
 * Pure: trusts no byte, allocates nothing, reads no file.
 */
#ifndef IOSTALL_PROBES_DECODE_H
#define IOSTALL_PROBES_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "iostall/event.h"
#include "record/record.h"

struct decoded_operation {
	bool finished;
	bool path_in_fs; /* the path begins at the root of its file system; it is "..." and that */
	uint64_t ts_ns;
	uint64_t process_start_ns; /* CLOCK_BOOTTIME */
	uint32_t uid;
	uint32_t probe; /* below CONFIG_PROBE_COUNT */
	char cgroup_names[EVENT_CGROUP_NAMES][EVENT_CGROUP_NAME_SIZE]; /* own, parent's */
	bool stack_asleep; /* the stack is that of the sleep, not of the return */
	uint32_t stack_len;
	uint64_t stack[EVENT_STACK_DEPTH];
};

/*
 * Fills what the event knows of ret_operation and zeroes the rest. -EINVAL: too short, sizes that
 * contradict each other, or a value no kernel sends; -EPROTONOSUPPORT: another type or version.
 */
int event_decode(const void *data, size_t size, struct decoded_operation *ret_decoded,
	struct record_operation *ret_operation);

/*
 * Names from the file up to the root, each ended by NUL, to a path; flags of enum event_flags. "..." stands
 * for a beginning that is missing, also where the root is only that of the file system; then, and when
 * it did not fit, it returns true. Empty when no name is known.
 */
bool event_join_path(const char *names, uint32_t len, uint32_t flags, char *ret_path, size_t size);

#endif
