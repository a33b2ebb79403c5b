/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A part: the copy of a record in the durable directory while it is not complete. Its name is
 * hidden (.ID.jsonl.PID.part), and only root can open it. It becomes the record by being renamed.
 * Called by the writer on its thread, since each function may hang with the disk. Never touches the
 * part of another process while that process has it open.
 */
#ifndef IOSTALL_SINKS_PART_H
#define IOSTALL_SINKS_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "record/record.h"

struct part {
	int fd; /* -1: there is none */
	off_t bytes;
	char incident[RECORD_ID_SIZE];
};

/* Makes an empty part. -EWOULDBLOCK: another thread has the part of this process open. */
int part_open(struct part *part, int dir_fd, const char *incident);

/* Adds what the file has up to `end`, and waits until it is on the disk. `buf` is scratch space. */
int part_append(struct part *part, int from_fd, off_t end, char *buf, size_t size);

/* Gives the part its final name and mode; the errno of setting the group goes to ret_access. */
int part_finish(struct part *part, int dir_fd, gid_t group, int *ret_access);

/* Closes the part and removes it, to free the space. Does nothing when there is none. */
void part_drop(struct part *part, int dir_fd);

/*
 * Truncates the record of a killed process after its last complete line. 0, -ENODATA when there is
 * no such line, or another negative errno.
 */
int part_cut_tail(int fd, off_t size);

/* A name in the durable directory, as the visit of part_finish_left_behind() takes it. */
struct part_place {
	int dir_fd;
	int spool_fd;
	gid_t group;
	bool busy; /* a part is open in another process, which may hang */
};

/*
 * When `name` is a part that nobody has open: its host was reset, or its process was killed. If the
 * spool still has the record, nothing is done, because it will be copied again. Otherwise the lines
 * that are there become the record, which shows by its missing `close` line that it was cut off.
 */
void part_finish_left_behind(struct part_place *place, const char *name);

#endif
