/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Heapsort: in place, and never slower than n log n. */
#include "util/sort.h"

#include <string.h>

static void swap(char *a, char *b, size_t size)
{
	char chunk[64];

	while (size > 0) {
		size_t len = size < sizeof(chunk) ? size : sizeof(chunk);

		memcpy(chunk, a, len);
		memcpy(a, b, len);
		memcpy(b, chunk, len);
		a += len;
		b += len;
		size -= len;
	}
}

/* Moves the item at `i` down the heap until no child of it is greater. */
static void sink(char *items, size_t i, size_t count, size_t size,
	int (*compare)(const void *a, const void *b))
{
	size_t child;

	while ((child = 2 * i + 1) < count) {
		if (child + 1 < count &&
			compare(items + child * size, items + (child + 1) * size) < 0)
			child++;
		if (compare(items + i * size, items + child * size) >= 0)
			return;
		swap(items + i * size, items + child * size, size);
		i = child;
	}
}

void sort_in_place(void *items, size_t count, size_t size,
	int (*compare)(const void *a, const void *b))
{
	char *first = items;

	for (size_t i = count / 2; i > 0; i--)
		sink(first, i - 1, count, size, compare);
	for (size_t i = count; i > 1; i--) {
		swap(first, first + (i - 1) * size, size);
		sink(first, 0, i - 1, size, compare);
	}
}
