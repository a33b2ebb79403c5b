/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Feeds captured kernel events to a session without probes and prints where their record is:
 *   replay EVENTS PROCFS SYSFS DIR EVENTS is what `iostall watch --capture` writes, PROCFS and
 * SYSFS are fixtures, DIR takes the spool and the record. Everything between the ring buffer and
 * the record file is what the daemon uses, but for the clock: the incident begins when the first
 * event was sent.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "enrich/enrich.h"
#include "util/loop.h"
#include "session/session.h"
#include "sinks/sink.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "watch/rules.h"
#include "watch/watch.h"

#define EVENTS_PER_TURN 3
#define EVENT_SIZE_MAX 65536
#define FLUSH_TIMEOUT_NS (10 * NSEC_PER_SEC)
/* The watchdog's clock stands still but for one second before each sample. */
#define SAMPLES_LEAD_NS (10 * NSEC_PER_SEC)
/* When a capture without events begins. */
#define EMPTY_START_NS (1000 * NSEC_PER_SEC)

/* The linker lets all calls of clock_mono_ns() go to the second one. */
uint64_t __real_clock_mono_ns(void);
uint64_t __wrap_clock_mono_ns(void);

/* Unsigned numbers wrap around, so it may be behind the host's clock, too. */
static uint64_t clock_ahead_ns;
/* What the clock says while it stands still; 0: it goes. */
static uint64_t still_ns;

struct replay {
	FILE *events;
	struct config config;
	struct loop *loop;
	struct loop_source *timer;
	struct sinks *sinks;
	struct watch *watch;
	struct rules *rules;
	struct enrich *enrich;
	struct session *session;
	uint64_t watch_now_ns;
	uint64_t fed;
	int error;
	char incident[RECORD_ID_SIZE];
};

uint64_t __wrap_clock_mono_ns(void)
{
	uint64_t ns = __atomic_load_n(&still_ns, __ATOMIC_RELAXED);

	return ns ? ns : __real_clock_mono_ns() + clock_ahead_ns;
}

static int set_clock(struct replay *r)
{
	struct {
		uint32_t size;
		struct event_header header;
	} __attribute__((packed)) first;
	uint64_t start_ns = EMPTY_START_NS;

	if (fread(&first, sizeof(first), 1, r->events) == 1)
		start_ns = first.header.ts_ns;
	clock_ahead_ns = start_ns - __real_clock_mono_ns();
	r->watch_now_ns = start_ns - SAMPLES_LEAD_NS;
	return fseek(r->events, 0, SEEK_SET) < 0 ? -errno : 0;
}

static uint64_t watch_now(void *arg)
{
	return ((struct replay *)arg)->watch_now_ns;
}

static int take_sample(struct replay *r)
{
	r->watch_now_ns += NSEC_PER_SEC;
	return watch_take_sample(r->watch, true);
}

/* Returns 0 at the end of the file. */
static int feed_one(struct replay *r)
{
	static union {
		struct event_header header; /* for its alignment: the ring buffer's is the same */
		char bytes[EVENT_SIZE_MAX];
	} event;
	uint32_t size;
	size_t n = fread(&size, 1, sizeof(size), r->events);

	if (n == 0 && feof(r->events))
		return 0;
	if (n != sizeof(size) || size > sizeof(event) ||
		fread(event.bytes, 1, size, r->events) != size) {
		fprintf(stderr, "replay: the capture is cut off after %llu events\n",
			(unsigned long long)r->fed);
		return -EBADMSG;
	}
	session_feed_event(r->session, event.bytes, size);
	r->fed++;
	return 1;
}

static void finish(struct replay *r, int error)
{
	r->error = error;
	if (error == 0 && take_sample(r) == 0)
		session_handle_sample(r->session);
	session_stop(r->session, RECORD_REASON_stopped);
}

