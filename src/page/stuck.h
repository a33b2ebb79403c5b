/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The operations that were reported and have not returned, by thread and start.
 * Used by src/page/ only.
 * Never allocates, and never searches more slots than there are operations.
 */
#ifndef IOSTALL_PAGE_STUCK_H
#define IOSTALL_PAGE_STUCK_H

#include <stdbool.h>
#include <stdint.h>

#include "page/statements.h"

/* Those with lines of their own; one line stands for further ones that are alike. */
#define PAGE_STUCK_MAX 4096
/* A power of two, and twice as many, so that a search ends after a few slots. */
#define PAGE_STUCK_SLOTS (2 * PAGE_STUCK_MAX)

struct page_stuck {
	struct statement_query operation;
	uint64_t seen_ns; /* when its last line was written */
	uint64_t told_ns; /* its length in the last event; 0: none */
	int32_t pid;
	uint16_t group;
	bool before_arm;
};

/* All zero: it is empty. */
struct page_stuck_table {
	uint32_t count;
	struct page_stuck items[PAGE_STUCK_MAX];
	/*
	 * Open addressing with linear probing: index + 1 in `items`; 0: free. A removal moves the
	 * slots behind it up, so none is left that only a search has to pass.
	 */
	uint16_t slots[PAGE_STUCK_SLOTS];
};

/* NULL: there is none, or its start is not known. */
struct page_stuck *page_stuck_find(struct page_stuck_table *t, int32_t tid, uint64_t start_ns);
/* An operation that is not in the table; all else is zero. NULL: the table is full. */
struct page_stuck *page_stuck_add(struct page_stuck_table *t, int32_t tid, uint64_t start_ns);
/* Another item may take its place: a loop over the items that removes some goes backwards. */
void page_stuck_remove(struct page_stuck_table *t, struct page_stuck *s);

#endif
