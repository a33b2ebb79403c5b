/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much memory this process has, and keeps.
 * Called by the daemon, the session and the probes.
 * Never allocates.
 */
#ifndef IOSTALL_UTIL_MEMORY_H
#define IOSTALL_UTIL_MEMORY_H

#include <stdint.h>

/* So much of the heap is free and locked when an incident begins. */
#define MEMORY_HEAP_RESERVE_BYTES (256 * 1024)

/* Resident bytes, from /proc/self/statm; 0 when they cannot be read. */
uint64_t memory_resident_bytes(void);

#endif
