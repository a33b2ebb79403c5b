/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads what /proc tells of one thread without the locks that its process may hold for long: see
 * struct watch_thread_status, also for what is left.
 * Used by every room that asks for the state, name, process or parent of a thread.
 * Never opens another file than status or comm.
 */
#ifndef IOSTALL_WATCH_THREAD_STATUS_H
#define IOSTALL_WATCH_THREAD_STATUS_H

#include <stddef.h>
#include <stdint.h>

#include "watch/parsers.h"

/* `path` is relative to dir_fd. -ENOENT or -ESRCH: the thread has ended. */
int thread_status_read_at(int dir_fd, const char *path, struct watch_thread_status *ret_status);

/* The same of a thread by its id. */
int thread_status_read(int procfs_fd, int32_t tid, struct watch_thread_status *ret_status);

/*
 * Its name alone, raw, which holds no memory of its process; ret_comm is untouched by an error. 0
 * or a negative errno.
 */
int thread_comm_read(int procfs_fd, int32_t tid, char *ret_comm, size_t size);

#endif
