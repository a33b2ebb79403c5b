/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/*
 * What processes moved before tracing began, by their own counters.
 */
#include "test_watch_tree.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "watch/process_io.h"

uint64_t __real_clock_mono_ns(void);
uint64_t __wrap_clock_mono_ns(void);

/* By so much the clock is ahead: a test need not wait until a thread is late. */
static uint64_t ahead_ns;

uint64_t __wrap_clock_mono_ns(void)
{
	return __real_clock_mono_ns() + ahead_ns;
}

static void test_text(void **state)
{
	static const char text[] = "rchar: 9\nwchar: 8\nsyscr: 7\nsyscw: 6\nread_bytes: 4096\n"
				   "write_bytes: 8192\ncancelled_write_bytes: 0\n";
	struct process_io_counts c = { .ns = 1, .read_bytes = 2, .write_bytes = 3 };

	(void)state;
	assert_int_equal(process_io_parse("read_bytes: 1\n", 14, &c), -EINVAL);
	assert_int_equal(process_io_parse("", 0, &c), -EINVAL);
	assert_int_equal(process_io_parse("read_bytes: x\nwrite_bytes: 1\n", 29, &c), -EINVAL);
	assert_int_equal(c.read_bytes, 2);
	assert_int_equal(process_io_parse(text, sizeof(text) - 1, &c), 0);
	assert_int_equal(c.read_bytes, 4096);
	assert_int_equal(c.write_bytes, 8192);
}

static void put_io(struct tree *t, int pid, uint64_t read_bytes, uint64_t write_bytes)
{
	char name[64];

	snprintf(name, sizeof(name), "proc/%d/io", pid);
	tree_put(t, name, "rchar: 1\nread_bytes: %llu\nwrite_bytes: %llu\n",
		(unsigned long long)read_bytes, (unsigned long long)write_bytes);
}

static void put_children_faults(struct tree *t, int pid, unsigned int faults)
{
	char name[64];

	snprintf(name, sizeof(name), "proc/%d/task/%d/stat", pid, pid);
	tree_put(t, name, "%d (a) b) S 1 10 10 0 -1 4194560 77 %u 5 9 1 2 3 4 20 0 1 0 500 1 1\n",
		pid, faults);
}

static void test_faults_of_children(void **state)
{
	static const char text[] = "7 (a) 1 2 3) S 1 10 10 0 -1 4194560 77 123 5 9 1 2 3\n";

	(void)state;
	assert_int_equal(process_io_children_faults(text, sizeof(text) - 1), 123);
	assert_int_equal(process_io_children_faults(text, 39), 0);
	assert_int_equal(process_io_children_faults("", 0), 0);
}

/* So many samples, each after the thread has had time to answer the question of the last one. */
static const struct record_limits *take(struct tree *t, struct watch *w, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		tree_sample(t, w, 1000);
		usleep(20000);
	}
	return watch_limits(w);
}

static void test_readings(void **state)
{
	struct tree *t = *state;
	const struct record_limits *l;
	struct watch *w;

	tree_list_add(&t->process, "db");
	for (int pid = 10; pid < 16; pid++) {
		tree_put_thread(t, pid, pid, "db", 'S', 500, 9);
		put_io(t, pid, 1000, 0);
	}
	w = tree_watch(t);
	/* Nobody has moved anything yet. */
	assert_int_equal(take(t, w, 3)->process_io_count, 0);
	for (int pid = 10; pid < 16; pid++)
		put_io(t, pid, 1000 + 100 * (uint64_t)pid, pid == 12 ? 5000 : 0);
	/* Its counters are those of another process now. */
	put_io(t, 15, 500, 0);
	l = take(t, w, 2);
	assert_int_equal(l->process_io_count, RECORD_PROCESS_IO_MAX);
	assert_int_equal(l->process_io[0].pid, 12);
	assert_string_equal(l->process_io[0].comm, "db");
	assert_int_equal(l->process_io[0].read_bytes, 1200);
	assert_int_equal(l->process_io[0].write_bytes, 5000);
	assert_int_equal(l->process_io[1].pid, 14);
	assert_int_equal(l->process_io[2].pid, 13);
	assert_in_range(l->process_io[0].over_ns, 1, NSEC_PER_SEC);
	/* It is over, and four readings later forgotten. */
	assert_int_equal(take(t, w, PROCESS_IO_READINGS + 1)->process_io_count, 0);
	watch_free(w);
}

