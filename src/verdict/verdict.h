/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Turns the facts of an incident into one sentence: what was wrong, who caused it, who suffered.
 * Called by the session once for each incident, before the `close` line.
 * Pure. Never blames without evidence: what the facts do not show is said to be missing.
 */
#ifndef IOSTALL_VERDICT_VERDICT_H
#define IOSTALL_VERDICT_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "record/record.h"
#include "verdict/facts.h"

/* What a database thread was running. The texts come from outside and are not escaped. */
struct verdict_statement {
	char user[RECORD_NAME_SIZE]; /* "app@localhost", "the replica applier" */
	char database[RECORD_NAME_SIZE];
	char text[RECORD_VERDICT_STATEMENT_SIZE]; /* empty: statements are not recorded */
	uint64_t elapsed_ns;
	uint64_t started_ns;  /* CLOCK_MONOTONIC */
	uint64_t moved_bytes; /* by its own thread, as far as it is known */
	int32_t tid;
	bool likely; /* another thread of the server did the I/O, probably for it */
};

/* How the verdict asks about statements; the session implements it with room sql. */
struct verdict_sql {
	/* False: no statement is known for that thread, or, when tid is 0, for that process. */
	bool (*find_statement)(void *userdata, int32_t pid, int32_t tid,
		struct verdict_statement *ret);
	/* The server's statement that moved at least as much as all others, if one did. Or NULL. */
	bool (*find_busiest)(void *userdata, int32_t pid, struct verdict_statement *ret);
	/* Whether the process is a configured database server, even if it does not answer. */
	bool (*is_server)(void *userdata, int32_t pid);
	/*
	 * The thread whose statement a parallel worker helps with, or for which the I/O workers of
	 * a server read; for other threads the thread itself.
	 */
	int32_t (*leader_of)(void *userdata, int32_t tid);
	/*
	 * For how many sessions with the same statement an I/O worker reads, nearly always; 0: it
	 * is none, or reads for others, too. May be NULL.
	 */
	uint32_t (*count_served)(void *userdata, int32_t tid);
	/* What a thread of a server is for that serves no client: "checkpointer"; "". Or NULL. */
	const char *(*find_role)(void *userdata, int32_t pid, int32_t tid);
	/* What a file of a database is, "shop.public.orders"; "": its name says it. Or NULL. */
	const char *(*find_relation)(void *userdata, const char *path);
	/*
	 * The same number for all threads whose statements have the same text, with placeholders
	 * for values; 0: the text is not known. May be NULL.
	 */
	uint64_t (*statement_key)(void *userdata, int32_t tid);
	/* How many with the text of that thread's ran when most sessions were active. Or NULL. */
	uint32_t (*count_alike)(void *userdata, int32_t tid);
	/*
	 * Statements that ran when most sessions were active, without that of thread tid (0: count
	 * all), and how long the longest one of the incident ran.
	 */
	uint32_t (*count_others)(void *userdata, int32_t tid, uint64_t *ret_longest_ns);
	/* Whether that of the thread is among them, so that it is not said twice. May be NULL. */
	bool (*is_counted)(void *userdata, int32_t tid);
	void *userdata;
};

/* sql may be NULL. */
void verdict_decide(const struct verdict_facts *f, const struct verdict_sql *sql,
	struct record_verdict *ret_verdict);

#endif
