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

static inline bool verdict_has_row(const struct verdict_rows *rows, unsigned int i)
{
	return rows->bits[i / 64] >> i % 64 & 1;
}

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
	uint32_t io_workers;   /* so many of them read for it and, less, for others */
	uint32_t served;       /* the sessions with that statement for which they read */
	bool is_resync;	       /* it is the resynchronisation of an array */
	/* It is the copying for a snapshot, which has this volume; NULL: it is not. */
	const struct verdict_device *snapshot;
	uint32_t kernel_threads; /* it is so many, for programs that are not known */
	bool is_write_back;	 /* they wrote to files what had been dirtied before */
	bool leader_moved;	 /* the leader moved bytes, too, and not only its workers */
	enum verdict_by culprit_by;
	int32_t culprit_leader; /* the thread whose statement it runs, usually itself */
	uint64_t work_key; /* whoever has this verdict_work_key() is the culprit, too; 0: nobody */
	const struct verdict_who *writer_back; /* the kernel thread that did it for the culprit */
	struct verdict_who through; /* the same, where it is that of a journal; pid 0: it is not */
	bool by_counters;	    /* it is whoever moved as much before tracing began */
	uint32_t committers;	    /* the culprit is so many processes of that name */
	uint64_t attributed_ns;	    /* what is the culprit's of the time from before tracing */
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
	/* The mutex that it is about, or whose holder is concerned; NULL: there is none. */
	const struct verdict_kernel_lock *mutex;
	const struct verdict_finding
		*alternative; /* of the verdict: the next best one; NULL: none */
	uint32_t early;	      /* of those that waited before the incident, how many are concerned */
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

/* The last one always holds. At most VERDICT_HOST_RULES_MAX are about the host. */
#define VERDICT_HOST_RULES_MAX 24
extern const struct verdict_rule verdict_rules[];

/* locked.c */
/* Sessions wait for a lock, long enough to matter, and their holder does not wait for a disk. */
bool verdict_is_locked(const struct verdict_facts *f, enum verdict_wait *ret_wait);
void verdict_say_locked(const struct verdict_finding *v, struct text *t);
/*
 * Appends what the session that holds the lock did, and with_text what it and the first one in the
 * queue ran, which `message` must not have.
 */
void verdict_add_lock_statements(const struct verdict_queue *q, bool with_text, struct text *t);
void verdict_add_holder(struct text *t, const struct verdict_holder *h);
/* Says as the last clause of another verdict that sessions waited for a lock, too. */
void verdict_add_queue(const struct verdict_finding *v, struct text *t);
/* Whether there is such a clause, or a part. */
bool verdict_has_queue(const struct verdict_facts *f);

/* cpu.c */
/* The CPU limit of a control group with a watched process kept its threads from running. */
bool verdict_is_held_back(const struct verdict_facts *f, enum verdict_wait *ret_wait);
void verdict_say_cpu_limit(const struct verdict_finding *v, struct text *t);
/* If it is about that limit, how long it did; else 0. */
uint64_t verdict_held_back_ns(const struct verdict_finding *v);
/* Of class `cpu`: for how long. */
uint64_t verdict_cpu_ns(const struct verdict_finding *v);
/* Many times more threads could run than there are CPUs. */
bool verdict_is_short_of_cpus(const struct verdict_facts *f, enum verdict_wait *ret_wait);
void verdict_say_cpu_shortage(const struct verdict_finding *v, struct text *t);

/* stopped.c */
/* A watched process was stopped. */
bool verdict_is_stopped(const struct verdict_facts *f, enum verdict_wait *ret_wait);
/* Whether it is about that. */
bool verdict_is_about_stopped(const struct verdict_finding *v);
/* The time of all its threads. */
uint64_t verdict_stopped_ns(const struct verdict_facts *f);
void verdict_say_stopped(const struct verdict_finding *v, struct text *t);
void verdict_add_stopped(const struct verdict_stopped *s, struct text *t);

