/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "enrich/mounts.h"

#include <string.h>

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

static bool parse_line(struct cursor line, struct mount *ret_mount)
{
	struct watch_mountinfo m;

	if (watch_parse_mountinfo_line(line, &m) < 0 || m.source.p == m.source.end)
		return false;
	ret_mount->major = m.major;
	ret_mount->minor = m.minor;
	copy_word(m.source, ret_mount->source, sizeof(ret_mount->source));
	copy_path(m.root, ret_mount->root, sizeof(ret_mount->root));
	copy_path(m.point, ret_mount->point, sizeof(ret_mount->point));
	return true;
}

void mounts_parse(struct mounts *mounts, const char *buf, size_t len)
{
	struct cursor c = { buf, buf + len }, line;

	mounts->count = 0;
	while (mounts->count < MOUNTS_MAX && cursor_line(&c, &line))
		if (parse_line(line, &mounts->list[mounts->count]))
			mounts->count++;
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
		int len = match_root(m->root, path);

		/* Prefer the mount that shows most of the file system, and the first of several. */
		if (m->major != major || m->minor != minor || !*m->point || len < 0 ||
			(best && len >= best_len))
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
