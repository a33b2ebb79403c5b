/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/lines.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* Calls fn for the complete lines and returns how many bytes they took. */
static size_t lines_hand_out(char *buf, size_t len, bool *skipping, lines_fn fn, void *arg)
{
	size_t at = 0;

	while (at < len) {
		char *newline = memchr(buf + at, '\n', len - at);

		if (!newline)
			break;
		if (*skipping)
			*skipping = false;
		else
			fn(arg, (struct cursor){ buf + at, newline });
		at = (size_t)(newline - buf) + 1;
	}
	return at;
}

int lines_read_fd(int fd, char *buf, size_t size, lines_fn fn, void *arg)
{
	bool skipping = false; /* the rest of a line that is too long for the buffer */
	size_t len = 0;
	off_t offset = 0;

	for (;;) {
		ssize_t n = pread(fd, buf + len, size - len, offset);
		size_t taken;

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (n == 0)
			break;
		offset += n;
		len += (size_t)n;
		taken = lines_hand_out(buf, len, &skipping, fn, arg);
		len -= taken;
		memmove(buf, buf + taken, len);
		if (len == size) {
			skipping = true;
			len = 0;
		}
	}
	if (len > 0 && !skipping)
		fn(arg, (struct cursor){ buf, buf + len });
	return 0;
}
