/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sinks/pump.h"
#include "sinks/sink.h"
#include "util/cleanup.h"

struct terminal {
	int fd;
	bool own_fd;
	bool nonblocking; /* else asked with poll() before every piece */
	bool socket;
	bool json;
	struct pump *pump; /* NULL unless fd is its pipe */
	uint64_t dropped;
	uint64_t opened_mono_ns;
	/* The end of a line that was only taken in part. */
	const char *rest;
	size_t rest_len;
	char rest_buf[RECORD_LINE_SIZE];
	char line_buf[RECORD_LINE_SIZE];
};

/*
 * Standard output's file description belongs to the shell too, so its flags are not ours. A
 * terminal or pipe opened anew has flags of its own.
 */
static int open_nonblocking(struct terminal *t, int fd)
{
	char path[64];
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	t->fd = fd;
	if (S_ISREG(st.st_mode)) {
		r = pump_new(fd, &t->fd, &t->pump);
		if (r < 0)
			return r;
		t->own_fd = t->nonblocking = true;
		return 0;
	}
	t->socket = S_ISSOCK(st.st_mode);
	if (!S_ISCHR(st.st_mode) && !S_ISFIFO(st.st_mode))
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (r >= 0) {
		t->fd = r;
		t->own_fd = t->nonblocking = true;
	}
	return 0;
}

/* How much was taken without waiting. */
static size_t write_some(struct terminal *t, const char *bytes, size_t len)
{
	struct pollfd pfd = { .fd = t->fd, .events = POLLOUT };
	size_t done = 0;

	while (done < len) {
		size_t piece = len - done < PIPE_BUF ? len - done : PIPE_BUF;
		ssize_t n;

		/* A pipe that says POLLOUT takes PIPE_BUF bytes. */
		if (!t->nonblocking && (poll(&pfd, 1, 0) != 1 || !(pfd.revents & POLLOUT)))
			break;
		n = t->socket ? send(t->fd, bytes + done, piece, MSG_DONTWAIT | MSG_NOSIGNAL) :
				write(t->fd, bytes + done, piece);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return done;
}

static bool write_rest(struct terminal *t)
{
	size_t n = t->rest_len ? write_some(t, t->rest, t->rest_len) : 0;

	t->rest += n;
	t->rest_len -= n;
	return t->rest_len == 0;
}

static void terminal_write(void *state, const struct record *r, const struct text *json)
{
	struct terminal *t = state;
	struct text line = TEXT_ON(t->line_buf);
	size_t n;

	if (r->type == RECORD_OPEN)
		t->opened_mono_ns = r->mono_ns;
	if (t->json)
		line = *json;
	else
		record_format_text(r, t->opened_mono_ns, &line);
	if (line.overflow || !write_rest(t)) {
		t->dropped++;
		return;
	}
	n = write_some(t, line.buf, line.len);
	if (n == 0) {
		t->dropped++;
		return;
	}
	/* Half a line is worse than a late one. */
	memcpy(t->rest_buf, line.buf + n, line.len - n);
	t->rest = t->rest_buf;
	t->rest_len = line.len - n;
}

static void terminal_tick(void *state, uint64_t now_mono_ns)
{
	(void)now_mono_ns;
	write_rest(state);
}

static uint64_t terminal_dropped(const void *state)
{
	return ((const struct terminal *)state)->dropped;
}

static bool terminal_settled(void *state)
{
	struct terminal *t = state;

	return write_rest(t) && (!t->pump || pump_is_settled(t->pump));
}

static void terminal_close(void *state)
{
	struct terminal *t = state;

	if (t->own_fd)
		close(t->fd);
	pump_free(t->pump);
	free(t);
}

static int terminal_open(const struct sinks_options *options, void **ret_state)
{
	_cleanup_free_ struct terminal *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->json = options->terminal_json;
	t->rest = t->rest_buf;
	r = open_nonblocking(t, options->terminal_fd);
	if (r < 0)
		return r;
	*ret_state = TAKE_PTR(t);
	return 0;
}

const struct sink sink_terminal = {
	.name = "terminal",
	.open = terminal_open,
	.write = terminal_write,
	.tick = terminal_tick,
	.dropped = terminal_dropped,
	.settled = terminal_settled,
	.close = terminal_close,
};
