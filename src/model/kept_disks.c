/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/kept_disks.h"

#include <string.h>

#include "model/model.h"
#include "util/clock.h"
#include "util/disk_name.h"
#include "util/number.h"

/* What is lost without each */

/* Milliseconds: more than anybody waits. */
#define WORTH_OF_HUNG 1e12

double model_worth_of_work(double work_ns, bool is_before)
{
	return work_ns / NSEC_PER_MSEC - (is_before ? NSEC_PER_SEC : 0);
}

double model_worth_of_hang(uint64_t ns)
{
	return WORTH_OF_HUNG + (double)(ns / NSEC_PER_MSEC);
}

static double own_worth(const struct model_disk *d)
{
	const bool is_before = d->samples == 0 && !d->has_totals;

	if (d->no_completion_ns || d->suspended_ns)
		return model_worth_of_hang(d->no_completion_ns > d->suspended_ns
				? d->no_completion_ns
				: d->suspended_ns);
	return model_worth_of_work(is_before ? d->before.util_ns : (double)d->work_most_ns,
		is_before);
}

/*
 * Who waits for a disk waits for what that stands on, and the least that is below says why: it is
 * worth more than what stands on it, also when it is idle. False: there is no more to raise.
 */
static bool raise_lower(const struct model_disks *disks, double worth[static MODEL_DISKS_MAX])
{
	bool has_raised = false;

	for (uint32_t i = 0; i < disks->count; i++) {
		const char *below = model_disks_list_below(disks, disks->list[i].name);
		int lower;

		while (model_disks_next_below(disks, &below, &lower)) {
			if (lower < 0 || lower == (int)i || worth[lower] > worth[i])
				continue;
			worth[lower] = worth[i] + 1;
			has_raised = true;
		}
	}
	return has_raised;
}

/* A limit, an error, a journal or the full file system does. */
static bool is_named(const struct model_host *h, int disk)
{
	if (*h->full.mount && h->full.disk == disk)
		return true;
	for (unsigned int i = 0; i < MODEL_ERRORS_MAX; i++)
		if (h->errors[i].number && h->errors[i].disk == disk)
			return true;
	for (uint32_t i = 0; i < h->journals_count; i++)
		if (h->journals[i].disk == disk)
			return true;
	for (uint32_t i = 0; i < h->io_limits_count; i++)
		if (h->io_limits[i].disk == disk)
			return true;
	return false;
}

/*
 * What would be lost without each: a disk that hangs comes first, then one that the host names,
 * which are few; then it is how long threads waited for it, with the most that it worked in one
 * sample, in milliseconds.
 */
static void find_worth(const struct model *m, double worth[static MODEL_DISKS_MAX])
{
	for (uint32_t i = 0; i < m->disks.count; i++)
		worth[i] = own_worth(&m->disks.list[i]);
	for (uint32_t i = 0; i < m->waits.groups_count; i++) {
		const struct model_wait *w = &m->waits.groups[i];

		if (w->disk >= 0)
			worth[w->disk] = larger(worth[w->disk], 0) +
				(double)(model_wait_ns(w) / NSEC_PER_MSEC);
	}
	for (uint32_t i = 0; i < m->disks.count; i++)
		if (is_named(&m->host, (int)i) && worth[i] < MODEL_WORTH_NAMED)
			worth[i] = MODEL_WORTH_NAMED;
	for (unsigned int depth = 0; depth < MODEL_STACK_DEPTH_MAX; depth++)
		if (!raise_lower(&m->disks, worth))
			break;
}

/* Of those that are kept the one that a disk stands on; -1: none. */
static int find_lower(const struct model_disks *disks, const char *name)
{
	for (uint32_t i = 0; i < disks->count; i++)
		if (strcmp(disks->list[i].name, name) != 0 &&
			model_disks_name_is_on(disks, name, disks->list[i].name))
			return (int)i;
	return -1;
}

/* Another one gets the index; `to`: that of the disk it stands on, -1: none. */

static void move_disk(int *disk, int from, int to)
{
	*disk = *disk == from ? to : *disk;
}

static void move_in_host(struct model_host *h, int from, int to)
{
	move_disk(&h->full.disk, from, to);
	for (unsigned int i = 0; i < MODEL_ERRORS_MAX; i++)
		move_disk(&h->errors[i].disk, from, to);
	for (uint32_t i = 0; i < h->journals_count; i++)
		move_disk(&h->journals[i].disk, from, to);
	for (uint32_t i = h->io_limits_count; i-- > 0;) {
		move_disk(&h->io_limits[i].disk, from, to);
		if (h->io_limits[i].disk < 0)
			h->io_limits[i] = h->io_limits[--h->io_limits_count];
	}
}

