/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/disks.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/disk_name.h"
#include "util/file.h"
#include "util/number.h"
#include "util/text.h"
#include "watch/disk_rates.h"

/* Disks of which one reading looks whether their file is still theirs. */
#define SUSPENDED_CHECKS 4
/*
 * So long no reading is taken, at most: disks that come or go send I/O as a rule, and a discard
 * without a waiter, which is not among the I/O that is counted, harms nobody.
 */
#define REST_NS (60 * NSEC_PER_SEC)

static void copy_patterns(struct disks *d, const struct config_list *device,
	const struct config_list *device_ignore)
{
	d->device = device ? *device : (struct config_list){ .count = 1, .items = { "*" } };
	d->device_ignore = device_ignore ? *device_ignore : (struct config_list){ 0 };
}

int disks_init(struct disks *d, int sysfs_fd, const struct config_list *device,
	const struct config_list *device_ignore)
{
	memset(d, 0, sizeof(*d));
	d->sysfs_fd = sysfs_fd;
	copy_patterns(d, device, device_ignore);
	return disk_rows_init(&d->rows);
}

/* Before 6.2 only the paths of an NVMe disk with native multipath count what they do. */
static bool row_matches(const struct config_list *patterns, const struct disk_row *row)
{
	char disk[RECORD_DISK_NAME_SIZE];

	return config_list_matches(patterns, row->name) ||
		(disk_name_of_path(row->name, disk, sizeof(disk)) &&
			config_list_matches(patterns, disk));
}

static bool row_is_judged(const struct disks *d, const struct disk_row *row)
{
	return !row->is_partition && row_matches(&d->device, row) &&
		!row_matches(&d->device_ignore, row);
}

/*
 * The kernel prints the partitions of a disk behind it. To ask sysfs takes a lock of it, which
 * whoever looks up a name there may hold while memory for that is written to a disk that hangs.
 */
static bool is_partition(const struct disks *d, const char *name)
{
	return d->whole != DISK_ROWS_NONE &&
		disk_name_is_partition_of(name, d->rows.rows[d->whole].name);
}

/*
 * Opened when the disk appears, or while the host is well, since a look-up in sysfs takes locks
 * that others may hold while they wait for memory. To read it the kernel takes none but a spin lock
 * of the device mapper.
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

static void disk_forget(struct disks *d, struct disk_row *row)
{
	if (row->disk < 0)
		return;
	close_fd(d->disks[row->disk].suspended_fd);
	d->disks[row->disk].used = false;
	row->disk = -1;
	d->disks_used--;
}

/*
 * The disk that has done nothing for longest, and of those that have never done anything the one
 * that was used least before; NULL: all are at work.
 */
static struct disks_disk *find_idle(struct disks *d)
{
	struct disks_disk *best = NULL;

	for (uint32_t i = 0; i < WATCH_DISKS_MAX; i++) {
		struct disks_disk *disk = &d->disks[i];

		if (disk->view.inflight > 0 || disk->view.suspended || disk->worked_ns == d->now_ns)
			continue;
		if (!best || disk->worked_ns < best->worked_ns ||
			(disk->worked_ns == best->worked_ns &&
				disk->before.io_ticks_ms < best->before.io_ticks_ms))
			best = disk;
	}
	return best;
}

static struct disks_disk *find_free(struct disks *d)
{
	uint32_t i = 0;

	if (d->disks_used == WATCH_DISKS_MAX)
		return NULL;
	while (d->disks[i].used)
		i++;
	if (i >= d->disks_count)
		d->disks_count = i + 1;
	return &d->disks[i];
}

static void disk_add(struct disks *d, struct disk_row *row, struct disks_disk *disk)
{
	memset(disk, 0, sizeof(*disk));
	disk->used = true;
	disk->row = (uint16_t)(row - d->rows.rows);
	disk->serial = ++d->serial;
	disk->view.dev.major = row->major;
	disk->view.dev.minor = row->minor;
	text_copy(disk->view.dev_name, sizeof(disk->view.dev_name), row->name);
	disk->suspended_fd = -1;
	row->disk = (int16_t)(disk - d->disks);
	d->disks_used++;
}

