/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state machine of incidents (loading, idle, arming, tracing, draining): when probes are armed,
 * and what the record gets.
 * Used by the daemon (daemon.c). In the daemon only this room attaches and detaches probes.
 * Never waits: other threads do what may block (loading and attaching probes, writing to disk).
 */
#ifndef IOSTALL_SESSION_H
#define IOSTALL_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "record/record.h"
#include "util/text.h"

struct enrich;
struct kernel_types;
struct loop;
struct rules;
struct session;
struct sinks;
struct sql;
struct tally;
struct watch;

enum session_state {
	SESSION_LOADING, /* the probes are being loaded */
	SESSION_IDLE,
	SESSION_ARMING, /* an incident is open, and not all probes are attached yet */
	SESSION_TRACING,
	SESSION_DRAINING,
	SESSION_COOLDOWN, /* idle, but one cause opens no second incident */
};

/* `iostall status` has one answer for everything. */
#define SESSION_MESSAGE_SIZE 512

/* Which rules fired since the daemon started. */
struct session_firings {
	struct record_trigger last; /* `rule` is "" before the first */
	uint64_t last_ns;
	uint64_t in_cooldown[CONFIG_RULE_COUNT]; /* times each fired and was held back */
};

/* Of the incident that is open, on what is known so far, or of the one that was closed last. */
struct session_verdict {
	char incident[RECORD_ID_SIZE]; /* "" before the first */
	bool final;
	enum record_class class;
	char message[SESSION_MESSAGE_SIZE]; /* without the text of a statement; it may be cut */
};

/* The session borrows all of these; they must outlive it. */
struct session_options {
	const struct config *config;
	const char *procfs;
	const char *sysfs;
	struct loop *loop;
	struct watch *watch;
	struct rules *rules;
	struct enrich *enrich;
	struct sinks *sinks;
	struct sql *sql; /* NULL: no database is configured */
	/* Differs between the two sessions that exist at once during a reload. */
	uint32_t generation;
	struct kernel_types **kernel_types; /* made by the first session, used by all */
	/* The loaded session that this one will replace, for session_new() only. May be NULL. */
	const struct session *replaced;
	bool without_probes; /* for replay: events are passed to session_feed_event() */
	int capture_fd;	     /* each event's bytes are also written here; -1: nowhere */
};

/* Called when an incident has been closed. The session may be freed after it has returned. */
typedef void (
	*session_closed_fn)(void *userdata, const char *incident, const struct record_close *close);

/*
 * Called when the probes have been loaded. -EINVAL: a filter is malformed (logged); other errors
 * mean that no probe works on this host (each is logged with its reason). A session with an error
 * can only be freed.
 */
typedef void (*session_loaded_fn)(void *userdata, struct session *session, int error);

/* Begins to load the probes and returns at once. */
int session_new(const struct session_options *options, struct session **ret_session);
/*
 * An open incident must have been stopped. Waits only where the session is settled, for its probes
 * to be unloaded. NULL is accepted; returns NULL.
 */
struct session *session_free(struct session *session);
/* The same for a settled session, later, when its worker has unloaded the probes. */
void session_retire(struct session *session);
/* Whether no incident is open and nothing is being loaded, attached or detached. */
bool session_is_settled(const struct session *session);
/* Whether the host has come to have more threads than a settled session has room for. */
bool session_is_outgrown(const struct session *session);
/* Whether the settings of both are the same for what has been loaded. */
bool session_can_keep_probes(const struct config *a, const struct config *b);
/* Takes other settings into use, for which it can keep its probes. No incident may be open. */
void session_set_config(struct session *session, const struct config *config);
/* At a reload the counts, the last id and verdict, and the cooldown go on in the new session. */
void session_inherit(struct session *session, struct session *previous);
void session_set_callbacks(struct session *session, session_loaded_fn loaded,
	session_closed_fn closed, void *userdata);

/*
 * Arms by hand, or keeps an open incident open, for at least hold_ns. While the probes are being
 * loaded, or the last incident is being closed, it arms as soon as that is done. There is no
 * cooldown for it. Returns the id of the incident that is open or will be.
 */
const char *session_trigger(struct session *session, const struct record_trigger *trigger,
	uint64_t hold_ns);

/* Before each watchdog sample: what the session knows for it. */
void session_prepare_sample(struct session *session);

/*
 * Before the end of each watchdog sample, which forgets processes that have ended: reads a bounded
 * part of what is new in the kernel log while no incident is open. In one it is read all the time.
 */
void session_read_kernel_log(struct session *session);

/* After each watchdog sample: rules, the record's sample lines, the end of the incident. */
void session_handle_sample(struct session *session);

/* Ends an open incident; it is closed when the callback has been called. */
void session_stop(struct session *session, enum record_reason reason);

enum session_state session_get_state(const struct session *session);
/* An incident is open or being closed. */
bool session_is_open(const struct session *session);
/* Probes are still being detached after an incident. */
bool session_is_detaching(const struct session *session);
/* Memory of the loaded BPF maps and programs, in the kernel. */
uint64_t session_kernel_bytes(const struct session *session);
const char *session_state_name(enum session_state state);
/* How long rules may still be held back; 0: they are not. */
uint64_t session_cooldown_ns(const struct session *session, uint64_t now_ns);
const struct session_firings *session_get_firings(const struct session *session);
const struct tally *session_get_tally(const struct session *session);
/* Operations that the last look at the blocked threads found to be stuck; 0 while idle. */
uint32_t session_stuck_now(const struct session *session);
/* BPF programs that are attached now. */
unsigned int session_attached_programs(const struct session *session);
/* The backend that a probe uses in an incident; NONE: it cannot be used. */
enum record_backend session_probe_backend(const struct session *session,
	enum config_probe_name probe);
const struct session_verdict *session_last_verdict(const struct session *session);
/* The open or last incident; "" before the first. */
const char *session_incident(const struct session *session);
uint64_t session_incidents_count(const struct session *session);
/* Backend of each probe for `status`: "vfs=fentry ...". */
void session_describe_probes(const struct session *session, struct text *out);

/* Handles one event as the ring buffer delivers it. */
void session_feed_event(struct session *session, const void *data, size_t size);

#endif
