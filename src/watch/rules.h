/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compares the watchdog's samples with thresholds: which rules fire, and which are still active.
 * Owned by the daemon, which evaluates them after each sample; doctor reads the table.
 * Never reads a file, never decides what happens when a rule fires.
 */
#ifndef IOSTALL_WATCH_RULES_H
#define IOSTALL_WATCH_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "record/structs.h"
#include "watch/watch.h"

/*
 * What a rule is about. Rules about hosts, devices and processes fire again when the trouble
 * outlasts the incident. The others may last for hours without harm, so they fire once until they
 * are clear.
 */
enum rules_scope {
	RULES_SCOPE_host,
	RULES_SCOPE_device,
	RULES_SCOPE_process,
	/* Threads that wait for each other may do so for ever. */
	RULES_SCOPE_program,
	RULES_SCOPE_lock,
	/* So may a process that is stopped. */
	RULES_SCOPE_stopped,
	/* These two do not keep an incident open either: it would last until its maximum time. */
	RULES_SCOPE_filesystem,
	RULES_SCOPE_cgroup,
	/* A control group that may use too little of the CPUs may do so for ever. */
	RULES_SCOPE_cpu_limit,
	/* Neither does this one: a disk that fails may log errors for hours. */
	RULES_SCOPE_kernel_log,
	RULES_SCOPE_service,
	RULES_SCOPE_database,
};

struct rules;

struct rules_firing {
	enum config_rule_name rule;
	const char *name; /* static */
	const char *unit; /* static: "%", "ms" ... */
	enum rules_scope scope;
	char device[RECORD_DISK_NAME_SIZE]; /* empty when the rule is not about a device */
	/*
	 * A program, a mount point, a cgroup, a service, or the worst of the databases; empty: none
	 * of them.
	 */
	char subject[RECORD_SUBJECT_SIZE];
	int32_t pid; /* the longest blocked thread, or the holder of a mutex, else 0 */
	int32_t tid;
	double value;
	double threshold; /* the set threshold that the value is over */
	/*
	 * The incident that has the beginning of this: the rule has been active for it all the time
	 * since. Empty: none has.
	 */
	char continues[RECORD_ID_SIZE];
	uint32_t incidents; /* how many have recorded it by then */
};

const char *rules_name(enum config_rule_name rule);
const char *rules_unit(enum config_rule_name rule);
/* The file that the rule needs, below /proc unless it begins with a slash; "": none. */
const char *rules_source(enum config_rule_name rule);
enum rules_scope rules_scope(enum config_rule_name rule);

/* The table of the configuration is copied. 0 or -ENOMEM. */
int rules_new(const struct config_rule config[static CONFIG_RULE_COUNT], struct rules **ret_rules);
struct rules *rules_free(struct rules *rules);

/* Sets other thresholds. What is active stays active until it is under the new clear threshold. */
void rules_reload(struct rules *rules, const struct config_rule config[static CONFIG_RULE_COUNT]);

/*
 * Evaluates the newest sample; call it once for each sample. A rule fires when its value was over
 * `set` in `hold` samples in a row. Each subject (each disk, each file system) is evaluated by
 * itself. While the value stays over the threshold, the rule fires again after each cooldown,
 * unless its scope fires once. An unknown value (NAN) changes nothing, so that a rule about
 * databases holds over answers, however far apart they are; only a rule about a service is not
 * active any more then. Returns how many fired. Those that do not fit into max fire at the
 * next sample.
 */
size_t rules_evaluate(struct rules *rules, const struct watch *watch, uint64_t now_ns,
	struct rules_firing *ret_firings, size_t max);

/*
 * The kernel reported that all tasks waited for I/O in PRESSURE_TRIGGER_PCT of half a second. That
 * is the value of psi_io_full in the next evaluation, which does not wait for `hold` samples. The
 * sample may be over a longer time, in which the share is smaller. False: that changes nothing, as
 * when the rule is active already; a sample for each report would take the place of the others.
 */
bool rules_report_pressure(struct rules *rules);

/* The largest of the last values of its subjects; not a number: none is known. */
double rules_value(const struct rules *rules, enum config_rule_name rule);

/* For how many of its subjects it has fired and is not under its clear threshold yet. */
unsigned int rules_active_subjects(const struct rules *rules, enum config_rule_name rule);
/* The sum over all rules. */
unsigned int rules_active(const struct rules *rules);

/* How many of those keep an incident open; 0: it is over. */
unsigned int rules_holding(const struct rules *rules);

/* Whether a rule about databases is active, or over its threshold but not yet for long enough. */
bool rules_doubt_database(const struct rules *rules);

/*
 * Whether an incident may open for it, when none has been open for so long: trouble that has been
 * recorded waits longer than the cooldown, each time twice as long, up to an hour.
 */
bool rules_is_due(const struct rules_firing *firing, uint64_t rested_ns, uint64_t cooldown_ns);

/*
 * Returns one active rule that is due as if it fired now. It is for trouble that outlasts an
 * incident and its cooldown, or that began when no incident could be opened. False: there is none.
 * Rules that fire once are skipped when they have been acknowledged.
 */
bool rules_first_active(const struct rules *rules, const struct watch *watch, uint64_t rested_ns,
	uint64_t cooldown_ns, struct rules_firing *ret_firing);

/*
 * Call it with each sample that an incident has recorded, with its id: rules that fire once do not
 * fire again until they are clear, and what is active now has its beginning in that incident, or in
 * an earlier one.
 */
void rules_acknowledge(struct rules *rules, const struct watch *watch, const char *incident);

#endif
