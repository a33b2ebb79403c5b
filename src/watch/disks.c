/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/disks.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/text.h"

#define SECTOR_BYTES 512
#define NSEC_PER_MSEC_REAL 1e6
/* Disks of which one reading looks whether their file is still theirs. */
#define SUSPENDED_CHECKS 4

static void copy_patterns(struct disks *d, const struct config_list *device,
	const struct config_list *device_ignore)
{
	d->device = device ? *device : (struct config_list){ .count = 1, .items = { "*" } };
	d->device_ignore = device_ignore ? *device_ignore : (struct config_list){ 0 };
}

void disks_init(struct disks *d, int sysfs_fd, const struct config_list *device,
	const struct config_list *device_ignore)
{
	memset(d, 0, sizeof(*d));
	d->sysfs_fd = sysfs_fd;
	copy_patterns(d, device, device_ignore);
}

static bool row_is_judged(const struct disks *d, const struct watch_diskstats *stats)
{
	char path[64];

	if (!config_list_matches(&d->device, stats->name) ||
		config_list_matches(&d->device_ignore, stats->name))
		return false;
	snprintf(path, sizeof(path), "dev/block/%u:%u/partition", stats->major, stats->minor);
	return d->sysfs_fd < 0 || faccessat(d->sysfs_fd, path, F_OK, 0) < 0;
}

/*
 * Opened when the disk appears, since a look-up in sysfs takes locks that others may hold while
 * they wait for memory. To read it the kernel takes none but a spin lock of the device mapper.
 */
static int open_suspended(const struct disks *d, const struct record_disk *view)
{
	char path[64];

	if (d->sysfs_fd < 0 || strncmp(view->dev_name, "dm-", 3) != 0)
		return -1;
	snprintf(path, sizeof(path), "dev/block/%u:%u/dm/suspended", view->dev.major,
		view->dev.minor);
	return openat(d->sysfs_fd, path, O_RDONLY | O_CLOEXEC);
}

static int32_t disk_add(struct disks *d, const struct watch_diskstats *stats)
{
	uint32_t i = 0;
	struct disks_disk *disk;

	while (i < WATCH_DISKS_MAX && d->disks[i].used)
		i++;
	if (i == WATCH_DISKS_MAX)
		return DISKS_ROW_UNJUDGED;
	if (i >= d->disks_count)
		d->disks_count = i + 1;
	disk = &d->disks[i];
	memset(disk, 0, sizeof(*disk));
	disk->used = true;
	disk->serial = ++d->serial;
	disk->view.dev.major = stats->major;
	disk->view.dev.minor = stats->minor;
	text_copy(disk->view.dev_name, sizeof(disk->view.dev_name), stats->name);
	disk->suspended_fd = open_suspended(d, &disk->view);
	return (int32_t)i;
}

static void disk_forget(struct disks *d, int32_t i)
{
	if (i < 0)
		return;
	close_fd(d->disks[i].suspended_fd);
	d->disks[i].used = false;
}

static void row_judge(struct disks *d, struct disks_row *row, const struct watch_diskstats *stats)
{
	bool judged = row_is_judged(d, stats);

	if (!judged) {
		disk_forget(d, row->disk);
		row->disk = DISKS_ROW_UNJUDGED;
	}
	if (judged && row->disk < 0)
		row->disk = disk_add(d, stats);
	row->left_out = judged && row->disk < 0;
}

static void row_forget(struct disks *d, struct disks_row *row)
{
	disk_forget(d, row->disk);
	row->used = false;
}

static bool row_is(const struct disks_row *row, uint32_t major, uint32_t minor)
{
	return row->used && row->major == major && row->minor == minor;
}

/* Rows come in the same order each time, so the row after the last one is nearly always right. */
static struct disks_row *row_find(struct disks *d, const struct watch_diskstats *stats)
{
	if (d->row_hint < d->rows_count &&
		row_is(&d->rows[d->row_hint], stats->major, stats->minor))
		return &d->rows[d->row_hint++];
	for (uint32_t i = 0; i < d->rows_count; i++) {
		if (!row_is(&d->rows[i], stats->major, stats->minor))
			continue;
		d->row_hint = i + 1;
		return &d->rows[i];
	}
	return NULL;
}

static struct disks_row *row_add(struct disks *d, const struct watch_diskstats *stats)
{
	uint32_t i = 0;
	struct disks_row *row;

