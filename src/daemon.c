/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/exit.h"
#include "control.h"
#include "enrich/enrich.h"
#include "health.h"
#include "loop.h"
#include "probes/set.h"
#include "session/session.h"
#include "sinks/pump.h"
#include "sinks/sink.h"
#include "sql/sql.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/notify.h"
#include "util/parse.h"
#include "version.h"
#include "watch/rules.h"
#include "watch/watch.h"

/* How long a manual trigger keeps an incident open when the caller does not say. */
#define MANUAL_HOLD_NS (10 * NSEC_PER_SEC)
/* At exit: what the disk has not taken by then stays in the spool for the next start. */
#define FLUSH_TIMEOUT_NS (2 * NSEC_PER_SEC)

struct daemon {
	const struct daemon_options *o;
	struct config *config;
	bool reload_wanted; /* by SIGHUP, done when no incident is open */
	uint32_t generation; /* of the session */
	struct loop *loop;
	struct sinks *sinks;
	struct watch *watch;
	struct rules *rules;
	struct sql *sql;
	struct health *health; /* NULL: none is configured */
	struct enrich *enrich;
	struct session *session;
	struct control *control;
	struct pump *log_pump; /* before a standard error that is a file */
	struct loop_source *sample_timer;
	struct loop_source *tick_timer;
	struct loop_source *watchdog_timer;
	struct loop_source *terminal;
	int capture_fd;
	uint64_t started_ns;
	uint64_t stalls; /* over all incidents, for the summary of `watch` */
	uint64_t stuck;
	bool stopping;
	bool records_stay; /* in the spool: record.dir cannot be used */
	int exit_code;
};

static void stop(struct daemon *d, int exit_code)
{
	d->stopping = true;
	d->exit_code = exit_code;
	session_stop(d->session, "stopped");
	if (session_get_state(d->session) != SESSION_DRAINING)
		loop_stop(d->loop);
}

static bool trigger_manually(struct daemon *d, uint64_t hold_ns)
{
	static const struct record_trigger manual = { .rule = "manual" };

	return session_trigger(d->session, &manual, hold_ns);
}

/* Reload */

static int new_session(struct daemon *d, const struct config *config, struct session **ret_session);

static bool session_is_busy(const struct daemon *d)
{
	enum session_state state = session_get_state(d->session);

	return state == SESSION_TRACING || state == SESSION_DRAINING;
}

static void log_what_needs_restart(const struct config *a, const struct config *b)
{
	if (memcmp(&a->record, &b->record, sizeof(a->record)) != 0 ||
		memcmp(&a->journal, &b->journal, sizeof(a->journal)) != 0 ||
		memcmp(&a->syslog, &b->syslog, sizeof(a->syslog)) != 0 ||
		memcmp(&a->control, &b->control, sizeof(a->control)) != 0)
		log_warning("changes of [record], [journal], [syslog] and [control] need a restart");
}

/* The session is made anew, since thresholds are fixed when programs are loaded; the old one stays if it fails. */
static int take_over(struct daemon *d, struct config *config)
{
	struct watch_options watch = {};
	struct session *session;
	int r = new_session(d, config, &session);

	if (r < 0)
		return r;
	session_inherit(session, d->session);
	session_free(d->session);
	d->session = session;
	watch_options_from_config(config, &watch);
	r = watch_reload(d->watch, &watch);
	if (r < 0)
		log_warning("the settings of [watch] stay as they were: %s", strerror(-r));
	r = d->sql ? sql_reload(d->sql, config) : 0;
	if (r < 0)
		log_warning("not every database will be asked: %s", strerror(-r));
	rules_reload(d->rules, config->rules);
	enrich_reload_users(d->enrich);
	health_replace(&d->health, d->loop, d->config, config);
	loop_set_timer(d->sample_timer, config->watch.interval_ns, config->watch.interval_ns);
	log_what_needs_restart(d->config, config);
	free(d->config);
	d->config = config;
	/* libbpf had the kernel's whole BTF in memory, 6 MB, and memory is locked. */
	malloc_trim(0);
	return 0;
}

