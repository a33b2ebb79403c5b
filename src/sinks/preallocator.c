/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sinks/preallocator.h"

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
#include <time.h>
#include <unistd.h>

#include "record/record.h"
#include "sinks/dir.h"
#include "sinks/lock.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/log.h"
#include "util/text.h"
#include "util/thread.h"

/* The whole stack is locked in memory; the deepest frames hold two paths. */
#define THREAD_STACK_BYTES (48 * 1024)

#define RETRY_MS (30 * 1000)
/* How long its end is waited for: whoever reads the directory may keep its lock for ever. */
#define END_MS 200
/* A process has one preallocator, and a second one during a reload. */
#define NAMES_MAX 8

enum preallocator_state {
	PREALLOCATOR_MAKING, /* the thread owns `file` */
	PREALLOCATOR_READY,  /* the event loop owns `file` */
};

/* Shared by the thread and the spool sink; the last of them to leave frees it. */
struct preallocator {
	int references;
	int wake_fd;
	int lock_fd;
	bool stopping;
	bool live;    /* an open incident has a file mapped */
	bool failing; /* the last attempt failed */
	enum preallocator_state state;
	struct spool_file file;
	char spool_dir[PATH_MAX];
	size_t bytes;
	gid_t group;
	int logged_error;
	bool logged_lock;
	bool logged_access;
};

static void file_reset(struct preallocator *s, struct spool_file *file)
{
	if (file->map)
		munmap(file->map, file->bytes);
	if (file->fd >= 0)
		lock_drop(s->lock_fd, file->inode);
	close_fd(file->fd);
	*file = (struct spool_file){ .fd = -1 };
}

