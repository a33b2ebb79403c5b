/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/number.h"
#include "util/parse.h"

/* A disk that is only slow answers within that. */
#define DIR_LIMIT_NS (2 * NSEC_PER_SEC)

struct record_store {
	const char *dirs[2]; /* in the order in which a file passes through them */
	const char *silent_dir;
	size_t count;
	size_t room;
	char (*ids)[RECORD_ID_SIZE];
};

static int store_add(struct record_store *store, const char *name)
{
	if (store->count == store->room) {
		size_t room = store->room ? store->room * 2 : 64;
		void *ids = reallocarray(store->ids, room, sizeof(*store->ids));

		if (!ids)
			return -ENOMEM;
		store->ids = ids;
		store->room = room;
	}
	memcpy(store->ids[store->count], name, RECORD_ID_SIZE - 1);
	store->ids[store->count++][RECORD_ID_SIZE - 1] = '\0';
	return 0;
}

static int store_read_dir(struct record_store *store, const char *path)
{
	_cleanup_closedir_ DIR *dir = opendir(path);
	const struct dirent *entry;

	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	for (;;) {
		int r;

		errno = 0;
		entry = readdir(dir);
		if (!entry)
			return -errno;
		if (!record_file_name_is_valid(entry->d_name))
			continue;
		r = store_add(store, entry->d_name);
		if (r < 0)
			return r;
	}
}

/* The ids that another process has listed, and as the last one, which is empty, the result. */
static int store_take_ids(struct record_store *store, int fd)
{
	const uint64_t end_ns = clock_mono_ns() + DIR_LIMIT_NS;
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	char id[RECORD_ID_SIZE];
	uint64_t now_ns;
	int r;

	for (;;) {
		now_ns = clock_mono_ns();
		r = poll(&pfd, 1, (int)(minus(end_ns, now_ns) / NSEC_PER_MSEC));
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return r < 0 ? -errno : -ETIMEDOUT;
		if (read(fd, id, sizeof(id)) != sizeof(id))
			return -EIO;
		if (!*id) {
			memcpy(&r, id + 1, sizeof(r));
			return r;
		}
		r = store_add(store, id);
		if (r < 0)
			return r;
	}
}

__attribute__((noreturn)) static void list_dir(const char *path, int fd)
{
	struct record_store store = { 0 };
	char last[RECORD_ID_SIZE] = "";
	int r;

	/* Whoever reads what this command prints does not wait for it. */
	for (int std = STDIN_FILENO; std <= STDERR_FILENO; std++)
		if (std != fd)
			close(std);
	r = store_read_dir(&store, path);
	memcpy(last + 1, &r, sizeof(r));
	for (size_t i = 0; i < store.count; i++)
		if (write(fd, store.ids[i], RECORD_ID_SIZE) < 0)
			_exit(1);
	_exit(write(fd, last, sizeof(last)) < 0);
}

/* In a process of its own, which may hang with the disk that the directory is on. */
static int store_read_slow_dir(struct record_store *store, const char *path)
{
	int fds[2], r;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		close(fds[0]);
		list_dir(path, fds[1]);
	}
	r = pid < 0 ? -errno : 0;
	close(fds[1]);
	if (r == 0)
		r = store_take_ids(store, fds[0]);
	close(fds[0]);
	if (pid < 0)
		return r;
	kill(pid, SIGKILL);
	/* One that hangs does not end. */
	waitpid(pid, NULL, r == -ETIMEDOUT ? WNOHANG : 0);
	if (r != -ETIMEDOUT)
		return r;
	store->silent_dir = path;
	return 0;
}

