/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* The room in the file of the spool: who gets how much, and what does not fit is counted. */
#include "test_sinks_dirs.h"

static void test_lines_beyond_the_file_are_counted(void **state)
{
	const struct dirs *d = *state;
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	struct record_summary s;
	uint64_t lost = dirs_write_incident(d, sinks, 0, 1000);

	dirs_flush(sinks);
	s = dirs_summary(d->config.record.dir, FIRST_ID);
	assert_true(lost > 0);
	assert_true(s.closed);
	/* Two returns were missed as well. */
	assert_int_equal(s.lost, lost + 2);
	assert_int_equal(s.counts.records, 1 + 1000 - lost + 1);
	/* Each incident has its own count. */
	assert_int_equal(dirs_write_incident(d, sinks, 1, 10), 0);
	sinks_free(sinks);
}

/* Writes `count` lines of a type and returns how many were not lost. */
static uint64_t write_lines(struct sinks *sinks, enum record_type type, unsigned int count)
{
	uint64_t before[RECORD_LOST_COUNT], after[RECORD_LOST_COUNT];

	sinks_dropped(sinks, before);
	for (unsigned int i = 0; i < count; i++)
		dirs_write_record(sinks, type, 0);
	sinks_dropped(sinks, after);
	return count - (after[RECORD_LOST_spool_dropped] - before[RECORD_LOST_spool_dropped]);
}

static size_t line_bytes(enum record_type type)
{
	_cleanup_free_ char *buf = malloc(RECORD_LINE_SIZE);
	_cleanup_free_ struct record *r = malloc(sizeof(*r));
	struct text line = { .buf = buf, .size = RECORD_LINE_SIZE };

	dirs_record(r, type, 0);
	record_encode_json(r, &line);
	return line.len;
}

