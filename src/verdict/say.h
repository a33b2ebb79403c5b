/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Words that the sentence and the parts of a verdict share.
 * Used by say.c and parts.c only.
 * Never decides anything.
 */
#ifndef IOSTALL_VERDICT_SAY_H
#define IOSTALL_VERDICT_SAY_H

#include "verdict/rules.h"

void verdict_add_pct(struct text *t, double pct);
void verdict_add_who(struct text *t, const struct verdict_who *who);

void verdict_add_device(struct text *t, const struct verdict_device *d);
/* NAN: not known. */
double verdict_queue_of(const struct verdict_device *d);
double verdict_await_of(const struct verdict_device *d);
void verdict_add_figures(struct text *t, const struct verdict_device *d);

void verdict_add_culprit(const struct verdict_finding *v, struct text *t);
void verdict_add_statement(struct text *t, const struct verdict_statement *s, bool with_text);
uint64_t verdict_start_error_ns(const struct verdict_statement *s);
/* "main (mariadbd pid 31863) has not answered for 10.30 s, it is stopped" */
void verdict_add_silence(const struct verdict_database *d, struct text *t);
/* What a verdict would need. */
void verdict_add_missing(const struct verdict_facts *f, struct text *t);

/* parts.c; statement: the culprit's, NULL: not known. */
void verdict_add_parts(const struct verdict_finding *v, const struct verdict_sql *sql,
	const struct verdict_statement *statement, struct record_verdict *ret_verdict);

#endif
