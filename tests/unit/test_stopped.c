/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Processes that are stopped: what is seen of them, the rule, and what the verdict says. */
#include "test_watch_tree.h"

#include "test_verdict_setup.h"
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
	assert_int_equal(s->tracer, 99);
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
	};
	struct tree *t = *state;

	tree_list_add(&t->process, "mariadbd");
	tree_put_thread(t, 10, 10, "mariadbd", 'S', 500, 9);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct record_stopped *s;
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
		put(t, cases[i].file, cases[i].running);
		assert_false(next(t, w)->present);
		/* As of a group that has been removed. */
		put(t, cases[i].file, "");
		next(t, w);
		put(t, cases[i].file, cases[i].frozen);
		assert_false(next(t, w)->present);
		watch_free(w);
	}
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

/* The verdict */

static const struct record_stopped by_signal = { .present = true,
	.pid = 2211,
	.comm = "mariadbd",
	.threads = 7 };

static void stopped_samples(struct fixture *x, const struct record_stopped *stopped,
	unsigned int seconds)
{
	for (unsigned int i = 1; i <= seconds; i++) {
		struct record_sample s = { 0 };

		s.reading.mono_ns = x->now_ns += NSEC_PER_SEC;
		s.reading.interval_ns = NSEC_PER_SEC;
		s.limits.stopped = *stopped;
		s.limits.stopped.stopped_ns = i * NSEC_PER_SEC;
		verdict_note_sample(&x->f, &s);
	}
}

static void test_sentences(void **state)
{
	struct record_stopped traced = by_signal, frozen = by_signal;
	struct fixture *x = *state;

	stopped_samples(x, &by_signal, 9);
	decide(x);
	assert_verdict(x, "stopped", "measured",
		"mariadbd pid 2211 was stopped for at least 9.00 s by a signal, such as SIGSTOP");
	assert_int_equal(part(x, "cause")->pid, 2211);
	assert_null(part(x, "culprit"));
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	traced.tracer = 99;
	text_copy(traced.tracer_comm, sizeof(traced.tracer_comm), "gdb");
	stopped_samples(x, &traced, 4);
	decide(x);
	assert_verdict(x, "stopped", "measured",
		"mariadbd pid 2211 was stopped for at least 4.00 s by the debugger gdb pid 99");
	assert_int_equal(part(x, "culprit")->pid, 99);
	assert_int_equal(part(x, "culprit")->threads, 7);
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	text_copy(frozen.cgroup, sizeof(frozen.cgroup), GROUP);
	stopped_samples(x, &frozen, 5);
	decide(x);
	assert_verdict(x, "stopped", "measured",
		"mariadbd pid 2211 was stopped for at least 5.00 s: its control group " GROUP
		" was frozen, as by docker pause");
}

/* Whoever attaches a debugger to a process that is stopped already has not stopped it. */
static void test_a_debugger_that_comes_later(void **state)
{
	struct record_stopped traced = by_signal;
	struct fixture *x = *state;

	stopped_samples(x, &by_signal, 9);
	traced.tracer = 99;
	stopped_samples(x, &traced, 3);
	decide(x);
	assert_null(part(x, "culprit"));
	assert_non_null(strstr(x->v.sentence, "for at least 9.00 s by a signal"));
	/* The other way round it is the longer one, too. */
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	stopped_samples(x, &traced, 3);
	stopped_samples(x, &by_signal, 9);
	decide(x);
	assert_null(part(x, "culprit"));
}

/* What it was before the incident is no cost of it. */
static void test_stopped_before_the_incident(void **state)
{
	struct record_sample s = { .reading.interval_ns = NSEC_PER_SEC };
	struct fixture *x = *state;

	s.limits.stopped = by_signal;
	s.limits.stopped.threads = 1;
	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 80 * MIB, 5 * MS);
	operation(x, 2230, "device", 9 * NSEC_PER_SEC, true);
	s.reading.mono_ns = TRIGGER_NS + NSEC_PER_SEC;
	s.limits.stopped.stopped_ns = 110 * NSEC_PER_SEC;
	verdict_note_sample(&x->f, &s);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "saturated");
}

/* It is why its database does not answer, but not why another one does not. */
static void test_database(void **state)
{
	const struct verdict_unresponsive silent = { .ns = 10300 * MS, .stopped = true };
	struct verdict_who server = { .pid = 2211, .comm = "mariadbd" };
	struct fixture *x = *state;

	stopped_samples(x, &by_signal, 9);
	verdict_note_unresponsive(&x->f, 0, "main", &server, &silent);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "stopped");
	assert_non_null(strstr(x->v.sentence,
		"; database main (mariadbd pid 2211) did not answer for 10.30 s because"));
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	server.pid = 4711;
	text_copy(server.comm, sizeof(server.comm), "postgres");
	stopped_samples(x, &by_signal, 1);
	verdict_note_unresponsive(&x->f, 0, "main", &server, &silent);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "unanswered");
}

/* What cost more comes first, and the other one stands second. */
static void test_beside_a_disk(void **state)
{
	struct record_stopped one = by_signal;
	struct fixture *x = *state;

	one.threads = 1;
	stopped_samples(x, &one, 2);
	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 80 * MIB, 5 * MS);
	operation(x, 2230, "device", 3 * NSEC_PER_SEC, true);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "saturated");
	assert_non_null(strstr(x->v.sentence, ". Besides, mariadbd pid 2211 was stopped"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test_setup_teardown(test_signal, tree_setup, tree_teardown),
		cmocka_unit_test_setup_teardown(test_debugger, tree_setup, tree_teardown),
		cmocka_unit_test_setup_teardown(test_left_stopped, tree_setup, tree_teardown),
		cmocka_unit_test_setup_teardown(test_freezer, tree_setup, tree_teardown),
		cmocka_unit_test_setup_teardown(test_frozen_threads_are_not_blocked, tree_setup,
			tree_teardown),
		cmocka_unit_test_setup_teardown(test_rule, tree_setup, tree_teardown),
		cmocka_unit_test_setup_teardown(test_sentences, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_debugger_that_comes_later, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stopped_before_the_incident, setup, teardown),
		cmocka_unit_test_setup_teardown(test_database, setup, teardown),
		cmocka_unit_test_setup_teardown(test_beside_a_disk, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
