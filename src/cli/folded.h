/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How long the threads of an incident waited, for each stack: `iostall show --format folded`, in
 * the format of flame graph tools. Of watched processes it is all of their time off the CPU, with
 * the stacks of their programs.
 * Used by show, and for the other format by pprof.
 * Allocates as much as the record needs; never reads a file.
 */
#ifndef IOSTALL_CLI_FOLDED_H
#define IOSTALL_CLI_FOLDED_H

#include <stdio.h>

#include "page/statements.h"
#include "record/record.h"

struct folded;

/* Which frames there are, behind that of the process. */
struct folded_options {
	bool thread; /* its name */
	/* Of the record, to be kept by the caller; NULL: none. */
	const struct statements *statements;
	bool program; /* functions of the program and its libraries */
	bool kernel;  /* functions of the kernel, and what is waited for there */
};

/* NULL: out of memory. */
struct folded *folded_new(const struct folded_options *options);
/* NULL is accepted; returns NULL. */
struct folded *folded_free(struct folded *folded);

/* Takes a line of the record; only those with stacks count. 0 or -ENOMEM. */
int folded_add(struct folded *folded, const struct record *r);

/*
 * Calls `visit` for each stack, those of operations before the others, with
 * "process;thread;statement;outermost function;...;innermost function". An operation counts once, with all
 * the time that it took or has taken so far. Of operations that share a line the mean of the
 * shortest and the longest counts. May be called once.
 */
void folded_visit(struct folded *folded,
	void (*visit)(void *userdata, const char *frames, uint64_t usec), void *userdata);

/* The same as text: a line for each stack, with the microseconds behind it. */
void folded_print(struct folded *folded, FILE *out);

#endif
