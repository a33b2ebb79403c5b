/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "enrich/below.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/disk_name.h"
#include "util/file.h"
#include "util/text.h"
#include "watch/dents.h"

static void read_slaves(const char *sysfs, uint32_t major, uint32_t minor, char *ret_names,
	size_t size)
{
	struct text names = { .buf = ret_names, .size = size };
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX];
	const char *name;
	struct dents d;

	text_reset(&names);
	snprintf(path, sizeof(path), "%s/dev/block/%u:%u/slaves", sysfs, major, minor);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dents_reset(&d);
	while (fd >= 0 && dents_next(&d, fd, &name) > 0) {
		if (name[0] == '.')
			continue;
		/* Of some only, others would be taken for the disk that is at fault. */
		if (names.len + strlen(name) + 2 > size) {
			text_reset(&names);
			return;
		}
		text_add(&names, names.len ? "\n" : "");
		text_add(&names, name);
	}
}

/* The disk that has the file of a loop device. */
static const char *find_disk_of_file(const struct below_options *o, uint32_t major, uint32_t minor)
{
	char path[PATH_MAX], file[PATH_MAX];
	const struct mount *m;

	snprintf(path, sizeof(path), "%s/dev/block/%u:%u/loop/backing_file", o->sysfs, major,
		minor);
	if (file_read_at(AT_FDCWD, path, file, sizeof(file)) <= 0)
		return NULL;
	file[strcspn(file, "\n")] = '\0';
	m = mounts_find_path(o->mounts, file);
	return m ? o->find_disk(o->userdata, m->major, m->minor) : NULL;
}

/*
 * The names of the devices that one disk stands on, with a newline between them; empty: it stands
 * on none, on more than there is room for, or it is not known. Allocates nothing.
 */
static void read_below(const struct below_options *o, uint32_t major, uint32_t minor,
	char *ret_names, size_t size)
{
	const char *name;

	read_slaves(o->sysfs, major, minor, ret_names, size);
	name = *ret_names ? NULL : find_disk_of_file(o, major, minor);
	if (name)
		text_copy(ret_names, size, name);
}

/* Writes the first line of a file of that disk. False: there is none. */
static bool read_attribute(const char *sysfs, const char *disk, const char *file, char *ret_text,
	size_t size)
{
	char path[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/block/%s/%s", sysfs, disk, file);
	n = file_read_at(AT_FDCWD, path, ret_text, size);
	ret_text[n > 0 ? strcspn(ret_text, "\n") : 0] = '\0';
	return n > 0 && *ret_text;
}

static bool describe(const struct below_options *o, const char *disk, struct record_stacked *s)
{
	char dev[32];

	if (!read_attribute(o->sysfs, disk, "dev", dev, sizeof(dev)) ||
		sscanf(dev, "%" SCNu32 ":%" SCNu32, &s->dev.major, &s->dev.minor) != 2)
		return false;
	text_copy(s->dev_name, sizeof(s->dev_name), disk);
	read_attribute(o->sysfs, disk, "dm/name", s->label, sizeof(s->label));
	read_below(o, s->dev.major, s->dev.minor, s->below, sizeof(s->below));
	return *s->below;
}

/*
 * Where there is no room for all, loop devices of packages are left out. Disks that stand on none
 * are not asked at all, since there may be thousands.
 */
enum rank { RANK_BOTTOM = -1, RANK_VOLUME, RANK_OTHER, RANK_LOOP, RANK_COUNT };

static enum rank rank_of(const char *disk)
{
	static const char *const bottoms[] = { "sd", "nvme", "vd", "xvd", "rbd", "nbd", "zd",
		"mmcblk", "dasd", "zram" };

	if (strncmp(disk, "dm-", 3) == 0 || strncmp(disk, "md", 2) == 0)
		return RANK_VOLUME;
	for (size_t i = 0; i < ARRAY_SIZE(bottoms); i++)
		if (strncmp(disk, bottoms[i], strlen(bottoms[i])) == 0)
			return RANK_BOTTOM;
	return strncmp(disk, "loop", 4) == 0 ? RANK_LOOP : RANK_OTHER;
}

/* Of those that seldom stand on anything. */
#define LOOKED_MAX 256

void below_learn(const struct below_options *options, struct below *ret_below)
{
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX];
	const char *name;
	struct dents d;

	uint32_t looked = 0;

	ret_below->count = ret_below->left_out = 0;
	snprintf(path, sizeof(path), "%s/block", options->sysfs);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (enum rank rank = 0; fd >= 0 && rank < RANK_COUNT; rank++) {
		lseek(fd, 0, SEEK_SET);
		dents_reset(&d);
		while (dents_next(&d, fd, &name) > 0) {
			struct record_stacked s = { 0 };

			if (name[0] == '.' || rank_of(name) != rank)
				continue;
			/* This is the event loop, and each takes it some 20 us. */
			if (ret_below->count == BELOW_MAX || looked == LOOKED_MAX) {
				ret_below->left_out++;
				continue;
			}
			/* Volumes stand on something, so their list is full in time. */
			looked += rank != RANK_VOLUME;
			if (describe(options, name, &s))
				ret_below->list[ret_below->count++] = s;
		}
	}
}

/* What goes into a record */

struct choice {
	const struct below *below;
	uint64_t chosen[(BELOW_MAX + 63) / 64]; /* a bit for each of the list */
	struct record_stacked *stack;
	uint32_t count;
};

static void choose(struct choice *c, uint32_t i)
{
	if (c->count == RECORD_STACKED_MAX || c->chosen[i / 64] >> i % 64 & 1)
		return;
	c->chosen[i / 64] |= 1ull << i % 64;
	c->stack[c->count++] = c->below->list[i];
}

static void choose_name(struct choice *c, const char *name)
{
	for (uint32_t i = 0; i < c->below->count; i++)
		if (disk_name_is_on(name, c->below->list[i].dev_name))
			choose(c, i);
}

/* What the chosen ones stand on, which is chosen with them. */
static void choose_below(struct choice *c, uint32_t from)
{
	char name[RECORD_DISK_NAME_SIZE];

	for (uint32_t i = from; i < c->count; i++)
		for (const char *names = c->stack[i].below; *names;) {
			size_t len = strcspn(names, "\n");

			snprintf(name, sizeof(name), "%.*s", (int)len, names);
			choose_name(c, name);
			names += len + (names[len] == '\n');
		}
}

void below_choose(const struct below *below, const char *const *busy, uint32_t busy_count,
	const struct mounts *mounts, struct record_stacked ret_stack[static RECORD_STACKED_MAX],
	uint32_t *ret_count)
{
	struct choice c = { .below = below, .stack = ret_stack };

	for (uint32_t i = 0; i < busy_count; i++) {
		uint32_t from = c.count;

		choose_name(&c, busy[i]);
		choose_below(&c, from);
	}
	for (uint32_t i = 0; i < below->count && c.count < RECORD_STACKED_MAX; i++)
		if (mounts_find_device(mounts, below->list[i].dev.major, below->list[i].dev.minor))
			choose(&c, i);
	for (uint32_t i = 0; i < below->count; i++)
		choose(&c, i);
	*ret_count = c.count;
}
