/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Memory limits: whose, how much of them is held, and what fires. */
#include "test_watch_tree.h"

#include <errno.h>
#include <math.h>

#include "watch/cgroup_path.h"
#include "watch/cgroups.h"
#include "watch/rules.h"

#define MIB (1ULL << 20)
#define UNIT "/system.slice/mariadb.service"

static void assert_path(const char *text, const char *expected, bool expected_v1)
{
	struct cgroup_path path = { .v1 = !expected_v1 };
	int r = cgroup_path_parse(text, strlen(text), "memory", -1, &path);

	assert_int_equal(r, expected ? 0 : -ENOENT);
	if (!expected)
		return;
	assert_int_equal(path.path.end - path.path.p, strlen(expected));
	assert_memory_equal(path.path.p, expected, strlen(expected));
	assert_int_equal(path.v1, expected_v1);
}

static void test_path(void **state)
{
	(void)state;
	assert_path("0::" UNIT "\n", UNIT, false);
	assert_path("0::/", "/", false);
	assert_path("9:name=systemd:/a\n4:cpu,memory:/b:c\n0::/d\n", "/b:c", true);
	assert_path("4:memoryless:/b\n0::/d\n", "/d", false);
	assert_path("9:name=systemd:/a\n", NULL, false);
	assert_path("garbage\n0:\n0::\n0::relative\n:", NULL, false);
	assert_path("", NULL, false);
}

static void test_reclaimable(void **state)
{
	static const char v2[] = "anon 900\nfile 500\nshmem 100\nactive_file 30\n"
				 "inactive_file 4\nslab_reclaimable 5\nslab_unreclaimable 77\n";
	static const char v1[] = "cache 5\nactive_file 1\ninactive_file 2\ntotal_cache 9\n"
				 "total_active_file 300\ntotal_inactive_file 40\n";

	(void)state;
	assert_int_equal(cgroup_parse_reclaimable(v2, sizeof(v2) - 1), 39);
	assert_int_equal(cgroup_parse_reclaimable(v1, sizeof(v1) - 1), 340);
	/* Half a line is no number, and neither is a word. */
	assert_int_equal(cgroup_parse_reclaimable("active_file", 11), 0);
	assert_int_equal(cgroup_parse_reclaimable("active_file x\n", 14), 0);
	assert_int_equal(cgroup_parse_reclaimable("", 0), 0);
}

static void test_events(void **state)
{
	static const char v2[] = "low 7\nhigh 30\nmax 4\noom 9\noom_kill 2\noom_group_kill 1\n";
	struct cgroups_counts counts = { 0 };

	(void)state;
	cgroups_parse_events(v2, sizeof(v2) - 1, &counts);
	assert_int_equal(counts.limit_hits, 34);
	assert_int_equal(counts.oom_kills, 2);
	/* memory.failcnt of version 1 */
	cgroups_parse_events("126\n", 4, &counts);
	assert_int_equal(counts.limit_hits, 126);
	assert_int_equal(counts.oom_kills, 0);
	/* memory.oom_control of version 1 */
	cgroups_parse_events("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", 42, &counts);
	assert_int_equal(counts.limit_hits, 0);
	assert_int_equal(counts.oom_kills, 3);
	cgroups_parse_events("max\nhigh x\n", 11, &counts);
	assert_int_equal(counts.limit_hits, 0);
}

static void take_refaults(const char *text, struct refaults *refaults)
{
	struct cursor c = { text, text + strlen(text) }, line;

	*refaults = (struct refaults){ 0 };
	while (cursor_line(&c, &line))
		refaults_take_line(line, refaults);
}

