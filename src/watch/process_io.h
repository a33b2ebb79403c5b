/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much watched processes have read from and written to disks in the last seconds, by their own
 * counters (/proc/PID/io): who loaded a disk before the probes were attached.
 * Used by the watch room only.
 * Never reads such a file itself: the kernel takes the process's exec_update_lock for it, which a
 * process holds while it executes a program, so a thread does that may hang.
 */
#ifndef IOSTALL_WATCH_PROCESS_IO_H
#define IOSTALL_WATCH_PROCESS_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/structs.h"
#include "util/renewable_worker.h"
#include "watch/processes.h"

/* Processes that are asked about, those that are known for longest. */
#define PROCESS_IO_MAX 32
/* Readings of each, a second apart. */
#define PROCESS_IO_READINGS 4

struct process_io_counts {
	uint64_t ns; /* 0: not known */
	uint64_t read_bytes;
	uint64_t write_bytes;
	uint64_t children_faults; /* of those it has waited for, whose bytes are in its own now */
};

struct process_io_answer {
	int32_t pid;
	struct process_io_counts counts;
};

/* Of the thread while it is busy, but for `done` and the answers before it. */
struct process_io_reading {
	unsigned int count;
	unsigned int done;
	struct process_io_answer answers[PROCESS_IO_MAX];
};

struct process_io_slot {
	int32_t pid;	/* 0: free */
	uint32_t taken; /* how many readings have been put into `counts`, which is a ring */
	struct process_io_counts counts[PROCESS_IO_READINGS];
};

struct process_io {
	struct renewable_worker worker;
	bool asked;
	bool has_told; /* that too many threads hang for any process to be asked */
	bool lacks;    /* what a watched process has moved, because a thread hangs */
	uint64_t late; /* samples for which it did */
	int32_t hung[RENEWABLE_WORKER_HUNG_MAX]; /* in which process, by its place in the worker */
	struct process_io_slot slots[PROCESS_IO_MAX];
};

/* procfs_fd must stay open. 0 or a negative errno. */
int process_io_init(struct process_io *p, int procfs_fd);
/* Returns at once. One of zeros is accepted. */
void process_io_done(struct process_io *p);

/*
 * Takes the answers to the last question and has the counters read again, unless an incident is
 * open, `armed`. May start a thread then.
 */
void process_io_update(struct process_io *p, const struct processes *processes, bool armed);

/* Those that moved most, in descending order. */
void process_io_fill(const struct process_io *p, const struct processes *processes,
	struct record_limits *limits);

/* The text of /proc/PID/io. 0, or -EINVAL when a counter is missing. Pure. */
int process_io_parse(const char *buf, size_t len, struct process_io_counts *ret_counts);
/*
 * The text of /proc/PID/task/TID/stat: the minor faults of children that the process has waited for
 * (cminflt). Each had some, so that it has waited for none while this stays. 0: unknown. Pure.
 */
uint64_t process_io_children_faults(const char *buf, size_t len);

#endif
