/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* asprintf */
#endif

#include "config/dir.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_drop_in(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	/* Hidden files belong to editors and may be half written. */
	return entry->d_name[0] != '.' && len > 5 && strcmp(entry->d_name + len - 5, ".conf") == 0;
}

/* Not alphasort(): the order must not depend on the locale. */
static int compare_names(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

void config_dir_done(struct config_dir *d)
{
	for (unsigned int i = 0; i < d->count; i++)
		free(d->paths[i]);
	free(d->paths);
}

int config_dir_read(const char *dir, struct config_dir *ret_dir)
{
	struct dirent **entries;
	struct config_dir found = { 0 };
	int r = 0, count = scandir(dir, &entries, is_drop_in, compare_names);

	if (count < 0)
		return errno == ENOENT ? 0 : -errno;
	found.paths = calloc((size_t)count + 1, sizeof(found.paths[0]));
	for (int i = 0; i < count; i++) {
		if (!found.paths || r < 0)
			r = -ENOMEM;
		else if (asprintf(&found.paths[found.count], "%s/%s", dir, entries[i]->d_name) < 0)
			r = -ENOMEM;
		else
			found.count++;
		free(entries[i]);
	}
	free(entries);
	if (r < 0) {
		config_dir_done(&found);
		return r;
	}
	*ret_dir = found;
	return 0;
}
