/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sinks/spare.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/record.h"
#include "sinks/files.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/text.h"

#define RETRY_MS (30 * 1000)
/* One process has one spare; a second is made while a configuration is exchanged. */
#define NAMES_MAX 4

enum spare_state {
	SPARE_MAKING, /* `file` is the thread's */
	SPARE_READY,  /* `file` is the event loop's */
};

/* Shared by the thread and its owner; whoever leaves last frees it. */
struct spare {
	int references;
	int wake_fd;
	bool stopping;
	bool live;
	bool failing; /* the last attempt */
	enum spare_state state;
	struct spool_file file;
	char spool_dir[PATH_MAX];
	size_t bytes;
	gid_t group;
	int logged_error;
	bool logged_lock;
	bool logged_access;
};

static void file_reset(struct spool_file *file)
{
	if (file->map)
		munmap(file->map, file->bytes);
	close_fd(file->fd);
	*file = (struct spool_file){ .fd = -1 };
}

static void spare_unref(struct spare *s)
{
	if (__atomic_sub_fetch(&s->references, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	file_reset(&s->file);
	close_fd(s->wake_fd);
	free(s);
}

/* What the spool holds already: records that wait for the durable directory, and spares. */
static int sum_spool(int dir_fd, uint64_t *ret_bytes)
{
	_cleanup_close_ int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_closedir_ DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;
	uint64_t bytes = 0;

	if (!dir)
		return -errno;
	fd = -1;
	for (;;) {
		struct stat st;

		errno = 0;
		entry = readdir(dir);
		if (!entry && errno)
			return -errno;
		if (!entry)
			break;
		if (!files_name_is_spare(entry->d_name) &&
			!record_file_name_is_valid(entry->d_name))
			continue;
		if (fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISREG(st.st_mode))
			bytes += (uint64_t)st.st_size;
	}
	*ret_bytes = bytes;
	return 0;
}

/*
 * Makes the name and takes the lock; the name is checked after it, or it may have been cleaned
 * away.
 */
static int create_locked(int dir_fd, char ret_name[static SPARE_NAME_SIZE])
{
	for (unsigned int i = 0; i < NAMES_MAX; i++) {
		_cleanup_close_ int fd = -1;
		struct stat st;

		snprintf(ret_name, SPARE_NAME_SIZE, i ? FILES_SPARE_PREFIX "%d.%u" :
							FILES_SPARE_PREFIX "%d", (int)getpid(), i);
		fd = openat(dir_fd, ret_name,
			O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0640);
		if (fd < 0 || fstat(fd, &st) < 0)
			return -errno;
		if (!S_ISREG(st.st_mode))
			continue;
		if (flock(fd, LOCK_EX | LOCK_NB) < 0)
			continue;
		if (fstat(fd, &st) == 0 && st.st_nlink > 0)
			return TAKE_FD(fd);
	}
	return -EBUSY;
}

/* Allocates every page, which is where a full tmpfs or short memory shows. */
static int fill(int fd, size_t bytes)
{
	char newlines[4096];

	if (ftruncate(fd, 0) < 0)
		return -errno;
	if (fallocate(fd, 0, 0, (off_t)bytes) < 0 && errno != EOPNOTSUPP)
		return -errno;
	memset(newlines, '\n', sizeof(newlines));
	/* By write() and not through the mapping: no page is waited for under the mmap lock. */
	for (size_t at = 0; at < bytes;) {
		size_t len = bytes - at < sizeof(newlines) ? bytes - at : sizeof(newlines);
		ssize_t n = pwrite(fd, newlines, len, (off_t)at);

		if (n < 0)
			return -errno;
		at += (size_t)n;
	}
	return 0;
}

static int make_file(struct spare *s, int dir_fd)
{
	struct spool_file file = { .fd = -1, .bytes = s->bytes };
	int r;

	file.fd = create_locked(dir_fd, file.name);
	if (file.fd < 0)
		return file.fd;
	r = files_set_access(file.fd, 0640, s->group);
	if (r < 0 && !s->logged_access)
		log_warning("cannot give %s to group %s: %s, ignoring", s->spool_dir, FILES_GROUP,
			strerror(-r));
	s->logged_access = s->logged_access || r < 0;
	r = fill(file.fd, s->bytes);
	if (r < 0) {
		unlinkat(dir_fd, file.name, 0);
		file_reset(&file);
		return r;
	}
	s->file = file;
	return 0;
}

static int map_file(struct spare *s)
{
	void *map = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		s->file.fd, 0);

	if (map == MAP_FAILED)
		return -errno;
	if (mlock(map, s->bytes) < 0 && !s->logged_lock) {
		log_warning("cannot lock the spool in memory: %s, ignoring", strerror(errno));
		s->logged_lock = true;
	}
	s->file.map = map;
	return 0;
}

/* 0 also when there is nothing to do now; -EDQUOT: the spool is at its limit. */
static int prepare(struct spare *s)
{
	_cleanup_close_ int dir_fd = -1;
	uint64_t used = 0;
	int r;

	if (__atomic_load_n(&s->state, __ATOMIC_ACQUIRE) == SPARE_READY)
		return 0;
	if (s->file.fd < 0) {
		dir_fd = open(s->spool_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (dir_fd < 0)
			return -errno;
		r = sum_spool(dir_fd, &used);
		if (r < 0)
			return r;
		if (used + s->bytes > SPARE_FILES_MAX * s->bytes)
			return -EDQUOT;
		r = make_file(s, dir_fd);
		if (r < 0)
			return r;
	}
	if (__atomic_load_n(&s->live, __ATOMIC_ACQUIRE))
		return 0;
	r = map_file(s);
	if (r < 0)
		return r;
	__atomic_store_n(&s->state, SPARE_READY, __ATOMIC_RELEASE);
	return 0;
}

static void log_outcome(struct spare *s, int error)
{
	if (error == s->logged_error)
		return;
	if (error == -EDQUOT)
		log_warning("%s is full of records that wait for record.dir: "
			    "the next incidents are not recorded until some are moved",
			s->spool_dir);
	else if (error < 0)
		log_warning("cannot make the next spool file in %s: %s; trying again", s->spool_dir,
			strerror(-error));
	else
		log_info("the next spool file in %s is there again", s->spool_dir);
	s->logged_error = error;
}

static void unlink_spare(const struct spare *s)
{
	_cleanup_close_ int dir_fd = open(s->spool_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	/* Once it has no name, the name may be that of a newer spare. */
	if (dir_fd >= 0 && fstat(s->file.fd, &st) == 0 && st.st_nlink > 0)
		unlinkat(dir_fd, s->file.name, 0);
}

static void *spare_run(void *arg)
{
	struct spare *s = arg;
	struct pollfd pfd = { .fd = s->wake_fd, .events = POLLIN };
	eventfd_t ignored;
	int r = s->logged_error;

	for (;;) {
		poll(&pfd, 1, r < 0 ? RETRY_MS : -1);
		eventfd_read(s->wake_fd, &ignored);
		if (__atomic_load_n(&s->stopping, __ATOMIC_ACQUIRE))
			break;
		r = prepare(s);
		log_outcome(s, r);
		__atomic_store_n(&s->failing, r < 0, __ATOMIC_RELEASE);
	}
	/* In every state: nobody takes it any more. */
	if (s->file.fd >= 0)
		unlink_spare(s);
	spare_unref(s);
	return NULL;
}

int spare_new(const struct spare_options *options, struct spare **ret_spare)
{
	struct spare *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->references = 1;
	s->file.fd = -1;
	text_copy(s->spool_dir, sizeof(s->spool_dir), options->spool_dir);
	s->bytes = options->bytes;
	s->group = options->group;
	s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = s->wake_fd < 0 ? -errno : prepare(s);
	if (r == -EDQUOT) {
		log_outcome(s, r);
		s->failing = true;
		r = 0;
	}
	if (r == 0) {
		s->references = 2;
		r = files_start_thread(spare_run, s);
		if (r < 0)
			s->references = 1;
	}
	if (r < 0) {
		if (s->file.fd >= 0)
			unlink_spare(s);
		spare_unref(s);
		return r;
	}
	*ret_spare = s;
	return 0;
}

struct spare *spare_free(struct spare *spare)
{
	if (!spare)
		return NULL;
	/* At once, because the process may be gone before the thread is. */
	if (__atomic_load_n(&spare->state, __ATOMIC_ACQUIRE) == SPARE_READY)
		unlink_spare(spare);
	__atomic_store_n(&spare->stopping, true, __ATOMIC_RELEASE);
	eventfd_write(spare->wake_fd, 1);
	spare_unref(spare);
	return NULL;
}

bool spare_take(struct spare *spare, struct spool_file *ret_file)
{
	if (__atomic_load_n(&spare->state, __ATOMIC_ACQUIRE) != SPARE_READY)
		return false;
	*ret_file = spare->file;
	spare->file = (struct spool_file){ .fd = -1 };
	__atomic_store_n(&spare->state, SPARE_MAKING, __ATOMIC_RELEASE);
	return true;
}

bool spare_is_settled(const struct spare *spare)
{
	return __atomic_load_n(&spare->state, __ATOMIC_ACQUIRE) == SPARE_READY ||
		__atomic_load_n(&spare->failing, __ATOMIC_ACQUIRE) ||
		__atomic_load_n(&spare->live, __ATOMIC_ACQUIRE);
}

void spare_set_live(struct spare *spare, bool live)
{
	__atomic_store_n(&spare->live, live, __ATOMIC_RELEASE);
	eventfd_write(spare->wake_fd, 1);
}
