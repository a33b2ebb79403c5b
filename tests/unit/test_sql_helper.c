/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* A helper without a server: what it makes of its daemon's frames, and what it answers. */
#include <errno.h>
#include <pwd.h>
#include <setjmp.h>
#include <signal.h>
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

#include "sql/helper/driver.h"
#include "sql/helper/helper.h"
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
	s = make_setup(SQL_TYPE_COUNT);
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
	for (uint32_t type = SQL_TYPE_NONE + 1; type < SQL_TYPE_COUNT; type++) {
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
	s = make_setup(SQL_TYPE_MARIADB);
	strcpy(s.password_file, "/dev/null");
	assert_error(&s, "password_file /dev/null is no regular file", true);
}

/*
 * What is said of a password file and of an option file with this mode and owner; "": it is taken.
 */
static void assert_mode(mode_t mode, uid_t owner, const char *want)
{
	struct sql_frame_setup s = make_setup(SQL_TYPE_MARIADB);
	char path[] = "/tmp/iostall-test-secret-XXXXXX", said[SQL_ERROR_SIZE];
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(fchown(fd, owner, (gid_t)-1), 0);
	strcpy(s.password_file, path);
	snprintf(said, sizeof(said), "password_file %s %s", path, want);
	if (!*want)
		strcpy(said, "/nonexistent/socket");
	assert_error(&s, said, *want != '\0');
	s.password_file[0] = '\0';
	strcpy(s.option_file, path);
	snprintf(said, sizeof(said), "option_file %s %s", path, want);
	/* As another user it may not even open the file. */
	if (*want && (mode & S_IROTH))
		assert_error(&s, said, true);
	close(fd);
	unlink(path);
}

static void test_modes_of_secrets(void **state)
{
	const bool root = geteuid() == 0;

	(void)state;
	assert_mode(0600, geteuid(), "");
	assert_mode(0400, geteuid(), "");
	assert_mode(0640, geteuid(), root ? "" : "has mode 0640");
	assert_mode(0644, geteuid(), "has mode 0644, so others have the password");
	assert_mode(0604, geteuid(), "has mode 0604, so others have the password");
	assert_mode(0620, geteuid(), "has mode 0620, so others have the password");
	assert_mode(0602, geteuid(), "has mode 0602, so others have the password");
	if (root) {
		assert_mode(0600, getpwnam("nobody")->pw_uid, "");
		assert_mode(0640, getpwnam("nobody")->pw_uid, "has mode 0640");
		assert_mode(0644, 4711, "belongs to user 4711; expected root");
	}
}

/* Where run_as names root, the helper is nobody. */
static void test_never_root(void **state)
{
	struct sql_frame_setup s = make_setup(SQL_TYPE_MARIADB);
	struct sql_frame_end end;
	char path[64], status[4096] = "";
	int fd;
	pid_t pid = start(&fd);
	FILE *file;

	(void)state;
	strcpy(s.run_as, "root");
	assert_int_equal(send(fd, &s, sizeof(s), MSG_NOSIGNAL), sizeof(s));
	ask(fd, 1, &end);
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	assert_non_null(file);
	assert_true(fread(status, 1, sizeof(status) - 1, file) > 0);
	fclose(file);
	assert_null(strstr(status, "\nUid:\t0\t"));
	assert_ends(pid, fd, 0);
}

static volatile sig_atomic_t greets;

static void on_signal(int number)
{
	(void)number;
	greets = 1;
}

/* Closes each connection at once; after SIGUSR1 it greets first, as MariaDB does. */
__attribute__((noreturn)) static void serve_starting(int listen_fd)
{
	static const char greeting[] = "\x5a\0\0\0\x0a"
				       "5.5.5-10.11.6-MariaDB";

	signal(SIGUSR1, on_signal);
	for (;;) {
		int fd = accept(listen_fd, NULL, NULL);

		if (fd >= 0 && greets)
			(void)!write(fd, greeting, sizeof(greeting));
		close(fd);
	}
}

/* The first login found a server that was not ready to say what it is. */
static void test_other_kind_is_found_later(void **state)
{
	struct sql_frame_setup s = make_setup(SQL_TYPE_POSTGRESQL);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;
	struct sql_frame_end end;
	pid_t server, pid;

	(void)state;
	snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/iostall-test.%d", getpid());
	assert_int_equal(mkdir(address.sun_path, 0755), 0);
	strcat(address.sun_path, "/.s.PGSQL.5432");
	strcpy(s.socket, address.sun_path);
	assert_int_equal(bind(listen_fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(chmod(s.socket, 0777), 0);
	assert_int_equal(listen(listen_fd, 8), 0);
	server = fork();
	assert_true(server >= 0);
	if (server == 0)
		serve_starting(listen_fd);
	pid = start(&fd);
	assert_int_equal(send(fd, &s, sizeof(s), MSG_NOSIGNAL), sizeof(s));
	ask(fd, 1, &end);
	assert_null(strstr(end.error, "MariaDB"));
	kill(server, SIGUSR1);
	for (uint64_t i = 2; i < 40 && !strstr(end.error, "MariaDB"); i++) {
		usleep(200000);
		ask(fd, i, &end);
	}
	assert_string_equal(end.error,
		"the server there is MariaDB or MySQL, but sql.test.type is postgresql");
	assert_string_equal(end.missing, "set sql.test.type = mariadb");
	assert_ends(pid, fd, 0);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	close(listen_fd);
	unlink(s.socket);
	*strrchr(s.socket, '/') = '\0';
	rmdir(s.socket);
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
	assert_int_equal(assert_load("libc.so.6", "getnothing", "libc.so.6 has no getnothing()"),
		-ENOSYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_setup),
		cmocka_unit_test(test_no_server),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_modes_of_secrets),
		cmocka_unit_test(test_never_root),
		cmocka_unit_test(test_other_kind_is_found_later),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_library),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