/* Not while an incident is open: files would be read, and the disk may be the one that hangs. */
static void reload(struct daemon *d)
{
	_cleanup_free_ struct config *config = malloc(sizeof(*config));
	char error[CONFIG_ERROR_SIZE] = "no memory";

	d->reload_wanted = false;
	if (config && config_load(config, &d->o->source, error) < 0) {
		log_error("%s", error);
		log_error("the running configuration is kept");
	} else if (!config || take_over(d, config) < 0) {
		log_error("the new configuration cannot be used, the running one is kept");
	} else {
		(void)TAKE_PTR(config);
		log_info("configuration reloaded");
	}
	notify_manager("READY=1");
}

/* Callbacks of the loop */

static void on_signal(void *userdata, uint64_t signal)
{
	struct daemon *d = userdata;

	switch (signal) {
	case SIGHUP:
		/* In the foreground it is the terminal that goes away. */
		if (d->o->foreground) {
			stop(d, EXIT_CODE_OK);
			break;
		}
		notify_manager("RELOADING=1");
		d->reload_wanted = true;
		if (session_is_busy(d))
			log_info("the configuration is read when the incident is closed");
		else
			reload(d);
		break;
	case SIGUSR1:
		trigger_manually(d, MANUAL_HOLD_NS);
		break;
	default:
		if (d->stopping)
			loop_stop(d->loop);
		else
			stop(d, EXIT_CODE_OK);
	}
}

/* What databases last said is part of the sample. */
static void note_databases(struct daemon *d)
{
	struct sql_activity activity;

	if (!d->sql)
		return;
	sql_get_activity(d->sql, &d->config->watch.sql_state, &activity);
	watch_set_sql(d->watch,
		&(struct watch_sql){
			.present = activity.present,
			.active = activity.fresh ? (int32_t)activity.active : -1,
			.in_state = activity.fresh ? (int32_t)activity.in_state : -1,
			.longest_s = activity.fresh ? (double)activity.longest_ns / NSEC_PER_SEC : NAN,
			.unanswered_s = (double)activity.unanswered_ns / NSEC_PER_SEC,
		},
		&activity.targets);
}

static void on_sample(void *userdata, uint64_t expirations)
{
	struct daemon *d = userdata;
	int r;

	(void)expirations;
	if (d->reload_wanted && !session_is_busy(d))
		reload(d);
	note_databases(d);
	health_tell(d->health, d->watch, session_is_busy(d));
	r = watch_take_sample(d->watch, session_is_busy(d));
	if (r < 0)
		log_warning("no sample: %s", strerror(-r));
	else
		session_handle_sample(d->session);
}

static void on_tick(void *userdata, uint64_t expirations)
{
	struct daemon *d = userdata;

	(void)expirations;
	sinks_tick(d->sinks, clock_mono_ns());
	sql_tick(d->sql, session_is_busy(d));
	/* A minute is too long to know whether it stays so. */
	if (d->sql && rules_doubt_database(d->rules))
		sql_ask_all(d->sql);
}

/* The reader of a pipe is gone: nobody watches any more. */
static void on_terminal_gone(void *userdata, uint64_t events)
{
	struct daemon *d = userdata;

	(void)events;
	d->terminal = loop_remove(d->terminal);
	stop(d, EXIT_CODE_OK);
}

static void on_watchdog(void *userdata, uint64_t expirations)
{
	(void)userdata;
	(void)expirations;
	notify_manager("WATCHDOG=1");
}

static void on_closed(void *userdata, const char *incident, const struct record_close *close)
{
	struct daemon *d = userdata;

	(void)incident;
	d->stalls += close->stalls;
	d->stuck += close->stuck_threads;
	if (d->stopping)
		loop_stop(d->loop);
}

