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

struct recorded {
	char first[RECORD_ID_SIZE]; /* the incident with the beginning; "": none has it */
	uint32_t incidents;	    /* that have recorded it */
	uint64_t last;		    /* the number of the last one */
	/* Of a rule about threads: how many of them last, and the process of one, else 0. */
	double threads;
	int32_t pid;
};

/*
 * Whether what the rule is active for now has been recorded. `threads` and `pid` are 0 when it is
 * not about threads: they are counted for the host as a whole, so twice as many and at least four,
 * or those of another process, are another freeze.
 */
bool recorded_has(const struct recorded *r, double threads, int32_t pid);

/* The incident, whose number is above those before it, records it; may be called again for it. */
void recorded_note(struct recorded *r, const char *incident, uint64_t number, double threads,
	int32_t pid);

/* So many threads are left of them: what comes on top is compared with these. */
void recorded_follow(struct recorded *r, double threads);

/*
 * How long after the last incident the next one may open: the cooldown, and twice that after each
 * further incident, up to an hour.
 */
uint64_t recorded_wait_ns(uint32_t incidents, uint64_t cooldown_ns);

#endif
