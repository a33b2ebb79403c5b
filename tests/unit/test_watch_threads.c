/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Which threads of watched processes are blocked, and what a scan of them may cost. */
#include "test_watch_tree.h"

#include <dirent.h>
#include <errno.h>

static void test_blocked_over_two_scans(void **state)
{
	struct tree *t = *state;
	const struct record_threads *found;
	struct watch *w;

	tree_list_add(&t->process, "mariadbd");
	tree_put_thread(t, 10, 10, "mariadbd", 'S', 500, 9);
	for (int tid = 11; tid < 15; tid++)
		tree_put_thread(t, 10, tid, "worker", 'S', 500, 9);
	w = tree_watch(t);
	found = tree_scan(t, w, 1000);
	assert_int_equal(found->scanned, 5);
	assert_true(found->complete);
	assert_int_equal(found->blocked, 0);

	tree_put_thread(t, 10, 12, "worker", 'D', 500, 10);
	tree_put_thread(t, 10, 13, "worker", 'D', 500, 20);
	tree_put_thread(t, 10, 14, "worker", 'D', 500, 30);
	assert_int_equal(tree_scan(t, w, 1000)->blocked, 0);

	/* 12 still sleeps the same sleep, 13 has run in between, 14 does not sleep any more. */
	tree_put_thread(t, 10, 13, "worker", 'D', 500, 21);
	tree_put_thread(t, 10, 14, "worker", 'S', 500, 31);
	found = tree_scan(t, w, 1000);
	assert_int_equal(found->scanned, 5);
	assert_int_equal(found->blocked, 1);
	assert_int_equal(found->blocked_pid, 10);
	assert_int_equal(found->blocked_tid, 12);

	found = tree_scan(t, w, 1000);
	assert_int_equal(found->blocked, 2);
	assert_int_equal(found->blocked_tid, 12);

	/* Woken and asleep again is a new sleep, and so is that of another thread. */
	tree_put_thread(t, 10, 12, "worker", 'D', 500, 11);
	tree_put_thread(t, 10, 13, "worker", 'D', 777, 3);
	assert_int_equal(tree_scan(t, w, 1000)->blocked, 0);
	assert_int_equal(tree_scan(t, w, 1000)->blocked, 2);
	tree_remove(t, "proc/10/task/12");
	tree_remove(t, "proc/10/task/13");
	found = tree_scan(t, w, 1000);
	assert_int_equal(found->blocked, 0);
	assert_int_equal(found->blocked_pid, 0);
	watch_free(w);
}

/* A process of a unit that executes another program in an incident: its threads still count. */
static void test_blocked_after_a_rename(void **state)
{
	struct tree *t = *state;
	struct watch *w;

	tree_list_add(&t->process, "unit:db.service");
	tree_put_thread(t, 10, 10, "x", 'S', 500, 9);
	tree_put_cgroup(t, 10, "0::/system.slice/db.service\n");
	w = tree_watch(t);
	for (unsigned int i = 0; i < WAITS_MAX && tree_watched(w) == 0; i++) {
		usleep(500);
		tree_scan(t, w, 1000);
	}
	tree_put_thread(t, 10, 10, "y", 'D', 500, 10);
	for (unsigned int i = 0; i < 3; i++) {
		t->now_ns += NSEC_PER_SEC;
		assert_int_equal(watch_take_sample(w, true), 0);
	}
	print_message("%u of 1 thread blocked\n", watch_last(w)->threads.blocked);
	assert_int_equal(watch_last(w)->threads.blocked, 1);

	/*
	 * Afterwards its unit is asked again. It changes before the name does, since the thread may
	 * be reading it for "y" only now.
	 */
	tree_put_cgroup(t, 10, "0::/\n");
	tree_put_thread(t, 10, 10, "z", 'S', 500, 11);
	for (unsigned int i = 0; i < WAITS_MAX && tree_watched(w) > 0; i++) {
		usleep(500);
		tree_scan(t, w, 1000);
	}
	assert_int_equal(tree_watched(w), 0);
	watch_free(w);
}

