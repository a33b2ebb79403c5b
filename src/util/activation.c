/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/activation.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "util/parse.h"

/* Whatever the environment says; there are no more descriptors by default. */
#define SOCKETS_MAX 1024

static unsigned int set_flags(int flags)
{
	const char *count = getenv("LISTEN_FDS"), *pid = getenv("LISTEN_PID");
	uint64_t n, for_pid;

	if (!count || parse_unsigned(count, &n) < 0 || n > SOCKETS_MAX || !pid ||
		parse_unsigned(pid, &for_pid) < 0 || for_pid != (uint64_t)getpid())
		return 0;
	for (int i = 0; i < (int)n; i++)
		fcntl(ACTIVATION_FIRST_FD + i, F_SETFD, flags);
	return (unsigned int)n;
}

unsigned int activation_take(void)
{
	return set_flags(FD_CLOEXEC);
}

void activation_pass_on(void)
{
	set_flags(0);
}
