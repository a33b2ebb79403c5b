/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* File systems: which are asked, what their numbers mean, and a thread that hangs. */
#include "test_watch_tree.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <sys/stat.h>
#include <time.h>

#include "util/cleanup.h"
#include "watch/fs_usage.h"
#include "watch/rules.h"

/*
 * In place of that of the C library: it does not answer for the directories in `hanging`. A thread
 * that hangs goes on when its bit is cleared.
 */
static unsigned int hanging;

#define DIRS_MAX 8
static ino_t dirs[DIRS_MAX];

int fstatvfs(int fd, struct statvfs *st)
{
	struct stat dir;

	assert(fstat(fd, &dir) == 0);
	for (unsigned int i = 0; i < DIRS_MAX; i++)
		while (dir.st_ino == dirs[i] &&
			(__atomic_load_n(&hanging, __ATOMIC_ACQUIRE) & 1U << i))
			usleep(1000);
	*st = (struct statvfs){ .f_frsize = 4096, .f_blocks = 100, .f_bfree = 40, .f_bavail = 40 };
	return 0;
}

static void hang(unsigned int dir, bool hangs)
{
	if (hangs)
		__atomic_or_fetch(&hanging, 1U << dir, __ATOMIC_RELEASE);
	else
		__atomic_and_fetch(&hanging, ~(1U << dir), __ATOMIC_RELEASE);
}

static int parse(const char *line, struct fs_usage_mount *ret_mount)
{
	return fs_usage_parse_mount((struct cursor){ line, line + strlen(line) }, ret_mount);
}

static void test_which_mounts(void **state)
{
	static const struct {
		const char *line;
		int r;
	} cases[] = {
		{ "36 35 98:0 / /mnt rw,noatime master:1 - ext4 /dev/sda1 rw", 0 },
		/* Read-only here, but written to elsewhere: a service under ProtectSystem=. */
		{ "36 35 98:0 / /mnt ro,noatime - ext4 /dev/sda1 rw,errors=continue", 0 },
		{ "36 35 98:0 / /mnt rw - ext4 /dev/sda1 ro,errors=continue", -ENODEV },
		{ "36 35 7:3 / /snap/core/1 ro - squashfs /dev/loop3 ro", -ENODEV },
		{ "36 35 0:41 /sub /mnt rw - btrfs /dev/sdb1 rw,subvol=/sub", 0 },
		{ "36 35 0:42 / /tank rw - zfs tank rw,xattr", 0 },
		{ "36 35 8:2 / /win rw - fuseblk /dev/sda2 rw", -ENODEV },
		{ "36 35 0:43 / /home rw - fuse.sshfs host: rw", -ENODEV },
		{ "36 35 0:44 / /nfs rw - nfs4 host:/export rw", -ENODEV },
		{ "36 35 0:45 / /run rw - tmpfs tmpfs rw", -ENODEV },
		{ "36 35 0:46 / /merged rw - overlay overlay rw", -ENODEV },
		{ "36 35 98:0 / /mnt rw - ext4 /dev/sda1", -ENODEV },
		{ "36 35 98:0 / /mnt rw", -ENODEV },
		{ "36 35 98 / /mnt rw - ext4 /dev/sda1 rw", -EINVAL },
		{ "36 35 98:0 /", -EINVAL },
		{ "", -EINVAL },
	};
	struct fs_usage_mount mount;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(parse(cases[i].line, &mount), cases[i].r);
	assert_int_equal(parse("77 35 8:17 / /a\\040b\\134c rw - xfs /dev/sdb1 rw", &mount), 0);
	assert_string_equal(mount.point, "/a b\\c");
	assert_int_equal(mount.id, 77);
	assert_int_equal(mount.major, 8);
	assert_int_equal(mount.minor, 17);
}

static void test_long_mount_point(void **state)
{
	char line[400];
	struct fs_usage_mount mount;

	(void)state;
	for (int len = 255; len <= 256; len++) {
		snprintf(line, sizeof(line), "1 1 8:1 / /%0*d rw - ext4 /dev/sda rw", len - 1, 0);
		assert_int_equal(parse(line, &mount), len == 255 ? 0 : -ENAMETOOLONG);
	}
}

static void assert_pct(double value, double expected)
{
	assert_float_equal((float)value, (float)expected, 1e-3f);
}

