/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The system calls of 32-bit programs, whose numbers differ from those of the machine's own table.
 * Called by wait.c and tests.
 * Never includes sys/syscall.h, which defines the same names.
 */
#ifndef IOSTALL_PROBES_SYSCALLS_32_H
#define IOSTALL_PROBES_SYSCALLS_32_H

#include "iostall/event.h"

/*
 * Fills what is known; on a machine without such programs, nothing. `own` has the numbers of the
 * calls of syscalls.def in the machine's own table, in that order.
 */
void syscalls_32_fill(const int *own, struct event_syscall calls[EVENT_SYSCALLS_MAX]);

/* The same for 32-bit programs of Arm, on any machine. */
void syscalls_arm_fill(const int *own, struct event_syscall calls[EVENT_SYSCALLS_MAX]);

#endif
