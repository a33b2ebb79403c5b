/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The clock of the watch room, which a test replaces to get exact intervals between samples.
 * Used by the watch room and its tests.
 * Never the wall clock.
 */
#ifndef IOSTALL_WATCH_CLOCKS_H
#define IOSTALL_WATCH_CLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "util/clock.h"

struct watch_clock {
	uint64_t (*mono_ns)(void *arg); /* NULL: the monotonic clock */
	void *arg;
};

static inline uint64_t watch_clock_ns(const struct watch_clock *clock)
{
	return clock->mono_ns ? clock->mono_ns(clock->arg) : clock_mono_ns();
}

#endif