/* 1000 blocks, 50 of them only for root: df(1) calls 931 of 950 used 98 %. */
static void test_usage(void **state)
{
	struct statvfs st = { .f_frsize = 4096,
		.f_blocks = 1000,
		.f_bfree = 69,
		.f_bavail = 19,
		.f_files = 200,
		.f_ffree = 50 };
	struct record_file_system fs = { .dev = { .major = 8 } };

	(void)state;
	fs_usage_set(&fs, &st);
	assert_pct(fs.used_pct, 98);
	assert_pct(fs.inodes_used_pct, 75);
	assert_int_equal(fs.free_bytes, 19 * 4096);
	st.f_bavail = 0;
	fs_usage_set(&fs, &st);
	assert_pct(fs.used_pct, 100);
	st = (struct statvfs){ .f_frsize = 4096 };
	fs_usage_set(&fs, &st);
	assert_true(isnan(fs.used_pct) && isnan(fs.inodes_used_pct));
}

/* A process 1 whose mounts are two: the tree's own file system, and one that another lies over. */
static void put_mounts(struct tree *t)
{
	char link[PATH_MAX + 32];
	struct statx stx;

	assert_int_equal(statx(AT_FDCWD, t->root, 0, STATX_MNT_ID, &stx), 0);
	tree_put(t, "proc/1/mountinfo",
		"%llu 1 8:1 / %s rw - ext4 /dev/sda1 rw\n"
		"%llu 1 8:1 / %s/proc rw - ext4 /dev/sda1 rw\n"
		"%llu 1 8:2 / %s rw - ext4 /dev/sda2 rw\n"
		"%llu 1 0:9 / %s rw - tmpfs tmpfs rw\n"
		"%llu 1 8:3 / /nowhere rw - ext4 /dev/sda3 rw\n",
		(unsigned long long)stx.stx_mnt_id, t->root, (unsigned long long)stx.stx_mnt_id,
		t->root, (unsigned long long)stx.stx_mnt_id + 1000, t->root,
		(unsigned long long)stx.stx_mnt_id, t->root, (unsigned long long)stx.stx_mnt_id);
	snprintf(link, sizeof(link), "%s/proc/1/root", t->root);
	assert_int_equal(symlink("/", link), 0);
}

static int read_all(int procfs_fd, struct fs_usage_question *q, const char *pattern)
{
	q->patterns.count = 1;
	snprintf(q->patterns.items[0], sizeof(q->patterns.items[0]), "%s", pattern);
	return fs_usage_read(procfs_fd, q);
}

static void test_read(void **state)
{
	_cleanup_free_ struct fs_usage_question *q = calloc(1, sizeof(*q));
	const struct fs_usage_table *table = &q->table;
	struct tree *t = *state;
	_cleanup_close_ int procfs_fd = open(t->procfs, O_PATH | O_CLOEXEC);

	assert_int_equal(read_all(procfs_fd, q, "*"), -ENOENT);
	put_mounts(t);
	assert_int_equal(read_all(procfs_fd, q, "*"), 0);
	assert_int_equal(table->count, 1);
	assert_int_equal(table->list[0].dev.major, 8);
	assert_int_equal(table->list[0].dev.minor, 1);
	assert_string_equal(table->list[0].mount, t->root);
	assert_pct(table->list[0].used_pct, 60);
	assert_int_equal(read_all(procfs_fd, q, "/elsewhere*"), 0);
	assert_int_equal(table->count, 0);
}

/* Samples, a second of the watchdog's clock each, until the condition holds. */
static const struct record_file_system *sample_until(struct tree *t, struct watch *w,
	bool (*holds)(const struct record_file_system *))
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	for (unsigned int i = 0; i < 10000; i++) {
		uint32_t serial;
		const struct record_file_system *fs;

		tree_sample(t, w, 1000);
		fs = watch_filesystem_in_slot(w, 0, &serial);
		if (holds(fs))
			return fs;
		nanosleep(&pause, NULL);
	}
	fail_msg("it never holds");
	return NULL;
}

static bool is_there(const struct record_file_system *fs)
{
	return fs && !isnan(fs->used_pct);
}

static bool is_unknown(const struct record_file_system *fs)
{
	return fs && isnan(fs->used_pct);
}

static bool is_gone(const struct record_file_system *fs)
{
	return !fs;
}

static const struct config_list all = { 1, { "*" } };

static struct watch *watch_filesystems(struct tree *t)
{
	struct watch_options options = tree_options(t);
	struct watch *w;

