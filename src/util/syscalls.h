/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What system calls are for.
 * Used by the snapshot and verdict rooms.
 */
#ifndef IOSTALL_UTIL_SYSCALLS_H
#define IOSTALL_UTIL_SYSCALLS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Whether a thread in this state and system call may wait for something to do. Others that wait for
 * such a thread do nothing wrong: a pool may park its threads at a mutex, or take its next
 * connection with one held. Redis does the one, servers with an accept mutex the other.
 */
bool syscall_may_wait_for_work(char state, int32_t number);

#endif
