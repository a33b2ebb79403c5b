/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "test_watch_tree.h"

#include <errno.h>

static const struct watch_threads *scan(struct tree *t, struct watch *w, uint64_t passed_ms)
{
	return &tree_sample(t, w, passed_ms)->threads;
}

static unsigned int watched(struct watch *w)
{
	unsigned int count;

	watch_processes(w, &count);
	return count;
}

static bool is_watched(struct watch *w, int pid)
{
	unsigned int count;
	const struct watch_process *p = watch_processes(w, &count);

	for (unsigned int i = 0; i < count; i++)
		if (p[i].pid == pid)
			return true;
	return false;
}

static void put_cgroup(struct tree *t, int pid, const char *text)
{
	char name[64];

	snprintf(name, sizeof(name), "proc/%d/cgroup", pid);
	tree_put(t, name, "%s", text);
}

static void remove_process(struct tree *t, int pid)
{
	char name[64];

	snprintf(name, sizeof(name), "proc/%d", pid);
	tree_remove(t, name);
}

static void test_found_by_name_and_pid(void **state)
{
	struct tree *t = *state;
	const struct watch_process *p;
	unsigned int count;
	struct watch *w;

	tree_list_add(&t->process, "mariadbd");
	tree_list_add(&t->process, "clickhouse-server");
	tree_list_add(&t->process, "77");
	tree_put_thread(t, 10, 10, "mariadbd", 'S', 500, 9);
	tree_put_thread(t, 11, 11, "mariadbd_safe", 'S', 501, 9);
	tree_put_thread(t, 12, 12, "mariadb", 'S', 502, 9);
	tree_put_thread(t, 13, 13, "clickhouse-serv", 'S', 503, 9);
	tree_put_thread(t, 77, 77, "a (b) c", 'S', 504, 9);
	tree_put_thread(t, 78, 78, "77", 'S', 505, 9);
	tree_put_thread(t, 79, 79, "mariadbd", 'Z', 506, 9);
	w = tree_watch(t);
	p = watch_processes(w, &count);
	assert_int_equal(count, 3);
	assert_true(is_watched(w, 10) && is_watched(w, 13) && is_watched(w, 77));
	for (unsigned int i = 0; i < count; i++) {
		if (p[i].pid != 77)
			continue;
		assert_string_equal(p[i].comm, "a (b) c");
		assert_int_equal(p[i].start_ticks, 504);
	}
	watch_free(w);
}

static void test_found_by_unit(void **state)
{
	struct tree *t = *state;
	struct watch_options options = tree_options(t);
	struct watch *w;

	tree_list_add(&t->process, "unit:db.service");
	tree_list_add(&t->process, "unit:postgresql");
	for (int pid = 20; pid < 27; pid++)
		tree_put_thread(t, pid, pid, "x", 'S', 1, 9);
	put_cgroup(t, 20, "0::/system.slice/db.service\n");
	put_cgroup(t, 21, "0::/system.slice/mydb.service\n");
	put_cgroup(t, 22, "0::/system.slice/system-postgresql.slice/postgresql@15-main.service\n");
	put_cgroup(t, 23, "9:name=systemd:/system.slice/db.service/worker\n8:pids:/\n");
	put_cgroup(t, 24, "0::/\n");
	put_cgroup(t, 25, "0::/system.slice/db.service2\n");
	w = tree_watch(t);
	assert_int_equal(watched(w), 3);
	assert_true(is_watched(w, 20) && is_watched(w, 22) && is_watched(w, 23));

	t->process = (struct config_list){ 0 };
	tree_list_add(&t->process, "25");
	assert_int_equal(watch_reload(w, &options), 0);
	assert_int_equal(watched(w), 1);
	assert_true(is_watched(w, 25));
	t->process = (struct config_list){ 0 };
	assert_int_equal(watch_reload(w, &options), 0);
	assert_int_equal(watched(w), 0);
	watch_free(w);
}

