/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/model.h"

#include <assert.h>
#include <string.h>

#include "model/disk_lines.h"

/* It is locked into memory with the session. */
static_assert(sizeof(struct model) <= 512 * 1024, "one incident is small");

void model_begin(struct model *m)
{
	memset(m, 0, sizeof(*m));
}

static void add_open(struct model *m, const struct record *r)
{
	m->trigger = r->open.trigger;
	m->armed_ns = r->mono_ns;
	m->trigger_ns = r->mono_ns - r->open.armed_ns;
	m->min_stall_ns = r->open.min_stall_ns;
	m->well_ns = r->open.well_mono_ns;
	model_host_add_trigger(m, &r->open.trigger, false);
	model_sessions_add_trigger(m, &r->open.trigger);
	model_disks_add_open(&m->disks, &r->open);
}

static void add_sample(struct model *m, const struct record_sample *sample)
{
	const bool is_before =
		sample->before_trigger && sample->reading.mono_ns + MODEL_LEAD_NS < m->trigger_ns;

	/* The very first sample covers no time. */
	if (sample->reading.interval_ns == 0)
		return;
	m->samples += !is_before;
	model_host_add_sample(m, sample, is_before);
	model_disks_add_sample(m, sample, is_before);
	if (sample->before_trigger)
		return;
	model_sessions_add_silence(m, &sample->silence);
	model_sessions_add_connections(m, &sample->connections, sample->reading.interval_ns);
}

void model_add(struct model *m, const struct record *r)
{
	m->now_ns = r->mono_ns;
	switch (r->type) {
	case RECORD_OPEN:
		add_open(m, r);
		break;
	case RECORD_TRIGGER:
		model_host_add_trigger(m, &r->trigger, true);
		model_sessions_add_trigger(m, &r->trigger);
		break;
	case RECORD_SAMPLE:
		add_sample(m, &r->sample);
		break;
	case RECORD_STALL:
		model_host_add_error(m, &r->operation);
		model_waits_add(m, r);
		break;
	case RECORD_STUCK:
		model_waits_add(m, r);
		break;
	case RECORD_ERROR:
		model_host_add_error(m, &r->operation);
		break;
	case RECORD_DEVICE:
		model_disks_add_device(m, &r->device);
		break;
	case RECORD_IO_BY:
		model_loads_add(m, &r->io_by);
		break;
	case RECORD_LOCK:
		model_host_add_lock(m, &r->lock_wait);
		break;
	case RECORD_JOURNAL:
		model_host_add_journal(m, &r->journal);
		break;
	case RECORD_KERNEL:
		model_host_add_kernel(m, &r->kernel);
		break;
	case RECORD_SQL:
		model_sessions_add_sql(m, r);
		break;
	case RECORD_QUEUE:
		model_sessions_add_queue(m, r);
		break;
	default:
		break;
	}
}
