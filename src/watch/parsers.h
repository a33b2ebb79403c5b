/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pure parsers of the /proc files that the watchdog reads; they take buffers or single lines.
 * Used by the watch room, enrichment and snapshots, their tests and fuzzers.
 * Never opens a file, never allocates, never trusts what it reads.
 */
#ifndef IOSTALL_WATCH_PARSERS_H
#define IOSTALL_WATCH_PARSERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/parse.h"
#include "record/structs.h"

#define WATCH_COMM_SIZE 16

/* /proc/stat, see proc_stat(5); ticks are USER_HZ, summed over all CPUs. */
struct watch_stat {
	bool has_cpu;
	uint64_t busy_ticks; /* user, nice, system, irq, softirq and steal; guest is part of user */
	uint64_t idle_ticks;
	uint64_t iowait_ticks;
	uint32_t cpus;	   /* online */
	uint32_t cpus_end; /* the highest number of one of them, plus 1 */
	uint64_t procs_running;
	uint64_t procs_blocked;
};

/*
 * Adds one line to a structure that was zeroed at first; unknown lines change nothing. It takes a
 * line at a time because the file grows with CPUs and interrupts: the cpu lines are at its start,
 * procs_* at its end. 0, or -EINVAL for a known line with values that cannot be.
 */
int watch_parse_stat_line(struct cursor line, struct watch_stat *stat);

/* Of the numbers of sectors there, whatever those of the disk are. */
#define WATCH_DISKSTATS_SECTOR_BYTES 512

enum watch_diskstats_group {
	WATCH_DISKSTATS_READ,
	WATCH_DISKSTATS_WRITE,
	WATCH_DISKSTATS_DISCARD, /* from 4.18 */
	WATCH_DISKSTATS_FLUSH,	 /* from 5.5 */
	WATCH_DISKSTATS_GROUPS,
};

/* A row of /proc/diskstats, see Documentation/admin-guide/iostats.rst; absent fields are 0. */
struct watch_diskstats {
	uint32_t major;
	uint32_t minor;
	char name[RECORD_DISK_NAME_SIZE];
	uint64_t ios[WATCH_DISKSTATS_GROUPS]; /* completed */
	uint64_t sectors[WATCH_DISKSTATS_GROUPS];
	uint64_t ticks_ms[WATCH_DISKSTATS_GROUPS]; /* printed as 32 bits: wraps after 49 days of I/O
						    */
	uint64_t inflight;
	uint64_t io_ticks_ms;
	uint64_t weighted_ms;
};

/* 14, 18, 20 or more fields. 0 or -EINVAL, then ret_row is untouched. */
int watch_parse_diskstats_line(struct cursor line, struct watch_diskstats *ret_row);

/* /proc/pressure/{io,memory,cpu}; `full` of cpu came with 5.13. */
struct watch_pressure {
	bool has_full;
	uint64_t some_us;
	uint64_t full_us;
};

/* 0 or -EINVAL, then ret_pressure is untouched. */
int watch_parse_pressure(const char *buf, size_t len, struct watch_pressure *ret_pressure);

/*
 * A line of /proc/PID/mountinfo, see proc_pid_mountinfo(5). The words point into the line and still
 * have their escapes, see parse_unescape_octal(); what a short line lacks at its end is empty.
 */
struct watch_mountinfo {
	uint64_t id;
	uint32_t major;
	uint32_t minor;
	struct cursor root;
	struct cursor point;
	struct cursor type;
	struct cursor source;
	struct cursor options; /* of the file system, not of the mount */
};

/* 0, or -EINVAL when the line has no mount point; then ret_mount is untouched. */
int watch_parse_mountinfo_line(struct cursor line, struct watch_mountinfo *ret_mount);

/*
 * When the process or thread began, in clock ticks since boot, from /proc/PID/stat or
 * /proc/PID/task/TID/stat. 0 or -EINVAL, then ret_ticks is untouched.
 */
int watch_parse_start_ticks(const char *buf, size_t len, uint64_t *ret_ticks);

/*
 * /proc/TID/status. Unlike stat, io, exe, fd, wchan, syscall and stack it is read without the
 * exec_update_lock of the process, which newer kernels (6.18) take for those. A process holds that
 * lock while it executes a program and waits for the files that this closes. The kernel holds the
 * memory of the process while it writes the text (get_task_mm(), mmput()). Of a process that is
 * killed in these microseconds the reader may drop the last reference; then it waits for the
 * asynchronous I/O of the process (exit_aio()) and frees the memory.
 */
struct watch_thread_status {
	int32_t id;
	int32_t process;
	int32_t parent;		    /* of the process; 0: none */
	int32_t tracer;		    /* the process that debugs it; 0: none */
	char comm[WATCH_COMM_SIZE]; /* raw */
	char state;
	bool has_own_ids; /* its pid namespace, a container's, gives its threads other ids */
	bool has_switches;
	uint64_t switches; /* context switches, voluntary and involuntary together */
};

/* 0, or -EINVAL without id, process and state; then ret_status is untouched. */
int watch_parse_thread_status(const char *buf, size_t len, struct watch_thread_status *ret_status);

#endif
