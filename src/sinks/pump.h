/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A thread that writes to a file, which may hang whatever poll() says, what comes through a pipe.
 * Used by the terminal sink, and by the daemon before standard error.
 * Never waited for without a limit: it may hang in the kernel; what it still has then is lost.
 */
#ifndef IOSTALL_SINKS_PUMP_H
#define IOSTALL_SINKS_PUMP_H

#include <stdbool.h>
#include <stdint.h>

struct pump;

/*
 * file_fd stays the caller's and may be closed or replaced at once. *ret_write_fd is the caller's,
 * too: the end of a pipe that is CLOEXEC and never blocks (EAGAIN when it is full).
 */
int pump_new(int file_fd, int *ret_write_fd, struct pump **ret_pump);
/* Puts one before fd itself when that is a file; else, or when it fails, nothing changes. */
void pump_decouple(int fd, struct pump **ret_pump);
/* Returns at once. The thread ends by itself behind the last byte, once nobody can write more. */
struct pump *pump_free(struct pump *pump);

/* Whether the file was given everything that was written into the pipe before this call. */
bool pump_is_settled(struct pump *pump);
/* At exit only: waits until it is, but never longer than timeout_ns. True when it is. */
bool pump_flush(struct pump *pump, uint64_t timeout_ns);

#endif
