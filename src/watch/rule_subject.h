/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a rule is about, in the newest sample: a disk, a file system, the host; and the value that
 * it has there.
 * Used by rules.c only.
 * Pure. Never compares with a threshold, and has no state.
 */
#ifndef IOSTALL_WATCH_RULE_SUBJECT_H
#define IOSTALL_WATCH_RULE_SUBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "watch/rules.h"

/* The newest sample and, by the scope of the rule, one thing in it; the others are NULL. */
struct rule_subject {
	const struct record_reading *sample;
	bool has_threads; /* see watch_has_threads() */
	double io_pct;	  /* see watch_io_pct() */
	const struct record_disk *disk;
	const struct record_file_system *filesystem;
	const struct record_cgroup *cgroup;
	const struct record_cpu_limited *cpu_limit;
	const struct record_stopped *stopped;
	const char *service;
	const struct watch_sql_targets *targets;
	const struct watch_kernel_errors *errors;
};

/*
 * The subject in a slot, once there is a sample; false: the slot is free. The serial changes when
 * another subject takes the slot. Scopes with a single subject always have it.
 */
bool rule_subject_get(const struct watch *watch, enum rules_scope scope, unsigned int slot,
	struct rule_subject *ret_subject, uint32_t *ret_serial);

/* NAN: unknown. False: the rule must not fire, whatever the value. */
bool rule_subject_value(const struct rule_subject *subject, enum config_rule_name rule,
	double *ret_value);

/* Sets device, subject and thread of a firing whose rule and scope are set. */
void rule_subject_describe(const struct rule_subject *subject, struct rules_firing *firing);

#endif
