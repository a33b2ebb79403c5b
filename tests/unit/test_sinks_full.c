/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Directories that are missing or full: no record is lost, and the spool has a limit. */
#include "test_sinks_dirs.h"

#include <sched.h>
#include <sys/mount.h>

static void test_without_a_directory_records_stay_in_the_spool(void **state)
{
	const struct dirs *d = *state;
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);

	dirs_flush(sinks);
	assert_int_equal(rmdir(d->config.record.dir), 0);
	/* A file stands in its place; a directory that is merely missing would be made. */
	dirs_write(d->root, "log", "", 0);
	dirs_write_incident(d, sinks, 0, 3);
	assert_false(sinks_flush(sinks, 50 * NSEC_PER_MSEC));
	dirs_write_incident(d, sinks, 1, 3);
	assert_false(sinks_flush(sinks, 50 * NSEC_PER_MSEC));
	assert_int_equal(dirs_count(d->config.record.spool_dir, ".jsonl"), 2);
	assert_int_equal(unlink(d->config.record.dir), 0);
	/* At the next incident they are moved, too, into a new directory. */
	dirs_write_incident(d, sinks, 2, 3);
	dirs_flush(sinks);
	assert_int_equal(dirs_count(d->config.record.dir, ".jsonl"), 3);
	assert_int_equal(dirs_count(d->config.record.spool_dir, ".jsonl"), 0);
	for (unsigned int i = 0; i < 3; i++) {
		char id[RECORD_ID_SIZE];

		record_make_id(DATA_REAL_NS + i * NSEC_PER_SEC, i, id);
		assert_int_equal(dirs_summary(d->config.record.dir, id).counts.records, 5);
	}
	sinks_free(sinks);
}

/* Nobody may say that all is filed when nobody could look. */
static void test_without_spool_or_lock_nothing_counts_as_filed(void **state)
{
	static const char *const names[] = { "spool", "spool/" LOCK_NAME };
	const struct dirs *d = *state;
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	char path[PATH_MAX], away[PATH_MAX];

	dirs_flush(sinks);
	snprintf(away, sizeof(away), "%s/away", d->root);
	for (unsigned int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", d->root, names[i]);
		assert_true(dirs_open(d, sinks, i, DIRS_PATIENCE_NS));
		assert_int_equal(rename(path, away), 0);
		/* Or it would be made. */
		assert_int_equal(symlink("nothing", path), 0);
		dirs_close(sinks, i);
		assert_false(sinks_flush(sinks, 200 * NSEC_PER_MSEC));
		assert_true(sinks_keep_records(sinks));
		assert_int_equal(unlink(path), 0);
		assert_int_equal(rename(away, path), 0);
	}
	dirs_write_incident(d, sinks, 2, 1);
	dirs_flush(sinks);
	assert_false(sinks_keep_records(sinks));
	assert_int_equal(dirs_count(d->config.record.dir, ".jsonl"), 3);
	sinks_free(sinks);
}

/* A file system in a mount namespace of this process, which ends with it. */
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

