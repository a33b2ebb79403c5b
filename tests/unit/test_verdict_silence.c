/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The verdict: a database that does not answer, and what stands before that. */
#include "test_verdict_setup.h"

#define SENTENCE "database main (mariadbd pid 2211) has not answered for 10.30 s"

/* Of the target with that index, by one more note. */
static void silence(struct fixture *x, unsigned int target, uint64_t ns, bool stopped)
{
	static const char *const names[] = { "main", "other" };
	const struct verdict_who server = { .pid = 2211 + (int32_t)target, .comm = "mariadbd" };
	const struct verdict_silence s = { .ns = ns, .stopped = stopped };

	verdict_note_silence(&x->f, target, names[target], &server, &s);
}

static void test_a_stopped_server(void **state)
{
	struct record_operation op = { .op = "openat", .probe = "wait", .pid = 99, .tid = 99,
		.comm = "journald", .dur_ns = 155 * MS };
	struct fixture *x = *state;

	samples(x, &idle_sdb, 5);
	verdict_note_operation(&x->f, &op, true);
	silence(x, 0, 6 * NSEC_PER_SEC, true);
	silence(x, 0, 10300 * MS, true);
	silence(x, 0, 0, false);
	decide(x);
	assert_verdict(x, "unanswered", "measured", SENTENCE ", it is stopped");
	assert_string_equal(x->v.message, x->v.sentence);
	assert_string_equal(part(x, "database")->text,
		"main (mariadbd pid 2211) has not answered for 10.30 s, it is stopped");
	assert_string_equal(part(x, "database")->basis, "measured");
	assert_int_equal(part(x, "database")->pid, 2211);
	assert_int_equal(part(x, "database")->longest_ns, 10300 * MS);
	/* What others wait for is not their database. */
	assert_null(part(x, "victims"));
	assert_null(part(x, "missing"));
}

static void test_its_threads_are_victims(void **state)
{
	struct fixture *x = *state;

	operation(x, 2230, "", 300 * MS, true);
	silence(x, 0, 10300 * MS, false);
	decide(x);
	assert_verdict(x, "unanswered", "measured", SENTENCE "; 1 thread waited up to 300 ms");
	assert_string_equal(part(x, "missing")->text, "why the database does not answer");
}

static void test_a_slow_answer_is_no_silence(void **state)
{
	struct fixture *x = *state;

	silence(x, 0, 2 * NSEC_PER_SEC - 1, true);
	decide(x);
	assert_string_equal(x->v.class_name, "unknown");
	assert_null(part(x, "database"));
	silence(x, 0, 2 * NSEC_PER_SEC, true);
	decide(x);
	assert_string_equal(x->v.class_name, "unanswered");
}

/* On another host, or behind a proxy. */
static void test_a_server_that_is_not_known(void **state)
{
	const struct verdict_silence s = { .ns = 3 * NSEC_PER_SEC };
	struct fixture *x = *state;

	verdict_note_silence(&x->f, 7, "far", &(struct verdict_who){ 0 }, &s);
	decide(x);
	assert_verdict(x, "unanswered", "measured", "database far has not answered for 3.00 s");
}

static void test_the_longest_silence(void **state)
{
	struct fixture *x = *state;

	/* Stopped in the shorter one only. */
	silence(x, 0, 3 * NSEC_PER_SEC, true);
	silence(x, 1, 3 * NSEC_PER_SEC + 1, false);
	silence(x, 0, 0, false);
	silence(x, 0, 2 * NSEC_PER_SEC, false);
	silence(x, 0, 10300 * MS, false);
	silence(x, 1, 4 * NSEC_PER_SEC, true);
	decide(x);
	assert_verdict(x, "unanswered", "measured", SENTENCE);
	/* It goes on, and the answer has not come yet. */
	silence(x, 1, 11 * NSEC_PER_SEC, false);
	decide(x);
	assert_verdict(x, "unanswered", "measured",
		"database other (mariadbd pid 2212) has not answered for 11.00 s, it is stopped");
}

/* The server's own waits are the reason, those of others are not; a stop is one itself. */
static void test_waits_and_silence(void **state)
{
	struct record_operation op = { .op = "read", .probe = "wait", .pid = 99, .tid = 99, .comm = "tar",
		.waits_for = "mutex", .dur_ns = 5 * NSEC_PER_SEC };
	struct fixture *x = *state;

	samples(x, &idle_sdb, 5);
	verdict_note_operation(&x->f, &op, true);
	silence(x, 0, 10300 * MS, false);
	decide(x);
	assert_verdict(x, "unanswered", "measured", SENTENCE);
	operation(x, 2230, "mutex", 4 * NSEC_PER_SEC, true);
	decide(x);
	assert_verdict(x, "waiting", "measured", "no device at its limit, threads wait for a kernel lock "
		"(mutex), the longest is tar pid 99; 2 threads waited up to 5.00 s; " SENTENCE);
	assert_int_equal(part(x, "database")->pid, 2211);
	silence(x, 0, 10301 * MS, true);
	decide(x);
	assert_string_equal(x->v.class_name, "unanswered");
}

/* Each session of PostgreSQL is a process. */
static void test_waits_of_a_backend(void **state)
{
	struct record_operation op = { .op = "read", .probe = "wait", .pid = 4711, .tid = 4711,
		.comm = "postgres", .waits_for = "mutex", .dur_ns = 5 * NSEC_PER_SEC };
	const struct verdict_who server = { .pid = 4700, .comm = "postgres" };
	const struct verdict_silence s = { .ns = 3 * NSEC_PER_SEC };
	struct fixture *x = *state;

	verdict_note_operation(&x->f, &op, true);
	verdict_note_silence(&x->f, 0, "main", &server, &s);
	decide(x);
	assert_string_equal(x->v.class_name, "waiting");
}

/* It is why it does not answer. */
static void test_a_device_and_silence(void **state)
{
	struct fixture *x = *state;

	samples(x, &slow_sdb, 5);
	totals(x, 40, 40 * 4096, 130 * MS);
	silence(x, 0, 10300 * MS, true);
	decide(x);
	assert_string_equal(x->v.class_name, "slow");
	assert_non_null(strstr(x->v.sentence, " a second); " SENTENCE ", it is stopped"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		verdict_test(test_a_stopped_server),
		verdict_test(test_its_threads_are_victims),
		verdict_test(test_a_slow_answer_is_no_silence),
		verdict_test(test_a_server_that_is_not_known),
		verdict_test(test_the_longest_silence),
		verdict_test(test_waits_and_silence),
		verdict_test(test_waits_of_a_backend),
		verdict_test(test_a_device_and_silence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
