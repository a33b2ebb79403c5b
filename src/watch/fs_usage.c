/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/fs_usage.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/hash.h"
#include "util/text.h"
#include "watch/lines.h"
#include "watch/parsers.h"

struct reading {
	int procfs_fd;
	const char *process; /* whose mounts are read: "1" or "self" */
	struct fs_usage_question *question;
};

static bool is_word(struct cursor word, const char *what)
{
	return word_is(word.p, (size_t)(word.end - word.p), what);
}

static bool begins_with(struct cursor word, const char *what)
{
	size_t len = strlen(what);

	return (size_t)(word.end - word.p) >= len && memcmp(word.p, what, len) == 0;
}

/*
 * A FUSE server may hang, and a file system that is read-only does not fill up. The device numbers
 * of btrfs, bcachefs and ZFS are not those of a disk, so their source or type tells.
 */
static bool is_on_disk(const struct watch_mountinfo *m)
{
	if (m->options.p == m->options.end || is_word(m->options, "ro") ||
		begins_with(m->options, "ro,") || begins_with(m->type, "fuse"))
		return false;
	return m->major != 0 || begins_with(m->source, "/dev/") || is_word(m->type, "zfs");
}

int fs_usage_parse_mount(struct cursor line, struct fs_usage_mount *ret_mount)
{
	struct watch_mountinfo m;
	int r = watch_parse_mountinfo_line(line, &m);

	if (r < 0)
		return r;
	if (!is_on_disk(&m))
		return -ENODEV;
	if (!parse_unescape_octal(m.point.p, (size_t)(m.point.end - m.point.p), ret_mount->point,
		    sizeof(ret_mount->point)))
		return -ENAMETOOLONG;
	ret_mount->id = m.id;
	ret_mount->major = m.major;
	ret_mount->minor = m.minor;
	return 0;
}

void fs_usage_set(struct record_file_system *fs, const struct statvfs *st)
{
	double used = (double)(st->f_blocks - st->f_bfree);
	/* Blocks reserved for root are of no use to a database, so they do not count as free. */
	double usable = used + (double)st->f_bavail;

	fs->used_pct = usable > 0 ? 100 * used / usable : NAN;
	fs->free_bytes = (uint64_t)st->f_bavail * st->f_frsize;
	/* btrfs and vfat have no fixed number of inodes and say 0. */
	fs->inodes_used_pct = st->f_files > 0 && st->f_files >= st->f_ffree
		? 100 * (double)(st->f_files - st->f_ffree) / (double)st->f_files
		: NAN;
}

/* Of all that makes it this mount. Never 0. */
static uint64_t key_of(const struct fs_usage_mount *m)
{
	const uint64_t id = m->id ^ (uint64_t)m->major << 32 ^ (uint64_t)m->minor << 44;

	return hash_text(HASH_BEGIN ^ id, m->point) | 1;
}

static struct record_file_system *find_row(struct fs_usage_table *table,
	const struct fs_usage_mount *mount)
{
	for (uint32_t i = 0; i < table->count; i++)
		if (table->list[i].dev.major == mount->major &&
			table->list[i].dev.minor == mount->minor)
			return &table->list[i];
	return NULL;
}

static struct fs_usage_skip *find_skip(struct fs_usage_question *q, uint64_t key)
{
	for (unsigned int i = 0; i < FS_USAGE_SKIP_MAX; i++)
		if (q->skip[i].key == key)
			return &q->skip[i];
	return NULL;
}

/* -ESTALE: another mount hides this one, so the numbers would be those of another file system. */
static int ask(const struct reading *r, const struct fs_usage_mount *mount, struct statvfs *ret_st)
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

/* 0: it has numbers now; 1: it is not asked; or a negative errno. */
static int ask_unless_it_hangs(const struct reading *r, const struct fs_usage_mount *mount,
	struct statvfs *ret_st)
{
	struct fs_usage_question *q = r->question;
	uint64_t key = key_of(mount);
	struct fs_usage_skip *skip = find_skip(q, key);
	int error;

	if (skip) {
		text_copy_end(skip->mount, sizeof(skip->mount), mount->point, strlen(mount->point));
		return 1;
	}
	if (__atomic_load_n(&q->abandoned, __ATOMIC_RELAXED))
		return -ECANCELED;
	__atomic_store_n(&q->asking, key, __ATOMIC_RELAXED);
	error = ask(r, mount, ret_st);
	__atomic_store_n(&q->asking, 0, __ATOMIC_RELAXED);
	return error;
}

/* A file system that is mounted twice may answer at another mount point. */
static bool has_numbers(const struct record_file_system *row)
{
	return row && !isnan(row->used_pct);
}

static void take_mount(void *arg, struct cursor line)
{
	struct reading *r = arg;
	struct fs_usage_table *table = &r->question->table;
	struct fs_usage_mount mount;
	struct record_file_system *row;
	struct statvfs st;
	int error = fs_usage_parse_mount(line, &mount);

	if (error == -ENAMETOOLONG)
		table->left_out++;
	if (error < 0 || !config_list_matches(&r->question->patterns, mount.point))
		return;
	row = find_row(table, &mount);
	error = has_numbers(row) ? -EEXIST : ask_unless_it_hangs(r, &mount, &st);
	if (error < 0 || (error > 0 && row))
		return;
	if (!row && table->count == WATCH_FILESYSTEMS_MAX) {
		table->left_out++;
		return;
	}
	if (!row)
		row = &table->list[table->count++];
	*row = (struct record_file_system){ .dev = { mount.major, mount.minor } };
	text_copy_end(row->mount, sizeof(row->mount), mount.point, strlen(mount.point));
	if (error == 0)
		fs_usage_set(row, &st);
	else
		row->used_pct = row->inodes_used_pct = NAN;
}

int fs_usage_read(int procfs_fd, struct fs_usage_question *q)
{
	/* A service has a mount namespace of its own, in which /home may be hidden. */
	static const char *const processes[] = { "1", "self" };
	int r = -ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(processes) && r < 0; i++) {
		struct reading reading = { procfs_fd, processes[i], q };
		_cleanup_close_ int fd = -1;
		char path[32];

		q->table.count = q->table.left_out = 0;
		/*
		 * Without CAP_SYS_PTRACE mountinfo can be read, but the mounts cannot be reached.
		 */
		snprintf(path, sizeof(path), "%s/root/", processes[i]);
		if (faccessat(procfs_fd, path, F_OK, 0) < 0) {
			r = -errno;
			continue;
		}
		snprintf(path, sizeof(path), "%s/mountinfo", processes[i]);
		fd = openat(procfs_fd, path, O_RDONLY | O_CLOEXEC);
		r = fd < 0 ? -errno
			   : lines_read_fd(fd, q->buf, sizeof(q->buf), take_mount, &reading);
	}
	return r;
}
