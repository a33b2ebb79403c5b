/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/*
 * CPU limits of control groups and too few CPUs: what is read, and the rule.
 */
#include "test_watch_tree.h"

#include "watch/cpu_limits.h"
#include "watch/rules.h"

#define UNIT "/system.slice/mariadb.service"

static struct cursor text_of(const char *text)
{
	return (struct cursor){ text, text + strlen(text) };
}

static void test_texts(void **state)
{
	struct cgroup_cpu_counts counts = { .used_ns = 1, .throttled_ns = 2 };

	(void)state;
	assert_float_equal((float)cgroup_parse_cpu_max(text_of("50000 100000\n")), 0.5f, 1e-6f);
	assert_float_equal((float)cgroup_parse_cpu_max(text_of("max 100000\n")), 0, 1e-6f);
	assert_float_equal((float)cgroup_parse_cpu_max(text_of("50000 0\n")), 0, 1e-6f);
	assert_float_equal((float)cgroup_parse_cpu_max(text_of("50000")), 0, 1e-6f);
	assert_float_equal((float)cgroup_parse_cpu_max(text_of("")), 0, 1e-6f);
	cgroup_parse_cpu_stat(text_of("usage_usec\nthrottled_usec x\n\nnr_throttled 7"), &counts);
	assert_int_equal(counts.used_ns, 1);
	assert_int_equal(counts.throttled_ns, 2);
	cgroup_parse_cpu_stat(text_of("usage_usec 3\nuser_usec 9\nthrottled_usec 4\n"), &counts);
	assert_int_equal(counts.used_ns, 3000);
	assert_int_equal(counts.throttled_ns, 4000);
	cgroup_parse_cpu_stat(text_of("nr_periods 8\nthrottled_time 5"), &counts);
	assert_int_equal(counts.throttled_ns, 5);
}

static void put(struct tree *t, const char *group, const char *file, const char *text)
{
	char name[256];

	snprintf(name, sizeof(name), "sys/fs/cgroup%s/%s", group, file);
	tree_put(t, name, "%s", text);
}

/* In microseconds, as version 2 counts them. */
static void put_stat(struct tree *t, const char *group, unsigned int used_us,
	unsigned int throttled_us)
{
	char text[128];

	snprintf(text, sizeof(text), "usage_usec %u\nnr_throttled 9\nthrottled_usec %u\n", used_us,
		throttled_us);
	put(t, group, "cpu.stat", text);
}

static struct watch *watch_server(struct tree *t, const char *groups)
{
	tree_list_add(&t->process, "mariadbd");
	tree_put_thread(t, 10, 10, "mariadbd", 'S', 500, 9);
	tree_put(t, "proc/10/cgroup", "%s", groups);
	return tree_watch(t);
}

static const struct record_limits *next(struct tree *t, struct watch *w)
{
	return tree_limits(t, w);
}

/* The limit of a slice is for all units in it, and the one that held back most comes first. */
static void test_version_2(void **state)
{
	struct tree *t = *state;
	const struct record_limits *l;
	struct watch *w;

	put(t, "/system.slice", "cpu.max", "400000 100000\n");
	put_stat(t, "/system.slice", 0, 0);
	put(t, UNIT, "cpu.max", "50000 100000\n");
	put_stat(t, UNIT, 7000000, 5000000);
	w = watch_server(t, "0::" UNIT "\n");
	/* What was done before the first look is not known. */
	assert_int_equal(next(t, w)->cpu_limits_count, 0);
	/* Half a second of one CPU was used, and four threads were held back for 1.5 s of it. */
	put_stat(t, UNIT, 7500000, 6500000);
	put_stat(t, "/system.slice", 500000, 100000);
	l = next(t, w);
	assert_int_equal(l->cpu_limits_count, 2);
	assert_string_equal(l->cpu_limits[0].path, UNIT);
	assert_float_equal((float)l->cpu_limits[0].limit_cpus, 0.5f, 1e-4f);
	assert_float_equal((float)l->cpu_limits[0].used_cpus, 0.5f, 1e-4f);
	assert_float_equal((float)l->cpu_limits[0].held_back_pct, 75, 1e-2f);
	assert_int_equal(l->cpu_limits[0].held_back_ns, 1500 * NSEC_PER_MSEC);
	/* Who wants less than a CPU loses no more than it wants. */
	assert_float_equal((float)l->cpu_limits[1].held_back_pct, 10, 1e-2f);
	/* The limit is removed and set again while the service runs. */
	put(t, UNIT, "cpu.max", "max 100000\n");
	assert_int_equal(next(t, w)->cpu_limits_count, 1);
	put_stat(t, UNIT, 9500000, 9500000);
	put(t, UNIT, "cpu.max", "100000 100000\n");
	l = next(t, w);
	assert_int_equal(l->cpu_limits_count, 1);
	assert_int_equal(l->cpu_limits[0].held_back_ns, 0);
	assert_int_equal(next(t, w)->cpu_limits_count, 2);
	watch_free(w);
}

