/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records of /dev/kmsg, the mounts of mountinfo, and /proc/loadavg: each input as all. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "enrich/mounts.h"
#include "watch/kmsg.h"
#include "watch/loadavg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct mount list[MOUNTS_MAX];
static struct mounts mounts = { .list = list };

static void check_kmsg(const char *buf, size_t size)
{
	struct kmsg_line line;
	char comm[16];
	bool in_group;
	int32_t pid;

	memset(&line, 0x7f, sizeof(line));
	if (kmsg_parse(buf, size, &line) < 0)
		return;
	if (!memchr(line.text, '\0', sizeof(line.text)) || line.level > 7)
		abort();
	(void)kmsg_is_about_storage(line.text);
	(void)kmsg_is_failure(line.text);
	(void)kmsg_names_disk(line.text, "sda");
	memset(comm, 0x7f, sizeof(comm));
	if (kmsg_parse_killed(line.text, &pid, comm, sizeof(comm), &in_group) &&
		(!memchr(comm, '\0', sizeof(comm)) || pid < 0))
		abort();
}

static void check_ends(const struct mount *m)
{
	if (!memchr(m->source, '\0', sizeof(m->source)) ||
		!memchr(m->root, '\0', sizeof(m->root)) ||
		!memchr(m->point, '\0', sizeof(m->point)))
		abort();
}

static void check_mounts(const char *buf, size_t size)
{
	/* What was there before is never the end of a text. */
	memset(list, 0x7f, sizeof(list));
	mounts_parse(&mounts, MOUNTS_MAX, buf, size);
	if (mounts.count > MOUNTS_MAX)
		abort();
	for (unsigned int i = 0; i < mounts.count; i++) {
		const struct mount *m = &mounts.list[i];
		char path[64] = "/a/b";

		check_ends(m);
		if (!mounts_find_device(&mounts, m->major, m->minor))
			abort();
		(void)mounts_find_path(&mounts, m->point);
		(void)mounts_add_point(&mounts, m->major, m->minor, path, sizeof(path));
		if (!memchr(path, '\0', sizeof(path)))
			abort();
	}
}

static void check_loadavg(const uint8_t *data, size_t size)
{
	static int fd = -1;
	struct loadavg loadavg;
	char path[32];

	if (fd < 0)
		fd = memfd_create("loadavg", MFD_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (ftruncate(fd, 0) < 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	if (loadavg_read(-1, path, &loadavg) == 0 &&
		(loadavg.threads > INT32_MAX || loadavg.newest_id < 0))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_kmsg((const char *)data, size);
	check_mounts((const char *)data, size);
	check_loadavg(data, size);
	return 0;
}