	options.filesystem = &all;
	assert_int_equal(watch_new(&options, &w), 0);
	return w;
}

static void test_samples_have_it(void **state)
{
	struct tree *t = *state;
	const struct record_limits *s;
	struct watch *w;

	put_mounts(t);
	w = watch_filesystems(t);
	sample_until(t, w, is_there);
	s = watch_limits(w);
	assert_int_equal(s->file_systems_count, 1);
	assert_string_equal(s->file_systems[0].mount, t->root);
	/* Unmounted: gone within two periods. */
	tree_put(t, "proc/1/mountinfo", "%s", "");
	sample_until(t, w, is_gone);
	assert_int_equal(watch_limits(w)->file_systems_count, 0);
	watch_free(w);
}

static unsigned long count_threads(void)
{
	struct stat st;

	assert_int_equal(stat("/proc/self/task", &st), 0);
	return st.st_nlink - 2;
}

/* A pipe that nobody writes to: open(2) waits as a file system that hangs does. */
static void test_thread_that_hangs(void **state)
{
	struct tree *t = *state;
	char path[PATH_MAX + 32];
	struct watch_options options;
	const struct record_limits *s;
	unsigned long threads;
	struct watch *w;
	int fd;

	put_mounts(t);
	w = watch_filesystems(t);
	sample_until(t, w, is_there);
	snprintf(path, sizeof(path), "%s/proc/1/mountinfo", t->root);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	sample_until(t, w, is_unknown);
	s = watch_limits(w);
	assert_int_equal(s->file_systems_count, 1);
	assert_true(
		isnan(s->file_systems[0].used_pct) && isnan(s->file_systems[0].inodes_used_pct));
	/* A reload leaves no further thread behind. */
	options = tree_options(t);
	options.filesystem = &all;
	threads = count_threads();
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(watch_reload(w, &options), 0);
	assert_int_equal(count_threads(), threads);
	/* Neither does the end wait for it. */
	watch_free(w);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	close(fd);
}

/* `count` file systems, each in a directory of its own. */
static void put_directories(struct tree *t, unsigned int count)
{
	char lines[DIRS_MAX * (PATH_MAX + 64)], path[PATH_MAX + 16], link[PATH_MAX + 32];
	size_t len = 0;
	struct statx stx;
	struct stat st;

	for (unsigned int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/fs%u", t->root, i);
		assert_int_equal(mkdir(path, 0700), 0);
		assert_int_equal(stat(path, &st), 0);
		dirs[i] = st.st_ino;
		assert_int_equal(statx(AT_FDCWD, path, 0, STATX_MNT_ID, &stx), 0);
		len += (size_t)snprintf(lines + len, sizeof(lines) - len,
			"%llu 1 8:%u / %s rw - ext4 /dev/sda%u rw\n",
			(unsigned long long)stx.stx_mnt_id, i, path, i);
	}
	tree_put(t, "proc/1/mountinfo", "%s", lines);
	snprintf(link, sizeof(link), "%s/proc/1/root", t->root);
	assert_int_equal(symlink("/", link), 0);
}

/* By its directory; NULL: it is not in the samples. */
static const struct record_file_system *find(const struct watch *w, unsigned int dir)
{
	for (unsigned int slot = 0; slot < WATCH_FILESYSTEMS_MAX; slot++) {
		uint32_t serial;
		const struct record_file_system *fs = watch_filesystem_in_slot(w, slot, &serial);

		if (fs && fs->dev.minor == dir)
			return fs;
	}
	return NULL;
}

/* Samples until exactly the file systems of `answering` have numbers, of `count`. */
static void sample_until_answering(struct tree *t, struct watch *w, bool armed,
	unsigned int answering, unsigned int count)
{
	for (unsigned int i = 0; i < 10000; i++) {
		unsigned int seen = 0, there = 0;

		t->now_ns += NSEC_PER_SEC;
		assert_int_equal(watch_take_sample(w, armed), 0);
		for (unsigned int dir = 0; dir < count; dir++) {
			const struct record_file_system *fs = find(w, dir);

			there += fs != NULL;
			seen |= (unsigned int)is_there(fs) << dir;
		}
		if (there == count && seen == answering)
			return;
		usleep(5000);
	}
	fail_msg("the file systems that answer are never 0x%x", answering);
}

