/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sinks/hook_output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config.h"
#include "record/record.h"
#include "sinks/dir.h"
#include "util/cleanup.h"
#include "util/detached_worker.h"
#include "util/file.h"
#include "util/log.h"
#include "util/text.h"

/* The deepest frames hold two paths. */
#define THREAD_STACK_BYTES (48 * 1024)

#define OUTPUT_SUFFIX ".out"
#define SUBDIR_SIZE (RECORD_ID_SIZE + sizeof(RECORD_OUTPUT_SUFFIX) - 1)

/* Of the thread while it is busy. */
struct keeping {
	char dir[PATH_MAX];
	gid_t group;
	char incident[RECORD_ID_SIZE];
	char name[CONFIG_NAME_SIZE];
	size_t len;
	char bytes[];
};

struct hook_output {
	struct detached_worker *thread;
	struct keeping *keeping; /* owned by the thread */
};

/* The directory of an incident, of whose name or file name only the id counts. */
static void name_subdir(const char *record, char ret_name[static SUBDIR_SIZE])
{
	snprintf(ret_name, SUBDIR_SIZE, "%.*s" RECORD_OUTPUT_SUFFIX, RECORD_ID_SIZE - 1, record);
}

bool hook_output_is_name(const char *name, char ret_record[static RECORD_FILE_SIZE])
{
	char expected[SUBDIR_SIZE];

	snprintf(ret_record, RECORD_FILE_SIZE, "%.*s" RECORD_FILE_SUFFIX, RECORD_ID_SIZE - 1, name);
	name_subdir(name, expected);
	return record_file_name_is_valid(ret_record) && strcmp(name, expected) == 0;
}

static int open_subdir(int dir_fd, const char *name)
{
	const int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int make_subdir(int dir_fd, const struct keeping *k)
{
	char name[SUBDIR_SIZE];
	int fd;

	name_subdir(k->incident, name);
	if (mkdirat(dir_fd, name, 0750) < 0 && errno != EEXIST)
		return -errno;
	fd = open_subdir(dir_fd, name);
	if (fd >= 0)
		file_set_access(fd, 0750, k->group);
	return fd;
}

static int keep(const struct keeping *k)
{
	_cleanup_close_ int dir_fd = dir_open_or_make(k->dir, DIR_DURABLE, k->group);
	_cleanup_close_ int subdir_fd = dir_fd < 0 ? dir_fd : make_subdir(dir_fd, k);
	_cleanup_close_ int fd = -1;
	char name[CONFIG_NAME_SIZE + sizeof(OUTPUT_SUFFIX)];
	int r;

	if (subdir_fd < 0)
		return subdir_fd;
	snprintf(name, sizeof(name), "%s" OUTPUT_SUFFIX, k->name);
	/* Whatever somebody else has put there. */
	unlinkat(subdir_fd, name, 0);
	fd = openat(subdir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
	if (fd < 0)
		return -errno;
	file_set_access(fd, 0640, k->group);
	r = file_write_all(fd, k->bytes, k->len);
	return r == 0 && fsync(fd) < 0 ? -errno : r;
}

static void run(void *state, const int *fds)
{
	const struct keeping *k = state;
	int r = keep(k);

	(void)fds;
	if (r < 0)
		log_warning("hook %s: its output for incident %s is lost: %s: %s", k->name,
			k->incident, k->dir, dir_strerror(r));
}

int hook_output_new(const char *dir, size_t most, struct hook_output **ret_output)
{
	const struct detached_worker_options options = {
		.run = run,
		.stack_bytes = THREAD_STACK_BYTES,
		.done_fd = -1,
	};
	_cleanup_free_ struct hook_output *o = calloc(1, sizeof(*o));
	int r;

	if (!o)
		return -ENOMEM;
	o->keeping = calloc(1, sizeof(*o->keeping) + most);
	if (!o->keeping)
		return -ENOMEM;
	text_copy(o->keeping->dir, sizeof(o->keeping->dir), dir);
	o->keeping->group = file_find_group();
	r = detached_worker_new(&options, o->keeping, &o->thread);
	if (r == 0)
		*ret_output = TAKE_PTR(o);
	return r;
}

struct hook_output *hook_output_free(struct hook_output *o)
{
	if (o)
		detached_worker_free(o->thread);
	free(o);
	return NULL;
}

bool hook_output_is_busy(const struct hook_output *o)
{
	return detached_worker_is_busy(o->thread);
}

bool hook_output_keep(struct hook_output *o, const char *incident, const char *name,
	const char *bytes, size_t len)
{
	if (hook_output_is_busy(o))
		return false;
	text_copy(o->keeping->incident, sizeof(o->keeping->incident), incident);
	text_copy(o->keeping->name, sizeof(o->keeping->name), name);
	memcpy(o->keeping->bytes, bytes, len);
	o->keeping->len = len;
	detached_worker_start(o->thread);
	return true;
}

/* Calls `each` for all in the directory of the record, if there is one. */
static void for_each(int dir_fd, const char *record,
	void (*each)(void *userdata, int subdir_fd, const char *name), void *userdata)
{
	char subdir[SUBDIR_SIZE];
	_cleanup_close_ int subdir_fd = -1;
	_cleanup_closedir_ DIR *dir = NULL;
	const struct dirent *entry;

	name_subdir(record, subdir);
	subdir_fd = open_subdir(dir_fd, subdir);
	dir = subdir_fd < 0 ? NULL : dir_list(subdir_fd);
	while (dir && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			each(userdata, subdir_fd, entry->d_name);
}

static void add_bytes(void *userdata, int subdir_fd, const char *name)
{
	struct stat st;

	if (fstatat(subdir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		*(uint64_t *)userdata += (uint64_t)st.st_size;
}

uint64_t hook_output_bytes(int dir_fd, const char *record)
{
	uint64_t bytes = 0;

	for_each(dir_fd, record, add_bytes, &bytes);
	return bytes;
}

static void remove_one(void *userdata, int subdir_fd, const char *name)
{
	const size_t len = strlen(name), suffix = strlen(OUTPUT_SUFFIX);

	(void)userdata;
	if (len > suffix && strcmp(name + len - suffix, OUTPUT_SUFFIX) == 0)
		unlinkat(subdir_fd, name, 0);
}

void hook_output_remove(int dir_fd, const char *record)
{
	char subdir[SUBDIR_SIZE];

	for_each(dir_fd, record, remove_one, NULL);
	name_subdir(record, subdir);
	unlinkat(dir_fd, subdir, AT_REMOVEDIR);
}
