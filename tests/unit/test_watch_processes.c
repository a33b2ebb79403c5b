/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which processes are watched: how they are found, and when one comes or goes. */
#include "test_watch_tree.h"

#include <sys/resource.h>

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
	assert_true(tree_is_watched(w, 10) && tree_is_watched(w, 13) && tree_is_watched(w, 77));
	for (unsigned int i = 0; i < count; i++)
		if (p[i].pid == 77)
			assert_string_equal(p[i].comm, "a (b) c");
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
	tree_put_cgroup(t, 20, "0::/system.slice/db.service\n");
	tree_put_cgroup(t, 21, "0::/system.slice/mydb.service\n");
	tree_put_cgroup(t, 22,
		"0::/system.slice/system-postgresql.slice/postgresql@15-main.service\n");
	tree_put_cgroup(t, 23, "9:name=systemd:/system.slice/db.service/worker\n8:pids:/\n");
	tree_put_cgroup(t, 24, "0::/\n");
	tree_put_cgroup(t, 25, "0::/system.slice/db.service2\n");
	w = tree_watch(t);
	assert_int_equal(tree_watched(w), 3);
	assert_true(tree_is_watched(w, 20) && tree_is_watched(w, 22) && tree_is_watched(w, 23));

	t->process = (struct config_list){ 0 };
	tree_list_add(&t->process, "25");
	assert_int_equal(watch_reload(w, &options), 0);
	assert_int_equal(tree_watched(w), 1);
	assert_true(tree_is_watched(w, 25));
	t->process = (struct config_list){ 0 };
	assert_int_equal(watch_reload(w, &options), 0);
	assert_int_equal(tree_watched(w), 0);
	watch_free(w);
}

static void put_newest_id(struct tree *t, int id)
{
	tree_put(t, "proc/loadavg", "0.10 0.10 0.10 1/100 %d\n", id);
}

/* Each connection of PostgreSQL is a new process, known before the next scan of all processes. */
static void test_new_processes_are_found_in_one_sample(void **state)
{
	struct tree *t = *state;
	struct watch *w;

	tree_list_add(&t->process, "postgres");
	tree_put_thread(t, 10, 10, "postgres", 'S', 500, 9);
	put_newest_id(t, 20);
	w = tree_watch(t);
	tree_scan(t, w, 1000);
	assert_int_equal(tree_watched(w), 1);

	/* 21 is a new backend, 22 has not called exec yet, 23 is a thread of 21. */
	tree_put_thread(t, 21, 21, "postgres", 'S', 600, 1);
	tree_put_thread(t, 22, 22, "sh", 'S', 600, 1);
	tree_put_thread(t, 23, 23, "postgres", 'S', 600, 1);
	tree_put_thread(t, 24, 24, "sh", 'S', 600, 1);
	tree_put(t, "proc/23/status", "Name:\tx\nState:\tS (sleeping)\nTgid:\t21\nPid:\t23\n");
	put_newest_id(t, 24);
	tree_scan(t, w, 1000);
	assert_int_equal(tree_watched(w), 2);
	assert_true(tree_is_watched(w, 21));

	tree_put_thread(t, 22, 22, "postgres", 'S', 600, 2);
	tree_scan(t, w, 1000);
	assert_int_equal(tree_watched(w), 3);
	assert_true(tree_is_watched(w, 22));
	watch_free(w);
}

/* When ids have wrapped or too many are new, all processes are scanned soon. */
static void test_many_new_processes_are_found_by_a_scan(void **state)
{
	struct tree *t = *state;
	struct watch *w;

	tree_list_add(&t->process, "postgres");
	put_newest_id(t, 2000);
	w = tree_watch(t);
	tree_scan(t, w, 1000);
	tree_put_thread(t, 30, 30, "postgres", 'S', 600, 1);
	put_newest_id(t, 40);
	tree_scan(t, w, 1000);
	tree_scan(t, w, 1000);
	tree_scan(t, w, 1000);
	assert_true(tree_is_watched(w, 30));

	tree_put_thread(t, 900, 900, "postgres", 'S', 700, 1);
	put_newest_id(t, 1000);
	tree_scan(t, w, 1000);
	tree_scan(t, w, 1000);
	tree_scan(t, w, 1000);
	assert_true(tree_is_watched(w, 900));
	watch_free(w);
}

