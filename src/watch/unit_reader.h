/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds out which processes belong to the units of the patterns "unit:NAME", from
 * /proc/PID/cgroup, on a thread that may hang: the kernel takes cgroup_mutex for that file, which a
 * stalled host may hold for long. It is one lock for all processes, so a thread that hangs is not
 * replaced.
 * Used by the search for processes. Without such a pattern there is no thread.
 * Never waits.
 */
#ifndef IOSTALL_WATCH_UNIT_READER_H
#define IOSTALL_WATCH_UNIT_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "util/renewable_worker.h"
#include "watch/pid_set.h"

struct unit_answer {
	int32_t pid;
	bool matches;
};

/* Of the thread while it is busy. */
struct unit_reading {
	struct config_list patterns;
	uint32_t count;
	struct unit_answer answers[PID_SET_MAX];
};

struct unit_reader {
	struct renewable_worker worker;
	struct pid_set *wanted; /* to be asked next; NULL: there is no such pattern, or no memory */
	struct pid_set *left_out; /* they belong to a unit and found no room; as `wanted` */
	bool asked;		  /* there is a question whose answers have not all been taken */
	uint32_t taken;
};

/* procfs_fd must stay open. */
void unit_reader_init(struct unit_reader *reader, int procfs_fd);
/* Returns at once. A reader of zeros is accepted. */
void unit_reader_done(struct unit_reader *reader);

/*
 * Whether one of the patterns is a unit. Nobody wants the answers for other patterns any more.
 * Allocates, so it is for the start and for reloads.
 */
bool unit_reader_set_patterns(struct unit_reader *reader, const struct config_list *patterns);

/* The caller had no room for it, which the next scan counts. */
void unit_reader_leave_out(struct unit_reader *reader, int32_t pid);
bool unit_reader_is_left_out(const struct unit_reader *reader, int32_t pid);
/* It has found room, or belongs to no such unit any more. */
void unit_reader_take_in(struct unit_reader *reader, int32_t pid);
/* Before a scan: those that have ended are not to fill it for ever. */
void unit_reader_check_left_out(struct unit_reader *reader);

/* Whether it will be asked: not when too many are wanted already. */
bool unit_reader_want(struct unit_reader *reader, int32_t pid);
/*
 * Asks for those that are wanted, unless a thread is busy. The thread is made when it is needed
 * first, and not with `armed`: that allocates.
 */
void unit_reader_ask(struct unit_reader *reader, const struct config_list *patterns, bool armed);
/* The next answer, each once. NULL: there is none yet. */
const struct unit_answer *unit_reader_next(struct unit_reader *reader);
/* It is reading, or about to. */
bool unit_reader_is_busy(const struct unit_reader *reader);

#endif
