/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Counts every call of the allocator during a hundred samples: there must be none. */
#include "test_alloc.h"
#include "test_watch_tree.h"

#include "watch/rules.h"

static void test_counting_counts(void **state)
{
	unsigned long before = allocations;
	void *volatile p;

	(void)state;
	p = malloc(10);
	free(p);
	assert_true(allocations > before);
}

static unsigned long allocations_of_samples(struct watch *w, struct tree *t, unsigned int count)
{
	struct config_rule config[CONFIG_RULE_COUNT];
	struct rules_firing firings[4];
	struct rules *rules = NULL;
	unsigned long before;

	for (unsigned int i = 0; i < CONFIG_RULE_COUNT; i++)
		config[i] = (struct config_rule){ .enabled = true, .hold_samples = 1 };
	assert_int_equal(rules_new(config, &rules), 0);
	before = allocations;
	for (unsigned int i = 0; i < count; i++) {
		if (t)
			t->now_ns += NSEC_PER_SEC;
		if (watch_take_sample(w, i % 2) < 0)
			return ULONG_MAX;
		rules_evaluate(rules, w, watch_last(w)->mono_ns, firings, 4);
	}
	before = allocations - before;
	rules_free(rules);
	return before;
}

/* Blocked threads, scans of /proc (one in 10 samples) and firing rules. */
static void test_none_over_a_tree(void **state)
{
	struct tree *t = *state;
	struct watch *w;

	tree_list_add(&t->process, "mariadbd");
	for (int tid = 10; tid < 20; tid++)
		tree_put_thread(t, 10, tid, "mariadbd", tid % 2 ? 'D' : 'S', 500, 9);
	tree_put(t, "proc/diskstats",
		"   8 0 sda 1 0 1 1 1 0 1 1 5 1 1 0 0 0 0 0 0\n"
		"   8 16 sdb 1 0 1 1 1 0 1 1 0 1 1 0 0 0 0 0 0\n");
	tree_put_psi(t, "io", 100, 100);
	tree_put_cgroup(t, 10, "0::/unit\n");
	tree_put(t, "sys/fs/cgroup/unit/memory.max", "1000\n");
	tree_put(t, "sys/fs/cgroup/unit/memory.current", "900\n");
	tree_put(t, "sys/fs/cgroup/unit/memory.stat", "active_file 1\n");
	tree_put(t, "sys/fs/cgroup/unit/cpu.max", "1 1\n");
	tree_put(t, "sys/fs/cgroup/unit/cpu.stat", "usage_usec 1\n");
	tree_put(t, "sys/fs/cgroup/unit/io.max", "8:0 rbps=1\n");
	tree_put(t, "sys/fs/cgroup/unit/io.stat", "8:0 rbytes=1\n");
	w = tree_watch(t);
	tree_sample(t, w, 1000);
	assert_int_equal(allocations_of_samples(w, t, 100), 0);
	assert_int_equal(watch_last(w)->threads.blocked, 5);
	assert_int_equal(tree_limits(t, w)->cgroups_count, 1);
	watch_free(w);
}

static void test_none_on_this_host(void **state)
{
	struct config_list process = { 0 };
	struct watch_options options = {
		.interval_ns = NSEC_PER_SEC,
		.history_ns = 20 * NSEC_PER_SEC,
		.process = &process,
	};
	struct watch *w = NULL;

	(void)state;
	snprintf(process.items[process.count++], CONFIG_ITEM_SIZE, "%d", getpid());
	assert_int_equal(watch_new(&options, &w), 0);
	assert_int_equal(allocations_of_samples(w, NULL, 100), 0);
	watch_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counting_counts),
		tree_test(test_none_over_a_tree),
		cmocka_unit_test(test_none_on_this_host),
	};

	counting_setup();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
