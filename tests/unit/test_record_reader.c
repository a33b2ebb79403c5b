/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Record files as they are found: whole, cut off, being written, damaged; `list` and `show`. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/list.h"
#include "cli/show.h"
#include "record/reader.h"
#include "record/store.h"
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

static void path_of(const struct fixture *f, const char *name, char ret_path[static PATH_MAX])
{
	snprintf(ret_path, PATH_MAX, "%s/%s", f->root, name);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const char *tmp = getenv("TMPDIR");

	snprintf(f->root, sizeof(f->root), "%.30s/iostall-reader-XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(f->root));
	path_of(f, "spool", f->config.record.spool_dir);
	path_of(f, "log", f->config.record.dir);
	assert_int_equal(mkdir(f->config.record.spool_dir, 0700), 0);
	assert_int_equal(mkdir(f->config.record.dir, 0700), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", f->root);
	assert_int_equal(system(command), 0);
	free(f);
	return 0;
}

static size_t read_file(const char *path, char *buf, size_t size)
{
	ssize_t n = file_read_at(AT_FDCWD, path, buf, size);

	assert_true(n >= 0);
	return (size_t)n;
}

static void write_file(const char *path, const char *bytes, size_t len)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, bytes, len), 0);
}

/* Puts a fixture, with its incident renamed to id, into a directory. */
static void place(const char *fixture, const char *dir, const char *id)
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
	assert_string_equal(s.verdict, "saturated");
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

	(void)state;
	assert_true(record_fd_is_ours(fd, DATA_ID ".jsonl"));
	assert_false(record_fd_is_ours(fd, OTHER_ID ".jsonl"));
	assert_false(record_fd_is_ours(fd, DATA_ID));
	assert_false(record_fd_is_ours(garbage, DATA_ID ".jsonl"));
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
				 &failed), 0);
	assert_int_equal(record_store_count(store), 2);
	assert_string_equal(record_store_id(store, 0), DATA_ID);
	assert_int_equal(record_store_find(store, "last", &id), 0);
	assert_string_equal(id, OTHER_ID);
	assert_int_equal(record_store_find(store, "2026112", &id), -ENOTUNIQ);
	assert_int_equal(record_store_find(store, "20261120", &id), 0);
	assert_string_equal(id, DATA_ID);
	assert_int_equal(record_store_find(store, "2027", &id), -ENOENT);
	assert_int_equal(record_store_find(store, "", &id), -ENOENT);
	fd = record_store_open(store, DATA_ID, path);
	assert_true(fd >= 0);
	close(fd);
	assert_non_null(strstr(path, "/log/" DATA_ID ".jsonl"));
	record_store_free(store);
}

static int run_list(const struct fixture *f, bool json, char *buf, size_t size)
{
	FILE *out = fmemopen(buf, size, "w");
	int code = list_records(out, &f->config, json);

	fclose(out);
	return code;
}

static void test_list(void **state)
{
	const struct fixture *f = *state;
	char buf[8192];

	assert_int_equal(run_list(f, true, buf, sizeof(buf)), EXIT_CODE_OK);
	place("closed.jsonl", f->config.record.dir, DATA_ID);
	place("cut-off.jsonl", f->config.record.spool_dir, OTHER_ID);
	assert_int_equal(run_list(f, false, buf, sizeof(buf)), EXIT_CODE_OK);
	assert_string_equal(buf,
		"INCIDENT               OPENED                 DURATION  RULE            WHERE       "
		"VERDICT      STALLS   STUCK    LONGEST    LOST  STATE\n"
		"20261120T031207Z-3f9c  2026-11-20 03:12:07Z    23.40 s  utilisation     sdb         "
		"saturated        12       3     4.20 s       2  closed\n"
		"20261121T000000Z-0001  2026-11-20 03:12:07Z    12.34 s  utilisation     sdb         "
		"-                 1    some     512 ms       0  cut off\n");
	assert_int_equal(run_list(f, true, buf, sizeof(buf)), EXIT_CODE_OK);
	assert_non_null(strstr(buf, "{\"incident\":\"20261120T031207Z-3f9c\","
				    "\"opened\":\"2026-11-20T03:12:07.123456Z\","
				    "\"state\":\"closed\",\"host\":\"db1\","
				    "\"rule\":\"utilisation\",\"device\":\"sdb\",\"subject\":null,"
				    "\"pid\":null,"));
}

