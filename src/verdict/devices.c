/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "verdict/devices.h"

#include <stdio.h>
#include <string.h>

#include "util/disk_name.h"

/* LVM on LUKS on md on partitions of disks is five deep. */
#define STACK_DEPTH_MAX 8

int verdict_find_device(const struct verdict_facts *f, uint32_t major, uint32_t minor)
{
	for (uint32_t i = 0; i < f->devices_count; i++)
		if (f->devices[i].major == major && f->devices[i].minor == minor)
			return (int)i;
	return -1;
}

/* A partition that was noted by a wait for its files before there was a line about its disk. */
static int find_orphan(const struct verdict_facts *f, const char *disk)
{
	for (uint32_t i = 0; i < f->devices_count; i++)
		if (!f->devices[i].sampled && !f->devices[i].has_totals &&
			disk_name_is_partition_of(f->devices[i].name, disk))
			return (int)i;
	return -1;
}

/* Of a path of NVMe the disk that file systems are on. */
static void set_label(const struct verdict_facts *f, struct verdict_device *d)
{
	disk_name_of_path(d->name, d->label, sizeof(d->label));
	for (uint32_t i = 0; i < f->stack_count; i++)
		if (strcmp(f->stack[i].name, d->name) == 0)
			text_copy(d->label, sizeof(d->label), f->stack[i].label);
}

int verdict_get_device(struct verdict_facts *f, uint32_t major, uint32_t minor, const char *name)
{
	struct verdict_device *d;
	int i = verdict_find_device(f, major, minor);

	if (i < 0 && major == 0 && minor == 0)
		return i;
	if (i >= 0 && (*f->devices[i].name || !*name))
		return i;
	if (i < 0)
		i = find_orphan(f, name);
	if (i < 0 && f->devices_count == VERDICT_DEVICES_MAX)
		return -1;
	if (i < 0)
		i = (int)f->devices_count++;
	d = &f->devices[i];
	d->major = major;
	d->minor = minor;
	text_copy(d->name, sizeof(d->name), name);
	set_label(f, d);
	return i;
}

int verdict_get_fs_device(struct verdict_facts *f, uint32_t major, uint32_t minor, const char *name)
{
	int i = verdict_find_device(f, major, minor);

	for (uint32_t j = 0; i < 0 && j < f->devices_count; j++)
		if (disk_name_is_partition_of(name, f->devices[j].name) ||
			(major == 0 && *name && strcmp(name, f->devices[j].name) == 0))
			i = (int)j;
	/*
	 * Anonymous devices have major 0. Those of btrfs and overlay have the name of a disk, which
	 * has a sample; those of FUSE and NFS that of a source.
	 */
	return i >= 0 || major == 0 ? i : verdict_get_device(f, major, minor, name);
}

static struct verdict_stack *find_stack(struct verdict_facts *f, const char *name)
{
	for (uint32_t i = 0; i < f->stack_count; i++)
		if (strcmp(f->stack[i].name, name) == 0)
			return &f->stack[i];
	return NULL;
}

void verdict_note_below(struct verdict_facts *f, const char *name, const char *label,
	const char *below)
{
	struct verdict_stack *s = find_stack(f, name);

	if (!*below || (!s && f->stack_count == VERDICT_STACK_MAX))
		return;
	if (!s)
		s = &f->stack[f->stack_count++];
	text_copy(s->name, sizeof(s->name), name);
	text_copy(s->below, sizeof(s->below), below);
	/* Half a name would be that of another disk. */
	if (strlen(below) >= sizeof(s->below))
		s->below[strrchr(s->below, '\n') ? strrchr(s->below, '\n') - s->below : 0] = '\0';
	if (*label)
		text_copy(s->label, sizeof(s->label), label);
}

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

/* The devices that a disk stands on, and so its partitions, by name, one a line. */
static const char *list_below(const struct verdict_facts *f, const char *upper)
{
	for (uint32_t i = 0; i < f->stack_count; i++)
		if (strcmp(f->stack[i].name, upper) == 0 ||
			disk_name_is_partition_of(upper, f->stack[i].name))
			return f->stack[i].below;
	return "";
}

/* `depth` ends it where a list of names makes no sense. */
static bool name_stands_on(const struct verdict_facts *f, const char *upper, const char *lower,
	unsigned int depth)
{
	const char *below = list_below(f, upper);
	char name[RECORD_DISK_NAME_SIZE];

	if (disk_name_is_on(upper, lower))
		return true;
	while (depth > 0 && next_name(&below, name))
		if (name_stands_on(f, name, lower, depth - 1))
			return true;
	return false;
}

bool verdict_name_stands_on(const struct verdict_facts *f, const char *upper, const char *lower)
{
	return name_stands_on(f, upper, lower, STACK_DEPTH_MAX);
}

bool verdict_stands_on(const struct verdict_facts *f, const struct verdict_device *upper,
	const struct verdict_device *lower)
{
	return upper == lower || verdict_name_stands_on(f, upper->name, lower->name);
}

/* The disk of that name, or that has a partition of that name. */
static const struct verdict_device *find_disk(const struct verdict_facts *f, const char *name)
{
	for (uint32_t i = 0; i < f->devices_count; i++)
		if (strcmp(f->devices[i].name, name) == 0 ||
			disk_name_is_partition_of(name, f->devices[i].name))
			return &f->devices[i];
	return NULL;
}

double verdict_util_at_most(const struct verdict_device *d)
{
	return d->util_max_pct > d->left_out_max_pct ? d->util_max_pct : d->left_out_max_pct;
}

const struct verdict_device *verdict_find_idle_below(const struct verdict_facts *f,
	const struct verdict_device *d)
{
	const struct verdict_device *busiest = NULL;
	const char *names = list_below(f, d->name);
	char name[RECORD_DISK_NAME_SIZE];

	while (next_name(&names, name)) {
		const struct verdict_device *below = find_disk(f, name);

		if (!below || below->samples < f->samples ||
			verdict_util_at_most(below) >= VERDICT_IDLE_PCT)
			return NULL;
		if (!busiest || verdict_util_at_most(below) > verdict_util_at_most(busiest))
			busiest = below;
	}
	return busiest;
}

bool verdict_is_below(const struct verdict_facts *f, const char *disk)
{
	char name[RECORD_DISK_NAME_SIZE];

	for (uint32_t i = 0; i < f->stack_count; i++) {
		const char *names = f->stack[i].below;

		while (next_name(&names, name))
			if (strcmp(name, disk) == 0 || disk_name_is_partition_of(name, disk))
				return true;
	}
	return false;
}
