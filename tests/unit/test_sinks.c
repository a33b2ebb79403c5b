/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The spool and the writer: nothing is lost, whatever is killed, full or missing. */
#include "test_sinks_dirs.h"

#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>

#define FIRST_ID "20261120T031207Z-0000"
#define FIRST FIRST_ID ".jsonl"

static void test_a_record_arrives_whole(void **state)
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
	dirs_settle(sinks);
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
	/* The next one is there before it is needed. */
	dirs_wait_count(d->config.record.spool_dir, "", 1);
	assert_int_equal(dirs_count(d->config.record.spool_dir, ".spare-"), 1);
	sinks_free(sinks);
	assert_int_equal(dirs_count(d->config.record.spool_dir, ""), 0);
}

static void test_a_live_record_reads_as_it_is(void **state)
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
	/* Another process that recovers what was left leaves it alone. */
	other = dirs_start(d, SINK_BIT(spool), -1, false);
	dirs_settle(other);
	sinks_free(other);
	assert_int_equal(dirs_count(d->config.record.dir, ""), 0);
	dirs_write_record(sinks, RECORD_STALL, 0);
	dirs_close(sinks, 0);
	dirs_settle(sinks);
	s = dirs_summary(d->config.record.dir, FIRST_ID);
	assert_true(s.closed);
	assert_int_equal(s.counts.records, 4);
	sinks_free(sinks);
}

/* Writes for ever and says how many lines it had finished. */
static void write_until_killed(const struct dirs *d, volatile uint64_t *finished)
{
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	_cleanup_free_ struct record *r = malloc(sizeof(*r));

	dirs_write_record(sinks, RECORD_OPEN, 0);
	*finished = 1;
	data_operation(r, RECORD_STALL);
	memset(r->operation.kstack, 'k', sizeof(r->operation.kstack) - 1);
	record_make_id(DATA_REAL_NS, 0, r->incident);
	for (unsigned int i = 0; i < 400; i++) {
		sinks_write(sinks, r);
		*finished += 1;
	}
	pause();
}

static void kill_at(const struct dirs *d, unsigned int delay_us)
{
	volatile uint64_t *finished = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct record_summary s;
	struct sinks *sinks;
	uint64_t written;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		write_until_killed(d, finished);
		_exit(1);
	}
	while (*finished == 0 && waitpid(child, NULL, WNOHANG) == 0)
		;
	for (uint64_t begin = clock_mono_ns(); clock_mono_ns() - begin < delay_us * NSEC_PER_USEC;)
		;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	written = *finished;
	s = dirs_summary(d->config.record.spool_dir, FIRST_ID);
	assert_false(s.being_written);
	/* The last may have been finished without having been counted. */
	assert_in_range(s.counts.records, written, written + 1);
	assert_int_equal(s.counts.garbage, 0);

	sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	dirs_settle(sinks);
	s = dirs_summary(d->config.record.dir, FIRST_ID);
	assert_in_range(s.counts.records, written, written + 1);
	assert_false(s.counts.torn);
	assert_int_equal(s.counts.garbage, 0);
	dirs_wait_count(d->config.record.spool_dir, "", 1);
	sinks_free(sinks);
	assert_int_equal(dirs_count(d->config.record.spool_dir, ""), 0);
	munmap((void *)(uintptr_t)finished, 4096);
}

static void test_it_survives_kill_at_any_moment(void **state)
{
	struct dirs *d = *state;
	char path[2 * PATH_MAX];

	d->config.record.spool_bytes = 4 << 20;
	snprintf(path, sizeof(path), "%s/" FIRST, d->config.record.dir);
	for (unsigned int i = 0; i < 40; i++) {
		kill_at(d, i * 97 % 1300);
		assert_int_equal(unlink(path), 0);
	}
}

