/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What samples say: devices, memory, a full file system, who serves a file system.
 */
#include <string.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "verdict/devices.h"

static void add_work(struct verdict_work *work, const struct record_disk *disk, uint64_t ns,
	double full_pct)
{
	const uint32_t requests[] = { disk->reads, disk->writes, disk->discards, disk->flushes };
	const uint64_t bytes[] = { disk->read_bytes, disk->write_bytes, disk->discard_bytes, 0 };
	const uint32_t ticks_ms[] = { disk->read_ticks_ms, disk->write_ticks_ms,
		disk->discard_ticks_ms, disk->flush_ticks_ms };

	for (unsigned int i = 0; i < VERDICT_KINDS; i++) {
		work->requests[i] += requests[i];
		work->bytes[i] += bytes[i];
		work->ticks_ns[i] += ticks_ms[i] * NSEC_PER_MSEC;
	}
	work->ns += ns;
	work->queue_ns_sum += disk->queue * (double)ns;
	work->util_ns_sum += disk->util_pct / 100 * (double)ns;
	work->pressure_ns += full_pct / 100 * (double)ns;
}

static bool is_at_work(const struct record_disk *disk)
{
	return disk->util_pct > 0 || disk->inflight || disk->suspended || disk->no_completion_ns ||
		disk->read_bytes || disk->write_bytes;
}

static bool is_busy(const struct record_disk *disk)
{
	return disk->util_pct >= VERDICT_BUSY_PCT ||
		(disk->queue >= VERDICT_LOADED_QUEUE &&
			(disk->read_await_ms >= VERDICT_LOADED_AWAIT_MS ||
				disk->write_await_ms >= VERDICT_LOADED_AWAIT_MS));
}

static void add_rate(struct verdict_device *d, const struct record_disk *disk, uint64_t ns)
{
	double requests = (double)disk->reads + disk->writes + disk->discards + disk->flushes;

	if (d->rates_count < VERDICT_RATES_MAX)
		d->rates[d->rates_count++] = (float)(requests * NSEC_PER_SEC / (double)ns);
}

/* How much of the time of a sample was after the trigger. */
static double part_since(const struct verdict_facts *f, uint64_t end_ns, uint64_t ns)
{
	if (end_ns <= f->trigger_ns || ns == 0)
		return 0;
	return end_ns - f->trigger_ns >= ns ? 1 : (double)(end_ns - f->trigger_ns) / (double)ns;
}

/*
 * The kernel may take a disk for busy since it last looked, which after a rest was a second ago.
 * It cannot have been busy for longer than its requests took, each up to a millisecond more than
 * is counted.
 */
static double util_of(const struct record_disk *disk, uint64_t ns)
{
	double requests = (double)disk->reads + disk->writes + disk->discards + disk->flushes;
	double most_pct = 100 * (disk->queue + requests * NSEC_PER_MSEC / (double)ns);

	return requests > 0 && disk->inflight == 0 && most_pct < disk->util_pct ? most_pct
										: disk->util_pct;
}

static void note_disk(struct verdict_facts *f, const struct record_disk *sampled,
	const struct record_reading *s, bool baseline)
{
	struct record_disk corrected = *sampled, *disk = &corrected;
	double full_pct = s->psi.io.present ? s->psi.io.full_pct : 0;
	uint64_t ns = s->interval_ns;
	bool matters = is_at_work(disk) || verdict_is_below(f, disk->dev_name);
	int i = matters ? verdict_get_device(f, disk->dev.major, disk->dev.minor, disk->dev_name)
			: verdict_find_device(f, disk->dev.major, disk->dev.minor);
	struct verdict_device *d;
	uint64_t work_ns;

	if (i < 0)
		return;
	corrected.util_pct = util_of(sampled, ns);
	d = &f->devices[i];
	d->sampled = true;
	if (!*d->name)
		text_copy(d->name, sizeof(d->name), disk->dev_name);
	if (baseline) {
		add_work(&d->baseline, disk, ns, full_pct);
		return;
	}
	d->samples++;
	d->newest_sample = f->samples;
	if (s->mono_ns <= f->trigger_ns) {
		d->lead_read_bytes += disk->read_bytes;
		d->lead_write_bytes += disk->write_bytes;
	}
	if (s->mono_ns > f->trigger_ns && s->memory.present) {
		d->since.ns += ns;
		d->since.read_bytes += disk->read_bytes;
		d->since.write_bytes += disk->write_bytes;
	}
	work_ns = (uint64_t)(disk->util_pct / 100 * (double)ns);
	if (is_busy(disk)) {
		add_work(&d->busy, disk, ns, full_pct);
		if (s->mono_ns > f->trigger_ns)
			add_rate(d, disk, ns);
		d->busy_since_ns += (uint64_t)((double)work_ns * part_since(f, s->mono_ns, ns));
	}
	d->busy_ns += work_ns;
	if (work_ns > d->busiest_ns)
		d->busiest_ns = work_ns;
	if (disk->util_pct > d->util_max_pct)
		d->util_max_pct = disk->util_pct;
	if (disk->read_await_ms > d->read_await_max_ms)
		d->read_await_max_ms = disk->read_await_ms;
	if (disk->write_await_ms > d->write_await_max_ms)
		d->write_await_max_ms = disk->write_await_ms;
	if (disk->inflight > d->in_flight_max)
		d->in_flight_max = disk->inflight;
	if (disk->suspended)
		d->suspended_ns += ns;
	if (disk->no_completion_ns > d->no_completion_ns) {
		d->no_completion_ns = disk->no_completion_ns;
		d->no_completion_in_flight = disk->inflight;
	}
}

