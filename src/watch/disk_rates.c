/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/disk_rates.h"
#include "util/disk_name.h"

#define NSEC_PER_MSEC_REAL 1e6

static uint64_t sum(const uint64_t *values)
{
	uint64_t total = 0;

	for (unsigned int i = 0; i < WATCH_DISKSTATS_GROUPS; i++)
		total += values[i];
	return total;
}

/*
 * Milliseconds are printed as 32 bits and wrap around. A value that is less than before has wrapped
 * if the difference modulo 2^32 is small. Otherwise the kernel added up the counters of its CPUs
 * while they changed, and 0 is the best answer.
 */
static uint64_t delta_ms(uint64_t now, uint64_t before)
{
	uint32_t wrapped;

	if (now >= before)
		return now - before;
	if (before > UINT32_MAX)
		return 0;
	wrapped = (uint32_t)now - (uint32_t)before;
	return wrapped <= INT32_MAX ? wrapped : 0;
}

bool disk_rates_went_back(const struct watch_diskstats *now, const struct watch_diskstats *before)
{
	for (unsigned int i = 0; i < WATCH_DISKSTATS_GROUPS; i++)
		if (now->ios[i] < before->ios[i] || now->sectors[i] < before->sectors[i])
			return true;
	return false;
}

static double mean_await_ms(const struct watch_diskstats *now, const struct watch_diskstats *before,
	enum watch_diskstats_group group)
{
	uint64_t ios = now->ios[group] - before->ios[group];

	return ios ? (double)delta_ms(now->ticks_ms[group], before->ticks_ms[group]) / (double)ios
		   : 0;
}

static uint64_t delta_bytes(const struct watch_diskstats *now, const struct watch_diskstats *before,
	enum watch_diskstats_group group)
{
	return (now->sectors[group] - before->sectors[group]) * WATCH_DISKSTATS_SECTOR_BYTES;
}

void disk_rates_clear(struct record_disk *view)
{
	view->util_pct = 0;
	view->read_await_ms = 0;
	view->write_await_ms = 0;
	view->queue = 0;
	view->read_bytes = 0;
	view->write_bytes = 0;
	view->discard_bytes = 0;
	view->reads = view->writes = view->discards = view->flushes = 0;
	view->read_ticks_ms = view->write_ticks_ms = 0;
	view->discard_ticks_ms = view->flush_ticks_ms = 0;
}

/* The largest number stands for all that are larger. */
static uint32_t saturate_u32(uint64_t value)
{
	return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

static uint32_t delta_ios(const struct watch_diskstats *now, const struct watch_diskstats *before,
	enum watch_diskstats_group group)
{
	return saturate_u32(now->ios[group] - before->ios[group]);
}

static uint32_t delta_ticks_ms(const struct watch_diskstats *now,
	const struct watch_diskstats *before, enum watch_diskstats_group group)
{
	return saturate_u32(delta_ms(now->ticks_ms[group], before->ticks_ms[group]));
}

/* What was done in the interval, by kind, as the kernel counted it. */
static void view_fill_work(struct record_disk *view, const struct watch_diskstats *now,
	const struct watch_diskstats *before)
{
	view->read_bytes = delta_bytes(now, before, WATCH_DISKSTATS_READ);
	view->write_bytes = delta_bytes(now, before, WATCH_DISKSTATS_WRITE);
	view->discard_bytes = delta_bytes(now, before, WATCH_DISKSTATS_DISCARD);
	view->reads = delta_ios(now, before, WATCH_DISKSTATS_READ);
	view->writes = delta_ios(now, before, WATCH_DISKSTATS_WRITE);
	view->discards = delta_ios(now, before, WATCH_DISKSTATS_DISCARD);
	view->flushes = delta_ios(now, before, WATCH_DISKSTATS_FLUSH);
	view->read_ticks_ms = delta_ticks_ms(now, before, WATCH_DISKSTATS_READ);
	view->write_ticks_ms = delta_ticks_ms(now, before, WATCH_DISKSTATS_WRITE);
	view->discard_ticks_ms = delta_ticks_ms(now, before, WATCH_DISKSTATS_DISCARD);
	view->flush_ticks_ms = delta_ticks_ms(now, before, WATCH_DISKSTATS_FLUSH);
}

void disk_rates_fill(struct record_disk *view, const struct watch_diskstats *now,
	const struct watch_diskstats *before, uint64_t passed_ns)
{
	double passed_ms = (double)passed_ns / NSEC_PER_MSEC_REAL;

	view->util_pct = 100 * (double)delta_ms(now->io_ticks_ms, before->io_ticks_ms) / passed_ms;
	if (view->util_pct > 100)
		view->util_pct = 100;
	view->queue = (double)delta_ms(now->weighted_ms, before->weighted_ms) / passed_ms;
	view->read_await_ms = mean_await_ms(now, before, WATCH_DISKSTATS_READ);
	view->write_await_ms = mean_await_ms(now, before, WATCH_DISKSTATS_WRITE);
	view_fill_work(view, now, before);
}

/*
 * Before 6.3 disks that have no queue of their own, as those of dm and md, count a request when it
 * begins, and what has been completed is what they counted less what is in flight. Others count it
 * when it is completed. Which of the two nothing tells: where it is the first, one that completes
 * nothing has as many more in flight as it counts.
 */
static bool has_completed_stacked(const struct watch_diskstats *now,
	const struct watch_diskstats *before)
{
	const uint64_t counted = sum(now->ios) - sum(before->ios);
	const uint64_t more = now->inflight - before->inflight;

	return now->inflight < before->inflight || (counted && counted != more);
}

bool disk_rates_completed(const struct watch_diskstats *now, const struct watch_diskstats *before)
{
	if (disk_name_is_stacked(now->name))
		return has_completed_stacked(now, before);
	return sum(now->ios) != sum(before->ios);
}

bool disk_rates_worked(const struct watch_diskstats *now, const struct watch_diskstats *before)
{
	return sum(now->ios) != sum(before->ios) || now->io_ticks_ms != before->io_ticks_ms ||
		now->weighted_ms != before->weighted_ms;
}
