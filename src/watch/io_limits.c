/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/io_limits.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/number.h"
#include "util/text.h"
#include "watch/cgroup_path.h"

static const char *const v1_files[RECORD_IO_LIMIT_COUNT] = {
	[RECORD_IO_LIMIT_read_bytes] = "blkio.throttle.read_bps_device",
	[RECORD_IO_LIMIT_write_bytes] = "blkio.throttle.write_bps_device",
	[RECORD_IO_LIMIT_reads] = "blkio.throttle.read_iops_device",
	[RECORD_IO_LIMIT_writes] = "blkio.throttle.write_iops_device",
};

static void group_free(struct io_limits_group *group)
{
	if (!group->used)
		return;
	for (unsigned int i = 0; i < IO_LIMITS_FILES; i++)
		close_fd(group->fds[i]);
	group->used = false;
}

void io_limits_reset(struct io_limits *l)
{
	for (unsigned int i = 0; i < IO_LIMITS_GROUPS_MAX; i++)
		group_free(&l->groups[i]);
	l->left_out = 0;
}

/* False: the controller is not enabled for this group. */
static bool group_open(struct io_limits_group *group, int sysfs_fd, const struct cgroup_path *path)
{
	for (unsigned int i = 0; i < IO_LIMITS_FILES; i++) {
		const char *name = path->v1 ? v1_files[i + 1] : i == 0 ? "io.max" : NULL;

		group->fds[i] = name ? cgroup_path_open(path, sysfs_fd, "blkio", name) : -1;
	}
	group->used = true;
	group->v1 = path->v1;
	group->id = cgroup_path_id(path, sysfs_fd);
	text_copy_end(group->path, sizeof(group->path), path->path.p,
		(size_t)(path->path.end - path->path.p));
	if (group->fds[0] >= 0)
		return true;
	group_free(group);
	return false;
}

/* NULL: there is no more room. */
static struct io_limits_device *get_device(struct io_limits_group *group, uint32_t major,
	uint32_t minor)
{
	struct io_limits_device *d = group->devices;

	for (; d < group->devices + group->devices_count; d++)
		if (d->major == major && d->minor == minor)
			return d;
	if (group->devices_count == CGROUP_STATS_DEVICES_MAX)
		return NULL;
	group->devices_count++;
	*d = (struct io_limits_device){ .major = major, .minor = minor };
	return d;
}

/* The text of a file of the group; false: it cannot be read, so the group is gone. */
static bool read_file(int fd, char *buf, size_t size, struct cursor *ret_text)
{
	ssize_t n = fd < 0 ? -ENOENT : file_read_fd(fd, buf, size);

	if (n < 0 && n != -ENOBUFS)
		return false;
	*ret_text = (struct cursor){ buf, buf + strlen(buf) };
	return true;
}

static bool read_limits_v2(struct io_limits_group *group, char *buf, size_t size)
{
	struct cursor text, line;

	if (!read_file(group->fds[0], buf, size, &text))
		return false;
	while (cursor_line(&text, &line)) {
		struct cgroup_io_values per_s;
		struct io_limits_device *d;
		uint32_t major, minor;

		if (cgroup_parse_io_line(line, cgroup_io_max_keys, &major, &minor, &per_s) < 0)
			continue;
		d = get_device(group, major, minor);
		if (d)
			d->per_s = per_s;
	}
	return true;
}

static bool read_limits_v1(struct io_limits_group *group, char *buf, size_t size)
{
	for (unsigned int i = 0; i < IO_LIMITS_FILES; i++) {
		struct cursor text, line;

		if (!read_file(group->fds[i], buf, size, &text))
			return false;
		while (cursor_line(&text, &line)) {
			struct io_limits_device *d;
			uint32_t major, minor;
			uint64_t value;

			if (cgroup_parse_device(&line, &major, &minor) < 0 ||
				cursor_u64(&line, &value) < 0)
				continue;
			d = get_device(group, major, minor);
			if (d)
				d->per_s.of[i + 1] = value;
		}
	}
	return true;
}

static void drop_unlimited(struct io_limits_group *group)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < group->devices_count; i++) {
		const struct io_limits_device *d = &group->devices[i];
		bool limited = false;

		for (unsigned int kind = 1; kind < RECORD_IO_LIMIT_COUNT; kind++)
			limited = limited || d->per_s.of[kind] > 0;
		if (limited)
			group->devices[kept++] = *d;
	}
	group->devices_count = kept;
}

