/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* I/O limits of control groups: what they are and what was used of them. */
#include "test_watch_tree.h"

#include <errno.h>

#include "util/cleanup.h"
#include "watch/io_limits.h"

#define UNIT "/system.slice/mariadb.service"

static int parse(const char *line, const char *const *keys, uint64_t values[static 4])
{
	struct cursor c = { line, line + strlen(line) };
	struct cgroup_io_values v;
	uint32_t major = 0, minor = 0;
	int r = cgroup_parse_io_line(c, keys, &major, &minor, &v);

	if (r < 0)
		return r;
	assert_int_equal(major, 8);
	assert_int_equal(minor, 16);
	memcpy(values, v.of + 1, 4 * sizeof(*values));
	return 0;
}

static void test_lines(void **state)
{
	uint64_t v[4];

	(void)state;
	assert_int_equal(parse("8:16 rbps=1048576 wbps=max riops=max wiops=400", cgroup_io_max_keys,
				 v),
		0);
	assert_int_equal(v[0], 1048576);
	assert_int_equal(v[1], 0);
	assert_int_equal(v[2], 0);
	assert_int_equal(v[3], 400);
	assert_int_equal(parse("8:16 rbytes=5 wbytes=6 rios=7 wios=8 dbytes=9 dios=10 x= =3",
				 cgroup_io_stat_keys, v),
		0);
	assert_int_equal(v[0], 5);
	assert_int_equal(v[1], 6);
	assert_int_equal(v[2], 7);
	assert_int_equal(v[3], 8);
	assert_int_equal(parse("8:16", cgroup_io_max_keys, v), 0);
	assert_int_equal(v[0], 0);
	assert_int_equal(parse("8 rbps=1", cgroup_io_max_keys, v), -EINVAL);
	assert_int_equal(parse("8:", cgroup_io_max_keys, v), -EINVAL);
	assert_int_equal(parse("", cgroup_io_max_keys, v), -EINVAL);
}

static void put(struct tree *t, const char *group, const char *file, const char *text)
{
	char name[256];

	snprintf(name, sizeof(name), "sys/fs/cgroup%s/%s", group, file);
	tree_put(t, name, "%s", text);
}

static void put_disk(struct tree *t, unsigned int reads, unsigned int sectors)
{
	tree_put(t, "proc/diskstats", "8 16 sdb %u 0 %u 0 0 0 0 0 0 0 0\n", reads, sectors);
}

static struct watch *watch_server(struct tree *t, const char *groups)
{
	tree_list_add(&t->process, "mariadbd");
	tree_put_thread(t, 10, 10, "mariadbd", 'S', 500, 9);
	tree_put(t, "proc/10/cgroup", "%s", groups);
	put_disk(t, 0, 0);
	return tree_watch(t);
}

static const struct record_limits *next(struct tree *t, struct watch *w)
{
	return tree_limits(t, w);
}

