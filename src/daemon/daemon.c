/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/config_reader.h"
#include "daemon/control.h"
#include "daemon/scrape.h"
#include "daemon/internal.h"
#include "daemon/reclaim.h"
#include "enrich/enrich.h"
#include "health/health.h"
#include "probes/set.h"
#include "session/session.h"
#include "sinks/dir.h"
#include "sinks/sink.h"
#include "sql/sql.h"
#include "util/clock.h"
#include "util/exit.h"
#include "util/log.h"
#include "util/log_relay.h"
#include "util/loop.h"
#include "util/notify.h"
#include "util/pid_namespace.h"
#include "util/passwd.h"
#include "util/activation.h"
#include "util/start_again.h"
#include "util/thread.h"
#include "watch/pressure_trigger.h"
#include "watch/rules.h"
#include "watch/watch.h"

/* At exit: records that are not on disk by then stay in the spool for the next start. */
#define FLUSH_TIMEOUT_NS (2 * NSEC_PER_SEC)
#define SUMMARY_TIMEOUT_NS (NSEC_PER_SEC / 2)
#define LOCK_PATIENCE_NS (3 * NSEC_PER_SEC)

static int start_control(struct daemon *d)
{
	const struct timespec pause = { .tv_nsec = 100 * (long)NSEC_PER_MSEC };
	const char *path = d->config->control.socket;
	uint64_t begin_ns = clock_mono_ns();
	int r;

	/* A daemon that was killed holds the lock until the kernel has detached its probes. */
	while ((r = control_new(d->loop, path, daemon_answer, d, &d->control)) == -EADDRINUSE &&
		clock_mono_ns() - begin_ns < LOCK_PATIENCE_NS)
		nanosleep(&pause, NULL);
	if (r == -EADDRINUSE) {
		log_error("another iostall daemon is running: it holds %s.lock", path);
		return EXIT_CODE_CONTROL;
	}
	if (r < 0) {
		log_error("control.socket: %s cannot be created: %s", path, strerror(-r));
		return EXIT_CODE_SPOOL;
	}
	return EXIT_CODE_OK;
}

/* The daemon is for more than that, so it starts without. */
static void start_scrape(struct daemon *d)
{
	int r = scrape_new(d->loop, daemon_answer_scrape, d, &d->scrape);

	if (r < 0)
		log_error("metrics are not served on the socket that was passed: %s%s",
			strerror(-r),
			r == -EINVAL ? "; expected one that listens (ListenStream=, Accept=no)"
				     : "");
}

static int start_sinks(struct daemon *d)
{
	const struct sinks_options options = {
		.config = d->config,
		.wanted = sinks_used(d->config, d->o->foreground),
		.terminal_fd = STDOUT_FILENO,
		.terminal_json = d->o->json,
	};
	const char *spool_dir = d->config->record.spool_dir;
	int r = sinks_new(&options, &d->sinks);

	if (r == -EMEDIUMTYPE)
		log_error(
			"record.spool_dir: %s is not on tmpfs, so that a disk that hangs would stop "
			"the recording; mount a tmpfs there, with `mount -t tmpfs -o mode=0750 "
			"tmpfs %s`, or set record.spool_dir to a directory that is on one",
			spool_dir, spool_dir);
	else if (r < 0)
		log_error("record.spool_dir: %s cannot be used: %s", spool_dir, dir_strerror(r));
	return r < 0 ? EXIT_CODE_SPOOL : EXIT_CODE_OK;
}

static int start_watch(struct daemon *d)
{
	struct watch_options options = { .procfs = d->o->procfs, .sysfs = d->o->sysfs };
	int r;

	watch_options_from_config(d->config, &options);
	r = watch_new(&options, &d->watch);
	if (r == 0)
		r = loop_add_fd(d->loop, watch_sample_fd(d->watch), EPOLLIN, daemon_on_scanned, d,
			NULL);
	if (r == 0)
		r = rules_new(d->config->rules, &d->rules);
	if (r == 0)
		r = enrich_new(d->o->procfs, d->watch, &d->enrich);
	if (r < 0)
		log_error("%s cannot be read: %s", d->o->procfs, strerror(-r));
	return r < 0 ? EXIT_CODE_FAILURE : EXIT_CODE_OK;
}

/* Everything else is recorded without it. */
static void start_sql(struct daemon *d)
{
	const struct sql_options options = {
		.config = d->config,
		.procfs = d->o->procfs,
		.loop = d->loop,
		.watch = d->watch,
	};
	int r = sql_new(&options, &d->sql);

	if (r < 0)
		log_warning("databases will not be asked: %s", strerror(-r));
}

