/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A thread that asks the file systems how full they are, because statvfs(3) may hang with the disk.
 * Used by filesystems.c.
 * Never waited for: a thread that hangs frees its memory by itself once its call returns.
 */
#ifndef IOSTALL_WATCH_STATVFS_WORKER_H
#define IOSTALL_WATCH_STATVFS_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "util/clock.h"
#include "watch/fs_usage.h"

/* Each question costs 10 us. A disk that is only slow answers sooner. */
#define STATVFS_WORKER_LIMIT_NS (10 * NSEC_PER_SEC)

struct statvfs_worker;

/* The patterns are copied; the descriptor stays the caller's. 0 or a negative errno. */
int statvfs_worker_new(int procfs_fd, const struct config_list *patterns,
	struct statvfs_worker **ret_worker);
/* Returns at once. NULL is accepted; returns NULL. */
struct statvfs_worker *statvfs_worker_free(struct statvfs_worker *worker);

/* Asks for a new answer. Only after the last one has come, or at first. */
void statvfs_worker_ask(struct statvfs_worker *worker, uint64_t now_ns);
/* The answer to the last question, valid until the next one; NULL: there is none yet. */
const struct fs_usage_table *statvfs_worker_answer(struct statvfs_worker *worker);

/*
 * Makes another thread in place of one that has not answered for STATVFS_WORKER_LIMIT_NS, and
 * passes over the file system in which it hangs until that answers; the log says which it is. True:
 * ask again. Allocates: only while no incident is open.
 */
bool statvfs_worker_replace_hung(struct statvfs_worker *worker, uint64_t now_ns);

#endif
