/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* What threads did that the tables of the probe `block` have no room for any more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "probes/block_fold.h"

#define DEV_A 1
#define DEV_B 2

static struct block_fold fold;

static int setup(void **state)
{
	(void)state;
	fold = (struct block_fold){ 0 };
	return 0;
}

static struct block_item thread_of(uint32_t dev, uint32_t pid, uint32_t tid, uint64_t cgroup,
	uint64_t ns)
{
	return (struct block_item){
		.dev = dev,
		.pid = pid,
		.tid = tid,
		.start_ns = tid,
		.process_start_ns = pid,
		.cgroup_id = cgroup,
		.load = { .kinds = { [EVENT_BLOCK_READ] = { 1, ns, ns } }, .device_ns = 10 },
	};
}

static void add(uint32_t dev, uint32_t pid, uint32_t tid, uint64_t cgroup, uint64_t ns)
{
	const struct block_item item = thread_of(dev, pid, tid, cgroup, ns);

	block_fold_add(&fold, &item, "worker");
}

static uint64_t sum_of(enum record_by by, size_t *ret_count)
{
	static struct block_item items[BLOCK_FOLDED_MAX];
	uint64_t ns = 0;

	*ret_count = block_fold_append(&fold, by, items, 0);
	for (size_t i = 0; i < *ret_count; i++)
		ns += block_load_busy_ns(&items[i].load);
	return ns;
}

static void test_threads_of_a_process(void **state)
{
	const struct block_item other = thread_of(DEV_A, 11, 12, 7, 1);
	struct block_item items[4] = { thread_of(DEV_A, 10, 14, 7, 1000) };
	size_t count;

	(void)state;
	add(DEV_A, 10, 12, 7, 100);
	add(DEV_A, 10, 13, 7, 20);
	add(DEV_B, 10, 12, 7, 3);
	add(DEV_A, 10, 12, 8, 4);
	assert_int_equal(block_fold_append(&fold, RECORD_BY_thread, items, 1), 1);
	assert_int_equal(block_fold_append(&fold, RECORD_BY_statement, items, 1), 1);
	assert_int_equal(block_fold_append(&fold, RECORD_BY_file, items, 1), 1);
	count = block_fold_append(&fold, RECORD_BY_process, items, 1);
	assert_int_equal(count, 4);
	/* With those that the table still has they are one process. */
	assert_int_equal(block_sum_items(RECORD_BY_process, items, count), 2);
	assert_int_equal(items[0].dev, DEV_A);
	assert_int_equal(items[0].pid, 10);
	assert_int_equal(block_load_busy_ns(&items[0].load), 1124);
	assert_int_equal(block_load_requests(&items[0].load), 4);
	assert_int_equal(items[0].load.device_ns, 40);
	assert_int_equal(items[0].cgroup_id, 0);
	assert_string_equal(block_fold_find_name(&fold, &items[0]), "worker");
	assert_null(block_fold_find_name(&fold, &other));
}

/* An id is given to another process once the first one has ended. */
static void test_an_id_is_used_again(void **state)
{
	struct block_item again = thread_of(DEV_A, 10, 12, 7, 5);
	size_t count;

	(void)state;
	add(DEV_A, 10, 12, 7, 100);
	again.process_start_ns = 99;
	block_fold_add(&fold, &again, "other");
	assert_int_equal(sum_of(RECORD_BY_process, &count), 105);
	assert_int_equal(count, 2);
	assert_string_equal(block_fold_find_name(&fold, &again), "other");
}

/* Nothing is lost: of processes that did least only the group is known. */
static void test_more_processes_than_there_is_room_for(void **state)
{
	const uint32_t many = 10 * BLOCK_FOLDED_MAX;
	const struct block_item large = thread_of(DEV_A, 5, 5, 2, 0);
	uint64_t ns = 1000000;
	size_t count;

	(void)state;
	add(DEV_A, 5, 5, 2, 1000000);
	for (uint32_t i = 1; i <= many; i++) {
		add(DEV_A, 100 + i, 100 + i, i % 3, i);
		ns += i;
		assert_in_range(fold.count, 1, BLOCK_FOLDED_MAX);
	}
	assert_int_equal(sum_of(RECORD_BY_cgroup, &count), ns);
	assert_in_range(sum_of(RECORD_BY_process, &count), 1000000, ns - 1);
	assert_in_range(count, BLOCK_FOLDED_MAX / 2 - 3, BLOCK_FOLDED_MAX - 1);
	assert_string_equal(block_fold_find_name(&fold, &large), "worker");
}

/* Where even these are too many, those that are known go on. */
static void test_more_groups_than_there_is_room_for(void **state)
{
	const struct block_item first = thread_of(DEV_A, 100, 100, 1, 0);
	size_t count;

	(void)state;
	for (uint32_t i = 0; i < 3 * BLOCK_FOLDED_MAX; i++)
		add(DEV_A, 100 + i, 100 + i, 1 + i, 3 * BLOCK_FOLDED_MAX - i);
	assert_int_equal(fold.count, BLOCK_FOLDED_MAX);
	assert_string_equal(block_fold_find_name(&fold, &first), "worker");
	sum_of(RECORD_BY_process, &count);
	assert_int_equal(count, BLOCK_FOLDED_MAX / 2);
	sum_of(RECORD_BY_cgroup, &count);
	assert_int_equal(count, BLOCK_FOLDED_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_threads_of_a_process, setup),
		cmocka_unit_test_setup(test_an_id_is_used_again, setup),
		cmocka_unit_test_setup(test_more_processes_than_there_is_room_for, setup),
		cmocka_unit_test_setup(test_more_groups_than_there_is_room_for, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
