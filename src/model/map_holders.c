/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/map_holders.h"

#include "enrich/waits.h"

void model_map_holders_add(struct model_map_holders *holders, const struct record_operation *op)
{
	struct model_map_holder *h = holders->list;

	if (op->waits_for == RECORD_CAUSE_memory_map_lock || !waits_holds_map(op->kstack))
		return;
	while (h < holders->list + MODEL_MAP_HOLDERS_MAX && h->who.pid && h->who.pid != op->pid)
		h++;
	if (h == holders->list + MODEL_MAP_HOLDERS_MAX || op->dur_ns <= h->longest_ns)
		return;
	h->who = model_who_of(op->pid, op->tid, op->comm);
	h->longest_ns = op->dur_ns;
	h->span = (struct model_span){ op->start_mono_ns, op->start_mono_ns + op->dur_ns };
	h->cause = op->waits_for;
	waits_in(op->kstack, h->function, sizeof(h->function));
}

const struct model_map_holder *model_map_holders_find(const struct model_map_holders *holders,
	int32_t pid)
{
	for (unsigned int i = 0; i < MODEL_MAP_HOLDERS_MAX; i++)
		if (holders->list[i].who.pid == pid)
			return &holders->list[i];
	return NULL;
}
