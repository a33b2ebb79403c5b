/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the last incidents were about, and which rules open no other one for that, how often.
 * Used by the session only.
 * Never allocates; where there is no room, a rule is held back rather than let through.
 */
#ifndef IOSTALL_SESSION_COOLDOWN_H
#define IOSTALL_SESSION_COOLDOWN_H

#include <stdbool.h>
#include <stdint.h>

#include "model/disks.h"
#include "record/record.h"
#include "util/text.h"
#include "watch/rules.h"

#define COOLDOWN_CAUSES_MAX 16
#define COOLDOWN_HELD_MAX 16

/* A disk, or a database, file system, control group or service, that an incident was about. */
struct cooldown_cause {
	uint64_t until_ns; /* 0: the incident is still open */
	bool is_disk;
	char name[RECORD_SUBJECT_SIZE];
};

/* A rule that opened no incident, and for what. */
struct cooldown_held {
	char rule[RECORD_NAME_SIZE];
	char name[RECORD_SUBJECT_SIZE]; /* of what it is about; "": the host */
	uint64_t count;
};

struct cooldown {
	uint64_t began_ns; /* when the last incident was closed */
	uint64_t until_ns; /* the longest of all */
	/* Until then the reason of an incident is not known, or is none that a disk shows. */
	uint64_t unclear_until_ns;
	uint32_t causes_count;
	struct cooldown_cause causes[COOLDOWN_CAUSES_MAX];
	uint32_t held_count;
	uint64_t held_left_out;
	struct cooldown_held held[COOLDOWN_HELD_MAX];
};

/* What the open incident is about, too: what opened it, fired in it, or is in its verdict. */
void cooldown_note_disk(struct cooldown *c, const char *name);
void cooldown_note_subject(struct cooldown *c, const char *name);
void cooldown_note_trigger(struct cooldown *c, const struct record_trigger *trigger);

/* An incident has been closed. is_clear: a disk hung, was slow or at its limit. */
void cooldown_begin(struct cooldown *c, uint64_t now_ns, uint64_t length_ns, bool is_clear);

/*
 * Whether the rule may be about the same as one of the last incidents: about the host as a whole,
 * about the same disk or one that it stands on, about the same database. What waits or does not
 * answer may be a victim of their disks, unless these are at rest in the sample. `stack` knows
 * which disk stands on which.
 */
bool cooldown_holds_back(const struct cooldown *c, const struct model_disks *stack,
	const struct record_reading *sample, const struct record_trigger *trigger,
	enum rules_scope scope, uint64_t now_ns);

void cooldown_count(struct cooldown *c, const struct record_trigger *trigger);

/*
 * Appends what was held back since the last call, "utilisation of sdb 3 times, iowait 2 times".
 * False: nothing was.
 */
bool cooldown_take_held(struct cooldown *c, struct text *t);

#endif
