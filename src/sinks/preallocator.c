/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sinks/preallocator.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "record/record.h"
#include "sinks/dir.h"
#include "sinks/lock.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/detached_worker.h"
#include "util/file.h"
#include "util/log.h"
#include "util/text.h"

/* The whole stack is locked in memory; the deepest frames are those of fill(). */
#define THREAD_STACK_BYTES (48 * 1024)

#define RETRY_NS (30 * NSEC_PER_SEC)
/* How long its end is waited for: whoever reads the directory may keep its lock for ever. */
#define END_MS 200
/* The same of the first file at the start, which the host may be slow to allocate. */
#define FIRST_MS 2000
/* A process has one preallocator, and a second one during a reload. */
#define NAMES_MAX 8

/* The thread's while it is busy. */
struct making {
	struct spool_file file; /* the next one */
	struct spool_file used; /* to be cut off and given up */
	size_t used_bytes;
	bool is_last; /* no next file is wanted, and that there is goes */
	int error;    /* of the last file that was to be made; 0 */
	size_t bytes;
	gid_t group;
	bool logged_lock;
	bool logged_access;
};

struct preallocator {
	struct detached_worker *worker;
	struct making *making;
	int lock_fd;
	bool live; /* an open incident has a file mapped */
	uint64_t retry_ns;
	int logged_error;
	char spool_dir[PATH_MAX];
};

