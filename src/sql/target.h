/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One database target: its helper process, what was asked of it and what it answered last.
 * Owned by sql.c.
 * Never waits for the helper; never starts one while an incident is open.
 */
#ifndef IOSTALL_SQL_TARGET_H
#define IOSTALL_SQL_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "config.h"
#include "loop.h"
#include "sql/frames.h"
#include "sql/longest.h"
#include "sql/snapshot.h"

#define SQL_TARGET_WHY_SIZE (SQL_ERROR_SIZE + 64)

/* Zero in each: as the daemon does it. */
struct sql_timing {
	uint64_t late_ns;    /* an answer that takes longer is said not to come; 2 s */
	uint64_t idle_ns;    /* between two questions while no incident is open; sql.interval */
	uint64_t retry_ns;   /* the same after an answer that was an error, at first; 10 s */
	uint64_t kill_ns;    /* a helper that is silent for so long is made anew; 30 s */
	uint64_t backoff_ns; /* before a helper that ended is started again, at first; 1 s */
};

/* All borrowed, all outlive the target. */
struct sql_target_options {
	struct loop *loop;
	int procfs_fd;
	const char *helper; /* the program; NULL: this one */
	struct sql_timing timing;
	/* After each answer, also when it is an error; NULL: nobody cares. */
	void (*answered)(void *userdata);
	void *userdata;
};

struct sql_target {
	const struct sql_target_options *o;
	struct config_sql_target config;
	const char *name; /* in config.section */
	bool detected;
	struct sql_frame_setup setup;
	uint64_t interval_ns;

	pid_t pid; /* 0: no helper */
	int fd;
	struct loop_source *source;
	bool killed; /* but not waited for yet */
	uint64_t start_ns; /* when the next helper may be started */
	uint64_t backoff_ns;

	uint64_t ask; /* the number of the last question */
	uint64_t asked_ns; /* 0: nothing is outstanding */
	uint64_t silent_since_ns; /* when the first was asked that the server left open; 0: none */
	uint64_t next_ns;  /* of the next question while idle */
	bool renew; /* instead of that, a new helper: this one cannot open what the login needs */
	bool connected;
	unsigned int servers; /* frames of the server since the last answer */
	struct sql_frame_server server;

	bool is_told;	   /* `why` is more than that nothing has been tried */
	char why[SQL_TARGET_WHY_SIZE]; /* there is no evidence; "" when there is */
	char missing[SQL_ERROR_SIZE];
	char said[SQL_TARGET_WHY_SIZE]; /* the last `why` that was logged */
	union sql_helper_frame in;
	struct sql_snapshot *building;
	struct sql_snapshot *current;
	struct sql_snapshot *worst;
	struct sql_longest longest;
};

/*
 * Starts its helper at the next tick. All memory that it will need is there afterwards. `text` and
 * `text_bytes` are those of [sql]. 0 or -ENOMEM.
 */
int sql_target_new(const struct sql_target_options *options, const struct config_sql_target *config,
	const struct config_sql *all, struct sql_target **ret_target);

/* Ends its helper; returns the pid that has not been waited for yet, or 0. */
pid_t sql_target_free(struct sql_target *target);

/* Each second: starts, asks, gives up. */
void sql_target_tick(struct sql_target *target, uint64_t now_ns, bool armed);

/* Unless an answer is outstanding. */
void sql_target_ask(struct sql_target *target, uint64_t now_ns);

/* What was the worst is forgotten, and what ran longest. */
void sql_target_begin_incident(struct sql_target *target, uint64_t now_ns);

/* How long helper or server have been silent; 0: they are not, or not for long enough. */
uint64_t sql_target_unanswered_ns(const struct sql_target *target, uint64_t now_ns);

#endif
