/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/passwd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/file.h"
#include "util/parse.h"

static bool take_field(struct cursor *line, struct cursor *ret_field)
{
	const char *end = memchr(line->p, ':', (size_t)(line->end - line->p));

	if (!end)
		return false;
	*ret_field = (struct cursor){ line->p, end };
	line->p = end + 1;
	return true;
}

static bool take_id(struct cursor *line, uint32_t *ret_id)
{
	struct cursor field;
	uint64_t value;

	if (!take_field(line, &field) || cursor_u64(&field, &value) < 0 || value > UINT32_MAX)
		return false;
	*ret_id = (uint32_t)value;
	return true;
}

/* "name:x:uid:gid:..." */
static bool parse_line(struct cursor line, struct passwd_user *ret_user)
{
	struct cursor name, password;
	size_t len;

	if (!take_field(&line, &name) || !take_field(&line, &password) ||
		!take_id(&line, &ret_user->uid) || !take_id(&line, &ret_user->gid))
		return false;
	len = (size_t)(name.end - name.p);
	if (len == 0 || len >= sizeof(ret_user->name))
		return false;
	memcpy(ret_user->name, name.p, len);
	ret_user->name[len] = '\0';
	return true;
}

int passwd_read(const char *path, void (*take)(void *userdata, const struct passwd_user *user),
	void *userdata)
{
	/* Not stdio: at exit the process would wait for the lock of a file that hangs. */
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_free_ char *text = NULL;
	struct passwd_user user;
	struct cursor c, line;
	struct stat st;
	ssize_t len;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	len = file_read_fd(fd, text, (size_t)st.st_size + 1);
	/* It may have become longer meanwhile; the beginning of a line is none. */
	if (len < 0 && len != -ENOBUFS)
		return (int)len;
	c = (struct cursor){ text, text + (len < 0 ? st.st_size : len) };
	while (cursor_line(&c, &line))
		if (parse_line(line, &user))
			take(userdata, &user);
	return 0;
}