static void test_what_a_dead_daemon_left_is_cut_and_moved(void **state)
{
	const struct dirs *d = *state;
	_cleanup_free_ char *bytes = malloc(65536), *stored = malloc(65536);
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	size_t len, whole;

	dirs_write_incident(d, sinks, 0, 3);
	dirs_settle(sinks);
	sinks_free(sinks);
	len = dirs_read(d->config.record.dir, FIRST, bytes, 65536);
	/* Four lines, the beginning of the fifth, then padding. */
	whole = (size_t)((char *)memrchr(bytes, '\n', len - 1) - bytes) + 1;
	memset(bytes + whole + 100, '\n', 4096);
	dirs_write(d->config.record.spool_dir, FIRST, bytes, whole + 100 + 4096);
	dirs_write(d->config.record.spool_dir, "20261120T031208Z-0001.jsonl", bytes, 60);
	dirs_write(d->config.record.spool_dir, "20261120T031209Z-0002.jsonl", "\n\n\n", 3);
	dirs_write(d->config.record.spool_dir, "20261120T031210Z-0003.jsonl", "my own {}\n", 10);
	dirs_write(d->config.record.spool_dir, ".spare-4194305", "\n\n", 2);
	dirs_write(d->config.record.spool_dir, "notes.txt", "x", 1);
	sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	dirs_settle(sinks);
	assert_int_equal(dirs_read(d->config.record.dir, FIRST, stored, 65536), whole);
	assert_memory_equal(stored, bytes, whole);
	assert_int_equal(dirs_count(d->config.record.dir, ""), 1);
	sinks_free(sinks);
	/* What is not ours stays: notes.txt and a file that only has such a name. */
	assert_int_equal(dirs_count(d->config.record.spool_dir, ""), 2);
	assert_int_equal(dirs_count(d->config.record.spool_dir, "-0003.jsonl"), 1);
}

static void test_a_copy_that_a_reboot_cut_off_is_kept(void **state)
{
	const struct dirs *d = *state;
	_cleanup_free_ char *bytes = malloc(65536);
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	struct record_summary s;
	char path[2 * PATH_MAX];
	size_t len;

	dirs_write_incident(d, sinks, 0, 3);
	dirs_settle(sinks);
	sinks_free(sinks);
	len = dirs_read(d->config.record.dir, FIRST, bytes, 65536);
	snprintf(path, sizeof(path), "%s/" FIRST, d->config.record.dir);
	assert_int_equal(unlink(path), 0);
	dirs_write(d->config.record.dir, "." FIRST ".part", bytes, len - 700);
	dirs_write(d->config.record.dir, ".20261120T031208Z-0001.jsonl.part", bytes, 10);
	sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	dirs_settle(sinks);
	s = dirs_summary(d->config.record.dir, FIRST_ID);
	assert_int_equal(s.counts.records, 3);
	assert_false(s.counts.torn);
	assert_int_equal(dirs_count(d->config.record.dir, ""), 1);
	sinks_free(sinks);
}

static void test_what_does_not_fit_is_counted(void **state)
{
	const struct dirs *d = *state;
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	struct record_summary s;
	uint64_t lost = dirs_write_incident(d, sinks, 0, 1000);

	dirs_settle(sinks);
	s = dirs_summary(d->config.record.dir, FIRST_ID);
	assert_true(lost > 0);
	assert_true(s.closed);
	/* Two returns were missed as well. */
	assert_int_equal(s.lost, lost + 2);
	assert_int_equal(s.counts.records, 1 + 1000 - lost + 1);
	/* Counted by incident. */
	assert_int_equal(dirs_write_incident(d, sinks, 1, 10), 0);
	sinks_free(sinks);
}

/* Writes `count` lines of a type; how many of them were taken. */
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