static int start_session(struct daemon *d)
{
	int r = daemon_new_session(d, d->config, &d->session);

	if (r < 0)
		log_error("the probes cannot be loaded: %s", strerror(-r));
	return r < 0 ? EXIT_CODE_FAILURE : EXIT_CODE_OK;
}

static void start_health(struct daemon *d)
{
	struct health_accounts accounts;

	health_find_accounts(PASSWD_FILE, d->config, &accounts);
	health_replace(&d->health, d->loop, NULL, d->config, &accounts);
}

static int start_loop(struct daemon *d)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1, 0 };
	uint64_t watchdog_ns = notify_watchdog_ns();
	int r = loop_add_timer(d->loop, daemon_on_sample, d, &d->sample_timer);

	if (r == 0)
		r = loop_add_timer(d->loop, daemon_on_sample_limit, d, &d->sample_limit);
	if (r == 0)
		r = loop_add_timer(d->loop, daemon_on_tick, d, &d->tick_timer);
	if (r == 0)
		r = loop_add_timer(d->loop, daemon_on_stop_tick, d, &d->stop_timer);
	if (r == 0)
		r = loop_add_timer(d->loop, daemon_on_watchdog, d, &d->watchdog_timer);
	if (r == 0 && d->pressure_fd >= 0)
		r = loop_add_fd(d->loop, d->pressure_fd, EPOLLPRI, daemon_on_pressure, d,
			&d->pressure);
	if (r == 0)
		r = daemon_prepare_reload(d);
	if (r == 0)
		r = loop_add_signals(d->loop, signals, daemon_handle_signal, d);
	if (r < 0) {
		log_error("the event loop cannot be set up: %s", strerror(-r));
		return EXIT_CODE_FAILURE;
	}
	/* The first sample is taken at once: it has no rates yet, but the second needs it. */
	loop_set_timer(d->sample_timer, 1, d->config->watch.interval_ns);
	loop_set_timer(d->tick_timer, NSEC_PER_SEC, NSEC_PER_SEC);
	loop_set_timer(d->watchdog_timer, watchdog_ns / 3, watchdog_ns / 3);
	return EXIT_CODE_OK;
}

/* Else it would name other processes than those that wait, and watch none of them. */
static int check_namespace(void)
{
	int r = pid_namespace_is_host();

	if (r == 0)
		log_error("%s", pid_namespace_own);
	else if (r < 0)
		log_warning(
			"/proc/self/ns/pid: %s; it is not known whether process ids are those of "
			"the host, ignoring",
			strerror(-r));
	return r == 0 ? EXIT_CODE_ARM : EXIT_CODE_OK;
}

static int start(struct daemon *d)
{
	int code = EXIT_CODE_OK;
	int r;

	d->started_ns = clock_mono_ns();
	d->started_real_ns = clock_real_ns();
	r = loop_new(&d->loop);
	if (r < 0) {
		log_error("the event loop cannot be set up: %s", strerror(-r));
		return EXIT_CODE_FAILURE;
	}
	/* Signals first: threads that are created later inherit the mask. */
	code = start_loop(d);
	log_relay_decouple(STDERR_FILENO, &d->log_relay);
	if (code == EXIT_CODE_OK && !d->o->foreground)
		code = start_control(d);
	if (code == EXIT_CODE_OK && !d->o->foreground)
		start_scrape(d);
	if (code == EXIT_CODE_OK)
		code = start_watch(d);
	if (code == EXIT_CODE_OK)
		start_health(d);
	if (code == EXIT_CODE_OK)
		code = start_sinks(d);
	if (code == EXIT_CODE_OK && d->o->capture) {
		d->capture_fd = open(d->o->capture, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		if (d->capture_fd < 0) {
			log_error("--capture: %s: %s", d->o->capture, strerror(errno));
			code = EXIT_CODE_FAILURE;
		}
	}
	if (code == EXIT_CODE_OK) {
		start_sql(d);
		code = start_session(d);
	}
	return code;
}

/* epoll reports when the reader of a pipe goes; files and terminals have no reader. */
static void watch_terminal(struct daemon *d)
{
	struct stat st;

	if (d->o->foreground && fstat(STDOUT_FILENO, &st) == 0 &&
		(S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)) &&
		loop_add_fd(d->loop, STDOUT_FILENO, 0, daemon_on_terminal_gone, d, &d->terminal) <
			0)
		log_warning("iostall will not notice when standard output is closed");
}