/* Two scans in quick succession say nothing about an interval. */
static void test_blocked_needs_an_interval(void **state)
{
	struct tree *t = *state;
	struct watch *w;

	tree_list_add(&t->process, "10");
	tree_put_thread(t, 10, 10, "x", 'D', 500, 9);
	w = tree_watch(t);
	assert_int_equal(tree_scan(t, w, 1000)->blocked, 0);
	assert_int_equal(tree_scan(t, w, 100)->blocked, 0);
	assert_int_equal(tree_scan(t, w, 850)->blocked, 1);
	watch_free(w);
}

static void test_without_switches(void **state)
{
	struct tree *t = *state;
	struct watch *w;

	tree_list_add(&t->process, "10");
	tree_put_thread(t, 10, 10, "x", 'D', 500, 0);
	w = tree_watch(t);
	tree_put(t, "proc/10/task/10/status", "Name:\tx\nState:\tD (any)\nTgid:\t10\nPid:\t10\n");
	tree_scan(t, w, 1000);
	/* No count at all: nothing is believed. */
	assert_int_equal(tree_scan(t, w, 1000)->blocked, 0);
	tree_put_thread(t, 10, 10, "x", 'D', 500, 0);
	tree_scan(t, w, 1000);
	assert_int_equal(tree_scan(t, w, 1000)->blocked, 1);
	watch_free(w);
}

/* Of a process in more groups than the buffer has room for. */
static void test_switches_after_many_groups(void **state)
{
	static char groups[65536 * 7 + 1];
	static const size_t sizes[] = { 7000, 7910, 8191, 8192, 9200, 16400, 65536 * 7 };
	struct tree *t = *state;
	unsigned int blocked = 0;
	struct watch *w;

	tree_list_add(&t->process, "10");
	tree_put_thread(t, 10, 10, "x", 'D', 500, 0);
	w = tree_watch(t);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (size_t at = 0; at < sizes[i]; at++)
			groups[at] = "100000 "[at % 7];
		groups[sizes[i]] = '\0';
		for (unsigned int scan = 0; scan < 2; scan++) {
			tree_put(t, "proc/10/task/10/status",
				"Name:\tx\nUmask:\t0022\nState:\tD (any)\nTgid:\t10\nNgid:\t0\n"
				"Pid:\t10\nPPid:\t1\nGroups:\t%s\nThreads:\t1\n"
				"voluntary_ctxt_switches:\t%zu\nnonvoluntary_ctxt_switches:\t2\n",
				groups, i);
			tree_scan(t, w, 1000);
		}
		blocked += watch_last(w)->threads.blocked;
		/* One that runs in between is not blocked. */
		tree_put_thread(t, 10, 10, "x", 'D', 500, 100);
		assert_int_equal(tree_scan(t, w, 1000)->blocked, 0);
	}
	print_message("blocked with %u of 7 lengths of status\n", blocked);
	assert_int_equal(blocked, 7);
	watch_free(w);
}

static void test_idle_scan_continues_where_it_stopped(void **state)
{
	struct tree *t = *state;
	const struct record_threads *found;
	uint32_t total = 0;
	struct watch *w;

	tree_list_add(&t->process, "x");
	for (int pid = 100; pid < 110; pid++)
		for (int tid = pid; tid < pid + 1000; tid += 100)
			tree_put_thread(t, pid, tid, "x", 'S', 500, 9);
	w = tree_watch(t);
	assert_int_equal(tree_watched(w), 10);
	/* 0.04 % of a second at 10 us a step; entering and leaving a process are steps too. */
	t->step_ns = 10 * NSEC_PER_USEC;
	for (unsigned int i = 0; i < 4; i++) {
		found = tree_scan(t, w, 1000);
		assert_false(found->complete);
		total += found->scanned;
		if (i < 3)
			assert_in_range(found->scanned, 30, 40);
	}
	/* The fourth came to the end after fewer than four, and began anew. */
	assert_in_range(total, 125, 140);
	/* So many are read on any CPU, but not for longer than by a full scan. */
	t->step_ns = 300 * NSEC_PER_USEC;
	assert_in_range(tree_scan(t, w, 1000)->scanned, 4, 5);
	t->step_ns = 10 * NSEC_PER_MSEC;
	assert_in_range(tree_scan(t, w, 1000)->scanned, 0, 2);
	t->step_ns = 10 * NSEC_PER_USEC;

	/* One that hangs is met on the way round and then looked at in each scan. */
	tree_put_thread(t, 107, 407, "x", 'D', 500, 9);
	for (unsigned int i = 0; i < 6; i++)
		found = tree_scan(t, w, 1000);
	assert_int_equal(found->blocked, 1);
	assert_int_equal(found->blocked_pid, 107);
	assert_int_equal(found->blocked_tid, 407);
	/* And while there is one, all are looked at. */
	assert_true(tree_scan(t, w, 1000)->complete);
	tree_put_thread(t, 107, 407, "x", 'S', 500, 9);
	assert_int_equal(tree_scan(t, w, 1000)->blocked, 0);
	assert_false(tree_scan(t, w, 1000)->complete);
	watch_free(w);
}

