/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Which processes are watched: how they are found, and when one comes or goes. */
#include "test_watch_tree.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

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

/* A thread reads the units; the next sample has the processes. */
static void take_units(struct tree *t, struct watch *w, bool armed)
{
	for (unsigned int i = 0; i < WAITS_MAX && watch_is_learning(w); i++) {
		usleep(500);
		assert_int_equal(watch_take_sample(w, armed), 0);
	}
	t->now_ns += NSEC_PER_SEC;
	assert_int_equal(watch_take_sample(w, armed), 0);
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
	take_units(t, w, false);
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

	/* Beside scripts that start a hundred programs a second. */
	tree_put_thread(t, 130, 130, "postgres", 'S', 700, 1);
	put_newest_id(t, 224);
	tree_scan(t, w, 1000);
	assert_true(tree_is_watched(w, 130));
	watch_free(w);
}

static void test_new_processes_when_ids_wrap(void **state)
{
	struct tree *t = *state;
	struct watch *w;

	tree_list_add(&t->process, "postgres");
	put_newest_id(t, 2000);
	w = tree_watch(t);
	tree_scan(t, w, 1000);
	tree_put_thread(t, 2001, 2001, "postgres", 'S', 600, 1);
	tree_put_thread(t, 330, 330, "postgres", 'S', 600, 1);
	put_newest_id(t, 340);
	tree_scan(t, w, 1000);
	assert_int_equal(tree_watched(w), 2);
	watch_free(w);
}

/* More than one call looks at: those that are known make room, and a scan of all begins soon. */
static void test_many_new_processes(void **state)
{
	struct tree *t = *state;
	struct watch *w;

	tree_list_add(&t->process, "postgres");
	put_newest_id(t, 800);
	w = tree_watch(t);
	for (int pid = 901; pid <= 1500; pid++)
		tree_put_thread(t, pid, pid, "postgres", 'S', 700, 1);
	put_newest_id(t, 1500);
	tree_scan(t, w, 1000);
	assert_int_equal(tree_watched(w), 256);
	tree_scan(t, w, 1);
	assert_int_equal(tree_watched(w), 512);
	tree_scan(t, w, 1000);
	assert_int_equal(tree_watched(w), 600);
	watch_free(w);
}

static uint64_t stand_still(void *arg)
{
	(void)arg;
	return NSEC_PER_SEC;
}

static bool is_own_procfs(void)
{
	char name[16] = "";

	return readlink("/proc/self", name, sizeof(name) - 1) > 0 && atoi(name) == getpid();
}

