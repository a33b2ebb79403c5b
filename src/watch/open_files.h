/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The descriptors that processes have open, one after the other.
 * Called by searches, on threads of their own.
 * Never called on the event loop: for /proc/PID/fd the kernel takes a lock that a process may hold
 * for long, and there may be hundreds of thousands of descriptors.
 */
#ifndef IOSTALL_WATCH_OPEN_FILES_H
#define IOSTALL_WATCH_OPEN_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 18,000 descriptors took 230 to 510 ms on a host whose two CPUs had far more to do. */
#define OPEN_FILES_LIMIT_NS (500 * NSEC_PER_MSEC)
/* After a search it rests so many times as long as that took. */
#define OPEN_FILES_REST_TIMES 4

/* Where a search that came too late goes on the next time. Zeros: at the first process. */
struct open_files_place {
	int32_t pid;
	int64_t fd; /* a place in its directory of descriptors */
};

struct open_files {
	int procfs_fd;
	uint64_t deadline_ns;
	/* `fd`: the name of an entry of PID/fd. False: no further descriptor is wanted. */
	bool (*visit)(void *arg, int32_t pid, const char *fd);
	void *arg;
	/* Whether a process is to be looked at; NULL: each is. */
	bool (*wants)(void *arg, int32_t pid);
	/* Where to begin and, behind the last process, to end; NULL: at the first one. */
	struct open_files_place *place;
};

/* Until all are visited, or no further one is wanted. False: the deadline came first. */
bool open_files_visit(const struct open_files *files);
/* The same for those of one process. */
bool open_files_visit_process(const struct open_files *files, int32_t pid);

/*
 * What the descriptor is of: "/srv/file", "pipe:[4711]", "anon_inode:[fanotify]". Cut off at `size`
 * bytes. False: it is gone.
 */
bool open_files_read_link(int procfs_fd, int32_t pid, const char *fd, char *ret_link, size_t size);
struct open_files_info {
	int access_mode; /* O_RDONLY, O_WRONLY or O_RDWR */
	uint64_t mount;	 /* as /proc/PID/mountinfo numbers them; 0: not known */
};

/* False: it is gone. */
bool open_files_read_info(int procfs_fd, int32_t pid, const char *fd,
	struct open_files_info *ret_info);

/* Empty: the process has gone. */
void open_files_read_comm(int procfs_fd, int32_t pid, char *ret_comm, size_t size);

#endif
