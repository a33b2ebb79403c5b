/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who loaded a device.
 * Used by verdict.c only.
 * Never makes a culprit of anybody with less than half: then it only says who was the largest.
 */
#ifndef IOSTALL_VERDICT_CULPRIT_H
#define IOSTALL_VERDICT_CULPRIT_H

#include "verdict/rules.h"

/* Fills in everything about the culprit; v->device is set. */
void verdict_find_culprit(struct verdict_finding *v, const struct verdict_sql *sql);
/* Whether the thread is the culprit, one of its group, or runs the same statement. */
bool verdict_is_culprit(const struct verdict_finding *v, const struct verdict_sql *sql,
	const struct verdict_waiter *w);

#endif