static void answer_status(struct daemon *d, struct text *answer)
{
	char buf[256];
	struct text probes = TEXT_ON(buf);
	unsigned int processes;

	text_reset(&probes);
	session_describe_probes(d->session, &probes);
	watch_processes(d->watch, &processes);
	text_json_open(answer, NULL, '{');
	text_json_string(answer, "version", IOSTALL_VERSION);
	text_json_i64(answer, "pid", getpid());
	text_json_string(answer, "state", session_state_name(session_get_state(d->session)));
	text_json_string(answer, "incident", session_incident(d->session));
	text_json_u64(answer, "incidents", session_incidents_count(d->session));
	text_json_u64(answer, "uptime_ns", clock_mono_ns() - d->started_ns);
	text_json_u64(answer, "cpu_ns", clock_process_cpu_ns());
	text_json_string(answer, "probes", probes.buf);
	text_json_u64(answer, "watched_processes", processes);
	text_json_u64(answer, "rules_active", rules_active(d->rules));
	text_json_u64(answer, "log_dropped", log_dropped_lines());
	sql_add_status(d->sql, answer);
	text_json_close(answer, '}');
}

static void answer_trigger(struct daemon *d, const char *argument, uid_t uid, struct text *answer)
{
	uint64_t hold_ns = MANUAL_HOLD_NS;
	char buf[96];
	struct text limit = TEXT_ON(buf);

	text_reset(&limit);
	text_add(&limit, "longer than incident.max_time; right would be at most ");
	record_add_duration(&limit, d->config->incident.max_time_ns);
	text_json_open(answer, NULL, '{');
	if (uid != 0)
		text_json_string(answer, "error", "only root may trigger");
	else if (*argument && parse_unsigned(argument, &hold_ns) < 0)
		text_json_string(answer, "error", "the time is not a number of nanoseconds");
	else if (hold_ns > d->config->incident.max_time_ns)
		text_json_string(answer, "error", limit.buf);
	else if (!trigger_manually(d, hold_ns ? hold_ns : MANUAL_HOLD_NS))
		text_json_string(answer, "error", "the last incident is just being closed, try again");
	else
		text_json_string(answer, "incident", session_incident(d->session));
	text_json_close(answer, '}');
}

static void on_request(void *userdata, const char *request, uid_t uid, struct text *answer)
{
	struct daemon *d = userdata;

	if (strcmp(request, "status") == 0) {
		answer_status(d, answer);
	} else if (strncmp(request, "trigger ", 8) == 0) {
		answer_trigger(d, request + 8, uid, answer);
	} else {
		text_json_open(answer, NULL, '{');
		text_json_string(answer, "error", "unknown request; known are status and trigger");
		text_json_close(answer, '}');
	}
}

/* Start and end */

static int new_session(struct daemon *d, const struct config *config, struct session **ret_session)
{
	const struct session_options options = {
		.config = config,
		.generation = d->generation++,
		.procfs = d->o->procfs,
		.sysfs = d->o->sysfs,
		.loop = d->loop,
		.watch = d->watch,
		.rules = d->rules,
		.enrich = d->enrich,
		.sinks = d->sinks,
		.sql = d->sql,
		.capture_fd = d->capture_fd,
	};
	int r = session_new(&options, ret_session);

	if (r == 0)
		session_set_closed_callback(*ret_session, on_closed, d);
	return r;
}

static int start_control(struct daemon *d)
{
	const char *path = d->config->control.socket;
	int r = control_new(d->loop, path, on_request, d, &d->control);

	if (r == -EADDRINUSE) {
		log_error("another iostall daemon runs: it holds %s.lock", path);
		return EXIT_CODE_CONTROL;
	}
	if (r < 0) {
		log_error("control.socket: %s cannot be made: %s", path, strerror(-r));
		return EXIT_CODE_SPOOL;
	}
	return EXIT_CODE_OK;
}