/* A process that a scan meets before it calls exec is looked at again by the next one. */
static void test_a_young_process_is_scanned_twice(void **state)
{
	struct tree *t = *state;
	struct watch *w;

	tree_list_add(&t->process, "postgres");
	put_newest_id(t, 100);
	w = tree_watch(t);
	tree_scan(t, w, 1000);
	tree_put_thread(t, 300, 300, "sh", 'S', 600, 1);
	put_newest_id(t, 300);
	tree_scan(t, w, 1000);
	tree_scan(t, w, 1000);
	tree_put_thread(t, 300, 300, "postgres", 'S', 600, 1);
	for (unsigned int i = 0; i < 4; i++)
		tree_scan(t, w, 1000);
	assert_true(tree_is_watched(w, 300));
	watch_free(w);
}

/* Where ids have wrapped, processes with higher ids than the newest one are old. */
static void test_an_old_process_with_a_high_id_is_not_young(void **state)
{
	struct tree *t = *state;
	struct watch *w;

	tree_list_add(&t->process, "postgres");
	put_newest_id(t, 5100);
	tree_put_thread(t, 5000, 5000, "sh", 'S', 600, 1);
	w = tree_watch(t);
	/* Each jump lets a scan begin, and a minute later what was seen is forgotten. */
	for (int id = 100; id <= 700; id += 200) {
		put_newest_id(t, id);
		tree_scan(t, w, 1000);
	}
	for (int id = 900; id <= 1700; id += 200) {
		put_newest_id(t, id);
		tree_scan(t, w, id == 900 ? 61000 : 1000);
	}
	tree_put_thread(t, 5000, 5000, "postgres", 'S', 600, 1);
	for (int id = 1900; id <= 2700; id += 200) {
		put_newest_id(t, id);
		tree_scan(t, w, 1000);
	}
	assert_false(tree_is_watched(w, 5000));
	watch_free(w);
}

static void remove_process(struct tree *t, int pid)
{
	char name[64];

	snprintf(name, sizeof(name), "proc/%d", pid);
	tree_remove(t, name);
}

static void test_processes_come_and_go(void **state)
{
	struct tree *t = *state;
	struct watch *w;

	tree_list_add(&t->process, "postgres");
	tree_put_thread(t, 10, 10, "postgres", 'S', 500, 9);
	tree_put_thread(t, 50, 50, "bash", 'S', 500, 9);
	w = tree_watch(t);
	assert_int_equal(tree_watched(w), 1);

	/* A new one is found within 10 s ... */
	tree_put_thread(t, 11, 11, "postgres", 'S', 600, 9);
	tree_scan(t, w, 1000);
	assert_int_equal(tree_watched(w), 1);
	for (unsigned int i = 0; i < 10; i++)
		tree_scan(t, w, 1000);
	assert_int_equal(tree_watched(w), 2);

	/* ... and at once when one vanishes. */
	remove_process(t, 11);
	tree_put_thread(t, 12, 12, "postgres", 'S', 700, 9);
	tree_scan(t, w, 2000);
	assert_false(tree_is_watched(w, 11));
	assert_true(tree_is_watched(w, 12));

	/* A pid that is another process's is dropped by its name. */
	tree_put_thread(t, 12, 12, "bash", 'S', 800, 9);
	tree_put_thread(t, 10, 10, "postgres", 'S', 801, 9);
	tree_scan(t, w, 2500);
	tree_scan(t, w, 2500);
	assert_int_equal(tree_watched(w), 1);
	assert_true(tree_is_watched(w, 10));

	/* A shell that has become a database since it was looked at is found within a minute. */
	tree_put_thread(t, 50, 50, "postgres", 'S', 500, 9);
	for (unsigned int i = 0; i < 65; i++)
		tree_scan(t, w, 1000);
	assert_true(tree_is_watched(w, 50));
	watch_free(w);
}