static void test_blocked_over_two_scans(void **state)
{
	struct tree *t = *state;
	const struct watch_threads *found;
	struct watch *w;

	tree_list_add(&t->process, "mariadbd");
	tree_put_thread(t, 10, 10, "mariadbd", 'S', 500, 9);
	for (int tid = 11; tid < 15; tid++)
		tree_put_thread(t, 10, tid, "worker", 'S', 500, 9);
	w = tree_watch(t);
	found = scan(t, w, 1000);
	assert_int_equal(found->scanned, 5);
	assert_true(found->complete);
	assert_int_equal(found->blocked, 0);

	tree_put_thread(t, 10, 12, "worker", 'D', 500, 10);
	tree_put_thread(t, 10, 13, "worker", 'D', 500, 20);
	tree_put_thread(t, 10, 14, "worker", 'D', 500, 30);
	assert_int_equal(scan(t, w, 1000)->blocked, 0);

	/* 12 still sleeps the same sleep, 13 has run in between, 14 does not sleep any more. */
	tree_put_thread(t, 10, 13, "worker", 'D', 500, 21);
	tree_put_thread(t, 10, 14, "worker", 'S', 500, 31);
	found = scan(t, w, 1000);
	assert_int_equal(found->scanned, 5);
	assert_int_equal(found->blocked, 1);
	assert_int_equal(found->blocked_pid, 10);
	assert_int_equal(found->blocked_tid, 12);

	found = scan(t, w, 1000);
	assert_int_equal(found->blocked, 2);
	assert_int_equal(found->blocked_tid, 12);

	/* Woken and asleep again is a new sleep; another thread under the number is no sleep at
	 * all. */
	tree_put_thread(t, 10, 12, "worker", 'D', 500, 11);
	tree_put_thread(t, 10, 13, "worker", 'D', 777, 21);
	assert_int_equal(scan(t, w, 1000)->blocked, 0);
	assert_int_equal(scan(t, w, 1000)->blocked, 2);
	tree_remove(t, "proc/10/task/12");
	tree_remove(t, "proc/10/task/13");
	found = scan(t, w, 1000);
	assert_int_equal(found->blocked, 0);
	assert_int_equal(found->blocked_pid, 0);
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
	assert_int_equal(scan(t, w, 1000)->blocked, 0);
	assert_int_equal(scan(t, w, 100)->blocked, 0);
	assert_int_equal(scan(t, w, 850)->blocked, 1);
	watch_free(w);
}

static void test_switches_from_status_without_schedstat(void **state)
{
	struct tree *t = *state;
	struct watch *w;

	tree_list_add(&t->process, "10");
	tree_put_thread(t, 10, 10, "x", 'D', 500, 0);
	w = tree_watch(t);
	/* No count at all: nothing is believed. */
	scan(t, w, 1000);
	assert_int_equal(scan(t, w, 1000)->blocked, 0);
	tree_put(t, "proc/10/task/10/status",
		"Name:\tx\nvoluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t4\n");
	scan(t, w, 1000);
	assert_int_equal(scan(t, w, 1000)->blocked, 1);
	tree_put(t, "proc/10/task/10/status",
		"Name:\tx\nvoluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t5\n");
	assert_int_equal(scan(t, w, 1000)->blocked, 0);
	watch_free(w);
}

