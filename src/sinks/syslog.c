/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "sinks/datagram.h"
#include "sinks/message.h"
#include "sinks/sink.h"
#include "util/cleanup.h"
#include "util/clock.h"

struct syslog {
	struct datagram *datagram;
	struct message message;
	char line_buf[DATAGRAM_SIZE];
};

/*
 * The format of RFC 3164 without a host name, as local daemons use it: "<28>Nov 20 03:12:07
 * iostall[812]: ".
 */
static void add_header(const struct message *m, const struct record *r, struct text *line)
{
	/* strftime() would use the names of the locale; the format requires English ones. */
	static const char months[][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug",
		"Sep", "Oct", "Nov", "Dec" };
	time_t sec = (time_t)(r->real_ns / NSEC_PER_SEC);
	struct tm tm = { 0 };

	localtime_r(&sec, &tm);
	text_addf(line,
		"<%d>%s %2d %02d:%02d:%02d iostall[%d]: ", LOG_DAEMON | message_priority(m, r),
		months[tm.tm_mon], tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)getpid());
}

static void syslog_write(void *state, const struct record *r, const struct text *json)
{
	struct syslog *s = state;
	struct text line = TEXT_ON(s->line_buf);

	(void)json;
	if (!message_take(&s->message, r))
		return;
	text_reset(&line);
	add_header(&s->message, r, &line);
	message_add_text(&s->message, r, &line);
	datagram_send(s->datagram, &line);
}

static void syslog_tick(void *state, uint64_t now_mono_ns)
{
	(void)now_mono_ns;
	datagram_retry(((struct syslog *)state)->datagram);
}

static void syslog_make_room(void *state)
{
	datagram_make_room(((struct syslog *)state)->datagram);
}

static uint64_t syslog_dropped(const void *state)
{
	return datagram_dropped(((const struct syslog *)state)->datagram);
}

static void syslog_close(void *state)
{
	struct syslog *s = state;

	datagram_free(s->datagram);
	free(s);
}

static int syslog_open(const struct sinks_options *options, void **ret_state)
{
	_cleanup_free_ struct syslog *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	text_copy(s->message.dir, sizeof(s->message.dir), options->config->record.dir);
	s->message.statements = options->config->syslog.statements;
	/* Reads /etc/localtime now, while its disk responds. */
	tzset();
	r = datagram_new("syslog", options->config->syslog.socket, &s->datagram);
	if (r < 0)
		return r;
	*ret_state = TAKE_PTR(s);
	return 0;
}

static bool syslog_is_used(const struct config *config, bool foreground)
{
	return !foreground && config->syslog.enabled;
}

static const char *syslog_socket(const struct config *config)
{
	return config->syslog.socket;
}

const struct sink sink_syslog = {
	.name = "syslog",
	.section = "syslog",
	.socket = syslog_socket,
	.is_used = syslog_is_used,
	.open = syslog_open,
	.write = syslog_write,
	.tick = syslog_tick,
	.make_room = syslog_make_room,
	.dropped = syslog_dropped,
	.close = syslog_close,
};
