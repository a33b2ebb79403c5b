/* SPDX-License-Identifier: GPL-2.0-or-later */
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

static void test_with_a_full_disk_records_stay_in_the_spool(void **state)
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
	/* No incomplete copy is left there. */
	assert_int_equal(dirs_count(d->config.record.dir, ""), 1);
	snprintf(path, sizeof(path), "%s/filler", d->config.record.dir);
	assert_int_equal(unlink(path), 0);
	dirs_write_incident(d, sinks, 1, 1);
	dirs_flush(sinks);
	assert_int_equal(dirs_count(d->config.record.dir, ".jsonl"), 2);
	assert_int_equal(dirs_summary(d->config.record.dir, FIRST_ID).counts.records, 102);
	sinks_free(sinks);
	umount2(d->config.record.dir, MNT_DETACH);
}

static void test_a_full_spool_is_noticed_at_start(void **state)
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
		WITH_DIRS(test_with_a_full_disk_records_stay_in_the_spool),
		WITH_DIRS(test_a_full_spool_is_noticed_at_start),
		WITH_DIRS(test_the_spool_has_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