static bool read_limits(struct io_limits_group *group, char *buf, size_t size)
{
	const bool is_there =
		group->v1 ? read_limits_v1(group, buf, size) : read_limits_v2(group, buf, size);

	drop_unlimited(group);
	return is_there;
}

static bool has_limit(struct io_limits_group *group)
{
	char buf[2048];

	return read_limits(group, buf, sizeof(buf)) && group->devices_count > 0;
}

/* A group without a limit gives way to one that has. NULL: there is no room. */
static struct io_limits_group *find_place(struct io_limits *l, struct io_limits_group *group)
{
	for (unsigned int i = 0; i < IO_LIMITS_GROUPS_MAX; i++)
		if (!l->groups[i].used)
			return &l->groups[i];
	if (!has_limit(group))
		return NULL;
	for (unsigned int i = 0; i < IO_LIMITS_GROUPS_MAX; i++)
		if (l->groups[i].devices_count == 0)
			return &l->groups[i];
	l->left_out++;
	return NULL;
}

static void add_group(struct io_limits *l, struct cgroup_stats *stats, int sysfs_fd,
	const struct cgroup_path *path)
{
	uint64_t hash = cgroup_path_hash(path);
	struct io_limits_group *place, opened = { .path_hash = hash };

	for (unsigned int i = 0; i < IO_LIMITS_GROUPS_MAX; i++)
		if (l->groups[i].used && l->groups[i].path_hash == hash)
			return;
	if (!group_open(&opened, sysfs_fd, path))
		return;
	place = find_place(l, &opened);
	if (!place ||
		(!path->v1 &&
			cgroup_stats_set(stats, CGROUP_STATS_IO, (unsigned int)(place - l->groups),
				path) < 0)) {
		group_free(&opened);
		return;
	}
	group_free(place);
	*place = opened;
}

void io_limits_learn(struct io_limits *l, struct cgroup_stats *stats, int sysfs_fd, const char *buf,
	size_t len)
{
	struct cgroup_path path;

	if (cgroup_path_parse(buf, len, "blkio", sysfs_fd, &path) < 0 ||
		!cgroup_path_is_reachable(&path) || path.path.end - path.path.p < 2)
		return;
	do
		add_group(l, stats, sysfs_fd, &path);
	while (!path.v1 && cgroup_path_ascend(&path));
}

static void take_used(struct io_limits_device *d, const struct cgroup_io_values *done,
	uint64_t interval_ns)
{
	d->nearest = RECORD_IO_LIMIT_NONE;
	d->used_pct = 0;
	for (unsigned int kind = 1; kind < RECORD_IO_LIMIT_COUNT; kind++) {
		double at_most = (double)d->per_s.of[kind] * (double)interval_ns / NSEC_PER_SEC;
		double used_pct = at_most > 0 ? 100 * (double)done->of[kind] / at_most : 0;

		if (at_most > 0 && (!d->nearest || used_pct > d->used_pct)) {
			d->used_pct = used_pct;
			d->nearest = (enum record_io_limit)kind;
		}
	}
}

static void take_counters(struct io_limits_device *d, const struct cgroup_io_values *now,
	uint64_t now_ns)
{
	struct cgroup_io_values done = { { 0 } };

	for (unsigned int kind = 1; kind < RECORD_IO_LIMIT_COUNT; kind++)
		done.of[kind] = minus(now->of[kind], d->before.of[kind]);
	take_used(d, &done, d->before_ns ? minus(now_ns, d->before_ns) : 0);
	d->before = *now;
	d->before_ns = now_ns;
}

/* NULL: it was not asked about. */
static const struct cgroup_stats_device *find_answer(const struct cgroup_stats_io *io,
	const struct io_limits_device *d)
{
	for (uint32_t i = 0; i < io->devices_count; i++)
		if (io->devices[i].major == d->major && io->devices[i].minor == d->minor)
			return &io->devices[i];
	return NULL;
}

/* Without an answer it is not known what was used; the next one is for both intervals. */
static void take_used_v2(struct io_limits_group *group, const struct cgroup_stats_reading *answer)
{
	for (uint32_t i = 0; i < group->devices_count; i++) {
		struct io_limits_device *d = &group->devices[i];
		const struct cgroup_stats_device *a = answer ? find_answer(&answer->io, d) : NULL;

		d->nearest = RECORD_IO_LIMIT_NONE;
		d->used_pct = 0;
		if (a && a->found)
			take_counters(d, &a->counters, answer->ns);
		else if (a)
			d->before_ns = 0;
	}
}

