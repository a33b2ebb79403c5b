/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "enrich/members.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "util/file.h"
#include "util/text.h"

#define TEXT_SIZE 8192

/* One too many is counted, and has no place. */
static void add(struct members_set *set, const char *name)
{
	if (set->count < MEMBERS_MAX)
		text_copy(set->names[set->count], sizeof(set->names[0]), name);
	if (set->count <= MEMBERS_MAX)
		set->count++;
}

static void read_set(const char *path, struct members_set *ret_set)
{
	struct dirent *entry;
	DIR *dir = opendir(path);

	ret_set->count = 0;
	*ret_set->pool = '\0';
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && strlen(entry->d_name) < RECORD_DISK_NAME_SIZE)
			add(ret_set, entry->d_name);
	if (dir)
		closedir(dir);
}

static void learn_btrfs(struct members *members, const char *sysfs)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/fs/btrfs", sysfs);
	dir = opendir(path);
	/* A directory for each file system, by its UUID, and one of features. */
	while (dir && members->count < MEMBERS_SETS_MAX && (entry = readdir(dir))) {
		struct members_set *set = &members->sets[members->count];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/fs/btrfs/%s/devices", sysfs, entry->d_name);
		read_set(path, set);
		members->count += set->count > 1;
	}
	if (dir)
		closedir(dir);
}

/* Writes what stands behind that at the beginning of a line. False: there is no such line. */
static bool find_line(const char *text, const char *key, char *ret_value, size_t size)
{
	size_t len = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, len) == 0) {
			text_copy(ret_value, size, line + len);
			ret_value[strcspn(ret_value, "\n")] = '\0';
			return *ret_value;
		}
	}
	return false;
}

/* The name of the pool to which a device belongs by its entry in udev's database. */
static bool read_pool(const char *udev, const char *device, char ret_pool[static MEMBERS_POOL_SIZE])
{
	char path[PATH_MAX], text[TEXT_SIZE], type[32];

	snprintf(path, sizeof(path), "%s/%s", udev, device);
	return file_read_at(AT_FDCWD, path, text, sizeof(text)) > 0 &&
		find_line(text, "E:ID_FS_TYPE=", type, sizeof(type)) &&
		strcmp(type, "zfs_member") == 0 &&
		find_line(text, "E:ID_FS_LABEL=", ret_pool, MEMBERS_POOL_SIZE);
}

/* The name of the device with that number, "8:1". */
static bool read_name(const char *sysfs, const char *number,
	char ret_name[static RECORD_DISK_NAME_SIZE])
{
	char path[PATH_MAX], text[TEXT_SIZE];

	snprintf(path, sizeof(path), "%s/dev/block/%s/uevent", sysfs, number);
	return file_read_at(AT_FDCWD, path, text, sizeof(text)) > 0 &&
		find_line(text, "DEVNAME=", ret_name, RECORD_DISK_NAME_SIZE);
}

static struct members_set *find_pool(struct members *members, const char *pool)
{
	for (unsigned int i = 0; i < members->count; i++)
		if (strcmp(members->sets[i].pool, pool) == 0)
			return &members->sets[i];
	return NULL;
}

static struct members_set *get_pool(struct members *members, const char *pool)
{
	struct members_set *set = find_pool(members, pool);

	if (set || members->count == MEMBERS_SETS_MAX)
		return set;
	set = &members->sets[members->count++];
	set->count = 0;
	text_copy(set->pool, sizeof(set->pool), pool);
	return set;
}

/* ZFS itself tells nobody but its own tools what its pools consist of. */
static void learn_zfs(struct members *members, const char *sysfs, const char *udev)
{
	char pool[MEMBERS_POOL_SIZE], name[RECORD_DISK_NAME_SIZE];
	struct dirent *entry;
	DIR *dir = opendir(udev);

	/* Block devices by their numbers, "b8:1", and others. */
	while (dir && (entry = readdir(dir))) {
		struct members_set *set;

		if (entry->d_name[0] != 'b' || !read_pool(udev, entry->d_name, pool) ||
			!read_name(sysfs, entry->d_name + 1, name))
			continue;
		set = get_pool(members, pool);
		if (set)
			add(set, name);
	}
	if (dir)
		closedir(dir);
}

void members_learn(struct members *members, const char *sysfs, const char *udev)
{
	members->count = 0;
	learn_btrfs(members, sysfs);
	if (udev)
		learn_zfs(members, sysfs, udev);
}

static const struct members_set *if_whole(const struct members_set *set)
{
	return set && set->count <= MEMBERS_MAX ? set : NULL;
}

const struct members_set *members_find_pool(const struct members *members, const char *pool)
{
	return if_whole(find_pool((struct members *)members, pool));
}

const struct members_set *members_find(const struct members *members, const char *name)
{
	for (unsigned int i = 0; i < members->count; i++)
		for (unsigned int j = 0; j < members->sets[i].count && j < MEMBERS_MAX; j++)
			if (strcmp(members->sets[i].names[j], name) == 0)
				return if_whole(&members->sets[i]);
	return NULL;
}
