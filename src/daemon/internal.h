/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The daemon itself, which the files of this room share.
 * Included by daemon.c, events.c, reload.c and requests.c.
 * Never passed to other rooms: they use daemon.h.
 */
#ifndef IOSTALL_DAEMON_INTERNAL_H
#define IOSTALL_DAEMON_INTERNAL_H

#include <sys/types.h>

#include "daemon/daemon.h"
#include "daemon/metrics.h"
#include "health/health.h"
#include "session/session.h"

/* How long a manual trigger keeps an incident open by default. */
#define DAEMON_HOLD_NS (10 * NSEC_PER_SEC)

struct config_reader;

struct daemon {
	const struct daemon_options *o;
	struct config *config;
	bool reload_wanted; /* SIGHUP came; the configuration is read when no incident is open */
	struct config_reader *config_reader;
	/*
	 * Of a reload, or for a host that has outgrown the session, while its probes are being
	 * loaded and until no incident is open.
	 */
	struct session *next;
	struct config *next_config; /* NULL: the configuration stays */
	struct health_accounts next_accounts;
	bool next_is_loaded;
	/* A session with more room could not be loaded: another one is tried later. */
	uint64_t grow_after_ns;
	uint64_t grow_pause_ns; /* since the last try; 0: it has not failed */
	uint32_t generation;	/* of the session */
	struct loop *loop;
	struct sinks *sinks;
	struct watch *watch;
	struct rules *rules;
	struct sql *sql;
	uint64_t sql_judged_ns; /* at the last sample */
	struct health *health;	/* NULL: no check is configured */
	struct enrich *enrich;
	struct session *session;
	session_loaded_fn loaded; /* of each session */
	session_closed_fn closed;
	struct kernel_types *kernel_types;
	struct control *control;
	struct scrape *scrape;	     /* NULL: the service manager passed no socket */
	struct log_relay *log_relay; /* only where standard error is a file */
	struct loop_source *sample_timer;
	struct loop_source *sample_limit; /* the sample that was begun ends then at the latest */
	struct loop_source *pressure;
	int pressure_fd; /* negative: the kernel reports no I/O pressure */
	struct loop_source *tick_timer;
	struct loop_source *stop_timer; /* while it stops, more often */
	struct loop_source *watchdog_timer;
	struct loop_source *terminal;
	int capture_fd;
	uint64_t started_ns, started_real_ns;
	uint64_t stalls; /* over all incidents, for the summary of `watch` */
	uint64_t stuck;
	bool stopping;		/* no sample is taken and no incident opens any more */
	uint64_t stop_limit_ns; /* the loop ends then even if probes are still attached */
	int exit_code;
};

/* events.c */
/* The id of the incident that a manual trigger opens or keeps open. NULL: the daemon stops. */
const char *daemon_trigger(struct daemon *d, uint64_t hold_ns);
/* Called by the loop. */
void daemon_handle_signal(void *userdata, uint64_t signal);
void daemon_on_sample(void *userdata, uint64_t expirations);
void daemon_on_sample_limit(void *userdata, uint64_t expirations);
void daemon_on_scanned(void *userdata, uint64_t events);
void daemon_on_pressure(void *userdata, uint64_t events);
void daemon_on_stop_tick(void *userdata, uint64_t expirations);
void daemon_on_tick(void *userdata, uint64_t expirations);
void daemon_on_terminal_gone(void *userdata, uint64_t events);
void daemon_on_watchdog(void *userdata, uint64_t expirations);
/* Called by the sessions. */
void daemon_on_loaded(void *userdata, struct session *session, int error);
void daemon_on_closed(void *userdata, const char *incident, const struct record_close *close);

/* reload.c */
int daemon_new_session(struct daemon *d, const struct config *config, struct session **ret_session);
/* Before the loop runs. 0 or a negative errno. */
int daemon_prepare_reload(struct daemon *d);
/*
 * Does what can be done now for a reload that is wanted or under way. Nothing while an incident is
 * open.
 */
void daemon_reload(struct daemon *d);
/* Until the configuration that is wanted is in use, or is known not to be usable. */
bool daemon_is_reloading(const struct daemon *d);
/* Makes a session with more room where the host has come to have more threads. */
void daemon_grow(struct daemon *d);
/* The probes of the next session have been loaded, or cannot be. */
void daemon_next_loaded(struct daemon *d, int error);
/* Once its probes are loaded, the new session takes over when no incident is open. */
void daemon_take_next(struct daemon *d);

/* requests.c */
/* Of the control socket. */
void daemon_answer(void *userdata, const char *request, uid_t uid, struct text *answer);
/* Of the socket of Prometheus. */
void daemon_answer_scrape(void *userdata, enum metrics_format format, struct text *answer);

#endif
