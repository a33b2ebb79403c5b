/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "enrich/mounts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/parse.h"
#include "util/text.h"
#include "watch/parsers.h"

static void copy_word(struct cursor word, char *dst, size_t size)
{
	size_t len = (size_t)(word.end - word.p);

	if (len >= size)
		len = size - 1;
	memcpy(dst, word.p, len);
	dst[len] = '\0';
}

/* A path that does not fit is left empty. */
static void copy_path(struct cursor word, char *dst, size_t size)
{
	parse_unescape_octal(word.p, (size_t)(word.end - word.p), dst, size);
}

/* A type may have what it is after a dot: "fuse.sshfs". One of a disk is not among them: fuseblk. */
static enum record_cause server_of_type(struct cursor type)
{
	static const struct {
		const char *type;
		enum record_cause server;
	} servers[] = {
		{ "fuse", RECORD_CAUSE_fuse_server },
		{ "nfs", RECORD_CAUSE_nfs_server },
		{ "nfs4", RECORD_CAUSE_nfs_server },
		{ "cifs", RECORD_CAUSE_network_server },
		{ "smb3", RECORD_CAUSE_network_server },
		{ "ceph", RECORD_CAUSE_network_server },
		{ "afs", RECORD_CAUSE_network_server },
		{ "9p", RECORD_CAUSE_network_server },
		{ "virtiofs", RECORD_CAUSE_network_server },
	};
	const char *dot = memchr(type.p, '.', (size_t)(type.end - type.p));
	size_t len = (size_t)((dot ? dot : type.end) - type.p);

	for (unsigned int i = 0; i < ARRAY_SIZE(servers); i++)
		if (strlen(servers[i].type) == len && memcmp(type.p, servers[i].type, len) == 0)
			return servers[i].server;
	return RECORD_CAUSE_NONE;
}

static bool is_type(const struct watch_mountinfo *m, const char *type)
{
	size_t len = (size_t)(m->type.end - m->type.p);

	return strlen(type) == len && memcmp(m->type.p, type, len) == 0;
}

static bool parse_line(struct cursor line, struct watch_mountinfo *ret_info)
{
	return watch_parse_mountinfo_line(line, ret_info) == 0 &&
		ret_info->source.p != ret_info->source.end;
}

/* bcachefs lists all its disks: "/dev/sda:/dev/sdb". */
static struct cursor first_source(const struct watch_mountinfo *m, bool is_disk)
{
	const char *colon =
		is_disk ? memchr(m->source.p, ':', (size_t)(m->source.end - m->source.p)) : NULL;

	return (struct cursor){ m->source.p, colon ? colon : m->source.end };
}

static void set_mount(const struct watch_mountinfo *m, struct mount *ret_mount)
{
	*ret_mount = (struct mount){ .major = m->major, .minor = m->minor };
	ret_mount->server = server_of_type(m->type);
	ret_mount->source_is_disk =
		m->major == 0 && (is_type(m, "btrfs") || is_type(m, "bcachefs"));
	ret_mount->source_is_pool = is_type(m, "zfs");
	copy_word(first_source(m, ret_mount->source_is_disk), ret_mount->source,
		sizeof(ret_mount->source));
	copy_path(m->root, ret_mount->root, sizeof(ret_mount->root));
	copy_path(m->point, ret_mount->point, sizeof(ret_mount->point));
}

bool mounts_read_directory(const struct watch_mountinfo *m, const char *option,
	char path[static MOUNTS_PATH_SIZE])
{
	size_t len = strlen(option);

	for (const char *p = m->options.p; p < m->options.end;) {
		const char *comma = memchr(p, ',', (size_t)(m->options.end - p));
		const char *end = comma ? comma : m->options.end;

		if ((size_t)(end - p) > len && memcmp(p, option, len) == 0) {
			const char *colon = memchr(p, ':', (size_t)(end - p));
			const struct cursor word = { p + len, colon ? colon : end };

			copy_path(word, path, MOUNTS_PATH_SIZE);
			return *path == '/';
		}
		p = end + (comma != NULL);
	}
	return false;
}

/*
 * What is written to an overlay goes to its upper directory; most of the rest lies beside it. Of a
 * container, whoever mounted it for that saw the directory among the mounts of the `host`.
 */
