/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The thresholds over the watchdog's samples: what fires, what is still going on.
 * Owned by whoever owns the watchdog; asked once after each sample.
 * Never reads a file, never decides what a firing leads to.
 */
#ifndef IOSTALL_WATCH_RULES_H
#define IOSTALL_WATCH_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config.h"
#include "watch/sample.h"
#include "watch/watch.h"

/*
 * What a rule is about. Hosts, devices and processes: it fires again when what it saw outlasts the
 * incident. The others last for hours without harm: they fire once until they are clear.
 */
enum rules_scope {
	RULES_SCOPE_host,
	RULES_SCOPE_device,
	RULES_SCOPE_process,
	/* These two do not keep an incident open either: no other one would end before its time. */
	RULES_SCOPE_filesystem,
	RULES_SCOPE_cgroup,
	RULES_SCOPE_service,
	RULES_SCOPE_database,
};

struct rules;

struct rules_firing {
	enum config_rule_name rule;
	const char *name; /* static */
	const char *unit; /* static: "%", "ms" ... */
	enum rules_scope scope;
	char device[WATCH_DISK_NAME_SIZE]; /* empty when the rule is not about a device */
	/* What else the rule is about: a mount point, a cgroup, the worst of the databases; empty: nothing. */
	char subject[WATCH_SUBJECT_SIZE];
	int32_t pid; /* the longest blocked thread when the rule is about processes, else 0 */
	int32_t tid;
	double value;
	double threshold; /* the set threshold it is over */
};

const char *rules_name(enum config_rule_name rule);
const char *rules_unit(enum config_rule_name rule);
/* The file below /proc that it stands on; "": none. */
const char *rules_source(enum config_rule_name rule);
enum rules_scope rules_scope(enum config_rule_name rule);

/* The table of the configuration is copied. 0 or -ENOMEM. */
int rules_new(const struct config_rule config[static CONFIG_RULE_COUNT], struct rules **ret_rules);
struct rules *rules_free(struct rules *rules);

/* Other thresholds; what is active stays so until it is under the new clear threshold. */
void rules_reload(struct rules *rules, const struct config_rule config[static CONFIG_RULE_COUNT]);

/*
 * Judges the newest sample; call it once for each. A rule fires when its value was over `set` in
 * `hold` samples in a row, for each subject on its own, and unless its scope fires once, again after
 * each cooldown while it stays over. A value that is not known (NAN) changes nothing, but for a
 * service: what cannot be asked is not active. Returns how many fired; those beyond max fire at the
 * next sample.
 */
size_t rules_evaluate(struct rules *rules, const struct watch *watch, uint64_t now_ns,
	struct rules_firing *ret_firings, size_t max);

/* How many have fired and are not under their clear threshold yet, each subject on its own. */
unsigned int rules_active(const struct rules *rules);

/* Of them those that keep an incident open; 0: it is over. */
unsigned int rules_holding(const struct rules *rules);

/* Whether a rule over databases is over its threshold, be it not yet for long enough, or not clear yet. */
bool rules_doubt_database(const struct rules *rules);

/*
 * One of them as if it fired now, for what outlasts an incident and its cooldown, and for what fired
 * when none could be opened; false: none is. What fires once is passed over when it has been settled.
 */
bool rules_first_active(const struct rules *rules, const struct watch *watch,
	struct rules_firing *ret_firing);

/* What is active now is in a record: rules that fire once are not told of again until they are clear. */
void rules_settle(struct rules *rules);

#endif