static void test_full_scan_when_something_is_wrong(void **state)
{
	struct tree *t = *state;
	struct watch *w;

	tree_list_add(&t->process, "100");
	for (int tid = 100; tid < 300; tid++)
		tree_put_thread(t, 100, tid, "x", 'S', 500, 9);
	tree_put_psi(t, "io", 0, 0);
	tree_put_psi(t, "memory", 0, 0);
	w = tree_watch(t);
	t->step_ns = 10 * NSEC_PER_USEC;
	assert_false(tree_scan(t, w, 1000)->complete);

	tree_put_stat(t, 0, 0, 1);
	assert_true(tree_scan(t, w, 1000)->complete);
	assert_int_equal(watch_last(w)->threads.scanned, 200);
	tree_put_stat(t, 0, 0, 0);
	assert_false(tree_scan(t, w, 1000)->complete);

	tree_put_psi(t, "io", 20000, 0);
	assert_true(tree_scan(t, w, 1000)->complete);
	assert_false(tree_scan(t, w, 1000)->complete);
	tree_put_psi(t, "memory", 20000, 0);
	assert_true(tree_scan(t, w, 1000)->complete);
	assert_false(tree_scan(t, w, 1000)->complete);

	assert_int_equal(watch_take_sample(w, true), 0);
	assert_true(watch_last(w)->threads.complete);

	/* Bounded even then: 10 ms are 50 threads of 200 us, and the next scan goes on. */
	t->step_ns = 200 * NSEC_PER_USEC;
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(watch_take_sample(w, true), 0);
		assert_false(watch_last(w)->threads.complete);
		assert_in_range(watch_last(w)->threads.scanned, 45, 50);
	}
	watch_free(w);
}

/* The thread that the kernel lists first: it does so in any order. */
static int first_thread(const struct tree *t, int pid)
{
	const struct dirent *entry;
	char path[2 * PATH_MAX];
	int tid = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%d/task", t->procfs, pid);
	dir = opendir(path);
	assert_non_null(dir);
	while (tid == 0 && (entry = readdir(dir)))
		tid = atoi(entry->d_name);
	closedir(dir);
	return tid;
}

/* A full scan has time for 50 of 70 threads: the first ones are not only read by every second. */
static void test_a_full_scan_that_ends_early_begins_anew(void **state)
{
	struct tree *t = *state;
	struct watch *w;

	tree_list_add(&t->process, "100");
	for (int tid = 100; tid < 170; tid++)
		tree_put_thread(t, 100, tid, "x", 'S', 500, 9);
	tree_put_stat(t, 0, 0, 1);
	w = tree_watch(t);
	t->step_ns = 200 * NSEC_PER_USEC;
	assert_in_range(tree_scan(t, w, 1000)->scanned, 45, 50);
	tree_put_thread(t, 100, first_thread(t, 100), "x", 'D', 500, 9);
	tree_scan(t, w, 1000);
	assert_int_equal(tree_scan(t, w, 1000)->blocked, 1);
	watch_free(w);
}

/*
 * Threads that wait for a lock cause neither pressure nor iowait. The idle scan reads a few
 * threads; when it meets one of them, it goes on for as long as a full one.
 */
static void test_an_idle_scan_goes_on_at_a_blocked_thread(void **state)
{
	struct tree *t = *state;
	struct watch *w;

	tree_list_add(&t->process, "100");
	for (int tid = 100; tid < 190; tid++)
		tree_put_thread(t, 100, tid, "x", 'S', 500, 9);
	w = tree_watch(t);
	t->step_ns = 50 * NSEC_PER_USEC;
	assert_in_range(tree_scan(t, w, 1000)->scanned, 4, 10);
	for (int tid = 100; tid < 190; tid++)
		tree_put_thread(t, 100, tid, "x", 'D', 500, 9);
	/* It begins behind the threads that the scan before has read. */
	tree_scan(t, w, 1000);
	assert_int_equal(tree_scan(t, w, 1000)->blocked, 90);
	watch_free(w);
}