/* The limit of a group is no reason for what a process of another one does. */
static void test_whose_limit_it_is(void **state)
{
	struct tree *t = *state;
	struct watch *w;

	put(t, "/system.slice", "cpu.max", "400000 100000\n");
	put_stat(t, "/system.slice", 0, 0);
	put(t, UNIT, "cpu.max", "50000 100000\n");
	put_stat(t, UNIT, 0, 0);
	tree_put_thread(t, 20, 20, "mariadbd", 'S', 500, 9);
	tree_put(t, "proc/20/cgroup", "0::/system.slice/mysql.service\n");
	tree_put_thread(t, 30, 30, "mariadbd", 'S', 500, 9);
	tree_put(t, "proc/30/cgroup", "0::/user.slice\n");
	w = watch_server(t, "0::" UNIT "\n");
	next(t, w);
	put_stat(t, UNIT, 500000, 1500000);
	put_stat(t, "/system.slice", 500000, 100000);
	next(t, w);
	assert_string_equal(watch_cpu_limit_of(w, 10)->path, UNIT);
	assert_string_equal(watch_cpu_limit_of(w, 20)->path, "/system.slice");
	assert_null(watch_cpu_limit_of(w, 30));
	assert_null(watch_cpu_limit_of(w, 40));
	watch_free(w);
}

/* Version 1 counts what a group used with another controller. */
static void test_version_1(void **state)
{
	struct tree *t = *state;
	const struct record_limits *l;
	struct watch *w;

	put(t, "/cpu/pod/db", "cpu.cfs_quota_us", "-1\n");
	put(t, "/cpu/pod/db", "cpu.cfs_period_us", "100000\n");
	put(t, "/cpu/pod/db", "cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n");
	put(t, "/cpu/pod", "cpu.cfs_quota_us", "10000\n");
	put(t, "/cpu/pod", "cpu.cfs_period_us", "100000\n");
	put(t, "/cpu/pod", "cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n");
	put(t, "/cpuacct/a/pod", "cpuacct.usage", "0\n");
	put(t, "/cpuacct/a/pod/db", "cpuacct.usage", "0\n");
	w = watch_server(t, "7:cpuacct:/a/pod/db\n4:cpu:/pod/db\n0::/\n");
	tree_sample(t, w, 1000);
	put(t, "/cpu/pod", "cpu.stat", "nr_throttled 9\nthrottled_time 900000000\n");
	put(t, "/cpuacct/a/pod", "cpuacct.usage", "100000000\n");
	tree_sample(t, w, 1000);
	l = watch_limits(w);
	assert_int_equal(l->cpu_limits_count, 1);
	assert_string_equal(l->cpu_limits[0].path, "/pod");
	assert_float_equal((float)l->cpu_limits[0].limit_cpus, 0.1f, 1e-4f);
	assert_float_equal((float)l->cpu_limits[0].used_cpus, 0.1f, 1e-4f);
	assert_float_equal((float)l->cpu_limits[0].held_back_pct, 90, 1e-2f);
	watch_free(w);
}

/* A process outside any group, a group without the controller, and one that is removed. */
static void test_no_limits(void **state)
{
	struct tree *t = *state;
	struct watch *w;

	put(t, "/a", "cpu.max", "nonsense\n");
	put_stat(t, "/a", 0, 0);
	put(t, "/without", "cgroup.procs", "");
	tree_put_thread(t, 11, 11, "mariadbd", 'S', 500, 9);
	tree_put(t, "proc/11/cgroup", "0::/\n");
	tree_put_thread(t, 12, 12, "mariadbd", 'S', 500, 9);
	tree_put(t, "proc/12/cgroup", "0::/without\n");
	w = watch_server(t, "0::/a\n");
	assert_int_equal(next(t, w)->cpu_limits_count, 0);
	put(t, "/a", "cpu.max", "1000 100000\n");
	next(t, w);
	assert_int_equal(next(t, w)->cpu_limits_count, 1);
	/* As of a group that has been removed: its files are there, but have no text. */
	put(t, "/a", "cpu.max", "");
	assert_int_equal(next(t, w)->cpu_limits_count, 0);
	put(t, "/a", "cpu.max", "1000 100000\n");
	assert_int_equal(next(t, w)->cpu_limits_count, 0);
	watch_free(w);
}

/* It opens one incident, which lasts as long as the limit does, but for ever only one. */
static void test_rule(void **state)
{
	struct config_rule config[CONFIG_RULE_COUNT] = { 0 };
	struct rules_firing firings[4];
	struct tree *t = *state;
	unsigned int fired = 0;
	struct rules *rules;
	struct watch *w;

	put(t, UNIT, "cpu.max", "10000 100000\n");
	put_stat(t, UNIT, 0, 0);
	w = watch_server(t, "0::" UNIT "\n");
	config[CONFIG_RULE_cpu_limit] = (struct config_rule){ true, 80, 60, 2, 5 * NSEC_PER_SEC };
	assert_int_equal(rules_new(config, &rules), 0);
	for (unsigned int i = 0; i < 20; i++) {
		put_stat(t, UNIT, 100000 * i, 900000 * i);
		tree_sample(t, w, 1000);
		fired += (unsigned int)rules_evaluate(rules, w, t->now_ns, firings, 4);
		assert_int_equal(fired, i < 3 ? 0 : 1);
	}
	assert_string_equal(firings[0].name, "cpu_limit");
	assert_string_equal(firings[0].subject, UNIT);
	assert_int_equal(firings[0].scope, RULES_SCOPE_cpu_limit);
	assert_float_equal((float)firings[0].value, 90, 1e-2f);
	assert_int_equal(rules_holding(rules), 1);
	tree_sample(t, w, 1000);
	tree_sample(t, w, 1000);
	rules_evaluate(rules, w, t->now_ns, firings, 4);
	assert_int_equal(rules_holding(rules), 0);
	rules_free(rules);
	watch_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		tree_test(test_version_2),
		tree_test(test_whose_limit_it_is),
		tree_test(test_version_1),
		tree_test(test_no_limits),
		tree_test(test_rule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
