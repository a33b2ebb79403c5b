/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Targets with helpers that lie, hang, die or cannot be started, and servers that refuse. */
#include "test_sql_setup.h"

#include <poll.h>

#include "util/cleanup.h"

static void test_refused(void **state)
{
	struct fixture f;
	struct sql_evidence e;

	(void)state;
	setup_with(&f, "sql.refused");
	run_until(&f, says_why);
	e = evidence(&f);
	assert_string_equal(e.why, "Access denied for user 'iostall'@'localhost'");
	assert_string_equal(e.missing, "CREATE USER iostall@localhost");
	assert_null(e.current);
	teardown(&f);
}

static void test_invalid_messages_end_the_helper(void **state)
{
	static const char *const modes[] = { "sql.garbage", "sql.other", "sql.flood",
		"sql.logins" };
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		setup_with(&f, modes[i]);
		run_until(&f, says_why);
		assert_string_equal(evidence(&f).why,
			"its helper process sent an invalid message; it is started again");
		assert_null(evidence(&f).current);
		teardown(&f);
	}
}

static bool has_answer_again(struct fixture *f)
{
	return evidence(f).current && !*evidence(f).why;
}

/* While an incident is open nothing is started; afterwards it is. */
static void test_helper_that_dies(void **state)
{
	struct fixture f;

	(void)state;
	setup_with(&f, "sql.dies");
	run_until(&f, has_answer);
	f.armed = true;
	run_until(&f, says_why);
	assert_string_equal(evidence(&f).why, "its helper process has ended; it is started again");
	f.until_ns = clock_mono_ns() + 200 * MS;
	while (clock_mono_ns() < f.until_ns) {
		sql_tick(f.sql, true);
		poll(NULL, 0, 1);
		assert_string_equal(evidence(&f).why,
			"its helper process has ended; it is started again");
	}
	f.armed = false;
	run_until(&f, has_answer_again);
	teardown(&f);
}

static bool is_unanswered(struct fixture *f)
{
	return evidence(f).unanswered_ns > 0;
}

static bool is_answered(struct fixture *f)
{
	return evidence(f).unanswered_ns == 0 && has_answer_again(f);
}

static void test_helper_that_hangs(void **state)
{
	struct fixture f;
	char buf[256];
	struct text text = TEXT_ON(buf);

	(void)state;
	setup_with(&f, "sql.stops");
	run_until(&f, has_answer);
	f.armed = true;
	sql_begin_incident(f.sql);
	run_until(&f, is_unanswered);
	assert_null(evidence(&f).current);
	text_reset(&text);
	sql_describe_target(f.sql, 0, &text);
	assert_non_null(strstr(buf, "has not answered for "));
	f.armed = false;
	run_until(&f, says_why);
	assert_string_equal(evidence(&f).why,
		"its helper process did not answer; it is started again");
	run_until(&f, is_answered);
	teardown(&f);
}

/* The helper answers, the server does not: its silence adds up over the questions. */
static bool is_silent_for_long(struct fixture *f)
{
	return evidence(f).unanswered_ns > 100 * MS;
}

static void test_silent_server(void **state)
{
	struct fixture f;

	(void)state;
	setup_with(&f, "sql.silent");
	run_until(&f, has_answer);
	run_until(&f, is_silent_for_long);
	assert_string_equal(evidence(&f).why, SQL_ERROR_UNRESPONSIVE);
	teardown(&f);
}

/* It is asked again soon, however long a database is left alone that refuses us. */
static void test_a_late_answer_is_no_silence(void **state)
{
	const uint64_t begin_ns = clock_mono_ns();
	struct fixture f;

	(void)state;
	setup_retry_ns = 10 * NSEC_PER_SEC;
	setup_with(&f, "sql.hiccup");
	setup_retry_ns = 20 * MS;
	run_until(&f, says_why);
	run_until(&f, is_answered);
	assert_in_range(clock_mono_ns() - begin_ns, NSEC_PER_SEC, 8 * NSEC_PER_SEC);
	teardown(&f);
}

static void test_no_helper(void **state)
{
	struct fixture f;

	(void)state;
	setup_with(&f, "sql.good");
	f.sql = sql_free(f.sql);
	assert_int_equal(sql_new(&(struct sql_options){ .config = &f.config,
					 .procfs = "/proc",
					 .loop = f.loop,
					 .helper = "/nonexistent",
					 .timing = { .backoff_ns = 20 * MS } },
				 &f.sql),
		0);
	run_until(&f, says_why);
	assert_string_equal(evidence(&f).why, "its helper process has ended; it is started again");
	teardown(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_invalid_messages_end_the_helper),
		cmocka_unit_test(test_helper_that_dies),
		cmocka_unit_test(test_helper_that_hangs),
		cmocka_unit_test(test_silent_server),
		cmocka_unit_test(test_a_late_answer_is_no_silence),
		cmocka_unit_test(test_no_helper),
	};

	if (argc == 3 && strcmp(argv[1], "sql-helper") == 0)
		return fake_main(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
