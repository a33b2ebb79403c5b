/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What one thread is doing now, from the files of /proc that are safe in a freeze.
 * Called by the walk over operations in flight and by the session.
 * Never opens cmdline, environ, maps or smaps: they wait for mmap_lock.
 */
#ifndef IOSTALL_SNAPSHOT_THREAD_H
#define IOSTALL_SNAPSHOT_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "watch/parsers.h"

#define THREAD_WCHAN_SIZE 64
#define THREAD_STACK_SIZE 2048

/* /proc/TID/syscall, proc_pid_syscall(5). */
struct thread_syscall {
	bool running;	  /* on a CPU or about to be: nothing else is known */
	int64_t nr;	  /* -1: blocked outside a system call */
	uint64_t args[6]; /* when nr >= 0 */
};

/* Pure; -EINVAL when it is no such line. */
int thread_parse_syscall(const char *buf, size_t len, struct thread_syscall *ret_call);

/* /proc/TID/stack to "symbol+0xoff\n..." from the innermost frame on, without addresses. Pure. */
void thread_parse_stack(const char *buf, size_t len, char ret_stack[THREAD_STACK_SIZE]);

/* -ENOENT or -ESRCH: the thread has ended; -EPERM or -EACCES: CAP_SYS_PTRACE is missing. */
int thread_read_syscall(int procfs_fd, int32_t tid, struct thread_syscall *ret_call);
int thread_read_stat(int procfs_fd, int32_t tid, struct watch_thread_stat *ret_stat);
int thread_read_state(int procfs_fd, int32_t tid, char *ret_state);

/* What cannot be read is left empty. */
void thread_read_wait(int procfs_fd, int32_t tid, char ret_wchan[THREAD_WCHAN_SIZE],
	char ret_stack[THREAD_STACK_SIZE]);

#endif
