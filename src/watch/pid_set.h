/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A set of process ids with a fixed number of slots.
 * Used by the search for processes.
 * Never allocates; what finds no room is not added.
 */
#ifndef IOSTALL_WATCH_PID_SET_H
#define IOSTALL_WATCH_PID_SET_H

#include <stdbool.h>
#include <stdint.h>

#define PID_SET_SLOTS 8192
#define PID_SET_MAX (PID_SET_SLOTS / 4 * 3)

/* Zeros: empty. */
struct pid_set {
	uint32_t count;
	int32_t slots[PID_SET_SLOTS]; /* 0: free */
};

bool pid_set_has(const struct pid_set *set, int32_t pid);
/* Whether it is in the set now: with PID_SET_MAX others it is not. */
bool pid_set_add(struct pid_set *set, int32_t pid);
void pid_set_remove(struct pid_set *set, int32_t pid);
void pid_set_clear(struct pid_set *set);

#endif