static void disk_add_to_free(struct disks *d, struct disk_row *row)
{
	struct disks_disk *disk = row->disk < 0 ? find_free(d) : NULL;

	if (!disk)
		return;
	disk_add(d, row, disk);
}

static void row_judge(struct disks *d, struct disk_row *row)
{
	row->judged = row_is_judged(d, row);
	if (!row->judged)
		disk_forget(d, row);
	else
		disk_add_to_free(d, row);
}

static void row_forget(struct disks *d, struct disk_row *row)
{
	disk_forget(d, row);
	disk_rows_forget(&d->rows, row);
}

static struct disk_row *row_get(struct disks *d, const struct watch_diskstats *stats)
{
	struct disk_row *row = disk_rows_expect(&d->rows);

	if (!row || row->major != stats->major || row->minor != stats->minor ||
		strcmp(row->name, stats->name) != 0)
		row = disk_rows_find(&d->rows, stats->major, stats->minor, stats->name);
	if (row)
		return row;
	row = disk_rows_add(&d->rows, stats->major, stats->minor, stats->name);
	if (!row)
		return NULL;
	row->is_partition = is_partition(d, row->name);
	row_judge(d, row);
	if (row->judged)
		d->generation++;
	return row;
}

void disks_done(struct disks *d)
{
	for (uint32_t i = 0; i < d->disks_count; i++)
		if (d->disks[i].used)
			close_fd(d->disks[i].suspended_fd);
	disk_rows_done(&d->rows);
}

void disks_set_patterns(struct disks *d, const struct config_list *device,
	const struct config_list *device_ignore)
{
	copy_patterns(d, device, device_ignore);
	for (uint32_t i = 0; i < d->rows.top; i++) {
		struct disk_row *row = &d->rows.rows[i];

		if (!row->used)
			continue;
		row_judge(d, row);
		/* The next reading takes its counters, as if they were the first. */
		row->text_hash = 0;
	}
}

/* Does not depend on utilisation, which kernel 5.10 leaves at 0 while a device is stuck. */
static void disk_take_completions(struct disks_disk *disk, const struct watch_diskstats *now,
	uint64_t now_ns)
{
	bool finished = !disk->has_before || disk_rates_completed(now, &disk->before);

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
	if (disk->has_before && disk_rates_went_back(stats, &disk->before)) {
		disk->has_before = false;
		disk->serial = ++d->serial;
	}
	if (disk->has_before && d->now_ns > disk->before_ns)
		disk_rates_fill(&disk->view, stats, &disk->before, d->now_ns - disk->before_ns);
	else
		disk_rates_clear(&disk->view);
	disk_take_completions(disk, stats, d->now_ns);
	if (stats->inflight > 0 || (disk->has_before && disk_rates_worked(stats, &disk->before)))
		disk->worked_ns = d->now_ns;
	disk->has_before = true;
	disk->before = *stats;
	disk->before_ns = d->now_ns;
}

void disks_begin_reading(struct disks *d, uint64_t now_ns)
{
	d->reading++;
	d->now_ns = now_ns;
	d->seen = d->rows_left_out = d->left_out = 0;
	d->newcomers_count = d->newcomers_replaced = 0;
	d->in_flight = false;
	d->whole = DISK_ROWS_NONE;
	disk_rows_begin(&d->rows);
	d->zram_before = d->zram;
	d->zram = (struct disks_zram){ 0 };
}

static bool is_zram(const struct watch_diskstats *stats)
{
	return strncmp(stats->name, "zram", 4) == 0;
}

static void take_zram(struct disks_zram *zram, const struct watch_diskstats *stats)
{
	if (!is_zram(stats))
		return;
	zram->read_bytes += stats->sectors[WATCH_DISKSTATS_READ] * WATCH_DISKSTATS_SECTOR_BYTES;
	zram->written_bytes += stats->sectors[WATCH_DISKSTATS_WRITE] * WATCH_DISKSTATS_SECTOR_BYTES;
}