static void test_one_that_hangs_is_skipped(void **state)
{
	struct tree *t = *state;
	uint32_t serial, same;
	struct watch *w;

	put_directories(t, 3);
	w = watch_filesystems(t);
	sample_until_answering(t, w, false, 7, 3);
	watch_filesystem_in_slot(w, 0, &serial);
	hang(0, true);
	sample_until_answering(t, w, false, 6, 3);
	/* The others are not forgotten, and it keeps its slot. */
	for (unsigned int i = 0; i < 200; i++)
		sample_until_answering(t, w, false, 6, 3);
	hang(2, true);
	sample_until_answering(t, w, false, 2, 3);
	hang(0, false);
	sample_until_answering(t, w, false, 3, 3);
	watch_filesystem_in_slot(w, 0, &same);
	assert_int_equal(same, serial);
	hang(2, false);
	sample_until_answering(t, w, false, 7, 3);
	watch_free(w);
}

/* A thread is only started while no incident is open. */
static void test_none_is_replaced_in_an_incident(void **state)
{
	struct tree *t = *state;
	struct watch *w;

	put_directories(t, 2);
	w = watch_filesystems(t);
	sample_until_answering(t, w, true, 3, 2);
	hang(0, true);
	sample_until_answering(t, w, true, 0, 2);
	for (unsigned int i = 0; i < 100; i++)
		sample_until_answering(t, w, true, 0, 2);
	sample_until_answering(t, w, false, 2, 2);
	hang(0, false);
	watch_free(w);
}

/* With more than there are places for threads that hang, nothing is known until one answers. */
static void test_too_many_hang(void **state)
{
	struct tree *t = *state;
	struct watch *w;

	put_directories(t, 6);
	w = watch_filesystems(t);
	sample_until_answering(t, w, false, 0x3f, 6);
	for (unsigned int dir = 0; dir < 4; dir++)
		hang(dir, true);
	sample_until_answering(t, w, false, 0x30, 6);
	hang(4, true);
	sample_until_answering(t, w, false, 0, 6);
	hang(1, false);
	sample_until_answering(t, w, false, 0x22, 6);
	for (unsigned int dir = 0; dir < 5; dir++)
		hang(dir, false);
	sample_until_answering(t, w, false, 0x3f, 6);
	watch_free(w);
}

static void test_rules(void **state)
{
	struct config_rule config[CONFIG_RULE_COUNT] = { 0 };
	struct rules_firing firings[4], firing;
	struct tree *t = *state;
	struct rules *rules;
	struct watch *w;

	put_mounts(t);
	/* Over whatever the file system of the test is. */
	config[CONFIG_RULE_space] = (struct config_rule){ true, -1, -1, 1, 0 };
	assert_int_equal(rules_new(config, &rules), 0);
	w = watch_filesystems(t);
	sample_until(t, w, is_there);
	assert_int_equal(rules_evaluate(rules, w, t->now_ns, firings, 4), 1);
	assert_int_equal(firings[0].scope, RULES_SCOPE_filesystem);
	assert_string_equal(firings[0].subject, t->root);
	assert_string_equal(firings[0].device, "");
	assert_string_equal(firings[0].unit, "%");
	assert_true(rules_first_active(rules, w, 0, 0, &firing));
	assert_string_equal(firing.subject, t->root);
	rules_acknowledge(rules, w, "first");
	/* Full for days: no second incident, and the first is not kept open. */
	for (unsigned int i = 0; i < 200; i++) {
		sample_until(t, w, is_there);
		assert_int_equal(rules_evaluate(rules, w, t->now_ns, firings, 4), 0);
	}
	assert_false(rules_first_active(rules, w, 0, 0, &firing));
	assert_int_equal(rules_active(rules), 1);
	assert_int_equal(rules_holding(rules), 0);
	config[CONFIG_RULE_space].clear = 101;
	config[CONFIG_RULE_space].set = 101;
	rules_reload(rules, config);
	rules_evaluate(rules, w, t->now_ns, firings, 4);
	assert_int_equal(rules_active(rules), 0);
	watch_free(w);
	rules_free(rules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_which_mounts),
		cmocka_unit_test(test_long_mount_point),
		cmocka_unit_test(test_usage),
		tree_test(test_read),
		tree_test(test_samples_have_it),
		tree_test(test_thread_that_hangs),
		tree_test(test_one_that_hangs_is_skipped),
		tree_test(test_none_is_replaced_in_an_incident),
		tree_test(test_too_many_hang),
		tree_test(test_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
