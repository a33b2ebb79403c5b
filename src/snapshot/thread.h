/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel functions that a thread sleeps in, as /proc tells them.
 * Called by the stack reader and doctor.
 * Never opens cmdline, environ, maps or smaps, which wait for mmap_lock.
 */
#ifndef IOSTALL_SNAPSHOT_THREAD_H
#define IOSTALL_SNAPSHOT_THREAD_H

#include <stddef.h>
#include <stdint.h>

#define THREAD_STACK_SIZE 2048

/* /proc/TID/stack to "symbol+0xoff\n..." from the innermost frame on, without addresses. Pure. */
void thread_parse_stack(const char *buf, size_t len, char ret_stack[THREAD_STACK_SIZE]);

/*
 * A file that cannot be read gives an empty string. The kernel takes the process's exec_update_lock
 * for it (lock_trace() in fs/proc/base.c), which a process holds while it executes a program and
 * waits for the files that this closes: never called on the event loop.
 */
void thread_read_stack(int procfs_fd, int32_t tid, char ret_stack[THREAD_STACK_SIZE]);

#endif
