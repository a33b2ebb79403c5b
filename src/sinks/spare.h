/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The next incident's file, made, filled and locked in memory before anybody needs it.
 * Made and asked by the spool sink; its thread is where memory may have to be waited for.
 * Never makes the event loop wait, and never takes more of the tmpfs than it was given.
 */
#ifndef IOSTALL_SINKS_SPARE_H
#define IOSTALL_SINKS_SPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Records that the durable directory does not take fill the spool up to so many files. */
#define SPARE_FILES_MAX 16
#define SPARE_NAME_SIZE 40

/* A file that nobody else has; its lock says so to other processes. */
struct spool_file {
	int fd;
	char *map; /* bytes of '\n' */
	size_t bytes;
	char name[SPARE_NAME_SIZE];
};

struct spare_options {
	const char *spool_dir;
	size_t bytes;
	gid_t group; /* FILES_NO_GROUP: leave it */
};

struct spare;

/*
 * Makes the first file at once: a negative errno when that fails, unless the spool is at its limit.
 */
int spare_new(const struct spare_options *options, struct spare **ret_spare);
/* Gives back the file nobody took and returns at once. */
struct spare *spare_free(struct spare *spare);

/* The file, which is then the caller's; false when none is ready. Returns at once. */
bool spare_take(struct spare *spare, struct spool_file *ret_file);

/* Whether the next file is ready, or cannot be made for now. */
bool spare_is_settled(const struct spare *spare);

/*
 * Whether an incident has a file mapped: the next one is then made but not mapped, or twice the
 * memory would be locked. Makes the thread look whether there is something to do, and returns at
 * once.
 */
void spare_set_live(struct spare *spare, bool live);

#endif
