/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sinks/part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/reader.h"
#include "util/cleanup.h"
#include "util/file.h"
#include "util/log.h"

#define PART_SUFFIX ".part"
/* ".ID.jsonl.PID.part" */
#define PART_NAME_SIZE (RECORD_FILE_SIZE + 24)

/* With the process id, since a process that hangs may still rename its own part. */
static void make_name(const char *incident, char ret_name[static PART_NAME_SIZE])
{
	snprintf(ret_name, PART_NAME_SIZE, ".%s" RECORD_FILE_SUFFIX ".%d" PART_SUFFIX, incident,
		(int)getpid());
}

/*
 * A regular file and its lock, which only root can take, as only root can open the file.
 * -EWOULDBLOCK: somebody has it; -ENOENT: somebody renamed or removed it before it was locked.
 */
static int open_locked(int dir_fd, const char *name, int flags, struct stat *ret_stat)
{
	_cleanup_close_ int fd =
		openat(dir_fd, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

	if (fd < 0 || fstat(fd, ret_stat) < 0)
		return -errno;
	if (!S_ISREG(ret_stat->st_mode))
		return -EINVAL;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	/* Once more, because only a locked file is not changed by others. */
	if (fstat(fd, ret_stat) < 0)
		return -errno;
	return ret_stat->st_nlink > 0 ? TAKE_FD(fd) : -ENOENT;
}

int part_open(struct part *part, int dir_fd, const char *incident)
{
	char name[PART_NAME_SIZE];
	struct stat st;
	int r;

	make_name(incident, name);
	r = open_locked(dir_fd, name, O_WRONLY | O_CREAT, &st);
	if (r < 0)
		return r;
	*part = (struct part){ .fd = r, .kept = st.st_size };
	memcpy(part->incident, incident, sizeof(part->incident));
	if (fchmod(part->fd, 0600) < 0 || fsync(dir_fd) < 0) {
		r = -errno;
		part_close(part, dir_fd);
		return r;
	}
	return 0;
}

/* Copies from `at` up to `end`, or up to the end of the file. ret_at: how far it came. */
static int copy_range(const struct part *part, int from_fd, off_t end, char *buf, size_t size,
	off_t *ret_at)
{
	off_t at = part->bytes;

	/* An attempt that failed has left the offset behind it. */
	if (lseek(part->fd, at, SEEK_SET) < 0)
		return -errno;
	while (at < end) {
		off_t left = end - at;
		ssize_t n = pread(from_fd, buf, left < (off_t)size ? (size_t)left : size, at);
		int r;

		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		r = file_write_all(part->fd, buf, (size_t)n);
		if (r < 0)
			return r;
		at += n;
	}
	*ret_at = at;
	return 0;
}

int part_append(struct part *part, int from_fd, off_t end, char *buf, size_t size)
{
	off_t at = part->bytes;
	int r = copy_range(part, from_fd, end, buf, size, &at);

	if (r == 0 && fdatasync(part->fd) < 0)
		r = -errno;
	if (r == 0)
		part->bytes = part->kept = at;
	/* Behind it is what an attempt that failed wrote, or a killed process with the same id. */
	if (ftruncate(part->fd, part->kept) < 0 && r == 0)
		r = -errno;
	return r;
}

int part_finish(struct part *part, int dir_fd, gid_t group, int *ret_access)
{
	char name[PART_NAME_SIZE], record[RECORD_FILE_SIZE];
	int r;

	make_name(part->incident, name);
	snprintf(record, sizeof(record), "%s" RECORD_FILE_SUFFIX, part->incident);
	*ret_access = file_set_access(part->fd, 0640, group);
	if (fsync(part->fd) < 0 || renameat(dir_fd, name, dir_fd, record) < 0) {
		r = -errno;
		/* Who can open a part could lock it. */
		fchmod(part->fd, 0600);
		return r;
	}
	part->fd = close_fd(part->fd);
	return fsync(dir_fd) < 0 ? -errno : 0;
}

void part_close(struct part *part, int dir_fd)
{
	char name[PART_NAME_SIZE];

	if (part->fd < 0)
		return;
	make_name(part->incident, name);
	if (part->kept == 0)
		unlinkat(dir_fd, name, 0);
	part->fd = close_fd(part->fd);
}

/* Whether a normal close truncated it: its last line is complete and no padding follows. */
static bool is_cut_already(int fd, off_t size)
{
	char tail[2];

	return size >= 2 && pread(fd, tail, 2, size - 2) == 2 && memcmp(tail, "}\n", 2) == 0;
}

int part_cut_tail(int fd, off_t size)
{
	off_t end;
	int r;

	if (is_cut_already(fd, size))
		return 0;
	r = record_find_end(fd, &end);
	if (r < 0)
		return r;
	return ftruncate(fd, end) < 0 ? -errno : 0;
}

/* The name of the record whose part has that name; false when it is no part. */
static bool parse_name(const char *part, char ret_record[static RECORD_FILE_SIZE])
{
	const char *rest = part + 1 + RECORD_FILE_SIZE - 1;

	if (strlen(part) < (size_t)(rest - part) + strlen(PART_SUFFIX) || part[0] != '.')
		return false;
	memcpy(ret_record, part + 1, RECORD_FILE_SIZE - 1);
	ret_record[RECORD_FILE_SIZE - 1] = '\0';
	/* Version 0.1 made them without a process id. */
	if (*rest == '.' && rest[1] != 'p')
		rest += 1 + strspn(rest + 1, "0123456789");
	return record_file_name_is_valid(ret_record) && strcmp(rest, PART_SUFFIX) == 0;
}

/*
 * Whether a part is to become the record: 0, -ENODATA when it is worth nothing, or the negative
 * errno for which nobody knows yet.
 */
static int judge(int dir_fd, int fd, const char *record)
{
	struct stat st, finished;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	r = part_cut_tail(fd, st.st_size);
	if (r == 0)
		r = record_fd_check(fd, record);
	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (fstatat(dir_fd, record, &finished, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	/* It may have its final name already, with everything that the part has. */
	return finished.st_size >= st.st_size ? -ENODATA : 0;
}

int part_finish_left_behind(const struct part_place *place, const char *name)
{
	char record[RECORD_FILE_SIZE];
	_cleanup_close_ int fd = -1;
	struct stat st;
	int dir_fd = place->dir_fd, r;

	if (!parse_name(name, record))
		return 0;
	fd = open_locked(dir_fd, name, O_RDWR, &st);
	if (fd == -ENOENT || fd == -EINVAL || fd == -ELOOP)
		return 0;
	if (fd < 0)
		return fd;
	if (faccessat(place->spool_fd, record, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	r = judge(dir_fd, fd, record);
	/* No record is so large. */
	if (r == -ENODATA || r == -EFBIG)
		return unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
	if (r < 0)
		return r;
	file_set_access(fd, 0640, place->group);
	if (fsync(fd) < 0 || renameat(dir_fd, name, dir_fd, record) < 0 || fsync(dir_fd) < 0)
		return -errno;
	log_notice("the record %s was cut off by a reset of the host or a kill; what had been "
		   "saved of it is kept",
		record);
	return 0;
}
