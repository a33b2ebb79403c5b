/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state machine idle, tracing, draining, cooldown: what is armed when, and what the record gets.
 * Owned by the daemon; the only place that loads, attaches and detaches.
 * Never waits: what may block (detaching, writing to disk) is done by threads of other rooms.
 */
#ifndef IOSTALL_SESSION_H
#define IOSTALL_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config.h"
#include "record/record.h"
#include "util/text.h"

struct enrich;
struct loop;
struct rules;
struct session;
struct sinks;
struct sql;
struct watch;

enum session_state {
	SESSION_IDLE,
	SESSION_TRACING,
	SESSION_DRAINING,
	SESSION_COOLDOWN,
};

/* All borrowed, all outlive the session. */
struct session_options {
	const struct config *config;
	const char *procfs;
	const char *sysfs;
	struct loop *loop;
	struct watch *watch;
	struct rules *rules;
	struct enrich *enrich;
	struct sinks *sinks;
	struct sql *sql; /* NULL: no database is asked */
	uint32_t generation; /* differs between two sessions that exist at once, at a reload */
	bool without_probes; /* replay: events come by session_feed_event() */
	int capture_fd;	     /* each event's bytes are written here too; -1: nowhere */
};

/* Called when an incident has been closed and the session may be stopped or reloaded. */
typedef void (*session_closed_fn)(void *userdata, const char *incident, const struct record_close *close);

/*
 * Loads the probes. -EINVAL: a filter names what does not exist (logged); other errors when no probe
 * works on this host (each logged with its reason).
 */
int session_new(const struct session_options *options, struct session **ret_session);
/* An open incident must have been stopped. NULL is accepted; returns NULL. */
struct session *session_free(struct session *session);
/* At a reload: the count, the last id and a cooldown that is not over go on in the new session. */
void session_inherit(struct session *session, const struct session *previous);
void session_set_closed_callback(struct session *session, session_closed_fn callback, void *userdata);

/*
 * Arms at once, or keeps an open incident open, for at least hold_ns (0: as long as a rule is
 * active). A rule's trigger is passed over in cooldown, a manual one is not. Returns whether an incident is
 * open afterwards.
 */
bool session_trigger(struct session *session, const struct record_trigger *trigger, uint64_t hold_ns);

/* After each watchdog sample: rules, the record's sample lines, the end of the incident. */
void session_handle_sample(struct session *session);

/* Ends an open incident; it is closed when the callback has been called. */
void session_stop(struct session *session, const char *reason);

enum session_state session_get_state(const struct session *session);
const char *session_state_name(enum session_state state);
/* The open or last incident; "" before the first. */
const char *session_incident(const struct session *session);
uint64_t session_incidents_count(const struct session *session);
/* Backend of each probe for `status`: "vfs=fentry ...". */
void session_describe_probes(const struct session *session, struct text *out);

/* One event as the ring buffer delivers it. */
void session_feed_event(struct session *session, const void *data, size_t size);

#endif
