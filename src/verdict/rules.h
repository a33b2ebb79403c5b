/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of verdicts: when each one holds, and how it is said.
 * Used inside this room only.
 * Never changes the facts.
 */
#ifndef IOSTALL_VERDICT_RULES_H
#define IOSTALL_VERDICT_RULES_H

#include "util/text.h"
#include "verdict/verdict.h"

struct verdict_rule;

/* A set of entries of verdict_facts.waiters. */
struct verdict_rows {
	uint64_t bits[(VERDICT_WAITERS_MAX + 63) / 64];
};

/* What a rule found. */
struct verdict_finding {
	const struct verdict_facts *f;
	const struct verdict_rule *rule;
	const struct verdict_device *device; /* the judged device; NULL: none */
	uint32_t stack;	    /* bits of the devices whose waits count: those that stand on it, too */
	uint32_t throttled; /* the same for writers that are slowed down for their dirty pages */
	enum verdict_wait wait; /* what the victims waited for, when no device is judged */
	/* Whoever has most of the device's time, if the rule blames; NULL: nobody is known. */
	const struct verdict_load *culprit;
	/* Several threads that have most of it together: then they are the culprit. */
	struct verdict_load group;
	uint64_t group_shares; /* bits of their shares; 0: the culprit is no such group */
	uint32_t group_count;  /* how many, without a leader of parallel workers */
	bool is_parallel;      /* they work on one statement; else each runs the same one */
	bool is_resync;	       /* it is the resynchronisation of an array */
	/* It is the copying for a snapshot, which has this volume; NULL: it is not. */
	const struct verdict_device *snapshot;
	bool leader_moved; /* the leader moved bytes, too, and not only its workers */
	enum verdict_by culprit_by;
	int32_t culprit_leader; /* the thread whose statement it runs, usually itself */
	uint64_t work_key; /* whoever has this verdict_work_key() is the culprit, too; 0: nobody */
	const struct verdict_who *writer_back; /* the kernel thread that did it for the culprit */
	uint64_t attributed_ns; /* what is the culprit's of the time from before tracing */
	/* The device's time that the culprit's is compared with, and what it did before, unseen. */
	double work_ns;
	uint64_t unseen_ns;
	bool culprit_is_most;	  /* at least half of work_ns; else only the largest */
	const char *culprit_role; /* "checkpointer"; "" */
	const char *file;	  /* the file with at least half of what was traced, or "" */
	const char *relation;	  /* what that file, or the one that fills a disk, is; "" */
	const struct verdict_database *unresponsive; /* the longest unresponsive one; NULL: none */
	struct verdict_rows concerned;		     /* who waited for what it is about */
	struct verdict_rows own;		     /* those of the culprit among them */
	uint32_t victims;
	uint32_t victims_counted; /* those of them whose statements sql->count_others() counts */
	uint64_t victims_longest_ns;
	const struct verdict_waiter *first_victim; /* the one that waited the longest */
	uint64_t victims_ns;			   /* what all of them waited, added up */
	uint64_t own_ns;			   /* what the culprit waited, for its own work */
	uint32_t early; /* of those that waited before the incident, how many are concerned */
};

struct verdict_rule {
	enum record_class class;
	enum record_basis basis;
	/* A rule has one of the two: it is about one device, or about the host. */
	bool (*device_holds)(const struct verdict_facts *f, const struct verdict_device *d);
	bool (*host_holds)(const struct verdict_facts *f, enum verdict_wait *ret_wait);
	bool blames; /* the load is the cause, so the sentence names who made it */
	/* It opened the incident, and whatever else cost more stands second; may be NULL. */
	bool (*is_reason)(const struct verdict_facts *f);
	/* The rules below it are about what a cause above it leads to: none of them is tried. */
	bool is_symptom;
	/* The sentence up to the culprit. */
	void (*say)(const struct verdict_finding *v, struct text *t);
};

/* The last one always holds. */
extern const struct verdict_rule verdict_rules[];

