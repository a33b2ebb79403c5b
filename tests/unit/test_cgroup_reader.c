/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Reading the control groups of processes, of which some do not answer. */
#include "test_watch_tree.h"

#include "watch/cgroup_reader.h"

struct fixture {
	struct tree *t;
	int procfs_fd;
	struct cgroup_reader reader;
};

static int setup(void **state)
{
	struct fixture *f = tree_fixture_new(sizeof(*f));

	f->procfs_fd = open(f->t->procfs, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->procfs_fd >= 0);
	assert_int_equal(cgroup_reader_init(&f->reader, f->procfs_fd), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	cgroup_reader_done(&f->reader);
	close(f->procfs_fd);
	return tree_fixture_free(f);
}

static void wait_for_answers(const struct fixture *f, unsigned int count)
{
	const struct cgroup_reading *reading = f->reader.worker.state;

	for (unsigned int i = 0; i < WAITS_MAX; i++) {
		if (__atomic_load_n(&reading->done, __ATOMIC_ACQUIRE) == count)
			return;
		usleep(500);
	}
	fail();
}

static void wait_until_idle(const struct fixture *f)
{
	for (unsigned int i = 0; i < WAITS_MAX && cgroup_reader_is_busy(&f->reader); i++)
		usleep(500);
	assert_false(cgroup_reader_is_busy(&f->reader));
}

static void assert_text(const struct cgroup_answer *a, const char *text)
{
	assert_int_equal(a->len, strlen(text));
	assert_memory_equal(a->text, text, a->len);
}

static void test_texts(void **state)
{
	struct fixture *f = *state;
	const struct cgroup_reading *reading;
	unsigned int done = 0;

	assert_null(cgroup_reader_take(&f->reader, &done));
	tree_put_cgroup(f->t, 10, "0::/a\n");
	tree_put_cgroup(f->t, 12, "0::/c\n");
	cgroup_reader_ask(&f->reader, (const int32_t[]){ 10, 11, 12 }, 3);
	wait_until_idle(f);
	reading = cgroup_reader_take(&f->reader, &done);
	assert_non_null(reading);
	assert_int_equal(reading->count, 3);
	assert_int_equal(done, 3);
	assert_int_equal(reading->answers[2].pid, 12);
	assert_text(&reading->answers[0], "0::/a\n");
	assert_text(&reading->answers[1], "");
	assert_text(&reading->answers[2], "0::/c\n");
	/* They are taken once. */
	assert_null(cgroup_reader_take(&f->reader, &done));
}

static void test_forgotten(void **state)
{
	struct fixture *f = *state;
	unsigned int done;

	tree_put_cgroup(f->t, 10, "0::/a\n");
	cgroup_reader_ask(&f->reader, (const int32_t[]){ 10 }, 1);
	cgroup_reader_forget(&f->reader);
	wait_until_idle(f);
	assert_null(cgroup_reader_take(&f->reader, &done));
}

/* An open of a FIFO waits for a writer, as that of the file waits for a lock of the kernel. */
static void test_hang(void **state)
{
	struct fixture *f = *state;
	const struct cgroup_reading *reading;
	unsigned int done;
	char path[PATH_MAX + 32];
	int fd;

	snprintf(path, sizeof(path), "%s/11/cgroup", f->t->procfs);
	tree_put_cgroup(f->t, 10, "0::/a\n");
	tree_put(f->t, "proc/11/comm", "x\n");
	assert_int_equal(mkfifo(path, 0600), 0);
	cgroup_reader_ask(&f->reader, (const int32_t[]){ 10, 11, 10 }, 3);
	wait_for_answers(f, 1);
	assert_null(cgroup_reader_take(&f->reader, &done));
	assert_true(cgroup_reader_is_busy(&f->reader));
	/* As if it had begun when the host was booted. */
	f->reader.worker.started_ns = 0;
	reading = cgroup_reader_take(&f->reader, &done);
	assert_non_null(reading);
	assert_int_equal(done, 1);
	assert_int_equal(reading->count, 3);
	assert_text(&reading->answers[0], "0::/a\n");
	/* Another thread answers the next question. */
	assert_false(cgroup_reader_is_busy(&f->reader));
	cgroup_reader_ask(&f->reader, (const int32_t[]){ 10 }, 1);
	wait_until_idle(f);
	reading = cgroup_reader_take(&f->reader, &done);
	assert_non_null(reading);
	assert_text(&reading->answers[0], "0::/a\n");
	/* Let the first one go. */
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	for (unsigned int i = 0; i < WAITS_MAX; i++)
		if (!renewable_worker_hangs_at(&f->reader.worker, RENEWABLE_WORKER_HUNG_MAX - 1))
			break;
		else
			usleep(500);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_texts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forgotten, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hang, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