static void test_idle_budget_goes_round(void **state)
{
	struct tree *t = *state;
	const struct watch_threads *found;
	uint32_t total = 0;
	struct watch *w;

	tree_list_add(&t->process, "x");
	for (int pid = 100; pid < 110; pid++)
		for (int tid = pid; tid < pid + 1000; tid += 100)
			tree_put_thread(t, pid, tid, "x", 'S', 500, 9);
	w = tree_watch(t);
	assert_int_equal(watched(w), 10);
	/* 0.04 % of a second at 10 us a step; entering and leaving a process are steps too. */
	t->step_ns = 10 * NSEC_PER_USEC;
	for (unsigned int i = 0; i < 4; i++) {
		found = scan(t, w, 1000);
		assert_false(found->complete);
		assert_in_range(found->scanned, 1, 40);
		total += found->scanned;
	}
	/* One round; what is left of a budget at its end is not spent. */
	assert_int_equal(total, 100);

	/* One that hangs is met on the way round and then looked at in each scan. */
	tree_put_thread(t, 107, 407, "x", 'D', 500, 9);
	for (unsigned int i = 0; i < 6; i++)
		found = scan(t, w, 1000);
	assert_int_equal(found->blocked, 1);
	assert_int_equal(found->blocked_pid, 107);
	assert_int_equal(found->blocked_tid, 407);
	/* And while there is one, all are looked at. */
	assert_true(scan(t, w, 1000)->complete);
	tree_put_thread(t, 107, 407, "x", 'S', 500, 9);
	assert_int_equal(scan(t, w, 1000)->blocked, 0);
	assert_false(scan(t, w, 1000)->complete);
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
	assert_false(scan(t, w, 1000)->complete);

	tree_put_stat(t, 0, 0, 1);
	assert_true(scan(t, w, 1000)->complete);
	assert_int_equal(watch_last(w)->threads.scanned, 200);
	tree_put_stat(t, 0, 0, 0);
	assert_false(scan(t, w, 1000)->complete);

	tree_put_psi(t, "io", 20000, 0);
	assert_true(scan(t, w, 1000)->complete);
	assert_false(scan(t, w, 1000)->complete);
	tree_put_psi(t, "memory", 20000, 0);
	assert_true(scan(t, w, 1000)->complete);
	assert_false(scan(t, w, 1000)->complete);

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

static void test_cut_recheck_goes_round(void **state)
{
	struct tree *t = *state;
	const struct watch_threads *found;
	struct watch *w;

	tree_list_add(&t->process, "100");
	for (int tid = 100; tid < 200; tid++)
		tree_put_thread(t, 100, tid, "x", 'D', 500, 9);
	w = tree_watch(t);
	scan(t, w, 1000);
	assert_int_equal(scan(t, w, 1000)->blocked, 100);
	/* Every one is reached, although most before it stay blocked. */
	for (int tid = 100; tid < 200; tid += 5)
		tree_put_thread(t, 100, tid, "x", 'S', 500, 10);
	t->step_ns = 200 * NSEC_PER_USEC;
	for (unsigned int i = 0; i < 3; i++)
		found = scan(t, w, 1000);
	assert_int_equal(found->blocked, 80);
	t->step_ns = 0;
	scan(t, w, 1000);
	for (int tid = 100; tid < 200; tid++)
		tree_put_thread(t, 100, tid, "x", 'S', 500, 10);
	/* 50 a scan: what was not reached is still believed. */
	t->step_ns = 200 * NSEC_PER_USEC;
	found = scan(t, w, 1000);
	assert_false(found->complete);
	assert_in_range(found->blocked, 30, 55);
	found = scan(t, w, 1000);
	assert_in_range(found->blocked, 0, 5);
	assert_int_equal(scan(t, w, 1000)->blocked, 0);
	watch_free(w);
}

static void test_processes_come_and_go(void **state)
{
	struct tree *t = *state;
	struct watch *w;

	tree_list_add(&t->process, "postgres");
	tree_put_thread(t, 10, 10, "postgres", 'S', 500, 9);
	tree_put_thread(t, 50, 50, "bash", 'S', 500, 9);
	w = tree_watch(t);
	assert_int_equal(watched(w), 1);

	/* A new one is found within 10 s ... */
	tree_put_thread(t, 11, 11, "postgres", 'S', 600, 9);
	scan(t, w, 1000);
	assert_int_equal(watched(w), 1);
	for (unsigned int i = 0; i < 10; i++)
		scan(t, w, 1000);
	assert_int_equal(watched(w), 2);

	/* ... and at once when one vanishes. */
	remove_process(t, 11);
	tree_put_thread(t, 12, 12, "postgres", 'S', 700, 9);
	scan(t, w, 2000);
	assert_false(is_watched(w, 11));
	assert_true(is_watched(w, 12));

	/* A pid that is another process's is dropped by its start time, and found anew if it is
	 * ours. */
	tree_put_thread(t, 12, 12, "bash", 'S', 800, 9);
	tree_put_thread(t, 10, 10, "postgres", 'S', 801, 9);
	scan(t, w, 2500);
	scan(t, w, 2500);
	assert_int_equal(watched(w), 1);
	assert_true(is_watched(w, 10));

	/* A shell that has become a database since it was looked at is found within a minute. */
	tree_put_thread(t, 50, 50, "postgres", 'S', 500, 9);
	for (unsigned int i = 0; i < 65; i++)
		scan(t, w, 1000);
	assert_true(is_watched(w, 50));
	watch_free(w);
}

/* Only pids that were not seen before are read: the second walk must not open what the first did.
 */
static void test_walk_reads_new_pids_only(void **state)
{
	struct tree *t = *state;
	struct watch *w;

	tree_list_add(&t->process, "postgres");
	for (int pid = 300; pid < 400; pid++)
		tree_put_thread(t, pid, pid, "bash", 'S', 500, 9);
	w = tree_watch(t);
	for (int pid = 300; pid < 400; pid++)
		tree_put_thread(t, pid, pid, "postgres", 'S', 500, 9);
	for (unsigned int i = 0; i < 15; i++)
		scan(t, w, 1000);
	assert_int_equal(watched(w), 0);
	watch_free(w);
}

static void test_walk_is_spread_out(void **state)
{
	struct tree *t = *state;
	unsigned int samples = 0;
	struct watch *w;

	tree_list_add(&t->process, "postgres");
	w = tree_watch(t);
	for (int pid = 300; pid < 400; pid++)
		tree_put_thread(t, pid, pid, "postgres", 'S', 500, 9);
	/* 0.02 % of a second at 10 us an entry: 20 a sample. */
	t->step_ns = 10 * NSEC_PER_USEC;
	t->now_ns += 9 * NSEC_PER_SEC;
	while (watched(w) < 100 && samples++ < 50)
		scan(t, w, 1000);
	assert_in_range(samples, 4, 8);
	watch_free(w);
}

static void test_more_than_the_tables_hold(void **state)
{
	struct tree *t = *state;
	struct watch_left_out left_out;
	struct watch *w;

	tree_list_add(&t->process, "postgres");
	for (int pid = 1000; pid < 1000 + WATCH_PROCESSES_MAX + 20; pid++)
		tree_put_thread(t, pid, pid, "postgres", 'S', 500, 9);
	w = tree_watch(t);
	tree_sample(t, w, 0);
	assert_int_equal(watched(w), WATCH_PROCESSES_MAX);
	watch_get_left_out(w, &left_out);
	assert_int_equal(left_out.processes, 20);
	assert_int_equal(left_out.threads, 0);
	assert_int_equal(left_out.disks, 0);
	watch_free(w);
}

/* While armed no cgroup is asked for: its lock may be what the host hangs on. */
static void test_no_cgroup_while_armed(void **state)
{
	struct tree *t = *state;
	struct watch *w;

	tree_list_add(&t->process, "unit:db.service");
	w = tree_watch(t);
	tree_put_thread(t, 20, 20, "x", 'S', 1, 9);
	put_cgroup(t, 20, "0::/system.slice/db.service\n");
	t->now_ns += 11 * NSEC_PER_SEC;
	assert_int_equal(watch_take_sample(w, true), 0);
	assert_int_equal(watched(w), 0);
	t->now_ns += 11 * NSEC_PER_SEC;
	assert_int_equal(watch_take_sample(w, false), 0);
	assert_int_equal(watched(w), 1);
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
	};
	struct tree *t = *state;
	struct watch *w;

	tree_list_add(&t->process, "mariadbd");
	tree_list_add(&t->process, "unit:mariadb.service");
	for (int tid = 10; tid < 14; tid++)
		tree_put_thread(t, 10, tid, "mariadbd", 'D', 500, 9);
	put_cgroup(t, 10, "0::/system.slice/mariadb.service\n");
	for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
		char path[2 * PATH_MAX];

		snprintf(path, sizeof(path), "%s/10/%s", t->procfs, forbidden[i]);
		assert_int_equal(mkfifo(path, 0600), 0);
		for (int tid = 10; tid < 14; tid++) {
			snprintf(path, sizeof(path), "%s/10/task/%d/%s", t->procfs, tid,
				forbidden[i]);
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
		tree_test(test_found_by_name_and_pid),
		tree_test(test_found_by_unit),
		tree_test(test_blocked_over_two_scans),
		tree_test(test_blocked_needs_an_interval),
		tree_test(test_switches_from_status_without_schedstat),
		tree_test(test_idle_budget_goes_round),
		tree_test(test_full_scan_when_something_is_wrong),
		tree_test(test_cut_recheck_goes_round),
		tree_test(test_processes_come_and_go),
		tree_test(test_walk_reads_new_pids_only),
		tree_test(test_walk_is_spread_out),
		tree_test(test_more_than_the_tables_hold),
		tree_test(test_no_cgroup_while_armed),
		tree_test(test_nothing_forbidden_is_opened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
