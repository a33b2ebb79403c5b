/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which incident has the beginning of what a rule is active for, and how many have recorded it.
 * Used by rules.c, which has one of these for each subject of a rule.
 * Never allocates, and never asks for the time.
 */
#ifndef IOSTALL_WATCH_RECORDED_H
#define IOSTALL_WATCH_RECORDED_H

#include <stdbool.h>
#include <stdint.h>

#include "record/record.h"

/* Longer names are cut off. */
#define RECORDED_NAME_SIZE 64

struct recorded {
	char first[RECORD_ID_SIZE];    /* the incident with the beginning; "": none has it */
	uint32_t incidents;	       /* that have recorded it */
	uint64_t last;		       /* the number of the last one */
	char name[RECORDED_NAME_SIZE]; /* what it is about; "": the host */
	double threads;		       /* of a rule about threads: how many of them last, else 0 */
	double fewer;		       /* the most of them since there were fewer */
	uint64_t fewer_ns;	       /* since when; 0: there are not fewer */
	uint64_t cleared_ns;	       /* when the rule was cleared */
};

/*
 * Whether what the rule is active for now has been recorded. Threads are counted for the host as a
 * whole, so twice as many and at least four are another freeze, and so are those of another
 * program, which is the name then.
 */
bool recorded_has(const struct recorded *r, double threads, const char *name);

/* The incident, whose number is above those before it, records it; may be called again for it. */
void recorded_note(struct recorded *r, const char *incident, uint64_t number, double threads,
	const char *name);

/*
 * So many threads are left of them: what comes on top is compared with these, when there have been
 * fewer for a minute.
 */
void recorded_follow(struct recorded *r, double threads, uint64_t now_ns);

/*
 * The rule was cleared, and is active again. What was clear for less than a minute lasts: a disk
 * that fails completes a request now and then.
 */
void recorded_clear(struct recorded *r, uint64_t now_ns);
void recorded_begin(struct recorded *r, uint64_t now_ns);

/*
 * How long after the last incident the next one may open: the cooldown, and twice that after each
 * further incident, up to an hour.
 */
uint64_t recorded_wait_ns(uint32_t incidents, uint64_t cooldown_ns);

#endif
