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
#include "session/cooldown.h"
#include "session/incident.h"
#include "session/session.h"
#include "session/switches.h"
#include "session/tally.h"
#include "session/tracer.h"
#include "snapshot/inflight.h"
#include "snapshot/held_locks.h"
#include "snapshot/stack_reader.h"
#include "snapshot/task_scan.h"
#include "sql/sql.h"
#include "util/clock.h"
#include "util/loop.h"
#include "verdict/verdict.h"
#include "watch/kmsg.h"
#include "watch/processes.h"

struct ring_buffer;

/* Stands for a probe in a stack_request: the stack is that of the holder of a lock. */
#define SESSION_STACK_OF_HOLDER CONFIG_PROBE_COUNT
/* It is for probe `offcpu`, and start_ns is since when the thread is off the CPU. */
#define SESSION_STACK_OF_OFFCPU (CONFIG_PROBE_COUNT + 1)
/* From one in-flight scan to the next. */
#define SESSION_SCAN_INTERVAL_NS NSEC_PER_SEC
/* From one part of the initial task scan to the next. */
#define SESSION_TASK_SCAN_PAUSE_NS (15 * NSEC_PER_MSEC)
/* As soon as other sources of the loop have had their turn. */
#define SESSION_NEXT_TURN_NS 1

/* Of the end of an incident. */
enum session_drain_step {
	SESSION_REPORT_HUNG,
	SESSION_WAIT_FOR_ANSWERS,
	SESSION_REPORT_ENDED,
	SESSION_READ_EVENTS,
	SESSION_CLEAR_MAP,
	SESSION_CLOSE_RECORD,
};

/* A trigger, from when it comes. */
struct session_request {
	char id[RECORD_ID_SIZE];
	struct record_trigger trigger;
	char continues[RECORD_ID_SIZE]; /* the incident that has the beginning of it; "": none */
	uint64_t trigger_ns;
	uint64_t hold_ns;
};

/* In ascending order. */
struct session_pids {
	uint32_t count;
	int32_t pids[WATCH_PROCESSES_MAX];
};

/* Those of the last sample, and of the one before. */
struct session_pid_sets {
	struct session_pids sets[2];
	unsigned int now; /* index of the first */
};

static inline const struct session_pids *session_pids_now(const struct session_pid_sets *sets)
{
	return &sets->sets[sets->now];
}

/*
 * Different locks that threads wait for at once, those of the kernel and those of programs. A place
 * at which nobody waits any more is given to another one.
 */
#define SESSION_KERNEL_LOCKS_MAX 12
#define SESSION_LOCKS_MAX (SESSION_KERNEL_LOCKS_MAX + HELD_LOCKS_MAX)

/* What a `lock` line would have said that was not due; the last one is written at the end. */
struct session_kept_lock {
	uint64_t looked_ns;
	uint64_t longest_ns;
	uint64_t held_ns;
	uint64_t connection_id;
	uint32_t waiters; /* 0: there is none */
	uint32_t readers;
	int32_t fd;
	bool tries;
	enum record_basis basis;
	int32_t pid; /* of the holder */
	int32_t tid;
	int32_t syscall;
	int32_t deadlocked_with;
	enum record_cause waits_for;
	char state;
	char comm[RECORD_COMM_SIZE];
};

/* A lock of the kernel, or of a program, that threads of the incident wait for. */
struct session_lock {
	enum record_kernel_lock kind;
	uint32_t id;		   /* of the record; 0: the place is free */
	int32_t pid;		   /* of the memory map, or of the thread that waits longest */
	struct model_file_id file; /* of the inode */
	uint64_t range_begin;	   /* of a lock of that file */
	uint64_t range_end;
	enum held_locks_file_kind file_kind;
	char comm[RECORD_COMM_SIZE];	 /* of the thread that waits longest */
	char path[MODEL_PATH_SIZE];	 /* the end of a long one */
	char function[RECORD_NAME_SIZE]; /* that takes it */
	struct session_kept_lock kept;
	/* Of the last scan. */
	uint32_t waiters;
	uint32_t tid; /* that waits longest */
	uint64_t start_ns;
	/* What the kernel said last. */
	uint64_t address;
	bool is_other; /* than that of the memory map or the inode */
	bool is_mutex; /* else it is a read-write semaphore */
	uint32_t readers;
	uint64_t task; /* of the holder, or of the thread that was the last to become a reader */
	uint64_t asked_ns;	/* when that thread was first seen as such; names its stack */
	uint64_t held_since_ns; /* at least */
	int32_t holder;		/* the id of that thread */
	uint64_t reported_ns;	/* age of the longest wait in the last line; 0: a line is due */
	char kstack[RECORD_STACK_SIZE]; /* of that thread */
	bool holds;			/* it has been seen to hold it */
	uint64_t look_ns;		/* of a program: the last look that has found it */
};