struct disks_zram disks_zram_since(const struct disks *d)
{
	if (d->reading < 2)
		return (struct disks_zram){ 0 };
	return (struct disks_zram){
		.read_bytes = minus(d->zram.read_bytes, d->zram_before.read_bytes),
		.written_bytes = minus(d->zram.written_bytes, d->zram_before.written_bytes),
	};
}

/* FNV-1a over words: lines of 10,000 rows are compared each second. */
static uint64_t hash_line(struct cursor line)
{
	uint64_t hash = 0xcbf29ce484222325, word;
	const char *p = line.p;

	for (; line.end - p >= 8; p += 8) {
		memcpy(&word, p, 8);
		hash = (hash ^ word) * 0x100000001b3;
		hash ^= hash >> 29;
	}
	for (; p < line.end; p++)
		hash = (hash ^ (unsigned char)*p) * 0x100000001b3;
	return hash ? hash : 1;
}

/* Nothing was in flight, and nothing has happened since. */
static void disk_rest(struct disks_disk *disk, uint64_t now_ns)
{
	disk_rates_clear(&disk->view);
	disk->before_ns = now_ns;
}

/* False: the row has been there in this reading. Counters of a second one would seem to go back. */
static bool row_begin(struct disks *d, struct disk_row *row)
{
	disk_rows_pass(&d->rows, row);
	if (!row->is_partition)
		d->whole = (uint16_t)(row - d->rows.rows);
	if (row->reading == d->reading)
		return false;
	row->reading = d->reading;
	d->seen++;
	return true;
}

/* It gets a place when it is known which disks are at work. What may hang comes first. */
static void note_newcomer(struct disks *d, const struct disk_row *row,
	const struct watch_diskstats *stats)
{
	uint32_t i = d->newcomers_count;

	d->left_out++;
	if (i == WATCH_DISKS_MAX) {
		i = d->newcomers_replaced;
		while (i < WATCH_DISKS_MAX && d->newcomers[i].stats.inflight > 0)
			i++;
		if (stats->inflight == 0 || i == WATCH_DISKS_MAX)
			return;
		d->newcomers_replaced = i + 1;
	} else {
		d->newcomers_count++;
	}
	d->newcomers[i].row = (uint16_t)(row - d->rows.rows);
	d->newcomers[i].stats = *stats;
}

static void place_newcomers(struct disks *d, bool in_flight)
{
	for (uint32_t i = 0; i < d->newcomers_count; i++) {
		const struct disks_newcomer *newcomer = &d->newcomers[i];
		struct disks_disk *disk;

		if ((newcomer->stats.inflight > 0) != in_flight)
			continue;
		disk = find_free(d);
		if (!disk)
			disk = find_idle(d);
		if (!disk)
			return;
		if (disk->used)
			disk_forget(d, &d->rows.rows[disk->row]);
		disk_add(d, &d->rows.rows[newcomer->row], disk);
		disk_take_stats(d, disk, &newcomer->stats);
		disk->worked_ns = d->now_ns;
		d->left_out--;
	}
}

static void row_take_stats(struct disks *d, struct disk_row *row,
	const struct watch_diskstats *stats, uint64_t hash)
{
	bool at_work = stats->inflight > 0 || (row->text_hash && row->text_hash != hash);

	row->text_hash = hash;
	row->changes = stats->inflight > 0 || is_zram(stats);
	d->in_flight = d->in_flight || stats->inflight > 0;
	take_zram(&d->zram, stats);
	if (row->judged)
		disk_add_to_free(d, row);
	if (row->disk >= 0)
		disk_take_stats(d, &d->disks[row->disk], stats);
	else if (row->judged && at_work)
		note_newcomer(d, row, stats);
}

/* A disk has gone, or there are new patterns. */
static bool may_have_place(const struct disks *d, const struct disk_row *row)
{
	return row->judged && row->disk < 0 && d->disks_used < WATCH_DISKS_MAX;
}

