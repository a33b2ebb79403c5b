/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* The sort that allocates nothing, against qsort(3). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "util/sort.h"

#define COUNT_MAX 300

/* Neither a multiple of the swapped chunks nor smaller than one. */
struct item {
	uint32_t key;
	char ballast[133];
};

static int compare_items(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

/* Few keys, so that there are equals; the ballast tells whether items stay whole. */
static void fill(struct item *items, size_t count, uint32_t keys)
{
	for (size_t i = 0; i < count; i++) {
		items[i].key = (uint32_t)rand() % keys;
		memset(items[i].ballast, (int)(items[i].key & 0x7f), sizeof(items[i].ballast));
	}
}

static void test_every_count(void **state)
{
	static struct item items[COUNT_MAX + 1], want[COUNT_MAX + 1];

	(void)state;
	srand(1);
	for (size_t count = 0; count <= COUNT_MAX; count++) {
		memset(items, 0, sizeof(items));
		fill(items, count, count % 2 ? 16 : 1u << 30);
		items[count].key = 7;
		memcpy(want, items, sizeof(items));
		qsort(want, count, sizeof(want[0]), compare_items);
		sort_in_place(items, count, sizeof(items[0]), compare_items);
		/* Also what is behind the last one. */
		assert_memory_equal(items, want, sizeof(items));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
