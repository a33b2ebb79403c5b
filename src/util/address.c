/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/un.h>

#include "util/parse.h"

#define UNIX_PREFIX "unix:"
/* The longest IPv6 address and its brackets. */
#define HOST_SIZE (INET6_ADDRSTRLEN + 2)

static int parse_unix(const char *path, struct sockaddr_storage *ret_address, socklen_t *ret_size)
{
	struct sockaddr_un *un = (void *)ret_address;

	if (path[0] != '/' || strlen(path) >= sizeof(un->sun_path))
		return -EINVAL;
	memset(ret_address, 0, sizeof(*ret_address));
	un->sun_family = AF_UNIX;
	strcpy(un->sun_path, path);
	*ret_size = sizeof(*un);
	return 0;
}

static int parse_host(char *host, uint16_t port, struct sockaddr_storage *ret_address,
	socklen_t *ret_size)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	size_t len = strlen(host);

	memset(ret_address, 0, sizeof(*ret_address));
	if (inet_pton(AF_INET, host, &in.sin_addr) == 1) {
		memcpy(ret_address, &in, sizeof(in));
		*ret_size = sizeof(in);
		return 0;
	}
	if (len < 2 || host[0] != '[' || host[len - 1] != ']')
		return -EINVAL;
	host[len - 1] = '\0';
	if (inet_pton(AF_INET6, host + 1, &in6.sin6_addr) != 1)
		return -EINVAL;
	memcpy(ret_address, &in6, sizeof(in6));
	*ret_size = sizeof(in6);
	return 0;
}

int address_parse(const char *s, struct sockaddr_storage *ret_address, socklen_t *ret_size)
{
	const char *colon = strrchr(s, ':');
	char host[HOST_SIZE];
	uint64_t port;

	if (strncmp(s, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0)
		return parse_unix(s + strlen(UNIX_PREFIX), ret_address, ret_size);
	if (!colon || (size_t)(colon - s) >= sizeof(host) || parse_unsigned(colon + 1, &port) < 0 ||
		port < 1 || port > UINT16_MAX)
		return -EINVAL;
	memcpy(host, s, (size_t)(colon - s));
	host[colon - s] = '\0';
	return parse_host(host, (uint16_t)port, ret_address, ret_size);
}
