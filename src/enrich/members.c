/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "enrich/members.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "util/text.h"

static void read_set(const char *path, struct members_set *ret_set)
{
	struct dirent *entry;
	DIR *dir = opendir(path);

	ret_set->count = 0;
	while (dir && ret_set->count < MEMBERS_MAX && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && strlen(entry->d_name) < RECORD_DISK_NAME_SIZE)
			text_copy(ret_set->names[ret_set->count++], RECORD_DISK_NAME_SIZE,
				entry->d_name);
	if (dir)
		closedir(dir);
}

void members_learn(struct members *members, const char *sysfs)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	members->count = 0;
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

const struct members_set *members_find(const struct members *members, const char *name)
{
	for (unsigned int i = 0; i < members->count; i++)
		for (unsigned int j = 0; j < members->sets[i].count; j++)
			if (strcmp(members->sets[i].names[j], name) == 0)
				return &members->sets[i];
	return NULL;
}
