/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/loadavg.h"

#include <errno.h>
#include <string.h>

#include "util/file.h"
#include "util/parse.h"

/* "0.20 0.18 0.12 1/80 11206": the fourth field is runnable threads, all threads. */
int loadavg_read(int dirfd, const char *path, struct loadavg *ret_loadavg)
{
	char buf[128];
	struct cursor c;
	const char *slash;
	uint64_t threads, newest;
	ssize_t n = file_read_at(dirfd, path, buf, sizeof(buf));

	if (n < 0)
		return (int)n;
	slash = strchr(buf, '/');
	if (!slash)
		return -EINVAL;
	c = (struct cursor){ slash + 1, buf + n };
	if (cursor_u64(&c, &threads) < 0 || cursor_u64(&c, &newest) < 0 || threads > INT32_MAX ||
		newest > INT32_MAX)
		return -EINVAL;
	*ret_loadavg = (struct loadavg){ (uint32_t)threads, (int32_t)newest };
	return 0;
}
