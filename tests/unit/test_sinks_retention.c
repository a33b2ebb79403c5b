/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/*
 * Retention: the limits hold exactly, only records are removed, and age counts without incidents,
 * too.
 */
#include "test_sinks_dirs.h"

#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>

#include "util/file.h"
#include "sinks/retention.h"
#include "sinks/writer.h"

static void set_written(const struct dirs *d, const char *name, uint64_t real_ns)
{
	const struct timespec at = { .tv_sec = (time_t)(real_ns / NSEC_PER_SEC) };
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", d->config.record.dir, name);
	assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[]){ at, at }, 0), 0);
}

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
	set_written(d, name, DATA_REAL_NS + second * NSEC_PER_SEC);
}

static int apply(const struct dirs *d, uint64_t bytes, uint64_t count, uint64_t age_ns)
{
	const struct retention_limits limits = { bytes, count, age_ns };
	const struct retention_clock clock = { .boot_id = "this boot",
		.mono_ns = 1000 * NSEC_PER_SEC,
		.real_ns = DATA_REAL_NS + 100 * NSEC_PER_SEC,
		.synchronised = true };
	_cleanup_close_ int fd = open(d->config.record.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int lock_fd = lock_open(fd);

	return retention_apply(fd, lock_fd, &limits, &clock);
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
	/* The oldest one left is number 12, 88 s and a fraction old. */
	assert_int_equal(apply(d, 0, 0, 89 * NSEC_PER_SEC), 0);
	assert_int_equal(apply(d, 0, 0, 80 * NSEC_PER_SEC), 9);
	assert_int_equal(apply(d, 1, 1, 1), 29);
	assert_int_equal(dirs_count(d->config.record.dir, ""), 0);
}

static void test_retention_removes_only_records(void **state)
{
	const struct dirs *d = *state;
	char path[2 * PATH_MAX], target[2 * PATH_MAX];
	_cleanup_close_ int dir_fd = -1, lock_fd = -1, fd = -1;
	struct stat st;

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
	/* A record that is being written, and one that merely somebody has locked. */
	dir_fd = open(d->config.record.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	lock_fd = lock_open(dir_fd);
	assert_int_equal(fstatat(dir_fd, FIRST, &st, 0), 0);
	assert_int_equal(lock_take(lock_fd, st.st_ino), 0);
	fd = openat(dir_fd, "20261120T031208Z-0001.jsonl", O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(apply(d, 1, 1, 1), 1);
	assert_int_equal(dirs_count(d->config.record.dir, ""), 8);
	assert_int_equal(dirs_count(d->config.record.dir, FIRST_ID), 1);
}

static void test_the_output_of_hooks_goes_with_its_record(void **state)
{
	const struct dirs *d = *state;
	char path[PATH_MAX + RECORD_ID_SIZE + 4];

	for (unsigned int i = 0; i < 2; i++) {
		char id[RECORD_ID_SIZE];

		make_kept(d, i, 1000);
		record_make_id(DATA_REAL_NS + i * NSEC_PER_SEC, i, id);
		snprintf(path, sizeof(path), "%s/%s.d", d->config.record.dir, id);
		assert_int_equal(mkdir(path, 0700), 0);
		dirs_write(path, "mail.out", "0123456789", 10);
		dirs_write(path, "gcore.out", "0123456789", 10);
	}
	/* What hooks wrote counts. */
	assert_int_equal(apply(d, 2040, 0, 0), 0);
	assert_int_equal(apply(d, 2039, 0, 0), 1);
	assert_int_equal(dirs_count(d->config.record.dir, ""), 2);
	assert_int_equal(dirs_count(path, ""), 2);
	assert_int_equal(apply(d, 1, 1, 1), 1);
	assert_int_equal(dirs_count(d->config.record.dir, ""), 0);
}

/* Of a record that an operator has removed, or that was never stored. */
static void test_outputs_without_a_record(void **state)
{
	const struct dirs *d = *state;
	char path[PATH_MAX + 64], id[RECORD_ID_SIZE], name[RECORD_ID_SIZE + 2];

	make_kept(d, 90, 1000);
	record_make_id(DATA_REAL_NS, 0, id);
	snprintf(name, sizeof(name), "%s.d", id);
	snprintf(path, sizeof(path), "%s/%s", d->config.record.dir, name);
	assert_int_equal(mkdir(path, 0700), 0);
	dirs_write(path, "mail.out", "0123456789", 10);
	dirs_write(path, "notes", "0123456789", 10);
	set_written(d, name, DATA_REAL_NS);
	/* It may be of the incident that is being recorded. */
	assert_int_equal(apply(d, 1000, 1, 101 * NSEC_PER_SEC), 0);
	assert_int_equal(dirs_count(path, ""), 2);
	/* What hooks did not make stays. */
	assert_int_equal(apply(d, 0, 0, 50 * NSEC_PER_SEC), 0);
	assert_int_equal(dirs_count(path, "mail.out"), 0);
	assert_int_equal(dirs_count(path, "notes"), 1);
	dirs_write(path, "mail.out", "0123456789", 10);
	snprintf(path + strlen(path), sizeof(path) - strlen(path), "/notes");
	assert_int_equal(unlink(path), 0);
	set_written(d, name, DATA_REAL_NS);
	assert_int_equal(apply(d, 0, 0, 50 * NSEC_PER_SEC), 0);
	assert_int_equal(dirs_count(d->config.record.dir, ""), 1);
}

static bool set_immutable(const char *path, bool is_immutable)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	int flags = is_immutable ? FS_IMMUTABLE_FL : 0;

	return fd >= 0 && ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0;
}

/* As an operator keeps it with chattr(1): the others go all the same. */
static void test_a_record_that_cannot_be_removed(void **state)
{
	const struct dirs *d = *state;
	char path[2 * PATH_MAX];
	unsigned int removed;
	int r;

	for (unsigned int i = 0; i < 4; i++)
		make_kept(d, i, 1000);
	snprintf(path, sizeof(path), "%s/" FIRST, d->config.record.dir);
	if (!set_immutable(path, true)) {
		print_message("a file cannot be made immutable here: %s\n", strerror(errno));
		skip();
	}
	r = apply(d, 0, 2, 0);
	removed = 4 - dirs_count(d->config.record.dir, "");
	assert_true(set_immutable(path, false));
	assert_int_equal(r, -EPERM);
	assert_int_equal(removed, 2);
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
		dirs_flush(sinks);
		assert_in_range(dirs_count(d->config.record.dir, ""), 2, 3);
	}
	assert_int_equal(dirs_count(d->config.record.dir, "Z-0069"), 1);
	sinks_free(sinks);
}

/* Nothing is recorded, so only the timer wakes the writer. */
static void test_retention_by_age_without_incidents(void **state)
{
	struct dirs *d = *state;
	const struct writer_options options = { .spool_dir = d->config.record.spool_dir,
		.dir = d->config.record.dir,
		.limits = { .max_age_ns = 1 },
		.group = FILE_NO_GROUP,
		.retry_ns = WRITER_RETRY_NS,
		.age_check_ns = 10 * NSEC_PER_MSEC };
	struct writer *writer;
	uint64_t begin_ns;

	assert_int_equal(mkdir(d->config.record.spool_dir, 0700), 0);
	assert_int_equal(writer_new(&options, &writer), 0);
	for (begin_ns = clock_mono_ns(); !writer_is_flushed(writer); dirs_pause())
		assert_true(clock_mono_ns() - begin_ns < DIRS_PATIENCE_NS);
	/* More than once. */
	for (unsigned int i = 0; i < 3; i++) {
		char id[RECORD_ID_SIZE], name[RECORD_FILE_SIZE], line[128];
		int n;

		/* Five seconds and a fraction ago. */
		record_make_id(clock_real_ns() - 5 * NSEC_PER_SEC, i, id);
		n = snprintf(line, sizeof(line),
			"{\"v\":1,\"type\":\"open\",\"incident\":\"%s\",\n", id);
		snprintf(name, sizeof(name), "%s.jsonl", id);
		dirs_write(d->config.record.dir, name, line, (size_t)n);
		set_written(d, name, clock_real_ns() - 5 * NSEC_PER_SEC);
		dirs_wait_count(d->config.record.dir, "", 0);
	}
	writer_free(writer);
}

#define DAY_NS (24 * 3600 * NSEC_PER_SEC)
#define NOW_NS (DATA_REAL_NS + 100 * DAY_NS)

static void make_continued(const struct dirs *d, unsigned int number, const char *boot_id,
	uint64_t mono_ns, uint64_t real_ns, uint64_t written_ns, const char *continues)
{
	_cleanup_free_ char *buf = malloc(RECORD_LINE_SIZE);
	_cleanup_free_ struct record *r = malloc(sizeof(*r));
	struct text line = { .buf = buf, .size = RECORD_LINE_SIZE };
	char name[RECORD_FILE_SIZE];

	data_any(r, RECORD_OPEN);
	record_make_id(real_ns, number, r->incident);
	r->real_ns = real_ns;
	r->mono_ns = mono_ns;
	text_copy(r->open.boot_id, sizeof(r->open.boot_id), boot_id);
	text_copy(r->open.continues, sizeof(r->open.continues), continues);
	record_encode_json(r, &line);
	snprintf(name, sizeof(name), "%s.jsonl", r->incident);
	dirs_write(d->config.record.dir, name, line.buf, line.len);
	set_written(d, name, written_ns);
}

/* Makes a record with a whole `open` line: its boot, and when it was opened and written. */
static void make_opened(const struct dirs *d, unsigned int number, const char *boot_id,
	uint64_t mono_ns, uint64_t real_ns, uint64_t written_ns)
{
	make_continued(d, number, boot_id, mono_ns, real_ns, written_ns, "");
}

static int apply_age(const struct dirs *d, const struct retention_clock *clock)
{
	const struct retention_limits limits = { .max_age_ns = 30 * DAY_NS };
	_cleanup_close_ int fd = open(d->config.record.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return retention_apply(fd, -1, &limits, clock);
}

static bool is_there(const struct dirs *d, const char *part)
{
	return dirs_count(d->config.record.dir, part) == 1;
}

static void test_age_in_this_boot_is_told_by_the_monotonic_clock(void **state)
{
	const struct dirs *d = *state;
	struct retention_clock clock = { .boot_id = "now",
		.mono_ns = 3600 * NSEC_PER_SEC,
		.uptime_ns = 3600 * NSEC_PER_SEC,
		.real_ns = NOW_NS,
		.synchronised = true };

	/* Before the clock was set it said 2026, 1970 or 2099. */
	make_opened(d, 1, "now", 60 * NSEC_PER_SEC, DATA_REAL_NS, DATA_REAL_NS);
	make_opened(d, 2, "now", 60 * NSEC_PER_SEC, NSEC_PER_SEC, NSEC_PER_SEC);
	make_opened(d, 3, "now", 60 * NSEC_PER_SEC, NOW_NS + 30000 * DAY_NS, NOW_NS);
	assert_int_equal(apply_age(d, &clock), 0);
	/* A jump of the clock by years changes nothing, whether or not the kernel believes it. */
	clock.real_ns += 4000 * DAY_NS;
	assert_int_equal(apply_age(d, &clock), 0);
	clock.synchronised = false;
	assert_int_equal(apply_age(d, &clock), 0);
	/* What is really too old goes, whatever its name says. */
	clock.mono_ns = clock.uptime_ns = 31 * DAY_NS;
	make_opened(d, 4, "now", 30 * DAY_NS, DATA_REAL_NS, DATA_REAL_NS);
	assert_int_equal(apply_age(d, &clock), 3);
	assert_true(is_there(d, "-0004.jsonl"));
}

static void test_a_clock_that_is_ahead_removes_nothing(void **state)
{
	const struct dirs *d = *state;
	struct retention_clock clock = { .boot_id = "now",
		.mono_ns = 3600 * NSEC_PER_SEC,
		.uptime_ns = 3600 * NSEC_PER_SEC,
		.real_ns = NOW_NS + 4000 * DAY_NS };

	make_opened(d, 1, "before", 60 * NSEC_PER_SEC, NOW_NS - 50 * DAY_NS, NOW_NS - 50 * DAY_NS);
	make_opened(d, 2, "before", 60 * NSEC_PER_SEC, NOW_NS - 10 * DAY_NS, NOW_NS - 10 * DAY_NS);
	/* Opened when the clock was behind, but written when it was right. */
	make_opened(d, 3, "before", 60 * NSEC_PER_SEC, NSEC_PER_SEC, NOW_NS - 10 * DAY_NS);
	assert_int_equal(apply_age(d, &clock), 0);
	/* The clock has been set right. */
	clock.real_ns = NOW_NS;
	clock.synchronised = true;
	assert_int_equal(apply_age(d, &clock), 1);
	assert_false(is_there(d, "-0001.jsonl"));
	/* A clock that nobody vouches for; but this boot has lasted long enough. */
	clock.synchronised = false;
	clock.uptime_ns = 29 * DAY_NS;
	assert_int_equal(apply_age(d, &clock), 0);
	clock.uptime_ns = 31 * DAY_NS;
	assert_int_equal(apply_age(d, &clock), 2);
}

/* Of a host that has run for months without the time of others: not as old as the host. */
static void test_an_output_where_nobody_vouches_for_the_clock(void **state)
{
	const struct dirs *d = *state;
	struct retention_clock clock = { .boot_id = "now",
		.mono_ns = 300 * DAY_NS,
		.uptime_ns = 300 * DAY_NS,
		.real_ns = NOW_NS };
	char path[PATH_MAX + 64], id[RECORD_ID_SIZE], name[RECORD_ID_SIZE + 2];

	record_make_id(NOW_NS, 0, id);
	snprintf(name, sizeof(name), "%s.d", id);
	snprintf(path, sizeof(path), "%s/%s", d->config.record.dir, name);
	assert_int_equal(mkdir(path, 0700), 0);
	dirs_write(path, "mail.out", "0123456789", 10);
	set_written(d, name, NOW_NS);
	assert_int_equal(apply_age(d, &clock), 0);
	assert_int_equal(dirs_count(path, "mail.out"), 1);
	clock.real_ns += 31 * DAY_NS;
	assert_int_equal(apply_age(d, &clock), 0);
	assert_int_equal(dirs_count(d->config.record.dir, ""), 0);
}

/* What was opened in this boot is the newest, whatever the clock says. */
static void test_the_newest_is_kept_when_the_clock_is_behind(void **state)
{
	const struct retention_limits limits = { .max_count = 2 };
	const struct retention_clock clock = { .boot_id = "now", .mono_ns = 90 * NSEC_PER_SEC };
	const struct dirs *d = *state;
	_cleanup_close_ int fd = open(d->config.record.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	make_opened(d, 1, "before", 60 * NSEC_PER_SEC, NOW_NS, NOW_NS);
	make_opened(d, 2, "before", 90 * NSEC_PER_SEC, NOW_NS + DAY_NS, NOW_NS + DAY_NS);
	make_opened(d, 3, "now", 80 * NSEC_PER_SEC, NSEC_PER_SEC, NSEC_PER_SEC);
	assert_int_equal(retention_apply(fd, -1, &limits, &clock), 1);
	assert_false(is_there(d, "-0001.jsonl"));
	/* A clock that was set back in between. */
	make_opened(d, 4, "now", 70 * NSEC_PER_SEC, 9 * NSEC_PER_SEC, NSEC_PER_SEC);
	assert_int_equal(retention_apply(fd, -1, &limits, &clock), 1);
	assert_false(is_there(d, "-0002.jsonl"));
	make_opened(d, 5, "now", 85 * NSEC_PER_SEC, 5 * NSEC_PER_SEC, NSEC_PER_SEC);
	assert_int_equal(retention_apply(fd, -1, &limits, &clock), 1);
	assert_false(is_there(d, "-0004.jsonl"));
}

/* A hang of days must not remove the record of its beginning, nor those of other incidents. */
static void test_continuations_go_first(void **state)
{
	struct retention_limits limits = { .max_count = 4 };
	const struct retention_clock clock = { .boot_id = "now",
		.mono_ns = 90 * NSEC_PER_SEC,
		.real_ns = NOW_NS + DAY_NS,
		.synchronised = true };
	const struct dirs *d = *state;
	_cleanup_close_ int fd = open(d->config.record.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	make_opened(d, 1, "before", 60 * NSEC_PER_SEC, NOW_NS, NOW_NS);
	make_opened(d, 2, "now", 61 * NSEC_PER_SEC, NOW_NS, NOW_NS);
	make_continued(d, 3, "now", 62 * NSEC_PER_SEC, NOW_NS, NOW_NS, DATA_ID);
	make_continued(d, 4, "now", 63 * NSEC_PER_SEC, NOW_NS, NOW_NS, DATA_ID);
	make_continued(d, 5, "now", 64 * NSEC_PER_SEC, NOW_NS, NOW_NS, DATA_ID);
	make_opened(d, 6, "now", 65 * NSEC_PER_SEC, NOW_NS, NOW_NS);
	assert_int_equal(retention_apply(fd, -1, &limits, &clock), 2);
	assert_false(is_there(d, "-0003.jsonl") || is_there(d, "-0004.jsonl"));
	assert_true(is_there(d, "-0001.jsonl") && is_there(d, "-0005.jsonl"));
	limits.max_count = 2;
	assert_int_equal(retention_apply(fd, -1, &limits, &clock), 2);
	assert_false(is_there(d, "-0005.jsonl") || is_there(d, "-0001.jsonl"));
	/* Age takes what is too old, whatever it is. */
	make_opened(d, 7, "before", 60 * NSEC_PER_SEC, NOW_NS - 9 * DAY_NS, NOW_NS - 9 * DAY_NS);
	make_continued(d, 8, "now", 66 * NSEC_PER_SEC, NOW_NS, NOW_NS, DATA_ID);
	limits = (struct retention_limits){ .max_count = 3, .max_age_ns = 5 * DAY_NS };
	assert_int_equal(retention_apply(fd, -1, &limits, &clock), 1);
	assert_false(is_there(d, "-0007.jsonl"));
	assert_true(is_there(d, "-0008.jsonl"));
}

/* Else nothing would be left of what a hang has come to where beginnings fill the directory. */
static void test_the_last_continuation_stays(void **state)
{
	const struct retention_limits limits = { .max_count = 3 };
	const struct retention_clock clock = { .boot_id = "now",
		.mono_ns = 90 * NSEC_PER_SEC,
		.real_ns = NOW_NS + DAY_NS,
		.synchronised = true };
	const struct dirs *d = *state;
	_cleanup_close_ int fd = open(d->config.record.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	make_opened(d, 1, "now", 60 * NSEC_PER_SEC, NOW_NS, NOW_NS);
	make_opened(d, 2, "now", 61 * NSEC_PER_SEC, NOW_NS, NOW_NS);
	make_opened(d, 3, "now", 62 * NSEC_PER_SEC, NOW_NS, NOW_NS);
	make_continued(d, 4, "now", 63 * NSEC_PER_SEC, NOW_NS, NOW_NS, DATA_ID);
	assert_int_equal(retention_apply(fd, -1, &limits, &clock), 1);
	assert_false(is_there(d, "-0001.jsonl"));
	make_continued(d, 5, "now", 64 * NSEC_PER_SEC, NOW_NS, NOW_NS, DATA_ID);
	assert_int_equal(retention_apply(fd, -1, &limits, &clock), 1);
	assert_false(is_there(d, "-0004.jsonl"));
	assert_true(is_there(d, "-0005.jsonl"));
}

static void test_the_clock_of_this_host(void **state)
{
	struct retention_clock clock;

	(void)state;
	retention_read_clock(&clock);
	assert_int_equal(strlen(clock.boot_id), 36);
	assert_true(clock.mono_ns > 0);
	assert_true(clock.uptime_ns + NSEC_PER_SEC > clock.mono_ns);
	print_message("the clock is %ssynchronised\n", clock.synchronised ? "" : "not ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_DIRS(test_retention_is_exact),
		WITH_DIRS(test_retention_removes_only_records),
		WITH_DIRS(test_the_output_of_hooks_goes_with_its_record),
		WITH_DIRS(test_outputs_without_a_record),
		WITH_DIRS(test_a_record_that_cannot_be_removed),
		WITH_DIRS(test_retention_runs_after_each_record),
		WITH_DIRS(test_the_newest_is_kept_when_the_clock_is_behind),
		WITH_DIRS(test_continuations_go_first),
		WITH_DIRS(test_the_last_continuation_stays),
		WITH_DIRS(test_retention_by_age_without_incidents),
		WITH_DIRS(test_age_in_this_boot_is_told_by_the_monotonic_clock),
		WITH_DIRS(test_a_clock_that_is_ahead_removes_nothing),
		WITH_DIRS(test_an_output_where_nobody_vouches_for_the_clock),
		cmocka_unit_test(test_the_clock_of_this_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
