/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/open_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file.h"
#include "watch/dents.h"

enum answer {
	GO_ON,
	FOUND,
	TOO_LATE,
};

/* *fd_place: where to begin, and where it has ended. */
static enum answer visit_process(const struct open_files *files, int32_t pid, int64_t *fd_place)
{
	_cleanup_close_ int fd = -1;
	enum answer answer = GO_ON;
	struct dents dents;
	const char *name;
	char path[64];
	int32_t number;

	if (files->wants && !files->wants(files->arg, pid))
		return GO_ON;
	snprintf(path, sizeof(path), "%d/fd", pid);
	fd = openat(files->procfs_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dents_seek(&dents, fd, *fd_place);
	while (fd >= 0 && answer == GO_ON && dents_next_number(&dents, fd, &number, &name) > 0) {
		*fd_place = dents.place;
		if (clock_mono_ns() >= files->deadline_ns)
			answer = TOO_LATE;
		else if (!files->visit(files->arg, pid, name))
			answer = FOUND;
	}
	return answer;
}

/* Those from `first` to `last`; /proc has them in the order of their numbers. */
static enum answer visit_range(const struct open_files *files, int fd, int32_t first, int32_t last,
	struct open_files_place *place)
{
	const struct open_files_place begin = *place;
	enum answer answer = GO_ON;
	struct dents dents;
	const char *name;
	int32_t pid;

	dents_seek(&dents, fd, 0);
	while (answer == GO_ON && dents_next_number(&dents, fd, &pid, &name) > 0) {
		if (pid < first || pid > last)
			continue;
		*place = (struct open_files_place){ pid, pid == begin.pid ? begin.fd : 0 };
		answer = clock_mono_ns() >= files->deadline_ns
			? TOO_LATE
			: visit_process(files, pid, &place->fd);
	}
	return answer;
}

bool open_files_visit(const struct open_files *files)
{
	_cleanup_close_ int fd = openat(files->procfs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct open_files_place beginning = { 0 }, *place = files->place ?: &beginning;
	const int32_t first = place->pid;
	enum answer answer;

	if (fd < 0)
		return true;
	answer = visit_range(files, fd, first, INT32_MAX, place);
	if (answer == GO_ON && first) {
		*place = (struct open_files_place){ 0 };
		/* Of the process at which it began, there were descriptors before that one. */
		answer = visit_range(files, fd, 0, first, place);
	}
	return answer != TOO_LATE;
}

bool open_files_visit_process(const struct open_files *files, int32_t pid)
{
	int64_t first = 0;

	return visit_process(files, pid, &first) != TOO_LATE;
}

bool open_files_read_link(int procfs_fd, int32_t pid, const char *fd, char *ret_link, size_t size)
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "%d/fd/%s", pid, fd);
	n = readlinkat(procfs_fd, path, ret_link, size - 1);
	ret_link[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* "pos:\t0\nflags:\t0100002\nmnt_id:\t29\n..." */
bool open_files_read_info(int procfs_fd, int32_t pid, const char *fd,
	struct open_files_info *ret_info)
{
	char path[64], text[256];
	const char *flags, *mount;
	ssize_t n;

	snprintf(path, sizeof(path), "%d/fdinfo/%s", pid, fd);
	n = file_read_at(procfs_fd, path, text, sizeof(text));
	/* A line for each lock of the file comes behind these, and needs no room. */
	if (n <= 0 && n != -ENOBUFS)
		return false;
	flags = strstr(text, "flags:\t");
	mount = strstr(text, "mnt_id:\t");
	if (!flags)
		return false;
	*ret_info = (struct open_files_info){
		.access_mode = (int)(strtoul(flags + strlen("flags:\t"), NULL, 8) & O_ACCMODE),
		.mount = mount ? strtoul(mount + strlen("mnt_id:\t"), NULL, 10) : 0,
	};
	return true;
}

void open_files_read_comm(int procfs_fd, int32_t pid, char *ret_comm, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "%d/comm", pid);
	if (file_read_at(procfs_fd, path, ret_comm, size) <= 0)
		ret_comm[0] = '\0';
	ret_comm[strcspn(ret_comm, "\n")] = '\0';
}
