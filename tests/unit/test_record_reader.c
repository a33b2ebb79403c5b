/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Record files as they are found: whole, cut off, being written, damaged. */
#include "test_record_files.h"

#include <dirent.h>
#include <errno.h>
#include <sys/file.h>

#include "record/reader.h"
#include "record/store.h"

static int read_summary(const char *path, struct record_summary *ret_summary)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return record_read_summary(fd, ret_summary);
}

static void test_a_closed_record(void **state)
{
	struct record_summary s;

	(void)state;
	assert_int_equal(read_summary(FIXTURES "closed.jsonl", &s), 0);
	assert_string_equal(s.incident, DATA_ID);
	assert_string_equal(s.trigger.rule, "utilisation");
	assert_true(s.closed);
	assert_false(s.being_written);
	assert_int_equal(s.stalls, 12);
	assert_int_equal(s.stuck_threads, 3);
	assert_int_equal(s.lost, 2);
	assert_true(s.duration_ns == 23400 * NSEC_PER_MSEC);
	assert_int_equal(s.counts.records, 6);
	assert_int_equal(s.class, RECORD_CLASS_saturated);
	assert_int_equal(s.counts.garbage, 0);
	assert_false(s.counts.torn);
}

static void test_a_torn_last_line_is_no_garbage(void **state)
{
	struct record_summary s;

	(void)state;
	assert_int_equal(read_summary(FIXTURES "cut-off.jsonl", &s), 0);
	assert_false(s.closed);
	assert_int_equal(s.stalls, 1);
	assert_int_equal(s.stuck_lines, 1);
	assert_true(s.longest_ns == 512 * NSEC_PER_MSEC);
	assert_true(s.duration_ns == 12345 * NSEC_PER_MSEC);
	assert_int_equal(s.counts.garbage, 0);
	assert_true(s.counts.torn);
}

static void test_padding_is_nothing(void **state)
{
	struct record_summary s;

	(void)state;
	assert_int_equal(read_summary(FIXTURES "padded.jsonl", &s), 0);
	assert_int_equal(s.counts.records, 3);
	assert_int_equal(s.counts.garbage, 0);
	assert_true(s.counts.torn);
}

static void test_garbage_is_counted_and_passed_over(void **state)
{
	struct record_summary s;

	(void)state;
	assert_int_equal(read_summary(FIXTURES "garbage.jsonl", &s), 0);
	assert_int_equal(s.counts.records, 4);
	assert_int_equal(s.counts.garbage, 3);
	assert_false(s.counts.torn);
	assert_true(s.closed);
}

static void test_lines_of_a_later_version_are_passed_over(void **state)
{
	struct record_summary s;

	(void)state;
	assert_int_equal(read_summary(FIXTURES "newer.jsonl", &s), 0);
	assert_int_equal(s.counts.newer, 2);
	assert_int_equal(s.counts.garbage, 0);
	assert_true(s.closed);
}

static void test_without_an_open_line_it_is_no_record(void **state)
{
	struct record_summary s;

	(void)state;
	assert_int_equal(read_summary(FIXTURES "no-open.jsonl", &s), -ENODATA);
	assert_int_equal(read_summary("/dev/null", &s), -ENODATA);
	assert_int_equal(read_summary("/", &s), -EISDIR);
}

static void test_cut_at_any_byte(void **state)
{
	const struct fixture *f = *state;
	char path[PATH_MAX], buf[8192];
	size_t len = read_file(FIXTURES "closed.jsonl", buf, sizeof(buf));

	path_of(f, "cut", path);
	for (size_t n = 0; n <= len; n++) {
		_cleanup_close_ int fd = -1;
		struct record_summary s;
		off_t end = 0, whole = 0;
		uint64_t lines = 0;

		/* A last line whose newline alone is missing is whole. */
		for (size_t i = 0; i < n; i++)
			if (buf[i] == '\n' || (i + 1 == n && n < len && buf[n] == '\n')) {
				whole = (off_t)i + 1;
				lines++;
			}
		write_file(path, buf, n);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		assert_int_equal(record_read_summary(fd, &s), lines ? 0 : -ENODATA);
		assert_int_equal(record_find_end(fd, &end), lines ? 0 : -ENODATA);
		assert_int_equal(end, whole);
		if (lines)
			assert_int_equal(s.counts.records, lines);
		if (lines)
			assert_int_equal(s.counts.torn, (size_t)whole != n);
	}
}

static void test_a_line_without_end_is_one_piece_of_garbage(void **state)
{
	const struct fixture *f = *state;
	const size_t long_len = 5 * RECORD_LINE_SIZE + 17;
	_cleanup_free_ char *buf = malloc(long_len + 8192);
	struct record_summary s;
	char path[PATH_MAX];
	size_t head = read_file(FIXTURES "closed.jsonl", buf, 8192), tail;

	path_of(f, "long", path);
	memset(buf + head, 'x', long_len);
	buf[head + long_len] = '\n';
	tail = read_file(FIXTURES "no-open.jsonl", buf + head + long_len + 1, 8000);
	write_file(path, buf, head + long_len + 1 + tail);
	assert_int_equal(read_summary(path, &s), 0);
	assert_int_equal(s.counts.records, 10);
	assert_int_equal(s.counts.garbage, 1);
	assert_false(s.counts.torn);
}