/* An incident is not the time to wait for a minute. */
static void test_all_are_looked_at_again_when_armed(void **state)
{
	struct tree *t = *state;
	struct watch *w;

	tree_list_add(&t->process, "postgres");
	tree_put_thread(t, 50, 50, "sh", 'S', 500, 9);
	tree_put_thread(t, 60, 60, "sh", 'S', 500, 9);
	w = tree_watch(t);
	for (unsigned int i = 0; i < 15; i++)
		tree_scan(t, w, 1000);
	tree_put_thread(t, 50, 50, "postgres", 'S', 500, 9);
	t->now_ns += NSEC_PER_SEC;
	assert_int_equal(watch_take_sample(w, true), 0);
	assert_true(tree_is_watched(w, 50));
	/* So are those that execute another program in the incident. */
	tree_put_thread(t, 60, 60, "postgres", 'S', 500, 9);
	for (unsigned int i = 0; i < 11; i++) {
		t->now_ns += NSEC_PER_SEC;
		assert_int_equal(watch_take_sample(w, true), 0);
	}
	assert_true(tree_is_watched(w, 60));
	watch_free(w);
}

/* The list that trace.process makes has no threads that anybody scans. */
static void test_list_of_the_filter(void **state)
{
	static const struct watch_clock clock;
	struct tree *t = *state;
	struct processes *p = calloc(1, sizeof(*p));
	int procfs_fd;

	tree_list_add(&t->process, "postgres");
	for (int pid = 10; pid < 20; pid++)
		tree_put_thread(t, pid, pid, "postgres", 'S', 500, 9);
	procfs_fd = open(t->procfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_non_null(p);
	assert_int_equal(processes_init(p, procfs_fd, &t->process), 0);
	processes_scan(p, &clock, UINT64_MAX, false);
	assert_int_equal(p->count, 10);
	tree_remove(t, "proc/12");
	tree_put_thread(t, 15, 15, "sh", 'S', 600, 9);
	for (unsigned int i = 0; i < 4; i++)
		processes_check(p, false);
	assert_int_equal(p->count, 8);
	processes_done(p);
	close(procfs_fd);
	free(p);
}

static bool is_listed(const struct processes *p, int pid)
{
	for (uint32_t i = 0; i < p->count; i++)
		if (p->list[i].pid == pid)
			return true;
	return false;
}

/* A process that names itself or executes another program stays when its pattern still matches. */
static void test_filter_of_renamed_processes(void **state)
{
	static const struct watch_clock clock;
	struct tree *t = *state;
	struct processes *p = calloc(1, sizeof(*p));
	int procfs_fd;

	tree_list_add(&t->process, "unit:db.service");
	tree_list_add(&t->process, "30");
	tree_list_add(&t->process, "postgres");
	for (int pid = 10; pid <= 40; pid += 10) {
		tree_put_thread(t, pid, pid, pid == 40 ? "postgres" : "x", 'S', 500, 9);
		tree_put_cgroup(t, pid, pid <= 20 ? "0::/system.slice/db.service\n" : "0::/\n");
	}
	procfs_fd = open(t->procfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_non_null(p);
	assert_int_equal(processes_init(p, procfs_fd, &t->process), 0);
	processes_scan(p, &clock, UINT64_MAX, false);
	assert_int_equal(p->count, 4);

	/* While armed no unit can be asked: 20 has left its unit, which is found out afterwards. */
	for (int pid = 10; pid <= 40; pid += 10)
		tree_put_thread(t, pid, pid, "y", 'S', 500, 9);
	tree_put_cgroup(t, 20, "0::/\n");
	processes_check(p, true);
	print_message("%u of 4 renamed processes listed while armed\n", p->count);
	assert_int_equal(p->count, 4);
	for (unsigned int i = 0; i < 2; i++)
		processes_check(p, false);
	print_message("%u of 2 listed afterwards\n", p->count);
	assert_int_equal(p->count, 2);
	assert_true(is_listed(p, 10) && is_listed(p, 30));
	processes_done(p);
	close(procfs_fd);
	free(p);
}

/* Without free descriptors nothing is known about a process, and so it stays. */
static void test_filter_without_descriptors(void **state)
{
	static const struct watch_clock clock;
	struct tree *t = *state;
	struct processes *p = calloc(1, sizeof(*p));
	struct rlimit limit, none;
	int procfs_fd;

	tree_list_add(&t->process, "postgres");
	for (int pid = 10; pid < 14; pid++)
		tree_put_thread(t, pid, pid, "postgres", 'S', 500, 9);
	procfs_fd = open(t->procfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_non_null(p);
	assert_int_equal(processes_init(p, procfs_fd, &t->process), 0);
	processes_scan(p, &clock, UINT64_MAX, false);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){ .rlim_cur = 3, .rlim_max = limit.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	processes_check(p, false);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	print_message("%u of 4 processes listed\n", p->count);
	assert_int_equal(p->count, 4);
	processes_done(p);
	close(procfs_fd);
	free(p);
}

/* Only pids that were not seen before are read: the second scan must not open the first ones. */
static void test_scan_reads_new_pids_only(void **state)
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
		tree_scan(t, w, 1000);
	assert_int_equal(tree_watched(w), 0);
	watch_free(w);
}

/* A scan of 200 processes, each of which takes step_ns to look at; how many samples it takes. */
static unsigned int samples_of_scan(struct tree *t, uint64_t step_ns)
{
	unsigned int samples = 0;
	struct watch *w;

	tree_list_add(&t->process, "postgres");
	w = tree_watch(t);
	for (int pid = 300; pid < 500; pid++)
		tree_put_thread(t, pid, pid, "postgres", 'S', 500, 9);
	t->step_ns = step_ns;
	t->now_ns += 9 * NSEC_PER_SEC;
	while (tree_watched(w) < 200 && samples < 50) {
		tree_scan(t, w, 1000);
		samples++;
	}
	watch_free(w);
	return samples;
}

static void test_scan_is_spread_out(void **state)
{
	/* 32 a sample, and what 0.02 % of a second has room for at 20 us an entry. */
	assert_in_range(samples_of_scan(*state, 20 * NSEC_PER_USEC), 4, 6);
}

/* The time of a call may have been spent waiting for a CPU: 32 a sample all the same. */
static void test_scan_ends_on_a_busy_host(void **state)
{
	assert_in_range(samples_of_scan(*state, 10 * NSEC_PER_MSEC), 7, 8);
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
	assert_int_equal(tree_watched(w), WATCH_PROCESSES_MAX);
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
	tree_put_cgroup(t, 20, "0::/system.slice/db.service\n");
	t->now_ns += 11 * NSEC_PER_SEC;
	assert_int_equal(watch_take_sample(w, true), 0);
	assert_int_equal(tree_watched(w), 0);
	t->now_ns += 11 * NSEC_PER_SEC;
	assert_int_equal(watch_take_sample(w, false), 0);
	assert_int_equal(tree_watched(w), 1);
	watch_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		tree_test(test_found_by_name_and_pid),
		tree_test(test_found_by_unit),
		tree_test(test_new_processes_are_found_in_one_sample),
		tree_test(test_many_new_processes_are_found_by_a_scan),
		tree_test(test_a_young_process_is_scanned_twice),
		tree_test(test_an_old_process_with_a_high_id_is_not_young),
		tree_test(test_processes_come_and_go),
		tree_test(test_all_are_looked_at_again_when_armed),
		tree_test(test_list_of_the_filter),
		tree_test(test_filter_of_renamed_processes),
		tree_test(test_filter_without_descriptors),
		tree_test(test_scan_reads_new_pids_only),
		tree_test(test_scan_is_spread_out),
		tree_test(test_scan_ends_on_a_busy_host),
		tree_test(test_more_than_the_tables_hold),
		tree_test(test_no_cgroup_while_armed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