static bool has_moved(const struct watch *w, int32_t pid);

/* PostgreSQL's first process waits for those of its clients, and moves next to nothing itself. */
static void test_bytes_of_children(void **state)
{
	struct tree *t = *state;
	struct watch *w;

	tree_list_add(&t->process, "db");
	for (int pid = 10; pid < 12; pid++) {
		tree_put_thread(t, pid, pid, "db", 'S', 500, 9);
		put_io(t, pid, 1000, 0);
		put_children_faults(t, pid, 40);
	}
	w = tree_watch(t);
	take(t, w, 3);
	put_io(t, 10, 900000, 0);
	put_io(t, 11, 900000, 0);
	put_children_faults(t, 10, 90);
	take(t, w, 2);
	assert_false(has_moved(w, 10));
	assert_true(has_moved(w, 11));
	/* What it moves behind that is its own. */
	put_io(t, 10, 901000, 0);
	take(t, w, 2);
	assert_int_equal(watch_limits(w)->process_io_count, 2);
	assert_int_equal(watch_limits(w)->process_io[1].read_bytes, 1000);
	watch_free(w);
}

static bool has_moved(const struct watch *w, int32_t pid)
{
	const struct record_limits *l = watch_limits(w);

	for (uint32_t i = 0; i < l->process_io_count; i++)
		if (l->process_io[i].pid == pid)
			return true;
	return false;
}

/* In an incident nothing is asked, and a process in which a thread hangs is left out. */
static void test_what_is_not_read(void **state)
{
	struct tree *t = *state;
	char path[PATH_MAX + 64];
	uint64_t begin_ns;
	struct watch *w;
	int fd;

	tree_list_add(&t->process, "db");
	tree_put_thread(t, 10, 10, "db", 'S', 500, 9);
	put_io(t, 10, 1000, 0);
	w = tree_watch(t);
	take(t, w, 2);
	put_io(t, 10, 2000, 0);
	assert_int_equal(take(t, w, 2)->process_io_count, 1);
	assert_int_equal(watch_take_sample(w, true), 0);
	assert_int_equal(watch_limits(w)->process_io_count, 0);
	tree_remove(t, "proc/10/io");
	snprintf(path, sizeof(path), "%s/10/io", t->procfs);
	assert_int_equal(mkfifo(path, 0644), 0);
	/* The thread waits for somebody who writes. The loop does not: it would do so for ever. */
	begin_ns = clock_mono_ns();
	take(t, w, 4);
	/* Another one takes over, for all other processes. */
	tree_put_thread(t, 20, 20, "db", 'S', 500, 9);
	for (uint64_t moved = 0; !has_moved(w, 20); moved += 100) {
		assert_true(clock_mono_ns() - begin_ns < 300 * NSEC_PER_SEC);
		put_io(t, 20, 1000 + moved, 0);
		take(t, w, 1);
	}
	/* What was known of the one that hangs is old by now. */
	assert_false(has_moved(w, 10));
	/* It does not hang any more, so it is asked again. */
	fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(unlink(path), 0);
	for (uint64_t moved = 0; !has_moved(w, 10); moved += 100) {
		assert_true(clock_mono_ns() - begin_ns < 300 * NSEC_PER_SEC);
		put_io(t, 10, 1000 + moved, 0);
		take(t, w, 1);
	}
	watch_free(w);
}

#define LOOKS_MAX 1000

/*
 * Whoever opens the counters of the process hangs until the descriptor is closed that is returned:
 * the kernel lets others wait for a lease, and tells its holder that somebody does.
 */
