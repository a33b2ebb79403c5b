/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads /proc/PID/cgroup of a few processes at a time, on a thread that may hang: the kernel takes
 * cgroup_mutex for it, which a stalled host may hold for long.
 * Used by cgroups.c, while no incident is open.
 * Never waits; a thread that hangs is left behind and replaced, a bounded number of times.
 */
#ifndef IOSTALL_WATCH_CGROUP_READER_H
#define IOSTALL_WATCH_CGROUP_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/renewable_worker.h"

/* Processes of one question. */
#define CGROUP_READER_MAX 4
#define CGROUP_READER_TEXT_SIZE 4096

struct cgroup_answer {
	int32_t pid;
	size_t len; /* 0: it cannot be read */
	char text[CGROUP_READER_TEXT_SIZE];
};

/* Of the thread while it is busy, but for `done` and the answers before it. */
struct cgroup_reading {
	unsigned int count;
	unsigned int
		done; /* answers that are complete; of a thread that hangs, the next one hangs */
	struct cgroup_answer answers[CGROUP_READER_MAX];
};

struct cgroup_reader {
	struct renewable_worker worker;
	bool asked; /* there is a question whose answers nobody has taken */
};

/* procfs_fd must stay open. 0 or a negative errno. */
int cgroup_reader_init(struct cgroup_reader *reader, int procfs_fd);
/* Returns at once. A reader of zeros is accepted. */
void cgroup_reader_done(struct cgroup_reader *reader);

bool cgroup_reader_is_busy(const struct cgroup_reader *reader);
/* At most CGROUP_READER_MAX of them, and only while it is not busy. */
void cgroup_reader_ask(struct cgroup_reader *reader, const int32_t *pids, unsigned int count);

/*
 * What was read, with the count of answers that are complete. NULL: there is nothing to take yet.
 * Of a thread that has hung for 5 s it is what it has read until then. May start a thread.
 */
const struct cgroup_reading *cgroup_reader_take(struct cgroup_reader *reader,
	unsigned int *ret_done);
/* Nobody wants the answers of the last question any more. */
void cgroup_reader_forget(struct cgroup_reader *reader);

#endif
