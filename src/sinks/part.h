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
	int fd;	     /* -1: there is none */
	off_t bytes; /* that have been copied and are on the disk */
	off_t kept;  /* no error makes it shorter: what it has is a beginning of the record */
	char incident[RECORD_ID_SIZE];
};

/*
 * Opens the part of this process, or makes an empty one. What an earlier attempt has left in it is
 * copied once more, since nobody knows what of it is on the disk, but is never cut off before.
 * -EWOULDBLOCK: another thread has it open.
 */
int part_open(struct part *part, int dir_fd, const char *incident);

/*
 * Adds what the file has up to `end`, and waits until it is on the disk. `buf` is scratch space.
 * After an error the part has what it had before, and this may be tried again.
 */
int part_append(struct part *part, int from_fd, off_t end, char *buf, size_t size);

/*
 * Gives the part its final name and mode and closes it; the errno of setting the group goes to
 * ret_access. After an error it may still be open.
 */
int part_finish(struct part *part, int dir_fd, gid_t group, int *ret_access);

/* Closes the part, and removes it when it is empty. Does nothing when there is none. */
void part_close(struct part *part, int dir_fd);

/*
 * Truncates the record of a killed process after its last complete line. 0, -ENODATA when there is
 * no such line, or another negative errno.
 */
int part_cut_tail(int fd, off_t size);

/* Where part_finish_left_behind() looks. */
struct part_place {
	int dir_fd;
	int spool_fd;
	gid_t group;
};

/*
 * When `name` is a part that nobody has open: its host was reset, or its process was killed. If the
 * spool still has the record, nothing is done, because it will be copied again. Otherwise the lines
 * that are there become the record, which shows by its missing `close` line that it was cut off. It
 * is removed when it has no complete line or no more than the record has.
 *
 * Returns 0, or the negative errno for which it is as it was and to be tried again; -EWOULDBLOCK:
 * it is open in another process, which may hang.
 */
int part_finish_left_behind(const struct part_place *place, const char *name);

#endif
