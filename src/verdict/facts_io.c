/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the final `device` and `io_by` lines say: who used a device, and for which files. */
#include <string.h>

#include "util/clock.h"
#include "verdict/devices.h"

void verdict_note_device(struct verdict_facts *f, const struct record_device *device)
{
	int i = verdict_get_device(f, device->dev.major, device->dev.minor, device->dev_name);
	struct verdict_device *d;

	verdict_note_below(f, device->dev_name, "", device->below);
	if (i < 0)
		return;
	d = &f->devices[i];
	if (device->no_completion_ns >= d->no_completion_ns && device->no_completion_ns > 0) {
		d->no_completion_ns = device->no_completion_ns;
		d->no_completion_in_flight = device->in_flight;
	}
	if (!device->final)
		return;
	d->has_totals = true;
	d->requests = device->requests;
	d->read_bytes = device->read_bytes;
	d->write_bytes = device->write_bytes;
	d->before_ns = device->before_busy_ns;
	d->traced_ns = device->read_busy_ns + device->write_busy_ns + device->discard_busy_ns +
		device->flush_busy_ns - device->before_busy_ns;
	d->flush_ns = device->flush_busy_ns;
	d->queue_time = device->queue;
	d->device_time = device->device;
}

static uint64_t all_bytes(const struct record_io_by *by)
{
	return by->bytes + by->discard_bytes;
}

/* Lines of one kind come in descending order of busy time. Returns true for the first one. */
static bool note_load(struct verdict_load *load, const struct record_io_by *by)
{
	if (load->count++ > 0)
		return false;
	verdict_set_who(&load->who, by->pid, by->tid, by->comm);
	load->requests[VERDICT_READ] = by->read_requests;
	load->requests[VERDICT_WRITE] = by->write_requests;
	load->requests[VERDICT_DISCARD] = by->discard_requests;
	load->requests[VERDICT_FLUSH] = by->flush_requests;
	load->bytes = all_bytes(by);
	load->read_bytes = by->read_bytes;
	load->busy_ns = by->busy_ns;
	load->before_requests = by->before_requests;
	load->before_bytes = by->before_bytes;
	load->before_ns = by->before_busy_ns;
	load->inferred = by->inferred;
	load->uncertain = by->uncertain;
	return true;
}

static void note_process(struct verdict_device *d, const struct record_io_by *by)
{
	struct verdict_process *process;

	if (by->inferred || d->processes_count == VERDICT_PROCESSES_MAX)
		return;
	process = &d->processes[d->processes_count++];
	*process = (struct verdict_process){ .busy_ns = by->busy_ns, .pid = by->pid };
	text_copy(process->comm, sizeof(process->comm), by->comm);
}

static void note_share(struct verdict_facts *f, int device, const struct record_io_by *by)
{
	struct verdict_share *share;

	if (f->shares_count == VERDICT_SHARES_MAX)
		return;
	share = &f->shares[f->shares_count++];
	*share = (struct verdict_share){
		.bytes = all_bytes(by),
		.read_bytes = by->read_bytes,
		.busy_ns = by->busy_ns,
		.requests = { (uint32_t)by->read_requests, (uint32_t)by->write_requests,
			(uint32_t)by->discard_requests, (uint32_t)by->flush_requests },
		.pid = by->pid,
		.tid = by->tid,
		.device = (int8_t)device,
		.kernel = by->inferred,
	};
	text_copy(share->comm, sizeof(share->comm), by->comm);
}

/* A file that took less of a device's time is no part of a freeze. */
#define NOTABLE_FILE_NS (20 * NSEC_PER_MSEC)

static void note_written(struct verdict_facts *f, int device, const struct record_io_by *by)
{
	struct verdict_file *file;

	if (by->busy_ns + by->before_busy_ns < NOTABLE_FILE_NS)
		return;
	if (f->files_count == VERDICT_FILES_MAX || !by->inferred ||
		by->read_requests > by->write_requests)
		return;
	file = &f->files[f->files_count++];
	*file = (struct verdict_file){
		.id = verdict_file_id_of(&by->fs_dev, by->inode, by->path),
		.busy_ns = by->busy_ns,
		.bytes = by->bytes,
		.before_ns = by->before_busy_ns,
		.before_bytes = by->before_bytes,
		.before_requests = (uint32_t)by->before_requests,
		.write_requests = (uint32_t)by->write_requests,
		.device = (int8_t)device,
	};
}

/* More than a file has was read more than once. */
static void note_read_again(struct verdict_device *d, const struct record_io_by *by)
{
	if (by->file_bytes == 0)
		return;
	d->files_read_bytes += by->read_bytes;
	if (by->read_bytes > by->file_bytes)
		d->files_again_bytes += by->read_bytes - by->file_bytes;
}

void verdict_note_io_by(struct verdict_facts *f, const struct record_io_by *by)
{
	int i = verdict_find_device(f, by->dev.major, by->dev.minor);
	struct verdict_load *load;

	if (i < 0)
		return;
	load = f->devices[i].load;
	if (by->by == RECORD_BY_file) {
		note_read_again(&f->devices[i], by);
		note_written(f, i, by);
	}
	if (by->by == RECORD_BY_process) {
		note_load(&load[VERDICT_BY_PROCESS], by);
		note_process(&f->devices[i], by);
		if (!by->inferred)
			note_load(&load[VERDICT_BY_PROGRAM], by);
	} else if (by->by == RECORD_BY_thread) {
		note_load(&load[VERDICT_BY_THREAD], by);
		note_share(f, i, by);
	} else if (by->by == RECORD_BY_file && note_load(&load[VERDICT_BY_FILE], by)) {
		verdict_set_path(f->devices[i].file, by->path);
		f->devices[i].file_id = verdict_file_id_of(&by->fs_dev, by->inode, by->path);
	} else if (by->by == RECORD_BY_cgroup && *by->unit &&
		note_load(&load[VERDICT_BY_UNIT], by)) {
		text_copy(f->devices[i].unit, sizeof(f->devices[i].unit), by->unit);
		f->devices[i].cgroup = by->cgroup;
	}
}
