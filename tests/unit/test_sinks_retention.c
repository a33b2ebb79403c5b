/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Retention: exact, only of what is ours, and also when nothing happens. */
#include "test_sinks_dirs.h"

#include <sys/file.h>

#include "sinks/files.h"
#include "sinks/retention.h"
#include "sinks/writer.h"

#define FIRST_ID "20261120T031207Z-0000"
#define FIRST FIRST_ID ".jsonl"

/* Makes a record of `bytes` in the durable directory. */
static void make_kept(const struct dirs *d, unsigned int second, size_t bytes)
{
	_cleanup_free_ char *buf = malloc(bytes);
	char id[RECORD_ID_SIZE], name[RECORD_FILE_SIZE];
	int n;

	record_make_id(DATA_REAL_NS + second * NSEC_PER_SEC, second, id);
	memset(buf, '\n', bytes);
	n = snprintf(buf, bytes, "{\"v\":1,\"type\":\"open\",\"incident\":\"%s\",", id);
	buf[n] = '\n';
	snprintf(name, sizeof(name), "%s.jsonl", id);
	dirs_write(d->config.record.dir, name, buf, bytes);
}

static int apply(const struct dirs *d, uint64_t bytes, uint64_t count, uint64_t age_ns)
{
	const struct retention_limits limits = { bytes, count, age_ns };
	_cleanup_close_ int fd = open(d->config.record.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return retention_apply(fd, &limits, DATA_REAL_NS + 100 * NSEC_PER_SEC);
}

static void test_retention_is_exact(void **state)
{
	const struct dirs *d = *state;

	for (unsigned int i = 0; i < 50; i++)
		make_kept(d, i, 1000 + i);
	assert_int_equal(apply(d, 0, 0, 0), 0);
	assert_int_equal(apply(d, 0, 50, 0), 0);
	assert_int_equal(apply(d, 0, 40, 0), 10);
	assert_int_equal(dirs_count(d->config.record.dir, "T031217Z"), 1);
	assert_int_equal(dirs_count(d->config.record.dir, "T031216Z"), 0);
	/* 40 files of 1010 to 1049 bytes. */
	assert_int_equal(apply(d, 41180, 0, 0), 0);
	assert_int_equal(apply(d, 41179, 0, 0), 1);
	assert_int_equal(apply(d, 41180 - 1010 - 1, 0, 0), 1);
	/* The oldest left is number 12, 88 s and the part of a second old. */
	assert_int_equal(apply(d, 0, 0, 89 * NSEC_PER_SEC), 0);
	assert_int_equal(apply(d, 0, 0, 80 * NSEC_PER_SEC), 9);
	assert_int_equal(apply(d, 1, 1, 1), 29);
	assert_int_equal(dirs_count(d->config.record.dir, ""), 0);
}

static void test_retention_takes_only_what_is_ours(void **state)
{
	const struct dirs *d = *state;
	char path[2 * PATH_MAX], target[2 * PATH_MAX];
	_cleanup_close_ int fd = -1;

	make_kept(d, 0, 1000);
	make_kept(d, 1, 1000);
	dirs_write(d->config.record.dir, "20200101T000000Z-0000.jsonl", "my own\n", 7);
	dirs_write(d->config.record.dir, "20200101T000000Z-0001.jsonl.gz", "x", 1);
	dirs_write(d->config.record.dir, "notes.jsonl", "x", 1);
	/* The line of one incident in the file of another. */
	dirs_read(d->config.record.dir, FIRST, path, sizeof(path));
	dirs_write(d->config.record.dir, "20200101T000000Z-0002.jsonl", path, 200);
	snprintf(target, sizeof(target), "%s/" FIRST, d->config.record.dir);
	snprintf(path, sizeof(path), "%s/20200101T000000Z-0003.jsonl", d->config.record.dir);
	assert_int_equal(symlink(target, path), 0);
	path[strlen(path) - 7] = '4';
	assert_int_equal(mkdir(path, 0700), 0);
	path[strlen(path) - 7] = '5';
	assert_int_equal(mkfifo(path, 0600), 0);
	/* And one that is being written. */
	fd = open(target, O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(apply(d, 1, 1, 1), 1);
	assert_int_equal(dirs_count(d->config.record.dir, ""), 8);
	assert_int_equal(dirs_count(d->config.record.dir, FIRST_ID), 1);
}

static void test_retention_runs_after_each_record(void **state)
{
	struct dirs *d = *state;
	struct sinks *sinks;

	d->config.record.max_count = 3;
	make_kept(d, 90, 1000);
	sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	for (unsigned int i = 100; i < 106; i++) {
		dirs_write_incident(d, sinks, i, 1);
		dirs_settle(sinks);
		assert_in_range(dirs_count(d->config.record.dir, ""), 2, 3);
	}
	assert_int_equal(dirs_count(d->config.record.dir, "Z-0069"), 1);
	sinks_free(sinks);
}

/* Nothing is ever recorded, so nothing but time wakes the writer. */
static void test_retention_by_age_holds_on_a_quiet_host(void **state)
{
	struct dirs *d = *state;
	const struct writer_options options = { .spool_dir = d->config.record.spool_dir,
		.dir = d->config.record.dir,
		.limits = { .max_age_ns = 1 },
		.group = FILES_NO_GROUP,
		.retry_ns = WRITER_RETRY_NS,
		.age_check_ns = 10 * NSEC_PER_MSEC };
	struct writer *writer;
	uint64_t begin_ns;

	assert_int_equal(mkdir(d->config.record.spool_dir, 0700), 0);
	assert_int_equal(writer_new(&options, &writer), 0);
	for (begin_ns = clock_mono_ns(); !writer_is_settled(writer); dirs_pause())
		assert_true(clock_mono_ns() - begin_ns < DIRS_PATIENCE_NS);
	/* More than once. */
	for (unsigned int i = 0; i < 3; i++) {
		char id[RECORD_ID_SIZE], name[RECORD_FILE_SIZE], line[128];
		int n;

		/* Five seconds and the part of one ago. */
		record_make_id(clock_real_ns() - 5 * NSEC_PER_SEC, i, id);
		n = snprintf(line, sizeof(line),
			"{\"v\":1,\"type\":\"open\",\"incident\":\"%s\",\n", id);
		snprintf(name, sizeof(name), "%s.jsonl", id);
		dirs_write(d->config.record.dir, name, line, (size_t)n);
		dirs_wait_count(d->config.record.dir, "", 0);
	}
	writer_free(writer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_DIRS(test_retention_is_exact),
		WITH_DIRS(test_retention_takes_only_what_is_ours),
		WITH_DIRS(test_retention_runs_after_each_record),
		WITH_DIRS(test_retention_by_age_holds_on_a_quiet_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
