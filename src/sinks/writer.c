/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sinks/writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/reader.h"
#include "sinks/files.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/log.h"
#include "util/text.h"

#define COPY_BYTES (64 * 1024)
#define PART_PREFIX "."
#define PART_SUFFIX ".part"
#define PART_SIZE (RECORD_FILE_SIZE + sizeof(PART_PREFIX PART_SUFFIX) - 1)

/* Shared by the thread and its owner; whoever leaves last frees it. */
struct writer {
	int references;
	int wake_fd;
	bool stopping;
	uint64_t passes_wanted;
	uint64_t passes_done;
	bool left_over; /* by the last pass */
	char spool_dir[PATH_MAX];
	char dir[PATH_MAX];
	struct retention_limits limits;
	gid_t group;
	uint64_t retry_ns;
	uint64_t age_check_ns;
	/* Of the thread alone. */
	int logged_error; /* the last one told, 0 when all is well */
	bool logged_access;
	bool parts_done;
	char buf[COPY_BYTES];
};

/* Where one pass works. */
struct pass {
	struct writer *writer;
	int spool_fd;
	int dir_fd; /* -errno when the directory cannot be opened */
	int error;  /* the first that kept a record in the spool */
	bool busy;  /* another process holds one, perhaps a dead one whose thread still hangs */
	bool same_dir; /* spool and durable directory are one */
};

