/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* The verdict: a database that does not answer, and causes that explain why it does not. */
#include "test_verdict_setup.h"

#define SENTENCE "database main (mariadbd pid 2211) did not answer for 10.30 s"

/* Notes how long the database with that index has been unresponsive. */
static void unresponsive(struct fixture *x, unsigned int target, uint64_t ns, bool stopped)
{
	static const char *const names[] = { "main", "other" };
	const struct verdict_who server = { .pid = 2211 + (int32_t)target, .comm = "mariadbd" };
	const struct verdict_unresponsive s = { .ns = ns, .stopped = stopped };

	verdict_note_unresponsive(&x->f, target, names[target], &server, &s);
}

static void test_a_stopped_server(void **state)
{
	struct record_operation op = { .op = RECORD_OP_open,
		.probe = RECORD_PROBE_wait,
		.pid = 99,
		.tid = 99,
		.comm = "journald",
		.dur_ns = 155 * MS };
	struct fixture *x = *state;

	samples(x, &idle_sdb, 5);
	verdict_note_operation(&x->f, &op, true);
	unresponsive(x, 0, 6 * NSEC_PER_SEC, true);
	unresponsive(x, 0, 10300 * MS, true);
	unresponsive(x, 0, 0, false);
	decide(x);
	assert_verdict(x, "unanswered", "measured", SENTENCE " because its process was stopped");
	assert_string_equal(x->v.message, x->v.sentence);
	assert_string_equal(part(x, "database")->text,
		"main (mariadbd pid 2211) did not answer for 10.30 s because its process was "
		"stopped");
	assert_string_equal(record_basis_text(part(x, "database")->basis), "measured");
	assert_int_equal(part(x, "database")->pid, 2211);
	assert_int_equal(part(x, "database")->longest_ns, 10300 * MS);
	/* Threads of other processes are not victims of the database. */
	assert_null(part(x, "victims"));
	assert_null(part(x, "missing"));
}

static void test_threads_of_the_unresponsive_server_are_victims(void **state)
{
	struct fixture *x = *state;

	operation(x, 2230, "", 300 * MS, true);
	unresponsive(x, 0, 10300 * MS, false);
	decide(x);
	assert_verdict(x, "unanswered", "measured", SENTENCE "; 1 thread waited 300 ms");
	assert_string_equal(part(x, "missing")->text,
		"it is not known why the database did not answer");
}

static void test_a_slow_answer_is_not_unresponsive(void **state)
{
	struct fixture *x = *state;

	unresponsive(x, 0, 2 * NSEC_PER_SEC - 1, true);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "unknown");
	assert_null(part(x, "database"));
	unresponsive(x, 0, 2 * NSEC_PER_SEC, true);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "unanswered");
}

/* It runs on another host, or behind a proxy. */
static void test_an_unresponsive_server_without_a_known_process(void **state)
{
	const struct verdict_unresponsive s = { .ns = 3 * NSEC_PER_SEC };
	struct fixture *x = *state;

	verdict_note_unresponsive(&x->f, 7, "far", &(struct verdict_who){ 0 }, &s);
	decide(x);
	assert_verdict(x, "unanswered", "measured", "database far did not answer for 3.00 s");
}

static void test_the_longest_unresponsive_database_is_named(void **state)
{
	struct fixture *x = *state;

	/* It was stopped during the shorter time only. */
	unresponsive(x, 0, 3 * NSEC_PER_SEC, true);
	unresponsive(x, 1, 3 * NSEC_PER_SEC + 1, false);
	unresponsive(x, 0, 0, false);
	unresponsive(x, 0, 2 * NSEC_PER_SEC, false);
	unresponsive(x, 0, 10300 * MS, false);
	unresponsive(x, 1, 4 * NSEC_PER_SEC, true);
	decide(x);
	assert_verdict(x, "unanswered", "measured", SENTENCE);
	/* The process has been continued, but its answer has not arrived yet. */
	unresponsive(x, 1, 11 * NSEC_PER_SEC, false);
	decide(x);
	assert_verdict(x, "unanswered", "measured",
		"database other (mariadbd pid 2212) did not answer for 11.00 s because its "
		"process was stopped");
}

/* Waits of other processes do not explain it, and a stopped process needs no other explanation. */
static void test_waits_of_the_server_explain_why_it_is_unresponsive(void **state)
{
	struct record_operation op = { .op = RECORD_OP_read,
		.probe = RECORD_PROBE_wait,
		.pid = 99,
		.tid = 99,
		.comm = "tar",
		.waits_for = RECORD_CAUSE_mutex,
		.dur_ns = 5 * NSEC_PER_SEC };
	struct fixture *x = *state;

	samples(x, &idle_sdb, 5);
	verdict_note_operation(&x->f, &op, true);
	unresponsive(x, 0, 10300 * MS, false);
	decide(x);
	assert_verdict(x, "unanswered", "measured", SENTENCE);
	operation(x, 2230, "mutex", 4 * NSEC_PER_SEC, true);
	decide(x);
	assert_verdict(x, "waiting", "measured",
		"threads waited for a kernel lock (mutex), tar pid 99 the longest, while no "
		"device was at its limit; 2 threads waited up to 5.00 s; " SENTENCE);
	assert_int_equal(part(x, "database")->pid, 2211);
	unresponsive(x, 0, 10301 * MS, true);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "unanswered");
}

