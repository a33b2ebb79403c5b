/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How long the threads of an incident waited, for each stack: `iostall show --format folded`, in
 * the format of flame graph tools.
 * Used by show, and for the other format by pprof.
 * Allocates as much as the record needs; never reads a file.
 */
#ifndef IOSTALL_CLI_FOLDED_H
#define IOSTALL_CLI_FOLDED_H

#include <stdio.h>

#include "record/record.h"

struct folded;

/* NULL: out of memory. */
struct folded *folded_new(void);
/* NULL is accepted; returns NULL. */
struct folded *folded_free(struct folded *folded);

/* Takes a line of the record; only those of operations count. 0 or -ENOMEM. */
int folded_add(struct folded *folded, const struct record *r);

/*
 * Calls `visit` for each stack, in the order of their names, with
 * "process;thread;outermost function;...;innermost function". An operation counts once, with all
 * the time that it took or has taken so far. Of operations that share a line the mean of the
 * shortest and the longest counts. May be called once.
 */
void folded_visit(struct folded *folded,
	void (*visit)(void *userdata, const char *frames, uint64_t usec), void *userdata);

/* The same as text: a line for each stack, with the microseconds behind it. */
void folded_print(struct folded *folded, FILE *out);

#endif
