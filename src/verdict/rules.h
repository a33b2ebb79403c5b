/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of verdicts: when each holds, and how it is said.
 * Used inside this room only.
 * Never changes the facts.
 */
#ifndef IOSTALL_VERDICT_RULES_H
#define IOSTALL_VERDICT_RULES_H

#include "util/text.h"
#include "verdict/verdict.h"

struct verdict_rule;

/* What a rule found. */
struct verdict_finding {
	const struct verdict_facts *f;
	const struct verdict_rule *rule;
	const struct verdict_device *device; /* NULL: no device is judged */
	enum verdict_wait wait;		     /* what the victims wait for, when no device is judged */
	/* Of a rule that blames, the one with most of the device's bytes; NULL: nobody is known. */
	const struct verdict_load *culprit;
	struct verdict_load team; /* with its workers, when they have most together: then it is the culprit */
	uint32_t team_workers;
	bool leader_moved; /* itself, beside them */
	enum verdict_by culprit_by;
	int32_t culprit_leader; /* the thread whose statement it works for, mostly itself */
	bool culprit_is_most; /* has at least half of them; else others are as much to blame */
	const char *file; /* that has at least half of the bytes, or "" */
	const struct verdict_database *silent; /* the one that was silent for the longest; NULL: none */
	uint32_t victims;
	uint64_t victims_longest_ns;
	const struct verdict_thread *first_victim; /* the one that waited for the longest */
};

struct verdict_rule {
	const char *class_name;
	const char *basis;
	/* One of the two: of one device, or of the host. */
	bool (*device_holds)(const struct verdict_facts *f, const struct verdict_device *d);
	bool (*host_holds)(const struct verdict_facts *f, enum verdict_wait *ret_wait);
	bool blames; /* the load is the reason: whose it is, is named */
	/* The sentence up to the culprit. */
	void (*say)(const struct verdict_finding *v, struct text *t);
};

/* Ended by one that always holds. */
extern const struct verdict_rule verdict_rules[];

#define VERDICT_MEASURED "measured"
#define VERDICT_INFERRED "inferred"

/* say.c */
void verdict_say_hung(const struct verdict_finding *v, struct text *t);
void verdict_say_frozen(const struct verdict_finding *v, struct text *t);
void verdict_say_slow(const struct verdict_finding *v, struct text *t);
void verdict_say_saturated(const struct verdict_finding *v, struct text *t);
void verdict_say_held_back(const struct verdict_finding *v, struct text *t);
void verdict_say_limited(const struct verdict_finding *v, struct text *t);
void verdict_say_unanswered(const struct verdict_finding *v, struct text *t);
void verdict_say_waiting(const struct verdict_finding *v, struct text *t);
void verdict_say_unknown(const struct verdict_finding *v, struct text *t);
/* The sentences and parts of what was found. */
void verdict_say(const struct verdict_finding *v, const struct verdict_sql *sql,
	struct record_verdict *ret_verdict);

/* Requests that a device finished in a second while it was busy, and bytes that it moved. */
void verdict_device_rates(const struct verdict_device *d, double *ret_requests, double *ret_bytes);
/* A thread of the file system below a hung device waits for its thaw. */
bool verdict_is_frozen_below(const struct verdict_facts *f, const struct verdict_device *d);

/* The database that was silent for the longest, if that was long enough to tell; else NULL. */
const struct verdict_database *verdict_silent_database(const struct verdict_facts *f);
/* That thread is one of its server. */
bool verdict_is_of_server(const struct verdict_thread *t, const struct verdict_database *d);

/* A device whose requests are those of another one. */
bool verdict_is_stacked(const struct verdict_device *d);

#endif
