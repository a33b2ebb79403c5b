/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What threads did that the tables of the probe `block` no longer have, summed up by process,
 * control group and statement.
 * Called by block_tables.c and by tests.
 * Never reads a map and never grows.
 */
#ifndef IOSTALL_PROBES_BLOCK_FOLD_H
#define IOSTALL_PROBES_BLOCK_FOLD_H

#include "probes/block_sum.h"

#define BLOCK_FOLDED_MAX 256

struct block_folded {
	struct block_item item; /* of no thread; pid 0: of all processes of a control group */
	char process_comm[EVENT_COMM_SIZE];
};

struct block_fold {
	size_t count;
	bool is_full; /* nobody can be forgotten to make room */
	struct block_folded sums[BLOCK_FOLDED_MAX];
};

/*
 * Adds the item of a thread. Without room for its process, those that did least are no longer told
 * from others of their control group.
 */
void block_fold_add(struct block_fold *fold, const struct block_item *item,
	const char *process_comm);

/* Appends the sums to items of the kind `by`, which have room for them; returns the new count. */
size_t block_fold_append(const struct block_fold *fold, enum record_by by, struct block_item *items,
	size_t count);

/* The name of the process of an item; NULL: it is not among these. */
const char *block_fold_find_name(const struct block_fold *fold, const struct block_item *item);

#endif