static void test_repeated_lines_leave_half_for_stalls(void **state)
{
	const struct dirs *d = *state;
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	size_t half = d->config.record.spool_bytes / 2, reserve = 64 * 1024;
	uint64_t samples, stuck, stalls, used;
	struct record_close c;
	struct record_summary s;

	assert_true(dirs_open(d, sinks, 0, DIRS_PATIENCE_NS));
	samples = write_lines(sinks, RECORD_SAMPLE, 10);
	assert_int_equal(samples, 10);
	/* Both types share it. */
	stuck = write_lines(sinks, RECORD_STUCK, 1000);
	used = samples * line_bytes(RECORD_SAMPLE) + stuck * line_bytes(RECORD_STUCK);
	assert_in_range(used, half - line_bytes(RECORD_STUCK) + 1, half);
	stalls = write_lines(sinks, RECORD_STALL, 1000);
	used = line_bytes(RECORD_OPEN) + used + stalls * line_bytes(RECORD_STALL);
	assert_in_range(used, 2 * half - reserve - line_bytes(RECORD_STALL) + 1,
		2 * half - reserve);
	c = dirs_close(sinks, 0);
	assert_int_equal(c.lost[RECORD_LOST_spool_dropped], 2000 - stuck - stalls);
	dirs_settle(sinks);
	s = dirs_summary(d->config.record.dir, FIRST_ID);
	assert_true(s.closed);
	assert_int_equal(s.counts.records, 1 + samples + stuck + stalls + 1);
	sinks_free(sinks);
}

/* It is a share of the file and no place in it. */
static void test_stalls_leave_room_for_what_is_stuck(void **state)
{
	const struct dirs *d = *state;
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	size_t bytes = d->config.record.spool_bytes;
	unsigned int stalls = (unsigned int)(bytes * 6 / 10 / line_bytes(RECORD_STALL));

	assert_true(dirs_open(d, sinks, 0, DIRS_PATIENCE_NS));
	assert_int_equal(write_lines(sinks, RECORD_STALL, stalls), stalls);
	assert_int_equal(write_lines(sinks, RECORD_STUCK, 10), 10);
	assert_int_equal(write_lines(sinks, RECORD_SAMPLE, 10), 10);
	/* The half is counted by incident. */
	dirs_close(sinks, 0);
	assert_int_equal(dirs_write_incident(d, sinks, 1, 1), 0);
	assert_true(dirs_open(d, sinks, 2, DIRS_PATIENCE_NS));
	assert_true(write_lines(sinks, RECORD_STUCK, 1000) * line_bytes(RECORD_STUCK) >
		bytes / 2 - line_bytes(RECORD_STUCK));
	dirs_close(sinks, 2);
	dirs_settle(sinks);
	sinks_free(sinks);
}

/* How many of `count` lines about disks were taken. */
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

/* Those about disks that are silent in the midst of it leave what is kept free alone. */
static void test_last_lines_find_room(void **state)
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
	/* However many disks there are, the verdict has its place, and leaves one for `close`. */
	assert_true(write_lines(sinks, RECORD_VERDICT, 1000) >= 8 * 1024 / line_bytes(RECORD_VERDICT));
	dirs_close(sinks, 0);
	dirs_settle(sinks);
	s = dirs_summary(d->config.record.dir, FIRST_ID);
	assert_true(s.closed);
	assert_string_equal(s.verdict, "saturated");
	sinks_free(sinks);
}

static void test_no_directory_keeps_all_in_the_spool(void **state)
{
	const struct dirs *d = *state;
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);

	dirs_settle(sinks);
	assert_int_equal(rmdir(d->config.record.dir), 0);
	/* A file in its place; a directory that is only missing would be made. */
	dirs_write(d->root, "log", "", 0);
	dirs_write_incident(d, sinks, 0, 3);
	assert_false(sinks_flush(sinks, 50 * NSEC_PER_MSEC));
	dirs_write_incident(d, sinks, 1, 3);
	assert_false(sinks_flush(sinks, 50 * NSEC_PER_MSEC));
	assert_int_equal(dirs_count(d->config.record.spool_dir, ".jsonl"), 2);
	assert_int_equal(unlink(d->config.record.dir), 0);
	/* The next incident takes them along, into a directory made anew. */
	dirs_write_incident(d, sinks, 2, 3);
	dirs_settle(sinks);
	assert_int_equal(dirs_count(d->config.record.dir, ".jsonl"), 3);
	assert_int_equal(dirs_count(d->config.record.spool_dir, ".jsonl"), 0);
	for (unsigned int i = 0; i < 3; i++) {
		char id[RECORD_ID_SIZE];

		record_make_id(DATA_REAL_NS + i * NSEC_PER_SEC, i, id);
		assert_int_equal(dirs_summary(d->config.record.dir, id).counts.records, 5);
	}
	sinks_free(sinks);
}