/* It stops where it has been asked to stay. */
static pid_t start_child(const char *name)
{
	pid_t parent = getpid(), child = fork();

	assert_true(child >= 0);
	if (child > 0) {
		assert_int_equal(waitpid(child, NULL, WUNTRACED), child);
		return child;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (name && getppid() == parent) {
		prctl(PR_SET_NAME, name);
		raise(SIGSTOP);
	}
	_exit(0);
}

/* On this kernel, among many that have ended: the clock stands still, so no scan of all is due. */
static void test_a_new_process_of_this_host(void **state)
{
	static struct processes p;
	const struct watch_clock clock = { .mono_ns = stand_still };
	struct config_list patterns = { 0 };
	int procfs_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	pid_t child;

	(void)state;
	if (!is_own_procfs()) {
		close(procfs_fd);
		skip();
	}
	tree_list_add(&patterns, "newcomer");
	assert_int_equal(processes_init(&p, procfs_fd, &patterns), 0);
	assert_true(p.has_order);
	for (unsigned int i = 0; i < 1000 && !p.scanned_once; i++)
		processes_scan(&p, &clock, 0, false);
	assert_true(p.scanned_once);
	for (unsigned int i = 0; i < 300; i++)
		start_child(NULL);
	child = start_child("newcomer");
	processes_scan(&p, &clock, 0, false);
	assert_non_null(processes_find(&p, child));
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	processes_done(&p);
	close(procfs_fd);
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
	tree_put_thread(t, 400, 400, "sh", 'S', 600, 1);
	put_newest_id(t, 400);
	tree_scan(t, w, 10000);
	tree_scan(t, w, 1000);
	tree_put_thread(t, 400, 400, "postgres", 'S', 600, 1);
	for (unsigned int i = 0; i < 4; i++)
		tree_scan(t, w, 1000);
	assert_true(tree_is_watched(w, 400));
	watch_free(w);
}

/* So it is by the second scan, when all began before the first one. */
static void test_a_server_that_starts_together_with_the_watchdog(void **state)
{
	struct tree *t = *state;
	struct watch *w;

	tree_list_add(&t->process, "postgres");
	tree_put_thread(t, 400, 400, "sh", 'S', 600, 1);
	put_newest_id(t, 400);
	w = tree_watch(t);
	tree_scan(t, w, 1000);
	tree_put_thread(t, 400, 400, "postgres", 'S', 600, 1);
	assert_false(tree_is_watched(w, 400));
	tree_scan(t, w, 10000);
	assert_true(tree_is_watched(w, 400));
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
	/* A scan begins after 10 s, and a minute later what was seen is forgotten. */
	for (int id = 100; id <= 200; id += 50) {
		put_newest_id(t, id);
		tree_scan(t, w, 10000);
	}
	for (int id = 250; id <= 300; id += 50) {
		put_newest_id(t, id);
		tree_scan(t, w, id == 250 ? 61000 : 10000);
	}
	tree_put_thread(t, 5000, 5000, "postgres", 'S', 600, 1);
	for (int id = 350; id <= 450; id += 50) {
		put_newest_id(t, id);
		tree_scan(t, w, 10000);
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
		processes_check(p);
	assert_int_equal(p->count, 8);
	processes_done(p);
	close(procfs_fd);
	free(p);
}

/* Without memory the kernel may list nothing: that is not the end of all processes. */
static void test_a_list_that_cannot_be_read(void **state)
{
	static const struct watch_clock clock;
	struct tree *t = *state;
	struct processes *p = calloc(1, sizeof(*p));
	int procfs_fd, listed_fd, file_fd;

	tree_list_add(&t->process, "postgres");
	for (int pid = 10; pid < 80; pid++)
		tree_put_thread(t, pid, pid, "postgres", 'S', 500, 9);
	tree_put(t, "proc/loadavg", "0.20 0.18 0.12 1/80 90\n");
	procfs_fd = open(t->procfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_non_null(p);
	assert_int_equal(processes_init(p, procfs_fd, &t->process), 0);
	processes_scan(p, &clock, UINT64_MAX, false);
	assert_int_equal(p->count, 70);
	listed_fd = dup(p->dir_fd);
	file_fd = openat(procfs_fd, "loadavg", O_RDONLY | O_CLOEXEC);
	assert_true(listed_fd >= 0 && file_fd >= 0 && dup2(file_fd, p->dir_fd) >= 0);
	p->changed = true;
	p->scan_started_ns = 0;
	processes_scan(p, &clock, UINT64_MAX, false);
	assert_false(p->scanning);
	assert_true(p->changed);
	processes_check(p);
	assert_int_equal(p->count, 70);
	assert_true(dup2(listed_fd, p->dir_fd) >= 0);
	close(listed_fd);
	close(file_fd);
	processes_done(p);
	close(procfs_fd);
	free(p);
}

static void end_processes(struct tree *t, int first, int count)
{
	for (int pid = first; pid < first + count; pid++) {
		char name[32];

		snprintf(name, sizeof(name), "proc/%d", pid);
		tree_remove(t, name);
	}
}

/* A server that forks for each connection: those that have ended make room for others at once. */
static void test_ended_processes_make_room(void **state)
{
	static const struct watch_clock clock;
	struct tree *t = *state;
	struct processes *p = calloc(1, sizeof(*p));
	int procfs_fd;

	tree_list_add(&t->process, "postgres");
	for (int pid = 1000; pid < 1000 + WATCH_PROCESSES_MAX + 5; pid++)
		tree_put_thread(t, pid, pid, "postgres", 'S', 500, 9);
	procfs_fd = open(t->procfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_non_null(p);
	assert_int_equal(processes_init(p, procfs_fd, &t->process), 0);
	processes_scan(p, &clock, UINT64_MAX, false);
	assert_int_equal(p->count, WATCH_PROCESSES_MAX);
	assert_int_equal(processes_left_out(p), 5);
	end_processes(t, 1000, 500);
	/* The next scans find that out: an incident begins with one. */
	processes_scan(p, &clock, UINT64_MAX, true);
	processes_check(p);
	print_message("%u listed of %d that run\n", p->count, WATCH_PROCESSES_MAX + 5 - 500);
	assert_in_range(p->count, WATCH_PROCESSES_MAX - 500, WATCH_PROCESSES_MAX + 5 - 500);
	p->scan_started_ns = 0;
	processes_scan(p, &clock, UINT64_MAX, true);
	assert_int_equal(p->count, WATCH_PROCESSES_MAX + 5 - 500);
	assert_int_equal(processes_left_out(p), 0);
	processes_done(p);
	close(procfs_fd);
	free(p);
}

/* Until the thread has read the units of all that were found. */
static void scan_units(struct processes *p)
{
	static const struct watch_clock clock;

	p->scan_started_ns = 0;
	processes_scan(p, &clock, UINT64_MAX, false);
	for (unsigned int i = 0; i < WAITS_MAX && processes_want_units(p); i++) {
		usleep(500);
		processes_scan(p, &clock, UINT64_MAX, false);
	}
}

/* Processes of a unit that have no room are counted, and found when there is some. */
static void test_more_of_a_unit_than_there_is_room(void **state)
{
	struct tree *t = *state;
	struct processes *p = calloc(1, sizeof(*p));
	int procfs_fd;

	tree_list_add(&t->process, "unit:db.service");
	for (int pid = 1000; pid < 1000 + WATCH_PROCESSES_MAX + 5; pid++) {
		tree_put_thread(t, pid, pid, "postgres", 'S', 500, 9);
		tree_put_cgroup(t, pid, "0::/system.slice/db.service\n");
	}
	procfs_fd = open(t->procfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_non_null(p);
	assert_int_equal(processes_init(p, procfs_fd, &t->process), 0);
	/* The scan after the one that has found them counts them, in however many readings. */
	scan_units(p);
	for (unsigned int i = 0; i < 3; i++) {
		scan_units(p);
		assert_int_equal(p->count, WATCH_PROCESSES_MAX);
		assert_int_equal(p->left_out, 5);
	}
	/* One place is for one of them; the others are still counted. */
	end_processes(t, p->list[p->list[0].pid < 1500 ? p->count - 1 : 0].pid, 1);
	for (unsigned int i = 0; i < 3; i++) {
		processes_check(p);
		scan_units(p);
		assert_in_range(p->left_out, 4, 5);
	}
	assert_int_equal(p->count, WATCH_PROCESSES_MAX);
	assert_int_equal(p->left_out, 4);
	end_processes(t, 1000, 500);
	scan_units(p);
	processes_check(p);
	scan_units(p);
	scan_units(p);
	assert_in_range(p->count, WATCH_PROCESSES_MAX + 4 - 500, WATCH_PROCESSES_MAX + 5 - 500);
	assert_int_equal(processes_left_out(p), 0);
	processes_done(p);
	close(procfs_fd);
	free(p);
}

static void test_pid_set(void **state)
{
	struct pid_set *set = calloc(1, sizeof(*set));

	(void)state;
	assert_non_null(set);
	/* All begin at one slot, but for one that has to make room. */
	for (int i = 1; i <= 5; i++)
		assert_true(pid_set_add(set, 7 + i * PID_SET_SLOTS));
	assert_true(pid_set_add(set, 8));
	assert_true(pid_set_add(set, PID_SET_SLOTS - 1));
	pid_set_remove(set, 7 + 2 * PID_SET_SLOTS);
	pid_set_remove(set, 7 + 9 * PID_SET_SLOTS);
	for (int i = 1; i <= 5; i++)
		assert_int_equal(pid_set_has(set, 7 + i * PID_SET_SLOTS), i != 2);
	assert_true(pid_set_has(set, 8));
	assert_int_equal(set->count, 6);
	pid_set_remove(set, 7 + 1 * PID_SET_SLOTS);
	assert_true(pid_set_has(set, 7 + 5 * PID_SET_SLOTS));
	assert_true(pid_set_has(set, 8));
	/* Around the end. */
	assert_true(pid_set_add(set, 2 * PID_SET_SLOTS - 1));
	pid_set_remove(set, PID_SET_SLOTS - 1);
	assert_true(pid_set_has(set, 2 * PID_SET_SLOTS - 1));
	pid_set_remove(set, 2 * PID_SET_SLOTS - 1);
	assert_false(pid_set_has(set, 2 * PID_SET_SLOTS - 1));
	assert_int_equal(set->count, 5 - 2 + 1);
	free(set);
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
	scan_units(p);
	assert_int_equal(p->count, 4);

	/* 20 has left its unit, which is known when the thread has read it: until then it stays. */
	for (int pid = 10; pid <= 40; pid += 10)
		tree_put_thread(t, pid, pid, "y", 'S', 500, 9);
	tree_put_cgroup(t, 20, "0::/\n");
	processes_check(p);
	print_message("%u of 4 renamed processes listed at once\n", p->count);
	assert_int_equal(p->count, 4);
	scan_units(p);
	processes_check(p);
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
	processes_check(p);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	print_message("%u of 4 processes listed\n", p->count);
	assert_int_equal(p->count, 4);
	processes_done(p);
	close(procfs_fd);
	free(p);
}

/* Only pids that were not seen before are read: the third scan must not open the first ones. */
static void test_scan_reads_new_pids_only(void **state)
{
	struct tree *t = *state;
	struct watch *w;

	tree_list_add(&t->process, "postgres");
	for (int pid = 300; pid < 400; pid++)
		tree_put_thread(t, pid, pid, "bash", 'S', 500, 9);
	w = tree_watch(t);
	for (unsigned int i = 0; i < 15; i++)
		tree_scan(t, w, 1000);
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
	/* A server of a thousand connections is not out of the ordinary. */
	assert_true(WATCH_PROCESSES_MAX >= 1024);
	watch_free(w);
}

/* The lock of the control groups may be what the host hangs on: the loop never waits for it. */
static void test_a_unit_that_cannot_be_read(void **state)
{
	struct watch_options options = tree_options(*state);
	char path[2 * PATH_MAX];
	struct tree *t = *state;
	struct watch *w;
	int fd;

	tree_list_add(&t->process, "unit:db.service");
	for (int pid = 20; pid <= 30; pid += 10)
		tree_put_thread(t, pid, pid, "x", 'S', 1, 9);
	snprintf(path, sizeof(path), "%s/20/cgroup", t->procfs);
	assert_int_equal(mkfifo(path, 0600), 0);
	tree_put_cgroup(t, 30, "0::/system.slice/db.service\n");
	alarm(20);
	/* At the start, in samples, and when the configuration is read again. */
	w = tree_watch(t);
	for (unsigned int i = 0; i < 3; i++) {
		t->now_ns += NSEC_PER_SEC;
		assert_int_equal(watch_take_sample(w, i % 2), 0);
	}
	assert_int_equal(watch_reload(w, &options), 0);
	assert_true(watch_is_learning(w));
	assert_int_equal(tree_watched(w), 0);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "0::/\n", 5), 5);
	for (unsigned int i = 0; i < WAITS_MAX && !tree_is_watched(w, 30); i++) {
		usleep(500);
		assert_int_equal(watch_take_sample(w, false), 0);
	}
	assert_int_equal(tree_watched(w), 1);
	assert_true(tree_is_watched(w, 30));
	alarm(0);
	close(fd);
	watch_free(w);
}

/* A thread that is there already asks in an incident, too; none is made then. */
static void test_units_while_armed(void **state)
{
	struct tree *t = *state;
	struct watch *w;

	tree_list_add(&t->process, "unit:db.service");
	w = tree_watch(t);
	tree_put_thread(t, 20, 20, "x", 'S', 1, 9);
	tree_put_cgroup(t, 20, "0::/system.slice/db.service\n");
	for (unsigned int i = 0; i < 3; i++) {
		t->now_ns += 11 * NSEC_PER_SEC;
		assert_int_equal(watch_take_sample(w, true), 0);
		usleep(20000);
	}
	assert_int_equal(tree_watched(w), 0);
	t->now_ns += 11 * NSEC_PER_SEC;
	assert_int_equal(watch_take_sample(w, false), 0);
	take_units(t, w, false);
	assert_int_equal(tree_watched(w), 1);

	tree_put_thread(t, 30, 30, "x", 'S', 1, 9);
	tree_put_cgroup(t, 30, "0::/system.slice/db.service\n");
	t->now_ns += 11 * NSEC_PER_SEC;
	assert_int_equal(watch_take_sample(w, true), 0);
	take_units(t, w, true);
	assert_int_equal(tree_watched(w), 2);
	watch_free(w);
}

/* More processes than are asked for at a time: none is forgotten. */
static void test_more_units_than_are_asked_at_a_time(void **state)
{
	static const struct watch_clock clock;
	struct tree *t = *state;
	struct processes *p = calloc(1, sizeof(*p));
	int procfs_fd, last = 1000 + PID_SET_MAX;

	tree_list_add(&t->process, "unit:db.service");
	for (int pid = 1000; pid <= last; pid++) {
		tree_put_thread(t, pid, pid, "x", 'S', 1, 9);
		tree_put_cgroup(t, pid, pid == last || pid == 1000 ? "0::/db.service\n" : "0::/\n");
	}
	procfs_fd = open(t->procfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_non_null(p);
	assert_int_equal(processes_init(p, procfs_fd, &t->process), 0);
	for (unsigned int i = 0; i < WAITS_MAX && p->count < 2; i++) {
		p->scan_started_ns = 0;
		processes_scan(p, &clock, UINT64_MAX, false);
		usleep(5000);
	}
	assert_int_equal(p->count, 2);
	processes_done(p);
	close(procfs_fd);
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		tree_test(test_found_by_name_and_pid),
		tree_test(test_found_by_unit),
		tree_test(test_new_processes_are_found_in_one_sample),
		tree_test(test_new_processes_when_ids_wrap),
		tree_test(test_many_new_processes),
		cmocka_unit_test(test_a_new_process_of_this_host),
		tree_test(test_a_young_process_is_scanned_twice),
		tree_test(test_a_server_that_starts_together_with_the_watchdog),
		tree_test(test_an_old_process_with_a_high_id_is_not_young),
		tree_test(test_processes_come_and_go),
		tree_test(test_all_are_looked_at_again_when_armed),
		tree_test(test_list_of_the_filter),
		tree_test(test_a_list_that_cannot_be_read),
		tree_test(test_ended_processes_make_room),
		tree_test(test_more_of_a_unit_than_there_is_room),
		cmocka_unit_test(test_pid_set),
		tree_test(test_filter_of_renamed_processes),
		tree_test(test_filter_without_descriptors),
		tree_test(test_scan_reads_new_pids_only),
		tree_test(test_scan_is_spread_out),
		tree_test(test_scan_ends_on_a_busy_host),
		tree_test(test_more_than_the_tables_hold),
		tree_test(test_a_unit_that_cannot_be_read),
		tree_test(test_units_while_armed),
		tree_test(test_more_units_than_are_asked_at_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