struct session_locks {
	uint32_t last_id;
	uint32_t others_asked; /* operations, since the last scan */
	bool interrupts_late;  /* a CPU was interrupted too late, in this incident */
	/* First those of the kernel. */
	struct session_lock list[SESSION_LOCKS_MAX];
};

struct session {
	struct session_options o;
	enum session_state state; /* never SESSION_COOLDOWN, which is SESSION_IDLE for a time */
	struct probe_set probes;
	struct tracer *tracer; /* NULL: without probes */
	struct switches *switches;
	struct ring_buffer *ring;
	struct loop_source *ring_source;
	struct loop_source *ring_timer;
	struct stack_reader *stacks;   /* NULL in a replay */
	struct held_locks *held_locks; /* NULL in a replay */
	struct loop_source *stacks_source;
	struct loop_source *scan_timer;
	struct loop_source *max_timer; /* also limits arming, and continues draining */
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
	bool switches_wanted; /* the programs at the context switch have not been attached yet */
	bool misses_known;    /* of this incident */
	uint64_t misses_at_open;
	uint64_t misses;
	uint64_t unread_at_open; /* see struct watch_left_out */
	uint64_t disarm_start_ns;
	enum session_drain_step drain_step; /* while draining */

	uint64_t incidents;
	unsigned int events_this_wake;
	uint64_t wake_until_ns;
	bool discards_events;
	struct session_pid_sets filtered;	    /* in the filter map */
	struct session_pid_sets watched;	    /* that probe `offcpu` looks at */
	bool has_new_watched;			    /* whose threads have no stacks yet */
	int32_t scan_pids[2 * WATCH_PROCESSES_MAX]; /* of both, in ascending order */
	uint64_t prepare_after_ns; /* programs that have to be loaded anew are not before that */
	uint64_t prepare_pause_ns; /* since the last try, which has failed; 0: it has not */
	uint64_t new_deadline_ns;  /* for threads of processes that were just found */
	bool filter_full_logged;
	struct cooldown cooldown;
	struct session_firings firings;
	struct tally tally;
	struct session_verdict last_verdict;
	uint64_t judge_ns; /* when the next verdict on what is known so far is due */
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
		bool last;     /* of the incident */
		bool gives_up; /* counts what it has not reached */
	} pass;
	uint64_t attached_ns; /* when attaching began */
	uint64_t switches_ns; /* when the programs at the context switch had been attached */
	enum record_reason close_reason;
	struct probe_counters counters_at_open;
	char host[RECORD_NAME_SIZE];
	char kernel[RECORD_NAME_SIZE];
	char boot_id[RECORD_NAME_SIZE];
	struct task_scan_progress tasks;
	struct incident incident;
	uint64_t well_ns; /* see well_mono_ns of struct record_open */
	struct model model;
	/* A verdict is made when a scan of what is in flight has ended, and each takes its room. */
	union {
		struct inflight_scan scan;
		struct graph graph;
	};
	struct alike alike;
	struct session_locks locks;
	uint64_t held_locks_look_ns; /* the last look whose answer was taken */
	struct kmsg kmsg;
	struct session_sql {
		uint64_t answered_ns; /* of the answer that was written last; 0: none */
		/* The line that says that it has not answered has been written. */
		bool unresponsive;
		uint64_t why; /* hash of what that line said */
		struct session_queue {
			struct record_queue most; /* that had waited most */
			uint64_t answered_ns;	  /* when the database said so */
			uint64_t seen_ns;	  /* the newest answer that was looked at */
			uint64_t written_ns;	  /* what the last line said that it had waited */
			uint64_t written_holder;
		} queue;
	} sql[CONFIG_SQL_TARGETS_MAX];
	struct record record; /* the line that is being made; 10 KB, so it is not on the stack */
};