/* Takes all the room that there is by a file, whose path is returned. */
static void fill_disk(const char *dir, char ret_path[static 2 * PATH_MAX])
{
	static const char filler[4096];
	_cleanup_close_ int fd = -1;

	snprintf(ret_path, 2 * PATH_MAX, "%s/filler", dir);
	fd = open(ret_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	while (write(fd, filler, sizeof(filler)) > 0)
		;
	assert_int_equal(errno, ENOSPC);
}

static void test_with_a_full_disk_records_stay_in_the_spool(void **state)
{
	const struct dirs *d = *state;
	char path[2 * PATH_MAX];
	struct sinks *sinks;

	if (!mount_tmpfs(d->config.record.dir, "size=1m,mode=750")) {
		print_message("a tmpfs cannot be mounted here: %s\n", strerror(errno));
		skip();
	}
	fill_disk(d->config.record.dir, path);
	sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	dirs_write_incident(d, sinks, 0, 100);
	assert_false(sinks_flush(sinks, 50 * NSEC_PER_MSEC));
	assert_int_equal(dirs_count(d->config.record.spool_dir, ".jsonl"), 1);
	/* No empty copy is left there. */
	dirs_wait_count(d->config.record.dir, "", 1);
	assert_int_equal(unlink(path), 0);
	dirs_write_incident(d, sinks, 1, 1);
	dirs_flush(sinks);
	assert_int_equal(dirs_count(d->config.record.dir, ".jsonl"), 2);
	assert_int_equal(dirs_summary(d->config.record.dir, FIRST_ID).counts.records, 102);
	sinks_free(sinks);
	umount2(d->config.record.dir, MNT_DETACH);
}

/* Each attempt to save changes the time of the part: it must keep what it had. */
static void wait_attempts(const struct dirs *d, const struct stat *saved, unsigned int attempts)
{
	uint64_t begin_ns = clock_mono_ns();
	struct stat before = *saved, now;

	while (attempts > 0) {
		assert_true(dirs_stat_part(d, &now));
		assert_int_equal(now.st_ino, saved->st_ino);
		assert_true(now.st_size >= saved->st_size);
		if (memcmp(&now.st_mtim, &before.st_mtim, sizeof(now.st_mtim)) != 0) {
			before = now;
			attempts--;
		}
		if (clock_mono_ns() - begin_ns > DIRS_PATIENCE_NS)
			fail_msg("nothing tries to save the rest");
		dirs_pause();
	}
}

#define RECORD_BYTES (256 * 1024)

/* An open incident of which the first line has been saved, on a disk that can become full. */
struct saving {
	char bytes[RECORD_BYTES]; /* its record */
	size_t len;
	size_t first; /* the length of the first line */
	int lock_fd;
	struct writer *writer;
	struct stat saved;
};

static void save_first_line(const struct dirs *d, struct saving *s)
{
	assert_non_null(s);
	if (!mount_tmpfs(d->config.record.dir, "size=1m,mode=750")) {
		print_message("a tmpfs cannot be mounted here: %s\n", strerror(errno));
		skip();
	}
	s->len = dirs_take_record(d, 100, s->bytes, sizeof(s->bytes));
	s->first = (size_t)((char *)memchr(s->bytes, '\n', s->len) - s->bytes) + 1;
	s->lock_fd = dirs_hold(d, FIRST);
	dirs_write(d->config.record.spool_dir, FIRST, s->bytes, s->len);
	s->writer = dirs_writer(d);
	writer_note_bytes(s->writer, s->first);
	writer_begin(s->writer, FIRST_ID);
	dirs_wait_part_bytes(d, s->first);
	assert_true(dirs_stat_part(d, &s->saved));
}

static void assert_copied(const struct dirs *d, const struct saving *s, const char *name)
{
	_cleanup_free_ char *copied = malloc(RECORD_BYTES);

	assert_int_equal(dirs_read(d->config.record.dir, name, copied, RECORD_BYTES), s->len);
	assert_memory_equal(copied, s->bytes, s->len);
}

static void end_writer(const struct dirs *d, struct saving *s)
{
	writer_free(s->writer);
	dirs_wait_threads();
	umount2(d->config.record.dir, MNT_DETACH);
}

/* A reset of the host would leave nothing else. */
static void test_what_was_saved_stays_when_the_disk_becomes_full(void **state)
{
	const struct dirs *d = *state;
	_cleanup_free_ struct saving *s = malloc(sizeof(*s));
	char path[2 * PATH_MAX], part[64];

	save_first_line(d, s);
	fill_disk(d->config.record.dir, path);
	writer_note_bytes(s->writer, s->len);
	wait_attempts(d, &s->saved, 5);
	/* Once there is room, the rest follows. */
	assert_int_equal(unlink(path), 0);
	dirs_wait_part_bytes(d, s->len);
	snprintf(part, sizeof(part), "." FIRST ".%d.part", (int)getpid());
	assert_copied(d, s, part);
	close(s->lock_fd);
	end_writer(d, s);
}

/* The incident is closed, and the disk that is full takes no whole copy of its record. */
static void keep_until_copied(const struct dirs *d, struct saving *s)
{
	char path[2 * PATH_MAX];

	fill_disk(d->config.record.dir, path);
	close(s->lock_fd);
	writer_end(s->writer, FIRST_ID);
	wait_attempts(d, &s->saved, 5);
	assert_false(writer_is_flushed(s->writer));
	assert_int_equal(unlink(path), 0);
	dirs_wait_count(d->config.record.spool_dir, FIRST, 0);
	assert_copied(d, s, FIRST);
}

static void test_what_was_saved_stays_until_the_record_is_copied(void **state)
{
	const struct dirs *d = *state;
	_cleanup_free_ struct saving *s = malloc(sizeof(*s));

	save_first_line(d, s);
	keep_until_copied(d, s);
	assert_int_equal(dirs_count(d->config.record.dir, ""), 1);
	end_writer(d, s);
}

/* The writer then saves that one, and comes back to the record later. */
static void test_what_was_saved_stays_when_another_incident_opens(void **state)
{
	static const char next_id[] = "20261120T031208Z-0001";
	static const char next[] = "20261120T031208Z-0001.jsonl";
	const struct dirs *d = *state;
	_cleanup_free_ struct saving *s = malloc(sizeof(*s));
	int next_lock_fd;

	save_first_line(d, s);
	next_lock_fd = dirs_hold(d, next);
	dirs_write(d->config.record.spool_dir, next, s->bytes, s->len);
	writer_begin(s->writer, next_id);
	dirs_wait_count(d->config.record.dir, next, 1);
	keep_until_copied(d, s);
	end_writer(d, s);
	close(next_lock_fd);
}

/* It starts all the same, and records as soon as there is room: an eighth is that of others. */
static void test_a_start_where_run_is_full(void **state)
{
	struct dirs *d = *state;
	char path[2 * PATH_MAX];
	struct sinks *sinks;

	assert_int_equal(mkdir(d->config.record.spool_dir, 0700), 0);
	if (!mount_tmpfs(d->config.record.spool_dir, "size=4m,mode=750")) {
		print_message("a tmpfs cannot be mounted here: %s\n", strerror(errno));
		skip();
	}
	fill_disk(d->config.record.spool_dir, path);
	d->config.record.spool_bytes = 1 << 20;
	sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	assert_false(dirs_open(d, sinks, 0, NSEC_PER_SEC));
	dirs_close(sinks, 0);
	/* There is room for it, but not for others beside it. */
	assert_int_equal(truncate(path, 11 << 18), 0);
	assert_false(dirs_open(d, sinks, 1, NSEC_PER_SEC));
	dirs_close(sinks, 1);
	assert_int_equal(truncate(path, 2 << 20), 0);
	assert_int_equal(dirs_write_incident(d, sinks, 2, 3), 0);
	dirs_flush(sinks);
	sinks_free(sinks);
	assert_int_equal(dirs_count(d->config.record.dir, ".jsonl"), 1);
	umount2(d->config.record.spool_dir, MNT_DETACH);
}

static void test_what_is_no_spool_is_noticed_at_start(void **state)
{
	struct dirs *d = *state;
	const struct sinks_options options = { .config = &d->config, .wanted = SINK_BIT(spool) };
	struct sinks *sinks;

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
	dirs_flush(sinks);
	assert_int_equal(rmdir(d->config.record.dir), 0);
	dirs_write(d->root, "log", "", 0);
	while (dirs_open(d, sinks, moved, 300 * NSEC_PER_MSEC)) {
		for (unsigned int i = 0; i < 21; i++)
			dirs_write_record(sinks, RECORD_STALL, moved);
		c = dirs_close(sinks, moved++);
	}
	/* Each of them is full up to the reserved room. */
	assert_true(c.lost[RECORD_LOST_spool_dropped] > 0);
	assert_in_range(moved, 18, 29);
	dirs_write_record(sinks, RECORD_STALL, moved);
	c = dirs_close(sinks, moved);
	assert_int_equal(c.lost[RECORD_LOST_spool_dropped], 1);
	assert_int_equal(dirs_count(d->config.record.spool_dir, ".jsonl"), moved);
	assert_int_equal(dirs_count(d->config.record.spool_dir, ".preallocated-"), 0);
	/* As soon as they can be moved, the spool has room again. */
	assert_int_equal(unlink(d->config.record.dir), 0);
	sinks_free(sinks);
	sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	dirs_flush(sinks);
	assert_int_equal(dirs_count(d->config.record.dir, ".jsonl"), moved);
	sinks_free(sinks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_DIRS(test_without_a_directory_records_stay_in_the_spool),
		WITH_DIRS(test_without_spool_or_lock_nothing_counts_as_filed),
		WITH_DIRS(test_with_a_full_disk_records_stay_in_the_spool),
		WITH_DIRS(test_what_was_saved_stays_when_the_disk_becomes_full),
		WITH_DIRS(test_what_was_saved_stays_until_the_record_is_copied),
		WITH_DIRS(test_what_was_saved_stays_when_another_incident_opens),
		WITH_DIRS(test_a_start_where_run_is_full),
		WITH_DIRS(test_what_is_no_spool_is_noticed_at_start),
		WITH_DIRS(test_the_spool_has_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
