/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether the kernel preempts BPF programs, and what follows for the choice of backends.
 * Called by set.c before it loads or tries probes.
 * Never reads a file that the systemd unit hides.
 */
#ifndef IOSTALL_PROBES_PREEMPTION_H
#define IOSTALL_PROBES_PREEMPTION_H

#include <stdbool.h>

struct btf;
struct kernel_types;

struct preemption {
	/*
	 * The kernel skips runs of a program on a CPU where a thread was preempted in it: up to a
	 * quarter of the fexit runs of 7.2 with 16 busy threads.
	 */
	bool skips_runs;
	/*
	 * The ring buffer takes a lock that may sleep. A program that holds the run queue's lock,
	 * as at a context switch, can hang the host then: CVE-2024-50138.
	 */
	bool ring_sleeps;
};

/* What is not known counts as true. */
void preemption_read(const struct kernel_types *types, struct preemption *ret_preemption);

/*
 * The mode is that of preempt_dynamic_mode in the kernel, -1: unknown. `version` is that of
 * uname(2). Pure.
 */
bool preemption_skips_runs(const char *version, int mode);

/* Whether struct bpf_ringbuf of the kernel has a lock that may sleep. Pure. */
bool preemption_ring_sleeps(const struct btf *btf);

#endif
