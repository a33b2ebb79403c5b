/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/*
 * trace.process: the map of the kernel side follows the list of processes, and what finds no room
 * in it is counted and logged.
 */
#include "test_watch_tree.h"

#include <errno.h>
#include <sys/mman.h>

#include <bpf/bpf.h>

#include "session/internal.h"
#include "util/cleanup.h"

#define FIRST 1000

static const struct trace_maps_sizes map_sizes = {
	.ring_bytes = 65536,
	.inflight_max = 1024,
	.filter_pids = EVENT_FILTER_PIDS_MAX,
	.filter_devs = EVENT_FILTER_DEVS_MAX,
	.vfs_calls = 1,
	.offcpu_wakers = 1,
	.cpus = 64,
};

struct fixture {
	struct tree *t;
	struct session s;
	struct processes filter;
};

static void put_processes(struct fixture *f, int from, int to)
{
	for (int pid = from; pid < to; pid++)
		tree_put_thread(f->t, pid, pid, "postgres", 'S', 500, 9);
}

static void remove_processes(struct fixture *f, int from, int to)
{
	char name[32];

	for (int pid = from; pid < to; pid++) {
		snprintf(name, sizeof(name), "proc/%d", pid);
		tree_remove(f->t, name);
	}
}

static int setup(void **state)
{
	struct fixture *f = tree_fixture_new(sizeof(*f));

	f->s.probes.maps = TRACE_MAPS_NONE;
	f->s.state = SESSION_IDLE;
	tree_list_add(&f->t->process, "postgres");
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	if (f->s.filter) {
		close(f->filter.procfs_fd);
		processes_done(&f->filter);
	}
	trace_maps_close(&f->s.probes.maps);
	return tree_fixture_free(f);
}

static void begin(struct fixture *f)
{
	int procfs_fd, r = trace_maps_new(&map_sizes, NULL, &f->s.probes.maps);

	if (r == -EPERM) {
		print_message("BPF maps cannot be made: %s\n", strerror(-r));
		skip();
	}
	assert_int_equal(r, 0);
	procfs_fd = open(f->t->procfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(procfs_fd >= 0);
	assert_int_equal(processes_init(&f->filter, procfs_fd, &f->t->process), 0);
	f->s.filter = &f->filter;
}

/* Updates the filter until a scan of all processes has ended. */
static void update(struct fixture *f)
{
	f->filter.scan_started_ns = 0;
	do
		session_update_filter(&f->s, false);
	while (f->filter.scanning);
}

static unsigned int count_traced(const struct fixture *f, int from, int to)
{
	unsigned int count = 0;
	uint8_t member;

	for (int pid = from; pid < to; pid++)
		count += bpf_map_lookup_elem(f->s.probes.maps.filter_pids, &pid, &member) == 0;
	return count;
}

static void test_a_thousand_processes(void **state)
{
	struct fixture *f = *state;

	put_processes(f, FIRST, FIRST + 1500);
	begin(f);
	update(f);
	print_message("%u of 1500 processes traced\n", count_traced(f, FIRST, FIRST + 1500));
	assert_int_equal(count_traced(f, FIRST, FIRST + 1500), 1500);
	assert_int_equal(f->s.incident.filter_full, 0);
	/* Some end, others come. */
	remove_processes(f, FIRST + 100, FIRST + 200);
	put_processes(f, FIRST - 50, FIRST);
	update(f);
	update(f);
	assert_int_equal(count_traced(f, FIRST - 50, FIRST + 100), 150);
	assert_int_equal(count_traced(f, FIRST + 100, FIRST + 200), 0);
	assert_int_equal(count_traced(f, FIRST + 200, FIRST + 1500), 1300);
}

/* Returns how many lines of the log have `text`, between two calls of which the first has NULL. */
static unsigned int log_lines(const char *text)
{
	static int caught_fd, stderr_fd;
	unsigned int lines = 0;
	char buf[4096];
	ssize_t n;

	if (!text) {
		caught_fd = memfd_create("log", MFD_CLOEXEC);
		stderr_fd = dup(STDERR_FILENO);
		assert_int_equal(dup2(caught_fd, STDERR_FILENO), STDERR_FILENO);
		return 0;
	}
	dup2(stderr_fd, STDERR_FILENO);
	close(stderr_fd);
	n = pread(caught_fd, buf, sizeof(buf) - 1, 0);
	close(caught_fd);
	assert_true(n >= 0);
	buf[n] = '\0';
	for (const char *p = buf; (p = strstr(p, text)); p++)
		lines++;
	return lines;
}

static void test_what_finds_no_room_is_counted(void **state)
{
	struct fixture *f = *state;

	put_processes(f, FIRST, FIRST + WATCH_PROCESSES_MAX + 23);
	begin(f);
	log_lines(NULL);
	update(f);
	update(f);
	assert_int_equal(log_lines("trace.process: 23 processes match beyond"), 1);
	assert_int_equal(count_traced(f, FIRST, FIRST + WATCH_PROCESSES_MAX + 23),
		WATCH_PROCESSES_MAX);
	assert_int_equal(f->s.incident.filter_full, 23);
	/* The next incident counts those that are still there. */
	remove_processes(f, FIRST, FIRST + 100);
	update(f);
	update(f);
	f->s.incident.filter_full = 0;
	update(f);
	assert_int_equal(f->s.incident.filter_full, 0);
	assert_int_equal(count_traced(f, FIRST + 100, FIRST + WATCH_PROCESSES_MAX + 23),
		WATCH_PROCESSES_MAX - 100 + 23);
}

#define filter_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

static void put_pids(struct session_pid_sets *sets, const int32_t *pids, uint32_t count)
{
	memcpy(sets->sets[sets->now].pids, pids, count * sizeof(*pids));
	sets->sets[sets->now].count = count;
}

/* The scan at arming visits those that are watched, too, whatever trace.process matches. */
static void test_processes_of_the_scan(void **state)
{
	static const int32_t traced[] = { 3, 5, 9 }, watched[] = { 1, 5, 7, 12 };
	static const int32_t both[] = { 1, 3, 5, 7, 9, 12 };
	struct fixture *f = *state;

	put_pids(&f->s.filtered, traced, ARRAY_SIZE(traced));
	put_pids(&f->s.watched, watched, ARRAY_SIZE(watched));
	assert_int_equal(session_choose_scanned(&f->s), ARRAY_SIZE(both));
	assert_memory_equal(f->s.scan_pids, both, sizeof(both));
	put_pids(&f->s.filtered, traced, 0);
	assert_int_equal(session_choose_scanned(&f->s), ARRAY_SIZE(watched));
	assert_memory_equal(f->s.scan_pids, watched, sizeof(watched));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_processes_of_the_scan, setup, teardown),
		filter_test(test_a_thousand_processes),
		filter_test(test_what_finds_no_room_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
