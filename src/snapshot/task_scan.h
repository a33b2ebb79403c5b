/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The initial task scan: it passes every thread of the host to a BPF program, which notes the
 * threads that are asleep in an operation, and since when.
 * Called by the session right after probe `wait` is attached, which sees threads that fall asleep
 * later.
 * Never reads a file of a thread: the program reads the thread's kernel data itself.
 */
#ifndef IOSTALL_SNAPSHOT_TASK_SCAN_H
#define IOSTALL_SNAPSHOT_TASK_SCAN_H

#include <stdbool.h>
#include <stdint.h>

struct processes;

/* How far a scan has come: threads are visited in ascending order of process, then of thread id. */
struct task_scan_position {
	int32_t pid; /* the process that was begun last; 0: none */
	int32_t tid; /* its thread that was visited last */
};

struct task_scan_options {
	int procfs_fd;
	int program_fd;		      /* wait_task_scan of bpf/wait.bpf.c */
	const struct processes *only; /* NULL: every process */
	struct task_scan_position after;
	uint64_t deadline_ns;
	/* Called for each thread that is asleep in an operation. */
	void (*found)(void *userdata, int32_t tid);
	void *userdata;
};

struct task_scan_result {
	uint32_t visited;
	uint32_t asleep;
	bool complete;
	struct task_scan_position position; /* where to go on, unless it is complete */
};

/* A scan of several parts; all zero: it has not begun. */
struct task_scan_progress {
	bool complete;
	uint32_t visited;
	struct task_scan_position position;
};

/* Goes on where the last part stopped, until the deadline. options->after is ignored. */
void task_scan_continue(struct task_scan_progress *progress,
	const struct task_scan_options *options, struct task_scan_result *ret_result);
/* About how many threads are left; of a scan of some processes 1 when it is incomplete. */
uint32_t task_scan_count_left(const struct task_scan_progress *progress,
	const struct task_scan_options *options);

/* The threads of one process. */
void task_scan_process(const struct task_scan_options *options, int32_t pid,
	struct task_scan_result *ret_result);

#endif