	while (i < d->rows_count && d->rows[i].used)
		i++;
	if (i == DISKS_ROWS_MAX)
		return NULL;
	if (i == d->rows_count)
		d->rows_count++;
	row = &d->rows[i];
	*row = (struct disks_row){
		.used = true,
		.major = stats->major,
		.minor = stats->minor,
		.disk = DISKS_ROW_UNJUDGED,
	};
	text_copy(row->name, sizeof(row->name), stats->name);
	row_judge(d, row, stats);
	return row;
}

void disks_done(struct disks *d)
{
	for (uint32_t i = 0; i < d->rows_count; i++)
		if (d->rows[i].used)
			row_forget(d, &d->rows[i]);
}

void disks_set_patterns(struct disks *d, const struct config_list *device,
	const struct config_list *device_ignore)
{
	copy_patterns(d, device, device_ignore);
	for (uint32_t i = 0; i < d->rows_count; i++) {
		struct disks_row *row = &d->rows[i];
		struct watch_diskstats stats = { .major = row->major, .minor = row->minor };

		if (!row->used)
			continue;
		text_copy(stats.name, sizeof(stats.name), row->name);
		row_judge(d, row, &stats);
	}
}

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

/* Requests and sectors only grow: fewer than before means another device with the same number. */
static bool counters_went_back(const struct watch_diskstats *now,
	const struct watch_diskstats *before)
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
	return (now->sectors[group] - before->sectors[group]) * SECTOR_BYTES;
}

static void view_clear_rates(struct record_disk *view)
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

static void view_fill_rates(struct disks_disk *disk, const struct watch_diskstats *now,
	uint64_t now_ns)
{
	const struct watch_diskstats *before = &disk->before;
	double passed_ms = (double)(now_ns - disk->before_ns) / NSEC_PER_MSEC_REAL;
	struct record_disk *view = &disk->view;

	view->util_pct = 100 * (double)delta_ms(now->io_ticks_ms, before->io_ticks_ms) / passed_ms;
	if (view->util_pct > 100)
		view->util_pct = 100;
	view->queue = (double)delta_ms(now->weighted_ms, before->weighted_ms) / passed_ms;
	view->read_await_ms = mean_await_ms(now, before, WATCH_DISKSTATS_READ);
	view->write_await_ms = mean_await_ms(now, before, WATCH_DISKSTATS_WRITE);
	view_fill_work(view, now, before);
}

/* Does not depend on utilisation, which kernel 5.10 leaves at 0 while a device is stuck. */
static void disk_take_completions(struct disks_disk *disk, const struct watch_diskstats *now,
	uint64_t now_ns)
{
	bool finished = !disk->has_before || sum(now->ios) != sum(disk->before.ios);

	if (now->inflight == 0)
		disk->waiting_since_ns = 0;
	else if (finished || disk->waiting_since_ns == 0)
		disk->waiting_since_ns = now_ns;
	disk->view.inflight = now->inflight;
	disk->view.no_completion_ns = now->inflight ? now_ns - disk->waiting_since_ns : 0;
}

static void disk_take_stats(struct disks *d, struct disks_disk *disk,
	const struct watch_diskstats *stats)
{
	if (disk->has_before && counters_went_back(stats, &disk->before)) {
		disk->has_before = false;
		disk->serial = ++d->serial;
	}
	if (disk->has_before && d->now_ns > disk->before_ns)
		view_fill_rates(disk, stats, d->now_ns);
	else
		view_clear_rates(&disk->view);
	disk_take_completions(disk, stats, d->now_ns);
	disk->has_before = true;
	disk->before = *stats;
	disk->before_ns = d->now_ns;
}

void disks_begin_reading(struct disks *d, uint64_t now_ns)
{
	d->reading++;
	d->now_ns = now_ns;
	d->row_hint = 0;
	d->left_out = 0;
	d->zram_before = d->zram;
	d->zram = (struct disks_zram){ 0 };
}

static void take_zram(struct disks_zram *zram, const struct watch_diskstats *stats)
{
	if (strncmp(stats->name, "zram", 4) != 0)
		return;
	zram->read_bytes += stats->sectors[WATCH_DISKSTATS_READ] * SECTOR_BYTES;
	zram->written_bytes += stats->sectors[WATCH_DISKSTATS_WRITE] * SECTOR_BYTES;
}