/* A file system of our own, seen by nobody else and gone with this process. */
static bool mount_tmpfs(const char *path, const char *options)
{
	static bool unshared;

	if (!unshared && unshare(CLONE_NEWNS) < 0)
		return false;
	if (!unshared && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return false;
	unshared = true;
	return mount("tmpfs", path, "tmpfs", 0, options) == 0;
}

static void test_a_full_disk_keeps_all_in_the_spool(void **state)
{
	const struct dirs *d = *state;
	static const char filler[1020 * 1024];
	char path[2 * PATH_MAX];
	struct sinks *sinks;

	if (!mount_tmpfs(d->config.record.dir, "size=1m")) {
		print_message("a tmpfs cannot be mounted here: %s\n", strerror(errno));
		skip();
	}
	dirs_write(d->config.record.dir, "filler", filler, sizeof(filler));
	sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	dirs_write_incident(d, sinks, 0, 100);
	assert_false(sinks_flush(sinks, 50 * NSEC_PER_MSEC));
	assert_int_equal(dirs_count(d->config.record.spool_dir, ".jsonl"), 1);
	/* Not even half of it is left there. */
	assert_int_equal(dirs_count(d->config.record.dir, ""), 1);
	snprintf(path, sizeof(path), "%s/filler", d->config.record.dir);
	assert_int_equal(unlink(path), 0);
	dirs_write_incident(d, sinks, 1, 1);
	dirs_settle(sinks);
	assert_int_equal(dirs_count(d->config.record.dir, ".jsonl"), 2);
	assert_int_equal(dirs_summary(d->config.record.dir, FIRST_ID).counts.records, 102);
	sinks_free(sinks);
	umount2(d->config.record.dir, MNT_DETACH);
}

static void test_a_full_spool_is_known_at_start(void **state)
{
	struct dirs *d = *state;
	const struct sinks_options options = { .config = &d->config, .wanted = SINK_BIT(spool) };
	struct sinks *sinks;

	assert_int_equal(mkdir(d->config.record.spool_dir, 0700), 0);
	if (!mount_tmpfs(d->config.record.spool_dir, "size=1m")) {
		print_message("a tmpfs cannot be mounted here: %s\n", strerror(errno));
		skip();
	}
	d->config.record.spool_bytes = 2 << 20;
	assert_int_equal(sinks_new(&options, &sinks), -ENOSPC);
	assert_int_equal(dirs_count(d->config.record.spool_dir, ""), 0);
	umount2(d->config.record.spool_dir, MNT_DETACH);
	rmdir(d->config.record.spool_dir);
	dirs_write(d->root, "spool", "", 0);
	assert_int_equal(sinks_new(&options, &sinks), -ENOTDIR);
	text_copy(d->config.record.spool_dir, PATH_MAX, "/nonexistent/spool");
	assert_int_equal(sinks_new(&options, &sinks), -ENOENT);
}

static void test_the_spool_has_a_limit(void **state)
{
	struct dirs *d = *state;
	struct sinks *sinks;
	struct record_close c = { 0 };
	unsigned int moved = 0;

	d->config.record.spool_bytes = 16 * 1024;
	sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	dirs_settle(sinks);
	assert_int_equal(rmdir(d->config.record.dir), 0);
	dirs_write(d->root, "log", "", 0);
	while (dirs_open(d, sinks, moved, 300 * NSEC_PER_MSEC)) {
		for (unsigned int i = 0; i < 21; i++)
			dirs_write_record(sinks, RECORD_STALL, moved);
		c = dirs_close(sinks, moved++);
	}
	/* Each of them full up to what is kept for its close. */
	assert_true(c.lost[RECORD_LOST_spool_dropped] > 0);
	assert_in_range(moved, 15, 24);
	dirs_write_record(sinks, RECORD_STALL, moved);
	c = dirs_close(sinks, moved);
	assert_int_equal(c.lost[RECORD_LOST_spool_dropped], 1);
	assert_int_equal(dirs_count(d->config.record.spool_dir, ".jsonl"), moved);
	assert_int_equal(dirs_count(d->config.record.spool_dir, ".spare-"), 0);
	/* As soon as they can leave there is room again. */
	assert_int_equal(unlink(d->config.record.dir), 0);
	sinks_free(sinks);
	sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	dirs_settle(sinks);
	assert_int_equal(dirs_count(d->config.record.dir, ".jsonl"), moved);
	sinks_free(sinks);
}

static void test_an_incident_right_behind_another_begins_late(void **state)
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
		dirs_settle(sinks);
		s = dirs_summary(d->config.record.dir, id);
		assert_true(s.closed);
		/* The open line is never among what is missing. */
		assert_int_equal(s.counts.records, lines + 1);
	}
	sinks_free(sinks);
}

