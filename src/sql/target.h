/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One database target: its helper process, the question it was asked and the last answers.
 * Owned by sql.c.
 * Never waits for the helper; never starts one while an incident is open.
 */
#ifndef IOSTALL_SQL_TARGET_H
#define IOSTALL_SQL_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "config/config.h"
#include "util/loop.h"
#include "sql/frames.h"
#include "sql/io_workers.h"
#include "sql/moved.h"
#include "sql/relations.h"
#include "sql/snapshot.h"
#include "sql/statements.h"

#define SQL_TARGET_WHY_SIZE (SQL_ERROR_SIZE + 64)

/* For tests. 0 in a member stands for the value that the daemon uses. */
struct sql_timing {
	uint64_t late_ns;    /* a question without an answer for longer is unanswered; 2 s */
	uint64_t idle_ns;    /* between two questions while no incident is open; sql.interval */
	uint64_t retry_ns;   /* the same after an error; 10 s */
	uint64_t kill_ns;    /* a helper that does not answer for so long is replaced; 30 s */
	uint64_t backoff_ns; /* before a helper is started again; 1 s, then doubled */
};

/* All are borrowed and have to outlive the target. */
struct sql_target_options {
	struct loop *loop;
	int procfs_fd;
	const char *helper; /* the program; NULL: this program */
	struct sql_timing timing;
	/* Called after each answer, also after an error; NULL: nothing is called. */
	void (*answered)(void *userdata);
	void *userdata;
};

/* Processes or threads of a server that serve no client, and what they are for. */
#define SQL_ROLES_MAX 32

struct sql_role {
	int32_t tid; /* 0: free; -1: forgotten */
	char name[SQL_NAME_SIZE];
};

struct sql_target {
	const struct sql_target_options *o;
	struct config_sql_target config;
	const char *name; /* part of config.section */
	bool sessions_are_processes;
	bool detected;	  /* nobody configured it */
	bool has_own_ids; /* the server is in a container, see sql_has_own_ids() */
	struct sql_frame_setup setup;
	uint64_t interval_ns;
	uint64_t cost_ns; /* of the database, for an answer: an estimate */

	pid_t pid; /* 0: no helper */
	int fd;
	struct loop_source *source;
	/* The section that asks the same server, so that this one does not; "": none. */
	char same_as[CONFIG_SECTION_SIZE];
	bool killed;	   /* and not waited for yet */
	uint64_t start_ns; /* when the next helper may be started */
	uint64_t backoff_ns;

	uint64_t ask;	      /* number of the last question */
	uint64_t answers;     /* without errors */
	uint64_t answered_ns; /* the last of them */
	uint64_t asked_ns;    /* 0: the last question is answered */
	/* When the first question was asked that the server has not answered; 0: none. */
	uint64_t unresponsive_since_ns;
	uint64_t next_ns; /* when to ask next while no incident is open */
	bool renew;	  /* start a new helper then: this one cannot open files as root any more */
	bool connected;
	unsigned int locks;   /* SQL_FRAME_LOCK frames of this answer */
	unsigned int servers; /* SQL_FRAME_SERVER frames since the last answer */
	unsigned int names;   /* SQL_FRAME_RELATION and SQL_FRAME_DIRECTORY frames since then */
	struct sql_frame_server server;

	bool is_known;			  /* the helper has answered, or failed to */
	char why[SQL_TARGET_WHY_SIZE];	  /* why the last question has no answer; "": it has one */
	char missing[SQL_ERROR_SIZE];	  /* what to do about it; "": unknown */
	char logged[SQL_TARGET_WHY_SIZE]; /* the last `why` that was logged */
	union sql_helper_frame in;
	struct sql_snapshot *building;
	struct sql_snapshot *current;
	struct sql_statements statements;
	bool armed; /* an incident is open */
	struct sql_moved moved;
	struct sql_io_workers io_workers;
	struct sql_role roles[SQL_ROLES_MAX]; /* by all answers, the last one seen first */
	struct sql_relations *relations;      /* NULL: files of the server have names themselves */
	uint64_t invalid; /* numbers that could not be true, in the answers of the incident */
};

/*
 * Allocates all memory that the target will need; the next tick starts its helper. `all` is the
 * section [sql]. 0, -ENOMEM, or the error of starting a thread.
 */
int sql_target_new(const struct sql_target_options *options, const struct config_sql_target *config,
	const struct config_sql *all, struct sql_target **ret_target);

/* Ends the helper. Returns its pid if it has not been waited for yet, else 0. */
pid_t sql_target_free(struct sql_target *target);

/* Asks no more, because another section asks the same server; or asks again. */
void sql_target_stop(struct sql_target *target, const char *same_as);
void sql_target_resume(struct sql_target *target);

/* Call it each second: starts the helper, asks it, or gives it up. */
void sql_target_tick(struct sql_target *target, uint64_t now_ns, bool armed);

/* Asks the helper, unless it has not answered the last question yet. */
void sql_target_ask(struct sql_target *target, uint64_t now_ns);

/*
 * The same while no incident is open, because the last answer was suspicious. A database for which
 * answers are expensive is not asked so soon again.
 */
void sql_target_look_again(struct sql_target *target, uint64_t now_ns);

/* Forgets the statements of the last incident, and the roles of threads that have ended. */
void sql_target_begin_incident(struct sql_target *target, uint64_t now_ns);

/*
 * How long after a question the next one follows while idle: interval_ns, half of it when so many
 * statements are active that they may be a pile-up, and longer where an answer costs the database
 * more than a thousandth of that. Pure.
 */
uint64_t sql_target_choose_pause(uint64_t interval_ns, uint64_t cost_ns, uint32_t active);

/* How long an answer takes the database, by the estimate so far and the newest answer. Pure. */
uint64_t sql_target_estimate_cost(uint64_t cost_ns, uint64_t server_ns);

/*
 * "checkpointer"; "" for what serves a client, for what is unknown, and for a thread of another
 * process. Looks at /proc when it knows one.
 */
const char *sql_target_find_role(const struct sql_target *target, int32_t tid);

/* How long helper or server have not answered; 0: they have, or it is not late yet. */
uint64_t sql_target_unanswered_ns(const struct sql_target *target, uint64_t now_ns);

#endif