static void preallocator_unref(struct preallocator *s)
{
	if (__atomic_sub_fetch(&s->references, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	file_reset(s, &s->file);
	close_fd(s->wake_fd);
	close_fd(s->lock_fd);
	free(s);
}

/*
 * Adds up what the spool holds: records that wait for the durable directory, and preallocated
 * files.
 */
static int sum_spool(int dir_fd, uint64_t *ret_bytes)
{
	_cleanup_closedir_ DIR *dir = dir_list(dir_fd);
	const struct dirent *entry;
	uint64_t bytes = 0;

	if (!dir)
		return -errno;
	for (;;) {
		struct stat st;

		errno = 0;
		entry = readdir(dir);
		if (!entry && errno)
			return -errno;
		if (!entry)
			break;
		if (!preallocator_name_is_ours(entry->d_name) &&
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
 * Creates the file and takes its lock. The link count is checked after that, because the writer of
 * another process may have removed the file before it was locked. The writers also remove files
 * that an earlier process with this id left behind.
 */
static int create_locked(const struct preallocator *s, int dir_fd, struct spool_file *file)
{
	for (unsigned int i = 0; i < NAMES_MAX; i++) {
		_cleanup_close_ int fd = -1;
		struct stat st;

		snprintf(file->name, sizeof(file->name),
			i ? PREALLOCATOR_PREFIX "%d.%u" : PREALLOCATOR_PREFIX "%d", (int)getpid(),
			i);
		/* With a mode by which only root can open it, until it has its flock. */
		fd = openat(dir_fd, file->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			0600);
		if (fd < 0 && errno == EEXIST)
			continue;
		if (fd < 0 || fstat(fd, &st) < 0)
			return -errno;
		if (lock_take(s->lock_fd, st.st_ino) < 0)
			continue;
		if (fstat(fd, &st) < 0 || st.st_nlink == 0) {
			lock_drop(s->lock_fd, st.st_ino);
			continue;
		}
		flock(fd, LOCK_EX | LOCK_NB);
		file->inode = st.st_ino;
		file->fd = TAKE_FD(fd);
		return 0;
	}
	return -EBUSY;
}

/* Allocates every page, so that a full tmpfs or a lack of memory shows here and not later. */
static int fill(int fd, size_t bytes)
{
	char newlines[4096];

	if (ftruncate(fd, 0) < 0)
		return -errno;
	if (fallocate(fd, 0, 0, (off_t)bytes) < 0 && errno != EOPNOTSUPP)
		return -errno;
	memset(newlines, '\n', sizeof(newlines));
	/*
	 * By write() and not through the mapping, so that no page fault waits under the mmap lock.
	 */
	for (size_t at = 0; at < bytes;) {
		size_t len = bytes - at < sizeof(newlines) ? bytes - at : sizeof(newlines);
		ssize_t n = pwrite(fd, newlines, len, (off_t)at);

		if (n < 0)
			return -errno;
		at += (size_t)n;
	}
	return 0;
}

static int make_file(struct preallocator *s, int dir_fd)
{
	struct spool_file file = { .fd = -1, .bytes = s->bytes };
	int r;

	r = create_locked(s, dir_fd, &file);
	if (r < 0)
		return r;
	r = file_set_access(file.fd, 0640, s->group);
	if (r < 0 && !s->logged_access)
		log_warning("cannot change the group of files in %s to %s: %s, ignoring",
			s->spool_dir, FILE_GROUP, strerror(-r));
	s->logged_access = s->logged_access || r < 0;
	r = fill(file.fd, s->bytes);
	if (r < 0) {
		unlinkat(dir_fd, file.name, 0);
		file_reset(s, &file);
		return r;
	}
	s->file = file;
	return 0;
}

static int map_file(struct preallocator *s)
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

/* 0 also when there is nothing to do; -EDQUOT: the spool is full. */
static int prepare(struct preallocator *s)
{
	_cleanup_close_ int dir_fd = -1;
	uint64_t used = 0;
	int r;

	if (__atomic_load_n(&s->state, __ATOMIC_ACQUIRE) == PREALLOCATOR_READY ||
		__atomic_load_n(&s->live, __ATOMIC_ACQUIRE))
		return 0;
	if (s->file.fd < 0) {
		dir_fd = open(s->spool_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (dir_fd < 0)
			return -errno;
		r = sum_spool(dir_fd, &used);
		if (r < 0)
			return r;
		if (used + s->bytes > PREALLOCATOR_FILES_MAX * s->bytes)
			return -EDQUOT;
		r = make_file(s, dir_fd);
		if (r < 0)
			return r;
	}
	r = map_file(s);
	if (r < 0)
		return r;
	__atomic_store_n(&s->state, PREALLOCATOR_READY, __ATOMIC_RELEASE);
	return 0;
}

static void log_outcome(struct preallocator *s, int error)
{
	if (error == s->logged_error)
		return;
	if (error == -EDQUOT)
		log_warning("%s is full of records that cannot be copied to record.dir: "
			    "incidents are not recorded until it has room again",
			s->spool_dir);
	else if (error < 0)
		log_warning("cannot make the next spool file in %s: %s; trying again every 30 s",
			s->spool_dir, strerror(-error));
	else
		log_info("%s has room for the next spool file again", s->spool_dir);
	s->logged_error = error;
}

static void unlink_unused(const struct preallocator *s)
{
	_cleanup_close_ int dir_fd = open(s->spool_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	/* If the file has no name any more, the name may belong to a newer preallocator. */
	if (dir_fd >= 0 && fstat(s->file.fd, &st) == 0 && st.st_nlink > 0)
		unlinkat(dir_fd, s->file.name, 0);
}

static void *preallocator_run(void *arg)
{
	struct preallocator *s = arg;
	struct pollfd pfd = { .fd = s->wake_fd, .events = POLLIN };
	eventfd_t ignored;
	int r = s->logged_error;

	thread_take_priority();
	for (;;) {
		poll(&pfd, 1, r < 0 ? RETRY_MS : -1);
		eventfd_read(s->wake_fd, &ignored);
		if (__atomic_load_n(&s->stopping, __ATOMIC_ACQUIRE))
			break;
		r = prepare(s);
		log_outcome(s, r);
		__atomic_store_n(&s->failing, r < 0, __ATOMIC_RELEASE);
	}
	/* In every state, because the file is not taken any more. */
	if (s->file.fd >= 0)
		unlink_unused(s);
	preallocator_unref(s);
	return NULL;
}

int preallocator_new(const struct preallocator_options *options,
	struct preallocator **ret_preallocator)
{
	struct preallocator *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->references = 1;
	s->file.fd = -1;
	s->wake_fd = -1;
	text_copy(s->spool_dir, sizeof(s->spool_dir), options->spool_dir);
	s->bytes = options->bytes;
	s->group = options->group;
	s->lock_fd = lock_open(options->spool_fd);
	r = s->lock_fd < 0 ? s->lock_fd : 0;
	if (r == 0) {
		s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		r = s->wake_fd < 0 ? -errno : prepare(s);
	}
	if (r == -EDQUOT) {
		log_outcome(s, r);
		s->failing = true;
		r = 0;
	}
	if (r == 0) {
		s->references = 2;
		r = thread_start_sharing_fds(preallocator_run, s, THREAD_STACK_BYTES);
		if (r < 0)
			s->references = 1;
	}
	if (r < 0) {
		if (s->file.fd >= 0)
			unlink_unused(s);
		preallocator_unref(s);
		return r;
	}
	*ret_preallocator = s;
	return 0;
}

struct preallocator *preallocator_free(struct preallocator *preallocator)
{
	const struct timespec pause = { .tv_nsec = NSEC_PER_MSEC };

	if (!preallocator)
		return NULL;
	__atomic_store_n(&preallocator->stopping, true, __ATOMIC_RELEASE);
	preallocator_wake(preallocator);
	/* The process may exit next. The next start removes what the thread does not come to. */
	for (unsigned int i = 0; i < END_MS; i++) {
		if (__atomic_load_n(&preallocator->references, __ATOMIC_ACQUIRE) == 1)
			break;
		nanosleep(&pause, NULL);
	}
	preallocator_unref(preallocator);
	return NULL;
}

bool preallocator_take(struct preallocator *preallocator, struct spool_file *ret_file)
{
	if (__atomic_load_n(&preallocator->state, __ATOMIC_ACQUIRE) != PREALLOCATOR_READY)
		return false;
	*ret_file = preallocator->file;
	preallocator->file = (struct spool_file){ .fd = -1 };
	__atomic_store_n(&preallocator->live, true, __ATOMIC_RELEASE);
	__atomic_store_n(&preallocator->state, PREALLOCATOR_MAKING, __ATOMIC_RELEASE);
	preallocator_wake(preallocator);
	return true;
}

void preallocator_give_back(struct preallocator *preallocator, struct spool_file *file)
{
	file_reset(preallocator, file);
	__atomic_store_n(&preallocator->live, false, __ATOMIC_RELEASE);
	preallocator_wake(preallocator);
}

bool preallocator_is_ready(const struct preallocator *preallocator)
{
	return __atomic_load_n(&preallocator->state, __ATOMIC_ACQUIRE) == PREALLOCATOR_READY ||
		__atomic_load_n(&preallocator->failing, __ATOMIC_ACQUIRE) ||
		__atomic_load_n(&preallocator->live, __ATOMIC_ACQUIRE);
}

void preallocator_wake(struct preallocator *preallocator)
{
	eventfd_write(preallocator->wake_fd, 1);
}

bool preallocator_name_is_ours(const char *name)
{
	return strncmp(name, PREALLOCATOR_PREFIX, strlen(PREALLOCATOR_PREFIX)) == 0;
}
