/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The two messages of an incident, one at open and one at close, for logs that other programs keep.
 * Used by the journald and syslog sinks.
 * Never the bulk of the record: where it lies is in the message.
 */
#ifndef IOSTALL_SINKS_MESSAGE_H
#define IOSTALL_SINKS_MESSAGE_H

#include <limits.h>
#include <stdbool.h>

#include "record/record.h"

/* What a close message needs of the lines before it. */
struct message {
	char dir[PATH_MAX]; /* of the durable records */
	bool statements; /* asked for: these logs are read by others than records */
	char incident[RECORD_ID_SIZE];
	struct record_trigger trigger;
	char class_name[RECORD_NAME_SIZE]; /* of the verdict; empty: there was none */
	char verdict[RECORD_SENTENCE_SIZE / 2]; /* a datagram is small */
	char statement[4 * RECORD_PART_SIZE]; /* of the verdict, escaped; empty: none, or not asked for */
};

/* Whether a record of this type makes a message; remembers the open and the verdict. */
bool message_take(struct message *m, const struct record *r);

/* One line for a person, without a newline. */
void message_add_text(const struct message *m, const struct record *r, struct text *t);

/* A priority of syslog(3): the outcome decides. */
int message_priority(const struct record *r);

uint64_t message_sum_lost(const struct record_close *c);

#endif
