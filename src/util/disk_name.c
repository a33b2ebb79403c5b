/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/disk_name.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "util/cleanup.h"

static size_t count_digits(const char *s)
{
	return strspn(s, "0123456789");
}

bool disk_name_is_partition_of(const char *name, const char *disk)
{
	size_t len = strlen(disk);

	if (len == 0 || strncmp(name, disk, len) != 0)
		return false;
	name += len;
	if (isdigit((unsigned char)disk[len - 1]) && *name++ != 'p')
		return false;
	return *name && name[count_digits(name)] == '\0';
}

/* The length of a letter with a number behind it; 0: there is none. */
static size_t numbered(const char *s, char letter)
{
	size_t digits = *s == letter ? count_digits(s + 1) : 0;

	return digits ? digits + 1 : 0;
}

bool disk_name_of_path(const char *path, char *ret_disk, size_t size)
{
	const size_t type = strlen("nvme");
	size_t subsystem, controller, space;
	int len;

	*ret_disk = '\0';
	subsystem = strncmp(path, "nvme", type) == 0 ? count_digits(path + type) : 0;
	controller = subsystem ? numbered(path + type + subsystem, 'c') : 0;
	space = controller ? numbered(path + type + subsystem + controller, 'n') : 0;
	if (!space || path[type + subsystem + controller + space] != '\0')
		return false;
	len = snprintf(ret_disk, size, "%.*s%s", (int)(type + subsystem), path,
		path + type + subsystem + controller);
	if ((size_t)len < size)
		return true;
	*ret_disk = '\0';
	return false;
}

bool disk_name_is_on(const char *name, const char *disk)
{
	char of_path[64];

	if (strcmp(name, disk) == 0)
		return true;
	if (disk_name_of_path(disk, of_path, sizeof(of_path)))
		disk = of_path;
	return strcmp(name, disk) == 0 || disk_name_is_partition_of(name, disk);
}

bool disk_name_is_stacked(const char *name)
{
	static const char *const drivers[] = { "loop", "dm-", "md", "drbd", "bcache" };

	for (unsigned int i = 0; i < ARRAY_SIZE(drivers); i++)
		if (strncmp(name, drivers[i], strlen(drivers[i])) == 0)
			return true;
	/* A volume of ZFS. */
	return strncmp(name, "zd", 2) == 0 && isdigit((unsigned char)name[2]);
}
