/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Mutexes of watched programs: what /proc and their words say. Used by the look for them.
 *
 * A thread that waits for a mutex of the C library sleeps in futex(2), in S state. The library
 * keeps the id of the owner beside the word that is waited on (struct __pthread_mutex_s of glibc).
 * An owner is named only if it is a thread of the same process. Condition variables, semaphores,
 * locks of other libraries and processes in a container with ids of its own have none.
 */
#ifndef IOSTALL_SNAPSHOT_MUTEXES_H
#define IOSTALL_SNAPSHOT_MUTEXES_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Line of /proc/TID/syscall: whether it waits in futex(2), for which word, and the value that it
 * expects there. Pure.
 */
bool mutexes_parse_syscall(const char *line, int32_t *ret_number, uint64_t *ret_address,
	uint32_t *ret_value);

/*
 * The owner by the words of a mutex of the C library, of which `expected` is what a waiter saw;
 * 0: it is none, or nobody waits for it. Pure.
 */
#define MUTEX_WORDS 5
int32_t mutexes_owner(const uint32_t words[static MUTEX_WORDS], uint32_t expected);

#endif
