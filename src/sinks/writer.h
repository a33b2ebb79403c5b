/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The thread that moves finished records to the durable directory, saves there what an open
 * incident has so far, and applies the retention limits. Used by the spool sink; the spool
 * directory itself is the queue. Never waited for, because it may hang on a disk that does not
 * respond. What it has not moved is still in the spool.
 */
#ifndef IOSTALL_SINKS_WRITER_H
#define IOSTALL_SINKS_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sinks/retention.h"

/*
 * Pause after a failure: long enough to cause no load, short enough that an operator who made room
 * sees the effect.
 */
#define WRITER_RETRY_NS (30 * 1000000000ULL)

/*
 * How often the record of an open incident is saved, since hosts are reset in the middle of
 * freezes: not more than one small write in a time in which a disk does thousands.
 */
#define WRITER_SAVE_NS (5 * 1000000000ULL)

/* With an age limit: records grow too old even if no incident wakes the thread. */
#define WRITER_AGE_CHECK_NS (3600 * 1000000000ULL)

struct writer;

struct writer_options {
	const char *spool_dir;
	const char *dir;
	struct retention_limits limits;
	gid_t group; /* FILE_NO_GROUP: leave it */
	uint64_t retry_ns;
	uint64_t save_ns;
	uint64_t age_check_ns; /* not used without max_age_ns */
};

/* Starts the thread, which first moves records that a killed daemon left behind. */
int writer_new(const struct writer_options *options, struct writer **ret_writer);
/* Tells the thread to end and returns at once. */
struct writer *writer_free(struct writer *writer);

/*
 * For the event loop; they return at once. The record of an incident in the spool is written from
 * now on; its first `bytes` are whole lines; it is finished, and will be moved as soon as its lock
 * is dropped.
 */
void writer_begin(struct writer *writer, const char *incident);
void writer_note_bytes(struct writer *writer, size_t bytes);
void writer_end(struct writer *writer, const char *incident);

/* Whether the durable directory could be opened for writing at the last try. */
bool writer_dir_works(const struct writer *writer);
/* Whether all records that were finished before this call have been moved. */
bool writer_is_flushed(const struct writer *writer);

#endif
