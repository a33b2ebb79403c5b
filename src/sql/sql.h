/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The database targets of the daemon: found, asked, and what they answered.
 * Owned by the daemon (or a command); read by the session, `status` and `doctor`.
 * Never waits for a database; allocates and starts processes only while no incident is open.
 */
#ifndef IOSTALL_SQL_SQL_H
#define IOSTALL_SQL_SQL_H

#include <stdbool.h>
#include <stdint.h>

#include "config.h"
#include "sql/longest.h"
#include "sql/snapshot.h"
#include "sql/target.h"
#include "util/text.h"
#include "watch/sample.h"

struct loop;
struct sql;
struct watch;

/* All borrowed but the strings and the configuration, all outlive it. */
struct sql_options {
	const struct config *config; /* copied: what is in [sql] and [sql.NAME] */
	const char *procfs;
	struct loop *loop;
	const struct watch *watch; /* whose processes are looked for; NULL: none */
	const char *helper;	   /* for tests; NULL: this program */
	const char *run_dir;	   /* for tests; NULL: /run, where sockets are looked for */
	struct sql_timing timing;  /* for tests */
};

/* 0, -ENOMEM, or why procfs cannot be opened. Helpers are started by the first tick. */
int sql_new(const struct sql_options *options, struct sql **ret_sql);
/* Ends all helpers. NULL is accepted; returns NULL. */
struct sql *sql_free(struct sql *sql);

/*
 * At a reload, while no incident is open: targets whose settings are the same keep their helper,
 * but for those with a password_file, which may be another file by now. 0 or -ENOMEM, then a target may be
 * missing.
 */
int sql_reload(struct sql *sql, const struct config *config);

/* Once a second; NULL is accepted. `armed`: an incident is open, so nothing is started or allocated. */
void sql_tick(struct sql *sql, bool armed);

/* Called after each answer of a target; NULL: nobody is. */
void sql_set_callback(struct sql *sql, void (*answered)(void *userdata), void *userdata);

/* All targets are asked at once; what was the worst and what ran longest is forgotten. */
void sql_begin_incident(struct sql *sql);
/* Those with no answer outstanding are asked. */
void sql_ask_all(struct sql *sql);

/* What there is of one target since the incident began. */
struct sql_evidence {
	const char *target; /* "main" */
	const char *type;   /* "mariadb" */
	int32_t server_pid; /* 0: not known */
	bool has_tid;	    /* the server says which thread a session runs on */
	const char *grant;  /* the statement that lets the account see what it does not; "" */
	const char *version; /* "" when not connected */
	const char *account;
	const struct sql_snapshot *current; /* NULL: no answer yet */
	const struct sql_snapshot *worst;
	const struct sql_longest *longest;
	const char *why; /* the last answer is missing; "": it is not */
	bool is_told;	 /* there was a first answer, or it is known why not */
	const char *missing; /* what would mend it, "" when not known */
	uint64_t unanswered_ns; /* 0: the last question has been answered, or may still be */
	bool in_session; /* it was asked in a session, and no login takes its time */
};

/* 0 for NULL. */
unsigned int sql_targets_count(const struct sql *sql);
void sql_get_evidence(const struct sql *sql, unsigned int index, struct sql_evidence *ret_evidence);

/*
 * Of the statements that a thread ran up to the worst moment of this incident, the one that ran longest in
 * it (see sql_longest_find_thread()). ret_view is valid until the loop runs again. False: it ran none.
 */
bool sql_find_thread(const struct sql *sql, int32_t tid, struct sql_session_view *ret_view);
/* The process of a server that has been logged in to, on this host. */
bool sql_is_server(const struct sql *sql, int32_t pid);

/* The connection that the thread served meanwhile, by the newest answers; 0: not known for sure. */
uint64_t sql_find_connection(const struct sql *sql, const struct sql_operation *op);

/* All targets together. States are shell patterns. */
struct sql_activity {
	bool present; /* a target has answered within 10 s, or does not any more */
	bool fresh;   /* an answer is at most 2 s old; else nothing but unanswered_ns is known */
	uint32_t active;
	uint32_t in_state;
	uint64_t longest_ns;
	uint64_t unanswered_ns; /* of targets that had a session */
	struct watch_sql_targets targets;
};

void sql_get_activity(const struct sql *sql, const struct config_list *states,
	struct sql_activity *ret_activity);

/* The backend that a parallel worker served at the worst moment; of any other thread the thread itself. */
int32_t sql_leader(const struct sql *sql, int32_t tid);

/*
 * Client statements of the worst moment of this incident but for that of one thread or of its leader
 * (0: all), and the longest of them.
 */
uint32_t sql_count_others(const struct sql *sql, int32_t tid, uint64_t *ret_longest_ns);

/* Members of an open JSON object: "sql.main": "connected to ...", cut to 200 bytes each. */
void sql_add_status(const struct sql *sql, struct text *answer);

/* "connected to 10.11.6-MariaDB as iostall@localhost", or why not. */
void sql_describe_target(const struct sql *sql, unsigned int index, struct text *out);

#endif
