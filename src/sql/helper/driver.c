/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sql/helper/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "util/cleanup.h"
#include "util/hash.h"
#include "util/parse.h"

static void *open_library(const char *library, const char *package, struct text *error)
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

int sql_driver_load(const struct sql_driver *driver, const struct sql_frame_setup *setup,
	struct sql_link **ret_link, struct text *error)
{
	_cleanup_free_ char *link = calloc(1, driver->link_size);
	void *library = open_library(driver->library, driver->package, error);

	if (!link)
		return -ENOMEM;
	if (!library)
		return -ENOENT;
	for (const struct sql_function *f = driver->functions; f->name; f++) {
		void *found = dlsym(library, f->name);

		if (!found) {
			text_addf(error, "%s has no %s()", driver->library, f->name);
			return -ENOSYS;
		}
		memcpy(link + f->offset, &found, sizeof(found));
	}
	memcpy(link, &setup, sizeof(setup));
	*ret_link = (struct sql_link *)(void *)TAKE_PTR(link);
	return 0;
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

uint64_t sql_make_identity(const char *text)
{
	const uint64_t hash = hash_text(HASH_BEGIN, text);

	if (!*text)
		return 0;
	return hash ? hash : 1;
}

void sql_copy_cell(char *dst, size_t size, const char *cell)
{
	text_copy(dst, size, cell ? cell : "");
}

uint64_t sql_cell_up_to(const char *cell, uint64_t max, uint64_t *invalid)
{
	uint64_t value = 0;

	if (!cell || !*cell)
		return 0;
	if (parse_unsigned(cell, &value) == 0 && value <= max)
		return value;
	(*invalid)++;
	return 0;
}

uint64_t sql_cell_u64(const char *cell)
{
	uint64_t ignored = 0;

	return sql_cell_up_to(cell, UINT64_MAX, &ignored);
}
