/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lines about storage in the kernel's log: timeouts, resets, errors, tasks that hang.
 * Called by the session while an incident is open.
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
	char text[KMSG_TEXT_SIZE];
};

struct kmsg {
	int fd;		   /* -1: it cannot be read */
	uint64_t expected; /* sequence number of the next record; 0: not known */
	uint64_t lost;	   /* records that were overwritten before they were read */
	char buf[KMSG_BUFFER_SIZE];
};

/* path: "/dev/kmsg". 0 or a negative errno; kmsg->fd is -1 then. */
int kmsg_open(struct kmsg *kmsg, const char *path);
void kmsg_close(struct kmsg *kmsg);

/* Skips everything that has been logged so far. */
void kmsg_begin(struct kmsg *kmsg);

/*
 * Returns 1 with the next line about storage, 0 when there is none now. Reads at most *budget
 * records and subtracts those that it has read.
 */
int kmsg_next(struct kmsg *kmsg, unsigned int *budget, struct kmsg_line *ret_line);

/* Parses one record of read(2), see Documentation/ABI/testing/dev-kmsg. 0 or -EINVAL. Pure. */
int kmsg_parse(const char *buf, size_t len, struct kmsg_line *ret_line);
bool kmsg_is_about_storage(const char *text);

#endif
