/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What happens while the daemon runs: samples, signals, ticks, probes that are loaded, the stop. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <string.h>

#include "daemon/internal.h"
#include "daemon/reclaim.h"
#include "probes/set.h"
#include "sinks/sink.h"
#include "sql/sql.h"
#include "util/clock.h"
#include "util/exit.h"
#include "util/log.h"
#include "util/loop.h"
#include "util/notify.h"
#include "watch/rules.h"
#include "watch/watch.h"

/*
 * A sample waits so long for a scan of threads, which works for 15 ms at most; the thread that does
 * it has no real-time priority, and may hang. The shortest interval is 100 ms.
 */
#define SAMPLE_LIMIT_NS (90 * NSEC_PER_MSEC)
/* At exit: detaching takes 2 s, and 5 s with busy CPUs. */
#define DETACH_TIMEOUT_NS (8 * NSEC_PER_SEC)
#define STOP_TICK_NS (10 * NSEC_PER_MSEC)

/* The last lines are written and the probes are detached before the loop ends. */
static void continue_stop(struct daemon *d)
{
	if (d->stopping && !session_is_open(d->session) &&
		(!session_is_detaching(d->session) || clock_mono_ns() >= d->stop_limit_ns))
		loop_stop(d->loop);
}

static void stop(struct daemon *d, int exit_code)
{
	/* Another request would put off the limit. */
	if (d->stopping)
		return;
	d->stopping = true;
	d->exit_code = exit_code;
	d->stop_limit_ns = clock_mono_ns() + DETACH_TIMEOUT_NS;
	session_stop(d->session, RECORD_REASON_stopped);
	loop_set_timer(d->stop_timer, STOP_TICK_NS, STOP_TICK_NS);
	continue_stop(d);
}

/* Nothing is begun that may wait for the host, or make it wait. */
static bool is_armed(const struct daemon *d)
{
	return session_is_open(d->session) || watch_lacks_memory(d->watch);
}

static void end_sample(struct daemon *d)
{
	/* A process that it says was killed may be gone at the end of the sample. */
	session_read_kernel_log(d->session);
	if (!watch_end_sample(d->watch, is_armed(d)))
		return;
	loop_set_timer(d->sample_limit, 0, 0);
	session_handle_sample(d->session);
}

const char *daemon_trigger(struct daemon *d, uint64_t hold_ns)
{
	static const struct record_trigger manual = { .rule = "manual" };

	/* Another incident would put off the end, until the manager kills the daemon. */
	if (d->stopping)
		return NULL;
	/* It is of the time before. */
	end_sample(d);
	return session_trigger(d->session, &manual, hold_ns);
}

static void begin_reload(struct daemon *d)
{
	notify_manager("RELOADING=1");
	d->reload_wanted = true;
	if (session_is_open(d->session))
		log_info("the configuration will be reloaded when incident %s is closed",
			session_incident(d->session));
	daemon_reload(d);
}

void daemon_handle_signal(void *userdata, uint64_t signal)
{
	struct daemon *d = userdata;

	switch (signal) {
	case SIGHUP:
		/* In the foreground it means that the terminal has gone away. */
		if (d->o->foreground)
			stop(d, EXIT_CODE_OK);
		/* The manager would be told of a reload, and never of its end. */
		else if (d->stopping)
			log_info("SIGHUP is ignored: iostall is stopping");
		else
			begin_reload(d);
		break;
	case SIGUSR1:
		if (!daemon_trigger(d, DAEMON_HOLD_NS))
			log_info("SIGUSR1 is ignored: iostall is stopping");
		break;
	default:
		if (d->stopping)
			loop_stop(d->loop);
		else
			stop(d, EXIT_CODE_OK);
	}
}

/* What the databases have answered since the last sample is part of this one. */
static void note_databases(struct daemon *d)
{
	const uint64_t now_ns = clock_mono_ns();
	struct sql_activity activity;

	if (!d->sql)
		return;
	/* The rules judge answers: a sample without a new one says nothing. */
	sql_get_activity(d->sql, &d->config->watch.sql_state, d->sql_judged_ns, &activity);
	d->sql_judged_ns = now_ns;
	watch_set_sql(d->watch,
		&(struct record_sql_activity){
			.present = activity.present,
			.active = activity.is_new.active ? (int32_t)activity.active : -1,
			.lasting = activity.is_new.active ? (int32_t)activity.lasting : -1,
			.in_state = activity.is_new.in_state ? (int32_t)activity.in_state : -1,
			.longest_s = activity.is_new.longest
				? (double)activity.longest_ns / NSEC_PER_SEC
				: NAN,
			.unanswered_s = (double)activity.unanswered_ns / NSEC_PER_SEC,
			.connections_pct =
				activity.is_new.connections ? activity.connections_pct : NAN,
		},
		&activity.targets);
}

