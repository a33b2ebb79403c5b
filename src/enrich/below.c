/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "enrich/below.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/file.h"
#include "util/text.h"

void below_read_slaves(const char *sysfs, uint32_t major, uint32_t minor, char *ret_names,
	size_t size)
{
	_Alignas(struct dirent64) char buf[2048];
	struct text names = { .buf = ret_names, .size = size };
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX];
	ssize_t n;

	text_reset(&names);
	snprintf(path, sizeof(path), "%s/dev/block/%u:%u/slaves", sysfs, major, minor);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* Not readdir(3), which allocates. */
	while (fd >= 0 && (n = getdents64(fd, buf, sizeof(buf))) > 0) {
		const struct dirent64 *entry;

		for (ssize_t at = 0; at < n; at += entry->d_reclen) {
			entry = (const void *)(buf + at);
			/* A name that has no room would be another one when it is cut. */
			if (entry->d_name[0] == '.' || names.len + strlen(entry->d_name) + 2 > size)
				continue;
			text_add(&names, names.len ? "\n" : "");
			text_add(&names, entry->d_name);
		}
	}
}

const struct mount *below_find_mount(const char *sysfs, uint32_t major, uint32_t minor,
	const struct mounts *mounts)
{
	char path[PATH_MAX], file[PATH_MAX];

	snprintf(path, sizeof(path), "%s/dev/block/%u:%u/loop/backing_file", sysfs, major, minor);
	if (file_read_at(AT_FDCWD, path, file, sizeof(file)) <= 0)
		return NULL;
	file[strcspn(file, "\n")] = '\0';
	return mounts_find_path(mounts, file);
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

static bool describe(const char *sysfs, const char *disk, const struct mounts *mounts,
	struct record_stacked *s)
{
	const struct mount *mount;
	char dev[32];

	if (!read_attribute(sysfs, disk, "dev", dev, sizeof(dev)) ||
		sscanf(dev, "%" SCNu32 ":%" SCNu32, &s->dev.major, &s->dev.minor) != 2)
		return false;
	text_copy(s->dev_name, sizeof(s->dev_name), disk);
	read_attribute(sysfs, disk, "dm/name", s->label, sizeof(s->label));
	below_read_slaves(sysfs, s->dev.major, s->dev.minor, s->below, sizeof(s->below));
	mount = *s->below ? NULL : below_find_mount(sysfs, s->dev.major, s->dev.minor, mounts);
	/* "/dev/sda1" */
	if (mount && strncmp(mount->source, "/dev/", 5) == 0)
		text_copy(s->below, sizeof(s->below), mount->source + 5);
	return *s->below;
}

uint32_t below_learn(const char *sysfs, const struct mounts *mounts,
	struct record_stacked ret_stack[static RECORD_STACKED_MAX])
{
	/* Where there is no room for all, loop devices of packages are left out. */
	static const char *const prefixes[] = { "dm-", "md", "loop" };
	char path[PATH_MAX];
	struct dirent *entry;
	uint32_t count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/block", sysfs);
	dir = opendir(path);
	for (unsigned int i = 0; dir && i < ARRAY_SIZE(prefixes); i++) {
		rewinddir(dir);
		while (count < RECORD_STACKED_MAX && (entry = readdir(dir))) {
			struct record_stacked *s = &ret_stack[count];

			if (strncmp(entry->d_name, prefixes[i], strlen(prefixes[i])) != 0)
				continue;
			*s = (struct record_stacked){ 0 };
			count += describe(sysfs, entry->d_name, mounts, s);
		}
	}
	if (dir)
		closedir(dir);
	return count;
}
