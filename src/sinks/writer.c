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
#include <sys/stat.h>
#include <unistd.h>

#include "record/reader.h"
#include "sinks/dir.h"
#include "sinks/lock.h"
#include "sinks/part.h"
#include "sinks/preallocator.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/log.h"
#include "util/text.h"
#include "util/thread.h"

/* The whole stack is locked in memory; the deepest frames hold two paths. */
#define THREAD_STACK_BYTES (48 * 1024)

#define COPY_BYTES (64 * 1024)

/* The first pause, which doubles. */
#define HELD_PAUSE_NS (2 * NSEC_PER_MSEC)

/* Shared by the thread and the spool sink; the last of them to leave frees it. */
struct writer {
	int references;
	int wake_fd; /* open in the tables of both */
	bool stopping;
	uint64_t passes_wanted;
	uint64_t passes_done;
	bool left_over; /* the last pass could not move everything */
	bool dir_works; /* as far as is known */
	/* Of the open incident: its id, packed (0: there is none), and how much its file has. */
	uint64_t live;
	uint64_t live_bytes;
	uint64_t ended; /* the one that ended last; 0: none has */
	char spool_dir[PATH_MAX];
	char dir[PATH_MAX];
	struct retention_limits limits;
	gid_t group;
	uint64_t retry_ns;
	uint64_t save_ns;
	uint64_t age_check_ns;
	/* Used by the thread only. */
	uint64_t pause_ns; /* until it looks again whether that one has been let go */
	int logged_error;  /* the last error that was logged; 0: none */
	int logged_part_error;
	int logged_limits_error;
	bool logged_access;
	struct part saved; /* of the open incident, or of the one that ended last */
	char buf[COPY_BYTES];
};

/* One pass over both directories. */
struct pass {
	struct writer *writer;
	int spool_fd;
	int lock_fd;
	int dir_fd;	/* -errno when the directory cannot be used */
	int error;	/* the first error that kept a record in the spool */
	int part_error; /* the first error for which a part stays what it is */
	bool busy;     /* another process has a record or a part; it may be killed and still hang */
	bool held;     /* our preallocator has not let go yet of the record that ended last */
	bool same_dir; /* spool and durable directory are one */
};

static void writer_unref(struct writer *writer)
{
	if (__atomic_sub_fetch(&writer->references, 1, __ATOMIC_ACQ_REL) == 0)
		free(writer);
}

static void wake(struct writer *writer)
{
	eventfd_write(writer->wake_fd, 1);
}

/* An id is a second and four hexadecimal digits, so the thread can read it in one piece. */
static uint64_t pack_id(const char *id)
{
	return record_id_real_ns(id) / NSEC_PER_SEC << 16 |
		(strtoul(strrchr(id, '-') + 1, NULL, 16) & 0xffff);
}

static void unpack_id(uint64_t packed, char ret_id[static RECORD_ID_SIZE])
{
	record_make_id((packed >> 16) * NSEC_PER_SEC, packed & 0xffff, ret_id);
}

void writer_begin(struct writer *writer, const char *incident)
{
	__atomic_store_n(&writer->live, pack_id(incident), __ATOMIC_RELEASE);
	wake(writer);
}

void writer_note_bytes(struct writer *writer, size_t bytes)
{
	__atomic_store_n(&writer->live_bytes, bytes, __ATOMIC_RELEASE);
}

void writer_end(struct writer *writer, const char *incident)
{
	__atomic_store_n(&writer->live, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&writer->ended, pack_id(incident), __ATOMIC_RELEASE);
	__atomic_add_fetch(&writer->passes_wanted, 1, __ATOMIC_RELEASE);
	wake(writer);
}

bool writer_is_flushed(const struct writer *writer)
{
	uint64_t wanted = __atomic_load_n(&writer->passes_wanted, __ATOMIC_ACQUIRE);

	return __atomic_load_n(&writer->passes_done, __ATOMIC_ACQUIRE) >= wanted &&
		!__atomic_load_n(&writer->left_over, __ATOMIC_ACQUIRE);
}