static void test_somebody_writes_it(void **state)
{
	const struct fixture *f = *state;
	struct record_summary s;
	char path[PATH_MAX];
	_cleanup_close_ int fd = -1;

	place("padded.jsonl", f->config.record.spool_dir, DATA_ID);
	path_of(f, "spool/" DATA_ID ".jsonl", path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(read_summary(path, &s), 0);
	assert_true(s.being_written);
}

static void test_ours_is_told_by_the_first_line(void **state)
{
	_cleanup_close_ int fd = open(FIXTURES "closed.jsonl", O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int garbage = open(FIXTURES "no-open.jsonl", O_RDONLY | O_CLOEXEC);
	char incident[RECORD_ID_SIZE];

	(void)state;
	assert_int_equal(record_fd_check(fd, DATA_ID ".jsonl"), 0);
	assert_int_equal(record_fd_check(fd, OTHER_ID ".jsonl"), -ENODATA);
	assert_int_equal(record_fd_check(fd, DATA_ID), -ENODATA);
	assert_int_equal(record_fd_check(garbage, DATA_ID ".jsonl"), -ENODATA);
	/* Not known: it cannot be read. */
	assert_int_equal(record_fd_check(-1, DATA_ID ".jsonl"), -EBADF);
	assert_int_equal(record_fd_incident(fd, incident), 0);
	assert_string_equal(incident, DATA_ID);
	assert_int_equal(record_fd_incident(garbage, incident), -ENODATA);
}

static void test_the_store_finds_incidents(void **state)
{
	const struct fixture *f = *state;
	struct record_store *store;
	const char *failed, *id;
	char path[RECORD_PATH_SIZE];
	int fd;

	place("closed.jsonl", f->config.record.dir, OTHER_ID);
	place("closed.jsonl", f->config.record.dir, DATA_ID);
	place("closed.jsonl", f->config.record.spool_dir, DATA_ID);
	place("closed.jsonl", f->config.record.dir, "not-an-incident");
	assert_int_equal(record_store_new(f->config.record.spool_dir, f->config.record.dir, &store,
				 &failed),
		0);
	assert_int_equal(record_store_count(store), 2);
	assert_string_equal(record_store_id(store, 0), DATA_ID);
	assert_int_equal(record_store_find(store, "last", &id), 0);
	assert_string_equal(id, OTHER_ID);
	assert_int_equal(record_store_find(store, "last-0", &id), 0);
	assert_string_equal(id, OTHER_ID);
	assert_int_equal(record_store_find(store, "last-1", &id), 0);
	assert_string_equal(id, DATA_ID);
	assert_int_equal(record_store_find(store, "last-2", &id), -ENOENT);
	assert_int_equal(record_store_find(store, "last-", &id), -ENOENT);
	assert_int_equal(record_store_find(store, "3f9c", &id), 0);
	assert_string_equal(id, DATA_ID);
	assert_int_equal(record_store_find(store, "Z-", &id), -ENOTUNIQ);
	assert_int_equal(record_store_match(store, "Z-", &id, 1), 2);
	assert_string_equal(id, OTHER_ID);
	assert_int_equal(record_store_find(store, "2026112", &id), -ENOTUNIQ);
	assert_int_equal(record_store_find(store, "20261120", &id), 0);
	assert_string_equal(id, DATA_ID);
	assert_int_equal(record_store_find(store, "2027", &id), -ENOENT);
	assert_int_equal(record_store_find(store, "", &id), -ENOENT);
	fd = record_store_open(store, DATA_ID, path);
	assert_true(fd >= 0);
	close(fd);
	assert_non_null(strstr(path, "/spool/" DATA_ID ".jsonl"));
	fd = record_store_open(store, OTHER_ID, path);
	assert_true(fd >= 0);
	close(fd);
	assert_non_null(strstr(path, "/log/" OTHER_ID ".jsonl"));
	assert_null(record_store_silent_dir(store));
	record_store_free(store);
}

static const char *hung_dir;

/* In place of that of the C library: a directory on a disk that hangs. */
DIR *opendir(const char *path)
{
	int fd;

	while (hung_dir && strcmp(path, hung_dir) == 0)
		pause();
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? NULL : fdopendir(fd);
}

static void test_the_store_on_a_disk_that_hangs(void **state)
{
	const struct fixture *f = *state;
	struct record_store *store;
	const char *failed, *id;
	char path[RECORD_PATH_SIZE];
	int fd;

	place("closed.jsonl", f->config.record.dir, OTHER_ID);
	place("closed.jsonl", f->config.record.spool_dir, DATA_ID);
	hung_dir = f->config.record.dir;
	assert_int_equal(record_store_new(f->config.record.spool_dir, f->config.record.dir, &store,
				 &failed),
		0);
	hung_dir = NULL;
	assert_string_equal(record_store_silent_dir(store), f->config.record.dir);
	assert_int_equal(record_store_count(store), 1);
	assert_int_equal(record_store_find(store, "last", &id), 0);
	fd = record_store_open(store, id, path);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(record_store_open(store, OTHER_ID, path), -ENOENT);
	record_store_free(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_closed_record),
		cmocka_unit_test(test_a_torn_last_line_is_no_garbage),
		cmocka_unit_test(test_padding_is_nothing),
		cmocka_unit_test(test_garbage_is_counted_and_passed_over),
		cmocka_unit_test(test_lines_of_a_later_version_are_passed_over),
		cmocka_unit_test(test_without_an_open_line_it_is_no_record),
		WITH_DIRS(test_cut_at_any_byte),
		WITH_DIRS(test_a_line_without_end_is_one_piece_of_garbage),
		WITH_DIRS(test_somebody_writes_it),
		cmocka_unit_test(test_ours_is_told_by_the_first_line),
		WITH_DIRS(test_the_store_finds_incidents),
		WITH_DIRS(test_the_store_on_a_disk_that_hangs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
