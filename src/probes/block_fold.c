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
			x->cgroup_id == item->cgroup_id && x->owner == item->owner &&
			x->statement.key == item->statement.key)
			return &fold->sums[i];
	}
	return NULL;
}

static struct block_folded *add_new(struct block_fold *fold, const struct block_item *item)
{
	struct block_folded *sum = &fold->sums[fold->count++];

	*sum = (struct block_folded){ .item = *item };
	sum->item.tid = BLOCK_NO_TID;
	sum->item.start_ns = 0;
	sum->item.load = (struct event_block_load){ 0 };
	return sum;
}

/* False: there is no room. */
static bool add(struct block_fold *fold, const struct block_item *item, const char *process_comm)
{
	struct block_folded *sum = find(fold, item);

	if (!sum && fold->count == BLOCK_FOLDED_MAX)
		return false;
	if (!sum)
		sum = add_new(fold, item);
	block_load_add(&sum->item.load, &item->load);
	/* It may have executed another program since. */
	text_copy(sum->process_comm, sizeof(sum->process_comm), process_comm);
	return true;
}

static struct block_item without_process(const struct block_item *item)
{
	struct block_item group = *item;

	group.pid = 0;
	group.process_start_ns = 0;
	group.statement = (struct probe_statement){ 0 };
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
	/* More groups and disks than that leave no room the next time, either. */
	if (!fold->is_full)
		forget_processes(fold);
	fold->is_full = fold->count == BLOCK_FOLDED_MAX;
	/* What finds no room is missing from sums, and not from what the disk did. */
	if (!add(fold, item, process_comm))
		add(fold, &group, "");
}

static bool is_of_kind(const struct block_item *item, enum record_by by)
{
	switch (by) {
	case RECORD_BY_cgroup:
		return true;
	case RECORD_BY_process:
		return item->pid > 0;
	case RECORD_BY_statement:
		return item->statement.key > 0;
	default:
		return false;
	}
}

size_t block_fold_append(const struct block_fold *fold, enum record_by by, struct block_item *items,
	size_t count)
{
	for (size_t i = 0; i < fold->count; i++)
		if (is_of_kind(&fold->sums[i].item, by))
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
