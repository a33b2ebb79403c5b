/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Directories and a configuration for tests of the sinks, and functions that wait for their
 * threads. Included by the tests of the sinks. Never touches anything outside of its own directory.
 */
#ifndef TEST_SINKS_DIRS_H
#define TEST_SINKS_DIRS_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "record/reader.h"
#include "sinks/lock.h"
#include "sinks/sink.h"
#include "sinks/writer.h"
#include "test_record_data.h"
#include "util/cleanup.h"
#include "util/file.h"

/* Generous, for a busy machine; a test that passes never waits so long. */
#define DIRS_PATIENCE_NS (300 * NSEC_PER_SEC)

/* The first incident and its file. */
#define FIRST_ID "20261120T031207Z-0000"
#define FIRST FIRST_ID ".jsonl"

struct dirs {
	char root[64]; /* on a tmpfs */
	struct config config;
};

static inline int dirs_setup(void **state)
{
	struct dirs *d = calloc(1, sizeof(*d));

	text_copy(d->root, sizeof(d->root), "/dev/shm/iostall-sinks-XXXXXX");
	if (!mkdtemp(d->root))
		return -1;
	snprintf(d->config.record.spool_dir, PATH_MAX, "%s/spool", d->root);
	snprintf(d->config.record.dir, PATH_MAX, "%s/log", d->root);
	d->config.record.spool_bytes = 256 * 1024;
	*state = d;
	return mkdir(d->config.record.dir, 0700);
}

static inline int dirs_teardown(void **state)
{
	struct dirs *d = *state;
	char command[128];
	int r;

	snprintf(command, sizeof(command), "rm -rf '%s'", d->root);
	r = system(command);
	free(d);
	return r;
}

#define WITH_DIRS(test) cmocka_unit_test_setup_teardown(test, dirs_setup, dirs_teardown)

static inline struct sinks *dirs_start(const struct dirs *d, unsigned int wanted, int fd, bool json)
{
	const struct sinks_options options = { .config = &d->config,
		.wanted = wanted,
		.terminal_fd = fd,
		.terminal_json = json };
	struct sinks *sinks;

	assert_int_equal(sinks_new(&options, &sinks), 0);
	return sinks;
}

static inline void dirs_flush(struct sinks *sinks)
{
	assert_true(sinks_flush(sinks, DIRS_PATIENCE_NS));
}

static inline void dirs_pause(void)
{
	const struct timespec pause = { .tv_nsec = 2000000 };

	nanosleep(&pause, NULL);
}

/* How many names in a directory contain `part` (all for "", without the file of the locks). */
static inline unsigned int dirs_count(const char *path, const char *part)
{
	_cleanup_closedir_ DIR *dir = opendir(path);
	const struct dirent *entry;
	unsigned int count = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
			strcmp(entry->d_name, LOCK_NAME) != 0 && strstr(entry->d_name, part))
			count++;
	return count;
}

/* Waits until so many names contain `part`. */
static inline void dirs_wait_count(const char *path, const char *part, unsigned int count)
{
	uint64_t begin_ns = clock_mono_ns();

	while (dirs_count(path, part) != count) {
		if (clock_mono_ns() - begin_ns > DIRS_PATIENCE_NS)
			fail_msg("%u names with \"%s\" in %s instead of %u", dirs_count(path, part),
				part, path, count);
		dirs_pause();
	}
}

/*
 * Until no thread of freed sinks is left: a child has only the thread that forks, and what another
 * one held, such as the sanitizer's heap, stays locked in it for ever.
 */
static inline void dirs_wait_threads(void)
{
	dirs_wait_count("/proc/self/task", "", 1);
}

static inline size_t dirs_read(const char *dir, const char *name, char *buf, size_t size)
{
	char path[2 * PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	n = file_read_at(AT_FDCWD, path, buf, size);
	if (n < 0)
		fail_msg("cannot read %s: %s", path, strerror((int)-n));
	return (size_t)n;
}

static inline void dirs_write(const char *dir, const char *name, const char *bytes, size_t len)
{
	char path[2 * PATH_MAX];
	_cleanup_close_ int fd = -1;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, bytes, len), 0);
}

static inline struct record_summary dirs_summary(const char *dir, const char *id)
{
	char path[2 * PATH_MAX];
	struct record_summary s = { 0 };
	_cleanup_close_ int fd = -1;
	int r;

	snprintf(path, sizeof(path), "%s/%s.jsonl", dir, id);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fail_msg("no %s", path);
	r = record_read_summary(fd, &s);
	if (r < 0)
		fail_msg("%s: %s", path, strerror(-r));
	return s;
}

