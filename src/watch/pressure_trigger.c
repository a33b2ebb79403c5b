/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/pressure_trigger.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* Microseconds of stall in microseconds of time. Half a second is the shortest window there is. */
#define TRIGGER "full 400000 500000"

int pressure_trigger_open(const char *procfs)
{
	char path[PATH_MAX];
	int fd, error;

	snprintf(path, sizeof(path), "%s/pressure/io", procfs);
	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* With the final NUL: the kernel cuts off the last byte. */
	if (write(fd, TRIGGER, sizeof(TRIGGER)) == sizeof(TRIGGER))
		return fd;
	error = errno;
	close(fd);
	return -error;
}
