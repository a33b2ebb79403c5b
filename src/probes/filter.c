/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/filter.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/file.h"
#include "util/log.h"
#include "util/parse.h"
#include "watch/dents.h"

static int parse_dev(const char *s, uint32_t *ret_major, uint32_t *ret_minor)
{
	struct cursor c = { s, s + strcspn(s, "\n") };
	uint64_t major, minor;

	if (cursor_u64(&c, &major) < 0 || c.p == c.end || *c.p++ != ':' ||
		cursor_u64(&c, &minor) < 0 || c.p != c.end || major > 0xfff || minor > 0xfffff)
		return -EINVAL;
	*ret_major = (uint32_t)major;
	*ret_minor = (uint32_t)minor;
	return 0;
}

static int add_dev_file(const struct trace_maps *maps, const char *path)
{
	uint32_t major, minor;
	char buf[32];
	ssize_t n = file_read_at(AT_FDCWD, path, buf, sizeof(buf));

	if (n < 0)
		return (int)n;
	if (parse_dev(buf, &major, &minor) < 0)
		return -ENODEV;
	return trace_maps_add_dev(maps, major, minor);
}

/* LVM on LUKS on md on partitions of disks is five deep. */
#define DEPTH_MAX 8
#define DIR_SIZE 512

/*
 * What a partition or volume is on, in the directory `dir` of sysfs: requests have the number of a
 * whole disk. No file system is on a disk that has partitions or is a part of a volume, so no more
 * files are traced by that.
 */
static void add_below(const struct trace_maps *maps, const char *sysfs, const char *dir,
	unsigned int depth)
{
	_cleanup_close_ int dir_fd = -1;
	char path[DIR_SIZE + 16], below[DIR_SIZE];
	struct dents dents;
	const char *entry;

	if (depth == 0)
		return;
	snprintf(path, sizeof(path), "%s/partition", dir);
	if (access(path, F_OK) == 0 && snprintf(below, sizeof(below), "%s/..", dir) < DIR_SIZE) {
		snprintf(path, sizeof(path), "%s/dev", below);
		add_dev_file(maps, path);
		add_below(maps, sysfs, below, depth - 1);
	}
	snprintf(path, sizeof(path), "%s/slaves", dir);
	dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dents_reset(&dents);
	while (dir_fd >= 0 && dents_next(&dents, dir_fd, &entry) > 0) {
		if (*entry == '.' ||
			snprintf(below, sizeof(below), "%s/class/block/%s", sysfs, entry) >=
				DIR_SIZE)
			continue;
		snprintf(path, sizeof(path), "%s/dev", below);
		add_dev_file(maps, path);
		add_below(maps, sysfs, below, depth - 1);
	}
}