static void writer_unref(struct writer *writer)
{
	if (__atomic_sub_fetch(&writer->references, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	close_fd(writer->wake_fd);
	free(writer);
}

void writer_wake(struct writer *writer)
{
	__atomic_add_fetch(&writer->passes_wanted, 1, __ATOMIC_RELEASE);
	eventfd_write(writer->wake_fd, 1);
}

bool writer_is_settled(const struct writer *writer)
{
	uint64_t wanted = __atomic_load_n(&writer->passes_wanted, __ATOMIC_ACQUIRE);

	return __atomic_load_n(&writer->passes_done, __ATOMIC_ACQUIRE) >= wanted &&
		!__atomic_load_n(&writer->left_over, __ATOMIC_ACQUIRE);
}

/*
 * Opens a regular file and takes its lock. -EWOULDBLOCK: somebody is writing it; -ENOENT: somebody
 * else moved it between the two.
 */
static int open_locked(int dir_fd, const char *name, int flags, struct stat *ret_stat)
{
	_cleanup_close_ int fd =
		openat(dir_fd, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0640);

	if (fd < 0 || fstat(fd, ret_stat) < 0)
		return -errno;
	if (!S_ISREG(ret_stat->st_mode))
		return -EINVAL;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	/* Once more: only now nobody else changes it. */
	if (fstat(fd, ret_stat) < 0)
		return -errno;
	return ret_stat->st_nlink > 0 ? TAKE_FD(fd) : -ENOENT;
}

/* Whether a normal close cut it: its last line is whole and no padding follows. */
static bool is_cut_already(int fd, off_t size)
{
	char tail[2];

	return size >= 2 && pread(fd, tail, 2, size - 2) == 2 && memcmp(tail, "}\n", 2) == 0;
}

/* Nothing was ever written to it, or not even its first line was finished. */
static bool is_unused(int fd)
{
	static const char begin[] = "{\"v\":";
	char head[sizeof(begin) - 1];
	ssize_t n = pread(fd, head, sizeof(head), 0);

	return n == 0 || (n > 0 && (head[0] == '\n' || memcmp(head, begin, (size_t)n) == 0));
}

/*
 * Cuts what a dead daemon left behind its last whole line. 0, or -ENODATA when there is none, or
 * another negative errno.
 */
static int cut_tail(int fd, off_t size)
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

static int copy_bytes(struct writer *w, int from_fd, int to_fd)
{
	for (off_t at = 0;;) {
		ssize_t n = pread(from_fd, w->buf, sizeof(w->buf), at);
		int r;

		if (n < 0)
			return -errno;
		if (n == 0)
			return fsync(to_fd) < 0 ? -errno : 0;
		r = file_write_all(to_fd, w->buf, (size_t)n);
		if (r < 0)
			return r;
		at += n;
	}
}

static void set_access(struct writer *w, int fd)
{
	int r = files_set_access(fd, 0640, w->group);

	if (r < 0 && !w->logged_access)
		log_warning("cannot give records to group %s: %s, ignoring", FILES_GROUP,
			strerror(-r));
	w->logged_access = w->logged_access || r < 0;
}

static void make_part_name(const char *name, char ret_part[static PART_SIZE])
{
	struct text part = { .buf = ret_part, .size = PART_SIZE };

	text_reset(&part);
	text_add(&part, PART_PREFIX);
	text_add(&part, name);
	text_add(&part, PART_SUFFIX);
}

/* Copy, fsync, rename, fsync: at every moment at least one of both directories has all of it. */
static int copy_record(const struct pass *pass, int fd, const char *name)
{
	char part[PART_SIZE];
	_cleanup_close_ int part_fd = -1;
	struct stat st;
	int r;

	make_part_name(name, part);
	part_fd = open_locked(pass->dir_fd, part, O_WRONLY | O_CREAT, &st);
	if (part_fd < 0)
		return part_fd;
	r = ftruncate(part_fd, 0) < 0 ? -errno : 0;
	if (r == 0) {
		set_access(pass->writer, part_fd);
		r = copy_bytes(pass->writer, fd, part_fd);
	}
	if (r == 0 && renameat(pass->dir_fd, part, pass->dir_fd, name) < 0)
		r = -errno;
	if (r < 0) {
		/* A full disk gets its space back. */
		unlinkat(pass->dir_fd, part, 0);
		return r;
	}
	return fsync(pass->dir_fd) < 0 ? -errno : 0;
}

/* 0 also when there was nothing to do; else the negative errno that keeps it in the spool. */
static int move_record(struct pass *pass, const char *name)
{
	struct stat st;
	_cleanup_close_ int fd = open_locked(pass->spool_fd, name, O_RDWR, &st);
	int r;

	if (fd == -EWOULDBLOCK) {
		pass->busy = true;
		return 0;
	}
	if (fd == -ENOENT || fd == -EINVAL || fd == -ELOOP)
		return 0;
	if (fd < 0)
		return fd;
	r = cut_tail(fd, st.st_size);
	if (r == -ENODATA && is_unused(fd)) {
		log_info("removing %s/%s: no line of it was finished", pass->writer->spool_dir,
			name);
		unlinkat(pass->spool_fd, name, 0);
		return 0;
	}
	/* Whatever else has such a name is somebody's own. */
	if (r == -ENODATA || (r == 0 && !record_fd_is_ours(fd, name)))
		return 0;
	if (r < 0 || pass->same_dir)
		return r;
	if (pass->dir_fd < 0)
		return pass->dir_fd;
	r = copy_record(pass, fd, name);
	if (r < 0)
		return r;
	return unlinkat(pass->spool_fd, name, 0) < 0 ? -errno : 0;
}

static void remove_stale_spare(const struct pass *pass, const char *name)
{
	struct stat st;
	_cleanup_close_ int fd = open_locked(pass->spool_fd, name, O_RDONLY, &st);

	if (fd >= 0)
		unlinkat(pass->spool_fd, name, 0);
}

static bool is_stopping(const struct writer *w)
{
	return __atomic_load_n(&w->stopping, __ATOMIC_ACQUIRE);
}

static int for_each_name(int dir_fd, struct pass *pass,
	void (*visit)(struct pass *pass, const char *name))
{
	_cleanup_close_ int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_closedir_ DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;

	if (!dir)
		return -errno;
	fd = -1;
	while (!is_stopping(pass->writer)) {
		errno = 0;
		entry = readdir(dir);
		if (!entry)
			return -errno;
		visit(pass, entry->d_name);
	}
	return 0;
}

static void visit_spool_name(struct pass *pass, const char *name)
{
	int r;

	if (files_name_is_spare(name))
		remove_stale_spare(pass, name);
	if (!record_file_name_is_valid(name))
		return;
	r = move_record(pass, name);
	if (r < 0 && pass->error == 0)
		pass->error = r;
}

/*
 * A copy that a reboot cut off: when the spool still has the record it is made again, else the
 * lines that arrived are all there is.
 */
static void visit_durable_name(struct pass *pass, const char *part)
{
	size_t len = strlen(part);
	char name[RECORD_FILE_SIZE], expected[PART_SIZE];
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (len != PART_SIZE - 1)
		return;
	memcpy(name, part + strlen(PART_PREFIX), RECORD_FILE_SIZE - 1);
	name[RECORD_FILE_SIZE - 1] = '\0';
	make_part_name(name, expected);
	if (!record_file_name_is_valid(name) || strcmp(part, expected) != 0)
		return;
	fd = open_locked(pass->dir_fd, part, O_RDWR, &st);
	if (fd < 0)
		return;
	if (faccessat(pass->spool_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
		faccessat(pass->dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
		cut_tail(fd, st.st_size) < 0 || !record_fd_is_ours(fd, name))
		unlinkat(pass->dir_fd, part, 0);
	else
		renameat(pass->dir_fd, part, pass->dir_fd, name);
}

static void log_outcome(struct writer *w, int error)
{
	if (error == w->logged_error)
		return;
	if (error < 0)
		log_warning("cannot move records to %s: %s; they stay in %s until it works", w->dir,
			strerror(-error), w->spool_dir);
	else
		log_info("records move to %s again", w->dir);
	w->logged_error = error;
}

static void keep_limits(struct pass *pass)
{
	const struct writer *w = pass->writer;
	int r = retention_apply(pass->dir_fd, &w->limits, clock_real_ns());

	if (r < 0)
		log_warning("cannot remove old records from %s: %s, ignoring", w->dir,
			strerror(-r));
	else if (r > 0)
		log_info("removed %d old records from %s", r, w->dir);
}

static bool is_same_dir(int a_fd, int b_fd)
{
	struct stat a, b;

	return fstat(a_fd, &a) == 0 && fstat(b_fd, &b) == 0 && a.st_dev == b.st_dev &&
		a.st_ino == b.st_ino;
}

/* The service finds it made by systemd; `watch` on a host without the service makes it. -1 and errno. */
static int open_durable_dir(struct writer *w)
{
	bool made = mkdir(w->dir, 0750) == 0;
	int fd = open(w->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (made && fd >= 0)
		files_set_access(fd, 0750, w->group);
	return fd;
}

/* 0, or the negative errno that left something in the spool. */
static int writer_pass(struct writer *w, bool *ret_busy)
{
	_cleanup_close_ int spool_fd = open(w->spool_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int dir_fd = open_durable_dir(w);
	struct pass pass = {
		.writer = w,
		.spool_fd = spool_fd,
		.dir_fd = dir_fd < 0 ? -errno : dir_fd,
	};
	int r;

	if (spool_fd < 0)
		return -ENOENT;
	pass.same_dir = dir_fd >= 0 && is_same_dir(spool_fd, dir_fd);
	if (dir_fd >= 0 && !w->parts_done) {
		for_each_name(dir_fd, &pass, visit_durable_name);
		w->parts_done = true;
	}
	r = for_each_name(spool_fd, &pass, visit_spool_name);
	if (dir_fd >= 0)
		keep_limits(&pass);
	*ret_busy = pass.busy;
	return pass.error < 0 ? pass.error : r;
}

static void wait_for_work(const struct writer *w, bool try_again)
{
	struct pollfd pfd = { .fd = w->wake_fd, .events = POLLIN };
	int timeout_ms = -1;
	eventfd_t ignored;

	if (try_again)
		timeout_ms = (int)(w->retry_ns / NSEC_PER_MSEC);
	else if (w->limits.max_age_ns)
		timeout_ms = (int)(w->age_check_ns / NSEC_PER_MSEC);
	poll(&pfd, 1, timeout_ms);
	eventfd_read(w->wake_fd, &ignored);
}

static void *writer_run(void *arg)
{
	struct writer *w = arg;

	while (!is_stopping(w)) {
		uint64_t wanted = __atomic_load_n(&w->passes_wanted, __ATOMIC_ACQUIRE);
		bool busy = false;
		int r = writer_pass(w, &busy);

		log_outcome(w, r);
		__atomic_store_n(&w->left_over, r < 0, __ATOMIC_RELEASE);
		__atomic_store_n(&w->passes_done, wanted, __ATOMIC_RELEASE);
		if (!is_stopping(w))
			wait_for_work(w, r < 0 || busy);
	}
	writer_unref(w);
	return NULL;
}

int writer_new(const struct writer_options *options, struct writer **ret_writer)
{
	struct writer *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->wake_fd < 0) {
		r = -errno;
		free(w);
		return r;
	}
	w->references = 2;
	w->passes_wanted = 1;
	text_copy(w->spool_dir, sizeof(w->spool_dir), options->spool_dir);
	text_copy(w->dir, sizeof(w->dir), options->dir);
	w->limits = options->limits;
	w->group = options->group;
	w->retry_ns = options->retry_ns;
	w->age_check_ns = options->age_check_ns;
	r = files_start_thread(writer_run, w);
	if (r < 0) {
		w->references = 1;
		writer_unref(w);
		return r;
	}
	*ret_writer = w;
	return 0;
}

struct writer *writer_free(struct writer *writer)
{
	if (!writer)
		return NULL;
	__atomic_store_n(&writer->stopping, true, __ATOMIC_RELEASE);
	eventfd_write(writer->wake_fd, 1);
	writer_unref(writer);
	return NULL;
}