/* Each PostgreSQL session is a process. */
static void test_waits_of_a_backend_explain_why_postgresql_is_unresponsive(void **state)
{
	struct record_operation op = { .op = RECORD_OP_read,
		.probe = RECORD_PROBE_wait,
		.pid = 4711,
		.tid = 4711,
		.comm = "postgres",
		.waits_for = RECORD_CAUSE_mutex,
		.start_mono_ns = TRIGGER_NS,
		.dur_ns = 5 * NSEC_PER_SEC };
	const struct verdict_who server = { .pid = 4700, .comm = "postgres" };
	const struct verdict_unresponsive s = { .ns = 3 * NSEC_PER_SEC };
	struct fixture *x = *state;

	verdict_note_operation(&x->f, &op, true);
	verdict_note_unresponsive(&x->f, 0, "main", &server, &s);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "waiting");
}

static void test_a_slow_device_explains_why_a_database_is_unresponsive(void **state)
{
	struct fixture *x = *state;

	samples(x, &slow_sdb, 5);
	totals(x, 40, 40 * 4096, 130 * MS);
	unresponsive(x, 0, 10300 * MS, false);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "slow");
	assert_non_null(strstr(x->v.sentence, "/s); " SENTENCE));
}

/* A short freeze of a file system that the server has nothing to do with. */
static void test_an_unrelated_freeze_does_not_explain_it(void **state)
{
	struct fixture *x = *state;

	samples(x, &idle_sdb, 5);
	freeze(x, 99, 1200 * MS);
	unresponsive(x, 0, 20 * NSEC_PER_SEC, false);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "unanswered");
	assert_non_null(strstr(x->v.sentence,
		"database main (mariadbd pid 2211) did not answer for 20.00 s. Besides, the file "
		"system on loop7 was frozen"));
	/* It waits for it, too. */
	freeze(x, 2211, 1200 * MS);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "frozen");
}

/* Sessions of another database wait for a lock. */
static void test_a_lock_of_another_database_does_not_explain_it(void **state)
{
	struct verdict_queue q = { .target = "other",
		.waiters = 5,
		.longest_ns = 2 * NSEC_PER_SEC,
		.waited_ns = 8 * NSEC_PER_SEC };
	struct fixture *x = *state;

	samples(x, &idle_sdb, 5);
	verdict_note_queue(&x->f, &q);
	unresponsive(x, 0, 20 * NSEC_PER_SEC, false);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "unanswered");
	text_copy(q.target, sizeof(q.target), "main");
	q.waited_ns = 9 * NSEC_PER_SEC;
	verdict_note_queue(&x->f, &q);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "locked");
}

/* Its threads wait for one of its mutexes. A mutex of another server explains nothing. */
static void test_a_mutex_explains_why_it_is_unresponsive(void **state)
{
	static const struct {
		int32_t pid;
		const char *class;
	} cases[] = { { 2211, "locked" }, { 2212, "unanswered" } };
	struct fixture *x = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct record_lock_wait lock = { .kind = RECORD_KERNEL_LOCK_mutex,
			.id = 1,
			.pid = cases[i].pid,
			.comm = "mariadbd",
			.waiters = 1,
			.longest_ns = 6 * NSEC_PER_SEC,
			.holder = { .present = true,
				.pid = cases[i].pid,
				.tid = 2299,
				.state = 'R',
				.syscall = -1,
				.held_ns = 6 * NSEC_PER_SEC } };

		verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
		samples(x, &idle_sdb, 5);
		verdict_note_lock(&x->f, &lock);
		unresponsive(x, 0, 10300 * MS, false);
		decide(x);
		assert_string_equal(record_class_text(x->v.class), cases[i].class);
		assert_non_null(strstr(x->v.sentence, "for a mutex of that program: thread 2299"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		verdict_test(test_a_stopped_server),
		verdict_test(test_threads_of_the_unresponsive_server_are_victims),
		verdict_test(test_a_slow_answer_is_not_unresponsive),
		verdict_test(test_an_unresponsive_server_without_a_known_process),
		verdict_test(test_the_longest_unresponsive_database_is_named),
		verdict_test(test_waits_of_the_server_explain_why_it_is_unresponsive),
		verdict_test(test_waits_of_a_backend_explain_why_postgresql_is_unresponsive),
		verdict_test(test_a_slow_device_explains_why_a_database_is_unresponsive),
		verdict_test(test_an_unrelated_freeze_does_not_explain_it),
		verdict_test(test_a_mutex_explains_why_it_is_unresponsive),
		verdict_test(test_a_lock_of_another_database_does_not_explain_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