bool writer_dir_works(const struct writer *writer)
{
	return __atomic_load_n(&writer->dir_works, __ATOMIC_ACQUIRE);
}

/* -ENOENT: it was moved meanwhile; -EINVAL or -ELOOP: no regular file. */
static int open_record(const struct pass *pass, const char *name, int flags, struct stat *ret_stat)
{
	_cleanup_close_ int fd =
		openat(pass->spool_fd, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 || fstat(fd, ret_stat) < 0)
		return -errno;
	return S_ISREG(ret_stat->st_mode) ? TAKE_FD(fd) : -EINVAL;
}

/* Whether nothing was written to it, or not even a complete first line. */
static bool is_unused(int fd)
{
	static const char begin[] = "{\"v\":";
	char head[sizeof(begin) - 1];
	ssize_t n = pread(fd, head, sizeof(head), 0);

	return n == 0 || (n > 0 && (head[0] == '\n' || memcmp(head, begin, (size_t)n) == 0));
}

static void log_access(struct writer *w, int error)
{
	if (error < 0 && !w->logged_access)
		log_warning("cannot change the group of records to %s: %s, ignoring", FILE_GROUP,
			strerror(-error));
	w->logged_access = w->logged_access || error < 0;
}

/*
 * Copy, fsync, rename, fsync: at any time at least one of the two directories has the whole record.
 */
static int copy_record(const struct pass *pass, int fd, const char *name, off_t size)
{
	struct writer *w = pass->writer;
	struct part own = { .fd = -1 }, *part = &w->saved;
	char incident[RECORD_ID_SIZE];
	int r = 0, access = 0;

	memcpy(incident, name, RECORD_ID_SIZE - 1);
	incident[RECORD_ID_SIZE - 1] = '\0';
	if (part->fd < 0 || strcmp(part->incident, incident) != 0) {
		part = &own;
		r = part_open(part, pass->dir_fd, incident);
	}
	if (r == 0)
		r = part_append(part, fd, size, w->buf, sizeof(w->buf));
	if (r == 0)
		r = part_finish(part, pass->dir_fd, w->group, &access);
	/* What it has stays: a reset of the host would leave nothing else. */
	part_close(part, pass->dir_fd);
	log_access(w, access);
	return r;
}

static void note_taken(struct pass *pass, const char *incident)
{
	const uint64_t ended = __atomic_load_n(&pass->writer->ended, __ATOMIC_ACQUIRE);
	char ours[RECORD_ID_SIZE];

	pass->busy = true;
	unpack_id(ended, ours);
	if (ended && strncmp(incident, ours, strlen(ours)) == 0)
		pass->held = true;
}

/*
 * 0 also when there is nothing to do; else the negative errno that keeps the record in the spool.
 * Two processes may do this with one record at the same time: both come to the same bytes.
 */
