/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/disks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/disk_name.h"
#include "util/number.h"

/* Names */

/* The next name of a list, one a line; false: there are no more. */
static bool next_name(const char **list, char name[static RECORD_DISK_NAME_SIZE])
{
	size_t len = strcspn(*list, "\n");

	if (len == 0)
		return false;
	snprintf(name, RECORD_DISK_NAME_SIZE, "%.*s", (int)len, *list);
	*list += len + ((*list)[len] == '\n');
	return true;
}

const char *model_disks_list_below(const struct model_disks *disks, const char *upper)
{
	for (uint32_t i = 0; i < disks->stack_count; i++)
		if (strcmp(disks->stack[i].name, upper) == 0 ||
			disk_name_is_partition_of(upper, disks->stack[i].name))
			return disks->stack[i].below;
	return "";
}

/* Which disk */

int model_disks_find(const struct model_disks *disks, struct record_dev dev)
{
	for (uint32_t i = 0; i < disks->count && model_has_number(dev); i++)
		if (record_dev_is_same(disks->list[i].dev, dev))
			return (int)i;
	return -1;
}

/*
 * Samples of 5.10 have no number of a disk that is hidden, such as a path of NVMe; lines of the
 * block probe have.
 */
static int find_without_number(const struct model_disks *disks, struct record_dev dev,
	const char *name)
{
	for (uint32_t i = 0; i < disks->count && *name; i++)
		if (strcmp(disks->list[i].name, name) == 0 &&
			(!model_has_number(dev) || !model_has_number(disks->list[i].dev)))
			return (int)i;
	return -1;
}

int model_disks_find_named(const struct model_disks *disks, struct record_dev dev, const char *name)
{
	int i = model_disks_find(disks, dev);

	return i >= 0 ? i : find_without_number(disks, dev, name);
}

/* The disk of that name, or that has a partition of that name. */
static int find_name(const struct model_disks *disks, const char *name)
{
	for (uint32_t i = 0; i < disks->count; i++)
		if (strcmp(disks->list[i].name, name) == 0 ||
			disk_name_is_partition_of(name, disks->list[i].name))
			return (int)i;
	return -1;
}

/* What stands on what */

bool model_disks_next_below(const struct model_disks *disks, const char **list, int *ret_disk)
{
	char name[RECORD_DISK_NAME_SIZE];

	if (!next_name(list, name))
		return false;
	*ret_disk = find_name(disks, name);
	return true;
}

/* Whether a list has the disk, or a partition of it. */
static bool is_in_list(const char *names, const char *disk)
{
	char name[RECORD_DISK_NAME_SIZE];

	while (next_name(&names, name))
		if (strcmp(name, disk) == 0 || disk_name_is_partition_of(name, disk))
			return true;
	return false;
}

bool model_disks_is_below_any(const struct model_disks *disks, const char *disk)
{
	for (uint32_t i = 0; i < disks->stack_count; i++)
		if (is_in_list(disks->stack[i].below, disk))
			return true;
	return false;
}

void model_disks_note_below(struct model_disks *disks, const char *name, const char *label,
	const char *below)
{
	struct model_stack *s = disks->stack;

	while (s < disks->stack + disks->stack_count && strcmp(s->name, name) != 0)
		s++;
	if (!*below || s == disks->stack + MODEL_STACK_MAX)
		return;
	if (s == disks->stack + disks->stack_count)
		disks->stack_count++;
	text_copy(s->name, sizeof(s->name), name);
	text_copy(s->below, sizeof(s->below), below);
	/* Half a name would be that of another disk. */
	if (strlen(below) >= sizeof(s->below))
		s->below[strrchr(s->below, '\n') ? strrchr(s->below, '\n') - s->below : 0] = '\0';
	if (*label)
		text_copy(s->label, sizeof(s->label), label);
}

/* `depth` ends it where a list of names makes no sense. */
static bool name_is_on(const struct model_disks *disks, const char *upper, const char *lower,
	unsigned int depth)
{
	const char *below = model_disks_list_below(disks, upper);
	char name[RECORD_DISK_NAME_SIZE];

	if (disk_name_is_on(upper, lower))
		return true;
	while (depth > 0 && next_name(&below, name))
		if (name_is_on(disks, name, lower, depth - 1))
			return true;
	return false;
}

bool model_disks_name_is_on(const struct model_disks *disks, const char *upper, const char *lower)
{
	return name_is_on(disks, upper, lower, MODEL_STACK_DEPTH_MAX);
}

bool model_disks_is_on(const struct model_disks *disks, int upper, int lower)
{
	return upper == lower ||
		model_disks_name_is_on(disks, disks->list[upper].name, disks->list[lower].name);
}

int model_disks_find_below(const struct model_disks *disks, int disk, uint32_t samples)
{
	const char *names = model_disks_list_below(disks, disks->list[disk].name);
	int below, busiest = -1;

	while (model_disks_next_below(disks, &names, &below)) {
		if (below < 0 || disks->list[below].samples < samples)
			return -1;
		if (busiest < 0 ||
			model_disk_util_pct(&disks->list[below]) >
				model_disk_util_pct(&disks->list[busiest]))
			busiest = below;
	}
	return busiest;
}

/* Figures */

static uint64_t sum(const uint64_t values[static MODEL_KINDS])
{
	uint64_t total = 0;

	for (unsigned int i = 0; i < MODEL_KINDS; i++)
		total += values[i];
	return total;
}

uint64_t model_work_requests(const struct model_work *work)
{
	return sum(work->requests);
}

uint64_t model_work_bytes(const struct model_work *work)
{
	return sum(work->bytes);
}

double model_disk_util_pct(const struct model_disk *d)
{
	return larger(d->util_max_pct, d->left_out_max_pct);
}

enum model_kind model_disk_main_kind(const struct model_disk *d)
{
	enum model_kind most = MODEL_READ;

	for (enum model_kind kind = 0; kind < MODEL_KINDS; kind++)
		if (d->busy.ticks_ns[kind] > d->busy.ticks_ns[most])
			most = kind;
	return most;
}

double model_disk_await_ms(const struct model_disk *d, enum model_kind kind)
{
	uint64_t requests = d->busy.requests[kind];

	return requests ? (double)d->busy.ticks_ns[kind] / (double)requests / NSEC_PER_MSEC : NAN;
}

double model_disk_await_max_ms(const struct model_disk *d)
{
	return larger(d->read_await_max_ms, d->write_await_max_ms);
}

double model_disk_queue(const struct model_disk *d)
{
	return d->busy.ns > 0 ? d->busy.queue_ns / (double)d->busy.ns : NAN;
}

void model_disk_rates(const struct model_disk *d, double *ret_requests, double *ret_bytes)
{
	double busy_s = (double)d->busy.ns / NSEC_PER_SEC,
	       all_s = (double)d->work_ns / NSEC_PER_SEC;

	*ret_requests = busy_s > 0 ? (double)model_work_requests(&d->busy) / busy_s : 0;
	*ret_bytes = busy_s > 0 ? (double)model_work_bytes(&d->busy) / busy_s : 0;
	/*
	 * The probe counts exactly, but only since it was armed. The larger value is closer to the
	 * truth.
	 */
	if (!d->has_totals || !(all_s > 0))
		return;
	*ret_requests = larger(*ret_requests, (double)d->requests / all_s);
	*ret_bytes = larger(*ret_bytes, (double)(d->read_bytes + d->write_bytes) / all_s);
}

double model_disk_work_ns(const struct model_disk *d)
{
	return larger(d->busy.util_ns, (double)d->traced_ns + (double)d->untraced_ns);
}