/* state.c */
bool session_is_cooling_down(const struct session *s, uint64_t now_ns);
void session_trigger_of(const struct rules_firing *firing, struct record_trigger *ret_trigger);
/* Whether the rule is about a file system that becomes full. */
bool session_is_about_space(const struct record_trigger *trigger);
/* Whether one of the workers has something to do. */
bool session_is_busy(const struct session *s);
/* Whether nothing notes any more who falls asleep. */
bool session_is_detached(const struct session *s);
/* Whether the last in-flight scan is over and what it needed may be detached. */
bool session_is_scanned(const struct session *s);
/* Whether all is there that the end of an incident waits for. */
bool session_has_answers(const struct session *s);
/* Something of it is there: a database has answered, or a worker. */
void session_wake_drain(struct session *s);

/* lines.c */
struct record *session_begin_line(struct session *s, enum record_type type);
/* The line that was begun has the time of an answer, not that of its writing. */
void session_set_line_time(struct session *s, uint64_t answered_ns);
void session_write_line(struct session *s);
/* Writes the lines that stand for many operations. */
void session_write_alike(struct session *s);
void session_read_host(struct session *s);
void session_write_open(struct session *s, const struct record_trigger *trigger);
/* Another rule has fired: writes a line, or keeps it until the record has its first one. */
void session_note_trigger(struct session *s, const struct record_trigger *trigger);
void session_write_history(struct session *s);
void session_write_sample(struct session *s);
/* Where a full file system opened the incident: who writes there, as far as is known by now. */
void session_find_writer(struct session *s, struct record_writer *ret_writer);
/* Where threads wait for a file server, after a look at them: has it looked for. */
void session_find_file_server(struct session *s);
/* Returns the line written, valid until the next. */
const struct record_close *session_write_close(struct session *s);

/* events.c */
int session_handle_ring_event(void *userdata, void *data, size_t size);
/* Handles a bounded number of events; true when there may be more. */
bool session_consume_ring(struct session *s);
/* Handles events until there are none, or until the deadline: then there may be more, and false. */
bool session_consume_until(struct session *s, uint64_t deadline_ns);
/*
 * Drops all events, up to a limit: programs that are not detached yet go on sending. Returns how
 * many.
 */
uint64_t session_discard_events(struct session *s);

/* summary.c */
/* Has the probes write their own lines; `final`: the last ones, before `close`. */
void session_summarize(struct session *s, bool whole, bool final);

/* Has the stacks read of threads that left the CPU before the attach. */
void session_ask_offcpu_stacks(struct session *s);

/* verdict.c */
void session_begin_verdict(struct session *s);
/* Whether the next verdict on what is known so far is due. */
bool session_is_verdict_due(const struct session *s, uint64_t now_ns);
/* The final one comes after all other lines but `close`. */
void session_write_verdict(struct session *s, bool final);

/* kernel.c */
/*
 * Writes the new lines of the kernel log about storage; `final`: all of them, otherwise a bounded
 * number.
 */
void session_take_kernel_lines(struct session *s, bool final);

/* queue.c */
/* Writes a line if sessions have waited longer for a lock than before, by a new answer. */
void session_take_queue(struct session *s, unsigned int target, const struct sql_evidence *e);
/* Writes the last one. */
void session_end_queue(struct session *s, unsigned int target);

/* sql.c */
/*
 * Asks all databases. It is called before the probes are attached, so that they answer meanwhile.
 */
void session_ask_sql(struct session *s);
/* Writes what they have answered since; `final`: also their worst and their last answers. */
void session_take_sql_lines(struct session *s, bool final);

/* workers.c */
/*
 * Makes the workers, which call these when they have done something, and has the probes loaded.
 * 0 or a negative errno.
 */
int session_begin_loading(struct session *s, tracer_done_fn on_task, switches_done_fn on_switches);
/*
 * Gives both workers what they have to do next, if they do nothing now. The event loop itself
 * attaches and detaches nothing.
 */
void session_start_next_task(struct session *s);

/* drain.c */
/* Begins the end of the open incident, whose record is closed some turns of the loop later. */
void session_drain(struct session *s, enum record_reason reason);
/* Takes the next part of it, when the timer has expired. */
void session_continue_drain(struct session *s);

/* arm.c */
/*
 * Opens an incident for the first of these rules that is due and that the cooldown does not hold
 * back; when there is none they are counted. is_new: they fire now, and were not active before.
 */
void session_open_by_rule(struct session *s, const struct rules_firing *firings, size_t count,
	bool is_new);
/* Says once which rules were held back. */
void session_log_held_back(struct session *s);
/* Writes the first lines: the probes are attached, or have been waited for long enough. */
void session_begin_tracing(struct session *s);
/* Arms for a trigger that came when that was not possible, if there is one. */
void session_arm_kept(struct session *s);

