/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One answer of a database in fixed memory: its active sessions, longest statement first.
 * Filled by a target; read by the session through sql.h.
 * Never allocates; a text that does not fit is left out, its session stays.
 */
#ifndef IOSTALL_SQL_SNAPSHOT_H
#define IOSTALL_SQL_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "record/enums.h"
#include "sql/protocol.h"

/* Room for 256 sessions whose names mostly repeat, and for 24 statements of 1 KB. It is locked. */
#define SQL_NAMES_BYTES (12 * 1024)
#define SQL_TEXTS_BYTES (24 * 1024)

/*
 * How wrong a start time may be when MySQL counts whole seconds: a statement of 0.2 s that began
 * just before a full second has run for 1 s.
 */
#define SQL_START_ERROR_NS 1000000000ULL
/* For this long before and after an answer, a pid is assumed to be that of the same process. */
#define SQL_PROCESS_NS 2000000000ULL

/*
 * A statement that has run for so long counts for the rules: one that is done at once is not stuck,
 * however many there are.
 */
#define SQL_LASTING_NS 1000000000ULL

/* Texts that are the same so far count as the same: some answers have cut ones. */
#define SQL_ALIKE_BYTES 1000

struct sql_row {
	uint64_t connection_id;
	uint64_t query_id;
	uint64_t elapsed_ns;
	uint64_t transaction_ns;
	uint64_t blocker_id;
	uint64_t waited_ns;   /* for a lock, at least */
	uint64_t moved_bytes; /* by its thread since the answer before */
	uint64_t key;	      /* the same for texts that count as the same; 0: there is no text */
	int32_t tid;
	int32_t leader_pid;
	uint32_t served; /* its reads that I/O workers have in hand */
	uint32_t text_bytes;
	enum record_lock lock; /* that it waits for; NONE: it waits for none */
	uint16_t candidates;   /* for its blocker; 0: the server says which it is */
	bool background;
	bool idle; /* in a transaction, without a running statement */
	bool worker;
	bool asleep;		     /* it sleeps on purpose: SLEEP(), pg_sleep() */
	bool blocker_has_no_session; /* it is a transaction without one, as a prepared one is */
	/* where in `texts` each text begins; 0: empty */
	uint16_t user;
	uint16_t database;
	uint16_t command;
	uint16_t state;
	uint16_t no_tid;
	uint16_t object; /* of the lock */
	uint16_t text;
};

struct sql_snapshot {
	uint64_t asked_ns; /* CLOCK_MONOTONIC; 0: there is no answer */
	uint64_t answered_ns;
	uint64_t server_ns;
	uint32_t idle;
	struct sql_connections connections;
	uint32_t left_out;
	uint32_t invalid;    /* numbers that could not be true */
	uint32_t active;     /* statements of clients */
	uint32_t lasting;    /* those of them that have run for SQL_LASTING_NS and do not sleep */
	uint64_t lasting_ns; /* how long those have run, added up */
	uint64_t longest_ns; /* the longest of those */
	uint32_t count;
	uint32_t names_used;
	uint32_t texts_used;
	struct sql_row rows[SQL_SESSIONS_MAX];
	char texts[SQL_NAMES_BYTES + SQL_TEXTS_BYTES];
};

/* A row with its texts; unknown ones are "". Valid as long as the snapshot. */
struct sql_session_view {
	uint64_t connection_id;
	uint64_t query_id;
	uint64_t elapsed_ns;
	uint64_t started_ns; /* of the statement, CLOCK_MONOTONIC */
	uint64_t transaction_ns;
	uint64_t blocker_id; /* 0: it waits for nobody, or for whom is unknown */
	/* For the lock, at least; 0: this is the first answer in which it waits. */
	uint64_t waited_ns;
	uint64_t moved_bytes; /* by its thread, since the answer before */
	uint64_t key;	      /* as in struct sql_row */
	uint32_t alike;	      /* statements of clients with that text in the answer; 0: no text */
	enum record_lock lock;
	uint32_t candidates;
	int32_t tid; /* 0: see no_tid */
	int32_t leader_pid;
	uint32_t text_bytes; /* of the whole statement */
	bool background;
	bool idle;   /* it has a transaction open, and no statement for elapsed_ns */
	bool asleep; /* as in struct sql_row */
	bool worker; /* its statement counts for its leader, whose pid may be unknown */
	const char *user;
	const char *database;
	const char *command;
	const char *state;
	const char *no_tid;
	const char *object;
	const char *text;
};

void sql_snapshot_begin(struct sql_snapshot *snapshot, uint64_t asked_ns);
/* Adds a checked frame. -ENOSPC beyond SQL_SESSIONS_MAX; the session is counted as left out. */
int sql_snapshot_add(struct sql_snapshot *snapshot, const struct sql_frame_session *frame);
/* Adds what one of the sessions waits for. -ENOENT: there is no such session. */
int sql_snapshot_add_lock(struct sql_snapshot *snapshot, const struct sql_frame_lock *frame);
/*
 * What the answer before tells of waits that last: how long they have lasted, at least, and who
 * holds the lock where this answer does not tell. A server may tell more of the time.
 */
void sql_snapshot_note_waits(struct sql_snapshot *snapshot, const struct sql_snapshot *last);

void sql_snapshot_end(struct sql_snapshot *snapshot, const struct sql_frame_end *frame,
	uint64_t answered_ns);

void sql_snapshot_view(const struct sql_snapshot *snapshot, uint32_t index,
	struct sql_session_view *ret_view);

/* Whether it is a statement of a client that does more than sleep on purpose. */
bool sql_row_is_client(const struct sql_row *row);
/* Whether a row counts for the rules: such a statement that has run for SQL_LASTING_NS. */
bool sql_row_is_lasting(const struct sql_row *row);

/* The statement of a thread, or of the backend that it works for; false: it runs none. */
bool sql_snapshot_find_thread(const struct sql_snapshot *snapshot, int32_t tid,
	struct sql_session_view *ret_view);

/* An operation that a thread was in, or a request that it had submitted. */
struct sql_operation {
	int32_t tid;
	bool is_request;
	uint64_t start_ns; /* CLOCK_MONOTONIC */
	uint64_t end_ns;   /* or a time at which it had not ended yet */
};

/*
 * The connection that the thread served during an operation; 0: not known for sure. The operation
 * must have been in progress from the question to the answer, because before and after that the
 * thread may have served another session. `is_process`: each session is a process of its own.
 */
uint64_t sql_snapshot_find_connection(const struct sql_snapshot *snapshot,
	const struct sql_operation *op, bool is_process);

#endif
