/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "verdict/others.h"

#include "verdict/words.h"
#include "verdict/writers.h"

/* Who had less is no answer to who else it was. */
#define OTHERS_PCT 15

/* Whether the culprit, which may stand for several threads, is the process or part of it. */
static bool is_culprit(const struct verdict_finding *v, int32_t pid)
{
	for (uint32_t i = 0; i < v->f->shares_count; i++)
		if ((v->group_shares >> i & 1) != 0 && v->f->shares[i].pid == pid)
			return true;
	return v->culprit->who.pid == pid;
}

void verdict_add_others(const struct verdict_finding *v, struct text *t)
{
	const char *before = "; next came ";

	/* Which processes are of a unit is not among the facts. */
	if (verdict_culprit_has_half(v) || !verdict_is_named(v) || v->culprit_by == VERDICT_BY_UNIT)
		return;
	for (uint32_t i = 0; i < v->device->processes_count; i++) {
		const struct verdict_process *process = &v->device->processes[i];
		double pct = 100 * (double)process->busy_ns / v->work_ns;
		struct verdict_who who;

		if (pct < OTHERS_PCT || is_culprit(v, process->pid))
			continue;
		verdict_set_who(&who, process->pid, process->pid, process->comm);
		text_add(t, before);
		verdict_add_who(t, &who);
		text_add(t, " with ");
		verdict_add_pct(t, pct);
		before = " and ";
	}
}
