/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/parse.h"

void notify_manager(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = -1;
	size_t len;

	if (!path || (path[0] != '/' && path[0] != '@'))
		return;
	len = strlen(path);
	if (len >= sizeof(address.sun_path))
		return;
	memcpy(address.sun_path, path, len);
	if (path[0] == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	/*
	 * A message may be lost. That for the watchdog, which comes three times in each of its
	 * intervals, says once more that the daemon is ready.
	 */
	sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
}

uint64_t notify_watchdog_ns(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	uint64_t value;

	if (!usec || parse_unsigned(usec, &value) < 0 || value > UINT64_MAX / NSEC_PER_USEC)
		return 0;
	if (pid && atoi(pid) != getpid())
		return 0;
	return value * NSEC_PER_USEC;
}
