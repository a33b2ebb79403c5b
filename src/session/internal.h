/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The session itself, which the files of this room share.
 * Included by files of src/session/ only.
 * Never passed to other rooms: they use session.h.
 */
#ifndef IOSTALL_SESSION_INTERNAL_H
#define IOSTALL_SESSION_INTERNAL_H

#include "probes/set.h"
#include "session/alike.h"
#include "session/incident.h"
#include "session/session.h"
#include "session/tracer.h"
#include "snapshot/inflight.h"
#include "snapshot/stack_reader.h"
#include "snapshot/task_scan.h"
#include "sql/sql.h"
#include "util/clock.h"
#include "util/loop.h"
#include "verdict/facts.h"
#include "watch/kmsg.h"
#include "watch/processes.h"

struct ring_buffer;

/* From one in-flight scan to the next. */
#define SESSION_SCAN_INTERVAL_NS NSEC_PER_SEC

/* A trigger, from when it comes. */
struct session_request {
	char id[RECORD_ID_SIZE];
	struct record_trigger trigger;
	uint64_t trigger_ns;
	uint64_t hold_ns;
};

struct session {
	struct session_options o;
	enum session_state state; /* never SESSION_COOLDOWN, which is SESSION_IDLE for a time */
	struct probe_set probes;
	struct tracer *tracer; /* NULL: without probes */
	struct ring_buffer *ring;
	struct loop_source *ring_source;
	struct stack_reader *stacks; /* NULL in a replay */
	struct loop_source *stacks_source;
	struct loop_source *scan_timer;
	struct loop_source *max_timer; /* also limits arming and draining */
	struct processes *filter;      /* of trace.process; NULL: every process */
	int procfs_fd;
	session_loaded_fn loaded;
	session_closed_fn closed;
	void *userdata;		       /* of both */
	struct session_request kept;   /* arms when it can; its id is "" when there is none */
	struct session_request opened; /* of the open incident */
	char full_mount[RECORD_SUBJECT_SIZE]; /* the file system that is full in it; "": none is */
	uint64_t fired_hold; /* hold_samples of the rule that fired last; 0: it was active before */
	bool attach_wanted;  /* the rest of the probes has not been attached yet */
	bool misses_known;   /* of this incident */
	uint64_t misses_at_open;
	uint64_t misses;
	uint64_t disarm_start_ns;

	uint64_t incidents;
	unsigned int events_this_wake;
	uint64_t wake_until_ns;
	int32_t filtered[WATCH_PROCESSES_MAX]; /* pids in the filter map */
	uint32_t filtered_count;
	uint64_t cooldown_until_ns;
	struct session_firings firings;
	struct session_verdict last_verdict;
	uint64_t hold_until_ns;
	uint64_t clear_since_ns; /* 0: something is over its threshold or stuck */
	uint32_t stuck_now;	 /* operations that the last in-flight scan found blocked */
	/* The in-flight scan that is under way; it rests between its parts. */
	struct session_scan_pass {
		uint64_t start_ns; /* 0: none is under way */
		unsigned int source;
		bool collected; /* `scan` has the operations of the source */
		uint32_t next;	/* index of the one to look at */
		uint32_t stuck;
	} pass;
	uint64_t attached_ns;
	enum record_reason close_reason;
	struct probe_counters counters_at_open;
	char host[RECORD_NAME_SIZE];
	char kernel[RECORD_NAME_SIZE];
	char boot_id[RECORD_NAME_SIZE];
	struct task_scan_progress tasks;
	struct incident incident;
	struct verdict_facts facts;
	struct inflight_scan scan;
	struct alike alike;
	struct kmsg kmsg;
	struct session_sql {
		bool opened; /* the lines of its first answer have been written */
		/* The line that says that it has not answered has been written. */
		bool unresponsive;
		uint64_t opened_ns; /* time of that answer, if each of its sessions has a line */
		uint64_t worst_ns;  /* time of the answer with most active sessions; 0: none */
		uint64_t worst_candidates
			[RECORD_CANDIDATES_MAX]; /* threads that hung at that time */
	} sql[CONFIG_SQL_TARGETS_MAX];
	struct record record; /* the line that is being made; 10 KB, so it is not on the stack */
};

