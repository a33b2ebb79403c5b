/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Processes that are stopped: what is seen of them and the rule. */
#include "test_watch_tree.h"

#include "util/cleanup.h"
#include "watch/freezers.h"
#include "watch/rules.h"

#define GROUP "/docker/5a"

/* Traced by process 99, in a state of a debugger. */
static void put_traced(struct tree *t, int tid)
{
	char name[96];

	snprintf(name, sizeof(name), "proc/10/task/%d/status", tid);
	tree_put(t, name,
		"Name:\tworker\nState:\tt (tracing stop)\nTgid:\t10\nPid:\t%d\nPPid:\t1\n"
		"TracerPid:\t99\nvoluntary_ctxt_switches:\t4\nnonvoluntary_ctxt_switches:\t2\n",
		tid);
}

static const struct record_stopped *next(struct tree *t, struct watch *w)
{
	tree_sample(t, w, 1000);
	return &watch_limits(w)->stopped;
}

static struct watch *watch_server(struct tree *t)
{
	tree_list_add(&t->process, "mariadbd");
	tree_put_thread(t, 10, 10, "mariadbd", 'S', 500, 9);
	tree_put_thread(t, 10, 11, "worker", 'S', 500, 9);
	return tree_watch(t);
}

static void test_signal(void **state)
{
	struct tree *t = *state;
	const struct record_stopped *s;
	struct watch *w = watch_server(t);

	assert_false(next(t, w)->present);
	tree_put_thread(t, 10, 10, "mariadbd", 'T', 500, 10);
	tree_put_thread(t, 10, 11, "worker", 'T', 500, 10);
	assert_false(next(t, w)->present);
	s = next(t, w);
	assert_true(s->present);
	assert_int_equal(s->pid, 10);
	assert_string_equal(s->comm, "mariadbd");
	assert_int_equal(s->threads, 2);
	assert_int_equal(s->stopped_ns, NSEC_PER_SEC);
	assert_int_equal(s->tracer, 0);
	assert_int_equal(watch_last(w)->threads.blocked, 0);
	assert_int_equal(next(t, w)->stopped_ns, 2 * NSEC_PER_SEC);
	/* It has run in between: that is another stop. */
	tree_put_thread(t, 10, 10, "mariadbd", 'T', 500, 11);
	tree_put_thread(t, 10, 11, "worker", 'S', 500, 11);
	assert_false(next(t, w)->present);
	assert_int_equal(next(t, w)->threads, 1);
	/* From one state into the other without a switch that is counted. */
	tree_put_thread(t, 10, 10, "mariadbd", 'D', 500, 11);
	assert_false(next(t, w)->present);
	assert_false(next(t, w)->present);
	assert_int_equal(watch_last(w)->threads.blocked, 1);
	watch_free(w);
}

/* What has been stopped for long is so on purpose, and a reload makes it no news. */
static void test_reload(void **state)
{
	struct tree *t = *state;
	struct watch_options options;
	struct watch *w = watch_server(t);

	options = tree_options(t);
	tree_put_thread(t, 10, 10, "mariadbd", 'T', 500, 10);
	next(t, w);
	assert_int_equal(next(t, w)->stopped_ns, NSEC_PER_SEC);
	options.history_ns /= 2;
	assert_int_equal(watch_reload(w, &options), 0);
	assert_int_equal(next(t, w)->stopped_ns, 2 * NSEC_PER_SEC);
	/* Another pattern may mean other processes. */
	tree_list_add(&t->process, "postgres");
	assert_int_equal(watch_reload(w, &options), 0);
	assert_false(next(t, w)->present);
	assert_true(next(t, w)->present);
	watch_free(w);
}