static void on_turn(void *userdata, uint64_t expirations)
{
	struct replay *r = userdata;
	int n = 1;

	(void)expirations;
	/* Threads that read /proc are waited for until they have answered, on a busy host, too. */
	__atomic_store_n(&still_ns, clock_mono_ns(), __ATOMIC_RELAXED);
	for (int i = 0; i < EVENTS_PER_TURN && n > 0; i++)
		n = feed_one(r);
	if (n <= 0)
		finish(r, n);
	__atomic_store_n(&still_ns, 0, __ATOMIC_RELAXED);
}

static void on_closed(void *userdata, const char *incident, const struct record_close *close)
{
	struct replay *r = userdata;

	(void)close;
	text_copy(r->incident, sizeof(r->incident), incident);
	loop_stop(r->loop);
}

static int make_directories(struct replay *r, const char *dir)
{
	struct config *c = &r->config;

	config_set_defaults(c);
	c->record.spool_bytes = 1 << 20;
	snprintf(c->record.spool_dir, sizeof(c->record.spool_dir), "%s/spool", dir);
	snprintf(c->record.dir, sizeof(c->record.dir), "%s/record", dir);
	if (mkdir(c->record.spool_dir, 0700) < 0 || mkdir(c->record.dir, 0700) < 0)
		return -errno;
	return 0;
}

static int make_session(struct replay *r, const char *procfs, const char *sysfs)
{
	const struct session_options options = {
		.config = &r->config,
		.procfs = procfs,
		.sysfs = sysfs,
		.loop = r->loop,
		.watch = r->watch,
		.rules = r->rules,
		.enrich = r->enrich,
		.sinks = r->sinks,
		.without_probes = true,
		.capture_fd = -1,
	};
	int e = session_new(&options, &r->session);

	if (e == 0)
		session_set_callbacks(r->session, NULL, on_closed, r);
	return e;
}

static int build(struct replay *r, const char *procfs, const char *sysfs, const char *dir)
{
	const struct sinks_options sinks = { .config = &r->config, .wanted = SINK_BIT(spool) };
	struct watch_options watch = { .procfs = procfs,
		.sysfs = sysfs,
		.clock = { watch_now, r } };
	int e = make_directories(r, dir);

	watch_options_from_config(&r->config, &watch);
	if (e == 0)
		e = loop_new(&r->loop);
	if (e == 0)
		e = loop_add_timer(r->loop, on_turn, r, &r->timer);
	if (e == 0)
		e = watch_new(&watch, &r->watch);
	if (e == 0)
		e = rules_new(r->config.rules, &r->rules);
	if (e == 0)
		e = enrich_new(procfs, r->watch, &r->enrich);
	if (e == 0)
		e = sinks_new(&sinks, &r->sinks);
	if (e == 0)
		e = take_sample(r);
	return e < 0 ? e : make_session(r, procfs, sysfs);
}

static int run(struct replay *r)
{
	static const struct record_trigger trigger = { .rule = "manual" };
	int e;

	if (!session_trigger(r->session, &trigger, NSEC_PER_SEC))
		return -EBUSY;
	loop_set_timer(r->timer, 1, NSEC_PER_MSEC);
	e = loop_run(r->loop);
	if (e < 0 || r->error < 0)
		return e < 0 ? e : r->error;
	if (!sinks_flush(r->sinks, FLUSH_TIMEOUT_NS))
		return -ETIMEDOUT;
	printf("%s/%s" RECORD_FILE_SUFFIX "\n", r->config.record.dir, r->incident);
	return 0;
}

int main(int argc, char **argv)
{
	static struct replay r;
	int e;

	if (argc != 5) {
		fputs("usage: replay EVENTS PROCFS SYSFS DIR\n", stderr);
		return 2;
	}
	r.events = fopen(argv[1], "re");
	e = r.events ? set_clock(&r) : -errno;
	if (e == 0)
		e = build(&r, argv[2], argv[3], argv[4]);
	if (e == 0)
		e = run(&r);
	if (e < 0)
		fprintf(stderr, "replay: %s: %s\n", argv[1], strerror(-e));
	session_free(r.session);
	enrich_free(r.enrich);
	rules_free(r.rules);
	watch_free(r.watch);
	sinks_free(r.sinks);
	loop_free(r.loop);
	if (r.events)
		fclose(r.events);
	return e < 0;
}
