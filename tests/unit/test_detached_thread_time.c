/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: bounds */
/* How long the event loop takes to start a thread beside busy processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/detached_worker.h"
#include "util/thread.h"

static void run_nothing(void *state, const int *fds)
{
	(void)state;
	(void)fds;
}

#define BUSY_PROCESSES 50
#define START_LIMIT_NS (20 * NSEC_PER_MSEC)

/* In a process of its own, on one CPU, with the priority of the event loop. Its exit status. */
static int start_beside_busy_processes(void)
{
	const struct detached_worker_options options = { .run = run_nothing, .done_fd = -1 };
	struct detached_worker *worker;
	pid_t busy[BUSY_PROCESSES];
	uint64_t begin_ns, took_ns;
	cpu_set_t cpus;

	if (thread_run_first() < 0)
		return 77;
	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus) < 0)
		return 77;
	for (int i = 0; i < BUSY_PROCESSES; i++) {
		busy[i] = fork();
		if (busy[i] == 0)
			for (;;)
				;
	}
	begin_ns = clock_mono_ns();
	if (detached_worker_new(&options, malloc(1), &worker) < 0)
		return 1;
	took_ns = clock_mono_ns() - begin_ns;
	for (int i = 0; i < BUSY_PROCESSES; i++)
		kill(busy[i], SIGKILL);
	printf("# started in %.1f ms beside %d busy processes\n", (double)took_ns / NSEC_PER_MSEC,
		BUSY_PROCESSES);
	fflush(stdout);
	detached_worker_free(worker);
	return took_ns < START_LIMIT_NS ? 0 : 1;
}

/* The loop must not wait until a new thread, which has no such priority, gets a CPU. */
static void test_a_start_waits_for_no_cpu(void **state)
{
	pid_t child = fork();
	int status = 0;

	(void)state;
	if (child == 0)
		_exit(start_beside_busy_processes());
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_start_waits_for_no_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