/* A disk includes its partitions, since the device of a file is the one its file system is on. */
static int add_device(const struct trace_maps *maps, const char *sysfs, const char *name)
{
	_cleanup_close_ int dir_fd = -1;
	char path[PATH_MAX], dir[DIR_SIZE];
	uint32_t major, minor;
	struct dents dents;
	const char *entry;
	int r;

	if (parse_dev(name, &major, &minor) == 0) {
		snprintf(dir, sizeof(dir), "%s/dev/block/%" PRIu32 ":%" PRIu32, sysfs, major,
			minor);
		r = trace_maps_add_dev(maps, major, minor);
		add_below(maps, sysfs, dir, DEPTH_MAX);
		return r;
	}
	snprintf(path, sizeof(path), "%s/class/block/%s/dev", sysfs, name);
	r = add_dev_file(maps, path);
	if (r < 0)
		return r;
	snprintf(dir, sizeof(dir), "%s/class/block/%s", sysfs, name);
	add_below(maps, sysfs, dir, DEPTH_MAX);
	snprintf(path, sizeof(path), "%s/class/block/%s", sysfs, name);
	/* Unlike opendir(), which takes 32 KiB from the kernel, this allocates nothing. */
	dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dents_reset(&dents);
	while (dir_fd >= 0 && dents_next(&dents, dir_fd, &entry) > 0) {
		if (strncmp(entry, name, strlen(name)) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/class/block/%s/%s/dev", sysfs, name, entry);
		add_dev_file(maps, path);
	}
	return 0;
}

/*
 * Its paths, and the file systems on it that have a number of their own. Returns for how many there
 * was no room.
 */
static uint32_t add_what_belongs(const struct trace_maps *maps, const struct enrich *enrich,
	const char *name)
{
	/* One more than there is room for. */
	struct record_dev numbers[EVENT_FILTER_DEVS_MAX + 1];
	uint32_t count =
		enrich ? enrich_numbers_of_disk(enrich, name, numbers, ARRAY_SIZE(numbers)) : 0;

	uint32_t left_out = 0;

	for (uint32_t i = 0; i < count; i++)
		left_out += trace_maps_add_dev(maps, numbers[i].major, numbers[i].minor) < 0;
	return left_out;
}

static int open_cgroup(const char *sysfs, const char *name)
{
	/* cgroup2 alone, or beside a cgroup v1 hierarchy */
	static const char *const roots[] = { "fs/cgroup", "fs/cgroup/unified" };
	char path[PATH_MAX];

	for (unsigned int i = 0; i < ARRAY_SIZE(roots); i++) {
		int fd;

		snprintf(path, sizeof(path), "%s/%s/cgroup.procs", sysfs, roots[i]);
		if (access(path, F_OK) < 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s/%s", sysfs, roots[i], name);
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0)
			return fd;
	}
	return -ENOENT;
}

static int set_cgroup(const struct trace_maps *maps, unsigned int index, const char *sysfs,
	const char *name)
{
	_cleanup_close_ int fd = open_cgroup(sysfs, name);

	return fd < 0 ? fd : trace_maps_set_cgroup(maps, index, fd);
}

/* Whether the item was found the last time and is missing now, or the reverse: worth a log line. */
static bool note_state(uint32_t *missing, unsigned int item, bool is_missing)
{
	const uint32_t bit = 1U << item;
	bool was_missing = *missing & bit;

	*missing = is_missing ? *missing | bit : *missing & ~bit;
	return was_missing != is_missing;
}

static void fill_devices(struct trace_maps *maps, const struct config_list *names,
	const char *sysfs, const struct enrich *enrich)
{
	uint32_t left_out = 0;

	static_assert(CONFIG_LIST_MAX <= 32, "a bit for each item");
	for (unsigned int i = 0; i < names->count; i++) {
		const char *name = names->items[i];
		int r = add_device(maps, sysfs, name);

		if (!note_state(&maps->filter.missing_devices, i, r < 0))
			continue;
		if (r == 0)
			log_info("trace.device: %s exists now and is traced", name);
		else
			log_warning(
				"trace.device: %s: %s; nothing on this device is traced until it exists; "
				"expected a name in %s/class/block or major:minor",
				name, strerror(-r), sysfs);
	}
	/* When all disks have their place. */
	for (unsigned int i = 0; i < names->count; i++)
		if (!(maps->filter.missing_devices & 1U << i))
			left_out += add_what_belongs(maps, enrich, names->items[i]);
	if (left_out > 0 && !maps->filter.devices_left_out)
		log_warning(
			"trace.device: there is no room for all file systems on these disks, so what is done on %u or "
			"more of them is not traced; without trace.device it is",
			left_out);
	maps->filter.devices_left_out = left_out > 0;
}

static void fill_cgroups(struct trace_maps *maps, const struct config_list *names,
	const char *sysfs)
{
	for (unsigned int i = 0; i < names->count; i++) {
		const char *name = names->items[i];
		int r = set_cgroup(maps, i, sysfs, name);

		/* The entry may still hold the cgroup that existed before. */
		if (r < 0)
			trace_maps_clear_cgroup(maps, i);
		if (!note_state(&maps->filter.missing_cgroups, i, r < 0))
			continue;
		if (r == 0)
			log_info("trace.cgroup: %s exists now and is traced", name);
		else
			log_warning(
				"trace.cgroup: %s: %s; nothing in this cgroup is traced until it exists; "
				"expected a path below %s/fs/cgroup, e.g. system.slice/mariadb.service",
				name, strerror(-r), sysfs);
	}
}

void filter_settings(const struct config *config, struct probe_settings *settings)
{
	settings->common.filter_pid = config->trace.process.count > 0;
	settings->common.filter_dev = config->trace.device.count > 0;
	settings->common.filter_cgroups = config->trace.cgroup.count;
}

void filter_refresh(struct trace_maps *maps, const struct config *config, const char *sysfs,
	const struct enrich *enrich)
{
	if (config->trace.device.count > 0 || config->trace.cgroup.count > 0)
		(void)filter_fill(maps, config, sysfs, enrich);
}

int filter_fill(struct trace_maps *maps, const struct config *config, const char *sysfs,
	const struct enrich *enrich)
{
	/* An incident may be about to begin, so what is still named is never missing. */
	maps->filter.filling++;
	fill_devices(maps, &config->trace.device, sysfs, enrich);
	for (unsigned int i = config->trace.cgroup.count; i < EVENT_FILTER_CGROUPS_MAX; i++)
		trace_maps_clear_cgroup(maps, i);
	fill_cgroups(maps, &config->trace.cgroup, sysfs);
	return trace_maps_remove_old_devs(maps);
}
