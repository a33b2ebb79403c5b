/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Makes the spool file of the next incident in advance: allocated, filled and locked in memory.
 * Used by the spool sink. A thread of its own does the work, because allocating memory may block.
 * Never makes the event loop wait, and never uses more of the tmpfs than its limit.
 */
#ifndef IOSTALL_SINKS_PREALLOCATOR_H
#define IOSTALL_SINKS_PREALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* While records cannot be copied to the durable directory, the spool holds up to so many files. */
#define PREALLOCATOR_FILES_MAX 16
#define PREALLOCATOR_NAME_SIZE 40
#define PREALLOCATOR_PREFIX ".preallocated-"

/*
 * A file with a lock (sinks/lock.h), by which other processes know that it is being written. It has
 * a flock(2), too, which nothing depends on: those who may read the file see by it that the record
 * is not finished.
 */
struct spool_file {
	char *map; /* filled with '\n'; NULL: there is none */
	size_t bytes;
	ino_t inode;
	int fd; /* of the thread that has made it */
	char name[PREALLOCATOR_NAME_SIZE];
};

struct preallocator_options {
	const char *spool_dir;
	int spool_fd; /* the same directory; still the caller's */
	size_t bytes;
	gid_t group; /* FILE_NO_GROUP: leave it */
};

struct preallocator;

/*
 * Makes the first file at once, or after the start where that takes long. Returns a negative errno
 * when it fails for another reason than a lack of room or memory.
 */
int preallocator_new(const struct preallocator_options *options,
	struct preallocator **ret_preallocator);
/* Has the thread remove the file that was not taken; waits 200 ms for that at most. */
struct preallocator *preallocator_free(struct preallocator *preallocator);
/* Call it about once a second: has the next file made, where that has failed before. */
void preallocator_tick(struct preallocator *preallocator, uint64_t now_ns);

/*
 * Hands the file over to the caller until it gives it back; false when none is ready. While the
 * caller has it, no next file is made, or an incident would need twice the memory.
 */
bool preallocator_take(struct preallocator *preallocator, struct spool_file *ret_file);
/*
 * Nothing will be written to the file any more: it has `used_bytes`, and the thread cuts off what
 * is behind, unmaps, unlocks and closes it. Returns at once.
 */
void preallocator_give_back(struct preallocator *preallocator, struct spool_file *file,
	size_t used_bytes);

/* Whether the next file is ready or cannot be made at present. */
bool preallocator_is_ready(const struct preallocator *preallocator);

/* Whether the name begins with PREALLOCATOR_PREFIX. */
bool preallocator_name_is_ours(const char *name);

#endif
