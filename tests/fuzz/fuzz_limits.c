/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of mountinfo, /proc/PID/cgroup and memory.stat: each input is taken as all three. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "watch/cgroups.h"
#include "watch/filesystems.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_mounts(struct cursor text)
{
	struct filesystems_mount mount;
	struct cursor line;

	while (cursor_line(&text, &line)) {
		memset(&mount, 0x7f, sizeof(mount));
		if (filesystems_parse_mount(line, &mount) == 0 &&
			!memchr(mount.point, '\0', sizeof(mount.point)))
			abort();
	}
}

static void check_path(const char *buf, size_t size)
{
	struct cursor path;
	bool v1;

	if (cgroups_parse_path(buf, size, &path, &v1) < 0)
		return;
	if (path.p < buf || path.end > buf + size || path.p >= path.end || *path.p != '/' ||
		memchr(path.p, '\n', (size_t)(path.end - path.p)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *buf = (const char *)data;

	check_mounts((struct cursor){ buf, buf + size });
	check_path(buf, size);
	(void)cgroups_parse_reclaimable(buf, size);
	return 0;
}