/* filter.c */
/*
 * Makes the BPF map equal to the list of processes that trace.process matches, and counts those
 * that the list has no room for. `armed`: an incident is open.
 */
void session_update_filter(struct session *s, bool armed);
/* Has probe `offcpu` look at the watched processes. */
void session_update_watched(struct session *s);

/* inflight_scan.c */
/* Returns 0 when it is complete, or after how many nanoseconds it is to be called again. */
uint64_t session_scan_inflight(struct session *s);
/*
 * The last scan of an incident, in which each operation has a line due. It is continued until it
 * returns true. `give_up`: what has not been reached is counted instead.
 */
void session_begin_last_scan(struct session *s);
bool session_continue_last_scan(struct session *s, bool give_up);
/*
 * Called after the detach until it returns true: has the operations reported that have ended since
 * the last scan, of which no program is left to see the end.
 */
bool session_drain_inflight(struct session *s, bool give_up);
/*
 * Called after that until it returns true: empties the map. Threads that still hang are found again
 * by the next initial task scan. The other maps are emptied when their programs are detached.
 */
bool session_clear_inflight(struct session *s);
/*
 * The initial task scan: finds threads that fell asleep before the probes were attached. True: it
 * is complete. Otherwise it is continued in parts while the incident lasts.
 */
bool session_begin_task_scan(struct session *s);
/* Takes the next part; false: there is none, the scan was complete already. */
bool session_continue_task_scan(struct session *s);
/*
 * The same for a process that was found later, and that trace.process matches, or, is_watched, that
 * probe `offcpu` looks at.
 */
/*
 * Sets scan_pids to the processes in whose threads a program takes interest: those that
 * trace.process matches, for probe `wait`, and those that are watched, for `offcpu`. Each leaves
 * out what is not its own. Returns how many they are.
 */
uint32_t session_choose_scanned(struct session *s);
void session_scan_new_process(struct session *s, int32_t pid, bool is_watched);

/* stacks.c */
/* Has the stack of an operation read from /proc. It is known to the incident some time later. */
void session_ask_stack(struct session *s, unsigned int probe, uint32_t tid, uint64_t start_ns);
/* Takes the stacks that have been read. */
void session_take_stacks(struct session *s);
/* Called once a second while tracing: a reader that hangs is replaced. */
void session_check_stacks(struct session *s);

/* locks.c */
/*
 * Notes which lock of the kernel the operation of the `stuck` line waits for, if it does. Sets
 * waits_for where only the kernel's answer could tell.
 */
void session_note_lock_wait(struct session *s, struct record_operation *op,
	struct incident_stuck *stuck);
/* Asks the kernel who holds the locks that most threads wait for, and writes `lock` lines. */
void session_scan_locks(struct session *s);
/* Writes the `lock` line that has been begun, or keeps it if it is not due. */
void session_write_lock(struct session *s, struct session_lock *lock);
/* Writes what has not been said of it, and takes the free place for another one. */
void session_release_lock(struct session *s, struct session_lock *lock);
/* Writes the last line of each lock. */
void session_end_locks(struct session *s);
/* Whether a line about the lock is due again, now that the longest has waited so long. */
bool session_lock_is_due(const struct session_lock *lock, uint64_t waited_ns);
/* Writes `lock` lines about locks of programs, and looks at these again. */
void session_look_for_held_locks(struct session *s);

/* lock_holder.c */
enum session_lock_state {
	SESSION_LOCK_UNKNOWN, /* nobody holds it now, or the kernel does not tell */
	SESSION_LOCK_HELD,
	SESSION_LOCK_LEFT, /* the thread that is asked about waits for something else by now */
};

/* Whether a probe that knows about locks is attached. */
bool session_can_ask_kernel(const struct session *s);
/* For which lock the operation waits, by what was seen when it began to. False: that is unknown. */
bool session_ask_lock(const struct session *s, const struct record_operation *op,
	struct event_lock *ret_answer);
/* Who holds the lock for which lock->tid waits. */
enum session_lock_state session_ask_holder(const struct session *s, const struct session_lock *lock,
	struct event_lock *ret_answer);
/* Notes the answer, and asks for the stack of the holder. */
void session_note_holder(struct session *s, struct session_lock *lock,
	const struct event_lock *answer);
/* The stack of a holder that has been read from /proc. */
void session_note_holder_stack(struct session *s, const struct stack_answer *answer);

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
