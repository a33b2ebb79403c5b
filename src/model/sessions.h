/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the databases of an incident said: how many statements ran, who waited for a lock of whom,
 * how long there was no answer, which statement moved most.
 * Part of struct model; filled by model_add(), read by the verdict.
 * Never has a statement that a line does not have.
 */
#ifndef IOSTALL_MODEL_SESSIONS_H
#define IOSTALL_MODEL_SESSIONS_H

#include "config/config.h"
#include "model/who.h"
#include "record/record.h"

#define MODEL_MOVED_MAX 24
#define MODEL_RUNNERS_MAX 256
#define MODEL_LONGEST_MAX 8

/* The longest question without an answer. */
struct model_silence {
	uint64_t longest_ns; /* 0: there was none */
	uint64_t until_ns;   /* when that was */
	uint64_t now_ns;
	char cpu_limit
		[RECORD_SUBJECT_SIZE]; /* of the group that the server is in; "": none is known */
	bool is_stopped;	       /* the server's process was stopped at some time during it */
	bool was_stopped_now;
};

struct model_moved {
	uint64_t connection_id;
	uint64_t start_ns;
	uint64_t bytes;
};

/* The longest that a statement ran, of all sessions that ran it. */
struct model_longest {
	uint64_t key; /* of its text, or the session where there is none */
	uint64_t ns;
};

/* A thread that ran a statement, by the text of that. */
struct model_runner {
	uint8_t database; /* index */
	int32_t tid;
	int32_t leader_pid;
	uint64_t key;
};

struct model_database {
	char target[RECORD_NAME_SIZE]; /* "main" */
	struct model_who server;       /* pid 0: not known */
	enum record_server kind;
	struct model_silence silence;
	char missing[RECORD_LIST_SIZE]; /* what would let it tell more; "" */
	/* What it was when it refused a login, as PostgreSQL says it: "starting up"; NULL: it did not. */
	const char *refused;
	char no_thread
		[RECORD_NAME_SIZE]; /* why the thread of a client's session is not known; "" */
	/* Statements of clients that had run for a second, by the answer in which that was most. */
	uint32_t lasting;
	uint64_t lasting_ns; /* their time since MODEL_LEAD_NS before the trigger; 0: none */
	uint64_t lasting_at_ns;
	struct model_longest longest[MODEL_LONGEST_MAX]; /* of clients in any answer; unordered */
	/* The queue that has waited most; waiters 0: there was none. */
	struct record_queue queue;
	uint64_t queue_ns; /* the part of its time since MODEL_LEAD_NS before the trigger */
	uint64_t queue_at_ns;
	/* All its connections used, as last told, and for how long since MODEL_LEAD_NS before. */
	struct record_connections connections;
	uint64_t connections_ns;
	uint64_t connections_at_ns;
	uint32_t moved_count;
	struct model_moved moved[MODEL_MOVED_MAX];
	/* The statement that moved most; text "" and connection_id 0: there is none. */
	struct record_io_statement busiest;
	uint64_t busiest_bytes;
	int32_t busiest_tid;
};

struct model_sessions {
	uint32_t count;
	struct model_database list[CONFIG_SQL_TARGETS_MAX];
	uint32_t runners_count;
	struct model_runner runners[MODEL_RUNNERS_MAX];
};

struct model;

void model_sessions_add_sql(struct model *model, const struct record *line);
void model_sessions_add_queue(struct model *model, const struct record *line);
void model_sessions_add_silence(struct model *model, const struct record_silence *silence);
/* interval_ns: of the sample. */
void model_sessions_add_connections(struct model *model,
	const struct record_connections *connections, uint64_t interval_ns);
void model_sessions_add_trigger(struct model *model, const struct record_trigger *trigger);

/* The database in which the thread ran a statement; NULL: none. */
const struct model_database *model_sessions_find_runner(const struct model_sessions *sessions,
	int32_t tid);
/*
 * Whether more statements of its clients lasted than there are lines that have the thread: there is
 * room for few, and some servers do not tell it.
 */
bool model_sessions_lack_threads(const struct model_sessions *sessions,
	const struct model_database *database);
/* Whether the thread, or the one that it works for, ran a statement with that text. */
bool model_sessions_ran(const struct model_sessions *sessions, int32_t tid, const char *text);
/*
 * The longest that a statement of a client ran, other than the one with that text; NULL: any. 0:
 * none is known.
 */
uint64_t model_database_longest_ns(const struct model_database *database, const char *but);
/* The database whose server that process is; NULL: none. */
const struct model_database *model_sessions_find_server(const struct model_sessions *sessions,
	int32_t pid);
/* Whether no other database of the record is of its kind, as several clusters on one host are. */
bool model_sessions_is_only(const struct model_sessions *sessions,
	const struct model_database *database);
/*
 * Whether a process of that name is one of the database: each session of PostgreSQL is a process.
 * False where others of its kind are in the record.
 */
bool model_sessions_is_name_of(const struct model_sessions *sessions,
	const struct model_database *database, const char *comm);
/* Whether that statement moved at least as much as all others of its server together. */
bool model_database_has_busiest(const struct model_database *database);

#endif
