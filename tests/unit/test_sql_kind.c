/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Which kind of server listens: a child says what each of them says first. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sql/helper/kind.h"
#include "util/cleanup.h"
#include "util/text.h"

/* As MariaDB 10.11 begins: 90 bytes in packet 0, protocol 10. */
static const char mariadb_greeting[] = "\x5a\0\0\0\x0a"
				       "5.5.5-10.11.6-MariaDB";

/* "Too many connections". */
static const char too_many[] = "\x17\0\0\0\xff\x10\x04Too many connections";

/* One client is served: what is said first, and the letter for those who ask for TLS. */
static void serve(int listen_fd, const char *greeting, size_t size, char letter)
{
	int fd = accept(listen_fd, NULL, NULL);
	char request[8];

	if (size > 0)
		(void)!write(fd, greeting, size);
	if (read(fd, request, sizeof(request)) == sizeof(request) && letter)
		(void)!write(fd, &letter, 1);
	/* Until the client has gone. */
	(void)!read(fd, request, sizeof(request));
	_exit(0);
}

static bool find_with(int listen_fd, const struct sql_frame_setup *setup, bool may_ask,
	const char *greeting, size_t size, char letter, enum sql_dialect *ret_dialect)
{
	pid_t pid = fork();
	bool found;

	assert_true(pid >= 0);
	if (pid == 0)
		serve(listen_fd, greeting, size, letter);
	found = sql_find_dialect(setup, may_ask, ret_dialect);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return found;
}

static bool find(int listen_fd, const struct sql_frame_setup *setup, const char *greeting,
	size_t size, char letter, enum sql_dialect *ret_dialect)
{
	return find_with(listen_fd, setup, true, greeting, size, letter, ret_dialect);
}

static void check_all(int listen_fd, const struct sql_frame_setup *setup)
{
	enum sql_dialect dialect = SQL_DIALECT_POSTGRESQL;

	assert_true(
		find(listen_fd, setup, mariadb_greeting, sizeof(mariadb_greeting), 0, &dialect));
	assert_int_equal(dialect, SQL_DIALECT_MYSQL);
	assert_true(find(listen_fd, setup, too_many, sizeof(too_many) - 1, 0, &dialect));
	/* A slow MariaDB, for example: nothing is sent, so nobody says what it is. */
	assert_false(find_with(listen_fd, setup, false, NULL, 0, 'N', &dialect));
	assert_true(find(listen_fd, setup, NULL, 0, 'N', &dialect));
	assert_int_equal(dialect, SQL_DIALECT_POSTGRESQL);
	dialect = SQL_DIALECT_MYSQL;
	assert_true(find(listen_fd, setup, NULL, 0, 'S', &dialect));
	assert_int_equal(dialect, SQL_DIALECT_POSTGRESQL);
	/* Neither: a mail server, one that says nothing, one that answers something else. */
	assert_false(find(listen_fd, setup, "220 mail\r\n", 10, 0, &dialect));
	assert_false(find(listen_fd, setup, NULL, 0, 0, &dialect));
	assert_false(find(listen_fd, setup, NULL, 0, 'x', &dialect));
}

static void test_socket(void **state)
{
	struct sql_frame_setup setup = { .type = SQL_TYPE_MARIADB };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	enum sql_dialect dialect;

	(void)state;
	/* No socket and no host is the usual place of the type, where no other kind is. */
	assert_false(sql_find_dialect(&setup, true, &dialect));
	snprintf(setup.socket, sizeof(setup.socket), "/tmp/test_sql_kind.%d", getpid());
	assert_false(sql_find_dialect(&setup, true, &dialect));
	text_copy(address.sun_path, sizeof(address.sun_path), setup.socket);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 4), 0);
	check_all(fd, &setup);
	unlink(setup.socket);
}

static void test_network(void **state)
{
	struct sql_frame_setup setup = { .type = SQL_TYPE_POSTGRESQL, .host = "127.0.0.1" };
	struct sockaddr_in address = { .sin_family = AF_INET };
	_cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(address);

	(void)state;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	setup.port = ntohs(address.sin_port);
	check_all(fd, &setup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_socket),
		cmocka_unit_test(test_network),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