/* locked.c */
/* Sessions wait for a lock, long enough to matter, and their holder does not wait for a disk. */
bool verdict_is_locked(const struct verdict_facts *f, enum verdict_wait *ret_wait);
void verdict_say_locked(const struct verdict_finding *v, struct text *t);
/* Appends the texts of the statements that the sentence is about; `message` does not have them. */
void verdict_add_lock_texts(const struct verdict_queue *q, struct text *t);
void verdict_add_holder(struct text *t, const struct verdict_holder *h);
/* Says as the last clause of another verdict that sessions waited for a lock, too. */
void verdict_add_queue(const struct verdict_finding *v, struct text *t);
/* Whether there is such a clause, or a part. */
bool verdict_has_queue(const struct verdict_facts *f);

/* memory.c */
/* Most of what the device moved had been evicted for want of memory, and not long ago. */
bool verdict_is_short_of_memory(const struct verdict_facts *f, const struct verdict_device *d);
void verdict_say_memory(const struct verdict_finding *v, struct text *t);
/* The evidence, and how much of the device's work it is. */
void verdict_add_memory(const struct verdict_finding *v, struct text *t, uint64_t *ret_bytes,
	double *ret_share_pct);

/* say.c */
void verdict_say_full(const struct verdict_finding *v, struct text *t);
void verdict_say_hung(const struct verdict_finding *v, struct text *t);
void verdict_say_frozen(const struct verdict_finding *v, struct text *t);
void verdict_say_suspended(const struct verdict_finding *v, struct text *t);
void verdict_say_slow(const struct verdict_finding *v, struct text *t);
void verdict_say_slow_at_times(const struct verdict_finding *v, struct text *t);
void verdict_say_saturated(const struct verdict_finding *v, struct text *t);
void verdict_say_delayed(const struct verdict_finding *v, struct text *t);
void verdict_say_io_limit(const struct verdict_finding *v, struct text *t);
void verdict_say_limited(const struct verdict_finding *v, struct text *t);
void verdict_say_unanswered(const struct verdict_finding *v, struct text *t);
void verdict_say_waiting(const struct verdict_finding *v, struct text *t);
void verdict_say_unknown(const struct verdict_finding *v, struct text *t);
/*
 * Fills sentences and parts from the finding; `second` is what else went wrong, with other victims,
 * and NULL when nothing did.
 */
void verdict_say(const struct verdict_finding *v, const struct verdict_finding *second,
	const struct verdict_sql *sql, struct record_verdict *ret_verdict);

/* A whole finding in short, as the verdict says its second one. */
void verdict_add_finding(const struct verdict_finding *v, struct text *t);

/* parts.c; `statement` is the culprit's, NULL when it is not known. */
void verdict_add_parts(const struct verdict_finding *v, const struct verdict_finding *second,
	const struct verdict_sql *sql, const struct verdict_statement *statement,
	struct record_verdict *ret_verdict);

/* Whether it takes much longer for each request than in its baseline minute, without more load. */
bool verdict_is_slower_than_before(const struct verdict_device *d, double requests, double bytes);
double verdict_times_slower(const struct verdict_device *d);
/* Whether nothing more can be written to the file system that opened the incident. */
bool verdict_is_quite_full(const struct verdict_facts *f);
/*
 * The limit of a control group that held back what was asked of the device or of one below it,
 * which were not busy themselves; NULL: there was none.
 */
const struct verdict_io_limit *verdict_find_io_limit(const struct verdict_facts *f,
	const struct verdict_device *d);

/* Whether a device hangs, is slow or is at its limit. */
bool verdict_is_a_device_at_fault(const struct verdict_facts *f);
/* The database that was unresponsive the longest; NULL when none was for two seconds. */
const struct verdict_database *verdict_unresponsive_database(const struct verdict_facts *f);
/* Whether the thread belongs to the server of that database. */
bool verdict_is_of_server(const struct verdict_waiter *t, const struct verdict_database *d);

#endif
