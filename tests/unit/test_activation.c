/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Which descriptors are sockets that the service manager has passed, and who gets them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/activation.h"

#define SOCKETS 2

/* A process of its own, so that the numbers of the descriptors are free. */
static int in_child(int (*check)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		char text[16];

		snprintf(text, sizeof(text), "%d", (int)getpid());
		setenv("LISTEN_PID", text, 1);
		snprintf(text, sizeof(text), "%d", SOCKETS);
		setenv("LISTEN_FDS", text, 1);
		for (int i = 0; i < SOCKETS; i++)
			dup2(STDIN_FILENO, ACTIVATION_FIRST_FD + i);
		_exit(check());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int count_passed_on(void)
{
	int count = 0;

	for (int i = 0; i < SOCKETS; i++)
		count += fcntl(ACTIVATION_FIRST_FD + i, F_GETFD) == 0;
	return count;
}

static int take(void)
{
	return (int)activation_take() * 10 + count_passed_on();
}

static int take_and_pass_on(void)
{
	unsigned int count = activation_take();

	activation_pass_on();
	return (int)count * 10 + count_passed_on();
}

static int take_of_another_process(void)
{
	setenv("LISTEN_PID", "1", 1);
	return take();
}

static int take_without(void)
{
	unsetenv("LISTEN_FDS");
	return take();
}

static int take_nonsense(void)
{
	setenv("LISTEN_FDS", "-1", 1);
	return take();
}

static int take_too_many(void)
{
	setenv("LISTEN_FDS", "4294967296", 1);
	return take();
}

static void test_what_was_passed_is_kept_from_programs(void **state)
{
	(void)state;
	assert_int_equal(in_child(take), SOCKETS * 10);
}

static void test_the_program_that_it_becomes_gets_them(void **state)
{
	(void)state;
	assert_int_equal(in_child(take_and_pass_on), SOCKETS * 10 + SOCKETS);
}

static void test_what_was_not_passed_is_left_alone(void **state)
{
	(void)state;
	assert_int_equal(in_child(take_of_another_process), SOCKETS);
	assert_int_equal(in_child(take_without), SOCKETS);
	assert_int_equal(in_child(take_nonsense), SOCKETS);
	assert_int_equal(in_child(take_too_many), SOCKETS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_was_passed_is_kept_from_programs),
		cmocka_unit_test(test_the_program_that_it_becomes_gets_them),
		cmocka_unit_test(test_what_was_not_passed_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