static uint64_t since(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

struct disks_zram disks_zram_since(const struct disks *d)
{
	if (d->reading < 2)
		return (struct disks_zram){ 0 };
	return (struct disks_zram){
		.read_bytes = since(d->zram.read_bytes, d->zram_before.read_bytes),
		.written_bytes = since(d->zram.written_bytes, d->zram_before.written_bytes),
	};
}

void disks_take_line(struct disks *d, struct cursor line)
{
	struct watch_diskstats stats;
	struct disks_row *row;

	if (watch_parse_diskstats_line(line, &stats) < 0)
		return;
	row = row_find(d, &stats);
	if (row && strcmp(row->name, stats.name) != 0) {
		/*
		 * The kernel reuses device numbers of the extended block major for other devices.
		 */
		row_forget(d, row);
		row = NULL;
	}
	if (!row)
		row = row_add(d, &stats);
	if (!row) {
		d->left_out++;
		return;
	}
	/* If a file named a device twice, its counters would seem to go back. */
	if (row->reading == d->reading)
		return;
	row->reading = d->reading;
	take_zram(&d->zram, &stats);
	if (row->left_out) {
		/* The pattern matched before; another device may have made room since. */
		row->disk = disk_add(d, &stats);
		row->left_out = row->disk < 0;
	}
	if (row->left_out)
		d->left_out++;
	if (row->disk < 0)
		return;
	disk_take_stats(d, &d->disks[row->disk], &stats);
}

/*
 * What a suspended device holds back is not in flight, so /proc/diskstats shows nothing. The kernel
 * answers from a flag.
 */
static bool is_suspended(const struct disks_disk *disk)
{
	char text[8];

	return disk->suspended_fd >= 0 &&
		file_read_fd(disk->suspended_fd, text, sizeof(text)) > 0 && text[0] == '1';
}

/*
 * While the host is well: a device that is made anew under the same number has another file, and
 * the kernel allocates a buffer at the first reading.
 */
static void keep_suspended_open(struct disks *d)
{
	char text[8];

	for (unsigned int i = 0; i < SUSPENDED_CHECKS && d->disks_count > 0; i++) {
		struct disks_disk *disk = &d->disks[d->checked++ % d->disks_count];

		if (!disk->used || file_read_fd(disk->suspended_fd, text, sizeof(text)) > 0)
			continue;
		close_fd(disk->suspended_fd);
		disk->suspended_fd = open_suspended(d, &disk->view);
	}
}

void disks_end_reading(struct disks *d, bool armed)
{
	if (!armed)
		keep_suspended_open(d);
	for (uint32_t i = 0; i < d->disks_count; i++)
		d->disks[i].view.suspended =
			armed && d->disks[i].used && is_suspended(&d->disks[i]);
	for (uint32_t i = 0; i < d->rows_count; i++)
		if (d->rows[i].used && d->rows[i].reading != d->reading)
			row_forget(d, &d->rows[i]);
}

const char *disks_find_name(const struct disks *d, uint32_t major, uint32_t minor)
{
	for (uint32_t i = 0; i < d->rows_count; i++)
		if (row_is(&d->rows[i], major, minor))
			return d->rows[i].name;
	return NULL;
}

const struct record_disk *disks_find(const struct disks *d, uint32_t major, uint32_t minor)
{
	for (uint32_t i = 0; i < d->rows_count; i++)
		if (d->rows[i].disk >= 0 && row_is(&d->rows[i], major, minor))
			return &d->disks[d->rows[i].disk].view;
	return NULL;
}

static bool disk_says_more(const struct disks_disk *one, const struct disks_disk *other)
{
	const struct record_disk *a = &one->view, *b = &other->view;

	if (a->suspended != b->suspended)
		return a->suspended;
	if (a->no_completion_ns != b->no_completion_ns)
		return a->no_completion_ns > b->no_completion_ns;
	if (a->util_pct < b->util_pct || a->util_pct > b->util_pct)
		return a->util_pct > b->util_pct;
	if (a->inflight != b->inflight)
		return a->inflight > b->inflight;
	/* That a disk in use is idle now says more than that an unused loop device is. */
	return one->before.io_ticks_ms > other->before.io_ticks_ms;
}

void disks_fill_sample(const struct disks *d, struct record_reading *sample)
{
	const struct disks_disk *top[RECORD_DEVICES_MAX];
	uint32_t count = 0, judged = 0;

	for (uint32_t i = 0; i < d->disks_count; i++) {
		const struct disks_disk *disk = &d->disks[i];
		uint32_t at = count;

		if (!disk->used)
			continue;
		judged++;
		while (at > 0 && disk_says_more(disk, top[at - 1]))
			at--;
		if (at == RECORD_DEVICES_MAX)
			continue;
		if (count < RECORD_DEVICES_MAX)
			count++;
		memmove(top + at + 1, top + at, (count - at - 1) * sizeof(top[0]));
		top[at] = disk;
	}
	for (uint32_t i = 0; i < count; i++)
		sample->devices[i] = top[i]->view;
	sample->devices_count = count;
	sample->devices_left_out = judged - count;
}
