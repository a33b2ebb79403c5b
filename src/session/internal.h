/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of this room share: the session itself.
 * Included by src/session/ only.
 * Never handed out: others see session.h.
 */
#ifndef IOSTALL_SESSION_INTERNAL_H
#define IOSTALL_SESSION_INTERNAL_H

#include "detach.h"
#include "incident.h"
#include "loop.h"
#include "probes/set.h"
#include "session/session.h"
#include "snapshot/inflight.h"
#include "sql/sql.h"
#include "verdict/facts.h"
#include "watch/kmsg.h"
#include "watch/processes.h"

struct ring_buffer;

struct session {
	struct session_options o;
	enum session_state state;
	struct probe_set probes;
	struct detacher *detacher;
	struct ring_buffer *ring;
	struct loop_source *ring_source;
	struct loop_source *detach_source;
	struct loop_source *walk_timer;
	struct loop_source *max_timer;
	struct loop_source *cooldown_timer;
	struct processes *filter; /* of trace.process; NULL: every process */
	int procfs_fd;
	session_closed_fn closed;
	void *closed_userdata;

	uint64_t incidents;
	unsigned int events_this_wake;
	int32_t filtered[WATCH_PROCESSES_MAX]; /* pids in the filter map */
	uint32_t filtered_count;
	uint64_t cooldown_until_ns;
	uint64_t hold_until_ns;
	uint64_t calm_since_ns; /* 0: something is over its threshold or stuck */
	uint32_t stuck_now;	/* operations the last walk found blocked */
	/* Start of the operation at which the last walk ran out of time; 0: it did not. */
	uint64_t walk_resume_ns[CONFIG_PROBE_COUNT + 1];
	uint64_t attached_ns;
	const char *close_reason;
	struct probe_counters counters_at_open;
	char host[RECORD_NAME_SIZE];
	char kernel[RECORD_NAME_SIZE];
	char boot_id[RECORD_NAME_SIZE];
	struct incident incident;
	struct verdict_facts facts;
	struct inflight_walk walk;
	struct kmsg kmsg;
	struct session_sql {
		bool opened; /* the lines of its first answer are written */
		bool silent; /* the line that there is none yet is */
		uint64_t opened_ns; /* when that answer came, if each of its sessions has a line */
		uint64_t worst_ns; /* when the worst was answered; 0: never */
		uint64_t worst_candidates[RECORD_CANDIDATES_MAX]; /* who hung then, as far as is known */
	} sql[CONFIG_SQL_TARGETS_MAX];
	struct record record; /* the line being made: 10 KB, so not on the stack */
};

/* lines.c */
struct record *session_begin_line(struct session *s, enum record_type type);
void session_write_line(struct session *s);
void session_read_host(struct session *s);
void session_write_open(struct session *s, const struct record_trigger *trigger);
void session_write_history(struct session *s);
void session_write_sample(struct session *s);
/* Returns the line written, valid until the next. */
const struct record_close *session_write_close(struct session *s, uint64_t detach_ns);

/* events.c */
int session_handle_ring_event(void *userdata, void *data, size_t size);
/* A bounded part of what is there; true when there may be more. */
bool session_consume_ring(struct session *s);

/* summary.c */
/* Lines that probes write of their own; `final`: the last ones before `close`. */
void session_summarize(struct session *s, bool final);

/* verdict.c */
/* What the line being made says, before it is written. */
void session_note_facts(struct session *s);
/* How the silence of a database stands. */
void session_note_silence(struct session *s, unsigned int target, const struct sql_evidence *e);
/* Once, after all lines but `close`. */
void session_write_verdict(struct session *s);

/* kernel.c */
/* What the kernel's log says of storage since it was asked last; `final`: all of it, else a bounded part. */
void session_take_kernel_lines(struct session *s, bool final);

/* sql.c */
/* Asks all databases; before the probes are attached, so that they answer meanwhile. */
void session_ask_sql(struct session *s);
/* What they have answered since; `final`: also what was the worst, and what is last. */
void session_take_sql_lines(struct session *s, bool final);

/* walk.c */
/*
 * False when it ran out of time and is to be called again soon. `final`: the last one, so every operation
 * gets its line and what gets none is counted.
 */
bool session_walk_inflight(struct session *s, bool final);
/* After the detach: what is over gets its line, returns that nobody saw are counted, the maps emptied. */
void session_settle_inflight(struct session *s);
/* What slept before the probes were attached, right after they are. */
void session_seed_blocked(struct session *s);
/* Whether the very operation has not returned. */
bool session_is_in_flight(const struct session *s, unsigned int probe, uint32_t tid,
	uint64_t start_ns);

#endif
