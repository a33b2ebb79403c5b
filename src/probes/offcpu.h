/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the session tells probe `offcpu`: which processes it looks at.
 * Called by the session before each attach and while tracing; offcpu.c does the rest.
 * Never decides which processes these are.
 */
#ifndef IOSTALL_PROBES_OFFCPU_H
#define IOSTALL_PROBES_OFFCPU_H

#include <stdbool.h>
#include <stdint.h>

#include "probes/probe.h"

/*
 * From now on it looks at the threads of this process, or does no more. A probe that is not loaded
 * takes no notice.
 */
void offcpu_set_process(const struct probe *probe, int32_t pid, bool is_looked_at);

/*
 * Asks for the stacks of threads that left the CPU before the attach. Those of later ones that no
 * program has taken are asked for once a second.
 */
void offcpu_ask_stacks(struct probe *probe, const struct probe_report *report);
/*
 * The stack of a thread, read from /proc, that has been off the CPU since `off_ns`; see ask_stack
 * of struct probe_report.
 */
void offcpu_note_stack(struct probe *probe, uint32_t tid, uint64_t off_ns, const char *kstack);

#endif
