/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/dents.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/types.h>

#include "util/parse.h"

void dents_reset(struct dents *d)
{
	d->len = 0;
	d->at = 0;
}

int dents_next_number(struct dents *d, int fd, int32_t *ret_number, const char **ret_name)
{
	for (;;) {
		const struct dirent64 *entry;
		struct cursor name;
		uint64_t number;

		if (d->at >= d->len) {
			ssize_t n = getdents64(fd, d->buf, sizeof(d->buf));

			if (n < 0)
				return -errno;
			if (n == 0)
				return 0;
			d->len = (size_t)n;
			d->at = 0;
		}
		entry = (const void *)(d->buf + d->at);
		d->at += entry->d_reclen;
		name = (struct cursor){ entry->d_name, entry->d_name + strlen(entry->d_name) };
		if (cursor_u64(&name, &number) < 0 || name.p != name.end || number == 0 ||
			number > INT32_MAX)
			continue;
		*ret_number = (int32_t)number;
		*ret_name = entry->d_name;
		return 1;
	}
}
