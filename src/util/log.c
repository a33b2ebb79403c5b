/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/text.h"

static enum log_level log_max_level = LOG_LEVEL_INFO;
static bool log_with_prefix;
static uint64_t log_dropped;
static int log_patience_ms = -1;

void log_setup(void)
{
	struct stat st;
	int flags;

	if (fstat(STDERR_FILENO, &st) < 0 || !S_ISSOCK(st.st_mode))
		return;
	/*
	 * systemd gives each service a stream socket of its own, so the flag reaches nobody else; a
	 * terminal's or a pipe's file description is shared and is asked with poll() instead.
	 */
	flags = fcntl(STDERR_FILENO, F_GETFL);
	if (flags >= 0)
		fcntl(STDERR_FILENO, F_SETFL, flags | O_NONBLOCK);
	log_with_prefix = true;
}

void log_never_wait(void)
{
	log_patience_ms = 0;
}

void log_set_level(enum log_level level)
{
	log_max_level = level;
}

uint64_t log_dropped_lines(void)
{
	return __atomic_load_n(&log_dropped, __ATOMIC_RELAXED);
}

void log_line(enum log_level level, const char *format, ...)
{
	struct pollfd pfd = { .fd = STDERR_FILENO, .events = POLLOUT };
	int saved_errno = errno;
	char line[1024], raw[900];
	struct text message = TEXT_ON(raw), out = TEXT_ON(line);
	va_list ap;

	if (level > log_max_level)
		return;
	text_reset(&out);
	va_start(ap, format);
	vsnprintf(raw, sizeof(raw), format, ap);
	va_end(ap);
	message.len = strlen(raw);
	if (log_with_prefix)
		text_addf(&out, "<%d>", (int)level);
	else
		text_add(&out, "iostall: ");
	/* A message may quote a path or a name that somebody else chose. */
	text_add_printable(&out, message.buf, message.len);
	if (out.len >= sizeof(line) - 1)
		out.len = sizeof(line) - 2;
	line[out.len++] = '\n';
	if (poll(&pfd, 1, log_patience_ms) != 1 ||
		write(STDERR_FILENO, line, out.len) != (ssize_t)out.len)
		__atomic_add_fetch(&log_dropped, 1, __ATOMIC_RELAXED);
	errno = saved_errno;
}
