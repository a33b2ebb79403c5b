/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much the threads of a database's sessions move between two answers of it.
 * Used by targets. A thread reads /proc/TID/io, whose readers newer kernels (6.18) let wait for the
 * exec_update_lock of the process: see struct watch_thread_status.
 * Never waits; allocates in init and renew only.
 */
#ifndef IOSTALL_SQL_MOVED_H
#define IOSTALL_SQL_MOVED_H

#include <stdbool.h>
#include <stdint.h>

#include "sql/protocol.h"
#include "sql/snapshot.h"
#include "util/renewable_worker.h"

/* Bytes that a thread has read from disks and written to files since it began. */
struct sql_thread_bytes {
	int32_t tid; /* 0: not known any more */
	uint64_t bytes;
};

struct sql_moved {
	struct renewable_worker worker;
	bool asked;
	uint64_t asked_ns;
	uint32_t count; /* of the reading before */
	struct sql_thread_bytes threads[SQL_SESSIONS_MAX];
};

/* procfs_fd must stay open. 0 or a negative errno. */
int sql_moved_init(struct sql_moved *moved, int procfs_fd);
/* Returns at once. One of zeros is accepted. */
void sql_moved_done(struct sql_moved *moved);

/* What was read before counts no more. */
void sql_moved_forget(struct sql_moved *moved);
/* Replaces a thread that hangs. Only while no incident is open. */
void sql_moved_replace_hung(struct sql_moved *moved, uint64_t now_ns);

/*
 * Has the threads of the last answer read while the database is asked again, unless there is a
 * reading that was not noted yet. `is_process`: see sql_thread_is_of().
 */
void sql_moved_ask(struct sql_moved *moved, const struct sql_snapshot *last, int32_t server_pid,
	bool is_process, uint64_t now_ns);
/* Sets moved_bytes of the rows by the two last readings. */
void sql_moved_note(struct sql_moved *moved, struct sql_snapshot *answer);

#endif