/* A sample has the busiest disks: what it leaves out was no busier than its last one. */
static void note_left_out(struct verdict_facts *f, const struct record_reading *s)
{
	const struct record_disk *last = &s->devices[RECORD_DEVICES_MAX - 1];

	if (s->devices_left_out == 0 || s->devices_count < RECORD_DEVICES_MAX || last->suspended ||
		last->no_completion_ns > 0)
		return;
	for (uint32_t i = 0; i < f->devices_count; i++) {
		struct verdict_device *d = &f->devices[i];

		if (!d->sampled || d->newest_sample == f->samples)
			continue;
		d->samples++;
		if (last->util_pct > d->left_out_max_pct)
			d->left_out_max_pct = last->util_pct;
	}
}

/* A file that grew comes before one that was changed, and that before one that is just large. */
static bool is_more(const struct record_writer *writer, const struct verdict_full *full)
{
	if (writer->grown_bytes != full->grown_bytes)
		return writer->grown_bytes > full->grown_bytes;
	if (writer->changed != full->changed)
		return writer->changed;
	return writer->bytes > full->written_bytes;
}

static void note_full_writer(struct verdict_full *full, const struct record_writer *writer)
{
	if (!writer->present)
		return;
	full->search = writer->search;
	if (!writer->pid || !is_more(writer, full))
		return;
	verdict_set_who(&full->writer, writer->pid, writer->pid, writer->comm);
	verdict_set_path(full->path, writer->path);
	full->written_bytes = writer->bytes;
	full->grown_bytes = writer->grown_bytes;
	full->changed = writer->changed;
}

/* How full it was at most. */
static void note_full(struct verdict_facts *f, const struct record_sample *sample)
{
	const struct record_limits *limits = &sample->limits;

	note_full_writer(&f->full, &sample->writer);
	for (uint32_t i = 0; i < limits->file_systems_count && i < RECORD_FILE_SYSTEMS_MAX; i++) {
		const struct record_file_system *fs = &limits->file_systems[i];
		double used_pct = f->full.inodes ? fs->inodes_used_pct : fs->used_pct;

		if (strcmp(fs->mount, f->full.mount) != 0)
			continue;
		/* An unknown value is not a number, and compares false. */
		if (used_pct >= f->full.used_pct) {
			f->full.used_pct = used_pct;
			f->full.free_bytes = fs->free_bytes;
		}
		f->full.device = (int8_t)verdict_get_fs_device(f, fs->dev.major, fs->dev.minor,
			fs->dev_name);
	}
}

static void note_file_server(struct verdict_file_server *server,
	const struct record_file_server *found)
{
	bool was_stopped = server->state == 'T' && server->who.pid == found->pid;

	server->dev = found->dev;
	verdict_set_who(&server->who, found->pid, found->pid, found->comm);
	server->state = was_stopped || found->state == 't' ? 'T' : found->state;
	server->inferred = found->basis == RECORD_BASIS_inferred;
	text_copy(server->mount, sizeof(server->mount), found->mount);
	text_copy(server->source, sizeof(server->source), found->source);
}

/* A group that was never at its limit is not kept. */
static struct verdict_memory *find_group(struct verdict_facts *f, const struct record_cgroup *group)
{
	struct verdict_memory *m;

	for (uint32_t i = 0; i < f->groups_count; i++)
		if (strcmp(f->groups[i].path, group->path) == 0)
			return &f->groups[i];
	if (group->limit_hits == 0 || f->groups_count == VERDICT_GROUPS_MAX)
		return NULL;
	m = &f->groups[f->groups_count++];
	m->cgroup = group->id;
	text_copy(m->path, sizeof(m->path), group->path);
	return m;
}