static void test_an_id_that_somebody_else_has(void **state)
{
	const struct dirs *d = *state;
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	_cleanup_close_ int fd = -1;
	struct record_close c;
	char path[2 * PATH_MAX];

	dirs_settle(sinks);
	snprintf(path, sizeof(path), "%s/" FIRST, d->config.record.spool_dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	dirs_write_record(sinks, RECORD_OPEN, 0);
	dirs_write_record(sinks, RECORD_STALL, 0);
	c = dirs_close(sinks, 0);
	assert_int_equal(c.lost[RECORD_LOST_spool_dropped], 2);
	assert_int_equal(lseek(fd, 0, SEEK_END), 0);
	/* The next incident is none the worse. */
	assert_int_equal(dirs_write_incident(d, sinks, 1, 3), 0);
	dirs_settle(sinks);
	assert_int_equal(dirs_count(d->config.record.dir, ".jsonl"), 1);
	sinks_free(sinks);
	assert_int_equal(dirs_count(d->config.record.spool_dir, ""), 1);
}

static void test_spool_and_directory_may_be_one(void **state)
{
	struct dirs *d = *state;
	struct sinks *sinks;

	text_copy(d->config.record.dir, PATH_MAX, d->config.record.spool_dir);
	sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	dirs_write_incident(d, sinks, 0, 3);
	dirs_settle(sinks);
	sinks_free(sinks);
	assert_int_equal(dirs_summary(d->config.record.dir, FIRST_ID).counts.records, 5);
	assert_int_equal(dirs_count(d->config.record.dir, ""), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_DIRS(test_a_record_arrives_whole),
		WITH_DIRS(test_a_live_record_reads_as_it_is),
		WITH_DIRS(test_it_survives_kill_at_any_moment),
		WITH_DIRS(test_what_a_dead_daemon_left_is_cut_and_moved),
		WITH_DIRS(test_a_copy_that_a_reboot_cut_off_is_kept),
		WITH_DIRS(test_what_does_not_fit_is_counted),
		WITH_DIRS(test_repeated_lines_leave_half_for_stalls),
		WITH_DIRS(test_stalls_leave_room_for_what_is_stuck),
		WITH_DIRS(test_last_lines_find_room),
		WITH_DIRS(test_no_directory_keeps_all_in_the_spool),
		WITH_DIRS(test_a_full_disk_keeps_all_in_the_spool),
		WITH_DIRS(test_a_full_spool_is_known_at_start),
		WITH_DIRS(test_the_spool_has_a_limit),
		WITH_DIRS(test_an_incident_right_behind_another_begins_late),
		WITH_DIRS(test_an_id_that_somebody_else_has),
		WITH_DIRS(test_spool_and_directory_may_be_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