static void test_debugger(void **state)
{
	struct tree *t = *state;
	const struct record_stopped *s;
	struct watch *w = watch_server(t);

	tree_put_thread(t, 99, 99, "gdb", 'S', 500, 9);
	put_traced(t, 11);
	next(t, w);
	s = next(t, w);
	assert_true(s->present);
	assert_int_equal(s->threads, 1);
	assert_int_equal(s->tracer, 99);
	assert_string_equal(s->tracer_comm, "gdb");
	/* It has ended, and the process is still stopped. */
	tree_remove(t, "proc/99");
	s = next(t, w);
	assert_true(s->present);
	assert_int_equal(s->tracer, 0);
	assert_string_equal(s->tracer_comm, "");
	watch_free(w);
}

/* One of the same name that traces nobody is not named; nor is one that has let go. */
static void test_another_debugger(void **state)
{
	struct tree *t = *state;
	const struct record_stopped *s;
	struct watch *w = watch_server(t);

	tree_put_thread(t, 98, 98, "gdb", 'S', 500, 9);
	tree_put_thread(t, 99, 99, "gdb", 'S', 500, 9);
	put_traced(t, 11);
	next(t, w);
	assert_int_equal(next(t, w)->tracer, 99);
	tree_put_thread(t, 10, 11, "worker", 'T', 500, 10);
	next(t, w);
	s = next(t, w);
	assert_true(s->present);
	assert_int_equal(s->tracer, 0);
	put_traced(t, 11);
	tree_remove(t, "proc/99");
	next(t, w);
	s = next(t, w);
	assert_int_equal(s->tracer, 0);
	assert_string_equal(s->tracer_comm, "");
	watch_free(w);
}

static void put(struct tree *t, const char *file, const char *text)
{
	char name[256];

	snprintf(name, sizeof(name), "sys/fs/cgroup%s", file);
	tree_put(t, name, "%s", text);
}

/* A process that is left stopped is no trouble any more, and hides no other one. */
static void test_left_stopped(void **state)
{
	struct tree *t = *state;
	const struct record_stopped *s;
	struct watch *w = watch_server(t);

	tree_put_thread(t, 10, 10, "mariadbd", 'T', 500, 10);
	for (unsigned int i = 0; i < 120; i++)
		s = next(t, w);
	assert_true(s->present);
	assert_int_equal(s->stopped_ns, 119 * NSEC_PER_SEC);
	assert_false(next(t, w)->present);
	tree_put_thread(t, 20, 20, "mariadbd", 'T', 500, 10);
	for (unsigned int i = 0; i < 12; i++)
		s = next(t, w);
	assert_true(s->present);
	assert_int_equal(s->pid, 20);
	watch_free(w);
}

static void test_freezer(void **state)
{
	static const struct {
		const char *groups, *file, *running, *frozen;
	} cases[] = {
		{ "0::" GROUP "\n", GROUP "/cgroup.events", "populated 1\nfrozen 0\n",
			"populated 1\nfrozen 1\n" },
		{ "3:freezer:" GROUP "\n0::/\n", "/freezer" GROUP "/freezer.self_freezing", "0\n",
			"1\n" },
		{ "3:freezer:/\n0::" GROUP "\n", "/unified" GROUP "/cgroup.events",
			"populated 1\nfrozen 0\n", "populated 1\nfrozen 1\n" },
	};
	struct tree *t = *state;

	tree_list_add(&t->process, "mariadbd");
	tree_put_thread(t, 10, 10, "mariadbd", 'S', 500, 9);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct record_stopped *s;
		unsigned int count;
		struct watch *w;

		tree_put(t, "proc/10/cgroup", "%s", cases[i].groups);
		put(t, cases[i].file, cases[i].running);
		w = tree_watch(t);
		assert_false(next(t, w)->present);
		put(t, cases[i].file, cases[i].frozen);
		next(t, w);
		s = next(t, w);
		assert_true(s->present);
		assert_int_equal(s->pid, 10);
		assert_string_equal(s->comm, "mariadbd");
		assert_string_equal(s->cgroup, GROUP);
		assert_int_equal(s->threads, 0);
		assert_int_equal(s->stopped_ns, NSEC_PER_SEC);
		assert_true(watch_processes(w, &count)->is_frozen);
		put(t, cases[i].file, cases[i].running);
		assert_false(next(t, w)->present);
		assert_false(watch_processes(w, &count)->is_frozen);
		/* As of a group that has been removed. */
		put(t, cases[i].file, "");
		next(t, w);
		put(t, cases[i].file, cases[i].frozen);
		assert_false(next(t, w)->present);
		watch_free(w);
	}
}

