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
#include <time.h>
#include <unistd.h>

#include "page/page.h"
#include "util/log_relay.h"
#include "sinks/sink.h"
#include "util/cleanup.h"
#include "util/clock.h"

/*
 * A page waits behind the line that was taken in part. Of lines only that one waits: those after it
 * are dropped, since a reader that is slow gets more of them than it can take.
 */
#define REST_SIZE (2 * PAGE_TEXT_SIZE)
/* At exit a reader that takes nothing for so long is not waited for any more. */
#define READER_PATIENCE_NS (250 * NSEC_PER_MSEC)

struct terminal {
	int fd;
	bool own_fd;
	bool nonblocking; /* else asked with poll() before every piece */
	bool socket;
	bool json;
	struct log_relay *relay; /* NULL unless fd is its pipe */
	struct page *page;	 /* NULL: json */
	struct page_style style;
	uint64_t dropped;
	/* What has not been taken yet: the end of a line or page, and pages behind it. */
	const char *rest;
	size_t rest_len;
	uint64_t last_taken_ns; /* at exit, when waiting for the reader; 0: not yet */
	char rest_buf[REST_SIZE];
	char line_buf[PAGE_TEXT_SIZE];
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
		r = log_relay_new(fd, &t->fd, &t->relay);
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
		n = t->socket ? send(t->fd, bytes + done, piece, MSG_DONTWAIT | MSG_NOSIGNAL)
			      : write(t->fd, bytes + done, piece);
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

/* What a record says to a person: at its end the page, before that a line, or nothing. */
static void add_text(struct terminal *t, const struct record *r, struct text *text)
{
	text_reset(text);
	/* Its window may have another size by now. */
	if (r->type == RECORD_OPEN || r->type == RECORD_CLOSE)
		t->style.columns = page_style_of(t->fd).columns;
	page_add(t->page, r);
	page_add_event(t->page, &t->style, r, text);
	if (r->type != RECORD_CLOSE)
		return;
	text_add(text, "\n");
	page_print(t->page, &t->style, false, text);
	text_add(text, "\n");
}

/* Keeps the rest of a text behind what waits already; false when there is no room. */
static bool keep_rest(struct terminal *t, const char *bytes, size_t len)
{
	if (t->rest_len + len > sizeof(t->rest_buf))
		return false;
	memmove(t->rest_buf, t->rest, t->rest_len);
	memcpy(t->rest_buf + t->rest_len, bytes, len);
	t->rest = t->rest_buf;
	t->rest_len += len;
	return true;
}

/* `important`: it is kept until it can be written, and not dropped because the reader is slow. */
static void write_text(struct terminal *t, const struct text *text, bool important)
{
	size_t n = 0;

	if (text->len == 0)
		return;
	if (write_rest(t))
		n = write_some(t, text->buf, text->len);
	else if (!important)
		n = text->len + 1;
	/* Half a line is worse than a late one. */
	if (text->overflow || n > text->len || (n == 0 && !important) ||
		!keep_rest(t, text->buf + n, text->len - n))
		t->dropped++;
}

static void terminal_write(void *state, const struct record *r, const struct text *json)
{
	struct terminal *t = state;
	struct text line = TEXT_ON(t->line_buf);

	if (t->json)
		line = *json;
	else
		add_text(t, r, &line);
	write_text(t, &line, r->type == RECORD_CLOSE);
}

static void terminal_print(void *state, const struct text *text)
{
	write_text(state, text, true);
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

static bool terminal_is_flushed(void *state)
{
	struct terminal *t = state;
	size_t before = t->rest_len;
	uint64_t now_ns = clock_mono_ns();

	if (write_rest(t))
		return !t->relay || log_relay_is_drained(t->relay);
	if (t->rest_len != before || t->last_taken_ns == 0)
		t->last_taken_ns = now_ns;
	return now_ns - t->last_taken_ns > READER_PATIENCE_NS;
}

static void terminal_close(void *state)
{
	struct terminal *t = state;

	if (t->own_fd)
		close(t->fd);
	log_relay_free(t->relay);
	page_free(t->page);
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
	t->style = page_style_of(options->terminal_fd);
	/* Read from a file now, not when an hour is first printed. */
	tzset();
	r = t->json ? 0 : page_new(&t->page);
	if (r == 0)
		r = open_nonblocking(t, options->terminal_fd);
	if (r < 0) {
		page_free(t->page);
		return r;
	}
	*ret_state = TAKE_PTR(t);
	return 0;
}

static bool terminal_is_used(const struct config *config, bool foreground)
{
	(void)config;
	return foreground;
}

const struct sink sink_terminal = {
	.name = "terminal",
	.is_used = terminal_is_used,
	.open = terminal_open,
	.write = terminal_write,
	.print = terminal_print,
	.tick = terminal_tick,
	.dropped = terminal_dropped,
	.flushed = terminal_is_flushed,
	.close = terminal_close,
};
