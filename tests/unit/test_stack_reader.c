/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Stacks are read although some files of /proc hang; a fifo that nobody writes is such a file. */
#include "test_watch_tree.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "snapshot/stack_reader.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file.h"

#define LATER (STACK_READER_LIMIT_NS + 1)
#define LOOK_MS 10

struct fixture {
	struct tree *t;
	int procfs_fd;
	struct stack_reader *reader;
	uint64_t now_ns; /* of the reader */
};

static int setup(void **state)
{
	struct fixture *f = tree_fixture_new(sizeof(*f));

	f->procfs_fd = tree_open_procfs(f->t);
	assert_int_equal(stack_reader_new(f->procfs_fd, &f->reader), 0);
	f->now_ns = 1000;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	assert_null(stack_reader_free(f->reader));
	close(f->procfs_fd);
	return tree_fixture_free(f);
}

static void put_stack(struct fixture *f, int tid)
{
	char name[64];

	snprintf(name, sizeof(name), "proc/%d/stack", tid);
	tree_put(f->t, name, "[<0>] wait_of_%d+0x1/0x2\n", tid);
}

static void put_hanging(struct fixture *f, int tid)
{
	char path[64];

	put_stack(f, tid);
	snprintf(path, sizeof(path), "%d/stack", tid);
	assert_int_equal(unlinkat(f->procfs_fd, path, 0), 0);
	assert_int_equal(mkfifoat(f->procfs_fd, path, 0600), 0);
}

/* Lets the thread return that hangs there. */
static void release(const struct fixture *f, int tid)
{
	char path[64];

	snprintf(path, sizeof(path), "%d/stack", tid);
	close(openat(f->procfs_fd, path, O_WRONLY | O_CLOEXEC));
}

static bool ask(struct fixture *f, uint32_t tid)
{
	const struct stack_request request = { .tid = tid, .start_ns = 10 * tid, .probe = 3 };

	return stack_reader_ask(f->reader, &request, f->now_ns);
}

/*
 * The next answer, for which it waits. What was read before a thread hung is announced by nobody,
 * so the descriptor is not all that it waits for.
 */
static const struct stack_answer *take(struct fixture *f)
{
	struct pollfd fd = { .fd = stack_reader_fd(f->reader), .events = POLLIN };
	const struct stack_answer *answer;

	while (!(answer = stack_reader_take(f->reader, f->now_ns)))
		poll(&fd, 1, LOOK_MS);
	return answer;
}

static void assert_answer(const struct stack_answer *answer, uint32_t tid)
{
	char kstack[64];

	snprintf(kstack, sizeof(kstack), "wait_of_%u+0x1", tid);
	assert_int_equal(answer->request.tid, tid);
	assert_int_equal(answer->request.start_ns, 10 * tid);
	assert_int_equal(answer->request.probe, 3);
	assert_string_equal(answer->kstack, kstack);
}

static void test_answers_in_order(void **state)
{
	struct fixture *f = *state;

	for (int tid = 1; tid <= 100; tid++)
		put_stack(f, tid);
	for (uint32_t tid = 1; tid <= 100; tid++)
		assert_true(ask(f, tid));
	for (uint32_t tid = 1; tid <= 100; tid++)
		assert_answer(take(f), tid);
	assert_null(stack_reader_take(f->reader, f->now_ns));
	/* A thread that has ended has no stack. */
	assert_true(ask(f, 101));
	assert_string_equal(take(f)->kstack, "");
	assert_int_equal(stack_reader_unread(f->reader), 0);
}

/* The threads of this process that are opening a file: those that hang. */
static unsigned int count_hanging(void)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned int count = 0;
	struct dirent *d;

	assert_non_null(dir);
	while ((d = readdir(dir))) {
		char path[NAME_MAX + 64], buf[256];

		snprintf(path, sizeof(path), "/proc/self/task/%s/syscall", d->d_name);
		if (d->d_name[0] != '.' && file_read_at(AT_FDCWD, path, buf, sizeof(buf)) > 0)
			count += strtol(buf, NULL, 10) == SYS_openat && isdigit(buf[0]);
	}
	closedir(dir);
	return count;
}

static void wait_hanging(unsigned int count)
{
	while (count_hanging() != count)
		usleep(1000);
}

