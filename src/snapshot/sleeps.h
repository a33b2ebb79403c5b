/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How long a thread has slept in an operation by now.
 * Called by the session for each `stuck` line.
 * Never reads a map or a file: it is given the entry that probe `wait` keeps for the thread.
 */
#ifndef IOSTALL_SNAPSHOT_SLEEPS_H
#define IOSTALL_SNAPSHOT_SLEEPS_H

#include <stdbool.h>
#include <stdint.h>

#include "iostall/event.h"

/*
 * All sleeps since start_ns, the current one included. False: the entry is of an earlier operation.
 * The thread may change the entry while it is read, so the result is never longer than the
 * operation.
 */
bool sleeps_add_up(const struct event_sleep *sleep, uint64_t start_ns, uint64_t now_ns,
	uint64_t *ret_slept_ns);

#endif