static int make_hang(struct tree *t, int pid)
{
	char path[PATH_MAX + 64];
	int fd;

	snprintf(path, sizeof(path), "%s/%d/io", t->procfs, pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	signal(SIGIO, SIG_IGN);
	/* Not while a thread is reading it. */
	for (unsigned int i = 0; i < WAITS_MAX && fcntl(fd, F_SETLEASE, F_WRLCK) < 0; i++)
		usleep(500);
	assert_int_equal(fcntl(fd, F_GETLEASE), F_WRLCK);
	return fd;
}

/* Until a thread waits there, and is late. */
static void be_late(struct tree *t, struct watch *w, int fd)
{
	for (unsigned int i = 0; i < LOOKS_MAX && fcntl(fd, F_GETLEASE) == F_WRLCK; i++)
		take(t, w, 1);
	assert_int_not_equal(fcntl(fd, F_GETLEASE), F_WRLCK);
	ahead_ns += 6 * NSEC_PER_SEC;
}

static uint64_t unread(const struct watch *w)
{
	struct watch_left_out left_out;

	watch_get_left_out(w, &left_out);
	return left_out.unread;
}

/* Its counters go on, and are read. */
static void wait_moved(struct tree *t, struct watch *w, int pid, uint64_t from)
{
	for (uint64_t i = 0; i < LOOKS_MAX && !has_moved(w, pid); i++) {
		put_io(t, pid, from + 100 * i, 0);
		take(t, w, 1);
	}
	assert_true(has_moved(w, pid));
}

/* How many lines of the log, which has been caught in the file, say it. */
static unsigned int count_lines(int fd, const char *text)
{
	static char log[65536];
	ssize_t n = pread(fd, log, sizeof(log) - 1, 0);
	unsigned int count = 0;

	assert_true(n >= 0);
	log[n] = '\0';
	for (const char *p = log; (p = strstr(p, text)); p++)
		count++;
	return count;
}

/* Each hangs in a thread of its own, and one more keeps all others from being asked. */
static void test_several_hang(void **state)
{
	struct tree *t = *state;
	int fds[RENEWABLE_WORKER_HUNG_MAX + 1];
	uint64_t before;
	struct watch *w;
	int last = 10 + RENEWABLE_WORKER_HUNG_MAX + 1, stderr_fd, log_fd;

	tree_list_add(&t->process, "db");
	for (int pid = 10; pid <= last; pid++) {
		tree_put_thread(t, pid, pid, "db", 'S', 500, 9);
		put_io(t, pid, 1000, 0);
	}
	w = tree_watch(t);
	take(t, w, 2);
	assert_int_equal(unread(w), 0);
	for (int i = 0; i <= RENEWABLE_WORKER_HUNG_MAX; i++) {
		before = unread(w);
		fds[i] = make_hang(t, 10 + i);
		be_late(t, w, fds[i]);
		if (i == RENEWABLE_WORKER_HUNG_MAX)
			break;
		/* All others are asked, each second. */
		wait_moved(t, w, last, 1000000 * (uint64_t)(i + 1));
		print_message("%d hang, %" PRIu64 " samples unread\n", i + 1, unread(w));
		assert_true(unread(w) > before);
		/* It rests, and what it has moved is forgotten. */
		for (unsigned int k = 0; k < LOOKS_MAX && has_moved(w, last); k++)
			take(t, w, 1);
		assert_false(has_moved(w, last));
	}
	/* Nobody is asked any more. Each sample is counted, and one line of the log says it. */
	before = unread(w);
	log_fd = memfd_create("log", MFD_CLOEXEC);
	stderr_fd = dup(STDERR_FILENO);
	assert_int_equal(dup2(log_fd, STDERR_FILENO), STDERR_FILENO);
	take(t, w, 3);
	dup2(stderr_fd, STDERR_FILENO);
	close(stderr_fd);
	assert_int_equal(count_lines(log_fd, "any process"), 1);
	close(log_fd);
	assert_int_equal(unread(w), before + 3);
	/* So is one of an incident, in which nobody is asked anyhow. */
	assert_int_equal(watch_take_sample(w, true), 0);
	assert_int_equal(unread(w), before + 4);
	for (int i = 0; i <= RENEWABLE_WORKER_HUNG_MAX; i++)
		close(fds[i]);
	wait_moved(t, w, 10, 1000000 * 10);
	wait_moved(t, w, last, 1000000 * 10);
	for (unsigned int i = 0; i < LOOKS_MAX && unread(w) != before; i++) {
		before = unread(w);
		take(t, w, 1);
	}
	assert_int_equal(unread(w), before);
	watch_free(w);
}

/* As when the looks for mutexes hang, which are no part of a sample. */
static void test_what_others_could_not_read(void **state)
{
	struct tree *t = *state;
	struct watch *w = tree_watch(t);

	watch_count_unread(w);
	assert_int_equal(unread(w), 1);
	watch_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_faults_of_children),
		tree_test(test_readings),
		tree_test(test_bytes_of_children),
		tree_test(test_what_is_not_read),
		tree_test(test_several_hang),
		tree_test(test_what_others_could_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