/* The next thread reads on, and only the stack of the thread that hangs is missing. */
static void test_a_thread_that_hangs_is_replaced(void **state)
{
	struct fixture *f = *state;

	for (int tid = 1; tid <= 20; tid++)
		put_stack(f, tid);
	put_hanging(f, 4);
	/* The first one is alone in its batch, and the fourth one in the middle of the second. */
	for (uint32_t tid = 1; tid <= 20; tid++)
		assert_true(ask(f, tid));
	for (uint32_t tid = 1; tid <= 3; tid++)
		assert_answer(take(f), tid);
	assert_null(stack_reader_take(f->reader, f->now_ns));
	/* It has read since the last look. */
	stack_reader_check(f->reader, f->now_ns += LATER);
	assert_int_equal(stack_reader_unread(f->reader), 0);
	stack_reader_check(f->reader, f->now_ns += STACK_READER_LIMIT_NS - 1);
	assert_int_equal(stack_reader_unread(f->reader), 0);
	stack_reader_check(f->reader, f->now_ns += 1);
	assert_int_equal(stack_reader_unread(f->reader), 1);
	/* What was left of its batch comes last. */
	for (uint32_t tid = 10; tid <= 20; tid++)
		assert_answer(take(f), tid);
	for (uint32_t tid = 5; tid <= 9; tid++)
		assert_answer(take(f), tid);
	/* It is not asked for again, which would cost the next thread. */
	assert_false(ask(f, 4));
	assert_int_equal(stack_reader_unread(f->reader), 1);
	release(f, 4);
}

/* Two probes ask for the stack of the same thread, in operations of their own. */
static void test_a_thread_hangs_for_all_its_operations(void **state)
{
	const struct stack_request other = { .tid = 1, .start_ns = 7, .probe = 5 };
	struct fixture *f = *state;

	put_hanging(f, 1);
	put_stack(f, 2);
	assert_true(ask(f, 1));
	assert_true(stack_reader_ask(f->reader, &other, f->now_ns));
	assert_true(ask(f, 2));
	wait_hanging(1);
	stack_reader_check(f->reader, f->now_ns += LATER);
	assert_answer(take(f), 2);
	assert_int_equal(stack_reader_unread(f->reader), 2);
	assert_false(stack_reader_ask(f->reader, &other, f->now_ns));
	assert_int_equal(count_hanging(), 1);
	release(f, 1);
}

static void hang_all(struct fixture *f)
{
	for (uint32_t tid = 1; tid <= STACK_READER_THREADS; tid++) {
		put_hanging(f, (int)tid);
		assert_true(ask(f, tid));
		wait_hanging(tid);
		stack_reader_check(f->reader, f->now_ns += LATER);
	}
}

/* Neither the owner nor its memory waits for them. */
static void test_when_all_hang_nothing_is_read(void **state)
{
	struct fixture *f = *state;

	put_stack(f, 9);
	hang_all(f);
	assert_int_equal(stack_reader_unread(f->reader), STACK_READER_THREADS);
	assert_false(ask(f, 9));
	assert_int_equal(stack_reader_unread(f->reader), STACK_READER_THREADS + 1);
	stack_reader_reset(f->reader);
	assert_int_equal(stack_reader_unread(f->reader), 0);
	/* A thread that returns reads again. */
	release(f, 2);
	while (!ask(f, 9))
		usleep(1000);
	assert_answer(take(f), 9);
	release(f, 1);
	release(f, 3);
	release(f, 4);
}

static void test_a_reader_is_freed_while_its_threads_hang(void **state)
{
	struct fixture *f = *state;

	hang_all(f);
	f->reader = stack_reader_free(f->reader);
	for (int tid = 1; tid <= STACK_READER_THREADS; tid++)
		release(f, tid);
}

static void test_too_many_are_counted(void **state)
{
	struct fixture *f = *state;
	uint32_t tid = 1, refused = 0;

	put_hanging(f, 1);
	for (; tid <= STACK_READER_QUEUE_MAX + 50; tid++)
		refused += !ask(f, tid);
	/* The first one is in the hands of a thread. */
	assert_int_equal(refused, 49);
	assert_int_equal(stack_reader_unread(f->reader), 49);
	release(f, 1);
}

#define reader_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		reader_test(test_answers_in_order),
		reader_test(test_a_thread_that_hangs_is_replaced),
		reader_test(test_a_thread_hangs_for_all_its_operations),
		reader_test(test_when_all_hang_nothing_is_read),
		reader_test(test_a_reader_is_freed_while_its_threads_hang),
		reader_test(test_too_many_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