/* lines.c */
struct record *session_begin_line(struct session *s, enum record_type type);
void session_write_line(struct session *s);
/* The verdict learns of an operation that has no line of its own. */
void session_note_operation(struct session *s);
/* Writes the lines that stand for many operations. */
void session_write_alike(struct session *s);
void session_read_host(struct session *s);
void session_write_open(struct session *s, const struct record_trigger *trigger);
void session_write_history(struct session *s);
void session_write_sample(struct session *s);
/* Where a full file system opened the incident: who writes there, as far as is known by now. */
void session_find_writer(struct session *s, struct record_writer *ret_writer);
/* Returns the line written, valid until the next. */
const struct record_close *session_write_close(struct session *s);

/* events.c */
int session_handle_ring_event(void *userdata, void *data, size_t size);
/* Handles a bounded number of events; true when there may be more. */
bool session_consume_ring(struct session *s);
/* Handles all that were sent, up to a limit: programs that are not detached yet go on sending. */
void session_consume_all(struct session *s);

/* summary.c */
/* Has the probes write their own lines; `final`: the last ones, before `close`. */
void session_summarize(struct session *s, bool final);

/* verdict.c */
/* Notes for the verdict who waits for a lock of whom, by a new answer. */
void session_note_queue(struct session *s, const struct sql_evidence *e);
/* Notes for the verdict how long a database has been unresponsive. */
void session_note_unresponsive(struct session *s, unsigned int target,
	const struct sql_evidence *e);
/* Called once, after all other lines but `close`. */
void session_write_verdict(struct session *s);

/* kernel.c */
/*
 * Writes the new lines of the kernel log about storage; `final`: all of them, otherwise a bounded
 * number.
 */
void session_take_kernel_lines(struct session *s, bool final);

/* sql.c */
/*
 * Asks all databases. It is called before the probes are attached, so that they answer meanwhile.
 */
void session_ask_sql(struct session *s);
/* Writes what they have answered since; `final`: also their worst and their last answers. */
void session_take_sql_lines(struct session *s, bool final);

/* session.c */
/*
 * Gives the tracer what it has to do next, if it does nothing now. The event loop itself attaches
 * and detaches only what waits for nothing.
 */
void session_start_next_task(struct session *s);
/* Closes the record if all that it waits for is there. */
void session_continue_drain(struct session *s);

/* arm.c */
/* Writes the first lines: the probes are attached, or have been waited for long enough. */
void session_begin_tracing(struct session *s);
/* Arms for a trigger that came when that was not possible, if there is one. */
void session_arm_kept(struct session *s);

/* filter.c */
/*
 * Makes the BPF map equal to the list of processes that trace.process matches, which has at most a
 * quarter of the map's entries. `armed`: an incident is open.
 */
void session_update_filter(struct session *s, bool armed);

/* inflight_scan.c */
/*
 * Returns 0 when it is complete, or after how many nanoseconds it is to be called again to go on.
 * `final`: the last scan, in which each operation has a line due, and those that get none are
 * counted.
 */
uint64_t session_scan_inflight(struct session *s, bool final);
/*
 * Called after the detach: writes the lines of operations that have ended, counts the returns that
 * were missed, and empties the maps.
 */
void session_drain_inflight(struct session *s);
/*
 * The initial task scan: finds threads that fell asleep before the probes were attached. It is
 * continued while the incident lasts until it is complete; false: it was already.
 */
void session_begin_task_scan(struct session *s);
bool session_continue_task_scan(struct session *s);
/* The same for a process that trace.process matches and that was found later. */
void session_scan_new_process(struct session *s, int32_t pid);

/* stacks.c */
/* Has the stack of an operation read from /proc. It is known to the incident some time later. */
void session_ask_stack(struct session *s, unsigned int probe, uint32_t tid, uint64_t start_ns);
/* Takes the stacks that have been read. */
void session_take_stacks(struct session *s);
/* Called once a second while tracing: a reader that hangs is replaced. */
void session_check_stacks(struct session *s);

/* inflight_map.c */
/* A probe's own map of operations in flight; false: not attached, or it has none of its own. */
bool session_find_own_map(const struct session *s, unsigned int probe,
	struct inflight_map *ret_map);
/* Whether this very operation has not returned yet. */
bool session_is_in_flight(const struct session *s, unsigned int probe, uint32_t tid,
	uint64_t start_ns);
/* Sets how long and how often the thread has slept in the operation by now, if that is known. */
void session_add_sleeps(const struct session *s, struct record_operation *op);

#endif
