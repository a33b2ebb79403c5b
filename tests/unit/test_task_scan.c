/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/*
 * A scan that runs out of time goes on where it stopped. No program is run here: a thread counts as
 * visited nevertheless.
 */
#include "test_watch_tree.h"

#include "snapshot/task_scan.h"
#include "util/cleanup.h"

/* More than two parts of a scan whose time is always over. */
#define PROCESSES 50
#define PART_MAX 16
#define FOREVER UINT64_MAX

struct scan {
	int procfs_fd;
	int32_t only[PROCESSES];
	struct task_scan_options options;
	struct task_scan_progress progress;
	struct task_scan_result result;
};

static void begin(struct tree *t, struct scan *scan)
{
	memset(scan, 0, sizeof(*scan));
	scan->procfs_fd = open(t->procfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(scan->procfs_fd >= 0);
	for (int32_t i = 0; i < PROCESSES; i++) {
		scan->only[i] = 101 + i;
		tree_put_thread(t, 101 + i, 101 + i, "worker", 'S', 1, 1);
	}
	scan->options = (struct task_scan_options){
		.procfs_fd = scan->procfs_fd,
		.program_fd = -1,
		.offcpu_fd = -1,
		.only = scan->only,
		.only_count = PROCESSES,
	};
}

static void test_a_scan_goes_on_where_it_stopped(void **state)
{
	static struct scan scan;
	unsigned int parts = 0;

	begin(*state, &scan);
	while (!scan.progress.complete) {
		task_scan_continue(&scan.progress, &scan.options, &scan.result);
		assert_in_range(scan.result.visited, 1, PART_MAX);
		/* In ascending order, and none is passed over. */
		assert_int_equal(scan.progress.pid, 100 + scan.progress.visited);
		parts++;
		assert_in_range(parts, 1, PROCESSES);
	}
	assert_int_equal(scan.progress.visited, PROCESSES);
	assert_int_equal(parts, (PROCESSES + PART_MAX - 1) / PART_MAX);
	assert_int_equal(task_scan_count_left(&scan.progress, &scan.options), 0);
	close_fd(scan.procfs_fd);
}

/* Ids that have wrapped around are listed after larger ones. */
static void test_threads_in_any_order(void **state)
{
	struct tree *t = *state;
	static struct scan scan;

	begin(t, &scan);
	for (int32_t tid = 500; tid > 400; tid -= 2)
		tree_put_thread(t, 101, tid, "worker", 'S', 1, 1);
	for (int32_t tid = 401; tid < 500; tid += 2)
		tree_put_thread(t, 101, tid, "worker", 'S', 1, 1);
	scan.options.only_count = 1;
	for (unsigned int parts = 0; !scan.progress.complete; parts++) {
		task_scan_continue(&scan.progress, &scan.options, &scan.result);
		assert_in_range(parts, 0, 101 / PART_MAX);
		assert_int_equal(scan.progress.is_open, !scan.progress.complete);
	}
	assert_int_equal(scan.progress.visited, 101);
	close_fd(scan.procfs_fd);
}

/* An incident may end before all are visited. */
static void test_a_scan_is_given_up(void **state)
{
	struct tree *t = *state;
	static struct scan scan;

	begin(t, &scan);
	for (int32_t tid = 401; tid < 500; tid++)
		tree_put_thread(t, 101, tid, "worker", 'S', 1, 1);
	task_scan_continue(&scan.progress, &scan.options, &scan.result);
	assert_true(scan.progress.is_open);
	task_scan_reset(&scan.progress);
	assert_false(scan.progress.is_open);
	scan.options.deadline_ns = FOREVER;
	task_scan_continue(&scan.progress, &scan.options, &scan.result);
	assert_true(scan.progress.complete);
	assert_int_equal(scan.progress.visited, PROCESSES + 99);
	close_fd(scan.procfs_fd);
}

static void test_a_scan_with_time_is_complete_at_once(void **state)
{
	static struct scan scan;

	begin(*state, &scan);
	scan.options.deadline_ns = FOREVER;
	task_scan_continue(&scan.progress, &scan.options, &scan.result);
	assert_true(scan.progress.complete);
	assert_int_equal(scan.progress.visited, PROCESSES);
	assert_int_equal(task_scan_count_left(&scan.progress, &scan.options), 0);
	close_fd(scan.procfs_fd);
}

/* Threads that have not been visited are counted, and none are left at the end. */
static void test_what_is_left_is_counted(void **state)
{
	struct tree *t = *state;
	static struct scan scan;

	begin(t, &scan);
	tree_put(t, "proc/loadavg", "0.20 0.18 0.12 1/%d 150\n", PROCESSES);
	scan.options.only = NULL;
	task_scan_continue(&scan.progress, &scan.options, &scan.result);
	assert_false(scan.progress.complete);
	assert_int_equal(task_scan_count_left(&scan.progress, &scan.options),
		PROCESSES - scan.progress.visited);
	/* More threads were visited than there are: some have ended, and it goes on. */
	tree_put(t, "proc/loadavg", "0.20 0.18 0.12 1/3 150\n");
	assert_int_equal(task_scan_count_left(&scan.progress, &scan.options), 1);
	/* How many threads the processes of a filter have is not known. */
	scan.options.only = scan.only;
	assert_int_equal(task_scan_count_left(&scan.progress, &scan.options), 1);
	/* The directory of a test has no order: the rest is visited by the list. */
	scan.options.deadline_ns = FOREVER;
	task_scan_reset(&scan.progress);
	task_scan_continue(&scan.progress, &scan.options, &scan.result);
	assert_int_equal(task_scan_count_left(&scan.progress, &scan.options), 0);
	close_fd(scan.procfs_fd);
}

/* The time for several processes may be over before the next one begins: that one is incomplete. */
static void test_a_process_for_which_no_time_is_left(void **state)
{
	static struct scan scan;

	begin(*state, &scan);
	task_scan_process(&scan.options, 101, &scan.result);
	assert_int_equal(scan.result.visited, 0);
	assert_false(scan.result.complete);
	scan.options.deadline_ns = FOREVER;
	task_scan_process(&scan.options, 101, &scan.result);
	assert_int_equal(scan.result.visited, 1);
	assert_true(scan.result.complete);
	close_fd(scan.procfs_fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		tree_test(test_a_process_for_which_no_time_is_left),
		tree_test(test_a_scan_goes_on_where_it_stopped),
		tree_test(test_threads_in_any_order),
		tree_test(test_a_scan_is_given_up),
		tree_test(test_a_scan_with_time_is_complete_at_once),
		tree_test(test_what_is_left_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