static void test_recheck_continues_where_it_stopped(void **state)
{
	struct tree *t = *state;
	const struct record_threads *found;
	struct watch *w;

	tree_list_add(&t->process, "100");
	for (int tid = 100; tid < 200; tid++)
		tree_put_thread(t, 100, tid, "x", 'D', 500, 9);
	w = tree_watch(t);
	tree_scan(t, w, 1000);
	assert_int_equal(tree_scan(t, w, 1000)->blocked, 100);
	/* Every one is reached, although most before it stay blocked. */
	for (int tid = 100; tid < 200; tid += 5)
		tree_put_thread(t, 100, tid, "x", 'S', 500, 10);
	t->step_ns = 200 * NSEC_PER_USEC;
	for (unsigned int i = 0; i < 3; i++)
		found = tree_scan(t, w, 1000);
	assert_int_equal(found->blocked, 80);
	t->step_ns = 0;
	tree_scan(t, w, 1000);
	for (int tid = 100; tid < 200; tid++)
		tree_put_thread(t, 100, tid, "x", 'S', 500, 10);
	/* 50 a scan: what was not reached is still believed. */
	t->step_ns = 200 * NSEC_PER_USEC;
	found = tree_scan(t, w, 1000);
	assert_false(found->complete);
	assert_in_range(found->blocked, 30, 55);
	found = tree_scan(t, w, 1000);
	assert_in_range(found->blocked, 0, 5);
	assert_int_equal(tree_scan(t, w, 1000)->blocked, 0);
	watch_free(w);
}

/* Opening a FIFO without a writer never returns: the alarm would end the test. */
static void test_nothing_forbidden_is_opened(void **state)
{
	static const char *const forbidden[] = {
		"cmdline",
		"environ",
		"maps",
		"smaps",
		"smaps_rollup",
		"numa_maps",
		"mem",
		"auxv",
		"pagemap",
		"exe",
		"stat",
		"io",
		"wchan",
		"syscall",
		"stack",
	};
	struct tree *t = *state;
	struct watch *w;

	tree_list_add(&t->process, "mariadbd");
	tree_list_add(&t->process, "unit:mariadb.service");
	for (int tid = 10; tid < 14; tid++)
		tree_put_thread(t, 10, tid, "mariadbd", 'D', 500, 9);
	tree_put_cgroup(t, 10, "0::/system.slice/mariadb.service\n");
	for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
		char path[2 * PATH_MAX];

		snprintf(path, sizeof(path), "%s/10/%s", t->procfs, forbidden[i]);
		assert_int_equal(mkfifo(path, 0600), 0);
		for (int tid = 10; tid < 14; tid++) {
			snprintf(path, sizeof(path), "%s/10/task/%d/%s", t->procfs, tid,
				forbidden[i]);
			unlink(path);
			assert_int_equal(mkfifo(path, 0600), 0);
		}
	}
	alarm(20);
	w = tree_watch(t);
	for (unsigned int i = 0; i < 100; i++) {
		t->now_ns += NSEC_PER_SEC;
		assert_int_equal(watch_take_sample(w, i % 2), 0);
	}
	assert_int_equal(watch_last(w)->threads.blocked, 4);
	watch_free(w);
	alarm(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		tree_test(test_blocked_over_two_scans),
		tree_test(test_an_idle_scan_goes_on_at_a_blocked_thread),
		tree_test(test_blocked_after_a_rename),
		tree_test(test_blocked_needs_an_interval),
		tree_test(test_without_switches),
		tree_test(test_switches_after_many_groups),
		tree_test(test_idle_scan_continues_where_it_stopped),
		tree_test(test_full_scan_when_something_is_wrong),
		tree_test(test_a_full_scan_that_ends_early_begins_anew),
		tree_test(test_recheck_continues_where_it_stopped),
		tree_test(test_nothing_forbidden_is_opened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
