/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The messages of an incident for the system log: when it opens, what the verdict is so far when
 * that names another cause, and when it closes.
 * Used by the journald and syslog sinks.
 * Never has the record itself, only the path of its file.
 */
#ifndef IOSTALL_SINKS_MESSAGE_H
#define IOSTALL_SINKS_MESSAGE_H

#include <limits.h>
#include <stdbool.h>

#include "record/record.h"

/* What the message at `close` needs from the lines before it. */
struct message {
	char dir[PATH_MAX]; /* of the durable records */
	bool statements;    /* with statements: more people read the system log than records */
	char incident[RECORD_ID_SIZE];
	struct record_trigger trigger;
	enum record_class class;		/* of the verdict; NONE: there was none */
	struct record_blame blame;		/* of the last one that had a message */
	char verdict[RECORD_SENTENCE_SIZE / 2]; /* a datagram is small */
	char statement[4 *
		RECORD_PART_SIZE]; /* of the verdict, escaped; empty: none, or not to be logged */
};

/*
 * Remembers what a line of `open` or `verdict` says. Returns whether this line has a message: of
 * the verdicts so far the first that says something, and those that name another cause.
 */
bool message_take(struct message *m, const struct record *r);

/* One line for a person, without a newline. */
void message_add_text(const struct message *m, const struct record *r, struct text *t);

/* A priority of syslog(3), according to the outcome: a disk that is only busy is a notice. */
int message_priority(const struct message *m, const struct record *r);

uint64_t message_sum_lost(const struct record_close *c);

#endif
