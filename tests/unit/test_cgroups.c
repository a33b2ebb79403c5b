/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory limits: whose, how much of them is held, and what fires. */
#include "test_watch_tree.h"

#include <errno.h>
#include <math.h>

#include "watch/cgroups.h"
#include "watch/rules.h"

#define MIB (1ULL << 20)
#define UNIT "/system.slice/mariadb.service"

static void assert_path(const char *text, const char *expected, bool expected_v1)
{
	struct cursor path = { NULL, NULL };
	bool v1 = !expected_v1;
	int r = cgroups_parse_path(text, strlen(text), &path, &v1);

	assert_int_equal(r, expected ? 0 : -ENOENT);
	if (!expected)
		return;
	assert_int_equal(path.end - path.p, strlen(expected));
	assert_memory_equal(path.p, expected, strlen(expected));
	assert_int_equal(v1, expected_v1);
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
	assert_int_equal(cgroups_parse_reclaimable(v2, sizeof(v2) - 1), 39);
	assert_int_equal(cgroups_parse_reclaimable(v1, sizeof(v1) - 1), 340);
	/* Half a line is no number, and neither is a word. */
	assert_int_equal(cgroups_parse_reclaimable("active_file", 11), 0);
	assert_int_equal(cgroups_parse_reclaimable("active_file x\n", 14), 0);
	assert_int_equal(cgroups_parse_reclaimable("", 0), 0);
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

static const struct watch_limits *sample_limits(struct tree *t, struct watch *w)
{
	tree_sample(t, w, 1000);
	return watch_limits(w);
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

static void test_sample(void **state)
{
	struct tree *t = *state;
	struct watch *w = watch_unit(t);
	const struct watch_limits *s = sample_limits(t, w);

	/* The slice above it has no limit. */
	assert_int_equal(s->cgroups_count, 1);
	assert_string_equal(s->cgroups[0].path, UNIT);
	assert_int_equal(s->cgroups[0].limit_bytes, 1024 * MIB);
	assert_int_equal(s->cgroups[0].current_bytes, 1000 * MIB);
	assert_int_equal(s->cgroups[0].held_bytes, 500 * MIB);
	assert_float_equal((float)s->cgroups[0].used_pct, 48.828f, 1e-2f);
	assert_true(isnan(s->cgroups[0].growth_pct));
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

static void test_v1(void **state)
{
	struct tree *t = *state;
	struct watch *w;
	const struct watch_limits *s;

	tree_list_add(&t->process, "mariadbd");
	tree_put_thread(t, 10, 10, "mariadbd", 'S', 500, 9);
	tree_put(t, "proc/10/cgroup", "4:memory:/db\n0::/\n");
	tree_put(t, "sys/fs/cgroup/memory/db/memory.limit_in_bytes", "9223372036854771712\n");
	tree_put(t, "sys/fs/cgroup/memory/db/memory.usage_in_bytes", "800\n");
	tree_put(t, "sys/fs/cgroup/memory/db/memory.stat", "total_active_file 300\n");
	w = tree_watch(t);
	assert_int_equal(sample_limits(t, w)->cgroups_count, 0);
	tree_put(t, "sys/fs/cgroup/memory/db/memory.limit_in_bytes", "1000\n");
	s = sample_limits(t, w);
	assert_int_equal(s->cgroups_count, 1);
	assert_float_equal((float)s->cgroups[0].used_pct, 50, 1e-3f);
	watch_free(w);
}

/* Without files of memory, outside the namespace, at the root: nothing to judge. */
static void test_no_cgroup(void **state)
{
	static const char *const texts[] = { "0::/elsewhere\n", "0::/../other\n", "0::/..\n", "0::/\n",
		"", "\n" };
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

/* /proc/PID/cgroup is looked at once, a few at a time, and never while an incident is open. */
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
	assert_int_equal(watch_limits(w)->cgroups_count, WATCH_LIMITS_CGROUPS_MAX);
	/* Another configuration begins anew. */
	assert_int_equal(watch_reload(w, &(struct watch_options){ .interval_ns = NSEC_PER_SEC,
					     .history_ns = 60 * NSEC_PER_SEC }), 0);
	assert_int_equal(sample_limits(t, w)->cgroups_count, 0);
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
	tree_sample(t, w, 1000);
	assert_int_equal(watch_limits(w)->cgroups_count, 1);
	assert_int_equal(strlen(watch_limits(w)->cgroups[0].path), WATCH_SUBJECT_SIZE - 1);
	assert_memory_equal(watch_limits(w)->cgroups[0].path, "...000", 6);
	assert_string_equal(watch_limits(w)->cgroups[0].path + WATCH_SUBJECT_SIZE - 8, "7.scope");
	watch_free(w);
}

static void test_growth(void **state)
{
	struct tree *t = *state;
	struct watch *w = watch_unit(t);
	const struct watch_limits *s;

	/* 5.12 MiB a second are 307.2 MiB a minute: 30 % of the limit. */
	for (uint64_t i = 0; i < 150; i++) {
		put_usage(t, UNIT, i * MIB * 512 / 100, 0);
		s = sample_limits(t, w);
		if (i < 50)
			assert_true(isnan(s->cgroups[0].growth_pct));
		else
			assert_float_equal((float)s->cgroups[0].growth_pct, 30, 1e-2f);
	}
	for (unsigned int i = 0; i < 80; i++)
		s = sample_limits(t, w);
	assert_float_equal((float)s->cgroups[0].growth_pct, 0, 1e-2f);
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
		assert_int_equal(fired, i > 0);
	}
	assert_int_equal(firings[0].scope, RULES_SCOPE_cgroup);
	assert_string_equal(firings[0].subject, UNIT);
	assert_float_equal((float)firings[0].value, 96.094f, 1e-2f);
	assert_int_equal(rules_active(rules), 1);
	assert_int_equal(rules_holding(rules), 0);
	put_usage(t, UNIT, 900 * MIB, 0);
	tree_sample(t, w, 1000);
	rules_evaluate(rules, w, t->now_ns, firings, 4);
	assert_int_equal(rules_active(rules), 0);
	rules_free(rules);
	watch_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_path),
		cmocka_unit_test(test_reclaimable),
		tree_test(test_sample),
		tree_test(test_v1),
		tree_test(test_no_cgroup),
		tree_test(test_learning),
		tree_test(test_long_path),
		tree_test(test_growth),
		tree_test(test_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