/* failed.c */
/* Operations failed, or the kernel logged an error of storage. */
bool verdict_has_failed(const struct verdict_facts *f, enum verdict_wait *ret_wait);
void verdict_say_failed(const struct verdict_finding *v, struct text *t);
/* The kernel killed a process for want of memory. */
bool verdict_is_killed(const struct verdict_facts *f, enum verdict_wait *ret_wait);
void verdict_say_killed(const struct verdict_finding *v, struct text *t);
/* The errors that the sentence is about; NULL: only the kernel's log has some. */
const struct verdict_error *verdict_find_main_error(const struct verdict_facts *f);
void verdict_add_error(const struct verdict_error *e, struct text *t);
void verdict_add_kernel_errors(const struct verdict_facts *f, struct text *t);

/* kernel_lock.c */
/*
 * The lock of the kernel that threads waited for most, if it is known who held it or that readers
 * did; NULL: there is none.
 */
const struct verdict_kernel_lock *verdict_find_lock(const struct verdict_facts *f);
/* Of class `locked`: whether it is about that lock, or about sessions of a database. */
bool verdict_is_kernel_lock(const struct verdict_finding *v);
bool verdict_is_queue(const struct verdict_finding *v);
/* Whether the thread waited for that lock. */
bool verdict_waits_for_lock(const struct verdict_finding *v, const struct verdict_waiter *w);
/* Whether it did while the holder waited for nothing, so that no device is behind it. */
bool verdict_holder_runs(const struct verdict_facts *f, const struct verdict_waiter *w);
void verdict_say_kernel_lock(const struct verdict_finding *v, struct text *t);
void verdict_add_lock_holder(const struct verdict_kernel_lock *l, struct text *t);

/*
 * The name of a system call in which a holder may be for long, whether it runs or sleeps; NULL:
 * another one.
 */
const char *verdict_syscall_name(int32_t number);

/* mutex.c */
/*
 * Whether its holder is known and does not sleep until there is work for it, as threads of a pool
 * do.
 */
bool verdict_mutex_matters(const struct record_lock_wait *lock);
/* Threads stood still at a mutex, and its holder waited for nothing that is traced. */
bool verdict_is_mutex_held(const struct verdict_facts *f, enum verdict_wait *ret_wait);
bool verdict_is_mutex(const struct verdict_finding *v);
/*
 * The mutex that it is about, or of which one of those concerned is the holder; NULL: there is
 * none.
 */
const struct verdict_kernel_lock *verdict_find_mutex(const struct verdict_finding *v);
/* Adds those that wait for it to the victims: they sleep in no operation that is traced. */
void verdict_add_behind_mutex(struct verdict_finding *v);
void verdict_say_mutex(const struct verdict_finding *v, struct text *t);
void verdict_add_mutex_waiters(const struct verdict_kernel_lock *l, struct text *t);
void verdict_add_mutex(const struct verdict_kernel_lock *l, struct text *t);
void verdict_add_mutex_holder(const struct verdict_kernel_lock *l, struct text *t);

/* memory.c */
/* Most of what the device moved had been evicted for want of memory, and not long ago. */
bool verdict_is_short_of_memory(const struct verdict_facts *f, const struct verdict_device *d);
void verdict_say_memory(const struct verdict_finding *v, struct text *t);
/* Threads waited for memory of their group, and no disk has to do with it. */
void verdict_say_group_memory(const struct verdict_finding *v, struct text *t);
/* All tasks waited for memory for much of the time, none of them for long. */
bool verdict_is_pressed_for_memory(const struct verdict_facts *f, enum verdict_wait *ret_wait);
void verdict_say_memory_pressure(const struct verdict_finding *v, struct text *t);
/* Whether it is that rule, which says itself who waited. */
bool verdict_is_group_memory(const struct verdict_finding *v);
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
/* Whether it is known that no device was at its limit. */
bool verdict_is_no_device_at_fault(const struct verdict_facts *f);
/* "4 threads waited up to 1.11 s" */
void verdict_add_victims(const struct verdict_finding *v, struct text *t);
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

/* verdict.c: how long its victims waited, with what is known about how likely it is. */
uint64_t verdict_cost_of(const struct verdict_finding *v);

/* Whether it takes much longer for each request than in its baseline minute, without more load. */
bool verdict_is_slower_than_before(const struct verdict_device *d, double requests, double bytes);
double verdict_times_slower(const struct verdict_device *d);
/* Whether nothing more can be written to the file system that opened the incident. */
bool verdict_is_quite_full(const struct verdict_facts *f);
/*
 * The limit of a control group that held back what was asked of the device or of one below it,
 * which were not busy themselves; NULL: there was none, or it may be one of several.
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