static void find_other(const struct mounts *mounts, const struct mounts *host,
	const struct watch_mountinfo *m, struct mount *mount)
{
	char path[MOUNTS_PATH_SIZE];
	const struct mount *other;

	if (!is_type(m, "overlay") ||
		(!mounts_read_directory(m, "upperdir=", path) &&
			!mounts_read_directory(m, "lowerdir=", path)))
		return;
	other = mounts_find_path(mounts, path);
	if (host && (!other || strcmp(other->point, "/") == 0))
		other = mounts_find_path(host, path);
	if (!other || other == mount)
		return;
	mount->stands_on_other = true;
	mount->other_major = other->major;
	mount->other_minor = other->minor;
}

static void parse(struct mounts *mounts, const struct mounts *host, unsigned int max,
	const char *buf, size_t len)
{
	struct cursor c = { buf, buf + len }, again = c, line;
	struct watch_mountinfo info;

	mounts->count = mounts->left_out = 0;
	while (cursor_line(&c, &line)) {
		if (!parse_line(line, &info))
			continue;
		if (mounts->count == max)
			mounts->left_out++;
		else
			set_mount(&info, &mounts->list[mounts->count++]);
	}
	/* What one stands on may be mounted over later. */
	for (unsigned int i = 0; i < mounts->count && cursor_line(&again, &line);)
		if (parse_line(line, &info))
			find_other(mounts, host, &info, &mounts->list[i++]);
}

void mounts_parse(struct mounts *mounts, unsigned int max, const char *buf, size_t len)
{
	parse(mounts, NULL, max, buf, len);
}

void mounts_parse_more(struct mounts *mounts, unsigned int max, const char *buf, size_t len)
{
	struct mounts more = { .list = mounts->list + mounts->count };

	parse(&more, mounts, max - mounts->count, buf, len);
	for (unsigned int i = 0; i < more.count; i++) {
		struct mount *m = &more.list[i];

		if (mounts_find_device(mounts, m->major, m->minor))
			continue;
		*m->root = *m->point = '\0';
		mounts->list[mounts->count++] = *m;
	}
	mounts->left_out += more.left_out;
}

int mounts_copy(struct mounts *mounts, const struct mounts *from)
{
	struct mount *list = calloc(from->count ? from->count : 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	if (from->count)
		memcpy(list, from->list, from->count * sizeof(*list));
	free(mounts->list);
	*mounts = *from;
	mounts->list = list;
	return 0;
}

void mounts_done(struct mounts *mounts)
{
	free(mounts->list);
	*mounts = (struct mounts){ 0 };
}

const struct mount *mounts_find_device(const struct mounts *mounts, uint32_t major, uint32_t minor)
{
	for (unsigned int i = 0; i < mounts->count; i++)
		if (mounts->list[i].major == major && mounts->list[i].minor == minor)
			return &mounts->list[i];
	return NULL;
}

const struct mount *mounts_find_path(const struct mounts *mounts, const char *path)
{
	const struct mount *best = NULL;
	size_t best_len = 0;

	for (unsigned int i = 0; i < mounts->count; i++) {
		const struct mount *m = &mounts->list[i];
		size_t len = strcmp(m->point, "/") == 0 ? 0 : strlen(m->point);

		/* Of two at the same point the later one hides the other. */
		if (!*m->point || strncmp(path, m->point, len) != 0 || path[len] != '/' ||
			(best && len < best_len))
			continue;
		best = m;
		best_len = len;
	}
	return best;
}

/*
 * The length of the mount's root at the beginning of the path: 0 for "/"; -1: it is not below it.
 */
static int match_root(const char *root, const char *path)
{
	size_t len = strlen(root);

	if (strcmp(root, "/") == 0)
		return 0;
	if (len == 0 || strncmp(path, root, len) != 0 || (path[len] != '/' && path[len] != '\0'))
		return -1;
	return (int)len;
}

bool mounts_add_point(const struct mounts *mounts, uint32_t major, uint32_t minor, char *path,
	size_t size)
{
	const struct mount *best = NULL;
	size_t point_len, rest_len;
	int best_len = 0;

	for (unsigned int i = 0; i < mounts->count; i++) {
		const struct mount *m = &mounts->list[i];
		int len;

		if (m->major != major || m->minor != minor || !*m->point)
			continue;
		/* Prefer the mount that shows most of the file system, and the first of several. */
		len = match_root(m->root, path);
		if (len < 0 || (best && len >= best_len))
			continue;
		best = m;
		best_len = len;
	}
	if (!best)
		return false;
	point_len = strcmp(best->point, "/") == 0 ? 0 : strlen(best->point);
	rest_len = strlen(path) - (size_t)best_len;
	if (point_len + rest_len + 1 > size)
		return false;
	memmove(path + point_len, path + best_len, rest_len + 1);
	memcpy(path, best->point, point_len);
	if (*path == '\0')
		text_copy(path, size, "/");
	return true;
}