/* A line that was dropped keeps its number: that it is missing shows. */
static void test_a_dropped_line_leaves_a_gap(void **state)
{
	const struct dirs *d = *state;
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	_cleanup_free_ struct record *r = malloc(sizeof(*r));
	struct record_reader *reader;
	_cleanup_close_ int fd = -1;
	char path[2 * PATH_MAX];
	struct record_line line;
	uint64_t read = 0;

	assert_true(dirs_open(d, sinks, 0, DIRS_PATIENCE_NS));
	for (unsigned int seq = 1; seq <= 2000; seq++) {
		dirs_record(r, RECORD_STALL, 0);
		r->seq = seq;
		sinks_write(sinks, r);
	}
	dirs_record(r, RECORD_CLOSE, 0);
	r->seq = 2001;
	sinks_dropped(sinks, r->close.lost);
	sinks_write(sinks, r);
	dirs_flush(sinks);
	snprintf(path, sizeof(path), "%s/" FIRST, d->config.record.dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(record_reader_new(fd, &reader), 0);
	for (uint64_t last = 0; record_reader_next(reader, r, &line) > 0; last = r->seq, read++)
		assert_true(read == 0 || r->seq > last);
	record_reader_free(reader);
	assert_int_equal(r->type, RECORD_CLOSE);
	assert_true(r->close.lost[RECORD_LOST_spool_dropped] > 0);
	assert_int_equal(r->seq + 1 - read, r->close.lost[RECORD_LOST_spool_dropped]);
	sinks_free(sinks);
}

static void test_stuck_lines_leave_half_for_others(void **state)
{
	const struct dirs *d = *state;
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	size_t bytes = d->config.record.spool_bytes, reserve = 64 * 1024, end;
	uint64_t samples, stuck, stalls, used;
	struct record_close c;
	struct record_summary s;

	assert_true(dirs_open(d, sinks, 0, DIRS_PATIENCE_NS));
	stuck = write_lines(sinks, RECORD_STUCK, 1000);
	used = stuck * line_bytes(RECORD_STUCK);
	assert_in_range(used, bytes / 2 - line_bytes(RECORD_STUCK) + 1, bytes / 2);
	/* Stalls leave an eighth for samples. */
	stalls = write_lines(sinks, RECORD_STALL, 1000);
	used = line_bytes(RECORD_OPEN) + used + stalls * line_bytes(RECORD_STALL);
	end = bytes * 7 / 8 - reserve;
	assert_in_range(used, end - line_bytes(RECORD_STALL) + 1, end);
	samples = write_lines(sinks, RECORD_SAMPLE, 1000);
	used += samples * line_bytes(RECORD_SAMPLE);
	end = bytes - reserve;
	assert_in_range(used, end - line_bytes(RECORD_SAMPLE) + 1, end);
	c = dirs_close(sinks, 0);
	assert_int_equal(c.lost[RECORD_LOST_spool_dropped], 3000 - stuck - stalls - samples);
	dirs_flush(sinks);
	s = dirs_summary(d->config.record.dir, FIRST_ID);
	assert_true(s.closed);
	assert_int_equal(s.counts.records, 1 + samples + stuck + stalls + 1);
	sinks_free(sinks);
}

/* Samples do not take everything, either. */
static void test_samples_get_at_most_half(void **state)
{
	const struct dirs *d = *state;
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	size_t half = d->config.record.spool_bytes / 2;

	assert_true(dirs_open(d, sinks, 0, DIRS_PATIENCE_NS));
	assert_in_range(write_lines(sinks, RECORD_SAMPLE, 1000) * line_bytes(RECORD_SAMPLE),
		half - line_bytes(RECORD_SAMPLE) + 1, half);
	assert_int_equal(write_lines(sinks, RECORD_STALL, 10), 10);
	dirs_close(sinks, 0);
	sinks_free(sinks);
}

/* A line that stands for many has its place when `stuck` lines have used theirs. */
static void test_lines_for_many_have_the_share_of_samples(void **state)
{
	const struct dirs *d = *state;
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	_cleanup_free_ struct record *r = malloc(sizeof(*r));
	uint64_t before[RECORD_LOST_COUNT], after[RECORD_LOST_COUNT];

	assert_true(dirs_open(d, sinks, 0, DIRS_PATIENCE_NS));
	assert_in_range(write_lines(sinks, RECORD_STUCK, 1000), 1, 999);
	assert_in_range(write_lines(sinks, RECORD_STALL, 1000), 1, 999);
	sinks_dropped(sinks, before);
	dirs_record(r, RECORD_STUCK, 0);
	r->operation.alike = (struct record_alike){ true, 4211, 1, 2, 5000, true, 256 };
	for (unsigned int i = 0; i < 10; i++)
		sinks_write(sinks, r);
	sinks_dropped(sinks, after);
	assert_int_equal(after[RECORD_LOST_spool_dropped], before[RECORD_LOST_spool_dropped]);
	assert_int_equal(write_lines(sinks, RECORD_STUCK, 1), 0);
	dirs_close(sinks, 0);
	sinks_free(sinks);
}

/* The half is a share of the file and no fixed part of it. */
static void test_stalls_leave_room_for_stuck_lines(void **state)
{
	const struct dirs *d = *state;
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	size_t bytes = d->config.record.spool_bytes;
	unsigned int stalls = (unsigned int)(bytes * 55 / 100 / line_bytes(RECORD_STALL));

	assert_true(dirs_open(d, sinks, 0, DIRS_PATIENCE_NS));
	assert_int_equal(write_lines(sinks, RECORD_STALL, stalls), stalls);
	assert_int_equal(write_lines(sinks, RECORD_STUCK, 10), 10);
	assert_int_equal(write_lines(sinks, RECORD_SAMPLE, 10), 10);
	/* Each incident has its own half. */
	dirs_close(sinks, 0);
	assert_int_equal(dirs_write_incident(d, sinks, 1, 1), 0);
	assert_true(dirs_open(d, sinks, 2, DIRS_PATIENCE_NS));
	assert_true(write_lines(sinks, RECORD_STUCK, 1000) * line_bytes(RECORD_STUCK) >
		bytes / 2 - line_bytes(RECORD_STUCK));
	dirs_close(sinks, 2);
	dirs_flush(sinks);
	sinks_free(sinks);
}

/* Writes `count` lines about disks and returns how many were not lost. */
static uint64_t write_devices(struct sinks *sinks, bool final, unsigned int count)
{
	_cleanup_free_ struct record *r = malloc(sizeof(*r));
	uint64_t before[RECORD_LOST_COUNT], after[RECORD_LOST_COUNT];

	dirs_record(r, RECORD_DEVICE, 0);
	r->device.final = final;
	sinks_dropped(sinks, before);
	for (unsigned int i = 0; i < count; i++)
		sinks_write(sinks, r);
	sinks_dropped(sinks, after);
	return count - (after[RECORD_LOST_spool_dropped] - before[RECORD_LOST_spool_dropped]);
}

/* Lines about a disk without completions, during the incident, do not use the reserved room. */
static void test_the_last_lines_have_reserved_room(void **state)
{
	const struct dirs *d = *state;
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	const size_t kept = (size_t)64 * 1024 * 3 / 4;
	struct record_summary s;

	assert_true(dirs_open(d, sinks, 0, DIRS_PATIENCE_NS));
	assert_in_range(write_lines(sinks, RECORD_STALL, 1000), 1, 999);
	assert_in_range(write_devices(sinks, false, 1000), 0, 999);
	assert_int_equal(write_devices(sinks, false, 1), 0);
	assert_true(write_devices(sinks, true, 1000) >= kept / (line_bytes(RECORD_DEVICE) + 1));
	/* However many disks there are, the verdict has room, and after it `close`. */
	assert_true(
		write_lines(sinks, RECORD_VERDICT, 1000) >= 8 * 1024 / line_bytes(RECORD_VERDICT));
	dirs_close(sinks, 0);
	dirs_flush(sinks);
	s = dirs_summary(d->config.record.dir, FIRST_ID);
	assert_true(s.closed);
	assert_int_equal(s.class, RECORD_CLASS_saturated);
	sinks_free(sinks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_DIRS(test_lines_beyond_the_file_are_counted),
		WITH_DIRS(test_a_dropped_line_leaves_a_gap),
		WITH_DIRS(test_stuck_lines_leave_half_for_others),
		WITH_DIRS(test_samples_get_at_most_half),
		WITH_DIRS(test_lines_for_many_have_the_share_of_samples),
		WITH_DIRS(test_stalls_leave_room_for_stuck_lines),
		WITH_DIRS(test_the_last_lines_have_reserved_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
