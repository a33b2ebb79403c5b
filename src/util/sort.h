/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qsort(3) for a daemon that is armed: glibc's may allocate for more than 1 KB.
 * Used by every room; depends on nothing above.
 * Never allocates, never recurses; does not keep the order of equals.
 */
#ifndef IOSTALL_UTIL_SORT_H
#define IOSTALL_UTIL_SORT_H

#include <stddef.h>

void sort_in_place(void *items, size_t count, size_t size,
	int (*compare)(const void *a, const void *b));

#endif
