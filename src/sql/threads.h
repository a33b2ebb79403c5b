/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether a number that a database calls its thread is a thread of that database on this host.
 * Used by targets and the session's lines.
 * Never reads a file that a process's mmap_lock can block.
 */
#ifndef IOSTALL_SQL_THREADS_H
#define IOSTALL_SQL_THREADS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A server in another pid namespace says its own numbers, and a thread may have ended meanwhile.
 * `is_process`: each session is a child of the server's process, as PostgreSQL has it.
 */
bool sql_thread_is_of(int procfs_fd, int32_t tid, int32_t server_pid, bool is_process);

#endif
