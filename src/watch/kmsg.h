/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lines about storage in the kernel's log: timeouts, resets, errors, tasks that hang; and those
 * about processes that were killed because memory was short.
 * Called by the session each second; while no incident is open, it keeps the last lines.
 * Never waits, never reads more records than it is asked for, never writes to the log.
 */
#ifndef IOSTALL_WATCH_KMSG_H
#define IOSTALL_WATCH_KMSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* CONSOLE_EXT_LOG_MAX of the kernel: no record of /dev/kmsg is longer. */
#define KMSG_BUFFER_SIZE 8192
#define KMSG_TEXT_SIZE 1024

struct kmsg_line {
	uint64_t sequence;
	uint64_t ns;	    /* of the log's clock, since boot */
	unsigned int level; /* 0 (emerg) to 7 (debug), as in syslog(3) */
	bool by_kernel;	    /* false: a process wrote it to /dev/kmsg */
	uint64_t read_ns;   /* CLOCK_MONOTONIC: it was read before the incident; 0: just now */
	char text[KMSG_TEXT_SIZE];
};

/* The line that explains a freeze mostly comes before it is noticed: so much before counts. */
#define KMSG_RECENT_NS 20000000000ULL
#define KMSG_RECENT_MAX 16

struct kmsg {
	int fd;			/* -1: it cannot be read */
	uint64_t expected;	/* sequence number of the next record; 0: not known */
	uint64_t lost;		/* records that nobody has read: overwritten, or skipped */
	uint64_t lost_since_ns; /* while no incident is open: at least since this time */
	uint32_t recent_first;
	uint32_t recent_count;
	/* Warnings and worse, from before the incident. */
	struct kmsg_line recent[KMSG_RECENT_MAX];
	char buf[KMSG_BUFFER_SIZE];
};

/*
 * path: "/dev/kmsg". Skips everything that has been logged so far. 0 or a negative errno; kmsg->fd
 * is -1 then.
 */
int kmsg_open(struct kmsg *kmsg, const char *path);
void kmsg_close(struct kmsg *kmsg);
/*
 * Goes on where the other one was, which cannot read any more; unless that one never could, since
 * the log may have become readable meanwhile.
 */
void kmsg_take(struct kmsg *kmsg, struct kmsg *from);

/*
 * Call it each second while no incident is open: returns 1 with the next line of note and
 * keeps it, 0 when there is none now. Where more was logged than *budget allows, it skips the rest,
 * which counts as lost.
 */
int kmsg_watch(struct kmsg *kmsg, uint64_t now_ns, unsigned int *budget,
	struct kmsg_line *ret_line);

/*
 * An incident begins: of the lines that were kept or lost, it forgets those that are too old.
 */
void kmsg_begin(struct kmsg *kmsg, uint64_t now_ns);

/*
 * Returns 1 with the next line of note, 0 when there is none now; the lines that were kept
 * come first. Reads at most *budget records and subtracts those that it has read.
 */
int kmsg_next(struct kmsg *kmsg, unsigned int *budget, struct kmsg_line *ret_line);

/* Parses one record of read(2), see Documentation/ABI/testing/dev-kmsg. 0 or -EINVAL. Pure. */
int kmsg_parse(const char *buf, size_t len, struct kmsg_line *ret_line);
bool kmsg_is_about_storage(const char *text);

/* Whether such a line, if it is an error, says that a disk failed, and not that something waits. */
bool kmsg_is_failure(const char *text);

/* What has become of a file system. */
enum kmsg_stopped {
	KMSG_STOPPED_NOT,
	KMSG_STOPPED_READ_ONLY,
	KMSG_STOPPED_SHUT_DOWN, /* nothing can be read, either */
};

#define KMSG_DISK_SIZE 32

/* "EXT4-fs (sda1): Remounting filesystem read-only": what, and "sda1". Pure. */
enum kmsg_stopped kmsg_find_stopped(const char *text, char ret_disk[static KMSG_DISK_SIZE]);

/* "I/O error, dev sdb, sector 8" and "EXT4-fs error (device sdb1)" name "sdb". */
bool kmsg_names_disk(const char *text, const char *disk);

/*
 * Whether the kernel says that it kills a process because memory is short: of the host, or of the
 * process's control group.
 */
bool kmsg_is_oom_kill(const char *text);
/* Which process has been killed; false: the line does not say it. Two lines are about each kill. */
bool kmsg_parse_killed(const char *text, int32_t *ret_pid, char *ret_comm, size_t size,
	bool *ret_of_group);

#endif