static int start_sinks(struct daemon *d)
{
	const struct sinks_options options = {
		.config = d->config,
		.wanted = SINK_BIT(spool) |
			(d->o->foreground ? SINK_BIT(terminal) : SINK_BIT(journald) | SINK_BIT(syslog)),
		.terminal_fd = STDOUT_FILENO,
		.terminal_json = d->o->json,
	};
	int r = sinks_new(&options, &d->sinks);

	if (r < 0) {
		log_error("record.spool_dir: %s cannot be used: %s", d->config->record.spool_dir,
			strerror(-r));
		return EXIT_CODE_SPOOL;
	}
	return EXIT_CODE_OK;
}

static int start_watch(struct daemon *d)
{
	struct watch_options options = { .procfs = d->o->procfs, .sysfs = d->o->sysfs };
	int r;

	watch_options_from_config(d->config, &options);
	r = watch_new(&options, &d->watch);
	if (r == 0)
		r = rules_new(d->config->rules, &d->rules);
	if (r == 0)
		r = enrich_new(d->o->procfs, d->watch, &d->enrich);
	if (r < 0)
		log_error("%s cannot be watched: %s", d->o->procfs, strerror(-r));
	return r < 0 ? EXIT_CODE_FAILURE : EXIT_CODE_OK;
}

/* Without it everything else is recorded. */
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
		log_warning("no database is asked: %s", strerror(-r));
}

static int start_session(struct daemon *d)
{
	int r = new_session(d, d->config, &d->session);

	if (r == -EINVAL)
		return EXIT_CODE_CONFIG;
	if (r < 0) {
		log_error("nothing can be armed on this host (%s); `iostall doctor` says what is missing",
			strerror(-r));
		return EXIT_CODE_ARM;
	}
	return EXIT_CODE_OK;
}

static int start_loop(struct daemon *d)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1, 0 };
	uint64_t watchdog_ns = notify_watchdog_ns();
	int r = loop_add_timer(d->loop, on_sample, d, &d->sample_timer);

	if (r == 0)
		r = loop_add_timer(d->loop, on_tick, d, &d->tick_timer);
	if (r == 0)
		r = loop_add_timer(d->loop, on_watchdog, d, &d->watchdog_timer);
	if (r == 0)
		r = loop_add_signals(d->loop, signals, on_signal, d);
	if (r < 0) {
		log_error("the event loop cannot be set up: %s", strerror(-r));
		return EXIT_CODE_FAILURE;
	}
	/* The first sample at once: it has no rates, and the second needs it. */
	loop_set_timer(d->sample_timer, 1, d->config->watch.interval_ns);
	loop_set_timer(d->tick_timer, NSEC_PER_SEC, NSEC_PER_SEC);
	loop_set_timer(d->watchdog_timer, watchdog_ns / 3, watchdog_ns / 3);
	return EXIT_CODE_OK;
}

/* Code and data that were evicted cannot be read back from a stalled disk: 1 s a call was measured. */
static void lock_memory(void)
{
	malloc_trim(0);
	if (mlockall(MCL_CURRENT | MCL_FUTURE) < 0)
		log_warning("memory cannot be locked (%s): on a stalled disk iostall may stall too; "
			    "raise LimitMEMLOCK or grant CAP_IPC_LOCK",
			strerror(errno));
}

static int start(struct daemon *d)
{
	int code = EXIT_CODE_OK;

	d->started_ns = clock_mono_ns();
	if (loop_new(&d->loop) < 0)
		return EXIT_CODE_FAILURE;
	/* Signals first: threads made later inherit the mask. */
	code = start_loop(d);
	pump_decouple(STDERR_FILENO, &d->log_pump);
	if (code == EXIT_CODE_OK && !d->o->foreground)
		code = start_control(d);
	if (code == EXIT_CODE_OK)
		code = start_watch(d);
	if (code == EXIT_CODE_OK)
		health_replace(&d->health, d->loop, NULL, d->config);
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

/* Of a pipe epoll always tells when its reader goes; files and terminals are none. */
static void watch_terminal(struct daemon *d)
{
	struct stat st;

	if (d->o->foreground && fstat(STDOUT_FILENO, &st) == 0 &&
		(S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)) &&
		loop_add_fd(d->loop, STDOUT_FILENO, 0, on_terminal_gone, d, &d->terminal) < 0)
		log_warning("the end of standard output will not be noticed");
}