static int move_record(struct pass *pass, const char *name)
{
	struct stat st;
	_cleanup_close_ int fd = open_record(pass, name, O_RDWR, &st);
	int r;

	if (fd == -ENOENT || fd == -EINVAL || fd == -ELOOP)
		return 0;
	if (fd < 0)
		return fd;
	if (lock_is_taken(pass->lock_fd, st.st_ino)) {
		note_taken(pass, name);
		return 0;
	}
	/* Its size may have changed until then. */
	r = fstat(fd, &st) < 0 ? -errno : part_cut_tail(fd, st.st_size);
	if (r == -ENODATA && is_unused(fd)) {
		log_info("removing %s/%s: it has no complete line", pass->writer->spool_dir, name);
		unlinkat(pass->spool_fd, name, 0);
		return 0;
	}
	if (r == 0)
		r = record_fd_check(fd, name);
	/* Another file with such a name does not belong to iostall. */
	if (r == -ENODATA)
		return 0;
	if (r < 0 || pass->same_dir)
		return r;
	if (pass->dir_fd < 0)
		return pass->dir_fd;
	r = fstat(fd, &st) < 0 ? -errno : copy_record(pass, fd, name, st.st_size);
	if (r == -EWOULDBLOCK)
		pass->busy = true;
	if (r < 0)
		return r == -EWOULDBLOCK ? 0 : r;
	return unlinkat(pass->spool_fd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* Saves what the open incident has so far. After an error it is tried again at the next pass. */
static int save_live(struct pass *pass)
{
	struct writer *w = pass->writer;
	uint64_t live = __atomic_load_n(&w->live, __ATOMIC_ACQUIRE);
	uint64_t bytes = __atomic_load_n(&w->live_bytes, __ATOMIC_ACQUIRE);
	char incident[RECORD_ID_SIZE], name[RECORD_FILE_SIZE];
	_cleanup_close_ int fd = -1;
	struct stat st;
	int r;

	/* Unchanged, so these are the bytes of this incident. */
	if (live == 0 || __atomic_load_n(&w->live, __ATOMIC_ACQUIRE) != live)
		return 0;
	if (pass->dir_fd < 0)
		return pass->dir_fd;
	if (pass->same_dir)
		return 0;
	unpack_id(live, incident);
	snprintf(name, sizeof(name), "%s" RECORD_FILE_SUFFIX, incident);
	fd = open_record(pass, name, O_RDONLY, &st);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	r = 0;
	if (w->saved.fd < 0 || strcmp(w->saved.incident, incident) != 0) {
		part_close(&w->saved, pass->dir_fd);
		r = part_open(&w->saved, pass->dir_fd, incident);
	}
	if (r == 0)
		r = part_append(&w->saved, fd, (off_t)bytes, w->buf, sizeof(w->buf));
	/* What has been saved stays, and the next pass goes on from there. */
	if (r < 0 && w->saved.bytes == 0)
		part_close(&w->saved, pass->dir_fd);
	return r;
}

static bool is_stopping(const struct writer *w)
{
	return __atomic_load_n(&w->stopping, __ATOMIC_ACQUIRE);
}

static int for_each_name(int dir_fd, struct pass *pass,
	void (*visit)(struct pass *pass, const char *name))
{
	_cleanup_closedir_ DIR *dir = dir_list(dir_fd);
	const struct dirent *entry;

	if (!dir)
		return -errno;
	while (!is_stopping(pass->writer)) {
		errno = 0;
		entry = readdir(dir);
		if (!entry)
			return -errno;
		visit(pass, entry->d_name);
	}
	return 0;
}

/* What could not be looked at may be a record that is not filed. */
static void note_error(struct pass *pass, int error)
{
	if (error < 0 && pass->error == 0)
		pass->error = error;
}

/*
 * A file that another process made in advance is removed when it is not used, else it has a record
 * that its process could not name any more, and gets its name.
 */
static void take_preallocated(struct pass *pass, const char *name, int fd)
{
	char record[RECORD_FILE_SIZE], incident[RECORD_ID_SIZE];

	if (record_fd_incident(fd, incident) < 0) {
		unlinkat(pass->spool_fd, name, 0);
		return;
	}
	snprintf(record, sizeof(record), "%s" RECORD_FILE_SUFFIX, incident);
	if (renameat2(pass->spool_fd, name, pass->spool_fd, record, RENAME_NOREPLACE) == 0)
		note_error(pass, move_record(pass, record));
	else
		note_error(pass, errno == ENOENT ? 0 : -errno);
}

static bool is_name_of(const struct pass *pass, const char *name, ino_t inode)
{
	struct stat st;

	return fstatat(pass->spool_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == inode;
}

/*
 * With the lock, so that it is not the file of a process that is about to lock it; and whoever has
 * the lock is the only one that removes the file or gives it another name.
 */
static void visit_preallocated(struct pass *pass, const char *name)
{
	char incident[RECORD_ID_SIZE];
	struct stat st;
	_cleanup_close_ int fd = open_record(pass, name, O_RDONLY, &st);

	if (fd < 0)
		return;
	if (lock_take(pass->lock_fd, st.st_ino) < 0) {
		if (record_fd_incident(fd, incident) == 0)
			note_taken(pass, incident);
		return;
	}
	if (is_name_of(pass, name, st.st_ino))
		take_preallocated(pass, name, fd);
	lock_drop(pass->lock_fd, st.st_ino);
}

static void visit_spool_name(struct pass *pass, const char *name)
{
	if (preallocator_name_is_ours(name))
		visit_preallocated(pass, name);
	if (record_file_name_is_valid(name))
		note_error(pass, move_record(pass, name));
}

static void visit_durable_name(struct pass *pass, const char *name)
{
	const struct part_place place = { .dir_fd = pass->dir_fd,
		.spool_fd = pass->spool_fd,
		.group = pass->writer->group };
	int r = part_finish_left_behind(&place, name);

	if (r == -EWOULDBLOCK)
		pass->busy = true;
	else if (r < 0 && pass->part_error == 0)
		pass->part_error = r;
}

static void log_part_outcome(struct writer *w, int error)
{
	if (error < 0 && error != w->logged_part_error)
		log_warning("record.dir: cannot finish in %s what was cut off by a reset of the "
			    "host or a kill: %s; it is tried again",
			w->dir, dir_strerror(error));
	w->logged_part_error = error;
}

static void log_outcome(struct writer *w, int error)
{
	if (error == w->logged_error)
		return;
	if (error < 0)
		log_warning("record.dir: cannot move records to %s: %s; they stay in %s and are "
			    "tried again",
			w->dir, dir_strerror(error), w->spool_dir);
	else
		log_info("records are moved to %s again", w->dir);
	w->logged_error = error;
}

static void keep_limits(struct pass *pass)
{
	struct writer *w = pass->writer;
	struct retention_clock clock;
	int r;

	retention_read_clock(&clock);
	r = retention_apply(pass->dir_fd, pass->same_dir ? pass->lock_fd : -1, &w->limits, &clock);
	if (r < 0 && r != w->logged_limits_error)
		log_warning("cannot remove old records from %s: %s; it is tried again", w->dir,
			strerror(-r));
	else if (r > 0)
		log_info("removed %d old records from %s", r, w->dir);
	w->logged_limits_error = r < 0 ? r : 0;
}

/* The last pass was milliseconds ago, and found the same. */
static bool finds_nothing_new(const struct pass *pass)
{
	const struct writer *w = pass->writer;

	return pass->held && w->pause_ns > 0 && w->pause_ns < w->retry_ns;
}

static bool is_same_dir(int a_fd, int b_fd)
{
	struct stat a, b;

	return fstat(a_fd, &a) == 0 && fstat(b_fd, &b) == 0 && a.st_dev == b.st_dev &&
		a.st_ino == b.st_ino;
}

/* A descriptor, or the negative errno by which no record could be made there. */
static int open_dir(const struct writer *w)
{
	_cleanup_close_ int fd = dir_open_or_make(w->dir, DIR_DURABLE, w->group);

	if (fd < 0)
		return fd;
	return faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) < 0 ? -errno : TAKE_FD(fd);
}

/* 0, or the negative errno that keeps records in the spool or unsaved. */
static int visit_dirs(struct pass *pass, bool only_save)
{
	int saved, r = 0;

	if (!only_save)
		note_error(pass, for_each_name(pass->spool_fd, pass, visit_spool_name));
	saved = save_live(pass);
	/* After the spool, so that a record that was moved needs no part any more. */
	if (!only_save && pass->dir_fd >= 0 && !pass->same_dir)
		r = for_each_name(pass->dir_fd, pass, visit_durable_name);
	if (r < 0)
		pass->part_error = r;
	if (!only_save && pass->dir_fd >= 0 && !finds_nothing_new(pass))
		keep_limits(pass);
	if (pass->error < 0)
		return pass->error;
	return pass->dir_fd < 0 ? pass->dir_fd : saved;
}

static int writer_pass(struct writer *w, bool only_save, struct pass *ret_pass)
{
	_cleanup_close_ int spool_fd = open(w->spool_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int lock_fd = spool_fd < 0 ? -errno : lock_open(spool_fd);
	_cleanup_close_ int dir_fd = open_dir(w);
	struct pass pass = {
		.writer = w,
		.spool_fd = spool_fd,
		.lock_fd = lock_fd,
		.dir_fd = dir_fd,
	};
	int r;

	__atomic_store_n(&w->dir_works, dir_fd >= 0, __ATOMIC_RELEASE);
	if (lock_fd < 0) {
		pass.error = r = lock_fd;
	} else {
		pass.same_dir = dir_fd >= 0 && is_same_dir(spool_fd, dir_fd);
		r = visit_dirs(&pass, only_save);
	}
	*ret_pass = pass;
	return r;
}

static int until_ms(uint64_t then_ns)
{
	uint64_t now_ns = clock_mono_ns();

	if (then_ns == UINT64_MAX)
		return -1;
	return then_ns > now_ns ? (int)((then_ns - now_ns) / NSEC_PER_MSEC) + 1 : 0;
}

static void wait_for_work(const struct writer *w, uint64_t next_ns)
{
	struct pollfd pfd = { .fd = w->wake_fd, .events = POLLIN };
	uint64_t until_ns = next_ns;
	eventfd_t ignored;

	if (__atomic_load_n(&w->live, __ATOMIC_ACQUIRE))
		until_ns = clock_mono_ns() + w->save_ns;
	poll(&pfd, 1, until_ms(until_ns < next_ns ? until_ns : next_ns));
	eventfd_read(w->wake_fd, &ignored);
}

/*
 * When to look again. The preallocator lets go of a record at once, unless its thread hangs.
 */
static uint64_t next_pass_ns(struct writer *w, const struct pass *pass, int error)
{
	const uint64_t now_ns = clock_mono_ns();

	w->pause_ns = pass->held ? 2 * w->pause_ns + HELD_PAUSE_NS : 0;
	if (pass->held && w->pause_ns < w->retry_ns)
		return now_ns + w->pause_ns;
	if (error < 0 || pass->part_error < 0 || pass->busy)
		return now_ns + w->retry_ns;
	return w->limits.max_age_ns ? now_ns + w->age_check_ns : UINT64_MAX;
}

static void full_pass(struct writer *w, uint64_t *ret_next_ns)
{
	uint64_t wanted = __atomic_load_n(&w->passes_wanted, __ATOMIC_ACQUIRE);
	struct pass pass = { .error = 0 };
	int r = writer_pass(w, false, &pass);

	log_outcome(w, r);
	log_part_outcome(w, pass.part_error);
	__atomic_store_n(&w->left_over, pass.error < 0 || pass.held, __ATOMIC_RELEASE);
	__atomic_store_n(&w->passes_done, wanted, __ATOMIC_RELEASE);
	*ret_next_ns = next_pass_ns(w, &pass, r);
}

static void *writer_run(void *arg)
{
	struct writer *w = arg;
	uint64_t next_ns = 0;
	struct pass ignored;

	while (!is_stopping(w)) {
		if (clock_mono_ns() >= next_ns ||
			__atomic_load_n(&w->passes_wanted, __ATOMIC_ACQUIRE) != w->passes_done) {
			full_pass(w, &next_ns);
		} else {
			int r = writer_pass(w, true, &ignored);

			if (r < 0)
				log_outcome(w, r);
		}
		if (!is_stopping(w))
			wait_for_work(w, next_ns);
	}
	/* These are open in the table of this thread. */
	close_fd(w->saved.fd);
	close(w->wake_fd);
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
	w->saved.fd = -1;
	text_copy(w->spool_dir, sizeof(w->spool_dir), options->spool_dir);
	text_copy(w->dir, sizeof(w->dir), options->dir);
	w->limits = options->limits;
	w->group = options->group;
	w->retry_ns = options->retry_ns;
	w->save_ns = options->save_ns;
	w->age_check_ns = options->age_check_ns;
	r = thread_start_detached(writer_run, w, THREAD_STACK_BYTES, &w->wake_fd, 1);
	if (r < 0) {
		close(w->wake_fd);
		free(w);
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
	wake(writer);
	close(writer->wake_fd);
	writer_unref(writer);
	return NULL;
}