/* How long it was is not known, and it was not 0 us. */
static void test_list_of_an_open_line_alone(void **state)
{
	const struct fixture *f = *state;
	char buf[8192], command[PATH_MAX + 128];

	snprintf(command, sizeof(command), "head -n 1 " FIXTURES "cut-off.jsonl >'%s/" DATA_ID ".jsonl'",
		f->config.record.spool_dir);
	assert_int_equal(system(command), 0);
	assert_int_equal(run_list(f, false, buf, sizeof(buf)), EXIT_CODE_OK);
	assert_non_null(strstr(buf, DATA_ID "  2026-11-20 03:12:07Z          ?  utilisation "));
	assert_int_equal(run_list(f, true, buf, sizeof(buf)), EXIT_CODE_OK);
	assert_non_null(strstr(buf, ",\"duration_ns\":null,"));
}

static void test_list_goes_on_after_a_broken_file(void **state)
{
	const struct fixture *f = *state;
	char buf[8192], path[PATH_MAX];

	place("no-open.jsonl", f->config.record.dir, DATA_ID);
	path_of(f, "log/20261120T031208Z-0000.jsonl", path);
	assert_int_equal(mkdir(path, 0700), 0);
	path_of(f, "log/20261120T031209Z-0000.jsonl", path);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	path_of(f, "log/20261120T031210Z-0000.jsonl", path);
	assert_int_equal(mkfifo(path, 0600), 0);
	place("closed.jsonl", f->config.record.dir, OTHER_ID);
	assert_int_equal(run_list(f, true, buf, sizeof(buf)), EXIT_CODE_RECORD);
	assert_non_null(strstr(buf, OTHER_ID));
	assert_null(strstr(buf, DATA_ID));
	assert_ptr_equal(strchr(buf, '\n'), buf + strlen(buf) - 1);
}

static int run_show(const struct fixture *f, const char *name, bool json, char *buf, size_t size)
{
	FILE *out = fmemopen(buf, size, "w");
	int code = show_record(out, &f->config, name, json);

	fclose(out);
	return code;
}

static void test_show(void **state)
{
	const struct fixture *f = *state;
	char buf[8192], stored[8192];

	place("closed.jsonl", f->config.record.dir, DATA_ID);
	place("cut-off.jsonl", f->config.record.spool_dir, OTHER_ID);
	assert_int_equal(run_show(f, "20261120", false, buf, sizeof(buf)), EXIT_CODE_OK);
	assert_memory_equal(buf, "incident " DATA_ID "\n  opened", 39);
	/* What it came to is said first, and with its parts at the end. */
	assert_non_null(strstr(buf, "\n  verdict   device sdb saturated (util 100 %): 92 % of "));
	assert_true(strstr(buf, "\n  verdict   ") < strstr(buf, "  sample  "));
	assert_non_null(strstr(buf, "\nverdict saturated, measured\n  device sdb saturated"));
	assert_non_null(strstr(buf, "\n  culprit   92 % of 204.1 MiB  measured\nincident "));
	assert_non_null(strstr(buf, "\n   -3.000s  sample  "));
	assert_non_null(strstr(buf, "\n  +12.345s  STUCK    >=512 ms  mariadbd[2211/2230] read"));
	assert_int_equal(run_show(f, DATA_ID, true, buf, sizeof(buf)), EXIT_CODE_OK);
	read_file(FIXTURES "closed.jsonl", stored, sizeof(stored));
	assert_string_equal(buf, stored);
	assert_int_equal(run_show(f, "last", false, buf, sizeof(buf)), EXIT_CODE_OK);
	assert_non_null(strstr(buf, "not closed: whoever wrote it was killed\n"));
	assert_int_equal(run_show(f, FIXTURES "newer.jsonl", false, buf, sizeof(buf)),
		EXIT_CODE_OK);
	assert_int_equal(run_show(f, FIXTURES "newer.jsonl", true, buf, sizeof(buf)), EXIT_CODE_OK);
	assert_non_null(strstr(buf, "\"of_tomorrow\""));
}

