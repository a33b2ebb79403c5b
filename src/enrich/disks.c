/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which disk a file system is on, and which disks stand on which. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "enrich/internal.h"
#include "util/disk_name.h"
#include "util/log.h"
#include "watch/watch.h"

/* What disks stand on changes rarely: once a minute, or when a disk appears or is mounted. */
#define LEARN_DISKS_EACH 60
/* FILESYSTEM_MAX_STACK_DEPTH of the kernel. */
#define OVERLAYS_MAX 2

/* "sda2" of "/dev/sda2", "dm-0" of "/dev/mapper/vg0-mysql"; NULL: not known. */
static const char *disk_of_source(const struct enrich *e, const char *source)
{
	if (strncmp(source, "/dev/mapper/", strlen("/dev/mapper/")) == 0) {
		for (uint32_t i = 0; i < e->below.count; i++)
			if (strcmp(e->below.list[i].label, source + strlen("/dev/mapper/")) == 0)
				return e->below.list[i].dev_name;
		return NULL;
	}
	return strncmp(source, "/dev/", strlen("/dev/")) == 0 ? source + strlen("/dev/") : NULL;
}

/* What the disk did in the last sample, or that of the partition; NULL: nothing that is known. */
static const struct record_disk *find_view(const struct enrich *e, const char *name)
{
	uint32_t serial;

	for (unsigned int slot = 0; slot < WATCH_DISKS_MAX; slot++) {
		const struct record_disk *disk = watch_disk_in_slot(e->watch, slot, &serial);

		if (disk && disk_name_is_on(name, disk->dev_name))
			return disk;
	}
	return NULL;
}

static bool does_more(const struct record_disk *a, const struct record_disk *b)
{
	if (!a || !b)
		return a && !b;
	if (a->no_completion_ns != b->no_completion_ns)
		return a->no_completion_ns > b->no_completion_ns;
	if (a->util_pct < b->util_pct || a->util_pct > b->util_pct)
		return a->util_pct > b->util_pct;
	return a->inflight > b->inflight;
}

/*
 * Whoever waits for a file system with several disks waits for any of them: most likely for one
 * that completes nothing, or else is the busiest.
 */
static const char *choose_member(const struct enrich *e, const char *name)
{
	const struct members_set *set = name ? members_find(&e->members, name) : NULL;
	const struct record_disk *best = set ? find_view(e, name) : NULL;

	for (unsigned int i = 0; set && i < set->count; i++) {
		const struct record_disk *disk = find_view(e, set->names[i]);

		if (!does_more(disk, best))
			continue;
		best = disk;
		name = set->names[i];
	}
	return name;
}

/* Of the pool that has the dataset, "tank/data". */
static const char *find_disk_of_pool(const struct enrich *e, const char *dataset)
{
	char pool[MOUNTS_SOURCE_SIZE];
	const struct members_set *set;

	text_copy(pool, sizeof(pool), dataset);
	pool[strcspn(pool, "/@")] = '\0';
	set = members_find_pool(&e->members, pool);
	return set ? choose_member(e, set->names[0]) : NULL;
}

/* The disk of a file system whose number is not that of a disk. */
static const char *find_disk_of_mount(const struct enrich *e, const struct mount *m)
{
	const char *name = NULL;

	/* An overlay that stands on overlays, as containers in a container have it. */
	for (unsigned int depth = 0; m && m->stands_on_other && depth < OVERLAYS_MAX; depth++) {
		name = watch_disk_name(e->watch, m->other_major, m->other_minor);
		m = name ? NULL : mounts_find_device(&e->mounts, m->other_major, m->other_minor);
	}
	if (m && m->source_is_pool)
		return find_disk_of_pool(e, m->source);
	return m && m->source_is_disk ? choose_member(e, disk_of_source(e, m->source)) : name;
}

/* The disk with that number, or of the file system with it; NULL: it has none, or not known. */
static const char *find_disk(const struct enrich *e, uint32_t major, uint32_t minor)
{
	const char *name = watch_disk_name(e->watch, major, minor);

	return name ? name : find_disk_of_mount(e, mounts_find_device(&e->mounts, major, minor));
}

static const char *find_disk_below(const void *userdata, uint32_t major, uint32_t minor)
{
	return find_disk(userdata, major, minor);
}

static struct below_options below_options(const struct enrich *e, const char *sysfs)
{
	return (struct below_options){ .sysfs = sysfs,
		.mounts = &e->mounts,
		.find_disk = find_disk_below,
		.userdata = e };
}

