/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* For whom the I/O workers of a server read. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "sql/io_workers.h"

static struct sql_snapshot answer;
static struct sql_io_workers workers;

static int begin(void **state)
{
	(void)state;
	sql_snapshot_begin(&answer, 1);
	sql_io_workers_begin(&workers);
	return 0;
}

static void session(int32_t pid, int32_t leader, const char *text, uint32_t served)
{
	struct sql_frame_session s = { .tid = pid,
		.connection_id = (uint64_t)pid,
		.elapsed_ns = 1,
		.leader_pid = leader,
		.served = served };

	snprintf(s.text, sizeof(s.text), "%s", text);
	assert_int_equal(sql_snapshot_add(&answer, &s), 0);
}

static void assert_found(int32_t pid, uint32_t sessions)
{
	uint32_t found = 99;

	assert_int_equal(sql_io_workers_find(&workers, &found), pid);
	assert_int_equal(found, sessions);
}

static void test_nothing_is_known_without_an_answer(void **state)
{
	(void)state;
	assert_found(0, 0);
	session(10, 0, "SELECT 1", 0);
	sql_io_workers_take(&workers, &answer);
	assert_found(0, 0);
}

/* What they read for its parallel workers they read for it. */
static void test_a_backend_and_its_parallel_workers(void **state)
{
	(void)state;
	session(10, 0, "SELECT count(*) FROM big", 1);
	session(11, 10, "", 2);
	session(12, 10, "", 3);
	session(20, 0, "SELECT 1", 2);
	sql_io_workers_take(&workers, &answer);
	assert_found(10, 1);
	/* Seven of nine are three quarters, seven of ten are not. */
	begin(NULL);
	session(10, 0, "SELECT count(*) FROM big", 7);
	session(20, 0, "SELECT 1", 2);
	sql_io_workers_take(&workers, &answer);
	assert_found(10, 1);
	begin(NULL);
	session(10, 0, "SELECT count(*) FROM big", 7);
	session(20, 0, "SELECT 1", 3);
	sql_io_workers_take(&workers, &answer);
	assert_found(0, 0);
}

/* One answer is a sample: what counts is all of them together. */
static void test_answers_are_added_up(void **state)
{
	(void)state;
	session(10, 0, "SELECT count(*) FROM big", 5);
	sql_io_workers_take(&workers, &answer);
	sql_snapshot_begin(&answer, 2);
	session(20, 0, "SELECT 1", 5);
	sql_io_workers_take(&workers, &answer);
	assert_found(0, 0);
	sql_snapshot_begin(&answer, 3);
	session(10, 0, "SELECT count(*) FROM big", 10);
	sql_io_workers_take(&workers, &answer);
	assert_found(10, 1);
}

static void test_sessions_with_one_statement(void **state)
{
	(void)state;
	for (int32_t pid = 10; pid < 40; pid++)
		session(pid, 0, "SELECT count(*) FROM big", pid == 17 ? 2 : 1);
	session(50, 0, "SELECT 1", 10);
	sql_io_workers_take(&workers, &answer);
	assert_found(17, 30);
	/* Without their texts nobody knows that they are alike. */
	begin(NULL);
	for (int32_t pid = 10; pid < 40; pid++)
		session(pid, 0, "", 1);
	sql_io_workers_take(&workers, &answer);
	assert_found(0, 0);
}

/* Beyond the backends that have room, nobody is said to have most. */
static void test_more_backends_than_there_is_room_for(void **state)
{
	char text[32];

	(void)state;
	for (int32_t pid = 1; pid <= 2 * SQL_IO_WORKERS_MAX; pid++) {
		if (pid % 32 == 1)
			sql_snapshot_begin(&answer, (uint64_t)pid);
		snprintf(text, sizeof(text), "SELECT %d", pid);
		session(pid, 0, text, 1);
		if (pid % 32 == 0)
			sql_io_workers_take(&workers, &answer);
	}
	assert_int_equal(workers.reads, 2 * SQL_IO_WORKERS_MAX);
	assert_found(0, 0);
}

/* A process in another container has no number here. */
static void test_a_backend_that_is_not_known(void **state)
{
	(void)state;
	session(0, 0, "SELECT count(*) FROM big", 5);
	sql_io_workers_take(&workers, &answer);
	assert_found(0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_nothing_is_known_without_an_answer, begin),
		cmocka_unit_test_setup(test_a_backend_and_its_parallel_workers, begin),
		cmocka_unit_test_setup(test_answers_are_added_up, begin),
		cmocka_unit_test_setup(test_sessions_with_one_statement, begin),
		cmocka_unit_test_setup(test_more_backends_than_there_is_room_for, begin),
		cmocka_unit_test_setup(test_a_backend_that_is_not_known, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
