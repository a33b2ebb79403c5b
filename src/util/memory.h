/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much memory this process has.
 * Called by the session and by the daemon's status.
 * Never allocates.
 */
#ifndef IOSTALL_UTIL_MEMORY_H
#define IOSTALL_UTIL_MEMORY_H

#include <stdint.h>

/* Resident bytes, from /proc/self/statm; 0 when they cannot be read. */
uint64_t memory_resident_bytes(void);

#endif