static void test_refaults(void **state)
{
	struct refaults r, before, since;

	(void)state;
	take_refaults(
		"nr_free_pages 9\nworkingset_nodes 3\nworkingset_refault_anon 1\n"
		"workingset_refault_file 20\nworkingset_restore_anon 3\n"
		"workingset_restore_file 4\nworkingset_activate_file 99\npswpin 5\npswpout 6\n"
		"pgmajfault 7\npgsteal_kswapd 8\npgsteal_direct 9\npgsteal_khugepaged 99\n",
		&r);
	assert_int_equal(r.anon, 1);
	assert_int_equal(r.file, 20);
	assert_int_equal(r.anon_active, 3);
	assert_int_equal(r.file_active, 4);
	assert_int_equal(r.swapped_in, 5);
	assert_int_equal(r.swapped_out, 6);
	assert_int_equal(r.major_faults, 7);
	assert_int_equal(r.reclaimed_kswapd, 8);
	assert_int_equal(r.reclaimed_direct, 9);
	/* Version 1: with the children. */
	take_refaults("workingset_refault_file 1\npgmajfault 2\ntotal_workingset_refault_file 30\n"
		      "total_pgmajfault 40\n",
		&before);
	assert_int_equal(before.file, 30);
	assert_int_equal(before.major_faults, 40);
	since = refaults_since(&r, &before);
	assert_int_equal(since.file, 0);
	assert_int_equal(since.swapped_in, 5);
	take_refaults(
		"workingset_refault_file\nworkingset_refault_file x\nworkingset_refault_files 9\n",
		&r);
	assert_int_equal(r.file, 0);
}

static void put_limit(struct tree *t, const char *path, const char *limit)
{
	char name[256];

	snprintf(name, sizeof(name), "sys/fs/cgroup%s/memory.max", path);
	tree_put(t, name, "%s\n", limit);
}

static void put_usage(struct tree *t, const char *path, uint64_t current, uint64_t file)
{
	char name[256];

	snprintf(name, sizeof(name), "sys/fs/cgroup%s/memory.current", path);
	tree_put(t, name, "%llu\n", (unsigned long long)current);
	snprintf(name, sizeof(name), "sys/fs/cgroup%s/memory.stat", path);
	tree_put(t, name, "anon 1\nactive_file %llu\ninactive_file 0\n", (unsigned long long)file);
}

static void put_counts(struct tree *t, const char *path, unsigned int pages, unsigned int hits)
{
	char name[256];

	snprintf(name, sizeof(name), "sys/fs/cgroup%s/memory.stat", path);
	tree_put(t, name,
		"anon 1\nactive_file 0\nworkingset_refault_anon %u\nworkingset_refault_file %u\n"
		"workingset_restore_file %u\npgmajfault %u\n",
		pages / 10, pages, pages / 2, pages / 5);
	snprintf(name, sizeof(name), "sys/fs/cgroup%s/memory.events.local", path);
	tree_put(t, name, "low 0\nhigh 0\nmax %u\noom 0\noom_kill %u\n", hits, hits / 100);
}

static const struct record_limits *sample_limits(struct tree *t, struct watch *w)
{
	return tree_limits(t, w);
}

static struct watch *watch_unit(struct tree *t)
{
	tree_list_add(&t->process, "mariadbd");
	tree_put_thread(t, 10, 10, "mariadbd", 'S', 500, 9);
	tree_put(t, "proc/10/cgroup", "0::" UNIT "\n");
	put_limit(t, "/system.slice", "max");
	put_usage(t, "/system.slice", 0, 0);
	put_limit(t, UNIT, "1073741824");
	put_usage(t, UNIT, 1000 * MIB, 500 * MIB);
	return tree_watch(t);
}

