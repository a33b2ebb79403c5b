/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Which session a thread served, and which statements count. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "sql/snapshot.h"
#include "util/clock.h"

#define TID 2225
#define SEC NSEC_PER_SEC

/* One answer with one statement of the thread. */
static void answer(struct sql_snapshot *snapshot, uint64_t answered_ns, uint64_t elapsed_ns,
	const char *text)
{
	struct sql_frame_session session = { .tid = TID,
		.connection_id = 17,
		.elapsed_ns = elapsed_ns };
	const struct sql_frame_end end = { .server_ns = 1 };

	strcpy(session.text, text);
	sql_snapshot_begin(snapshot, answered_ns - 1);
	assert_int_equal(sql_snapshot_add(snapshot, &session), 0);
	sql_snapshot_end(snapshot, &end, answered_ns);
}

static uint64_t connection(const struct sql_snapshot *snapshot, uint64_t start_ns, uint64_t end_ns,
	bool is_request)
{
	const struct sql_operation op = { TID, is_request, start_ns, end_ns };

	return sql_snapshot_find_connection(snapshot, &op, false);
}

/* Before the question and after the answer the thread may have served another session. */
static void test_the_connection_of_an_operation(void **state)
{
	static struct sql_snapshot newest;
	const struct sql_operation other = { TID + 1, false, 90 * SEC, 110 * SEC };

	(void)state;
	answer(&newest, 100 * SEC, 10 * SEC, "SELECT");
	newest.asked_ns = 99 * SEC;
	assert_int_equal(connection(&newest, 99 * SEC, 100 * SEC, false), 17);
	assert_int_equal(connection(&newest, 50 * SEC, 200 * SEC, false), 17);
	assert_int_equal(connection(&newest, 99 * SEC + 1, 200 * SEC, false), 0);
	assert_int_equal(connection(&newest, 50 * SEC, 100 * SEC - 1, false), 0);
	assert_int_equal(sql_snapshot_find_connection(&newest, &other, false), 0);
	/* Nor does it wait for a request, which is of what it ran when it began. */
	assert_int_equal(connection(&newest, 91 * SEC, 200 * SEC, true), 17);
	assert_int_equal(connection(&newest, 91 * SEC - 1, 200 * SEC, true), 0);
	newest.rows[0].idle = true;
	assert_int_equal(connection(&newest, 99 * SEC, 100 * SEC, false), 0);
}

/* It serves no other, but its number may some day be another one's. */
static void test_the_connection_of_a_process(void **state)
{
	static struct sql_snapshot newest;
	struct sql_operation op = { TID, true, 101 * SEC, 101 * SEC + 1 };

	(void)state;
	answer(&newest, 100 * SEC, SEC / 2, "SELECT");
	assert_int_equal(sql_snapshot_find_connection(&newest, &op, true), 17);
	assert_int_equal(sql_snapshot_find_connection(&newest, &op, false), 0);
	op.start_ns = 102 * SEC + 1;
	assert_int_equal(sql_snapshot_find_connection(&newest, &op, true), 0);
	op.start_ns = op.end_ns = 98 * SEC - 1;
	assert_int_equal(sql_snapshot_find_connection(&newest, &op, true), 0);
	op.end_ns++;
	assert_int_equal(sql_snapshot_find_connection(&newest, &op, true), 17);
	op.tid = TID + 1;
	assert_int_equal(sql_snapshot_find_connection(&newest, &op, true), 0);
}

/* A worker of a parallel query serves the session of its leader. */
static void test_the_connection_of_a_worker(void **state)
{
	static struct sql_snapshot newest;
	struct sql_frame_session worker = { .tid = TID + 5,
		.connection_id = 99,
		.leader_pid = TID };
	const struct sql_operation op = { TID + 5, false, 90 * SEC, 110 * SEC };

	(void)state;
	answer(&newest, 100 * SEC, 10 * SEC, "SELECT");
	assert_int_equal(sql_snapshot_add(&newest, &worker), 0);
	assert_int_equal(sql_snapshot_find_connection(&newest, &op, false), 17);
}

/* A leader, its worker, which says the same statement, and another session. */
static void answer_of_workers(struct sql_snapshot *snapshot)
{
	struct sql_frame_session leader = { .tid = TID,
		.connection_id = 17,
		.elapsed_ns = 5 * SEC };
	struct sql_frame_session worker = { .tid = TID + 1,
		.connection_id = 18,
		.elapsed_ns = 5 * SEC,
		.leader_pid = TID };
	struct sql_frame_session other = { .tid = TID + 2,
		.connection_id = 19,
		.elapsed_ns = 3 * SEC };

	strcpy(leader.text, "SELECT");
	strcpy(worker.text, "SELECT");
	strcpy(other.text, "INSERT");
	sql_snapshot_begin(snapshot, 99 * SEC);
	sql_snapshot_add(snapshot, &leader);
	sql_snapshot_add(snapshot, &worker);
	sql_snapshot_add(snapshot, &other);
	sql_snapshot_end(snapshot, &(struct sql_frame_end){ .server_ns = 1 }, 100 * SEC);
}

static void test_the_statement_of_a_worker_is_no_other(void **state)
{
	static struct sql_snapshot snapshot;
	struct sql_session_view leader, worker, other;

	(void)state;
	answer_of_workers(&snapshot);
	sql_snapshot_view(&snapshot, 0, &leader);
	sql_snapshot_view(&snapshot, 1, &worker);
	sql_snapshot_view(&snapshot, 2, &other);
	assert_int_equal(leader.alike, 1);
	assert_int_equal(worker.key, leader.key);
	assert_int_not_equal(other.key, leader.key);
}

static void test_a_statement_with_workers_is_one(void **state)
{
	static struct sql_snapshot worst;

	(void)state;
	answer_of_workers(&worst);
	assert_int_equal(worst.count, 3);
	assert_int_equal(worst.active, 2);
	assert_int_equal(worst.longest_ns, 5 * SEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_connection_of_an_operation),
		cmocka_unit_test(test_the_connection_of_a_process),
		cmocka_unit_test(test_the_connection_of_a_worker),
		cmocka_unit_test(test_the_statement_of_a_worker_is_no_other),
		cmocka_unit_test(test_a_statement_with_workers_is_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
