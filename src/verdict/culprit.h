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
/*
 * committer.c: makes whoever has the journal committed the culprit, with what the kernel did for
 * that, however much it is.
 */
void verdict_find_committer(struct verdict_finding *v);

/*
 * before.c: the same of whoever moved at least half as much as the device in the seconds before
 * tracing began, if most of the device's time is not known.
 */
void verdict_find_before(struct verdict_finding *v);

/*
 * kernel_work.c: the same of the resync of an array or of the copying for a snapshot, if that has
 * at least half_ns; and of kernel threads that wrote back more than any program sent.
 */
void verdict_find_resync(struct verdict_finding *v, double half_ns);
void verdict_find_copying(struct verdict_finding *v, double half_ns);
void verdict_find_write_back(struct verdict_finding *v);

/* Who took at least half_ns of a device's time is blamed alone. */
bool verdict_has_half(const struct verdict_load *load, double half_ns);
/* Forgets the culprit and all that is known of it, before another one is set. */
void verdict_drop_culprit(struct verdict_finding *v);
/* Makes threads together the culprit; `shares` are bits of the facts' shares. */
void verdict_set_group(struct verdict_finding *v, const struct verdict_load *group,
	uint64_t shares);

/* Whether the thread is the culprit, one of its group, or runs the same statement. */
bool verdict_is_culprit(const struct verdict_finding *v, const struct verdict_sql *sql,
	const struct verdict_waiter *w);

#endif
