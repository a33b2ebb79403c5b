/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/dents.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "util/parse.h"

/* Of a name of up to 12 bytes. */
#define ENTRY_SIZE 32

void dents_reset(struct dents *d)
{
	d->len = 0;
	d->at = 0;
	d->place = 0;
	d->next_place = 0;
	d->read_size = sizeof(d->buf);
}

void dents_read_at_most(struct dents *d, uint32_t entries)
{
	if (entries < sizeof(d->buf) / ENTRY_SIZE)
		d->read_size = entries * ENTRY_SIZE;
}

void dents_seek(struct dents *d, int fd, int64_t place)
{
	dents_reset(d);
	if (lseek(fd, place, SEEK_SET) >= 0)
		d->next_place = place;
}

int dents_next(struct dents *d, int fd, const char **ret_name)
{
	const struct dirent64 *entry;

	if (d->at >= d->len) {
		ssize_t n = getdents64(fd, d->buf, d->read_size);

		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		d->len = (size_t)n;
		d->at = 0;
	}
	entry = (const void *)(d->buf + d->at);
	d->at += entry->d_reclen;
	d->place = d->next_place;
	d->next_place = entry->d_off;
	*ret_name = entry->d_name;
	return 1;
}

int dents_next_number(struct dents *d, int fd, int32_t *ret_number, const char **ret_name)
{
	const char *name = NULL;
	int r;

	while ((r = dents_next(d, fd, &name)) > 0) {
		struct cursor c = { name, name + strlen(name) };
		uint64_t number;

		if (cursor_u64(&c, &number) < 0 || c.p != c.end || number > INT32_MAX)
			continue;
		*ret_number = (int32_t)number;
		*ret_name = name;
		return 1;
	}
	return r;
}
