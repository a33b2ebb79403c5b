/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The initial task scan: it passes every thread of the host to BPF programs, which note the threads
 * that are asleep in an operation, or off the CPU, and since when.
 * Called by the session right after the probes `wait` and `offcpu` are attached, which see threads
 * that fall asleep later.
 * Never reads a file of a thread: the programs read the thread's kernel data themselves.
 */
#ifndef IOSTALL_SNAPSHOT_TASK_SCAN_H
#define IOSTALL_SNAPSHOT_TASK_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "watch/dents.h"

struct task_scan_options {
	int procfs_fd;
	int program_fd;	     /* wait_task_scan of bpf/wait.bpf.c; -1: not that */
	int offcpu_fd;	     /* offcpu_task_scan of bpf/offcpu.bpf.c; -1: not that */
	const int32_t *only; /* process ids, in ascending order; NULL: every process */
	uint32_t only_count;
	uint64_t deadline_ns;
	/* Called for each thread that is asleep in an operation. */
	void (*found)(void *userdata, int32_t tid);
	void *userdata;
};

struct task_scan_result {
	uint32_t visited;
	uint32_t asleep;
	bool complete;
};

/*
 * A scan of several parts; all zero: it has not begun. Processes are visited in ascending order of
 * their ids, the threads of each in the order in which the kernel lists them: that of their start,
 * not of their ids, which wrap around. The list stays open from one part to the next, so that the
 * kernel goes on behind the last one even when others have ended meanwhile.
 */
struct task_scan_progress {
	bool complete;
	bool is_open; /* threads_fd and threads are of process `pid`, which is not complete */
	uint32_t visited;
	int32_t pid;   /* that was begun last; 0: none */
	int64_t place; /* and its place among all, for dents_seek() */
	int threads_fd;
	struct dents threads;
};

/* Goes on where the last part stopped, until the deadline. */
void task_scan_continue(struct task_scan_progress *progress,
	const struct task_scan_options *options, struct task_scan_result *ret_result);
/* Nothing is open any more, and the next part begins from the start. */
void task_scan_reset(struct task_scan_progress *progress);
/* About how many threads are left; of a scan of some processes 1 when it is incomplete. */
uint32_t task_scan_count_left(const struct task_scan_progress *progress,
	const struct task_scan_options *options);

/* The threads of one process. */
void task_scan_process(const struct task_scan_options *options, int32_t pid,
	struct task_scan_result *ret_result);

#endif
