/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/disks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/model.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/disk_name.h"

/* LVM on LUKS on md on partitions of disks is five deep. */
#define STACK_DEPTH_MAX 8

static double larger(double a, double b)
{
	return a > b ? a : b;
}

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

/* The disks that one stands on, and so its partitions, by name, one a line. */
static const char *list_below(const struct model_disks *disks, const char *upper)
{
	for (uint32_t i = 0; i < disks->stack_count; i++)
		if (strcmp(disks->stack[i].name, upper) == 0 ||
			disk_name_is_partition_of(upper, disks->stack[i].name))
			return disks->stack[i].below;
	return "";
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

/* Which disk */

static bool is_same_dev(struct record_dev a, struct record_dev b)
{
	return a.major == b.major && a.minor == b.minor;
}

static bool has_number(struct record_dev dev)
{
	return dev.major || dev.minor;
}

int model_disks_find(const struct model_disks *disks, struct record_dev dev)
{
	for (uint32_t i = 0; i < disks->count && has_number(dev); i++)
		if (is_same_dev(disks->list[i].dev, dev))
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
			(!has_number(dev) || !has_number(disks->list[i].dev)))
			return (int)i;
	return -1;
}

static int find_disk(const struct model_disks *disks, struct record_dev dev, const char *name)
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

/* Which are kept */

/* Milliseconds: more than anybody waits. */
#define WORTH_OF_HUNG 1e12

/* What it did before the incident is worth less than the least in that. */
static double worth_of_work(double work_ns, bool is_before)
{
	return work_ns / NSEC_PER_MSEC - (is_before ? NSEC_PER_SEC : 0);
}

static double worth_of_hang(uint64_t ns)
{
	return WORTH_OF_HUNG + (double)(ns / NSEC_PER_MSEC);
}

static double own_worth(const struct model_disk *d)
{
	const bool is_before = d->samples == 0 && !d->has_totals;

	if (d->no_completion_ns || d->suspended_ns)
		return worth_of_hang(d->no_completion_ns > d->suspended_ns ? d->no_completion_ns
									   : d->suspended_ns);
	return worth_of_work(is_before ? d->before.util_ns : (double)d->work_most_ns, is_before);
}

/*
 * Who waits for a disk waits for what that stands on, and the least that is below says why: it is
 * worth more than what stands on it, also when it is idle. False: there is no more to raise.
 */
