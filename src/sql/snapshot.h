/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One answer of a database in fixed memory: its active sessions, longest statement first.
 * Filled by a target; read by the session through sql.h.
 * Never allocates; texts that do not fit are left out, the sessions stay.
 */
#ifndef IOSTALL_SQL_SNAPSHOT_H
#define IOSTALL_SQL_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "sql/protocol.h"

/* 256 sessions with names that mostly repeat, and 24 statements of 1 KB; all of it is locked. */
#define SQL_NAMES_BYTES (12 * 1024)
#define SQL_TEXTS_BYTES (24 * 1024)

/* Of what a MySQL says in seconds: a statement of 0.2 s that began before a full second has run for 1 s. */
#define SQL_START_ERROR_NS 1000000000ULL
/* Before and after an answer: so soon no number of a process comes again. */
#define SQL_PROCESS_NS 2000000000ULL

struct sql_row {
	uint64_t connection_id;
	uint64_t query_id;
	uint64_t elapsed_ns;
	int32_t tid;
	int32_t leader_pid;
	uint32_t text_bytes;
	bool background;
	bool idle; /* in a transaction: told, but no statement that runs */
	/* where the texts begin; 0: empty */
	uint16_t user;
	uint16_t database;
	uint16_t command;
	uint16_t state;
	uint16_t no_tid;
	uint16_t text;
};

struct sql_snapshot {
	uint64_t asked_ns;    /* CLOCK_MONOTONIC; 0: there is none */
	uint64_t answered_ns;
	uint64_t server_ns;
	uint32_t idle;
	uint32_t left_out;
	uint32_t active;     /* statements of clients */
	uint64_t longest_ns; /* of those */
	uint32_t count;
	uint32_t names_used;
	uint32_t texts_used;
	struct sql_row rows[SQL_SESSIONS_MAX];
	char texts[SQL_NAMES_BYTES + SQL_TEXTS_BYTES];
};

/* A row with its texts; all are "" where nothing is known. Valid as long as the snapshot. */
struct sql_session_view {
	uint64_t connection_id;
	uint64_t query_id;
	uint64_t elapsed_ns;
	uint64_t started_ns; /* of the statement, CLOCK_MONOTONIC */
	int32_t tid; /* 0: see no_tid */
	int32_t leader_pid;
	uint32_t text_bytes; /* of the whole statement */
	bool background;
	const char *user;
	const char *database;
	const char *command;
	const char *state;
	const char *no_tid;
	const char *text;
};

void sql_snapshot_begin(struct sql_snapshot *snapshot, uint64_t asked_ns);
/* The frame has been checked. -ENOSPC beyond SQL_SESSIONS_MAX: it is counted as left out. */
int sql_snapshot_add(struct sql_snapshot *snapshot, const struct sql_frame_session *frame);
void sql_snapshot_end(struct sql_snapshot *snapshot, const struct sql_frame_end *frame,
	uint64_t answered_ns);

void sql_snapshot_view(const struct sql_snapshot *snapshot, uint32_t index,
	struct sql_session_view *ret_view);

/* The statement of that thread, or of the backend that it works for; false: it runs none. */
bool sql_snapshot_find_thread(const struct sql_snapshot *snapshot, int32_t tid,
	struct sql_session_view *ret_view);

/* What a thread was seen in, or a request that it had submitted. */
struct sql_operation {
	int32_t tid;
	bool is_request;
	uint64_t start_ns; /* CLOCK_MONOTONIC */
	uint64_t end_ns;   /* or when it had not ended yet */
};

/*
 * The connection that the thread served; 0: not known for sure. The operation must have been under way
 * from the question to the answer: before and after it, the thread may have served another session.
 * `is_process`: each session is a process, which serves no other.
 */
uint64_t sql_snapshot_find_connection(const struct sql_snapshot *snapshot, const struct sql_operation *op,
	bool is_process);

/* The backend that a parallel worker serves; of any other thread the thread itself. */
int32_t sql_snapshot_leader(const struct sql_snapshot *snapshot, int32_t tid);

/*
 * Statements of clients but for that of a thread or of its leader (0: all). *longest_ns becomes that of the
 * longest of them if it is longer.
 */
uint32_t sql_snapshot_count_others(
	const struct sql_snapshot *snapshot, int32_t tid, uint64_t *longest_ns);

/*
 * The statement that a thread ran at the worst moment, as the newest answer (NULL: there is none) has it if
 * that statement still runs. What began later, like the first statement of a calm, led to nothing.
 */
bool sql_snapshots_find_thread(const struct sql_snapshot *worst, const struct sql_snapshot *newest,
	int32_t tid, struct sql_session_view *ret_view);

/* Whether more was going on: more active sessions, or as many and a longer statement. */
bool sql_snapshot_is_worse(const struct sql_snapshot *snapshot, const struct sql_snapshot *than);

#endif
