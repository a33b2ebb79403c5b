/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* The search of the whole host for a thread in D, on a host that no look has the time for. */
#include "test_watch_tree.h"

#include <dirent.h>

#include "watch/any_thread.h"

#define FIRST_PID 100
#define PROCESSES 40
/* Each look may read the clock so often; it does so before each process and each thread. */
#define READS 8

struct search {
	struct tree *tree;
	struct any_thread look;
	int procfs_fd;
	unsigned int entered[PROCESSES];
};

static bool enter(void *arg, int32_t pid)
{
	struct search *s = arg;

	assert_in_range(pid, FIRST_PID, FIRST_PID + PROCESSES - 1);
	s->entered[pid - FIRST_PID]++;
	return true;
}

static int setup(void **state)
{
	struct search *s = tree_fixture_new(sizeof(*s));

	s->tree->step_ns = NSEC_PER_USEC;
	s->look = (struct any_thread){ .enter = enter,
		.arg = s,
		.clock = { .mono_ns = tree_clock, .arg = s->tree } };
	s->procfs_fd = open(s->tree->procfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(s->procfs_fd >= 0);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct search *s = *state;

	close(s->procfs_fd);
	tree_teardown((void **)&s->tree);
	free(s);
	return 0;
}

static enum any_thread_found look(struct search *s)
{
	s->look.until_ns = s->tree->now_ns + READS * s->tree->step_ns;
	return any_thread_find(&s->look, s->procfs_fd);
}

/* Looks until one says more than that it had no time; *ret_looks is how many that took. */
static enum any_thread_found look_to_an_end(struct search *s, unsigned int *ret_looks)
{
	enum any_thread_found found;

	*ret_looks = 0;
	do {
		found = look(s);
		(*ret_looks)++;
		assert_in_range(*ret_looks, 1, 1000);
	} while (found == ANY_THREAD_UNKNOWN);
	return found;
}

/* What the kernel would list last; it does so in any order. */
static int last_number(const char *dir_path)
{
	const struct dirent *entry;
	DIR *dir = opendir(dir_path);
	int number = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		number = atoi(entry->d_name) > 0 ? atoi(entry->d_name) : number;
	closedir(dir);
	return number;
}

static void test_each_look_goes_on(void **state)
{
	struct search *s = *state;
	unsigned int looks;
	int last;

	for (int pid = FIRST_PID; pid < FIRST_PID + PROCESSES; pid++)
		tree_put_thread(s->tree, pid, pid, "x", 'S', 500, 9);
	assert_int_equal(look_to_an_end(s, &looks), ANY_THREAD_NONE);
	assert_in_range(looks, 2 * PROCESSES / READS, 4 * PROCESSES / READS);
	/* The one where a look ends is the first of the next one. */
	for (unsigned int i = 0; i < PROCESSES; i++)
		assert_in_range(s->entered[i], 1, 2);

	last = last_number(s->tree->procfs);
	tree_put_thread(s->tree, last, last, "x", 'D', 500, 9);
	assert_int_equal(look_to_an_end(s, &looks), ANY_THREAD_WAITS);
	assert_in_range(looks, 2 * PROCESSES / READS, 4 * PROCESSES / READS);
	/* Now that it is known, the next look begins with it. */
	assert_int_equal(look(s), ANY_THREAD_LASTS);
	tree_put_thread(s->tree, last, last, "x", 'D', 500, 10);
	assert_int_equal(look(s), ANY_THREAD_WAITS);
	tree_put_thread(s->tree, last, last, "x", 'S', 500, 10);
	assert_int_equal(look_to_an_end(s, &looks), ANY_THREAD_NONE);
	assert_int_equal(looks, 1);
}

/* A database has hundreds, of which one hangs. */
static void test_the_threads_of_one_process(void **state)
{
	struct search *s = *state;
	const int pid = FIRST_PID;
	char path[PATH_MAX + 32];
	unsigned int looks;
	int last;

	for (int tid = pid; tid < pid + PROCESSES; tid++)
		tree_put_thread(s->tree, pid, tid, "x", 'S', 500, 9);
	snprintf(path, sizeof(path), "%s/%d/task", s->tree->procfs, pid);
	last = last_number(path);
	tree_put_thread(s->tree, pid, last, "x", 'D', 500, 9);
	assert_int_equal(look_to_an_end(s, &looks), ANY_THREAD_WAITS);
	assert_in_range(looks, PROCESSES / READS, 2 * PROCESSES / READS);
	assert_int_equal(look(s), ANY_THREAD_LASTS);
	assert_int_equal(s->look.count, 1);
}

/* They are counted as far as there is time, and the next look begins with the first of them. */
static void test_many_threads_of_one_process(void **state)
{
	struct search *s = *state;
	const int pid = FIRST_PID;
	unsigned int looks;

	for (int tid = pid; tid < pid + 12; tid++)
		tree_put_thread(s->tree, pid, tid, "x", 'D', 500, 9);
	assert_int_equal(look_to_an_end(s, &looks), ANY_THREAD_WAITS);
	assert_in_range(s->look.count, 2, ANY_THREAD_ENOUGH);
	assert_int_equal(look(s), ANY_THREAD_LASTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_each_look_goes_on, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_threads_of_one_process, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_threads_of_one_process, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
