/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* A command waits no longer than it wants for a child that may hang. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/apart.h"

/* Sends each message back; of none it ends. */
static void echo(int fd, const void *arg)
{
	char buf[16];
	ssize_t n;

	(void)arg;
	while ((n = recv(fd, buf, sizeof(buf), 0)) > 0)
		send(fd, buf, (size_t)n, MSG_NOSIGNAL);
}

static void say(int fd, const void *arg)
{
	send(fd, arg, strlen(arg), MSG_NOSIGNAL);
}

static void test_messages(void **state)
{
	struct apart apart;
	char buf[16];

	(void)state;
	assert_int_equal(apart_start(&apart, echo, NULL), 0);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(send(apart.fd, "word", 4, 0), 4);
		assert_int_equal(apart_receive(&apart, buf, sizeof(buf), -1), 4);
		assert_memory_equal(buf, "word", 4);
	}
	apart_end(&apart);
	assert_int_equal(apart.fd, -1);
}

static void test_a_child_that_hangs(void **state)
{
	struct apart apart;
	char buf[16];

	(void)state;
	assert_int_equal(apart_start(&apart, echo, NULL), 0);
	assert_int_equal(apart_receive(&apart, buf, sizeof(buf), 1), -ETIMEDOUT);
	apart_end(&apart);
}

static void test_a_child_that_ends(void **state)
{
	struct apart apart;
	char buf[16];

	(void)state;
	assert_int_equal(apart_start(&apart, say, "last"), 0);
	assert_int_equal(apart_receive(&apart, buf, sizeof(buf), -1), 4);
	assert_int_equal(apart_receive(&apart, buf, sizeof(buf), -1), -EPIPE);
	apart_end(&apart);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_a_child_that_hangs),
		cmocka_unit_test(test_a_child_that_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