static void test_show_says_what_is_wrong(void **state)
{
	const struct fixture *f = *state;
	char buf[8192];

	place("closed.jsonl", f->config.record.dir, DATA_ID);
	place("closed.jsonl", f->config.record.dir, OTHER_ID);
	assert_int_equal(run_show(f, "2026112", false, buf, sizeof(buf)), EXIT_CODE_RECORD);
	assert_int_equal(run_show(f, "2031", false, buf, sizeof(buf)), EXIT_CODE_RECORD);
	assert_int_equal(run_show(f, "/nonexistent", false, buf, sizeof(buf)), EXIT_CODE_RECORD);
	assert_int_equal(run_show(f, "/etc/passwd", false, buf, sizeof(buf)), EXIT_CODE_RECORD);
	assert_int_equal(run_show(f, FIXTURES "garbage.jsonl", false, buf, sizeof(buf)),
		EXIT_CODE_RECORD);
	assert_non_null(strstr(buf, "  closed    after"));
}

static void test_a_full_output_is_a_failure(void **state)
{
	const struct fixture *f = *state;
	FILE *out = fopen("/dev/full", "we");

	place("closed.jsonl", f->config.record.dir, DATA_ID);
	assert_int_equal(show_record(out, &f->config, "last", true), EXIT_CODE_FAILURE);
	fclose(out);
	out = fopen("/dev/full", "we");
	assert_int_equal(list_records(out, &f->config, true), EXIT_CODE_FAILURE);
	fclose(out);
}

#define WITH_DIRS(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

/* With the defaults it might say that there are no incidents. */
static void test_without_the_configuration(void **state)
{
	char path[] = "/nonexistent/x.jsonl", last[] = "last", none[] = "";
	char *args[] = { last };
	const struct options o = { .source.file = "/nonexistent/x.conf", .args = args, .args_count = 1 };

	(void)state;
	assert_int_equal(command_list.run(&o), EXIT_CODE_CONFIG);
	assert_int_equal(command_show.run(&o), EXIT_CODE_CONFIG);
	args[0] = path;
	assert_int_equal(command_show.run(&o), EXIT_CODE_RECORD);
	args[0] = none;
	assert_int_equal(command_show.run(&o), EXIT_CODE_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_closed_record),
		cmocka_unit_test(test_a_torn_last_line_is_no_garbage),
		cmocka_unit_test(test_padding_is_nothing),
		cmocka_unit_test(test_garbage_is_counted_and_passed_over),
		cmocka_unit_test(test_lines_of_a_later_version_are_passed_over),
		cmocka_unit_test(test_without_the_configuration),
		cmocka_unit_test(test_without_an_open_line_it_is_no_record),
		WITH_DIRS(test_cut_at_any_byte),
		WITH_DIRS(test_a_line_without_end_is_one_piece_of_garbage),
		WITH_DIRS(test_somebody_writes_it),
		cmocka_unit_test(test_ours_is_told_by_the_first_line),
		WITH_DIRS(test_the_store_finds_incidents),
		WITH_DIRS(test_list),
		WITH_DIRS(test_list_of_an_open_line_alone),
		WITH_DIRS(test_list_goes_on_after_a_broken_file),
		WITH_DIRS(test_show),
		WITH_DIRS(test_show_says_what_is_wrong),
		WITH_DIRS(test_a_full_output_is_a_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