void disks_take_line(struct disks *d, struct cursor line)
{
	const uint64_t hash = hash_line(line);
	struct disk_row *row = disk_rows_expect(&d->rows);
	struct watch_diskstats stats;

	if (row && row->text_hash == hash && !row->changes && !may_have_place(d, row)) {
		if (row_begin(d, row) && row->disk >= 0)
			disk_rest(&d->disks[row->disk], d->now_ns);
		return;
	}
	if (watch_parse_diskstats_line(line, &stats) < 0)
		return;
	row = row_get(d, &stats);
	if (!row)
		d->rows_left_out++;
	else if (row_begin(d, row))
		row_take_stats(d, row, &stats, hash);
}

bool disks_may_rest(const struct disks *d, uint64_t now_ns)
{
	return d->rows.count > WATCH_DISKS_MAX && !d->in_flight && d->rows_left_out == 0 &&
		now_ns - d->now_ns < REST_NS;
}

void disks_rest(struct disks *d, uint64_t now_ns)
{
	for (uint32_t i = 0; i < d->disks_count; i++)
		disk_rest(&d->disks[i], now_ns);
	d->zram_before = d->zram;
	d->left_out = 0;
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

/* While the host is well: a look-up in sysfs may wait for who waits for memory in one. */
static void open_new(struct disks *d)
{
	for (uint32_t i = 0; i < d->disks_count; i++) {
		struct disks_disk *disk = &d->disks[i];

		if (!disk->used || disk->is_looked_up)
			continue;
		disk->suspended_fd = open_suspended(d, &disk->view);
		disk->is_looked_up = true;
	}
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
	for (uint32_t i = 0; d->seen < d->rows.count && i < d->rows.top; i++)
		if (d->rows.rows[i].used && d->rows.rows[i].reading != d->reading)
			row_forget(d, &d->rows.rows[i]);
	place_newcomers(d, true);
	place_newcomers(d, false);
	if (!armed) {
		open_new(d);
		keep_suspended_open(d);
	}
	for (uint32_t i = 0; i < d->disks_count; i++)
		d->disks[i].view.suspended =
			armed && d->disks[i].used && is_suspended(&d->disks[i]);
	if (!armed)
		disk_rows_grow(&d->rows, d->rows.count + d->rows_left_out);
	/* The next reading has room for them, or nobody knows whether they are at work. */
	if (d->rows.size < d->rows.count + d->rows_left_out)
		d->left_out += d->rows_left_out;
}

const char *disks_find_name(const struct disks *d, uint32_t major, uint32_t minor)
{
	return disk_rows_find_name(&d->rows, major, minor);
}

bool disks_next_row(const struct disks *d, uint32_t *at, struct record_dev *ret_dev,
	const char **ret_name)
{
	while (*at < d->rows.top) {
		const struct disk_row *row = &d->rows.rows[(*at)++];

		if (!row->used)
			continue;
		*ret_dev = (struct record_dev){ row->major, row->minor };
		*ret_name = row->name;
		return true;
	}
	return false;
}

const struct record_disk *disks_find(const struct disks *d, uint32_t major, uint32_t minor)
{
	for (uint32_t i = 0; i < d->disks_count; i++)
		if (d->disks[i].used && d->disks[i].view.dev.major == major &&
			d->disks[i].view.dev.minor == minor)
			return &d->disks[i].view;
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

/* 5.10 has no time of a disk at work while nothing completes. */
static double busy_pct(const struct record_disk *disk)
{
	return disk->inflight && disk->no_completion_ns ? 100 : disk->util_pct;
}

double disks_busy_pct(const struct disks *d)
{
	double plain = 0, paths = 0, stacked = 0;
	char name[RECORD_DISK_NAME_SIZE];

	for (uint32_t i = 0; i < d->disks_count; i++) {
		const struct record_disk *disk = &d->disks[i].view;

		if (!d->disks[i].used)
			continue;
		if (disk_name_is_stacked(disk->dev_name))
			stacked = larger(stacked, busy_pct(disk));
		else if (disk_name_of_path(disk->dev_name, name, sizeof(name)))
			paths += busy_pct(disk);
		else
			plain += busy_pct(disk);
	}
	return larger(larger(plain, paths), stacked);
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
