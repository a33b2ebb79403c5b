/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For whom a kernel thread works: a program that is slowed down in a write to the file, that waits
 * until it is written, or that waits for reads of it.
 * Used by culprit.c only.
 */
#ifndef IOSTALL_VERDICT_WRITERS_H
#define IOSTALL_VERDICT_WRITERS_H

#include "verdict/rules.h"

/* Makes the writer of the finding's file its culprit, if that is known. */
void verdict_find_writer(struct verdict_finding *v);
/* Makes the program that waits for reads of the file its culprit, if a kernel thread reads it. */
void verdict_find_reader(struct verdict_finding *v);
/*
 * As verdict_find_writer() for the files of one program, or of all sessions with one statement,
 * added up.
 */
void verdict_find_writers(struct verdict_finding *v, const struct verdict_sql *sql);

/* Whether a program other than pid is slowed down in writes to the finding's file. */
bool verdict_is_written_by_others(const struct verdict_finding *v, int32_t pid);
/* Adds that part of what the thread sent, from 0 to 1. */
void verdict_add_share(struct verdict_load *sum, const struct verdict_share *share, double part);
bool verdict_is_on_device(const struct verdict_finding *v, const struct verdict_share *share);
/* Device time of what kernel threads sent to the finding's device. */
uint64_t verdict_kernel_ns(const struct verdict_finding *v);
/* The same number for all threads that work on one statement, or else in one process. */
uint64_t verdict_work_key(const struct verdict_sql *sql, int32_t pid, int32_t tid);

#endif
