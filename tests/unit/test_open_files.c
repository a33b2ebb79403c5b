/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* The descriptors of all processes, in several goes where one has no time for all of them. */
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "watch/open_files.h"

#define PROCESSES 30
#define DESCRIPTORS 50

struct fixture {
	pid_t children[PROCESSES];
	struct open_files files;
	struct open_files_place place;
	unsigned int left; /* descriptors until the time is over */
	unsigned int seen[PROCESSES][DESCRIPTORS];
};

/* -1: it is not one of the fixture's. */
static int index_of(const struct fixture *f, int32_t pid)
{
	for (int i = 0; i < PROCESSES; i++)
		if (f->children[i] == pid)
			return i;
	return -1;
}

static bool wants(void *arg, int32_t pid)
{
	return index_of(arg, pid) >= 0;
}

static bool visit(void *arg, int32_t pid, const char *fd)
{
	struct fixture *f = arg;
	const int i = index_of(f, pid);

	assert_in_range(i, 0, PROCESSES - 1);
	assert_in_range(atoi(fd), 0, DESCRIPTORS - 1);
	f->seen[i][atoi(fd)]++;
	if (--f->left == 0)
		f->files.deadline_ns = 0;
	return true;
}

static pid_t start_child(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int fd = 0; fd < DESCRIPTORS; fd++)
		dup2(STDERR_FILENO, fd);
	close_range(DESCRIPTORS, UINT_MAX, 0);
	kill(getpid(), SIGSTOP);
	_exit(0);
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	for (int i = 0; i < PROCESSES; i++) {
		f->children[i] = start_child();
		assert_true(f->children[i] > 0);
		assert_int_equal(waitpid(f->children[i], NULL, WUNTRACED), f->children[i]);
	}
	f->files =
		(struct open_files){ .visit = visit, .arg = f, .wants = wants, .place = &f->place };
	f->files.procfs_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->files.procfs_fd >= 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < PROCESSES; i++)
		if (f->children[i])
			end_child(f->children[i]);
	close(f->files.procfs_fd);
	free(f);
	return 0;
}

static bool go(struct fixture *f, unsigned int descriptors)
{
	f->left = descriptors;
	f->files.deadline_ns = UINT64_MAX;
	return open_files_visit(&f->files);
}

/* How often a descriptor was seen at least and at most. */
static void count(const struct fixture *f, unsigned int *ret_min, unsigned int *ret_max)
{
	*ret_min = UINT_MAX;
	*ret_max = 0;
	for (int i = 0; i < PROCESSES; i++)
		for (int fd = 0; fd < DESCRIPTORS; fd++) {
			*ret_min = f->seen[i][fd] < *ret_min ? f->seen[i][fd] : *ret_min;
			*ret_max = f->seen[i][fd] > *ret_max ? f->seen[i][fd] : *ret_max;
		}
}

static void test_in_one_go(void **state)
{
	struct fixture *f = *state;
	unsigned int min, max;

	f->files.place = NULL;
	assert_true(go(f, UINT_MAX));
	count(f, &min, &max);
	assert_int_equal(min, 1);
	assert_int_equal(max, 1);
}

/* A third of 1500, also within a process: each go begins where the one before came too late. */
static void test_it_goes_on(void **state)
{
	struct fixture *f = *state;
	unsigned int min, max;

	assert_false(go(f, 498));
	assert_false(go(f, 501));
	count(f, &min, &max);
	assert_int_equal(min, 0);
	assert_int_equal(max, 1);
	assert_false(go(f, 501));
	count(f, &min, &max);
	assert_int_equal(min, 1);
	assert_false(go(f, 1000));
	assert_false(go(f, 1000));
	count(f, &min, &max);
	assert_int_equal(min, 2);
}

/* From where the last one ended to there, whatever is between. */
static void test_all_from_the_middle(void **state)
{
	struct fixture *f = *state;
	unsigned int min, max;

	assert_false(go(f, 733));
	memset(f->seen, 0, sizeof(f->seen));
	assert_true(go(f, UINT_MAX));
	count(f, &min, &max);
	assert_int_equal(min, 1);
}

/* The one at which it would go on ends meanwhile. */
static void test_a_process_that_ends(void **state)
{
	struct fixture *f = *state;
	int i;

	assert_false(go(f, 733));
	i = index_of(f, f->place.pid);
	assert_true(i >= 0);
	end_child(f->children[i]);
	f->children[i] = 0;
	memset(f->seen, 0, sizeof(f->seen));
	assert_true(go(f, UINT_MAX));
	for (int k = 0; k < PROCESSES; k++)
		assert_int_equal(f->seen[k][DESCRIPTORS - 1], k == i ? 0 : 1);
}

#define visit_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		visit_test(test_in_one_go),
		visit_test(test_it_goes_on),
		visit_test(test_all_from_the_middle),
		visit_test(test_a_process_that_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
