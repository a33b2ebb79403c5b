/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/filesystems.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/text.h"
#include "watch/lines.h"

struct reading {
	int procfs_fd;
	const char *process; /* "1" or "self": whose mounts */
	const struct config_list *patterns;
	struct filesystems_table *table;
};

static bool word_is(const char *word, size_t len, const char *what)
{
	return len == strlen(what) && memcmp(word, what, len) == 0;
}

static bool begins_with(const char *word, size_t len, const char *what)
{
	return len >= strlen(what) && memcmp(word, what, strlen(what)) == 0;
}

/*
 * "... - ext4 /dev/sda1 rw,..." behind the dash. A FUSE server may hang, and what is read-only is as full
 * as it will ever be. btrfs, bcachefs and ZFS have no device number of a disk.
 */
static bool is_on_disk(struct cursor line, uint32_t major)
{
	const char *type, *source, *options;
	size_t type_len, source_len, options_len;

	if (cursor_word(&line, &type, &type_len) < 0 ||
		cursor_word(&line, &source, &source_len) < 0 ||
		cursor_word(&line, &options, &options_len) < 0)
		return false;
	if (begins_with(type, type_len, "fuse") || word_is(options, options_len, "ro") ||
		begins_with(options, options_len, "ro,"))
		return false;
	return major != 0 || begins_with(source, source_len, "/dev/") ||
		word_is(type, type_len, "zfs");
}

int filesystems_parse_mount(struct cursor line, struct filesystems_mount *ret_mount)
{
	const char *root, *point, *word;
	size_t root_len, point_len, word_len;
	uint64_t id, parent, major, minor;

	if (cursor_u64(&line, &id) < 0 || cursor_u64(&line, &parent) < 0 ||
		cursor_u64(&line, &major) < 0 || line.p == line.end || *line.p++ != ':' ||
		cursor_u64(&line, &minor) < 0)
		return -EINVAL;
	if (cursor_word(&line, &root, &root_len) < 0 || cursor_word(&line, &point, &point_len) < 0)
		return -EINVAL;
	while (cursor_word(&line, &word, &word_len) == 0)
		if (word_is(word, word_len, "-"))
			break;
	if (!is_on_disk(line, (uint32_t)major))
		return -ENODEV;
	if (!parse_unescape_octal(point, point_len, ret_mount->point, sizeof(ret_mount->point)))
		return -ENAMETOOLONG;
	ret_mount->id = id;
	ret_mount->major = (uint32_t)major;
	ret_mount->minor = (uint32_t)minor;
	return 0;
}

void filesystems_set_usage(struct watch_filesystem *fs, const struct statvfs *st)
{
	double used = (double)(st->f_blocks - st->f_bfree);
	/* What only root may have is not there for a database. */
	double usable = used + (double)st->f_bavail;

	fs->used_pct = usable > 0 ? 100 * used / usable : NAN;
	fs->free_bytes = (uint64_t)st->f_bavail * st->f_frsize;
	/* btrfs and vfat make inodes as they need them. */
	fs->inodes_pct = st->f_files > 0 && st->f_files >= st->f_ffree ?
		100 * (double)(st->f_files - st->f_ffree) / (double)st->f_files : NAN;
}

static bool is_wanted(const struct config_list *patterns, const char *point)
{
	for (unsigned int i = 0; i < patterns->count; i++)
		if (fnmatch(patterns->items[i], point, 0) == 0)
			return true;
	return false;
}

static bool is_known(const struct filesystems_table *table, const struct filesystems_mount *mount)
{
	for (uint32_t i = 0; i < table->count; i++)
		if (table->list[i].major == mount->major && table->list[i].minor == mount->minor)
			return true;
	return false;
}

/* The end of a long path says the most. */
static void copy_end(char *dst, size_t size, const char *path)
{
	size_t len = strlen(path);

	if (len < size)
		text_copy(dst, size, path);
	else
		snprintf(dst, size, "...%s", path + len - (size - 4));
}

/* Another mount may lie over it: then the numbers would be those of another file system. */
static int ask(const struct reading *r, const struct filesystems_mount *mount, struct statvfs *ret_st)
{
	char path[sizeof("self/root") + sizeof(mount->point)];
	_cleanup_close_ int fd = -1;
	struct statx stx;

	snprintf(path, sizeof(path), "%s/root%s", r->process, mount->point);
	fd = openat(r->procfs_fd, path, O_PATH | O_CLOEXEC);
	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_MNT_ID, &stx) < 0)
		return -errno;
	if ((stx.stx_mask & STATX_MNT_ID) && stx.stx_mnt_id != mount->id)
		return -ESTALE;
	return fstatvfs(fd, ret_st) < 0 ? -errno : 0;
}

static void take_mount(void *arg, struct cursor line)
{
	struct reading *r = arg;
	struct filesystems_mount mount;
	struct watch_filesystem *fs;
	struct statvfs st;
	int error = filesystems_parse_mount(line, &mount);

	if (error == -ENAMETOOLONG)
		r->table->left_out++;
	if (error < 0 || !is_wanted(r->patterns, mount.point) || is_known(r->table, &mount))
		return;
	if (ask(r, &mount, &st) < 0)
		return;
	if (r->table->count == WATCH_FILESYSTEMS_MAX) {
		r->table->left_out++;
		return;
	}
	fs = &r->table->list[r->table->count++];
	*fs = (struct watch_filesystem){ .major = mount.major, .minor = mount.minor };
	copy_end(fs->mount, sizeof(fs->mount), mount.point);
	filesystems_set_usage(fs, &st);
}

int filesystems_read(int procfs_fd, const struct config_list *patterns, char *buf, size_t size,
	struct filesystems_table *ret_table)
{
	/* A service has mounts of its own, in which /home is hidden. */
	static const char *const processes[] = { "1", "self" };
	int r = -ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(processes) && r < 0; i++) {
		struct reading reading = { procfs_fd, processes[i], patterns, ret_table };
		_cleanup_close_ int fd = -1;
		char path[32];

		ret_table->count = ret_table->left_out = 0;
		/* Without CAP_SYS_PTRACE the mounts can be read, but not looked at. */
		snprintf(path, sizeof(path), "%s/root/", processes[i]);
		if (faccessat(procfs_fd, path, F_OK, 0) < 0) {
			r = -errno;
			continue;
		}
		snprintf(path, sizeof(path), "%s/mountinfo", processes[i]);
		fd = openat(procfs_fd, path, O_RDONLY | O_CLOEXEC);
		r = fd < 0 ? -errno : lines_read_fd(fd, buf, size, take_mount, &reading);
	}
	return r;
}