/* Said at the start already: later there is a freeze to look at, and what is asked here may hang. */
static void check_record_dir(struct daemon *d)
{
	const char *dir = d->config->record.dir;

	d->records_stay = (mkdir(dir, 0750) < 0 && errno != EEXIST) || access(dir, W_OK | X_OK) < 0;
	if (d->records_stay)
		log_warning("record.dir: %s cannot be used: %s; records stay in %s", dir,
			strerror(errno), d->config->record.spool_dir);
}

static void print_summary(const struct daemon *d)
{
	char buf[256];
	struct text t = TEXT_ON(buf);

	text_reset(&t);
	text_add_count(&t, session_incidents_count(d->session), "incident, ", "incidents, ");
	text_add_count(&t, d->stalls, "stall, ", "stalls, ");
	text_add_count(&t, d->stuck, "operation stuck", "operations stuck");
	printf("%s; records in %s\n", buf,
		d->records_stay ? d->config->record.spool_dir : d->config->record.dir);
}

static void run(struct daemon *d)
{
	char buf[256];
	struct text probes = TEXT_ON(buf);
	int r;

	text_reset(&probes);
	session_describe_probes(d->session, &probes);
	log_notice("watching every %llu ms, probes ready: %s",
		(unsigned long long)(d->config->watch.interval_ns / NSEC_PER_MSEC), probes.buf);
	check_record_dir(d);
	watch_terminal(d);
	notify_manager("READY=1");
	/* Helpers are started before anything can be armed; afterwards it would be too late. */
	sql_tick(d->sql, false);
	if (d->o->now)
		trigger_manually(d, d->config->incident.max_time_ns);
	r = loop_run(d->loop);
	if (r < 0) {
		log_error("the event loop failed: %s", strerror(-r));
		d->exit_code = EXIT_CODE_FAILURE;
	}
	notify_manager("STOPPING=1");
	if (!sinks_flush(d->sinks, FLUSH_TIMEOUT_NS))
		log_warning("not everything could be written; it stays in %s for the next start",
			d->config->record.spool_dir);
	if (d->o->foreground && !d->o->json)
		print_summary(d);
	if (d->o->foreground && d->records_stay && d->exit_code == EXIT_CODE_OK)
		d->exit_code = EXIT_CODE_SPOOL;
}

int daemon_run(struct config *config, const struct daemon_options *options)
{
	struct daemon d = { .o = options, .config = config, .capture_fd = -1 };
	const struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };

	if (geteuid() != 0)
		log_warning("not run as root: much of what is needed will be refused");
	/* One heap for all threads: another would be locked, too. */
	mallopt(M_ARENA_MAX, 1);
	/* Fixed, or it grows with what libbpf frees, and the holes that leaves in the heap are locked, too. */
	mallopt(M_MMAP_THRESHOLD, 64 * 1024);
	/* BPF maps are charged to it before 5.11; where it is refused it is not needed. */
	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	/* `watch | head`: a reader that is gone costs lines, not the recording. */
	signal(SIGPIPE, SIG_IGN);
	probe_set_redirect_libbpf_log();
	d.exit_code = start(&d);
	if (d.exit_code == EXIT_CODE_OK) {
		lock_memory();
		run(&d);
	}
	health_free(d.health);
	control_free(d.control);
	session_free(d.session);
	sql_free(d.sql);
	/* Joins nothing: a thread of the sinks may hang in the kernel on a dead disk. */
	sinks_free(d.sinks);
	if (d.log_pump)
		pump_flush(d.log_pump, FLUSH_TIMEOUT_NS);
	fflush(NULL);
	_exit(d.exit_code);
}