static uint64_t inode_of(const struct tree *t, const char *name)
{
	char path[2 * PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", t->root, name);
	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

static void test_sample(void **state)
{
	struct tree *t = *state;
	struct watch *w = watch_unit(t);
	const struct record_limits *s = sample_limits(t, w);

	/* The slice above it has no limit. */
	assert_int_equal(s->cgroups_count, 1);
	assert_string_equal(s->cgroups[0].path, UNIT);
	assert_int_equal(s->cgroups[0].id, inode_of(t, "sys/fs/cgroup" UNIT));
	assert_int_equal(s->cgroups[0].limit_bytes, 1024 * MIB);
	assert_int_equal(s->cgroups[0].current_bytes, 1000 * MIB);
	assert_int_equal(s->cgroups[0].held_bytes, 500 * MIB);
	assert_float_equal((float)s->cgroups[0].used_pct, 48.828f, 1e-2f);
	assert_true(isnan(s->cgroups[0].growth_pct_per_min));
	/* Counted a moment later than the sum. */
	put_usage(t, UNIT, 10, 11);
	assert_int_equal(sample_limits(t, w)->cgroups[0].held_bytes, 0);
	/* A limit that comes, is nearer, and goes. */
	put_limit(t, "/system.slice", "1000");
	put_usage(t, "/system.slice", 900, 0);
	s = sample_limits(t, w);
	assert_int_equal(s->cgroups_count, 2);
	assert_string_equal(s->cgroups[0].path, "/system.slice");
	put_limit(t, "/system.slice", "max");
	put_limit(t, UNIT, "max");
	assert_int_equal(sample_limits(t, w)->cgroups_count, 0);
	watch_free(w);
}

/* Where version 2 is mounted, on a host that has a hierarchy of version 1 as well. */
static void test_both_versions(void **state)
{
	struct tree *t = *state;
	const struct record_limits *s;
	struct watch *w;

	tree_list_add(&t->process, "mariadbd");
	tree_put_thread(t, 10, 10, "mariadbd", 'S', 500, 9);
	tree_put(t, "proc/10/cgroup", "1:name=systemd:/\n0::" UNIT "\n");
	put_limit(t, "/unified" UNIT, "1000");
	put_usage(t, "/unified" UNIT, 900, 0);
	w = tree_watch(t);
	s = sample_limits(t, w);
	assert_int_equal(s->cgroups_count, 1);
	assert_string_equal(s->cgroups[0].path, UNIT);
	assert_int_equal(s->cgroups[0].id, inode_of(t, "sys/fs/cgroup/unified" UNIT));
	watch_free(w);

	/* It is the root, and the other one is mounted somewhere else. */
	tree_put(t, "sys/fs/cgroup/cgroup.procs", "1\n");
	put_limit(t, UNIT, "1000");
	put_usage(t, UNIT, 900, 0);
	w = tree_watch(t);
	s = sample_limits(t, w);
	assert_int_equal(s->cgroups_count, 1);
	assert_int_equal(s->cgroups[0].id, inode_of(t, "sys/fs/cgroup" UNIT));
	watch_free(w);
}

static void test_v1(void **state)
{
	struct tree *t = *state;
	struct watch *w;
	const struct record_limits *s;

	tree_list_add(&t->process, "mariadbd");
	tree_put_thread(t, 10, 10, "mariadbd", 'S', 500, 9);
	tree_put(t, "proc/10/cgroup", "4:memory:/db\n0::/\n");
	tree_put(t, "sys/fs/cgroup/memory/db/memory.limit_in_bytes", "9223372036854771712\n");
	tree_put(t, "sys/fs/cgroup/memory/db/memory.usage_in_bytes", "800\n");
	tree_put(t, "sys/fs/cgroup/memory/db/memory.stat", "total_active_file 300\n");
	w = tree_watch(t);
	assert_int_equal(sample_limits(t, w)->cgroups_count, 0);
	tree_put(t, "sys/fs/cgroup/memory/db/memory.limit_in_bytes", "1000\n");
	tree_put(t, "sys/fs/cgroup/memory/db/memory.failcnt", "7\n");
	/* Without events it is not known whether it is at its limit. */
	s = sample_limits(t, w);
	assert_int_equal(s->cgroups_count, 1);
	assert_int_equal(s->cgroups[0].id, 0);
	assert_float_equal((float)s->cgroups[0].used_pct, 50, 1e-3f);
	assert_int_equal(s->cgroups[0].limit_hits, 0);
	watch_free(w);
	tree_put(t, "sys/fs/cgroup/memory/db/memory.oom_control", "under_oom 0\noom_kill 4\n");
	w = tree_watch(t);
	assert_int_equal(sample_limits(t, w)->cgroups[0].oom_kills, 0);
	tree_put(t, "sys/fs/cgroup/memory/db/memory.oom_control", "under_oom 0\noom_kill 6\n");
	tree_put(t, "sys/fs/cgroup/memory/db/memory.failcnt", "20\n");
	tree_put(t, "sys/fs/cgroup/memory/db/memory.stat",
		"workingset_refault_file 1\ntotal_active_file 300\ntotal_workingset_refault_file 30\n");
	tree_sample(t, w, 1000);
	assert_int_equal(watch_limits(w)->cgroups[0].oom_kills, 2);
	tree_sample(t, w, 0);
	s = watch_limits(w);
	assert_int_equal(s->cgroups[0].limit_hits, 13);
	assert_int_equal(s->cgroups[0].reread_bytes, 30 * sysconf(_SC_PAGESIZE));
	tree_put(t, "sys/fs/cgroup/memory/db/memory.failcnt", "0\n");
	assert_int_equal(sample_limits(t, w)->cgroups[0].limit_hits, 0);
	watch_free(w);
}

static void test_limit_is_the_lower_one(void **state)
{
	struct tree *t = *state;
	struct watch *w;

	tree_put(t, "sys/fs/cgroup" UNIT "/memory.high", "536870912\n");
	w = watch_unit(t);
	assert_int_equal(sample_limits(t, w)->cgroups[0].limit_bytes, 512 * MIB);
	put_limit(t, UNIT, "max");
	assert_int_equal(sample_limits(t, w)->cgroups[0].limit_bytes, 512 * MIB);
	tree_put(t, "sys/fs/cgroup" UNIT "/memory.high", "max\n");
	assert_int_equal(sample_limits(t, w)->cgroups_count, 0);
	put_limit(t, UNIT, "268435456");
	assert_int_equal(sample_limits(t, w)->cgroups[0].limit_bytes, 256 * MIB);
	watch_free(w);
}

static void test_read_again(void **state)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct tree *t = *state;
	const struct record_cgroup *c;
	struct watch *w;

	put_counts(t, UNIT, 5000, 300);
	w = watch_unit(t);
	put_counts(t, UNIT, 5000, 300);
	/* What happened before it was known is not of this interval. */
	c = &sample_limits(t, w)->cgroups[0];
	assert_int_equal(c->reread_bytes + c->swapped_in_bytes + c->active_bytes, 0);
	assert_int_equal(c->limit_hits + c->oom_kills + c->major_faults, 0);
	put_counts(t, UNIT, 6000, 400);
	/* A kill is known at once, and what memory.stat has one sample later. */
	tree_sample(t, w, 1000);
	c = &watch_limits(w)->cgroups[0];
	assert_int_equal(c->oom_kills, 1);
	assert_int_equal(c->reread_bytes + c->limit_hits, 0);
	tree_sample(t, w, 0);
	assert_int_equal(c->reread_bytes, 1000 * page);
	assert_int_equal(c->swapped_in_bytes, 100 * page);
	assert_int_equal(c->active_bytes, 500 * page);
	assert_int_equal(c->major_faults, 200);
	assert_int_equal(c->limit_hits, 100);
	assert_int_equal(c->oom_kills, 0);
	assert_int_equal(sample_limits(t, w)->cgroups[0].reread_bytes, 0);
	watch_free(w);
}

/* Of all groups those come first that read again at their limit; then the ones nearest to it. */
static void test_order(void **state)
{
	static const char *const names[] = { "/a", "/b", "/c" };
	struct tree *t = *state;
	const struct record_limits *s;
	struct watch *w;
	char name[64];

	tree_list_add(&t->process, "postgres");
	for (int i = 0; i < 3; i++) {
		tree_put_thread(t, 10 + i, 10 + i, "postgres", 'S', 500, 9);
		snprintf(name, sizeof(name), "proc/%d/cgroup", 10 + i);
		tree_put(t, name, "0::%s\n", names[i]);
		put_limit(t, names[i], "1000");
		put_usage(t, names[i], 900 - 100 * (uint64_t)i, 0);
		put_counts(t, names[i], 0, 0);
	}
	w = tree_watch(t);
	s = sample_limits(t, w);
	assert_string_equal(s->cgroups[0].path, "/a");
	assert_string_equal(s->cgroups[1].path, "/b");
	/* What is evicted without a limit being reached is another matter. */
	put_counts(t, "/b", 900, 0);
	put_counts(t, "/c", 100, 1);
	s = sample_limits(t, w);
	assert_string_equal(s->cgroups[0].path, "/c");
	assert_string_equal(s->cgroups[1].path, "/a");
	watch_free(w);
}

/* Without files of memory, outside the namespace, at the root: nothing to judge. */
static void test_no_cgroup(void **state)
{
	static const char *const texts[] = { "0::/elsewhere\n", "0::/../other\n", "0::/..\n",
		"0::/\n", "", "\n" };
	struct tree *t = *state;
	struct watch *w;
	char name[64];

	tree_list_add(&t->process, "mariadbd");
	put_limit(t, "", "100");
	put_usage(t, "", 99, 0);
	for (int i = 0; i < 6; i++) {
		tree_put_thread(t, 10 + i, 10 + i, "mariadbd", 'S', 500, 9);
		snprintf(name, sizeof(name), "proc/%d/cgroup", 10 + i);
		tree_put(t, name, "%s", texts[i]);
	}
	w = tree_watch(t);
	tree_sample(t, w, 1000);
	assert_int_equal(sample_limits(t, w)->cgroups_count, 0);
	watch_free(w);
}

/* Each limit has a table of its own, which one group after the other finds full. */
static void test_groups_without_room(void **state)
{
	static const char *const files[][2] = {
		{ "memory.current", "900\n" },
		{ "cgroup.events", "populated 1\nfrozen 0\n" },
		{ "cpu.max", "50000 100000\n" },
		{ "io.max", "8:16 rbps=10485760 wbps=max riops=max wiops=max\n" },
	};
	struct tree *t = *state;
	char name[96];

	tree_list_add(&t->process, "postgres");
	for (size_t kind = 0; kind < sizeof(files) / sizeof(files[0]); kind++) {
		struct watch_options options = tree_options(t);
		struct watch_left_out left_out;
		struct watch *w;

		for (int i = 0; i < WATCH_CGROUPS_MAX + 3; i++) {
			tree_put_thread(t, 10 + i, 10 + i, "postgres", 'S', 500, 9);
			snprintf(name, sizeof(name), "proc/%d/cgroup", 10 + i);
			tree_put(t, name, "0::/%zu/%d\n", kind, i);
			snprintf(name, sizeof(name), "sys/fs/cgroup/%zu/%d/%s", kind, i,
				files[kind][0]);
			tree_put(t, name, "%s", files[kind][1]);
			snprintf(name, sizeof(name), "/%zu/%d", kind, i);
			if (kind == 0)
				put_limit(t, name, "1000");
		}
		w = tree_watch(t);
		for (unsigned int i = 0; i < 6; i++)
			tree_sample(t, w, 1000);
		watch_get_left_out(w, &left_out);
		print_message("%s: %u groups without room\n", files[kind][0], left_out.cgroups);
		assert_int_equal(left_out.cgroups, 3);
		options.process = NULL;
		assert_int_equal(watch_reload(w, &options), 0);
		watch_get_left_out(w, &left_out);
		assert_int_equal(left_out.cgroups, 0);
		watch_free(w);
	}
}

/* Whether each of the kinds of limits is known for that group; see below. */
static bool has_limits(struct watch *w)
{
	const struct record_limits *limits = watch_limits(w);

	return limits->cgroups_count == 1 && strstr(limits->cgroups[0].path, "/late") &&
		limits->cpu_limits_count == 1 && strstr(limits->cpu_limits[0].path, "/late") &&
		limits->io_count == 1 && strstr(limits->io[0].path, "/late");
}

/*
 * There are more groups than a table has room for, all without a limit; of one the controllers are
 * enabled only with its limit, as systemd does for `systemctl set-property`.
 */
static void test_a_limit_that_is_set_later(void **state)
{
	static const char *const files[][3] = {
		{ "memory.max", "max\n", "1000\n" },
		{ "memory.current", "900\n", "900\n" },
		{ "cpu.max", "max 100000\n", "50000 100000\n" },
		{ "memory.stat", "", "anon 1\nactive_file 0\ninactive_file 0\n" },
		{ "cpu.stat", "", "usage_usec 1\nthrottled_usec 0\n" },
		{ "io.max", "", "8:16 rbps=10485760 wbps=max riops=max wiops=max\n" },
		{ "io.stat", "", "8:16 rbytes=1 wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n" },
	};
	struct tree *t = *state;
	struct watch *w;
	char name[96];

	tree_list_add(&t->process, "postgres");
	for (int i = 0; i <= WATCH_CGROUPS_MAX; i++) {
		tree_put_thread(t, 10 + i, 10 + i, "postgres", 'S', 500, 9);
		snprintf(name, sizeof(name), "proc/%d/cgroup", 10 + i);
		tree_put(t, name, i ? "0::/%d\n" : "0::/late\n", i);
		for (size_t k = 0; i > 0 && k < sizeof(files) / sizeof(files[0]); k++) {
			snprintf(name, sizeof(name), "sys/fs/cgroup/%d/%s", i, files[k][0]);
			tree_put(t, name, "%s", files[k][1]);
		}
	}
	w = tree_watch(t);
	for (unsigned int i = 0; i < 6; i++)
		tree_sample(t, w, 1000);
	assert_int_equal(watch_limits(w)->cgroups_count, 0);
	for (size_t k = 0; k < sizeof(files) / sizeof(files[0]); k++) {
		snprintf(name, sizeof(name), "sys/fs/cgroup/late/%s", files[k][0]);
		tree_put(t, name, "%s", files[k][2]);
	}
	/* One process is asked about again each five seconds. */
	for (int i = 0; i < 6 * (WATCH_CGROUPS_MAX + 1) && !has_limits(w); i++)
		tree_sample(t, w, 1000);
	assert_true(has_limits(w));
	watch_free(w);
}

/* /proc/PID/cgroup is looked at, a few at a time, and never while an incident is open. */
static void test_learning(void **state)
{
	struct tree *t = *state;
	struct watch *w;
	char name[64];

	tree_list_add(&t->process, "postgres");
	for (int i = 0; i < 20; i++) {
		tree_put_thread(t, 10 + i, 10 + i, "postgres", 'S', 500, 9);
		snprintf(name, sizeof(name), "proc/%d/cgroup", 10 + i);
		tree_put(t, name, "0::/pg/%d\n", i);
		snprintf(name, sizeof(name), "/pg/%d", i);
		put_limit(t, name, "1000");
		put_usage(t, name, 900, 0);
	}
	w = tree_watch(t);
	t->now_ns += NSEC_PER_SEC;
	assert_int_equal(watch_take_sample(w, true), 0);
	assert_int_equal(watch_limits(w)->cgroups_count, 0);
	for (unsigned int i = 0; i < 5; i++) {
		struct watch_left_out left_out;

		tree_sample(t, w, 1000);
		watch_get_left_out(w, &left_out);
		assert_int_equal(left_out.cgroups, i < 4 ? 0 : 4);
	}
	assert_int_equal(watch_limits(w)->cgroups_count, RECORD_CGROUPS_MAX);
	/* Another configuration begins anew. */
	assert_int_equal(watch_reload(w,
				 &(struct watch_options){ .interval_ns = NSEC_PER_SEC,
					 .history_ns = 60 * NSEC_PER_SEC }),
		0);
	assert_int_equal(sample_limits(t, w)->cgroups_count, 0);
	watch_free(w);
}

/*
 * The kernel may let who opens /proc/PID/cgroup wait for long, as an open of a FIFO does. No sample
 * waits for that, and when it is over, the control groups are known.
 */
static void test_a_lock_that_is_held(void **state)
{
	struct tree *t = *state;
	char path[PATH_MAX + 32];
	struct watch *w;
	int fd;

	snprintf(path, sizeof(path), "%s/10/cgroup", t->procfs);
	tree_list_add(&t->process, "mariadbd");
	for (int pid = 10; pid <= 11; pid++)
		tree_put_thread(t, pid, pid, "mariadbd", 'S', 500, 9);
	assert_int_equal(mkfifo(path, 0600), 0);
	tree_put(t, "proc/11/cgroup", "0::" UNIT "\n");
	put_limit(t, UNIT, "1073741824");
	put_usage(t, UNIT, 1000 * MIB, 500 * MIB);
	alarm(20);
	w = tree_watch(t);
	for (int i = 0; i < 3; i++) {
		t->now_ns += NSEC_PER_SEC;
		assert_int_equal(watch_take_sample(w, false), 0);
		assert_int_equal(watch_limits(w)->cgroups_count, 0);
	}
	assert_true(watch_is_learning(w));
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(sample_limits(t, w)->cgroups_count, 1);
	alarm(0);
	close(fd);
	watch_free(w);
}

static void test_long_path(void **state)
{
	struct tree *t = *state;
	char path[160];
	struct watch *w;

	snprintf(path, sizeof(path), "/kubepods-%0100d.scope", 7);
	tree_list_add(&t->process, "mariadbd");
	tree_put_thread(t, 10, 10, "mariadbd", 'S', 500, 9);
	tree_put(t, "proc/10/cgroup", "0::%s\n", path);
	put_limit(t, path, "1000");
	put_usage(t, path, 900, 0);
	w = tree_watch(t);
	assert_int_equal(tree_limits(t, w)->cgroups_count, 1);
	assert_int_equal(strlen(watch_limits(w)->cgroups[0].path), RECORD_SUBJECT_SIZE - 1);
	assert_memory_equal(watch_limits(w)->cgroups[0].path, "...000", 6);
	assert_string_equal(watch_limits(w)->cgroups[0].path + RECORD_SUBJECT_SIZE - 8, "7.scope");
	watch_free(w);
}

static void test_growth(void **state)
{
	struct tree *t = *state;
	struct watch *w = watch_unit(t);
	const struct record_limits *s;

	/* 5.12 MiB a second are 307.2 MiB a minute: 30 % of the limit. */
	for (uint64_t i = 0; i < 150; i++) {
		put_usage(t, UNIT, i * MIB * 512 / 100, 0);
		s = sample_limits(t, w);
		if (i < 50)
			assert_true(isnan(s->cgroups[0].growth_pct_per_min));
		else
			assert_float_equal((float)s->cgroups[0].growth_pct_per_min, 30, 1e-2f);
	}
	for (unsigned int i = 0; i < 80; i++)
		s = sample_limits(t, w);
	assert_float_equal((float)s->cgroups[0].growth_pct_per_min, 0, 1e-2f);
	watch_free(w);
}

static void test_rules(void **state)
{
	struct config_rule config[CONFIG_RULE_COUNT] = { 0 };
	struct rules_firing firings[4];
	struct tree *t = *state;
	struct watch *w = watch_unit(t);
	struct rules *rules;
	size_t fired = 0;

	config[CONFIG_RULE_memory] = (struct config_rule){ true, 95, 90, 2, 0 };
	assert_int_equal(rules_new(config, &rules), 0);
	/* At the limit by what can be given back: that is what a page cache does. */
	put_usage(t, UNIT, 1024 * MIB, 500 * MIB);
	for (unsigned int i = 0; i < 5; i++) {
		tree_sample(t, w, 1000);
		assert_int_equal(rules_evaluate(rules, w, t->now_ns, firings, 4), 0);
	}
	put_usage(t, UNIT, 1024 * MIB, 40 * MIB);
	for (unsigned int i = 0; i < 300; i++) {
		tree_sample(t, w, 1000);
		fired += rules_evaluate(rules, w, t->now_ns, firings, 4);
		/* The first of them has what was read at the one before. */
		assert_int_equal(fired, i > 1);
	}
	assert_int_equal(firings[0].scope, RULES_SCOPE_cgroup);
	assert_string_equal(firings[0].subject, UNIT);
	assert_float_equal((float)firings[0].value, 96.094f, 1e-2f);
	assert_int_equal(rules_active(rules), 1);
	assert_int_equal(rules_holding(rules), 0);
	put_usage(t, UNIT, 900 * MIB, 0);
	tree_limits(t, w);
	rules_evaluate(rules, w, t->now_ns, firings, 4);
	assert_int_equal(rules_active(rules), 0);
	rules_free(rules);
	watch_free(w);
}

/* A group that is often at its limit is none that kills. */
static void test_rule_of_kills(void **state)
{
	struct config_rule config[CONFIG_RULE_COUNT] = { 0 };
	struct rules_firing firings[4];
	struct tree *t = *state;
	struct rules *rules;
	struct watch *w;

	put_counts(t, UNIT, 5000, 0);
	w = watch_unit(t);
	config[CONFIG_RULE_oom_kills] = (struct config_rule){ true, 0.5, 0.5, 1, 0 };
	assert_int_equal(rules_new(config, &rules), 0);
	/* Its counts are known from the second sample on. */
	tree_sample(t, w, 1000);
	put_counts(t, UNIT, 5000, 99);
	tree_sample(t, w, 1000);
	assert_int_equal(rules_evaluate(rules, w, t->now_ns, firings, 4), 0);
	put_counts(t, UNIT, 5000, 199);
	tree_sample(t, w, 1000);
	assert_int_equal(rules_evaluate(rules, w, t->now_ns, firings, 4), 1);
	assert_string_equal(firings[0].name, "oom_kills");
	assert_string_equal(firings[0].subject, UNIT);
	assert_float_equal((float)firings[0].value, 1, 1e-4f);
	assert_int_equal(rules_holding(rules), 0);
	rules_free(rules);
	watch_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_path),
		cmocka_unit_test(test_reclaimable),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_refaults),
		tree_test(test_limit_is_the_lower_one),
		tree_test(test_read_again),
		tree_test(test_order),
		tree_test(test_sample),
		tree_test(test_both_versions),
		tree_test(test_v1),
		tree_test(test_no_cgroup),
		tree_test(test_a_limit_that_is_set_later),
		tree_test(test_learning),
		tree_test(test_groups_without_room),
		tree_test(test_a_lock_that_is_held),
		tree_test(test_long_path),
		tree_test(test_growth),
		tree_test(test_rules),
		tree_test(test_rule_of_kills),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
