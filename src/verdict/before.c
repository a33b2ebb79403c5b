/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A freeze that was over when tracing began, or nearly so: who moved as much as the disk did, by
 * its own counters.
 */
#include <string.h>

#include "util/cleanup.h"
#include "verdict/culprit.h"
#include "verdict/devices.h"
#include "verdict/writers.h"

/* Whoever moved less in some seconds does not load a disk. */
#define LEAST_BYTES (256 << 10)

/* Reads or writes, whichever the disk did more of. */
static uint64_t bytes_of_device(const struct verdict_device *d, bool reads)
{
	return reads ? d->lead_read_bytes : d->lead_write_bytes;
}

/* Its counters are about all disks. */
static bool is_of_another_disk(const struct verdict_finding *v, uint64_t bytes, bool reads)
{
	for (uint32_t i = 0; i < v->f->devices_count; i++) {
		const struct verdict_device *other = &v->f->devices[i];

		if (verdict_stands_on(v->f, other, v->device) ||
			verdict_stands_on(v->f, v->device, other) ||
			strncmp(other->name, "zram", 4) == 0)
			continue;
		if (bytes_of_device(other, reads) >= bytes / 2)
			return true;
	}
	return false;
}

/* What was traced of the process. */
static void add_traced(const struct verdict_finding *v, struct verdict_load *sum)
{
	for (uint32_t i = 0; i < v->f->shares_count; i++) {
		const struct verdict_share *share = &v->f->shares[i];

		if (verdict_is_on_device(v, share) && !share->kernel && share->pid == sum->who.pid)
			verdict_add_share(sum, share, 1);
	}
}

void verdict_find_before(struct verdict_finding *v)
{
	const struct verdict_process_io *b = &v->f->before;
	const struct verdict_device *d = v->device;
	const bool reads = d->lead_read_bytes >= d->lead_write_bytes;
	const uint64_t moved = bytes_of_device(d, reads);
	const uint64_t own = reads ? b->read_bytes : b->write_bytes;
	const double unseen_ns = v->work_ns - (double)d->traced_ns;
	struct verdict_load sum = { .who = b->who, .uncertain = true };
	double part;

	if (!b->who.pid || unseen_ns < v->work_ns / 2 || own < LEAST_BYTES || own < moved / 2 ||
		is_of_another_disk(v, own, reads))
		return;
	part = own < moved ? (double)own / (double)moved : 1;
	add_traced(v, &sum);
	sum.count = 1;
	sum.busy_ns += (uint64_t)(unseen_ns * part);
	sum.bytes += own;
	verdict_drop_culprit(v);
	v->group = sum;
	v->attributed_ns = (uint64_t)unseen_ns;
	v->by_counters = true;
	v->culprit = &v->group;
	v->culprit_by = VERDICT_BY_PROCESS;
}
