/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How full the file systems were when they answered last, one slot for each of them.
 * Used by the watch room only.
 * Never waits for a file system: a thread asks them, and an answer that is too old is not known.
 */
#ifndef IOSTALL_WATCH_FILESYSTEMS_H
#define IOSTALL_WATCH_FILESYSTEMS_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "record/structs.h"
#include "watch/fs_usage.h"

/*
 * A disk fills up within minutes, not seconds, and each question costs 10 us. In an incident it is
 * asked at each sample.
 */
#define FILESYSTEMS_PERIOD_NS (10 * NSEC_PER_SEC)
#define FILESYSTEMS_UNKNOWN_AFTER_NS (60 * NSEC_PER_SEC)

struct filesystems_slot {
	bool used;
	uint32_t serial; /* a new one each time that a file system appears */
	struct record_file_system view;
};

struct statvfs_worker;

struct filesystems {
	struct statvfs_worker *worker; /* NULL: no file system is asked */
	struct config_list patterns;   /* it has these */
	bool asking;
	uint64_t asked_ns;
	uint64_t
		answered_ns; /* when the question was asked whose answer is in the slots; 0: none */
	uint32_t serial;
	uint32_t left_out;
	struct filesystems_slot slots[WATCH_FILESYSTEMS_MAX];
};

/*
 * Asks at once, unless it asks for these already: else each reload would leave behind a thread that
 * hangs in a file system. What was known before stays until the first answer comes. The descriptor
 * stays the caller's. May allocate. 0 or a negative errno.
 */
int filesystems_start(struct filesystems *f, int procfs_fd, const struct config_list *patterns,
	uint64_t now_ns);
/* Does not wait for the thread, which may hang in a file system; it ends by itself. */
void filesystems_stop(struct filesystems *f);

/* Takes the answer if it has come, and asks again when it is time. */
void filesystems_update(struct filesystems *f, uint64_t now_ns, bool armed);

/*
 * Leaves behind a thread that hangs in a file system; the others are asked by another one. Call it
 * each second while no incident is open. May allocate.
 */
void filesystems_replace_hung(struct filesystems *f, uint64_t now_ns);

/* The fullest ones. */
void filesystems_fill_limits(const struct filesystems *f, struct record_limits *limits);

#endif
