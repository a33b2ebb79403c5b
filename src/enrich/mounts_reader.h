/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads the mounts of the host and of watched processes that have others, and of which disks those
 * with several consist, on a thread that may hang: each file system tells its options in mountinfo,
 * for which btrfs may read its disk, and whoever mounts meanwhile makes all readers wait.
 * Used by enrich.c, while no incident is open.
 * Never waits; there is a thread only while there is something to read, and one that hangs is left
 * behind and replaced, a bounded number of times.
 */
#ifndef IOSTALL_ENRICH_MOUNTS_READER_H
#define IOSTALL_ENRICH_MOUNTS_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "enrich/members.h"
#include "enrich/mounts.h"
#include "util/renewable_worker.h"

struct watch;

struct mounts_reader {
	struct renewable_worker worker;
	bool wanted;		/* they have changed since they were read last */
	uint64_t rest_until_ns; /* no sooner are they read again */
	const struct watch *watch;
	/* For members_learn(); NULL: not known yet. */
	const char *sysfs;
	const char *udev;
};

/* procfs_fd must stay open, and `watch` there. */
void mounts_reader_init(struct mounts_reader *reader, int procfs_fd, const struct watch *watch);
/* Returns at once. A reader of zeros is accepted. */
void mounts_reader_done(struct mounts_reader *reader);

/* Has them read. */
void mounts_reader_want(struct mounts_reader *reader);
/* From now on with the disks, see members_learn(). The names must stay valid. */
void mounts_reader_set_paths(struct mounts_reader *reader, const char *sysfs, const char *udev);
/* Replaces both by what has been read since the last call. False: nothing has. */
bool mounts_reader_take(struct mounts_reader *reader, struct mounts *mounts,
	struct members *members, uint64_t now_ns);
/* The same, and waits until it is read: for so long at most. For the start. */
bool mounts_reader_wait(struct mounts_reader *reader, struct mounts *mounts,
	struct members *members, uint64_t at_most_ns);

#endif
