/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The database targets: finds servers, asks them, and keeps what they answered.
 * Owned by the daemon (or a command); read by the session, `status` and `doctor`.
 * Never waits for a database; allocates and starts processes only while no incident is open.
 */
#ifndef IOSTALL_SQL_SQL_H
#define IOSTALL_SQL_SQL_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "record/enums.h"
#include "sql/snapshot.h"
#include "sql/statements.h"
#include "sql/target.h"
#include "util/text.h"
#include "watch/watch.h"

struct loop;
struct sql;
struct watch;

/*
 * A program by its name: of which type of server it is, and at which socket below /run it is looked
 * for when no section names it. False: no server that is looked for.
 */
bool sql_find_default_server(const char *comm, enum record_server *ret_server,
	const char **ret_socket);

/* The configuration is copied. All others are borrowed and have to outlive it. */
struct sql_options {
	const struct config *config; /* its sections [sql] and [sql.NAME] */
	const char *procfs;
	struct loop *loop;
	const struct watch *watch; /* servers are searched among its processes; NULL: none is */
	const char *helper;	   /* for tests: the helper program; NULL: this program */
	const char *run_dir;	   /* for tests: where sockets are; NULL: /run */
	struct sql_timing timing;  /* for tests */
};

/* 0, -ENOMEM, or the error of opening procfs. The first tick starts the helpers. */
int sql_new(const struct sql_options *options, struct sql **ret_sql);
/* Ends all helpers. NULL is accepted; returns NULL. */
struct sql *sql_free(struct sql *sql);

/*
 * Call it at a reload, while no incident is open. Targets whose settings have not changed keep
 * their helper, except those with a password_file, whose content may have changed. 0, or -ENOMEM
 * when a target may be missing.
 */
int sql_reload(struct sql *sql, const struct config *config);

/*
 * Call it once a second; NULL is accepted. `armed`: an incident is open, so no process is started
 * and no memory allocated.
 */
void sql_tick(struct sql *sql, bool armed);
/* A thread looks for servers that run here; the next tick knows what it has found. */
bool sql_is_looking(const struct sql *sql);

/* `answered` is called after each answer of a target; NULL: nothing is called. */
void sql_set_callback(struct sql *sql, void (*answered)(void *userdata), void *userdata);
/* Unless it is that of somebody else by now. sql may be NULL. */
void sql_unset_callback(struct sql *sql, const void *userdata);

/* Forgets the statements of the last incident, and asks all targets. */
void sql_begin_incident(struct sql *sql);
/* Asks all targets that have answered the last question. */
void sql_ask_all(struct sql *sql);

/*
 * Asks again at once while no incident is open, because the last answers are suspicious:
 * sql.interval is too long to know whether it stays so. NULL is accepted.
 */
void sql_look_again(struct sql *sql);

/* Whether no question is open. True when sql is NULL. */
bool sql_is_answered(const struct sql *sql);

/* What is known of one target since the incident began. */
struct sql_evidence {
	const char *target; /* "main" */
	enum record_server server;
	bool sessions_are_processes; /* else they are threads of the server */
	bool detected;		     /* no section names it: it was found by its usual socket */
	int32_t server_pid;	     /* 0: not known */
	bool has_tid;		     /* the server says which thread a session runs on */
	const char *grant;	     /* the statement that grants missing rights; "" */
	const char *version;	     /* "" when not connected */
	const char *account;
	const struct sql_snapshot *current; /* NULL: no answer yet */
	struct sql_statements *statements;
	const char *why;	/* there is no answer to the last question; "": there is one */
	bool is_duplicate;	/* another target is the same server, and is asked */
	bool is_known;		/* there was an answer, or `why` has a reason from the helper */
	const char *missing;	/* what to do about it; "": unknown */
	uint64_t unanswered_ns; /* 0: the last question is answered, or not late yet */
	bool in_session;	/* it is unanswered in a session, not during a login */
	uint64_t slowed_ns;	/* it answers so slowly that it is asked only that often; else 0 */
};

/* 0 when sql is NULL. */
unsigned int sql_targets_count(const struct sql *sql);
void sql_get_evidence(const struct sql *sql, unsigned int index, struct sql_evidence *ret_evidence);

/*
 * The statement that a thread ran longest in this incident, see sql_statements_find_thread().
 * ret_view is valid until the loop runs again. False: it ran none.
 */
bool sql_find_thread(const struct sql *sql, int32_t tid, struct sql_session_view *ret_view);
/* Numbers in the answers of the incident that could not be true. */
uint64_t sql_count_invalid(const struct sql *sql);

/*
 * What a thread or process of a server is for that serves no client, such as "checkpointer"; "" for
 * all others. NULL is accepted.
 */
const char *sql_find_role(const struct sql *sql, int32_t tid);
/* The same where no database has told it, by the name of the thread. */
const char *sql_find_role_of(const struct sql *sql, int32_t pid, int32_t tid, const char *comm);

/*
 * The relation that a file of PostgreSQL belongs to, "shop.public.orders"; "" for all others. The
 * path is absolute. NULL is accepted.
 */
const char *sql_find_relation(const struct sql *sql, const char *path);

/* The connection that the thread served during the operation; 0: not known for sure. */
uint64_t sql_find_connection(const struct sql *sql, const struct sql_operation *op);

/* What all targets do together. */
struct sql_activity {
	bool present;	  /* there is a session, or a target has stopped answering in one */
	uint64_t answers; /* how many there have been: of the same number, nothing is new */
	uint32_t active;
	uint32_t lasting;  /* those of them that have run for SQL_LASTING_NS */
	uint32_t in_state; /* those of the lasting ones whose state is one of the patterns */
	uint64_t longest_ns;
	uint64_t unanswered_ns; /* the longest, of targets in a session */
	double connections_pct; /* of those that a server allows, the highest; 0: unknown */
	struct watch_sql_targets targets;
	/*
	 * Whether the target that has most of it has answered since; where none has any, whether
	 * one of them has. What another one answers says nothing of an old answer.
	 */
	struct {
		bool active; /* also `lasting` */
		bool longest;
		bool in_state;
		bool connections;
	} is_new;
};

/* By the last answer of each target that has a session. `states` are shell patterns. */
void sql_get_activity(const struct sql *sql, const struct config_list *states, uint64_t since_ns,
	struct sql_activity *ret_activity);

/*
 * The backend that a parallel worker worked for, or the I/O workers of its server; for any other,
 * the thread itself.
 */
int32_t sql_leader(const struct sql *sql, int32_t tid);
/*
 * For how many sessions with the same statement, among them that of sql_leader(), nearly all reads
 * of the I/O workers were; 0: the thread is no such worker, or they read for others, too.
 */
uint32_t sql_count_served(const struct sql *sql, int32_t tid);

/* Adds members to an open JSON object: "sql.main": "connected to ...", each cut to 200 bytes. */
void sql_add_status(const struct sql *sql, struct text *answer);

/*
 * Appends "connected to 10.11.6-MariaDB as iostall@localhost", and how often it is asked when that is
 * less often than configured; or why it is not connected.
 */
void sql_describe_target(const struct sql *sql, unsigned int index, struct text *out);

#endif
