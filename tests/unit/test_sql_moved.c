/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* What the threads of a database moved between two answers, read by a thread that may hang. */
#include "test_watch_tree.h"

#include "sql/moved.h"

struct fixture {
	struct tree *t;
	int procfs;
	struct sql_moved moved;
	struct sql_snapshot snapshot;
};

static int setup(void **state)
{
	struct fixture *f = tree_fixture_new(sizeof(*f));

	tree_put(f->t, "proc/stat", "%s", "");
	f->procfs = open(f->t->procfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(sql_moved_init(&f->moved, f->procfs), 0);
	f->snapshot.count = 2;
	f->snapshot.rows[0].tid = 11;
	f->snapshot.rows[1].tid = 12;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	sql_moved_done(&f->moved);
	close(f->procfs);
	return tree_fixture_free(f);
}

static void put_io(struct fixture *f, const char *name, unsigned int mib)
{
	tree_put(f->t, name,
		"rchar: 9\nwchar: 9\nsyscr: 9\nsyscw: 9\nread_bytes: %u\nwrite_bytes: 5\n"
		"cancelled_write_bytes: 9\n",
		mib << 20);
}

/* A question, and its answer after the thread has read. */
static void answer(struct fixture *f, bool is_process)
{
	sql_moved_ask(&f->moved, &f->snapshot, 10, is_process, clock_mono_ns());
	for (unsigned int i = 0; i < WAITS_MAX && renewable_worker_is_busy(&f->moved.worker); i++)
		usleep(10000);
	for (unsigned int i = 0; i < f->snapshot.count; i++)
		f->snapshot.rows[i].moved_bytes = 0;
	sql_moved_note(&f->moved, &f->snapshot);
}

static void test_threads(void **state)
{
	struct fixture *f = *state;

	put_io(f, "proc/10/task/11/io", 100);
	put_io(f, "proc/10/task/12/io", 100);
	answer(f, false);
	assert_int_equal(f->snapshot.rows[0].moved_bytes, 0);
	put_io(f, "proc/10/task/11/io", 107);
	answer(f, false);
	assert_int_equal(f->snapshot.rows[0].moved_bytes, 7 << 20);
	assert_int_equal(f->snapshot.rows[1].moved_bytes, 0);
	/* A new incident begins anew. */
	put_io(f, "proc/10/task/11/io", 109);
	sql_moved_forget(&f->moved);
	answer(f, false);
	assert_int_equal(f->snapshot.rows[0].moved_bytes, 0);
}

/* The bytes are those of the statement before. */
static void test_a_statement_that_began_later(void **state)
{
	struct fixture *f = *state;

	put_io(f, "proc/10/task/11/io", 100);
	answer(f, false);
	put_io(f, "proc/10/task/11/io", 107);
	f->snapshot.rows[0].elapsed_ns = 1500 * NSEC_PER_MSEC;
	f->snapshot.answered_ns = clock_mono_ns() + 30 * NSEC_PER_SEC;
	answer(f, false);
	assert_int_equal(f->snapshot.rows[0].moved_bytes, 0);
	put_io(f, "proc/10/task/11/io", 109);
	f->snapshot.answered_ns = clock_mono_ns() + NSEC_PER_SEC;
	answer(f, false);
	assert_int_equal(f->snapshot.rows[0].moved_bytes, 2 << 20);
}

static void test_processes(void **state)
{
	struct fixture *f = *state;

	put_io(f, "proc/11/task/11/io", 1);
	answer(f, true);
	put_io(f, "proc/11/task/11/io", 3);
	answer(f, true);
	assert_int_equal(f->snapshot.rows[0].moved_bytes, 2 << 20);
	f->snapshot.rows[0].idle = true;
	put_io(f, "proc/11/task/11/io", 4);
	answer(f, true);
	assert_int_equal(f->snapshot.rows[0].moved_bytes, 0);
}

static bool hangs(const struct renewable_worker *w)
{
	for (unsigned int i = 0; i < RENEWABLE_WORKER_HUNG_MAX; i++)
		if (renewable_worker_hangs_at(w, i))
			return true;
	return false;
}

/* Nobody writes to the FIFO, so the thread that opens it hangs like one that waits for a lock. */
static void test_thread_that_hangs(void **state)
{
	struct fixture *f = *state;
	char path[2 * PATH_MAX];
	int fd;

	put_io(f, "proc/10/task/12/io", 1);
	snprintf(path, sizeof(path), "%s/10/task/11", f->t->procfs);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/10/task/11/io", f->t->procfs);
	assert_int_equal(mkfifo(path, 0600), 0);
	alarm(20);
	sql_moved_ask(&f->moved, &f->snapshot, 10, false, 1);
	sql_moved_note(&f->moved, &f->snapshot);
	sql_moved_ask(&f->moved, &f->snapshot, 10, false, 2);
	sql_moved_replace_hung(&f->moved, 60 * NSEC_PER_SEC);
	f->snapshot.rows[0].tid = 0;
	answer(f, false);
	put_io(f, "proc/10/task/12/io", 2);
	answer(f, false);
	assert_int_equal(f->snapshot.rows[1].moved_bytes, 1 << 20);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	close(fd);
	for (unsigned int i = 0; i < WAITS_MAX && hangs(&f->moved.worker); i++)
		usleep(10000);
	alarm(0);
}

/* A server that answers before its threads are read, each time: the next answer has the bytes. */
static void test_answers_before_the_thread(void **state)
{
	struct fixture *f = *state;
	uint64_t moved_bytes = 0;
	char path[2 * PATH_MAX];

	put_io(f, "proc/10/task/11/io", 1);
	snprintf(path, sizeof(path), "%s/10/task/11/io", f->t->procfs);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	alarm(20);
	for (unsigned int i = 1; i <= 6; i++) {
		int fd;

		put_io(f, "proc/10/task/12/io", i);
		f->snapshot.rows[1].moved_bytes = 0;
		sql_moved_ask(&f->moved, &f->snapshot, 10, false, clock_mono_ns());
		sql_moved_note(&f->moved, &f->snapshot);
		moved_bytes += f->snapshot.rows[1].moved_bytes;
		if (!renewable_worker_is_busy(&f->moved.worker))
			continue;
		/* The thread reads on once it is let go. */
		fd = open(path, O_WRONLY | O_CLOEXEC);
		assert_true(fd >= 0);
		close(fd);
		for (unsigned int j = 0;
			j < WAITS_MAX && renewable_worker_is_busy(&f->moved.worker); j++)
			usleep(10000);
	}
	alarm(0);
	print_message("%lu of 4 MiB noted\n", moved_bytes >> 20);
	assert_int_equal(moved_bytes, 4 << 20);
}

#define moved_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		moved_test(test_threads),
		moved_test(test_a_statement_that_began_later),
		moved_test(test_processes),
		moved_test(test_thread_that_hangs),
		moved_test(test_answers_before_the_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
