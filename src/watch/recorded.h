/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which incident has the beginning of what a rule is active for, and how many have recorded it.
 * Used by rules.c, which has one table for all rules.
 * Never allocates, and never asks for the time.
 */
#ifndef IOSTALL_WATCH_RECORDED_H
#define IOSTALL_WATCH_RECORDED_H

#include <stdbool.h>
#include <stdint.h>

#include "record/record.h"

struct recorded {
	uint64_t hash; /* of the rule and the name of what it was active for */
	unsigned int rule;
	uint32_t incidents;	    /* that have recorded it */
	char first[RECORD_ID_SIZE]; /* the incident with the beginning; "": the entry is free */
	uint64_t last;		    /* the number of the last one */
	uint64_t active_ns;	    /* when the rule was active last */
	uint64_t noted_ns;	    /* when an incident recorded it last */
	double threads;		    /* of a rule about threads: how many last, else 0 */
	double fewer;		    /* the most of them since there were fewer */
	uint64_t fewer_ns;	    /* since when; 0: there are not fewer */
};

/* The owner gives the room. What has not been active for longest is forgotten for others. */
struct recorded_table {
	struct recorded *list;
	uint32_t max; /* more than the rules can be active for at a time */
	uint64_t sampled_ns;
	uint64_t interval_ns; /* between the last two samples */
};

/* Call it with each sample, before what the rules make of it. */
void recorded_sample(struct recorded_table *table, uint64_t now_ns);

/*
 * NULL: no incident has it, or the rule was clear for a minute since, or for three samples. What is
 * clear for less than that lasts: a disk that fails completes a request now and then.
 */
const struct recorded *recorded_find(const struct recorded_table *table, unsigned int rule,
	const char *name, uint64_t now_ns);

/*
 * Whether it is what has been recorded. Threads are counted for the host as a whole, so twice as
 * many and at least four are another freeze. False for NULL.
 */
bool recorded_has(const struct recorded *r, double threads);

/* The incident, whose number is above those before it, records it; may be called again for it. */
void recorded_note(struct recorded_table *table, unsigned int rule, const char *name,
	const char *incident, uint64_t number, double threads, uint64_t now_ns);

/*
 * The rule is active for this; NULL: for something that it does not name each time, so all that it
 * was active for may last, if an incident has recorded it within the last two hours. So many
 * threads are left: what comes on top is compared with these, when there have been fewer for a
 * minute.
 */
void recorded_follow(struct recorded_table *table, unsigned int rule, const char *name,
	double threads, uint64_t now_ns);

/*
 * How long after the last incident the next one may open: the cooldown, and twice that after each
 * further incident, up to an hour.
 */
uint64_t recorded_wait_ns(uint32_t incidents, uint64_t cooldown_ns);

#endif
