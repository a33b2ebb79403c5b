/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A thread that copies lines from a pipe into a file: poll() calls a file on a hung disk writable,
 * but write() then waits for the disk.
 * Used by the terminal sink for its output, and by the daemon for standard error.
 * Never waited for without a limit: the thread may hang in the kernel, and what it holds is lost.
 */
#ifndef IOSTALL_UTIL_LOG_RELAY_H
#define IOSTALL_UTIL_LOG_RELAY_H

#include <stdbool.h>
#include <stdint.h>

struct log_relay;

/*
 * file_fd stays the caller's and may be closed or replaced at once. *ret_write_fd is the caller's,
 * too: the end of a pipe that is CLOEXEC and never blocks (EAGAIN when it is full).
 */
int log_relay_new(int file_fd, int *ret_write_fd, struct log_relay **ret_relay);
/*
 * Redirects fd into a relay when fd is a regular file. Otherwise, and on errors, nothing changes.
 */
void log_relay_decouple(int fd, struct log_relay **ret_relay);
/* Returns at once. The thread ends after the last byte, once the pipe has no writer any more. */
struct log_relay *log_relay_free(struct log_relay *relay);

/* Whether the file was given everything that was written into the pipe before this call. */
bool log_relay_is_drained(struct log_relay *relay);
/* For the exit only: waits until it is drained, but at most timeout_ns. True when it is drained. */
bool log_relay_flush(struct log_relay *relay, uint64_t timeout_ns);

#endif