/* The limit of a slice is for all units in it, and the one that most was used of comes first. */
static void test_version_2(void **state)
{
	struct tree *t = *state;
	const struct record_limits *l;
	struct watch *w;

	put(t, "/system.slice", "io.max", "8:16 rbps=10485760 wbps=max riops=max wiops=max\n");
	put(t, "/system.slice", "io.stat", "8:16 rbytes=0 wbytes=0 rios=0 wios=0\n");
	put(t, UNIT, "io.max", "8:16 rbps=max wbps=max riops=400 wiops=100\n");
	put(t, UNIT, "io.stat", "8:16 rbytes=900000 wbytes=0 rios=70000 wios=0 dbytes=0 dios=0\n");
	w = watch_server(t, "0::" UNIT "\n");
	/* What was done before the first look is not known. */
	assert_int_equal(next(t, w)->io_count, 0);
	put(t, UNIT, "io.stat", "8:16 rbytes=900000 wbytes=0 rios=70396 wios=2 dbytes=0 dios=0\n");
	put(t, "/system.slice", "io.stat", "8:16 rbytes=5242880 wbytes=0 rios=396 wios=2\n");
	l = next(t, w);
	assert_int_equal(l->io_count, 2);
	assert_string_equal(l->io[0].path, UNIT);
	assert_int_equal(l->io[0].kind, RECORD_IO_LIMIT_reads);
	assert_int_equal(l->io[0].per_s, 400);
	assert_float_equal((float)l->io[0].used_pct, 99, 1e-2f);
	assert_string_equal(l->io[0].dev_name, "sdb");
	assert_string_equal(l->io[1].path, "/system.slice");
	assert_int_equal(l->io[1].kind, RECORD_IO_LIMIT_read_bytes);
	assert_float_equal((float)l->io[1].used_pct, 50, 1e-2f);
	/* The limits are changed and removed while the service runs. */
	put(t, UNIT, "io.max", "8:16 rbps=max wbps=max riops=800 wiops=max\n");
	put(t, "/system.slice", "io.max", "");
	put(t, UNIT, "io.stat", "8:16 rbytes=900000 wbytes=0 rios=70796 wios=2 dbytes=0 dios=0\n");
	l = next(t, w);
	assert_int_equal(l->io_count, 1);
	assert_int_equal(l->io[0].per_s, 800);
	assert_float_equal((float)l->io[0].used_pct, 50, 1e-2f);
	/* What was used while there were no counters is not known, nor what the first ones tell. */
	put(t, UNIT, "io.stat", "");
	assert_int_equal(next(t, w)->io_count, 0);
	put(t, UNIT, "io.stat", "8:16 rbytes=900000 wbytes=0 rios=71596 wios=2 dbytes=0 dios=0\n");
	assert_int_equal(next(t, w)->io_count, 0);
	put(t, UNIT, "io.max", "");
	assert_int_equal(next(t, w)->io_count, 0);
	watch_free(w);
}

/* In version 1 the limit of a slice is not that of its units. */
static void test_version_1(void **state)
{
	static const char *const files[] = { "read_bps", "write_bps", "read_iops", "write_iops" };
	struct tree *t = *state;
	const struct record_limits *l;
	struct watch *w;

	for (unsigned int i = 0; i < ARRAY_SIZE(files); i++) {
		char name[64];

		snprintf(name, sizeof(name), "blkio.throttle.%s_device", files[i]);
		put(t, "/blkio" UNIT, name, i == 0 ? "8:16 1048576\n" : "");
		put(t, "/blkio/system.slice", name, "8:16 1\n");
	}
	w = watch_server(t, "7:blkio:" UNIT "\n4:memory:/other\n0::/\n");
	tree_sample(t, w, 1000);
	put_disk(t, 256, 2048);
	tree_sample(t, w, 1000);
	l = watch_limits(w);
	assert_int_equal(l->io_count, 1);
	assert_string_equal(l->io[0].path, UNIT);
	assert_int_equal(l->io[0].per_s, 1048576);
	assert_float_equal((float)l->io[0].used_pct, 100, 1e-2f);
	watch_free(w);
}

/* A process outside any group, a group without the controller, and one that was removed. */
static void test_no_limits(void **state)
{
	struct tree *t = *state;
	struct watch *w;

	put(t, "/a", "io.max", "8:16 rbps=1 wbps=max riops=max wiops=max\nnonsense\n8:x rbps=1\n");
	put(t, "/a", "io.stat", "8:16 rbytes=0\n");
	put(t, "/without", "cgroup.procs", "");
	tree_put_thread(t, 11, 11, "mariadbd", 'S', 500, 9);
	tree_put(t, "proc/11/cgroup", "0::/\n");
	tree_put_thread(t, 12, 12, "mariadbd", 'S', 500, 9);
	tree_put(t, "proc/12/cgroup", "0::/without\n");
	tree_put_thread(t, 13, 13, "mariadbd", 'S', 500, 9);
	tree_put(t, "proc/13/cgroup", "0::/../outside\n");
	w = watch_server(t, "0::/a\n");
	next(t, w);
	put(t, "/a", "io.stat", "8:16 rbytes=2\n");
	assert_int_equal(next(t, w)->io_count, 1);
	assert_float_equal((float)watch_limits(w)->io[0].used_pct, 200, 1e-2f);
	watch_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		tree_test(test_version_2),
		tree_test(test_version_1),
		tree_test(test_no_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
