/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of mountinfo, /proc/PID/cgroup, memory.stat and memory.events: each input as all. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "watch/cgroups.h"
#include "watch/fs_usage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_mounts(struct cursor text)
{
	struct fs_usage_mount mount;
	struct cursor line;

	while (cursor_line(&text, &line)) {
		memset(&mount, 0x7f, sizeof(mount));
		if (fs_usage_parse_mount(line, &mount) == 0 &&
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

static void check_counts(const char *buf, size_t size)
{
	struct cursor text = { buf, buf + size }, line;
	struct cgroups_counts counts = { 0 };

	while (cursor_line(&text, &line))
		refaults_take_line(line, &counts.refaults);
	cgroups_parse_events(buf, size, &counts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *buf = (const char *)data;

	check_mounts((struct cursor){ buf, buf + size });
	check_path(buf, size);
	(void)cgroups_parse_reclaimable(buf, size);
	check_counts(buf, size);
	return 0;
}
