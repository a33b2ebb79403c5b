/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads that held the lock of their process's memory map while they waited for something else, by
 * the stacks in `stall` and `stuck` lines: of a process the one that did so longest.
 * Part of struct model_waits, which adds to it; read by the verdict.
 * Never has whom the kernel names as the holder: that is in `lock` lines, see model/host.h.
 */
#ifndef IOSTALL_MODEL_MAP_HOLDERS_H
#define IOSTALL_MODEL_MAP_HOLDERS_H

#include "model/span.h"
#include "model/who.h"
#include "record/record.h"

#define MODEL_MAP_HOLDERS_MAX 4

struct model_map_holder {
	struct model_who who; /* pid 0: free */
	uint64_t longest_ns;
	struct model_span span;
	enum record_cause cause;
	char function[RECORD_NAME_SIZE];
};

struct model_map_holders {
	struct model_map_holder list[MODEL_MAP_HOLDERS_MAX];
};

/* Operations whose stack holds no such lock are ignored. */
void model_map_holders_add(struct model_map_holders *holders, const struct record_operation *op);
/* NULL: none was seen. */
const struct model_map_holder *model_map_holders_find(const struct model_map_holders *holders,
	int32_t pid);

#endif
