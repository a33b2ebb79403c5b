/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* A server that takes a login and then says nothing: a helper does not come again soon. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sql/helper/helper.h"
#include "sql/protocol.h"
#include "util/cleanup.h"

/* After the first error without this the next login came. */
#define OLD_BACKOFF_S 1

enum { MARIADB, POSTGRESQL, POSTGRESQL_LATER, CASES };

/* Authenticated, ready for a question. */
static const char greeting[] = "R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";

struct server {
	char dir[32];
	char path[64];
	int listen_fd;
	int helper_fd;
	pid_t helper;
};

static struct server servers[CASES];

static void make_server(struct server *s)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	strcpy(s->dir, "/tmp/iostall-test.XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	assert_int_equal(chmod(s->dir, 0755), 0);
	snprintf(s->path, sizeof(s->path), "%s/.s.PGSQL.5432", s->dir);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", s->path);
	s->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(s->listen_fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(chmod(s->path, 0777), 0);
	assert_int_equal(listen(s->listen_fd, 8), 0);
}

static void start_helper(struct server *s, uint32_t type)
{
	struct sql_frame_setup setup = {
		.frame = { .type = SQL_FRAME_SETUP, .size = sizeof(setup) },
		.type = type,
		.text_mode = SQL_TEXT_REDACTED,
		.text_bytes = 1024,
		.name = "test",
		.user = "iostall",
		.run_as = "nobody",
	};
	int fds[2];

	snprintf(setup.socket, sizeof(setup.socket), "%s", s->path);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	s->helper = fork();
	assert_true(s->helper >= 0);
	if (s->helper == 0) {
		close(fds[0]);
		dup2(fds[1], STDIN_FILENO);
		/* Not exit(): what a sanitizer does at the end the sandbox forbids. */
		_exit(sql_helper_main(STDIN_FILENO) < 0);
	}
	close(fds[1]);
	s->helper_fd = fds[0];
	assert_int_equal(send(s->helper_fd, &setup, sizeof(setup), MSG_NOSIGNAL), sizeof(setup));
}

/* The session of a helper that logs in; it stays open with this. -1: there is none. */
static int accept_session(const struct server *s)
{
	for (unsigned int i = 0; i < 200; i++) {
		int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd >= 0)
			return fd;
		usleep(10000);
	}
	return -1;
}

static void send_ask(const struct server *s, uint64_t number)
{
	struct sql_frame f = { .type = SQL_FRAME_ASK, .size = sizeof(f), .ask = number };

	assert_int_equal(send(s->helper_fd, &f, sizeof(f), MSG_NOSIGNAL), sizeof(f));
}

static void assert_answer(const struct server *s, uint64_t number, const char *error)
{
	static const char begin[] = "the server did not finish the login, next attempt in 30 s: ";
	struct sql_frame_end end;

	assert_int_equal(recv(s->helper_fd, &end, sizeof(end), 0), sizeof(end));
	assert_int_equal(end.frame.type, SQL_FRAME_END);
	assert_int_equal(end.frame.ask, number);
	/* It must not begin like SQL_ERROR_UNRESPONSIVE, which means that there is a session. */
	assert_int_equal(strncmp(end.error, begin, strlen(begin)), 0);
	if (!strstr(end.error, error))
		fail_msg("%s", end.error);
}

/* All at once: a login has 5 s, what a new session is asked 10 s. */
static void test_logins_without_an_answer(void **state)
{
	static const uint32_t types[CASES] = { SQL_TYPE_MARIADB, SQL_TYPE_POSTGRESQL,
		SQL_TYPE_POSTGRESQL };
	static const char *const errors[CASES] = { "system error: 110", "timeout expired",
		SQL_ERROR_UNRESPONSIVE " for 10." };
	int sessions[CASES];

	(void)state;
	for (unsigned int i = 0; i < CASES; i++) {
		make_server(&servers[i]);
		start_helper(&servers[i], types[i]);
		send_ask(&servers[i], 1);
		sessions[i] = accept_session(&servers[i]);
		/* Whether it takes connections at all. */
		if (i == MARIADB) {
			close(sessions[i]);
			sessions[i] = accept_session(&servers[i]);
		}
		assert_true(sessions[i] >= 0);
	}
	assert_int_equal(send(sessions[POSTGRESQL_LATER], greeting, sizeof(greeting) - 1,
				 MSG_NOSIGNAL),
		sizeof(greeting) - 1);
	for (unsigned int i = 0; i < CASES; i++)
		assert_answer(&servers[i], 1, errors[i]);
	/* Once, which kind of server it is was asked over a connection of its own, closed again. */
	for (unsigned int i = 0; i < CASES; i++)
		close(accept_session(&servers[i]));
	sleep(OLD_BACKOFF_S);
	for (unsigned int i = 0; i < CASES; i++) {
		send_ask(&servers[i], 2);
		assert_answer(&servers[i], 2, errors[i]);
		assert_int_equal(accept4(servers[i].listen_fd, NULL, NULL, SOCK_CLOEXEC), -1);
		close(sessions[i]);
	}
}

static int remove_servers(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < CASES; i++) {
		close(servers[i].helper_fd);
		close(servers[i].listen_fd);
		unlink(servers[i].path);
		rmdir(servers[i].dir);
		if (servers[i].helper > 0)
			waitpid(servers[i].helper, NULL, 0);
	}
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_logins_without_an_answer, remove_servers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
