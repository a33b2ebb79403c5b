/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which incidents there are, in the spool and in the durable directory, and how one is named.
 * Called by the commands that read incidents.
 * Never changes a file.
 */
#ifndef IOSTALL_RECORD_STORE_H
#define IOSTALL_RECORD_STORE_H

#include <stddef.h>

#include "record/record.h"

struct record_store;

/*
 * Reads both directories once; a missing one is empty, and spool_dir or dir may be NULL. A negative
 * errno when a directory cannot be read, with *ret_failed_dir saying which. Where the disk of `dir`
 * hangs, what is in the spool is there after two seconds.
 */
int record_store_new(const char *spool_dir, const char *dir, struct record_store **ret_store,
	const char **ret_failed_dir);
struct record_store *record_store_free(struct record_store *store);

/* The directory that did not answer; NULL: none. It is not looked into any more. */
const char *record_store_silent_dir(const struct record_store *store);

/* Incidents in the order of time, each once. */
size_t record_store_count(const struct record_store *store);
const char *record_store_id(const struct record_store *store, size_t i);

/*
 * Opens for reading and gives the path, also when it moves from the spool to the other directory
 * just now. -ENOENT: it is gone; -ELOOP, -EINVAL: the name is there and is no regular file.
 */
int record_store_open(const struct record_store *store, const char *id,
	char ret_path[static RECORD_PATH_SIZE]);

/* What a negative errno of record_store_open() says to a person. */
const char *record_store_strerror(int error);

/*
 * An id, the beginning or any part of one, "last", or "last-1" for the one before it. The beginning
 * of one incident is that incident, wherever else it is a part. -ENOENT: none; -ENOTUNIQ: more than
 * one, see record_store_match().
 */
int record_store_find(const struct record_store *store, const char *name, const char **ret_id);

/* How many ids contain name; the newest of them are stored, at most max, the newest last. */
size_t record_store_match(const struct record_store *store, const char *name, const char **ret_ids,
	size_t max);

#endif