/* A record of a numbered incident. */
static inline void dirs_record(struct record *r, enum record_type type, unsigned int incident)
{
	data_any(r, type);
	record_make_id(DATA_REAL_NS + incident * NSEC_PER_SEC, incident, r->incident);
}

static inline void dirs_write_record(struct sinks *sinks, enum record_type type,
	unsigned int incident)
{
	_cleanup_free_ struct record *r = malloc(sizeof(*r));

	dirs_record(r, type, incident);
	sinks_write(sinks, r);
}

/* Writes `close` as the session does, with the losses of this incident. */
static inline struct record_close dirs_close(struct sinks *sinks, unsigned int incident)
{
	_cleanup_free_ struct record *r = malloc(sizeof(*r));

	dirs_record(r, RECORD_CLOSE, incident);
	sinks_dropped(sinks, r->close.lost);
	sinks_write(sinks, r);
	return r->close;
}

/* Opens an incident and waits until it has its file; false when it gets none. */
static inline bool dirs_open(const struct dirs *d, struct sinks *sinks, unsigned int incident,
	uint64_t patience_ns)
{
	uint64_t begin_ns = clock_mono_ns();
	char id[RECORD_ID_SIZE];

	record_make_id(DATA_REAL_NS + incident * NSEC_PER_SEC, incident, id);
	dirs_write_record(sinks, RECORD_OPEN, incident);
	while (dirs_count(d->config.record.spool_dir, id) == 0) {
		if (clock_mono_ns() - begin_ns > patience_ns)
			return false;
		dirs_pause();
		sinks_tick(sinks, clock_mono_ns());
	}
	return true;
}

static inline uint64_t dirs_write_incident(const struct dirs *d, struct sinks *sinks,
	unsigned int incident, unsigned int stalls)
{
	struct record_close c;

	assert_true(dirs_open(d, sinks, incident, DIRS_PATIENCE_NS));
	for (unsigned int i = 0; i < stalls; i++)
		dirs_write_record(sinks, RECORD_STALL, incident);
	c = dirs_close(sinks, incident);
	return c.lost[RECORD_LOST_spool_dropped];
}

/* Writes an incident with so many stalls and takes its record away. Returns its length. */
static inline size_t dirs_take_record(const struct dirs *d, unsigned int stalls, char *bytes,
	size_t size)
{
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	char path[2 * PATH_MAX];
	size_t len;

	dirs_write_incident(d, sinks, 0, stalls);
	dirs_flush(sinks);
	sinks_free(sinks);
	len = dirs_read(d->config.record.dir, FIRST, bytes, size);
	snprintf(path, sizeof(path), "%s/" FIRST, d->config.record.dir);
	assert_int_equal(unlink(path), 0);
	return len;
}

/* A writer without the rest of the spool, which saves and tries again soon. */
static inline struct writer *dirs_writer(const struct dirs *d)
{
	const struct writer_options options = { .spool_dir = d->config.record.spool_dir,
		.dir = d->config.record.dir,
		.group = FILE_NO_GROUP,
		.retry_ns = 10 * NSEC_PER_MSEC,
		.save_ns = 10 * NSEC_PER_MSEC,
		.age_check_ns = WRITER_AGE_CHECK_NS };
	struct writer *writer;

	assert_int_equal(writer_new(&options, &writer), 0);
	return writer;
}

/* What this process has saved of the first incident, which is still open; false: nothing. */
static inline bool dirs_stat_part(const struct dirs *d, struct stat *ret_stat)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/." FIRST ".%d.part", d->config.record.dir, (int)getpid());
	if (stat(path, ret_stat) < 0)
		return false;
	/* What is not complete is for nobody but root. */
	assert_int_equal(ret_stat->st_mode & 07777, 0600);
	return true;
}

static inline void dirs_wait_part_bytes(const struct dirs *d, size_t bytes)
{
	uint64_t begin_ns = clock_mono_ns();
	struct stat st;

	while (!dirs_stat_part(d, &st) || (size_t)st.st_size != bytes) {
		if (clock_mono_ns() - begin_ns > DIRS_PATIENCE_NS)
			fail_msg("%zu bytes have not been saved", bytes);
		dirs_pause();
	}
}

/* Makes an empty file in the spool and holds its lock like the process that writes it. */
static inline int dirs_hold(const struct dirs *d, const char *name)
{
	_cleanup_close_ int dir_fd =
		open(d->config.record.spool_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int lock_fd = lock_open(dir_fd);
	struct stat st;

	assert_true(lock_fd >= 0);
	dirs_write(d->config.record.spool_dir, name, "", 0);
	assert_int_equal(fstatat(dir_fd, name, &st, 0), 0);
	assert_int_equal(lock_take(lock_fd, st.st_ino), 0);
	return lock_fd;
}

#endif
