/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What was wrong with a disk, if anything.
 * Used by the graph and by the sentences.
 * Never says who did it.
 */
#ifndef IOSTALL_VERDICT_CONDITION_H
#define IOSTALL_VERDICT_CONDITION_H

#include "model/model.h"

/* Of several that hold for a disk, or for those that stand on one another, the first one counts. */
enum condition {
	CONDITION_HUNG,	     /* it completed nothing */
	CONDITION_SUSPENDED, /* the device mapper held its requests back */
	CONDITION_MEMORY,    /* most of what it moved had been evicted for want of memory */
	CONDITION_LIMITED,   /* a limit of a control group held its requests back */
	CONDITION_SLOW,	     /* it took long, with little to do */
	CONDITION_SATURATED, /* it was at its limit */
	CONDITION_AT_TIMES,  /* it took long for some requests */
	CONDITION_DELAYED,   /* requests took long before they reached its queue */
	CONDITION_NONE,
};

enum condition condition_of(const struct model *model, int disk);
/*
 * The disk that is at fault where threads wait for this one: itself, or one of those that it stands
 * on or that stand on it. `conditions` are those of all disks.
 */
int condition_fold(const struct model *model, const enum condition *conditions, int disk);
/* Whether any disk hangs, is slow or is at its limit. */
bool condition_is_any(const struct model *model);

/* Whether it takes much longer for each request than before, without more to do. */
bool condition_is_slower_than_before(const struct model_disk *disk);
double condition_times_slower(const struct model_disk *disk);
/* How long threads waited for the disk, added up, and the longest of them. */
uint64_t condition_waited_ns(const struct model *model, int disk, uint64_t *ret_longest_ns);
/*
 * The limit that held back what was asked of the disk or of one below it; NULL: there was none, or
 * it may be one of several.
 */
const struct model_io_limit *condition_find_io_limit(const struct model *model, int disk);
/* Whose memory was short, with what it read and swapped; path "" of the host. */
bool condition_find_memory(const struct model *model, int disk, struct model_memory *ret_memory);
/* Whether the host evicted for itself, and not a control group at its limit. */
bool condition_host_evicted(const struct model *model);
/* Of what the disk moved, the part that had been evicted, in percent. */
double condition_evicted_pct(const struct model *model, int disk,
	const struct model_memory *memory);

#endif