static void move_in_waits(struct model_waits *waits, int from, int to)
{
	for (uint32_t i = 0; i < waits->groups_count; i++)
		move_disk(&waits->groups[i].disk, from, to);
}

static void forget_loads(struct model_loads *loads, int disk)
{
	for (uint32_t i = 0; i < loads->count; i++)
		if (loads->list[i].disk == disk) {
			loads->list[i] = loads->list[--loads->count];
			memset(&loads->list[loads->count], 0, sizeof(*loads->list));
			return;
		}
}

/* Who waited for it waited for what it stands on. */
static void forget(struct model *m, int disk)
{
	const int lower = find_lower(&m->disks, m->disks.list[disk].name);

	move_in_waits(&m->waits, disk, lower);
	move_in_host(&m->host, disk, lower);
	forget_loads(&m->loads, disk);
	m->disks.list[disk] = (struct model_disk){ .turn = m->disks.list[disk].turn + 1 };
}

/* The place for another one; -1: none is worth less. */
static int find_place(struct model *m, const char *name, double own)
{
	struct model_disks *disks = &m->disks;
	double worth[MODEL_DISKS_MAX];
	int least = 0;

	if (disks->count < MODEL_DISKS_MAX)
		return (int)disks->count++;
	find_worth(m, worth);
	for (uint32_t i = 0; i < disks->count; i++) {
		if (worth[i] >= own && model_disks_name_is_on(disks, disks->list[i].name, name))
			own = worth[i] + 1;
		if (worth[i] < worth[least])
			least = (int)i;
	}
	disks->left_out = true;
	disks->left_out_ms = larger(disks->left_out_ms, worth[least] >= own ? own : worth[least]);
	if (worth[least] >= own)
		return -1;
	forget(m, least);
	return least;
}

/* A partition that was noted by a wait for its files before there was a line about its disk. */
static int find_partition(const struct model_disks *disks, const char *name)
{
	for (uint32_t i = 0; i < disks->count; i++)
		if (!disks->list[i].is_sampled && !disks->list[i].has_totals &&
			disk_name_is_partition_of(disks->list[i].name, name))
			return (int)i;
	return -1;
}

/* Of a path of NVMe it is the disk that file systems are on. */
static void set_label(const struct model_disks *disks, struct model_disk *disk)
{
	disk_name_of_path(disk->name, disk->label, sizeof(disk->label));
	for (uint32_t i = 0; i < disks->stack_count; i++)
		if (strcmp(disks->stack[i].name, disk->name) == 0)
			text_copy(disk->label, sizeof(disk->label), disks->stack[i].label);
}

int model_disks_get(struct model *m, struct record_dev dev, const char *name, double worth)
{
	struct model_disks *disks = &m->disks;
	int i = model_disks_find_named(disks, dev, name);
	struct model_disk *disk;

	if (i < 0 && !model_has_number(dev) && !*name)
		return -1;
	if (i >= 0 && model_has_number(dev))
		disks->list[i].dev = dev;
	if (i >= 0 && (*disks->list[i].name || !*name))
		return i;
	if (i < 0)
		i = find_partition(disks, name);
	if (i < 0)
		i = find_place(m, name, worth);
	if (i < 0)
		return -1;
	disk = &disks->list[i];
	disk->dev = dev;
	text_copy(disk->name, sizeof(disk->name), name);
	set_label(disks, disk);
	return i;
}

int model_disks_get_of_fs(struct model *m, struct record_dev dev, const char *name, double worth_ms)
{
	struct model_disks *disks = &m->disks;
	int i = model_disks_find(disks, dev);

	for (uint32_t k = 0; i < 0 && k < disks->count; k++)
		if (disk_name_is_partition_of(name, disks->list[k].name) ||
			(dev.major == 0 && *name && strcmp(name, disks->list[k].name) == 0))
			i = (int)k;
	/*
	 * Anonymous devices have major 0. Those of btrfs and overlay have the name of a disk, which
	 * has a sample; those of FUSE and NFS that of a source.
	 */
	if (i < 0 && dev.major)
		i = model_disks_get(m, dev, name, worth_ms);
	return i < 0 && dev.major ? find_lower(disks, name) : i;
}
