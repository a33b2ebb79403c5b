/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* The table of operations that have not returned: it finds them, and forgets those that have. */
#include <stdlib.h>

#include "page/internal.h"
#include "test_page_setup.h"

#define ROUNDS 200000
#define KEYS 6000

static int setup(void **state)
{
	*state = calloc(1, sizeof(struct page_stuck_table));
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static uint64_t start_of(int32_t tid)
{
	/* Many threads that a device stopped at the same time have the same start. */
	return 1000000 + (uint64_t)(tid / 700);
}

static uint32_t used_slots(const struct page_stuck_table *t)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < PAGE_STUCK_SLOTS; i++)
		used += t->slots[i] != 0;
	return used;
}

/* The most slots that any search looks at. */
static uint32_t longest_run(const struct page_stuck_table *t)
{
	uint32_t run = 0, longest = 0;

	for (uint32_t i = 0; i < 2 * PAGE_STUCK_SLOTS; i++) {
		run = t->slots[i % PAGE_STUCK_SLOTS] ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	return longest;
}

static void test_against_a_plain_list(void **state)
{
	struct page_stuck_table *t = *state;
	bool is_in[KEYS] = { false };
	unsigned int seed = 11;
	uint32_t count = 0;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		int32_t tid = rand_r(&seed) % KEYS;
		struct page_stuck *s = page_stuck_find(t, tid, start_of(tid));

		assert_int_equal(s != NULL, is_in[tid]);
		if (s) {
			assert_int_equal(s->pid, tid + 1);
			page_stuck_remove(t, s);
			is_in[tid] = false;
			count--;
		} else {
			s = page_stuck_add(t, tid, start_of(tid));
			assert_int_equal(s != NULL, count < PAGE_STUCK_MAX);
			if (!s)
				continue;
			s->pid = tid + 1;
			is_in[tid] = true;
			count++;
		}
		assert_int_equal(t->count, count);
	}
	assert_int_equal(used_slots(t), count);
}

/* 4096 threads hang, return, and others hang: a search stays short. */
static void test_slots_are_reclaimed(void **state)
{
	struct page_stuck_table *t = *state;

	for (int32_t round = 0; round < 50; round++) {
		for (int32_t i = 0; i < PAGE_STUCK_MAX; i++)
			assert_non_null(page_stuck_add(t, round * PAGE_STUCK_MAX + i, 5000));
		assert_null(page_stuck_add(t, -1, 5000));
		assert_in_range(longest_run(t), 1, 100);
		while (t->count > 0)
			page_stuck_remove(t, &t->items[t->count / 2]);
		assert_int_equal(used_slots(t), 0);
	}
}

static void test_an_unknown_start_is_not_followed(void **state)
{
	struct page_stuck_table *t = *state;

	assert_null(page_stuck_add(t, 7, 0));
	assert_null(page_stuck_find(t, 7, 0));
	assert_int_equal(t->count, 0);
}

/* What returns leaves nothing behind in the page, and what hangs is counted once. */
static void test_the_page_forgets_what_returned(void **state)
{
	struct page_fixture *f = *state;

	page_make_open(f);
	page_add(f->page, &f->record);
	for (int32_t i = 0; i < 3 * PAGE_STUCK_MAX; i++) {
		page_make_operation(f, RECORD_STUCK, 1 + i, 1000, 200);
		page_add(f->page, &f->record);
		page_make_operation(f, RECORD_STALL, 1 + i, 1000, 300);
		page_add(f->page, &f->record);
	}
	assert_int_equal(f->page->operations.stuck.count, 0);
	assert_int_equal(used_slots(&f->page->operations.stuck), 0);
	assert_int_equal(f->page->operations.stuck_seen, 3 * PAGE_STUCK_MAX);
	assert_int_equal(f->page->operations.not_followed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_against_a_plain_list, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slots_are_reclaimed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_an_unknown_start_is_not_followed, setup,
			teardown),
		WITH_PAGE(test_the_page_forgets_what_returned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