static void print_summary(const struct daemon *d, const char *records_dir)
{
	char buf[256 + PATH_MAX];
	struct text t = TEXT_ON(buf);

	text_reset(&t);
	text_add_count(&t, session_incidents_count(d->session), "incident, ", "incidents, ");
	text_add_count(&t, d->stalls, "stall, ", "stalls, ");
	text_add_count(&t, d->stuck, "operation stuck", "operations stuck");
	text_addf(&t, "; records in %s\n", records_dir);
	/* Not by printf(): the reader of a pipe may have stopped. */
	sinks_print(d->sinks, &t);
}

static void restore_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static void end(struct daemon *d)
{
	const struct config *config = d->config;
	bool stay;

	if (!sinks_flush(d->sinks, FLUSH_TIMEOUT_NS) && sinks_keep_records(d->sinks))
		log_warning(
			"not all records could be copied; the rest stays in %s for the next start",
			config->record.spool_dir);
	if (!d->o->foreground)
		return;
	stay = sinks_keep_records(d->sinks);
	if (!d->o->json)
		print_summary(d, stay ? config->record.spool_dir : config->record.dir);
	sinks_flush(d->sinks, SUMMARY_TIMEOUT_NS);
	if (stay && d->exit_code == EXIT_CODE_OK)
		d->exit_code = EXIT_CODE_SPOOL;
}

/*
 * libbpf asks the kernel once what it can do and keeps the answer, also one that only a passing
 * lack of memory gave. Where standard error goes through a thread of ours, what would be said
 * afterwards would be lost.
 */
static bool is_to_start_again(const struct daemon *d)
{
	return d->exit_code == EXIT_CODE_ARM && !d->log_relay && start_again_is_possible();
}

static void run(struct daemon *d)
{
	int r;

	watch_terminal(d);
	notify_manager("READY=1\nSTATUS=The probes are being loaded.");
	/* Helper processes are started before an incident can open: during one, none is started. */
	sql_tick(d->sql, false);
	if (d->o->now)
		daemon_trigger(d, d->config->incident.max_time_ns);
	r = thread_run_first();
	if (r < 0)
		log_info("no real-time priority: %s; beside many busy programs iostall may be late",
			strerror(-r));
	r = loop_run(d->loop);
	if (r < 0) {
		log_error("the event loop failed: %s", strerror(-r));
		d->exit_code = EXIT_CODE_FAILURE;
	}
	/* The manager ends who stops and does not, so it is not told of a stop that is none. */
	if (!is_to_start_again(d))
		notify_manager("STOPPING=1");
	/* What follows may take 2 s. A second Ctrl-C ends it at once. */
	restore_signals();
	end(d);
}

int daemon_run(struct config *config, const struct daemon_options *options)
{
	struct daemon d = {
		.o = options,
		.config = config,
		.loaded = daemon_on_loaded,
		.closed = daemon_on_closed,
		.capture_fd = -1,
	};
	const struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };

	/* Starting again would change nothing about that. */
	if (check_namespace() != EXIT_CODE_OK) {
		free(config);
		return EXIT_CODE_ARM;
	}
	if (geteuid() != 0)
		log_warning(
			"not running as root: the kernel will refuse most of what iostall needs");
	reclaim_set_heap();
	/* Before 5.11, BPF maps count against this limit; where it is refused it is not needed. */
	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	/* Before the capability that it needs is given up. */
	d.pressure_fd = pressure_trigger_open(options->procfs);
	if (d.pressure_fd < 0)
		log_debug("the kernel does not report I/O pressure by itself: %s",
			strerror(-d.pressure_fd));
	reclaim_avoid_disks();
	/* `watch | head`: when the reader is gone, lines are lost, but not the recording. */
	signal(SIGPIPE, SIG_IGN);
	/* Under a limit of file sizes (RLIMIT_FSIZE) a write fails with EFBIG, which is handled. */
	signal(SIGXFSZ, SIG_IGN);
	probe_set_redirect_libbpf_log();
	d.exit_code = start(&d);
	if (d.exit_code == EXIT_CODE_OK) {
		reclaim_lock_memory();
		run(&d);
	}
	config_reader_free(d.config_reader);
	health_free(d.health);
	control_free(d.control);
	scrape_free(d.scrape);
	session_free(d.next);
	session_free(d.session);
	sql_free(d.sql);
	/* Joins no thread: one of the sinks may hang in the kernel on a dead disk. */
	sinks_free(d.sinks);
	if (d.log_relay)
		log_relay_flush(d.log_relay, FLUSH_TIMEOUT_NS);
	/* Only stdout: a thread that hangs may hold the lock of any other file. */
	fflush(stdout);
	if (is_to_start_again(&d)) {
		activation_pass_on();
		start_again_once();
		notify_manager("STOPPING=1");
	}
	_exit(d.exit_code);
}