static void note_group(struct verdict_facts *f, const struct record_cgroup *group)
{
	struct verdict_memory *m = find_group(f, group);

	if (!m)
		return;
	m->limit_bytes = group->limit_bytes;
	m->reread_bytes += group->reread_bytes;
	m->swapped_in_bytes += group->swapped_in_bytes;
	m->active_bytes += group->active_bytes;
	m->limit_hits += group->limit_hits;
	m->oom_kills += group->oom_kills;
}

/* Swap on zram is in memory and loads no disk. */
static uint64_t on_disks(uint64_t swapped_bytes, uint64_t zram_bytes)
{
	return swapped_bytes > zram_bytes ? swapped_bytes - zram_bytes : 0;
}

static void note_memory(struct verdict_facts *f, const struct record_memory *memory,
	const struct record_limits *limits)
{
	struct verdict_memory *m = &f->host;

	m->reread_bytes += memory->reread_bytes;
	m->swapped_in_bytes += on_disks(memory->swapped_in_bytes, memory->zram_in_bytes);
	m->swapped_out_bytes += on_disks(memory->swapped_out_bytes, memory->zram_out_bytes);
	m->active_bytes += memory->active_bytes;
	m->reclaimed_bytes += memory->reclaimed_bytes;
	for (uint32_t i = 0; i < limits->cgroups_count && i < RECORD_CGROUPS_MAX; i++)
		note_group(f, &limits->cgroups[i]);
}

/* A group may do a little less than its limit allows in a sample, and a burst more. */
#define AT_LIMIT_PCT 80

/* NULL: there is no room, or the device is not known. */
static struct verdict_io_limit *get_io_limit(struct verdict_facts *f,
	const struct record_io_limited *l)
{
	int device = verdict_get_device(f, l->dev.major, l->dev.minor, l->dev_name);
	struct verdict_io_limit *limit = f->io_limits;

	for (; limit < f->io_limits + f->io_limits_count; limit++)
		if (limit->device == device && limit->kind == l->kind &&
			strcmp(limit->path, l->path) == 0)
			return limit;
	if (device < 0 || f->io_limits_count == VERDICT_IO_LIMITS_MAX)
		return NULL;
	f->io_limits_count++;
	*limit = (struct verdict_io_limit){ .cgroup = l->id,
		.device = (int8_t)device,
		.kind = l->kind };
	text_copy(limit->path, sizeof(limit->path), l->path);
	return limit;
}

static void note_io_limits(struct verdict_facts *f, const struct record_limits *limits,
	uint64_t interval_ns)
{
	for (uint32_t i = 0; i < limits->io_count && i < RECORD_IO_LIMITS_MAX; i++) {
		const struct record_io_limited *l = &limits->io[i];
		struct verdict_io_limit *limit =
			l->used_pct >= AT_LIMIT_PCT ? get_io_limit(f, l) : NULL;

		if (!limit)
			continue;
		limit->per_s = l->per_s;
		limit->at_limit_ns += interval_ns;
	}
}

/*
 * The limit itself is at work all the time in a group that works: it hurts where it takes more than
 * it leaves.
 */
#define HELD_BACK_PCT 50

/* NULL: there is no room. */
static struct verdict_cpu_limit *get_cpu_limit(struct verdict_facts *f, const char *path)
{
	struct verdict_cpu_limit *limit = f->cpu_limits;

	for (; limit < f->cpu_limits + f->cpu_limits_count; limit++)
		if (strcmp(limit->path, path) == 0)
			return limit;
	if (f->cpu_limits_count == VERDICT_CPU_LIMITS_MAX)
		return NULL;
	f->cpu_limits_count++;
	*limit = (struct verdict_cpu_limit){ 0 };
	text_copy(limit->path, sizeof(limit->path), path);
	return limit;
}

static void note_cpu_limits(struct verdict_facts *f, const struct record_limits *limits,
	uint64_t interval_ns)
{
	for (uint32_t i = 0; i < limits->cpu_limits_count && i < RECORD_CPU_LIMITS_MAX; i++) {
		const struct record_cpu_limited *l = &limits->cpu_limits[i];
		struct verdict_cpu_limit *limit =
			l->held_back_pct >= HELD_BACK_PCT ? get_cpu_limit(f, l->path) : NULL;

		if (!limit)
			continue;
		limit->limit_cpus = l->limit_cpus;
		limit->at_limit_ns += interval_ns;
		limit->held_back_ns += l->held_back_ns;
		limit->wanted_ns += 100 * (double)l->held_back_ns / l->held_back_pct;
	}
}

