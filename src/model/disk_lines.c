/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/disk_lines.h"

#include <string.h>

#include "model/kept_disks.h"
#include "model/model.h"
#include "util/clock.h"
#include "util/number.h"

void model_disks_add_open(struct model_disks *disks, const struct record_open *open)
{
	for (uint32_t i = 0; i < open->stack_count && i < RECORD_STACKED_MAX; i++)
		model_disks_note_below(disks, open->stack[i].dev_name, open->stack[i].label,
			open->stack[i].below);
}

/* Samples */

static uint64_t requests_of(const struct record_disk *disk)
{
	return (uint64_t)disk->reads + disk->writes + disk->discards + disk->flushes;
}

static void add_work(struct model_work *work, const struct record_disk *disk, double util_pct,
	const struct record_reading *s)
{
	const uint32_t requests[] = { disk->reads, disk->writes, disk->discards, disk->flushes };
	const uint64_t bytes[] = { disk->read_bytes, disk->write_bytes, disk->discard_bytes, 0 };
	const uint32_t ticks_ms[] = { disk->read_ticks_ms, disk->write_ticks_ms,
		disk->discard_ticks_ms, disk->flush_ticks_ms };

	for (unsigned int i = 0; i < MODEL_KINDS; i++) {
		work->requests[i] += requests[i];
		work->bytes[i] += bytes[i];
		work->ticks_ns[i] += ticks_ms[i] * NSEC_PER_MSEC;
	}
	work->ns += s->interval_ns;
	work->queue_ns += disk->queue * (double)s->interval_ns;
	work->util_ns += util_pct / 100 * (double)s->interval_ns;
	if (s->psi.io.present)
		work->pressure_ns += s->psi.io.full_pct / 100 * (double)s->interval_ns;
}

static bool is_at_work(const struct record_disk *disk)
{
	return disk->util_pct > 0 || disk->inflight || disk->suspended || disk->no_completion_ns ||
		disk->read_bytes || disk->write_bytes;
}

static bool is_busy(const struct record_disk *disk, double util_pct)
{
	return util_pct >= MODEL_BUSY_PCT ||
		(disk->queue >= MODEL_LOADED_QUEUE &&
			(disk->read_await_ms >= MODEL_LOADED_AWAIT_MS ||
				disk->write_await_ms >= MODEL_LOADED_AWAIT_MS));
}

/*
 * The kernel may take a disk for busy since it last looked, which after a rest was a second ago.
 * It cannot have been busy for longer than its requests took, each up to a millisecond more than
 * is counted.
 */
static double util_of(const struct record_disk *disk, uint64_t ns)
{
	double requests = (double)requests_of(disk);
	double most_pct = 100 * (disk->queue + requests * NSEC_PER_MSEC / (double)ns);

	return requests > 0 && disk->inflight == 0 && most_pct < disk->util_pct ? most_pct
										: disk->util_pct;
}

/* How much of the time of a sample was after the trigger. */
static double part_since(const struct model *m, const struct record_reading *s)
{
	uint64_t after_ns = minus(s->mono_ns, m->trigger_ns);

	return after_ns >= s->interval_ns ? 1 : (double)after_ns / (double)s->interval_ns;
}

static void add_busy(const struct model *m, struct model_disk *d, const struct record_disk *disk,
	double util_pct, const struct record_reading *s)
{
	double work_ns = util_pct / 100 * (double)s->interval_ns;

	add_work(&d->busy, disk, util_pct, s);
	d->work_since_ns += to_u64(work_ns * part_since(m, s));
	if (s->mono_ns > m->trigger_ns && d->rates_count < MODEL_RATES_MAX)
		d->rates[d->rates_count++] =
			(float)((double)requests_of(disk) * NSEC_PER_SEC / (double)s->interval_ns);
}

