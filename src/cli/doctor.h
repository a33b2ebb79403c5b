/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What `iostall doctor` found so far, and the parts of it that look at databases.
 * Used by doctor.c and doctor_sql.c.
 * Never changes the host.
 */
#ifndef IOSTALL_CLI_DOCTOR_H
#define IOSTALL_CLI_DOCTOR_H

#include <stdio.h>

#include "cli/options.h"
#include "config.h"

struct sql;
struct watch_process;

enum doctor_verdict {
	WORKS,
	DEGRADED, /* less than could be; the rest works */
	FAILS,
};

/* All borrowed. */
struct doctor {
	const struct options *o;
	const struct config *config;
	FILE *out;
	unsigned int counts[3];
};

/* One finding: what was looked at, whether it works, and what to know or do about it. */
__attribute__((format(printf, 5, 6))) void doctor_report(struct doctor *d, const char *area,
	const char *name, enum doctor_verdict verdict, const char *format, ...);

/* As the daemon does it: a helper process for each target, and one question. Whether there is a target. */
bool doctor_check_sql(struct doctor *d);

/* One row for each server: its main process, and how many processes belong to it. */
void doctor_report_processes(
	struct doctor *d, const struct watch_process *processes, unsigned int count);

/* A target's run_as that is no user here. */
void doctor_report_user(struct doctor *d, const char *target, const char *run_as);

/* Targets that are switched off, and where none is configured, servers that run and have none in sql. */
void doctor_report_unasked(struct doctor *d, const struct sql *sql,
	const struct watch_process *processes, unsigned int count);

#endif