/*
 * So many threads for each CPU, and none of them idle. A database with all its clients at work has
 * several for each.
 */
#define SHORT_THREADS 8
#define SHORT_BUSY_PCT 95

static void note_cpus(struct verdict_facts *f, const struct record_reading *s)
{
	struct verdict_cpu_shortage *shortage = &f->cpu_shortage;

	if (s->cpu.cpus == 0 || s->cpu.busy_pct < SHORT_BUSY_PCT ||
		s->procs_running < (uint64_t)SHORT_THREADS * s->cpu.cpus)
		return;
	shortage->ns += s->interval_ns;
	shortage->cpus = s->cpu.cpus;
	if (s->procs_running > shortage->running_max)
		shortage->running_max = s->procs_running;
}

/* The last sample before the trigger has them, the one that has moved most first. */
static void note_process_io(struct verdict_facts *f, const struct record_limits *limits)
{
	const struct record_process_io *most = &limits->process_io[0];

	if (limits->process_io_count == 0)
		return;
	verdict_set_who(&f->before.who, most->pid, most->pid, most->comm);
	f->before.over_ns = most->over_ns;
	f->before.read_bytes = most->read_bytes;
	f->before.write_bytes = most->write_bytes;
}

/* How much of it was since VERDICT_LEAD_NS before the trigger. */
static uint64_t since_lead(const struct verdict_facts *f, uint64_t now_ns, uint64_t ns)
{
	const uint64_t since_ns = now_ns + VERDICT_LEAD_NS - f->trigger_ns;

	return ns < since_ns ? ns : since_ns;
}

static bool is_same_stop(const struct verdict_stopped *a, const struct record_stopped *b)
{
	return a->who.pid == b->pid && a->tracer.pid == b->tracer &&
		strcmp(a->cgroup, b->cgroup) == 0;
}

/* A debugger that is attached to a process which is stopped already has not stopped it. */
static void note_stopped(struct verdict_facts *f, const struct record_stopped *s, uint64_t now_ns)
{
	struct verdict_stopped *stopped = &f->stopped;

	if (!s->present || s->stopped_ns < stopped->longest_ns)
		return;
	if (!is_same_stop(stopped, s))
		*stopped = (struct verdict_stopped){ 0 };
	verdict_set_who(&stopped->who, s->pid, s->pid, s->comm);
	if (s->tracer)
		verdict_set_who(&stopped->tracer, s->tracer, s->tracer, s->tracer_comm);
	text_copy(stopped->cgroup, sizeof(stopped->cgroup), s->cgroup);
	if (s->threads > stopped->threads)
		stopped->threads = s->threads;
	stopped->longest_ns = s->stopped_ns;
	stopped->in_incident_ns = since_lead(f, now_ns, s->stopped_ns);
}

/* A value that is not known is not a number, and compares false. */
static void note_health(struct verdict_facts *f, const struct record_health *health)
{
	if (health->present && f->health_failing_s > 0 && health->failing_s > f->health_failing_s)
		f->health_failing_s = health->failing_s;
}

static void note_pressure(struct verdict_facts *f, const struct record_reading *s)
{
	if (!s->psi.memory.present)
		return;
	if (s->psi.memory.full_pct > f->memory_full_max_pct)
		f->memory_full_max_pct = s->psi.memory.full_pct;
	f->memory_full_ns += s->psi.memory.full_pct / 100 * (double)s->interval_ns;
}

void verdict_note_sample(struct verdict_facts *f, const struct record_sample *sample)
{
	const struct record_reading *s = &sample->reading;
	bool baseline = sample->before_trigger && s->mono_ns + VERDICT_LEAD_NS < f->trigger_ns;

	/* The very first sample covers no time. */
	if (s->interval_ns == 0)
		return;
	if (!baseline) {
		f->samples++;
		note_pressure(f, s);
		note_io_limits(f, &sample->limits, s->interval_ns);
		note_cpu_limits(f, &sample->limits, s->interval_ns);
		note_cpus(f, s);
		note_stopped(f, &sample->limits.stopped, s->mono_ns);
		note_process_io(f, &sample->limits);
		note_health(f, &s->health);
	}
	if (s->mono_ns > f->trigger_ns && s->memory.present)
		note_memory(f, &s->memory, &sample->limits);
	if (*f->full.mount)
		note_full(f, sample);
	if (sample->file_server.present)
		note_file_server(&f->file_server, &sample->file_server);
	for (uint32_t i = 0; i < s->devices_count && i < RECORD_DEVICES_MAX; i++)
		note_disk(f, &s->devices[i], s, baseline);
	if (!baseline)
		note_left_out(f, s);
}