static bool raise_lower(const struct model_disks *disks, double worth[static MODEL_DISKS_MAX])
{
	char name[RECORD_DISK_NAME_SIZE];
	bool has_raised = false;

	for (uint32_t i = 0; i < disks->count; i++) {
		const char *below = list_below(disks, disks->list[i].name);

		while (next_name(&below, name)) {
			int lower = find_name(disks, name);

			if (lower < 0 || lower == (int)i || worth[lower] > worth[i])
				continue;
			worth[lower] = worth[i] + 1;
			has_raised = true;
		}
	}
	return has_raised;
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
		if (model_host_names_disk(&m->host, (int)i) && worth[i] < MODEL_WORTH_NAMED)
			worth[i] = MODEL_WORTH_NAMED;
	for (unsigned int depth = 0; depth < STACK_DEPTH_MAX; depth++)
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

/* Who waited for it waited for what it stands on. */
static void forget(struct model *m, int disk)
{
	const int lower = find_lower(&m->disks, m->disks.list[disk].name);

	model_waits_move_disk(&m->waits, disk, lower);
	model_host_move_disk(&m->host, disk, lower);
	model_loads_forget_disk(&m->loads, disk);
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

/* -1: there is no room, or it has neither number nor name. */
static int get_disk(struct model *m, struct record_dev dev, const char *name, double worth)
{
	struct model_disks *disks = &m->disks;
	int i = find_disk(disks, dev, name);
	struct model_disk *disk;

	if (i < 0 && !has_number(dev) && !*name)
		return -1;
	if (i >= 0 && has_number(dev))
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
		i = get_disk(m, dev, name, worth_ms);
	return i < 0 && dev.major ? find_lower(disks, name) : i;
}

/* What stands on what */

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

void model_disks_add_open(struct model_disks *disks, const struct record_open *open)
{
	for (uint32_t i = 0; i < open->stack_count && i < RECORD_STACKED_MAX; i++)
		model_disks_note_below(disks, open->stack[i].dev_name, open->stack[i].label,
			open->stack[i].below);
}

/* `depth` ends it where a list of names makes no sense. */
static bool name_is_on(const struct model_disks *disks, const char *upper, const char *lower,
	unsigned int depth)
{
	const char *below = list_below(disks, upper);
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
	return name_is_on(disks, upper, lower, STACK_DEPTH_MAX);
}

bool model_disks_is_on(const struct model_disks *disks, int upper, int lower)
{
	return upper == lower ||
		model_disks_name_is_on(disks, disks->list[upper].name, disks->list[lower].name);
}

int model_disks_find_below(const struct model *m, int disk)
{
	const struct model_disks *disks = &m->disks;
	const char *names = list_below(disks, disks->list[disk].name);
	char name[RECORD_DISK_NAME_SIZE];
	int busiest = -1;

	while (next_name(&names, name)) {
		int below = find_name(disks, name);

		if (below < 0 || disks->list[below].samples < m->samples)
			return -1;
		if (busiest < 0 ||
			model_disk_util_pct(&disks->list[below]) >
				model_disk_util_pct(&disks->list[busiest]))
			busiest = below;
	}
	return busiest;
}

/* Whether a disk stands on it directly: that it is idle says something, then. */
static bool is_below(const struct model_disks *disks, const char *disk)
{
	for (uint32_t i = 0; i < disks->stack_count; i++)
		if (is_in_list(disks->stack[i].below, disk))
			return true;
	return false;
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
	uint64_t after_ns = s->mono_ns > m->trigger_ns ? s->mono_ns - m->trigger_ns : 0;

	return after_ns >= s->interval_ns ? 1 : (double)after_ns / (double)s->interval_ns;
}

static void add_busy(const struct model *m, struct model_disk *d, const struct record_disk *disk,
	double util_pct, const struct record_reading *s)
{
	double work_ns = util_pct / 100 * (double)s->interval_ns;

	add_work(&d->busy, disk, util_pct, s);
	d->work_since_ns += (uint64_t)(work_ns * part_since(m, s));
	if (s->mono_ns > m->trigger_ns && d->rates_count < MODEL_RATES_MAX)
		d->rates[d->rates_count++] =
			(float)((double)requests_of(disk) * NSEC_PER_SEC / (double)s->interval_ns);
}

static void add_sampled(const struct model *m, struct model_disk *d, const struct record_disk *disk,
	const struct record_reading *s)
{
	const double util_pct = util_of(disk, s->interval_ns);
	const uint64_t work_ns = (uint64_t)(util_pct / 100 * (double)s->interval_ns);

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
		return worth_of_hang(disk->no_completion_ns);
	return worth_of_work(util_of(disk, ns) / 100 * (double)ns, is_before);
}

void model_disks_add_sample(struct model *m, const struct record_sample *sample, bool is_before)
{
	const struct record_reading *s = &sample->reading;

	for (uint32_t k = 0; k < s->devices_count && k < RECORD_DEVICES_MAX; k++) {
		const struct record_disk *disk = &s->devices[k];
		int i = is_at_work(disk) || is_below(&m->disks, disk->dev_name)
			? get_disk(m, disk->dev, disk->dev_name,
				  worth_of_sampled(disk, s->interval_ns, is_before))
			: find_disk(&m->disks, disk->dev, disk->dev_name);

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
	const double worth = line->no_completion_ns ? worth_of_hang(line->no_completion_ns) : 0;
	struct model_disks *disks = &m->disks;
	struct model_disk *d;
	int i;

	model_disks_note_below(disks, line->dev_name, "", line->below);
	i = get_disk(m, line->dev, line->dev_name, worth);
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
	d->traced_ns = line->read_busy_ns + line->write_busy_ns + line->discard_busy_ns +
		line->flush_busy_ns - line->before_busy_ns;
	d->flush_ns = line->flush_busy_ns;
	d->queue = line->queue;
	d->device = line->device;
	memcpy(d->queue_histogram, line->queue_histogram, sizeof(d->queue_histogram));
	memcpy(d->device_histogram, line->device_histogram, sizeof(d->device_histogram));
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
