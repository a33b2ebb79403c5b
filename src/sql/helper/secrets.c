/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sql/helper/secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"

/* The group may read only what root gave it, as "root iostall 0640". */
static bool is_private(const struct stat *st)
{
	const mode_t for_nobody = S_IWGRP | S_IXGRP | S_IRWXO;

	return (st->st_mode & for_nobody) == 0 && (st->st_uid == 0 || !(st->st_mode & S_IRGRP));
}

static bool check(int fd, uid_t reader, const char *what, const char *path, struct text *error)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		text_addf(error, "cannot read %s %s: %s", what, path, strerror(errno));
	else if (!S_ISREG(st.st_mode))
		text_addf(error, "%s %s is no regular file", what, path);
	else if (st.st_uid != 0 && st.st_uid != reader)
		text_addf(error, "%s %s belongs to user %u; expected root", what, path, st.st_uid);
	else if (!is_private(&st))
		text_addf(error,
			"%s %s has mode %04o, so others have the password; expected 0600, or "
			"0640 of root",
			what, path, st.st_mode & 07777);
	else
		return true;
	return false;
}

/* Who the helper will be. */
static uid_t find_reader(const struct sql_frame_setup *setup)
{
	const struct passwd *user = geteuid() == 0 ? getpwnam(setup->run_as) : NULL;

	return user ? user->pw_uid : geteuid();
}

int secrets_open_password(const struct sql_frame_setup *setup, struct text *error)
{
	const char *path = setup->password_file;
	_cleanup_close_ int fd = -1;

	if (!path[0])
		return -1;
	/* A FIFO would wait for a writer. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		text_addf(error, "cannot open password_file %s: %s", path, strerror(errno));
	else if (check(fd, find_reader(setup), "password_file", path, error))
		return TAKE_FD(fd);
	return -1;
}

const char *secrets_read_password(int fd, char *buf, size_t size)
{
	ssize_t n = fd < 0 ? -1 : pread(fd, buf, size - 1, 0);

	if (n < 0)
		return NULL;
	buf[n] = '\0';
	buf[strcspn(buf, "\r\n")] = '\0';
	return buf;
}

void secrets_check_option_file(const struct sql_frame_setup *setup, struct text *error)
{
	const char *path = setup->option_file;
	_cleanup_close_ int fd = -1;

	if (!path[0])
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		text_addf(error, "cannot read option_file %s: %s for user %s", path,
			strerror(errno), setup->run_as);
	else
		check(fd, geteuid(), "option_file", path, error);
}
