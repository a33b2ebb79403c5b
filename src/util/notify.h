/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The service manager's notification protocol, sd_notify(3).
 * Used by the daemon; depends on no room.
 * Never blocks: sd_notify() of libsystemd waits when the manager does not read.
 */
#ifndef IOSTALL_UTIL_NOTIFY_H
#define IOSTALL_UTIL_NOTIFY_H

#include <stdint.h>

/* Sends e.g. "READY=1"; nothing happens without NOTIFY_SOCKET in the environment. */
void notify_manager(const char *state);

/* How often the manager wants to hear WATCHDOG=1, in nanoseconds; 0: not at all. */
uint64_t notify_watchdog_ns(void);

#endif
