/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who writes on a file system: the process with the file open for writing that grows most there.
 * Called by enrich.c while an incident is open that a full file system has opened.
 * Never looks at /proc on the event loop: for /proc/PID/fd the kernel takes a lock that a process
 * may hold for long, and there may be hundreds of thousands of descriptors. Its thread may hang.
 */
#ifndef IOSTALL_ENRICH_WRITERS_H
#define IOSTALL_ENRICH_WRITERS_H

#include "enrich/mounts.h"
#include "record/record.h"

/* A file that was not changed for so long is not being written. */
#define WRITERS_RECENT_S 60
/* Whoever has no answer after this time hangs or has no CPU. */
#define WRITERS_LIMIT_NS 2000000000ULL
/* Less is no growth: so much a log gains while another file fills the disk. */
#define WRITERS_GROWTH_MIN (64 * 1024)

struct writers;

/* The descriptor must stay open as long as the owner lives. 0 or a negative errno. */
int writers_new(int procfs_fd, struct writers **ret_writers);
/* Returns at once. NULL is accepted; returns NULL. */
struct writers *writers_free(struct writers *writers);

/*
 * Makes another thread in place of one that has not answered for WRITERS_LIMIT_NS. Allocates: only
 * while no incident is open. If it cannot, the next call tries again.
 */
void writers_replace_hung(struct writers *writers, uint64_t now_ns);

struct writers_question {
	const struct mounts *mounts;
	const char *mount;
	uint64_t incident_ns; /* when it began: growth is counted since the first look in it */
	uint64_t now_ns;
};

/*
 * Fills in what the last look has found, and begins another one. Call it at the begin of the
 * incident and about once a second.
 */
void writers_find(struct writers *writers, const struct writers_question *question,
	struct record_writer *ret_writer);

#endif
