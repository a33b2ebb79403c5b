/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The `offcpu` lines of a window of time: for each kind of waiting what it gained, its stack, and
 * who ended the longest.
 * Used by the user side of the probe `offcpu`.
 * Never changes a map.
 */
#ifndef IOSTALL_PROBES_OFFCPU_LINES_H
#define IOSTALL_PROBES_OFFCPU_LINES_H

#include <stdint.h>

#include "probes/offcpu_table.h"
#include "probes/probe.h"

/* Descriptors, by the key of a kind. */
struct offcpu_line_maps {
	int kinds;
	int stacks;
	int wakers;
};

/* Writes what was not told before; the window ends with the report. Sorts the table. */
void offcpu_lines_write(struct offcpu_table *table, const struct offcpu_line_maps *maps,
	uint64_t window_ns, const struct probe_report *report);

#endif