void daemon_on_scanned(void *userdata, uint64_t events)
{
	struct daemon *d = userdata;

	(void)events;
	if (watch_sample_is_ready(d->watch) && !d->stopping)
		end_sample(d);
}

void daemon_on_sample_limit(void *userdata, uint64_t expirations)
{
	struct daemon *d = userdata;

	(void)expirations;
	if (!d->stopping)
		end_sample(d);
}

static void begin_sample(struct daemon *d)
{
	int r;

	note_databases(d);
	health_tell(d->health, d->watch, is_armed(d));
	session_prepare_sample(d->session);
	r = watch_begin_sample(d->watch, is_armed(d));
	if (r < 0)
		log_warning("no sample could be taken: %s", strerror(-r));
	else if (watch_sample_is_ready(d->watch))
		end_sample(d);
	else
		loop_set_timer(d->sample_limit, SAMPLE_LIMIT_NS, 0);
}

void daemon_on_sample(void *userdata, uint64_t expirations)
{
	struct daemon *d = userdata;

	(void)expirations;
	if (d->stopping)
		return;
	end_sample(d);
	daemon_take_next(d);
	daemon_reload(d);
	daemon_grow(d);
	begin_sample(d);
}

/* The kernel reports a stall before the next sample is due, and long before it is the second. */
void daemon_on_pressure(void *userdata, uint64_t events)
{
	struct daemon *d = userdata;

	(void)events;
	if (d->stopping || session_get_state(d->session) != SESSION_IDLE ||
		!rules_report_pressure(d->rules))
		return;
	end_sample(d);
	begin_sample(d);
	loop_set_timer(d->sample_timer, d->config->watch.interval_ns, d->config->watch.interval_ns);
}

void daemon_on_tick(void *userdata, uint64_t expirations)
{
	struct daemon *d = userdata;

	(void)expirations;
	sinks_tick(d->sinks, clock_mono_ns());
	sql_tick(d->sql, session_is_open(d->session));
	if (!session_is_open(d->session) && rules_doubt_database(d->rules))
		sql_look_again(d->sql);
}

void daemon_on_stop_tick(void *userdata, uint64_t expirations)
{
	(void)expirations;
	continue_stop(userdata);
}

/* The reader of the pipe has gone, so nobody watches any more. */
void daemon_on_terminal_gone(void *userdata, uint64_t events)
{
	struct daemon *d = userdata;

	(void)events;
	d->terminal = loop_remove(d->terminal);
	stop(d, EXIT_CODE_OK);
}

/*
 * The service manager ends a daemon that it has not heard to be ready. When the host freezes as the
 * daemon starts, the first message may have been lost.
 */
void daemon_on_watchdog(void *userdata, uint64_t expirations)
{
	(void)expirations;
	notify_manager(daemon_is_reloading(userdata) ? "WATCHDOG=1" : "READY=1\nWATCHDOG=1");
}

void daemon_on_closed(void *userdata, const char *incident, const struct record_close *close)
{
	struct daemon *d = userdata;

	(void)incident;
	d->stalls += close->stalls;
	d->stuck += close->stuck_threads;
	continue_stop(d);
}

/* Probes are loaded while the loop runs, which takes half a minute on an emulated CPU. */
void daemon_on_loaded(void *userdata, struct session *session, int error)
{
	struct daemon *d = userdata;
	char buf[256];
	struct text probes = TEXT_ON(buf);

	if (session == d->next) {
		daemon_next_loaded(d, error);
		return;
	}
	if (error == 0) {
		text_reset(&probes);
		session_describe_probes(session, &probes);
		log_notice("watching every %llu ms, probes ready: %s",
			(unsigned long long)(d->config->watch.interval_ns / NSEC_PER_MSEC),
			probes.buf);
		reclaim_lock_memory();
		notify_manager("STATUS=");
		daemon_reload(d);
		return;
	}
	if (error_is_transient(error))
		log_error("no probe can be attached now (%s); the next start may succeed",
			strerror(-error));
	else
		log_error(
			"no probe can be attached on this host (%s); `iostall doctor` explains what is missing",
			strerror(-error));
	d->exit_code = exit_code_unless_transient(error, EXIT_CODE_ARM);
	loop_stop(d->loop);
}
