/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What kernel threads do: the resync of an array, the copying for a snapshot, write-back. */
#include <string.h>

#include "verdict/culprit.h"
#include "verdict/devices.h"
#include "verdict/kernel_thread.h"
#include "verdict/writers.h"

#define SNAPSHOT_SUFFIX "-cow"

static const struct verdict_share *find_resync_share(const struct verdict_finding *v)
{
	for (uint32_t i = 0; i < v->f->shares_count; i++) {
		const struct verdict_share *share = &v->f->shares[i];

		if (verdict_is_on_device(v, share) && share->kernel &&
			verdict_is_resync(share->comm))
			return share;
	}
	return NULL;
}

/*
 * What the resynchronisation of an array did. A thread of the array writes for it, and what
 * programs write meanwhile, too.
 */
static struct verdict_load sum_resync(const struct verdict_finding *v)
{
	const struct verdict_share *resync = find_resync_share(v);
	struct verdict_load sum = { 0 };

	if (!resync)
		return sum;
	verdict_set_who(&sum.who, resync->tid, resync->tid, resync->comm);
	for (uint32_t i = 0; i < v->f->shares_count; i++) {
		const struct verdict_share *share = &v->f->shares[i];

		if (!verdict_is_on_device(v, share) || !share->kernel ||
			!verdict_is_same_array(share->comm, resync->comm))
			continue;
		verdict_add_share(&sum, share, 1);
		sum.uncertain |= share != resync;
	}
	return sum;
}

void verdict_find_resync(struct verdict_finding *v, double half_ns)
{
	const struct verdict_load sum = sum_resync(v);

	if (!verdict_has_half(&sum, half_ns))
		return;
	verdict_set_group(v, &sum, 0);
	v->is_resync = true;
	v->file = "";
}

/*
 * LVM keeps what a snapshot had in a volume of this name; a "-" in a name is "--". The one that was
 * written most: blocks are copied to it before they are overwritten.
 */
static const struct verdict_device *find_snapshot(const struct verdict_finding *v)
{
	const struct verdict_device *most = NULL;

	for (uint32_t i = 0; i < v->f->devices_count; i++) {
		const struct verdict_device *d = &v->f->devices[i];
		size_t length = strlen(d->label), suffix = strlen(SNAPSHOT_SUFFIX);

		if (d == v->device || length <= suffix || d->label[length - suffix - 1] == '-' ||
			strcmp(d->label + length - suffix, SNAPSHOT_SUFFIX) != 0 ||
			!verdict_stands_on(v->f, d, v->device))
			continue;
		if (d->since.write_bytes > (most ? most->since.write_bytes : 0))
			most = d;
	}
	return most;
}

void verdict_find_copying(struct verdict_finding *v, double half_ns)
{
	const struct verdict_device *snapshot = find_snapshot(v);
	struct verdict_load sum = { .uncertain = true };

	for (uint32_t i = 0; snapshot && i < v->f->shares_count; i++) {
		const struct verdict_share *share = &v->f->shares[i];

		if (!verdict_is_on_device(v, share) || !share->kernel ||
			!verdict_is_worker(share->comm))
			continue;
		if (sum.count == 0)
			verdict_set_who(&sum.who, share->tid, share->tid, share->comm);
		verdict_add_share(&sum, share, 1);
	}
	/* It is read and written. Workers that write a file write back what others dirtied. */
	if (!verdict_has_half(&sum, half_ns) || *v->file ||
		2 * snapshot->since.write_bytes < sum.bytes / 2)
		return;
	verdict_set_group(v, &sum, 0);
	v->snapshot = snapshot;
}

static bool has_written_file(const struct verdict_finding *v)
{
	for (uint32_t i = 0; i < v->f->files_count; i++)
		if (v->f->files[i].device == v->device - v->f->devices)
			return true;
	return false;
}

/*
 * Together, since the kernel divides the write-back of one file among several. Whatever a program
 * did meanwhile, it is not the largest where these did more.
 */
void verdict_find_write_back(struct verdict_finding *v)
{
	struct verdict_load sum = { .inferred = true };
	uint32_t threads = 0;

	for (uint32_t i = 0; i < v->f->shares_count; i++) {
		const struct verdict_share *share = &v->f->shares[i];

		if (!verdict_is_on_device(v, share) || !share->kernel ||
			!verdict_writes_back(share->comm))
			continue;
		if (threads++ == 0)
			verdict_set_who(&sum.who, share->pid, share->tid, share->comm);
		verdict_add_share(&sum, share, 1);
	}
	if (threads == 0 || sum.requests[VERDICT_READ] > sum.requests[VERDICT_WRITE] ||
		sum.busy_ns <= v->device->load[VERDICT_BY_PROGRAM].busy_ns)
		return;
	verdict_set_group(v, &sum, 0);
	v->culprit_by = VERDICT_BY_PROCESS;
	v->kernel_threads = threads;
	v->is_write_back = has_written_file(v);
}
