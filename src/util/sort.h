/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sorts like qsort(3), which in glibc may allocate memory for more than 1 KB of items.
 * Used while an incident is open, when nothing may be allocated; depends on no room.
 * Never allocates and never recurses; equal items may change their order.
 */
#ifndef IOSTALL_UTIL_SORT_H
#define IOSTALL_UTIL_SORT_H

#include <stddef.h>

void sort_in_place(void *items, size_t count, size_t size,
	int (*compare)(const void *a, const void *b));

#endif
