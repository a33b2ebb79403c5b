/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From the facts of an incident to one sentence: what was wrong, who did it, who suffered.
 * Called by the session once, before `close`.
 * Pure; never blames without evidence: what the facts do not carry is said to be missing.
 */
#ifndef IOSTALL_VERDICT_VERDICT_H
#define IOSTALL_VERDICT_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "record/record.h"
#include "verdict/facts.h"

/* What a database thread was running. Texts from outside, as they are. */
struct verdict_statement {
	char user[RECORD_NAME_SIZE]; /* "app@localhost" */
	char database[RECORD_NAME_SIZE];
	char text[RECORD_VERDICT_STATEMENT_SIZE]; /* empty: not to be recorded */
	uint64_t elapsed_ns;
	uint64_t started_ns; /* CLOCK_MONOTONIC */
};

/* Where statements are asked for. */
struct verdict_sql {
	/* False: none is known of that thread; tid 0: of that process. */
	bool (*find_statement)(void *userdata, int32_t pid, int32_t tid, struct verdict_statement *ret);
	/* A process whose statements are asked for, whatever it answers. */
	bool (*is_server)(void *userdata, int32_t pid);
	/* Of a parallel worker the thread whose statement it helps with; of any other the thread itself. */
	int32_t (*leader_of)(void *userdata, int32_t tid);
	/* Statements under way at the worst moment beside the culprit's (tid 0: there is none). */
	uint32_t (*count_others)(void *userdata, int32_t tid, uint64_t *ret_longest_ns);
	void *userdata;
};

/* sql may be NULL. */
void verdict_decide(const struct verdict_facts *f, const struct verdict_sql *sql,
	struct record_verdict *ret_verdict);

#endif