static const char *const events = GROUP "/cgroup.events";

/* Watches processes 10 and 20, which are in the group, before it is frozen. */
static struct watch *watch_group(struct tree *t)
{
	struct watch *w;

	tree_list_add(&t->process, "mariadbd");
	for (int pid = 10; pid <= 20; pid += 10) {
		tree_put_thread(t, pid, pid, "mariadbd", 'S', 500, 9);
		tree_put_cgroup(t, pid, "0::" GROUP "\n");
	}
	put(t, events, "populated 1\nfrozen 0\n");
	w = tree_watch(t);
	assert_false(next(t, w)->present);
	return w;
}

static void check_nobody(struct tree *t, struct watch *w)
{
	for (unsigned int i = 0; i < 12; i++)
		assert_false(next(t, w)->present);
}

/* What was read of its groups is some seconds old when the one that it was in is frozen. */
static void test_left_the_group(void **state)
{
	struct tree *t = *state;
	struct watch *w = watch_group(t);
	const struct record_stopped *s = NULL;

	tree_put_cgroup(t, 10, "0::/other\n");
	put(t, events, "populated 1\nfrozen 1\n");
	for (unsigned int i = 0; i < 4; i++) {
		s = next(t, w);
		assert_true(!s->present || s->pid == 20);
	}
	assert_true(s->present);
	/* All are known to be in it still, and one leaves for the group that cannot be frozen. */
	tree_put_cgroup(t, 20, "0::/\n");
	for (unsigned int i = 0; i < 12; i++)
		next(t, w);
	check_nobody(t, w);
	watch_free(w);
}

static void test_all_have_left_the_group(void **state)
{
	struct tree *t = *state;
	struct watch *w = watch_group(t);

	tree_put_cgroup(t, 10, "0::/other\n");
	tree_put_cgroup(t, 20, "0::/\n");
	put(t, events, "populated 1\nfrozen 1\n");
	check_nobody(t, w);
	watch_free(w);
}

static void test_frozen_process_ends(void **state)
{
	struct tree *t = *state;
	struct watch *w = watch_group(t);
	int32_t first;

	put(t, events, "populated 1\nfrozen 1\n");
	next(t, w);
	first = next(t, w)->pid;
	assert_true(first == 10 || first == 20);
	tree_remove(t, first == 10 ? "proc/10" : "proc/20");
	for (unsigned int i = 0; i < 3; i++)
		next(t, w);
	assert_int_equal(next(t, w)->pid, 30 - first);
	tree_remove(t, first == 10 ? "proc/20" : "proc/10");
	next(t, w);
	check_nobody(t, w);
	watch_free(w);
}

/* Nobody asks for groups then. */
static void test_frozen_while_an_incident_is_open(void **state)
{
	struct tree *t = *state;
	struct watch *w = watch_group(t);

	put(t, events, "populated 1\nfrozen 1\n");
	for (unsigned int i = 0; i < 3; i++) {
		t->now_ns += NSEC_PER_SEC;
		assert_int_equal(watch_take_sample(w, true), 0);
	}
	assert_true(watch_limits(w)->stopped.present);
	watch_free(w);
}

