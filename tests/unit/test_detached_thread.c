/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/*
 * A thread that may hang in the kernel for ever has only the descriptors that it needs: all others
 * are closed, and their locks released, when its process is killed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/detached_worker.h"
#include "util/thread.h"

#define FDS_MAX 1024
#define PATIENCE_MS 300000

struct shared {
	int wake_fd;
	int done_fd;
	bool open[FDS_MAX];
};

static void note_open(struct shared *s)
{
	for (int fd = 0; fd < FDS_MAX; fd++)
		s->open[fd] = fcntl(fd, F_GETFD) >= 0;
}

static void *run(void *arg)
{
	struct shared *s = arg;
	eventfd_t value;

	/* Waits until the test has closed its own. */
	eventfd_read(s->wake_fd, &value);
	note_open(s);
	/* The last that it uses: then the test may have ended, and others have its numbers. */
	eventfd_write(s->done_fd, 1);
	return NULL;
}

static void wait_done(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	assert_int_equal(poll(&pfd, 1, PATIENCE_MS), 1);
}

static void test_a_thread_has_only_its_own_descriptors(void **state)
{
	_cleanup_close_ int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int done_fd = -1;
	struct shared s = { .wake_fd = eventfd(0, EFD_CLOEXEC),
		.done_fd = eventfd(0, EFD_CLOEXEC) };
	/* In any order. */
	int fds[] = { s.done_fd, s.wake_fd };

	(void)state;
	assert_true(other >= 0);
	assert_int_equal(thread_start_detached(run, &s, 0, fds, ARRAY_SIZE(fds)), 0);
	done_fd = dup(s.done_fd);
	eventfd_write(s.wake_fd, 1);
	/* What this side closes stays open on the other. */
	close(s.wake_fd);
	close(s.done_fd);
	wait_done(done_fd);
	for (int fd = 0; fd < FDS_MAX; fd++) {
		bool expected = fd == STDERR_FILENO || fd == s.wake_fd || fd == s.done_fd;

		if (s.open[fd] != expected)
			fail_msg("descriptor %d is %s in the table of the thread", fd,
				s.open[fd] ? "open" : "closed");
	}
	assert_true(fcntl(other, F_GETFD) >= 0);
}

static void test_a_thread_that_hands_descriptors_over_shares_them(void **state)
{
	_cleanup_close_ int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int wake_fd = eventfd(1, EFD_CLOEXEC), done_fd = eventfd(0, EFD_CLOEXEC);
	struct shared s = { .wake_fd = wake_fd, .done_fd = done_fd };

	(void)state;
	assert_int_equal(thread_start_sharing_fds(run, &s, 0), 0);
	wait_done(done_fd);
	assert_true(s.open[other]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_thread_has_only_its_own_descriptors),
		cmocka_unit_test(test_a_thread_that_hands_descriptors_over_shares_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
