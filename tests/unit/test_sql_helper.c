/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A helper without a server: what it makes of its daemon's frames, and what it answers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sql/driver.h"
#include "sql/helper.h"
#include "util/cleanup.h"

static struct sql_frame_setup make_setup(uint32_t type)
{
	struct sql_frame_setup s = {
		.frame = { .type = SQL_FRAME_SETUP, .size = sizeof(s) },
		.type = type,
		.text_mode = SQL_TEXT_REDACTED,
		.text_bytes = 1024,
		.name = "test",
		.socket = "/nonexistent/socket",
		.user = "iostall",
		.run_as = "nobody",
	};

	return s;
}

/* In a process of its own, as it gives up all that it has; ret_fd is the daemon's side. */
static pid_t start(int *ret_fd)
{
	int fds[2];
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(fds[0]);
		dup2(fds[1], STDIN_FILENO);
		/* Not exit(): what a sanitizer does at the end the sandbox forbids. */
		_exit(sql_helper_main(STDIN_FILENO) < 0);
	}
	close(fds[1]);
	*ret_fd = fds[0];
	return pid;
}

static void assert_ends(pid_t pid, int fd, int want_status)
{
	int status = -1;

	close(fd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), want_status);
}

static void assert_setup_is_refused(const struct sql_frame_setup *setup, size_t size)
{
	int fd;
	pid_t pid = start(&fd);
	char byte;

	assert_int_equal(send(fd, setup, size, MSG_NOSIGNAL), size);
	assert_int_equal(recv(fd, &byte, 1, 0), 0);
	assert_ends(pid, fd, 1);
}

static void test_bad_setup(void **state)
{
	struct sql_frame_setup s = make_setup(SQL_TYPE_MARIADB);

	(void)state;
	assert_setup_is_refused(&s, sizeof(s) - 1);
	s.frame.type = SQL_FRAME_ASK;
	assert_setup_is_refused(&s, sizeof(s));
	s = make_setup(0);
	assert_setup_is_refused(&s, sizeof(s));
	s = make_setup(SQL_TYPE_POSTGRESQL + 1);
	assert_setup_is_refused(&s, sizeof(s));
	s = make_setup(SQL_TYPE_MYSQL);
	s.text_mode = SQL_TEXT_OFF + 1;
	assert_setup_is_refused(&s, sizeof(s));
	s = make_setup(SQL_TYPE_MYSQL);
	s.text_bytes = SQL_TEXT_SIZE;
	assert_setup_is_refused(&s, sizeof(s));
	s = make_setup(SQL_TYPE_MYSQL);
	memset(s.host, 'x', sizeof(s.host));
	assert_setup_is_refused(&s, sizeof(s));
}

static void ask(int fd, uint64_t number, struct sql_frame_end *ret_end)
{
	struct sql_frame f = { .type = SQL_FRAME_ASK, .size = sizeof(f), .ask = number };

	assert_int_equal(send(fd, &f, sizeof(f), MSG_NOSIGNAL), sizeof(f));
	assert_int_equal(recv(fd, ret_end, sizeof(*ret_end), 0), sizeof(*ret_end));
	assert_int_equal(ret_end->frame.type, SQL_FRAME_END);
	assert_int_equal(ret_end->frame.size, sizeof(*ret_end));
	assert_int_equal(ret_end->frame.ask, number);
}

/* Each question has its answer at once, and a closed socket is the end. */
static void assert_error(const struct sql_frame_setup *setup, const char *error, bool renew)
{
	struct sql_frame_end end;
	int fd;
	pid_t pid = start(&fd);

	assert_int_equal(send(fd, setup, sizeof(*setup), MSG_NOSIGNAL), sizeof(*setup));
	for (uint64_t i = 7; i < 10; i++) {
		ask(fd, i, &end);
		assert_non_null(strstr(end.error, error));
		assert_int_equal(end.sessions_left_out + end.sessions_idle, 0);
		assert_int_equal(end.renew, renew);
	}
	assert_ends(pid, fd, 0);
}

static void test_no_server(void **state)
{
	struct sql_frame_setup s;

	(void)state;
	for (uint32_t type = SQL_TYPE_MARIADB; type <= SQL_TYPE_POSTGRESQL; type++) {
		s = make_setup(type);
		assert_error(&s, "/nonexistent/socket", false);
	}
}

static void test_files(void **state)
{
	struct sql_frame_setup s = make_setup(SQL_TYPE_MARIADB);

	(void)state;
	strcpy(s.password_file, "/nonexistent/password");
	assert_error(&s, "password_file /nonexistent/password: No such file or directory", true);
	s = make_setup(SQL_TYPE_MARIADB);
	strcpy(s.option_file, "/nonexistent/options");
	assert_error(&s, "option_file /nonexistent/options: No such file or directory", true);
	/* A password does not help where no server is. */
	s = make_setup(SQL_TYPE_MARIADB);
	strcpy(s.password_file, "/dev/null");
	assert_error(&s, "/nonexistent/socket", false);
}

static void test_garbage(void **state)
{
	struct sql_frame_setup s = make_setup(SQL_TYPE_MARIADB);
	int fd;
	pid_t pid = start(&fd);
	char byte;

	(void)state;
	assert_int_equal(send(fd, &s, sizeof(s), MSG_NOSIGNAL), sizeof(s));
	assert_int_equal(send(fd, "garbage", 7, MSG_NOSIGNAL), 7);
	assert_int_equal(recv(fd, &byte, 1, 0), 0);
	assert_ends(pid, fd, 1);
}

static void test_gone(void **state)
{
	int fd;
	pid_t pid = start(&fd);

	(void)state;
	assert_ends(pid, fd, 1);
}

struct sql_link {
	const struct sql_frame_setup *setup;
	int (*first)(void);
	int (*second)(void);
};

static int assert_load(const char *library, const char *function, const char *want_error)
{
	const struct sql_function functions[] = {
		{ "getppid", offsetof(struct sql_link, second) },
		{ function, offsetof(struct sql_link, first) },
		{ NULL, 0 },
	};
	const struct sql_driver driver = {
		.library = library,
		.package = "libnone1",
		.functions = functions,
		.link_size = sizeof(struct sql_link),
	};
	const struct sql_frame_setup setup = make_setup(SQL_TYPE_MARIADB);
	struct sql_link *link = NULL;
	char buf[SQL_ERROR_SIZE];
	struct text error = TEXT_ON(buf);
	int r;

	text_reset(&error);
	r = sql_driver_load(&driver, &setup, &link, &error);
	assert_string_equal(buf, want_error);
	assert_int_equal(r == 0, link != NULL);
	if (link) {
		assert_ptr_equal(link->setup, &setup);
		assert_int_equal(link->first(), getpid());
		assert_int_equal(link->second(), getppid());
	}
	free(link);
	return r;
}

static void test_library(void **state)
{
	(void)state;
	assert_int_equal(assert_load("libc.so.6", "getpid", ""), 0);
	assert_int_equal(assert_load("libnone.so.1", "getpid",
				 "libnone.so.1 is not installed (package libnone1)"),
		-ENOENT);
	assert_int_equal(assert_load("libc.so.6", "getnothing", "libc.so.6 has no getnothing()"), -ENOSYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_setup),
		cmocka_unit_test(test_no_server),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_library),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
