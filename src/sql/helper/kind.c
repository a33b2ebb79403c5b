/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sql/helper/kind.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/text.h"

#define CONNECT_TIMEOUT_MS 500
/* No further address of a name is tried after this time. */
#define CONNECT_ALL_NS NSEC_PER_SEC
/* MariaDB and MySQL speak first, within a few milliseconds. */
#define GREETING_TIMEOUT_MS 500
#define ANSWER_TIMEOUT_MS 1000

static bool is_ready(int fd, short events, int timeout_ms)
{
	struct pollfd pfd = { .fd = fd, .events = events };

	return poll(&pfd, 1, timeout_ms) == 1;
}

static int try_connect(int family, const struct sockaddr *address, socklen_t size)
{
	_cleanup_close_ int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int error = 0;
	socklen_t error_size = sizeof(error);

	if (fd < 0)
		return -errno;
	if (connect(fd, address, size) < 0) {
		if (errno != EINPROGRESS)
			return -errno;
		if (!is_ready(fd, POLLOUT, CONNECT_TIMEOUT_MS))
			return -ETIMEDOUT;
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_size) < 0 || error)
			return -ECONNREFUSED;
	}
	return TAKE_FD(fd);
}

static int connect_local(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	text_copy(address.sun_path, sizeof(address.sun_path), path);
	return try_connect(AF_UNIX, (const struct sockaddr *)&address, sizeof(address));
}

int sql_try_socket(const char *path)
{
	_cleanup_close_ int fd = connect_local(path);

	return fd < 0 ? fd : 0;
}

static int connect_network(const struct sql_frame_setup *setup)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	const bool is_postgresql = setup->type == SQL_TYPE_POSTGRESQL;
	struct addrinfo *found = NULL;
	uint64_t until_ns = clock_mono_ns() + CONNECT_ALL_NS;
	char port[16];
	int fd = -EHOSTUNREACH;

	snprintf(port, sizeof(port), "%u", setup->port ? setup->port : is_postgresql ? 5432 : 3306);
	if (getaddrinfo(setup->host, port, &hints, &found) != 0)
		return -EHOSTUNREACH;
	/* A name may have an address of each family, and the server listen at one of them. */
	for (const struct addrinfo *a = found; a && fd < 0 && clock_mono_ns() < until_ns;
		a = a->ai_next)
		fd = try_connect(a->ai_family, a->ai_addr, a->ai_addrlen);
	freeaddrinfo(found);
	return fd;
}

/* The version of the protocol, or an error such as "too many connections". */
static bool is_mysql(const unsigned char *packet)
{
	return packet[3] == 0 && (packet[4] == 10 || packet[4] == 0xff);
}

bool sql_find_dialect(const struct sql_frame_setup *setup, bool may_ask,
	enum sql_dialect *ret_dialect)
{
	/* SSLRequest, which every PostgreSQL answers with a letter before any login. */
	static const unsigned char request[] = { 0, 0, 0, 8, 4, 210, 22, 47 };
	_cleanup_close_ int fd = -1;
	unsigned char answer[5];
	ssize_t n;

	/* With neither the usual socket of the type is meant, where no other kind listens. */
	if (setup->socket[0])
		fd = connect_local(setup->socket);
	else if (setup->host[0])
		fd = connect_network(setup);
	if (fd < 0)
		return false;
	if (is_ready(fd, POLLIN, GREETING_TIMEOUT_MS)) {
		/* Three bytes of length, the packet's number, the version of the protocol. */
		n = recv(fd, answer, sizeof(answer), 0);
		if (n != sizeof(answer) || !is_mysql(answer))
			return false;
		*ret_dialect = SQL_DIALECT_MYSQL;
		return true;
	}
	if (!may_ask || send(fd, request, sizeof(request), MSG_NOSIGNAL) != sizeof(request) ||
		!is_ready(fd, POLLIN, ANSWER_TIMEOUT_MS) || recv(fd, answer, 1, 0) != 1 ||
		(answer[0] != 'S' && answer[0] != 'N'))
		return false;
	*ret_dialect = SQL_DIALECT_POSTGRESQL;
	return true;
}
