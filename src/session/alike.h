/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Operations that are alike: when very many threads hang or return together, one line stands for
 * those beyond the first ones.
 * Used by the session, for `stuck` and `stall` lines.
 * Never allocates; what has no room here gets a line of its own.
 */
#ifndef IOSTALL_SESSION_ALIKE_H
#define IOSTALL_SESSION_ALIKE_H

#include <stdbool.h>
#include <stdint.h>

#include "record/record.h"

/*
 * Operations that are alike and have lines of their own, in one window. With fewer, the threads of
 * a usual server would not be told one by one. With more, a record of 4 MB would be full after a
 * few seconds, since a line takes 1.3 KB.
 */
#define ALIKE_OWN_LINES 256
/* Those that have further `stuck` lines of their own after a window in which there were more. */
#define ALIKE_REPEATED_LINES 32
/* Kinds of operations that are told apart in one window, and those of them that have a line. */
#define ALIKE_KINDS_MAX 256
#define ALIKE_LINES_MAX 16

struct alike_kind {
	uint64_t hash; /* 0: free */
	uint32_t own;
	uint32_t line; /* index + 1; 0: none */
};

struct alike_line {
	enum record_type type;
	uint64_t real_ns;
	uint64_t mono_ns;
	uint32_t kind;			   /* index */
	struct record_operation operation; /* the first one, with `alike` for the others */
};

struct alike {
	bool crowded; /* in the last window one line stood for many that were stuck */
	uint32_t kinds_count;
	uint32_t lines_count;
	uint32_t next; /* line that alike_next() gives */
	struct alike_kind kinds[ALIKE_KINDS_MAX];
	struct alike_line lines[ALIKE_LINES_MAX];
};

/* Begins the first window of an incident; a window lasts for one in-flight scan. */
void alike_begin(struct alike *a);

/*
 * Whether the operation of a `stuck` or `stall` line needs no line, for that of others will stand
 * for it. has_line: it has had a `stuck` line of its own, and so its `stall` line will be its own.
 */
bool alike_merge(struct alike *a, const struct record *r, bool has_line);

/* The next line that stands for many; NULL: there is none, and a new window has begun. */
const struct alike_line *alike_next(struct alike *a);

#endif
