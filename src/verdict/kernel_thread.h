/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What threads of the kernel do, as their names tell.
 * Used by the verdict room only.
 * Never looks at a thread: the names are those of the record.
 */
#ifndef IOSTALL_VERDICT_KERNEL_THREAD_H
#define IOSTALL_VERDICT_KERNEL_THREAD_H

#include <stdbool.h>

/* "the journal of a file system"; NULL: its name says nothing. */
const char *verdict_kernel_thread_role(const char *comm);

/*
 * "md0_resync" works for nobody: it resynchronises, checks or rebuilds the array "md0", and
 * "md0_reshape" changes its shape.
 */
bool verdict_is_resync(const char *comm);
/* Whether both are threads of one array: "md0_resync", and "md0_raid1", which writes for it. */
bool verdict_is_same_array(const char *a, const char *b);
/* A worker of the kernel, which does all kinds of work, among them the copying for snapshots. */
bool verdict_is_worker(const char *comm);
/* It writes back what programs dirtied, or the metadata of their file system. */
bool verdict_writes_back(const char *comm);
/* The length of "md0" in the name of such a thread. */
int verdict_array_length(const char *comm);

#endif
