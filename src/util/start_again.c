/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/start_again.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/file.h"

#define VARIABLE "IOSTALL_STARTED_AGAIN"
/* Options are short, and their number is that of the settings. */
#define ARGUMENTS_BYTES (64 * 1024)
#define ARGUMENTS_MAX 1024

bool start_again_is_possible(void)
{
	return !getenv(VARIABLE);
}

int start_again_once(void)
{
	_cleanup_free_ char *text = malloc(ARGUMENTS_BYTES);
	char *arguments[ARGUMENTS_MAX + 1], path[PATH_MAX];
	size_t count = 0, length;
	ssize_t n;

	if (!start_again_is_possible())
		return -EALREADY;
	if (!text)
		return -ENOMEM;
	n = file_read_at(AT_FDCWD, "/proc/self/cmdline", text, ARGUMENTS_BYTES);
	if (n < 0)
		return (int)n;
	length = (size_t)n;
	for (size_t at = 0; at < length; at += strlen(text + at) + 1) {
		if (count == ARGUMENTS_MAX)
			return -E2BIG;
		arguments[count++] = text + at;
	}
	arguments[count] = NULL;
	if (setenv(VARIABLE, "1", 1) < 0)
		return -errno;
	/* By its own path it keeps its name; the file may have been replaced meanwhile. */
	n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	if (n > 0) {
		path[n] = '\0';
		execv(path, arguments);
	}
	execv("/proc/self/exe", arguments);
	return -errno;
}
