/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The spool and the writer: what is written arrives complete, whoever reads it meanwhile. */
#include "test_sinks_dirs.h"

#include <sys/file.h>

static void test_every_sink_of_the_list_is_in_the_table(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < SINK_COUNT; i++) {
		assert_non_null(sinks_table[i]);
		assert_non_null(sinks_table[i]->open);
		assert_non_null(sinks_table[i]->write);
		assert_non_null(sinks_table[i]->tick);
		assert_non_null(sinks_table[i]->dropped);
		assert_non_null(sinks_table[i]->close);
	}
	assert_string_equal(sinks_table[SINK_spool]->name, "spool");
	assert_string_equal(sinks_table[SINK_journald]->name, "journald");
	assert_string_equal(sinks_table[SINK_syslog]->name, "syslog");
	assert_string_equal(sinks_table[SINK_terminal]->name, "terminal");
}

static void test_which_sinks_are_used(void **state)
{
	struct dirs *d = *state;
	struct config *config = &d->config;
	const unsigned int these =
		SINK_BIT(spool) | SINK_BIT(terminal) | SINK_BIT(journald) | SINK_BIT(syslog);

	config->journal.enabled = true;
	config->syslog.enabled = true;
	assert_int_equal(sinks_used(config, true) & these, SINK_BIT(spool) | SINK_BIT(terminal));
	assert_int_equal(sinks_used(config, false) & these,
		SINK_BIT(spool) | SINK_BIT(journald) | SINK_BIT(syslog));
	config->journal.enabled = false;
	assert_int_equal(sinks_used(config, false) & these, SINK_BIT(spool) | SINK_BIT(syslog));
	config->syslog.enabled = false;
	assert_int_equal(sinks_used(config, false) & these, SINK_BIT(spool));
}

static void test_a_record_arrives_complete(void **state)
{
	const struct dirs *d = *state;
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	_cleanup_free_ char *stored = malloc(65536), *line_buf = malloc(RECORD_LINE_SIZE);
	_cleanup_free_ struct record *r = malloc(sizeof(*r));
	const char *at = stored;
	char path[2 * PATH_MAX];
	struct stat st;

	for (unsigned int type = 0; type < RECORD_TYPE_COUNT; type++)
		dirs_write_record(sinks, type, 0);
	dirs_flush(sinks);
	dirs_read(d->config.record.dir, FIRST, stored, 65536);
	for (unsigned int type = 0; type < RECORD_TYPE_COUNT; type++) {
		struct text line = { .buf = line_buf, .size = RECORD_LINE_SIZE };

		dirs_record(r, type, 0);
		record_encode_json(r, &line);
		assert_memory_equal(at, line.buf, line.len);
		at += line.len;
	}
	assert_int_equal(*at, '\0');
	snprintf(path, sizeof(path), "%s/" FIRST, d->config.record.dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(dirs_count(d->config.record.dir, ""), 1);
	/* The next file is ready before it is needed. */
	dirs_wait_count(d->config.record.spool_dir, "", 1);
	assert_int_equal(dirs_count(d->config.record.spool_dir, ".preallocated-"), 1);
	sinks_free(sinks);
	assert_int_equal(dirs_count(d->config.record.spool_dir, ""), 0);
}

static void test_an_open_record_can_be_read(void **state)
{
	const struct dirs *d = *state;
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false), *other;
	struct record_summary s;

	dirs_write_record(sinks, RECORD_OPEN, 0);
	dirs_write_record(sinks, RECORD_STALL, 0);
	s = dirs_summary(d->config.record.spool_dir, FIRST_ID);
	assert_true(s.being_written);
	assert_int_equal(s.counts.records, 2);
	assert_int_equal(s.counts.garbage, 0);
	assert_false(s.counts.torn);
	/* A starting process moves records of killed daemons, but not this one, which is locked. */
	other = dirs_start(d, SINK_BIT(spool), -1, false);
	dirs_flush(other);
	sinks_free(other);
	assert_int_equal(dirs_count(d->config.record.dir, "Z-0000.jsonl"),
		dirs_count(d->config.record.dir, ".part"));
	dirs_write_record(sinks, RECORD_STALL, 0);
	dirs_close(sinks, 0);
	dirs_flush(sinks);
	s = dirs_summary(d->config.record.dir, FIRST_ID);
	assert_true(s.closed);
	assert_int_equal(s.counts.records, 4);
	sinks_free(sinks);
}

