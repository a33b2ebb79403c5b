/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An incident, folded from the lines of its record, in fixed memory.
 * The session adds each line that it writes, in the form that the record has it, and whoever reads
 * a record adds it later: what both make of it is the same.
 * Pure. Never allocates; what does not fit is counted.
 */
#ifndef IOSTALL_MODEL_MODEL_H
#define IOSTALL_MODEL_MODEL_H

#include "model/disks.h"
#include "model/host.h"
#include "model/loads.h"
#include "model/sessions.h"
#include "model/thresholds.h"
#include "model/waits.h"
#include "util/clock.h"
#include "util/number.h"

struct model {
	struct record_trigger trigger; /* rule "": no `open` line so far */
	uint64_t trigger_ns;	       /* CLOCK_MONOTONIC */
	uint64_t armed_ns;
	uint64_t now_ns; /* of the last line */
	uint64_t min_stall_ns;
	uint64_t well_ns; /* what hung before that did so while the host was well; 0: nothing did */
	uint32_t samples; /* since MODEL_LEAD_NS before the trigger */
	struct model_disks disks;
	struct model_loads loads;
	struct model_waits waits;
	struct model_sessions sessions;
	struct model_host host;
};

/* From when on waits are counted. */
static inline uint64_t model_counted_from_ns(const struct model *m)
{
	return minus(m->trigger_ns, MODEL_LEAD_NS);
}

void model_begin(struct model *model);
/* Lines that say nothing of it are ignored. */
void model_add(struct model *model, const struct record *line);

#endif
