/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sql/driver.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

void *sql_library_open(const char *library, const char *package, struct text *error)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	const char *why = handle ? NULL : dlerror();

	if (handle)
		return handle;
	text_addf(error, "%s is not installed (package %s)", library, package);
	if (why && !strstr(why, "No such file"))
		text_addf(error, ", or broken: %s", why);
	return NULL;
}

void *sql_library_find(void *library, const char *function, struct text *error)
{
	void *found = dlsym(library, function);

	if (!found)
		text_addf(error, "the client library has no %s()", function);
	return found;
}

int32_t sql_peer_pid(int fd)
{
	struct sockaddr_storage address;
	socklen_t address_len = sizeof(address), len;
	struct ucred peer = { 0 };

	len = sizeof(peer);
	if (getsockname(fd, (struct sockaddr *)&address, &address_len) < 0 ||
		address.ss_family != AF_UNIX ||
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return 0;
	return peer.pid;
}

void sql_copy_cell(char *dst, size_t size, const char *cell)
{
	text_copy(dst, size, cell ? cell : "");
}

uint64_t sql_cell_u64(const char *cell)
{
	return cell ? strtoull(cell, NULL, 10) : 0;
}
