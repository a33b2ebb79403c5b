/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Directories of our own with record files, and a configuration that names them.
 * Used by the tests that read records as users do.
 * Never touches the records of the host.
 */
#ifndef IOSTALL_TESTS_TEST_RECORD_FILES_H
#define IOSTALL_TESTS_TEST_RECORD_FILES_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "config/config.h"
#include "test_record_data.h"
#include "util/cleanup.h"
#include "util/file.h"

#define FIXTURES "tests/fixtures/records/"
#define OTHER_ID "20261121T000000Z-0001"

/* Two directories of our own and a configuration that names them. */
struct fixture {
	char root[64];
	struct config config;
};

static inline void path_of(const struct fixture *f, const char *name,
	char ret_path[static PATH_MAX])
{
	snprintf(ret_path, PATH_MAX, "%s/%s", f->root, name);
}

static inline int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const char *tmp = getenv("TMPDIR");

	setenv("TZ", "CET-1", 1);
	tzset();
	snprintf(f->root, sizeof(f->root), "%.30s/iostall-reader-XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(f->root));
	path_of(f, "spool", f->config.record.spool_dir);
	path_of(f, "log", f->config.record.dir);
	assert_int_equal(mkdir(f->config.record.spool_dir, 0700), 0);
	assert_int_equal(mkdir(f->config.record.dir, 0700), 0);
	*state = f;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", f->root);
	assert_int_equal(system(command), 0);
	free(f);
	return 0;
}

static inline size_t read_file(const char *path, char *buf, size_t size)
{
	ssize_t n = file_read_at(AT_FDCWD, path, buf, size);

	assert_true(n >= 0);
	return (size_t)n;
}

static inline void write_file(const char *path, const char *bytes, size_t len)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, bytes, len), 0);
}

/* Puts a fixture, with its incident renamed to id, into a directory. */
static inline void place(const char *fixture, const char *dir, const char *id)
{
	char from[PATH_MAX], to[PATH_MAX + 64], buf[16384];
	size_t len;

	snprintf(from, sizeof(from), FIXTURES "%s", fixture);
	snprintf(to, sizeof(to), "%s/%s.jsonl", dir, id);
	len = read_file(from, buf, sizeof(buf));
	for (char *at = buf; (at = strstr(at, DATA_ID)); at += strlen(id))
		memcpy(at, id, strlen(id));
	write_file(to, buf, len);
}

#define WITH_DIRS(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

#endif
