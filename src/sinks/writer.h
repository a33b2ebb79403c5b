/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The thread that moves finished records to the durable directory and keeps its limits.
 * Made, woken and left by the spool sink; the spool directory itself is its queue.
 * Never waited for: it may hang on a dead disk; what it has not moved is still in the spool.
 */
#ifndef IOSTALL_SINKS_WRITER_H
#define IOSTALL_SINKS_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sinks/retention.h"

/*
 * After a failure: long enough to be no load, short enough that an operator who made room sees it.
 */
#define WRITER_RETRY_NS (30 * 1000000000ULL)

/* With a limit of age: records grow too old also where no incident wakes the thread. */
#define WRITER_AGE_CHECK_NS (3600 * 1000000000ULL)

struct writer;

struct writer_options {
	const char *spool_dir;
	const char *dir;
	struct retention_limits limits;
	gid_t group; /* FILES_NO_GROUP: leave it */
	uint64_t retry_ns;
	uint64_t age_check_ns; /* without max_age_ns nothing is checked */
};

/* Starts the thread, which first looks for what a dead daemon left behind. */
int writer_new(const struct writer_options *options, struct writer **ret_writer);
/* Tells the thread to end and returns at once. */
struct writer *writer_free(struct writer *writer);

/* Something is finished. Returns at once. */
void writer_wake(struct writer *writer);
/* Whether all that was finished before this call has been moved. */
bool writer_is_settled(const struct writer *writer);

#endif