/* The kernel shows threads that the freezer of version 1 has stopped in D. */
static void test_frozen_threads_are_not_blocked(void **state)
{
	static const char *const file = "/freezer" GROUP "/freezer.self_freezing";
	struct tree *t = *state;
	struct watch *w;

	tree_list_add(&t->process, "mariadbd");
	t->step_ns = NSEC_PER_USEC;
	for (int pid = 10; pid <= 20; pid += 10) {
		char name[32];

		tree_put_thread(t, pid, pid, "mariadbd", 'S', 500, 9);
		snprintf(name, sizeof(name), "proc/%d/cgroup", pid);
		tree_put(t, name, "3:freezer:" GROUP "\n0::/\n");
	}
	/* It waits for its disk when the group is frozen. */
	tree_put_thread(t, 10, 11, "worker", 'D', 500, 9);
	put(t, file, "0\n");
	w = tree_watch(t);
	for (unsigned int i = 0; i < 3; i++)
		next(t, w);
	assert_int_equal(watch_last(w)->threads.blocked, 1);
	put(t, file, "1\n");
	tree_put_thread(t, 10, 10, "mariadbd", 'D', 500, 10);
	tree_put_thread(t, 20, 20, "mariadbd", 'D', 500, 10);
	for (unsigned int i = 0; i < 130; i++) {
		next(t, w);
		assert_int_equal(watch_last(w)->threads.blocked, 1);
		assert_int_equal(watch_last(w)->threads.blocked_tid, 11);
	}
	/* The disk still hangs after the freeze, and has another victim. */
	put(t, file, "0\n");
	tree_put_thread(t, 10, 10, "mariadbd", 'S', 500, 11);
	tree_put_thread(t, 20, 20, "mariadbd", 'D', 500, 11);
	for (unsigned int i = 0; i < 3; i++)
		next(t, w);
	assert_int_equal(watch_last(w)->threads.blocked, 2);
	watch_free(w);

	/* Frozen before iostall was started. */
	put(t, file, "1\n");
	w = tree_watch(t);
	for (unsigned int i = 0; i < 3; i++)
		next(t, w);
	assert_int_equal(watch_last(w)->threads.blocked, 0);
	watch_free(w);
}

static bool parse(const char *text)
{
	return freezers_parse(text, strlen(text));
}

static void test_texts(void **state)
{
	(void)state;
	assert_true(parse("1\n"));
	assert_false(parse("0\n"));
	assert_false(parse("10\n"));
	assert_true(parse("populated 1\nfrozen 1\n"));
	assert_false(parse("frozen 0\n"));
	assert_false(parse("frozen 10\n"));
	assert_false(parse("unfrozen 1\n"));
	assert_false(parse(""));
}

static void test_rule(void **state)
{
	struct config_rule config[CONFIG_RULE_COUNT] = { 0 };
	struct rules_firing firings[4];
	struct tree *t = *state;
	unsigned int fired = 0;
	struct rules *rules;
	struct watch *w = watch_server(t);

	config[CONFIG_RULE_stopped] = (struct config_rule){ true, 0.5, 0.5, 1, 5 * NSEC_PER_SEC };
	assert_int_equal(rules_new(config, &rules), 0);
	tree_put_thread(t, 10, 10, "mariadbd", 'T', 500, 10);
	for (unsigned int i = 0; i < 20; i++) {
		next(t, w);
		fired += (unsigned int)rules_evaluate(rules, w, t->now_ns, firings, 4);
		assert_int_equal(fired, i < 1 ? 0 : 1);
	}
	assert_string_equal(firings[0].name, "stopped");
	assert_string_equal(firings[0].subject, "mariadbd");
	assert_int_equal(firings[0].pid, 10);
	assert_int_equal(firings[0].scope, RULES_SCOPE_stopped);
	assert_int_equal(rules_holding(rules), 1);
	tree_put_thread(t, 10, 10, "mariadbd", 'S', 500, 11);
	next(t, w);
	rules_evaluate(rules, w, t->now_ns, firings, 4);
	assert_int_equal(rules_holding(rules), 0);
	rules_free(rules);
	watch_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		tree_test(test_signal),
		tree_test(test_debugger),
		tree_test(test_another_debugger),
		tree_test(test_left_stopped),
		tree_test(test_freezer),
		tree_test(test_frozen_threads_are_not_blocked),
		tree_test(test_reload),
		tree_test(test_left_the_group),
		tree_test(test_all_have_left_the_group),
		tree_test(test_frozen_process_ends),
		tree_test(test_frozen_while_an_incident_is_open),
		tree_test(test_rule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
