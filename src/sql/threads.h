/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checks that a thread number from a database is a thread of that database on this host.
 * Used by targets, the session's lines and doctor.
 * Never reads a file that takes a process's mmap_lock.
 */
#ifndef IOSTALL_SQL_THREADS_H
#define IOSTALL_SQL_THREADS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the server is in a pid namespace of its own, so that the ids it tells are not ours. */
bool sql_has_own_ids(int procfs_fd, int32_t server_pid);

/*
 * False: the server has other numbers, or the thread has ended. `is_process`: each session is a
 * child of the server's process, as in PostgreSQL.
 */
bool sql_thread_is_of(int procfs_fd, int32_t tid, int32_t server_pid, bool is_process);

/* Of any process of this host. */
bool sql_thread_exists(int procfs_fd, int32_t tid);

/* The parent of a process; 0: there is no such process. */
int32_t sql_read_parent(int procfs_fd, int32_t pid);

#endif