static void file_reset(int lock_fd, struct spool_file *file)
{
	if (!file->map)
		return;
	munmap(file->map, file->bytes);
	lock_drop(lock_fd, file->inode);
	close(file->fd);
	*file = (struct spool_file){ 0 };
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
 * that an earlier process with this id left behind. Returns a descriptor, or a negative errno.
 */
static int create_locked(int dir_fd, int lock_fd, struct spool_file *file)
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
		if (lock_take(lock_fd, st.st_ino) < 0)
			continue;
		if (fstat(fd, &st) < 0 || st.st_nlink == 0) {
			lock_drop(lock_fd, st.st_ino);
			continue;
		}
		flock(fd, LOCK_EX | LOCK_NB);
		file->inode = st.st_ino;
		return TAKE_FD(fd);
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

static int map_file(struct making *m, struct spool_file *file)
{
	void *map = mmap(NULL, m->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		file->fd, 0);

	if (map == MAP_FAILED)
		return -errno;
	if (mlock(map, m->bytes) < 0 && !m->logged_lock) {
		log_warning("cannot lock the spool in memory: %s, ignoring", strerror(errno));
		m->logged_lock = true;
	}
	file->map = map;
	file->bytes = m->bytes;
	return 0;
}

static int make_file(struct making *m, int dir_fd, int lock_fd)
{
	struct spool_file file = { 0 };
	_cleanup_close_ int fd = create_locked(dir_fd, lock_fd, &file);
	int r;

	if (fd < 0)
		return fd;
	file.fd = fd;
	r = file_set_access(fd, 0640, m->group);
	if (r < 0 && !m->logged_access)
		log_warning("cannot change the group of files in record.spool_dir to %s: %s, "
			    "ignoring",
			FILE_GROUP, strerror(-r));
	m->logged_access = m->logged_access || r < 0;
	r = fill(fd, m->bytes);
	if (r == 0)
		r = map_file(m, &file);
	if (r < 0) {
		unlinkat(dir_fd, file.name, 0);
		lock_drop(lock_fd, file.inode);
		return r;
	}
	TAKE_FD(fd);
	m->file = file;
	return 0;
}

/* Others need their room in /run, too: an eighth of it is left to them. */
static bool has_room(int dir_fd, size_t bytes)
{
	struct statvfs fs;

	/* Without blocks it has no limit. */
	return fstatvfs(dir_fd, &fs) < 0 || fs.f_blocks == 0 ||
		fs.f_bavail * fs.f_frsize >= bytes + fs.f_blocks / 8 * fs.f_frsize;
}

/* -EDQUOT: the spool is full; -ENOSPC: what it is on is. */
static int prepare(struct making *m, int dir_fd, int lock_fd)
{
	uint64_t used = 0;
	int r = sum_spool(dir_fd, &used);

	if (r < 0)
		return r;
	if (used + m->bytes > PREALLOCATOR_FILES_MAX * m->bytes)
		return -EDQUOT;
	if (!has_room(dir_fd, m->bytes))
		return -ENOSPC;
	return make_file(m, dir_fd, lock_fd);
}

/* Cutting off the padding makes it a finished record. */
static void release(struct making *m, int lock_fd)
{
	if (m->used.map && ftruncate(m->used.fd, (off_t)m->used_bytes) < 0)
		log_warning("cannot truncate a file in record.spool_dir: %s, ignoring",
			strerror(errno));
	file_reset(lock_fd, &m->used);
}

/* If the file has no name any more, the name may belong to a newer preallocator. */
static void remove_unused(struct making *m, int dir_fd, int lock_fd)
{
	struct stat st;

	if (m->file.map && fstat(m->file.fd, &st) == 0 && st.st_nlink > 0)
		unlinkat(dir_fd, m->file.name, 0);
	file_reset(lock_fd, &m->file);
}

static void run(void *state, const int *fds)
{
	struct making *m = state;

	release(m, fds[1]);
	if (m->is_last)
		remove_unused(m, fds[0], fds[1]);
	else if (!m->file.map)
		m->error = prepare(m, fds[0], fds[1]);
}

/* The owner's side */

static void log_outcome(struct preallocator *p)
{
	const int error = p->making->error;

	if (error == p->logged_error)
		return;
	if (error == -EDQUOT)
		log_warning("%s is full of records that cannot be copied to record.dir: "
			    "incidents are not recorded until it has room again",
			p->spool_dir);
	else if (error < 0)
		log_warning("cannot make the next spool file in %s: %s; trying again every 30 s",
			p->spool_dir,
			error == -ENOSPC ? "no room for it beside an eighth that is left to others"
					 : strerror(-error));
	else
		log_info("%s has room for the next spool file again", p->spool_dir);
	p->logged_error = error;
}

/* False: it is busy with something else. */
static bool wait_for_thread(const struct preallocator *p, unsigned int most_ms)
{
	const struct timespec pause = { .tv_nsec = NSEC_PER_MSEC };

	for (unsigned int i = 0; i < most_ms && detached_worker_is_busy(p->worker); i++)
		nanosleep(&pause, NULL);
	return !detached_worker_is_busy(p->worker);
}

static int start_thread(struct preallocator *p, const struct preallocator_options *options)
{
	const struct detached_worker_options worker = { .run = run,
		.stack_bytes = THREAD_STACK_BYTES,
		.fds = { options->spool_fd, p->lock_fd },
		.fds_count = 2,
		.done_fd = -1 };
	struct making *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->bytes = options->bytes;
	m->group = options->group;
	p->making = m;
	return detached_worker_new(&worker, m, &p->worker);
}

/* What ends without a change of the configuration. */
static bool may_pass(int error)
{
	return error == -EDQUOT || error == -ENOSPC || error == -ENOMEM;
}

int preallocator_new(const struct preallocator_options *options,
	struct preallocator **ret_preallocator)
{
	struct preallocator *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	text_copy(p->spool_dir, sizeof(p->spool_dir), options->spool_dir);
	p->lock_fd = lock_open(options->spool_fd);
	r = p->lock_fd < 0 ? p->lock_fd : start_thread(p, options);
	if (r < 0) {
		close_fd(p->lock_fd);
		free(p);
		return r;
	}
	detached_worker_start(p->worker);
	/* Whoever reads the directory may keep it waiting for ever: later it is made, or never. */
	r = wait_for_thread(p, FIRST_MS) ? p->making->error : 0;
	if (r < 0 && !may_pass(r)) {
		preallocator_free(p);
		return r;
	}
	*ret_preallocator = p;
	return 0;
}

struct preallocator *preallocator_free(struct preallocator *p)
{
	if (!p)
		return NULL;
	/* The process may exit next. The next start removes what the thread does not come to. */
	if (wait_for_thread(p, END_MS)) {
		p->making->is_last = true;
		detached_worker_start(p->worker);
		(void)wait_for_thread(p, END_MS);
	}
	detached_worker_free(p->worker);
	close_fd(p->lock_fd);
	free(p);
	return NULL;
}

void preallocator_tick(struct preallocator *p, uint64_t now_ns)
{
	if (p->live || detached_worker_is_busy(p->worker))
		return;
	log_outcome(p);
	if (p->making->file.map || now_ns < p->retry_ns)
		return;
	p->retry_ns = now_ns + RETRY_NS;
	detached_worker_start(p->worker);
}

bool preallocator_take(struct preallocator *p, struct spool_file *ret_file)
{
	/* It is needed now. */
	p->retry_ns = 0;
	if (p->live || detached_worker_is_busy(p->worker))
		return false;
	if (!p->making->file.map) {
		log_outcome(p);
		detached_worker_start(p->worker);
		return false;
	}
	*ret_file = p->making->file;
	p->making->file = (struct spool_file){ 0 };
	p->live = true;
	return true;
}

void preallocator_give_back(struct preallocator *p, struct spool_file *file, size_t used_bytes)
{
	p->making->used = *file;
	p->making->used_bytes = used_bytes;
	p->retry_ns = 0;
	p->live = false;
	*file = (struct spool_file){ 0 };
	detached_worker_start(p->worker);
}

bool preallocator_is_ready(const struct preallocator *p)
{
	return p->live ||
		(!detached_worker_is_busy(p->worker) &&
			(p->making->file.map || p->making->error < 0));
}

bool preallocator_name_is_ours(const char *name)
{
	return strncmp(name, PREALLOCATOR_PREFIX, strlen(PREALLOCATOR_PREFIX)) == 0;
}
