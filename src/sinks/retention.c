/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sinks/retention.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/reader.h"
#include "util/cleanup.h"

struct kept_file {
	char name[RECORD_FILE_SIZE];
	uint64_t bytes;
};

struct kept_list {
	struct kept_file *files;
	size_t count;
	size_t room;
	uint64_t bytes;
};

static void cleanup_list(struct kept_list *list)
{
	free(list->files);
}

/* Opens a regular file with the name and the first line of a record, else a negative errno. */
static int open_record(int dir_fd, const char *name, uint64_t *ret_bytes)
{
	/* A FIFO of that name would wait for a writer. */
	_cleanup_close_ int fd =
		openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || !record_fd_is_ours(fd, name))
		return -EINVAL;
	*ret_bytes = (uint64_t)st.st_size;
	return TAKE_FD(fd);
}

static int list_add(struct kept_list *list, const char *name, uint64_t bytes)
{
	if (list->count == list->room) {
		size_t room = list->room ? list->room * 2 : 64;
		struct kept_file *files = reallocarray(list->files, room, sizeof(*files));

		if (!files)
			return -ENOMEM;
		list->files = files;
		list->room = room;
	}
	memcpy(list->files[list->count].name, name, RECORD_FILE_SIZE);
	list->files[list->count++].bytes = bytes;
	list->bytes += bytes;
	return 0;
}

static int list_read(int dir_fd, struct kept_list *list)
{
	_cleanup_close_ int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_closedir_ DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;

	if (!dir)
		return -errno;
	fd = -1;
	for (;;) {
		_cleanup_close_ int record_fd = -1;
		uint64_t bytes;
		int r;

		errno = 0;
		entry = readdir(dir);
		if (!entry)
			return -errno;
		if (!record_file_name_is_valid(entry->d_name))
			continue;
		record_fd = open_record(dir_fd, entry->d_name, &bytes);
		if (record_fd < 0)
			continue;
		r = list_add(list, entry->d_name, bytes);
		if (r < 0)
			return r;
	}
}

/* The id begins with the time: by name is by age, whatever became of the files' own times. */
static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct kept_file *)a)->name, ((const struct kept_file *)b)->name);
}

static bool is_too_old(const struct kept_file *file, const struct retention_limits *limits,
	uint64_t now_real_ns)
{
	uint64_t made_ns = record_id_real_ns(file->name);

	/* A clock that was set back makes nothing old. */
	return limits->max_age_ns && made_ns && made_ns < now_real_ns &&
		now_real_ns - made_ns > limits->max_age_ns;
}

/* 1 when it is removed, 0 when it is being written, -errno. */
static int remove_record(int dir_fd, const char *name)
{
	uint64_t bytes;
	_cleanup_close_ int fd = open_record(dir_fd, name, &bytes);

	if (fd < 0)
		return fd == -ENOENT ? 1 : fd;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? 0 : -errno;
	if (unlinkat(dir_fd, name, 0) < 0)
		return -errno;
	return 1;
}

int retention_apply(int dir_fd, const struct retention_limits *limits, uint64_t now_real_ns)
{
	_cleanup_(cleanup_list) struct kept_list list = { 0 };
	size_t left;
	int removed = 0, r;

	r = list_read(dir_fd, &list);
	if (r < 0)
		return r;
	if (list.count == 0)
		return 0;
	qsort(list.files, list.count, sizeof(*list.files), compare_names);
	left = list.count;
	for (size_t i = 0; i < list.count; i++) {
		const struct kept_file *file = &list.files[i];

		if (!(limits->max_count && left > limits->max_count) &&
			!(limits->max_bytes && list.bytes > limits->max_bytes) &&
			!is_too_old(file, limits, now_real_ns))
			break;
		r = remove_record(dir_fd, file->name);
		if (r < 0)
			return r;
		if (r == 0)
			continue;
		removed++;
		left--;
		list.bytes -= file->bytes;
	}
	return removed;
}