static int compare_ids(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void store_sort(struct record_store *store)
{
	size_t kept = 0;

	if (store->count == 0)
		return;
	qsort(store->ids, store->count, sizeof(*store->ids), compare_ids);
	/* A file on its way is for a moment in both directories. */
	for (size_t i = 1; i < store->count; i++)
		if (strcmp(store->ids[kept], store->ids[i]) != 0)
			memmove(store->ids[++kept], store->ids[i], sizeof(*store->ids));
	store->count = kept + 1;
}

static void cleanup_store(struct record_store **store)
{
	record_store_free(*store);
}

int record_store_new(const char *spool_dir, const char *dir, struct record_store **ret_store,
	const char **ret_failed_dir)
{
	_cleanup_(cleanup_store) struct record_store *store = calloc(1, sizeof(*store));

	if (!store) {
		*ret_failed_dir = spool_dir;
		return -ENOMEM;
	}
	store->dirs[0] = spool_dir;
	store->dirs[1] = dir;
	/* The spool first: what moves between the two readings is then seen at least once. */
	for (size_t i = 0; i < ARRAY_SIZE(store->dirs); i++) {
		int r = 0;

		if (store->dirs[i])
			r = i == 0 ? store_read_dir(store, store->dirs[i])
				   : store_read_slow_dir(store, store->dirs[i]);
		if (r < 0) {
			*ret_failed_dir = store->dirs[i];
			return r;
		}
	}
	store_sort(store);
	*ret_store = TAKE_PTR(store);
	return 0;
}

struct record_store *record_store_free(struct record_store *store)
{
	if (store)
		free(store->ids);
	free(store);
	return NULL;
}

const char *record_store_silent_dir(const struct record_store *store)
{
	return store->silent_dir;
}

size_t record_store_count(const struct record_store *store)
{
	return store->count;
}

const char *record_store_id(const struct record_store *store, size_t i)
{
	return store->ids[i];
}

int record_store_open(const struct record_store *store, const char *id,
	char ret_path[static RECORD_PATH_SIZE])
{
	/* It leaves the spool when it has arrived. */
	for (size_t i = 0; i < ARRAY_SIZE(store->dirs); i++) {
		const char *dir = store->dirs[i];
		_cleanup_close_ int fd = -1;
		struct stat st;

		if (!dir || dir == store->silent_dir)
			continue;
		snprintf(ret_path, RECORD_PATH_SIZE, "%s/%s" RECORD_FILE_SUFFIX, dir, id);
		/* A FIFO of that name would wait for a writer. */
		fd = open(ret_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		if (fd < 0 && errno == ENOENT)
			continue;
		if (fd < 0 || fstat(fd, &st) < 0)
			return -errno;
		return S_ISREG(st.st_mode) ? TAKE_FD(fd) : -EINVAL;
	}
	return -ENOENT;
}

const char *record_store_strerror(int error)
{
	if (error == -ELOOP)
		return "it is a symbolic link";
	if (error == -EINVAL)
		return "it is not a regular file";
	return strerror(-error);
}

/* How many incidents before the last one; -EINVAL: name is neither "last" nor "last-N". */
static int parse_last(const char *name, uint64_t *ret_back)
{
	if (strncmp(name, "last", strlen("last")) != 0)
		return -EINVAL;
	name += strlen("last");
	*ret_back = 0;
	if (!*name)
		return 0;
	return *name == '-' && parse_unsigned(name + 1, ret_back) == 0 ? 0 : -EINVAL;
}

size_t record_store_match(const struct record_store *store, const char *name, const char **ret_ids,
	size_t max)
{
	size_t count = 0, skip, stored = 0;

	for (size_t i = 0; i < store->count; i++)
		count += strstr(store->ids[i], name) != NULL;
	skip = minus(count, max);
	for (size_t i = 0; i < store->count; i++) {
		if (!strstr(store->ids[i], name))
			continue;
		if (skip > 0)
			skip--;
		else
			ret_ids[stored++] = store->ids[i];
	}
	return count;
}

int record_store_find(const struct record_store *store, const char *name, const char **ret_id)
{
	const char *found[2], *begins = NULL;
	size_t len = strlen(name), count, beginning = 0;
	uint64_t back;

	if (parse_last(name, &back) == 0) {
		if (back >= store->count)
			return -ENOENT;
		*ret_id = store->ids[store->count - 1 - back];
		return 0;
	}
	count = len ? record_store_match(store, name, found, ARRAY_SIZE(found)) : 0;
	if (count == 0)
		return -ENOENT;
	for (size_t i = 0; i < store->count; i++) {
		if (strncmp(store->ids[i], name, len) != 0)
			continue;
		begins = store->ids[i];
		beginning++;
	}
	if (count > 1 && beginning != 1)
		return -ENOTUNIQ;
	*ret_id = count == 1 ? found[0] : begins;
	return 0;
}
