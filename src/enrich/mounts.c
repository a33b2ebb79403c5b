/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "enrich/mounts.h"

#include <string.h>

#include "util/parse.h"
#include "util/text.h"

static int parse_line(struct cursor line, struct mount *ret_mount)
{
	const char *root, *point, *word;
	size_t root_len, point_len, word_len;
	uint64_t ignored, major, minor;

	if (cursor_u64(&line, &ignored) < 0 || cursor_u64(&line, &ignored) < 0 ||
		cursor_u64(&line, &major) < 0 || line.p == line.end || *line.p++ != ':' ||
		cursor_u64(&line, &minor) < 0)
		return -1;
	if (cursor_word(&line, &root, &root_len) < 0 || cursor_word(&line, &point, &point_len) < 0)
		return -1;
	while (cursor_word(&line, &word, &word_len) == 0)
		if (word_len == 1 && *word == '-')
			break;
	if (cursor_word(&line, &word, &word_len) < 0 || cursor_word(&line, &word, &word_len) < 0)
		return -1;
	if (word_len >= sizeof(ret_mount->source))
		word_len = sizeof(ret_mount->source) - 1;
	ret_mount->major = (uint32_t)major;
	ret_mount->minor = (uint32_t)minor;
	memcpy(ret_mount->source, word, word_len);
	ret_mount->source[word_len] = '\0';
	/* What does not fit is left empty. */
	parse_unescape_octal(root, root_len, ret_mount->root, sizeof(ret_mount->root));
	parse_unescape_octal(point, point_len, ret_mount->point, sizeof(ret_mount->point));
	return 0;
}

void mounts_parse(struct mounts *mounts, const char *buf, size_t len)
{
	struct cursor c = { buf, buf + len }, line;

	mounts->count = 0;
	while (mounts->count < MOUNTS_MAX && cursor_line(&c, &line))
		if (parse_line(line, &mounts->list[mounts->count]) == 0)
			mounts->count++;
}

const char *mounts_find_source(const struct mounts *mounts, uint32_t major, uint32_t minor)
{
	for (unsigned int i = 0; i < mounts->count; i++)
		if (mounts->list[i].major == major && mounts->list[i].minor == minor)
			return mounts->list[i].source;
	return NULL;
}

/* How much of the path is the mount's root: 0 for "/"; -1: the path is not below it. */
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

		/* The one that shows most of the file system, and the first of several. */
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
