/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of mountinfo and of the files of control groups: each input as all of them. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "watch/cgroup_path.h"
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

static void check_path(const char *buf, size_t size, const char *controller)
{
	struct cgroup_path path;

	if (cgroup_path_parse(buf, size, controller, -1, &path) < 0)
		return;
	do {
		const struct cursor p = path.path;

		if (p.p < buf || p.end > buf + size || p.p >= p.end || *p.p != '/' ||
			memchr(p.p, '\n', (size_t)(p.end - p.p)))
			abort();
		(void)cgroup_path_is_reachable(&path);
	} while (cgroup_path_ascend(&path));
}

static void check_io(struct cursor text)
{
	struct cgroup_io_values values;
	uint32_t major, minor;
	struct cursor line;

	while (cursor_line(&text, &line))
		(void)cgroup_parse_io_line(line, cgroup_io_max_keys, &major, &minor, &values);
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
	check_path(buf, size, "memory");
	check_path(buf, size, "blkio");
	check_io((struct cursor){ buf, buf + size });
	(void)cgroup_parse_reclaimable(buf, size);
	check_counts(buf, size);
	return 0;
}
