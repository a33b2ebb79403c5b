/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The thread that gives the spool file of an incident the name of its record. Whoever reads the
 * directory may keep its lock for ever, as when the memory that is read into does not come.
 * Used by the spool sink.
 * Never waited for. It has a descriptor table of its own, see util/detached_worker.h.
 */
#ifndef IOSTALL_SINKS_NAMER_H
#define IOSTALL_SINKS_NAMER_H

struct namer;

/* The directory is the spool's; its descriptor is still the caller's. 0 or a negative errno. */
int namer_new(int spool_fd, struct namer **ret_namer);
/* Returns at once. NULL is accepted; returns NULL. */
struct namer *namer_free(struct namer *namer);

/* Renames that file to that of the incident's record. Not while the last result is not known. */
void namer_start(struct namer *namer, const char *file, const char *incident);
/*
 * Of the last one: 0, -EINPROGRESS, or the negative errno for which it could not be renamed and
 * has been removed. -EEXIST: another process has a record of that name.
 */
int namer_result(const struct namer *namer);

#endif