void enrich_learn_disks(struct enrich *e, const char *sysfs, const char *udev, uint32_t generation)
{
	const struct below_options options = below_options(e, sysfs);
	bool is_due = e->disks_age++ % LEARN_DISKS_EACH == 0 || generation != e->disks_generation;

	mounts_reader_set_paths(&e->mounts_reader, sysfs, udev);
	/* A pool may have got a disk, and a container that is new may have mounts of its own. */
	if (is_due)
		mounts_reader_want(&e->mounts_reader);
	if (!is_due && !e->disks_changed)
		return;
	e->disks_changed = false;
	e->disks_generation = generation;
	below_learn(&options, &e->below);
	if (e->below.left_out && !e->below_logged)
		log_warning("of %" PRIu32 " disks it is not known what they stand on: too many do",
			e->below.left_out);
	e->below_logged |= e->below.left_out > 0;
}

static bool is_at_work(const struct record_disk *disk)
{
	return disk->util_pct > 0 || disk->inflight || disk->suspended || disk->no_completion_ns;
}

/* The busiest disks of the last sample. Returns how many. */
static uint32_t find_busy(const struct enrich *e, const char *ret_names[static RECORD_STACKED_MAX])
{
	const struct record_disk *busy[RECORD_STACKED_MAX];
	uint32_t count = 0, serial;

	for (unsigned int slot = 0; slot < WATCH_DISKS_MAX; slot++) {
		const struct record_disk *disk = watch_disk_in_slot(e->watch, slot, &serial);
		uint32_t i;

		if (!disk || !is_at_work(disk))
			continue;
		if (count < RECORD_STACKED_MAX)
			count++;
		else if (!does_more(disk, busy[count - 1]))
			continue;
		for (i = count - 1; i > 0 && does_more(disk, busy[i - 1]); i--)
			busy[i] = busy[i - 1];
		busy[i] = disk;
	}
	for (uint32_t i = 0; i < count; i++)
		ret_names[i] = busy[i]->dev_name;
	return count;
}

void enrich_choose_stack(const struct enrich *e,
	struct record_stacked ret_stack[static RECORD_STACKED_MAX], uint32_t *ret_count,
	uint32_t *ret_left_out)
{
	const char *busy[RECORD_STACKED_MAX];
	uint32_t busy_count = e->below.count > RECORD_STACKED_MAX ? find_busy(e, busy) : 0;

	below_choose(&e->below, busy, busy_count, &e->mounts, ret_stack, ret_count);
	*ret_left_out = e->below.count - *ret_count + e->below.left_out;
}

void enrich_device(const struct enrich *e, uint32_t major, uint32_t minor, char *ret_name,
	size_t size)
{
	const char *name = find_disk(e, major, minor);
	const struct mount *m = name ? NULL : mounts_find_device(&e->mounts, major, minor);

	if (m)
		name = m->source;
	text_copy(ret_name, size, name ? name : "");
}

static bool is_path_of(const char *name, const char *disk)
{
	char of_path[RECORD_DISK_NAME_SIZE];

	return disk_name_of_path(name, of_path, sizeof(of_path)) && strcmp(of_path, disk) == 0;
}

/* The name of a disk that is given by its number; it may have none. */
static const char *name_of(const struct enrich *e, const char *disk)
{
	uint32_t major, minor;
	const char *name;

	if (sscanf(disk, "%" SCNu32 ":%" SCNu32, &major, &minor) != 2)
		return disk;
	name = watch_disk_name(e->watch, major, minor);
	return name ? name : disk;
}

/* Whether that disk, or one that has the same file system, is the wanted one. */
static bool has_member_on(const struct enrich *e, const char *name, const char *disk)
{
	const struct members_set *set = members_find(&e->members, name);

	if (strcmp(name, disk) == 0 || disk_name_is_partition_of(name, disk))
		return true;
	for (unsigned int i = 0; set && i < set->count; i++)
		if (strcmp(set->names[i], disk) == 0 ||
			disk_name_is_partition_of(set->names[i], disk))
			return true;
	return false;
}

uint32_t enrich_numbers_of_disk(const struct enrich *e, const char *disk,
	struct record_dev *ret_numbers, uint32_t max)
{
	uint32_t count = 0, at = 0;
	struct record_dev dev;
	const char *name;

	disk = name_of(e, disk);
	/* On 5.10 the number of what is hidden is 0:0. */
	while (count < max && watch_next_disk(e->watch, &at, &dev, &name))
		if (is_path_of(name, disk) && (dev.major || dev.minor))
			ret_numbers[count++] = dev;
	for (unsigned int i = 0; i < e->mounts.count && count < max; i++) {
		const struct mount *m = &e->mounts.list[i];

		if (m->major != 0)
			continue;
		name = find_disk_of_mount(e, m);
		if (name && has_member_on(e, name, disk))
			ret_numbers[count++] = (struct record_dev){ m->major, m->minor };
	}
	return count;
}

void enrich_below(const struct enrich *e, uint32_t major, uint32_t minor, char *ret_names,
	size_t size)
{
	*ret_names = '\0';
	for (uint32_t i = 0; i < e->below.count; i++) {
		if (e->below.list[i].dev.major != major || e->below.list[i].dev.minor != minor)
			continue;
		text_copy(ret_names, size, e->below.list[i].below);
		return;
	}
}
