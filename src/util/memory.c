/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/memory.h"

#include <fcntl.h>
#include <unistd.h>

#include "util/file.h"
#include "util/parse.h"

uint64_t memory_resident_bytes(void)
{
	char buf[128];
	struct cursor c = { buf, buf };
	uint64_t size, resident;
	ssize_t n = file_read_at(AT_FDCWD, "/proc/self/statm", buf, sizeof(buf));

	if (n > 0)
		c.end = buf + n;
	if (cursor_u64(&c, &size) < 0 || cursor_u64(&c, &resident) < 0)
		return 0;
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}