static void test_an_incident_right_after_another_begins_late(void **state)
{
	const struct dirs *d = *state;
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	struct record_summary s;

	for (unsigned int i = 0; i < 30; i++) {
		char id[RECORD_ID_SIZE];
		uint64_t begin_ns = clock_mono_ns();
		uint64_t lines = 1;

		record_make_id(DATA_REAL_NS + i * NSEC_PER_SEC, i, id);
		dirs_write_record(sinks, RECORD_OPEN, i);
		while (dirs_count(d->config.record.spool_dir, id) == 0 &&
			clock_mono_ns() - begin_ns < DIRS_PATIENCE_NS) {
			dirs_write_record(sinks, RECORD_STALL, i);
			sinks_tick(sinks, clock_mono_ns());
			lines++;
		}
		lines -= dirs_close(sinks, i).lost[RECORD_LOST_spool_dropped];
		dirs_flush(sinks);
		s = dirs_summary(d->config.record.dir, id);
		assert_true(s.closed);
		/* The `open` line is never lost. */
		assert_int_equal(s.counts.records, lines + 1);
	}
	sinks_free(sinks);
}

static void test_an_id_that_is_taken_already(void **state)
{
	const struct dirs *d = *state;
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	_cleanup_close_ int fd = -1, lock_fd = -1;
	struct record_close c;
	char path[2 * PATH_MAX];

	dirs_flush(sinks);
	snprintf(path, sizeof(path), "%s/" FIRST, d->config.record.spool_dir);
	lock_fd = dirs_hold(d, FIRST);
	fd = open(path, O_RDWR | O_CLOEXEC);
	dirs_write_record(sinks, RECORD_OPEN, 0);
	dirs_write_record(sinks, RECORD_STALL, 0);
	c = dirs_close(sinks, 0);
	assert_int_equal(c.lost[RECORD_LOST_spool_dropped], 2);
	assert_int_equal(lseek(fd, 0, SEEK_END), 0);
	/* The next incident is recorded. */
	assert_int_equal(dirs_write_incident(d, sinks, 1, 3), 0);
	dirs_flush(sinks);
	assert_int_equal(dirs_count(d->config.record.dir, ".jsonl"), 1);
	sinks_free(sinks);
	assert_int_equal(dirs_count(d->config.record.spool_dir, ""), 1);
}

/* A member of the group that may read records can lock what it has open, as long as it likes. */
static void test_a_reader_cannot_keep_a_record_from_being_moved(void **state)
{
	const struct dirs *d = *state;
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	struct flock read_lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	_cleanup_close_ int fd = -1;
	char path[2 * PATH_MAX];
	struct stat st;

	assert_true(dirs_open(d, sinks, 0, DIRS_PATIENCE_NS));
	snprintf(path, sizeof(path), "%s/" FIRST, d->config.record.spool_dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &read_lock), 0);
	dirs_close(sinks, 0);
	assert_int_equal(flock(fd, LOCK_SH), 0);
	dirs_flush(sinks);
	assert_int_equal(dirs_count(d->config.record.spool_dir, ".jsonl"), 0);
	assert_true(dirs_summary(d->config.record.dir, FIRST_ID).closed);
	/* What the locks are on can only be opened by root. */
	snprintf(path, sizeof(path), "%s/" LOCK_NAME, d->config.record.spool_dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	sinks_free(sinks);
}

static void test_a_spool_on_a_disk_is_refused(void **state)
{
	struct dirs *d = *state;
	const struct sinks_options options = { .config = &d->config, .wanted = SINK_BIT(spool) };
	char dir[] = "/var/tmp/iostall-sinks-XXXXXX";
	struct sinks *sinks;

	assert_non_null(mkdtemp(dir));
	if (file_is_in_memory(dir)) {
		rmdir(dir);
		print_message("/var/tmp is on tmpfs\n");
		skip();
	}
	text_copy(d->config.record.spool_dir, PATH_MAX, dir);
	assert_int_equal(sinks_new(&options, &sinks), -EMEDIUMTYPE);
	/* Nothing was made in it. */
	assert_int_equal(rmdir(dir), 0);
}

static void test_spool_and_durable_directory_may_be_the_same(void **state)
{
	struct dirs *d = *state;
	struct sinks *sinks;

	text_copy(d->config.record.dir, PATH_MAX, d->config.record.spool_dir);
	sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	dirs_write_incident(d, sinks, 0, 3);
	dirs_flush(sinks);
	sinks_free(sinks);
	assert_int_equal(dirs_summary(d->config.record.dir, FIRST_ID).counts.records, 5);
	assert_int_equal(dirs_count(d->config.record.dir, ""), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_sink_of_the_list_is_in_the_table),
		WITH_DIRS(test_which_sinks_are_used),
		WITH_DIRS(test_a_record_arrives_complete),
		WITH_DIRS(test_an_open_record_can_be_read),
		WITH_DIRS(test_an_incident_right_after_another_begins_late),
		WITH_DIRS(test_an_id_that_is_taken_already),
		WITH_DIRS(test_a_reader_cannot_keep_a_record_from_being_moved),
		WITH_DIRS(test_a_spool_on_a_disk_is_refused),
		WITH_DIRS(test_spool_and_durable_directory_may_be_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