static void add_sampled(const struct model *m, struct model_disk *d, const struct record_disk *disk,
	const struct record_reading *s)
{
	const double util_pct = util_of(disk, s->interval_ns);
	const uint64_t work_ns = to_u64(util_pct / 100 * (double)s->interval_ns);

	d->samples++;
	d->newest_sample = m->samples;
	if (s->mono_ns <= m->trigger_ns) {
		d->lead_read_bytes += disk->read_bytes;
		d->lead_write_bytes += disk->write_bytes;
	} else if (s->memory.present) {
		d->since_ns += s->interval_ns;
		d->since_read_bytes += disk->read_bytes;
		d->since_write_bytes += disk->write_bytes;
	}
	if (is_busy(disk, util_pct))
		add_busy(m, d, disk, util_pct, s);
	d->work_ns += work_ns;
	d->work_most_ns = work_ns > d->work_most_ns ? work_ns : d->work_most_ns;
	d->util_max_pct = larger(d->util_max_pct, util_pct);
	d->read_await_max_ms = larger(d->read_await_max_ms, disk->read_await_ms);
	d->write_await_max_ms = larger(d->write_await_max_ms, disk->write_await_ms);
	d->suspended_ns += disk->suspended ? s->interval_ns : 0;
	if (disk->no_completion_ns > d->no_completion_ns) {
		d->no_completion_ns = disk->no_completion_ns;
		d->no_completion_in_flight = disk->inflight;
	}
}

/* A sample has the busiest disks: what it leaves out was no busier than its last one. */
static void add_left_out(struct model *m, const struct record_reading *s)
{
	const struct record_disk *last = &s->devices[RECORD_DEVICES_MAX - 1];

	m->disks.samples_leave_out |= s->devices_left_out > 0;
	if (s->devices_left_out == 0 || s->devices_count < RECORD_DEVICES_MAX || last->suspended ||
		last->no_completion_ns > 0)
		return;
	for (uint32_t i = 0; i < m->disks.count; i++) {
		struct model_disk *d = &m->disks.list[i];

		if (!d->is_sampled || d->newest_sample == m->samples)
			continue;
		d->samples++;
		d->left_out_max_pct = larger(d->left_out_max_pct, last->util_pct);
	}
}

static double worth_of_sampled(const struct record_disk *disk, uint64_t ns, bool is_before)
{
	if (disk->no_completion_ns || disk->suspended)
		return model_worth_of_hang(disk->no_completion_ns);
	return model_worth_of_work(util_of(disk, ns) / 100 * (double)ns, is_before);
}

void model_disks_add_sample(struct model *m, const struct record_sample *sample, bool is_before)
{
	const struct record_reading *s = &sample->reading;

	for (uint32_t k = 0; k < s->devices_count && k < RECORD_DEVICES_MAX; k++) {
		const struct record_disk *disk = &s->devices[k];
		int i = is_at_work(disk) || model_disks_is_below_any(&m->disks, disk->dev_name)
			? model_disks_get(m, disk->dev, disk->dev_name,
				  worth_of_sampled(disk, s->interval_ns, is_before))
			: model_disks_find_named(&m->disks, disk->dev, disk->dev_name);

		if (i < 0)
			continue;
		m->disks.list[i].is_sampled = true;
		if (is_before)
			add_work(&m->disks.list[i].before, disk, util_of(disk, s->interval_ns), s);
		else
			add_sampled(m, &m->disks.list[i], disk, s);
	}
	if (!is_before)
		add_left_out(m, s);
}

/* The block probe */

void model_disks_add_device(struct model *m, const struct record_device *line)
{
	const double worth =
		line->no_completion_ns ? model_worth_of_hang(line->no_completion_ns) : 0;
	struct model_disks *disks = &m->disks;
	struct model_disk *d;
	int i;

	model_disks_note_below(disks, line->dev_name, "", line->below);
	i = model_disks_get(m, line->dev, line->dev_name, worth);
	if (i < 0)
		return;
	d = &disks->list[i];
	if (line->no_completion_ns > 0 && line->no_completion_ns >= d->no_completion_ns) {
		d->no_completion_ns = line->no_completion_ns;
		d->no_completion_in_flight = line->in_flight;
	}
	/* They only grow. */
	if (!line->final && line->requests <= d->requests)
		return;
	d->has_totals = true;
	d->requests = line->requests;
	d->read_bytes = line->read_bytes;
	d->write_bytes = line->write_bytes;
	d->in_flight = line->in_flight;
	d->untraced_ns = line->before_busy_ns;
	/* Each was rounded down by itself. */
	d->traced_ns = minus(line->read_busy_ns + line->write_busy_ns + line->discard_busy_ns +
			line->flush_busy_ns,
		line->before_busy_ns);
	d->flush_ns = line->flush_busy_ns;
	d->queue = line->queue;
	d->device = line->device;
	memcpy(d->queue_histogram, line->queue_histogram, sizeof(d->queue_histogram));
	memcpy(d->device_histogram, line->device_histogram, sizeof(d->device_histogram));
}
