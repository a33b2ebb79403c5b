/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The entries of a directory in /proc or sysfs, a few at a time: a scan can stop and resume.
 * Used by the watch room, by the initial task scan of src/snapshot/ and by enrich/below.c.
 * Never allocates, unlike opendir(3); the descriptor stays the caller's.
 */
#ifndef IOSTALL_WATCH_DENTS_H
#define IOSTALL_WATCH_DENTS_H

#include <stddef.h>
#include <stdint.h>

/*
 * The kernel fills the whole buffer: one call returns about 80 entries and takes 100 us in /proc.
 */
#define DENTS_BUFFER_SIZE 2048

struct dents {
	size_t len;
	size_t at;
	int64_t place; /* of the entry that was returned last, for dents_seek() */
	int64_t next_place;
	size_t read_size;
	_Alignas(8) char buf[DENTS_BUFFER_SIZE];
};

void dents_reset(struct dents *d);
/* Goes on at a place of the same directory, which may have been opened anew. */
void dents_seek(struct dents *d, int fd, int64_t place);

/* Reads but few entries at a time: what is not asked for is not made by the kernel. */
void dents_read_at_most(struct dents *d, uint32_t entries);

/* Returns 1 with the next name (valid until the next call), 0 at the end, or a negative errno. */
int dents_next(struct dents *d, int fd, const char **ret_name);

/*
 * Returns 1 with the next number, as of a process, or of a descriptor, which may be 0, and its name
 * (valid until the next call); 0 at the end, or a negative errno (-ENOENT: the process is gone).
 */
int dents_next_number(struct dents *d, int fd, int32_t *ret_number, const char **ret_name);

#endif
