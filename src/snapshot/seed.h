/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The snapshot at arming: every thread of the host is shown to a BPF program, which notes those that
 * are asleep in an operation and since when.
 * Called by the session right after `wait` is attached: who falls asleep later is seen to.
 * Never reads a file of a thread: the program looks at the thread itself.
 */
#ifndef IOSTALL_SNAPSHOT_SEED_H
#define IOSTALL_SNAPSHOT_SEED_H

#include <stdint.h>

struct processes;

struct seed_options {
	int procfs_fd;
	int program_fd;		      /* wait_seed of bpf/wait.bpf.c */
	const struct processes *only; /* NULL: every process */
	uint64_t deadline_ns;
};

struct seed_result {
	uint32_t visited;
	uint32_t asleep;
	uint32_t not_visited; /* threads that there was no time for */
};

void seed_blocked(const struct seed_options *options, struct seed_result *ret_result);

#endif
