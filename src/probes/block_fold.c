/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/block_fold.h"

#include <string.h>

#include "util/least.h"
#include "util/text.h"

static struct block_folded *find(struct block_fold *fold, const struct block_item *item)
{
	for (size_t i = 0; i < fold->count; i++) {
		const struct block_item *x = &fold->sums[i].item;

		if (x->dev == item->dev && x->pid == item->pid &&
			x->process_start_ns == item->process_start_ns &&
			x->cgroup_id == item->cgroup_id && x->owner == item->owner)
			return &fold->sums[i];
	}
	return NULL;
}

static void add_new(struct block_fold *fold, const struct block_item *item,
	const char *process_comm)
{
	struct block_folded *sum = &fold->sums[fold->count++];

	*sum = (struct block_folded){ .item = *item };
	sum->item.tid = 0;
	sum->item.start_ns = 0;
	text_copy(sum->process_comm, sizeof(sum->process_comm), process_comm);
}

/* False: there is no room. */
static bool add(struct block_fold *fold, const struct block_item *item, const char *process_comm)
{
	struct block_folded *sum = find(fold, item);

	if (sum)
		block_load_add(&sum->item.load, &item->load);
	else if (fold->count < BLOCK_FOLDED_MAX)
		add_new(fold, item, process_comm);
	else
		return false;
	return true;
}

static struct block_item without_process(const struct block_item *item)
{
	struct block_item group = *item;

	group.pid = 0;
	group.process_start_ns = 0;
	return group;
}

/* Of half of the sums. */
static void forget_processes(struct block_fold *fold)
{
	struct least least = { 0 };
	struct block_item group;

	for (size_t i = 0; i < fold->count; i++)
		least_note(&least, block_item_busy_ns(&fold->sums[i].item));
	least_cut(&least, fold->count / 2);
	/* What is taken off the end has had its turn, and so has what is added there. */
	for (size_t i = fold->count; i-- > 0;) {
		if (!least_takes(&least, block_item_busy_ns(&fold->sums[i].item)))
			continue;
		group = without_process(&fold->sums[i].item);
		fold->sums[i] = fold->sums[--fold->count];
		add(fold, &group, "");
	}
}

void block_fold_add(struct block_fold *fold, const struct block_item *item,
	const char *process_comm)
{
	struct block_item group = without_process(item);

	if (add(fold, item, process_comm))
		return;
	forget_processes(fold);
	/* More groups and disks than that: what the disks did in all says how much is missing. */
	if (!add(fold, item, process_comm))
		add(fold, &group, "");
}

size_t block_fold_append(const struct block_fold *fold, enum record_by by, struct block_item *items,
	size_t count)
{
	for (size_t i = 0; i < fold->count; i++)
		if (by == RECORD_BY_cgroup || (by == RECORD_BY_process && fold->sums[i].item.pid))
			items[count++] = fold->sums[i].item;
	return count;
}

const char *block_fold_find_name(const struct block_fold *fold, const struct block_item *item)
{
	for (size_t i = 0; i < fold->count; i++) {
		const struct block_item *x = &fold->sums[i].item;

		if (x->pid == item->pid && x->process_start_ns == item->process_start_ns)
			return fold->sums[i].process_comm;
	}
	return NULL;
}