static void ask(const struct io_limits_group *group, struct cgroup_stats_io *io)
{
	io->devices_count = group->devices_count;
	for (uint32_t i = 0; i < group->devices_count; i++)
		io->devices[i] = (struct cgroup_stats_device){ .major = group->devices[i].major,
			.minor = group->devices[i].minor };
}

static void update_used_v2(struct io_limits_group *group, struct cgroup_stats *stats,
	unsigned int slot)
{
	struct cgroup_stats_reading *question;

	take_used_v2(group, cgroup_stats_take(stats, CGROUP_STATS_IO, slot));
	question = cgroup_stats_ask(stats, CGROUP_STATS_IO, slot);
	if (question)
		ask(group, &question->io);
}

static void read_used_v1(struct io_limits_group *group, const struct disks *disks,
	uint64_t interval_ns)
{
	for (uint32_t i = 0; i < group->devices_count; i++) {
		struct io_limits_device *d = &group->devices[i];
		const struct record_disk *disk = disks_find(disks, d->major, d->minor);
		struct cgroup_io_values done = { { 0 } };

		if (disk) {
			done.of[RECORD_IO_LIMIT_read_bytes] = disk->read_bytes;
			done.of[RECORD_IO_LIMIT_write_bytes] = disk->write_bytes;
			done.of[RECORD_IO_LIMIT_reads] = disk->reads;
			done.of[RECORD_IO_LIMIT_writes] = disk->writes;
		}
		take_used(d, &done, disk ? interval_ns : 0);
	}
}

/* False: the group has been removed. */
static bool group_update(struct io_limits *l, unsigned int slot, struct cgroup_stats *stats,
	const struct disks *disks, uint64_t now_ns, char *buf, size_t size)
{
	struct io_limits_group *group = &l->groups[slot];
	uint64_t interval_ns = group->before_ns ? now_ns - group->before_ns : 0;

	group->before_ns = now_ns;
	for (uint32_t i = 0; i < group->devices_count; i++)
		memset(&group->devices[i].per_s, 0, sizeof(group->devices[i].per_s));
	if (!read_limits(group, buf, size))
		return false;
	if (group->devices_count == 0)
		return true;
	if (group->v1)
		read_used_v1(group, disks, interval_ns);
	else
		update_used_v2(group, stats, slot);
	return true;
}

void io_limits_update(struct io_limits *l, struct cgroup_stats *stats, const struct disks *disks,
	uint64_t now_ns, char *buf, size_t size)
{
	for (unsigned int i = 0; i < IO_LIMITS_GROUPS_MAX; i++)
		if (l->groups[i].used && !group_update(l, i, stats, disks, now_ns, buf, size))
			group_free(&l->groups[i]);
}

static void fill_device(const struct io_limits_group *group, const struct io_limits_device *d,
	const struct disks *disks, struct record_limits *limits)
{
	uint32_t at = limits->io_count;
	const char *name = disks_find_name(disks, d->major, d->minor);

	while (at > 0 && d->used_pct > limits->io[at - 1].used_pct)
		at--;
	if (at == RECORD_IO_LIMITS_MAX)
		return;
	if (limits->io_count < RECORD_IO_LIMITS_MAX)
		limits->io_count++;
	memmove(&limits->io[at + 1], &limits->io[at],
		(limits->io_count - at - 1) * sizeof(limits->io[0]));
	limits->io[at] = (struct record_io_limited){
		.id = group->id,
		.dev = { d->major, d->minor },
		.kind = d->nearest,
		.per_s = d->per_s.of[d->nearest],
		.used_pct = d->used_pct,
	};
	text_copy(limits->io[at].path, sizeof(limits->io[at].path), group->path);
	text_copy(limits->io[at].dev_name, sizeof(limits->io[at].dev_name), name ? name : "");
}

void io_limits_fill(const struct io_limits *l, const struct disks *disks,
	struct record_limits *limits)
{
	limits->io_count = 0;
	for (unsigned int i = 0; i < IO_LIMITS_GROUPS_MAX; i++)
		for (uint32_t j = 0; l->groups[i].used && j < l->groups[i].devices_count; j++)
			if (l->groups[i].devices[j].nearest)
				fill_device(&l->groups[i], &l->groups[i].devices[j], disks, limits);
}
