/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The findings of `iostall doctor`.
 * Used by doctor.c and doctor_*.c.
 * Never leaves anything behind on the host.
 */
#ifndef IOSTALL_CLI_DOCTOR_H
#define IOSTALL_CLI_DOCTOR_H

#include <stdio.h>

#include "cli/options.h"
#include "config/config.h"

struct probe;
struct sql;
struct watch;
struct watch_process;

enum doctor_verdict {
	WORKS,
	DEGRADED, /* something is missing, the rest works */
	FAILS,
};

/* All borrowed. */
struct doctor {
	const struct options *o;
	const struct config *config;
	FILE *out;
	unsigned int counts[3];
};

/* Prints one finding: what was checked, whether it works, and what to know or do about it. */
__attribute__((format(printf, 5, 6))) void doctor_report(struct doctor *d, const char *area,
	const char *name, enum doctor_verdict verdict, const char *format, ...);

/*
 * Whether the kernel itself reports I/O pressure. `trigger` is what pressure_trigger_open() has
 * returned; it stays open.
 */
void doctor_report_pressure(struct doctor *d, int trigger);

/*
 * Each backend of a probe whose backends have all been tried, and why it cannot be used. `enabled`:
 * by the configuration.
 */
void doctor_report_probe(struct doctor *d, const struct probe *probe, bool enabled);

/* The files in /proc without which who is waited for is not known, if they cannot be read. */
void doctor_report_unreadable(struct doctor *d);

/*
 * Starts a helper process for each target, as the daemon does, and asks once. Returns whether there
 * is a target.
 */
bool doctor_check_sql(struct doctor *d);

/* The destinations of records. Returns whether an incident could be recorded. */
bool doctor_check_sinks(struct doctor *d);

/*
 * Reports the main process of each server and how many other processes it has. `left_out`:
 * processes that match and are not in the list.
 */
void doctor_report_processes(struct doctor *d, const struct watch_process *processes,
	unsigned int count, unsigned int left_out);

/* How many disks the rules judge, and those that do not count what they do. */
void doctor_report_disks(struct doctor *d, const struct watch *watch);

/* Reports a run_as that is not a user of this host; `answers`: the server does all the same. */
void doctor_report_user(struct doctor *d, const char *target, const char *run_as, bool answers);

/* Reports targets that are disabled, and running servers that are not asked. */
void doctor_report_unasked(struct doctor *d, const struct sql *sql,
	const struct watch_process *processes, unsigned int count);

#endif
