/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How long threads of an incident waited in some time, and which hang at its end, by what is kept
 * of each.
 * Used by the model, the verdict and the page.
 * Pure. Never adds a line: see model/waits.h.
 */
#ifndef IOSTALL_MODEL_WAIT_TIMES_H
#define IOSTALL_MODEL_WAIT_TIMES_H

#include "model/model.h"
#include "model/span.h"

/* Operations that have not returned by then, and for how long the longest of them has lasted. */
struct model_hanging {
	uint64_t count;
	uint64_t longest_ns;
};
/* group: index; -1: of all groups. One of whose return was missed is not among them. */
struct model_hanging model_waits_find_hanging(const struct model *model, int group,
	uint64_t now_ns);

/*
 * How long a thread waited in that time: the longest wait exactly, and the others as if they lay
 * evenly between the first and the last.
 */
uint64_t model_waits_in_ns(const struct model *model, const struct model_thread *thread,
	struct model_span span);
/* The same of its longest wait alone. */
uint64_t model_waits_longest_in_ns(const struct model *model, const struct model_thread *thread,
	struct model_span span);

#endif
