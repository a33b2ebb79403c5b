/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Who waits for whom in an answer: chains, several queues, and answers that make no sense. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "sql/locks.h"
#include "util/cleanup.h"
#include "util/clock.h"

#define SEC NSEC_PER_SEC

static struct sql_snapshot answer;

static int setup(void **state)
{
	(void)state;
	sql_snapshot_begin(&answer, 100 * SEC);
	answer.answered_ns = 100 * SEC;
	return 0;
}

static void session(uint64_t id, uint64_t elapsed_ns, bool idle)
{
	struct sql_frame_session frame = { .connection_id = id,
		.tid = (int32_t)id + 1000,
		.elapsed_ns = elapsed_ns,
		.transaction_ns = elapsed_ns + SEC,
		.idle = idle };

	strcpy(frame.user, "app@localhost");
	assert_int_equal(sql_snapshot_add(&answer, &frame), 0);
}

static int wait_for(uint64_t id, uint64_t blocker_id, enum record_lock lock, uint32_t candidates)
{
	struct sql_frame_lock frame = { .connection_id = id,
		.blocker_id = blocker_id,
		.lock = lock,
		.candidates = candidates,
		.object = "shop.orders" };

	for (uint32_t i = 0; i < answer.count; i++)
		if (answer.rows[i].connection_id == id)
			frame.waited_ns = answer.rows[i].elapsed_ns;
	return sql_snapshot_add_lock(&answer, &frame);
}

/* A reader that sleeps, an ALTER that waits for it, and ten behind that one. */
static void test_chain_to_its_end(void **state)
{
	struct sql_queue q;

	(void)state;
	session(1, 41 * SEC, true);
	session(2, 20 * SEC, false);
	for (uint64_t id = 3; id < 13; id++) {
		session(id, id * SEC, false);
		assert_int_equal(wait_for(id, 2, RECORD_LOCK_metadata, 0), 0);
	}
	assert_int_equal(wait_for(2, 1, RECORD_LOCK_metadata, 1), 0);
	assert_true(sql_find_queue(&answer, 0, &q));
	assert_int_equal(q.waiters, 11);
	assert_int_equal(q.longest_ns, 20 * SEC);
	assert_int_equal(q.waited_ns, (20 + 75) * SEC);
	assert_int_equal(q.lock, RECORD_LOCK_metadata);
	assert_string_equal(q.object, "shop.orders");
	assert_true(q.has_holder);
	assert_int_equal(q.holder.connection_id, 1);
	assert_true(q.holder.idle);
	assert_int_equal(q.holder.transaction_ns, 42 * SEC);
	assert_int_equal(q.candidates, 1);
	assert_int_equal(q.behind_first, 10);
	assert_int_equal(q.first.connection_id, 2);
}

static void test_the_queue_that_costs_most(void **state)
{
	struct sql_queue q;

	(void)state;
	session(1, SEC, true);
	session(2, 30 * SEC, false);
	session(3, SEC, true);
	session(4, 16 * SEC, false);
	session(5, 16 * SEC, false);
	assert_int_equal(wait_for(2, 1, RECORD_LOCK_metadata, 0), 0);
	assert_int_equal(wait_for(4, 3, RECORD_LOCK_row, 0), 0);
	assert_int_equal(wait_for(5, 3, RECORD_LOCK_row, 0), 0);
	assert_true(sql_find_queue(&answer, 0, &q));
	assert_int_equal(q.holder.connection_id, 3);
	assert_int_equal(q.lock, RECORD_LOCK_row);
	assert_int_equal(q.waiters, 2);
	assert_int_equal(q.candidates, 0);
	assert_int_equal(q.behind_first, 0);
}

/* A DDL that has waited for hours is one waiter of the incident, like any other. */
static void test_an_old_wait_is_no_larger(void **state)
{
	struct sql_queue q;

	(void)state;
	session(1, 95 * SEC, false);
	session(2, 10 * SEC, true);
	for (uint64_t id = 3; id < 7; id++)
		session(id, 4 * SEC, false);
	assert_int_equal(wait_for(1, 77, RECORD_LOCK_metadata, 0), 0);
	for (uint64_t id = 3; id < 7; id++)
		assert_int_equal(wait_for(id, 2, RECORD_LOCK_row, 0), 0);
	assert_true(sql_find_queue(&answer, 0, &q));
	assert_int_equal(q.lock, RECORD_LOCK_metadata);
	assert_true(sql_find_queue(&answer, 90 * SEC, &q));
	assert_int_equal(q.holder.connection_id, 2);
	assert_int_equal(q.waiters, 4);
	assert_int_equal(q.waited_ns, 16 * SEC);
}

/* One that elects a leader waits for days. */
static void test_an_advisory_lock(void **state)
{
	struct sql_queue q;

	(void)state;
	session(1, 50 * SEC, true);
	session(2, 30 * SEC, false);
	session(3, 4 * SEC, false);
	assert_int_equal(wait_for(2, 1, RECORD_LOCK_advisory, 0), 0);
	assert_false(sql_find_queue(&answer, 90 * SEC, &q));
	/* It began to wait in the incident. */
	assert_int_equal(wait_for(3, 1, RECORD_LOCK_advisory, 0), 0);
	assert_true(sql_find_queue(&answer, 90 * SEC, &q));
	assert_int_equal(q.lock, RECORD_LOCK_advisory);
	assert_int_equal(q.waiters, 1);
	assert_int_equal(q.holder.connection_id, 1);
	/* Behind one of the first kind. */
	assert_int_equal(wait_for(3, 2, RECORD_LOCK_row, 0), 0);
	assert_true(sql_find_queue(&answer, 90 * SEC, &q));
	assert_int_equal(q.waiters, 1);
	assert_int_equal(q.behind_first, 0);
}

/* As a prepared one after its program has ended. Who waits behind its waiters is in its queue. */
static void test_a_transaction_without_a_session(void **state)
{
	struct sql_frame_lock frame = { .connection_id = 1,
		.lock = RECORD_LOCK_row,
		.waited_ns = 9 * SEC,
		.has_no_session = 1 };
	struct sql_queue q;

	(void)state;
	session(1, 9 * SEC, false);
	session(2, 5 * SEC, false);
	session(3, 9 * SEC, false);
	assert_int_equal(sql_snapshot_add_lock(&answer, &frame), 0);
	assert_int_equal(wait_for(2, 1, RECORD_LOCK_row, 0), 0);
	assert_int_equal(wait_for(3, 0, RECORD_LOCK_row, 0), 0);
	assert_true(sql_find_queue(&answer, 0, &q));
	assert_true(q.is_without_session);
	assert_false(q.has_holder);
	assert_int_equal(q.waiters, 2);
	assert_int_equal(q.lock, RECORD_LOCK_row);
}

static void test_unknown_holders_and_circles(void **state)
{
	struct sql_queue q;

	(void)state;
	assert_false(sql_find_queue(&answer, 0, &q));
	session(1, 5 * SEC, false);
	session(2, 5 * SEC, false);
	session(3, 5 * SEC, false);
	assert_false(sql_find_queue(&answer, 0, &q));
	/* A deadlock: nobody holds it in the end. */
	assert_int_equal(wait_for(1, 2, RECORD_LOCK_row, 0), 0);
	assert_int_equal(wait_for(2, 1, RECORD_LOCK_row, 0), 0);
	assert_true(sql_find_queue(&answer, 0, &q));
	assert_false(q.has_holder);
	assert_int_equal(q.waiters, 2);
	/* It waits for itself, or for a session that is not there. */
	assert_int_equal(wait_for(3, 3, RECORD_LOCK_backup, 0), 0);
	assert_int_equal(wait_for(1, 77, RECORD_LOCK_row, 0), 0);
	assert_true(sql_find_queue(&answer, 0, &q));
	assert_false(q.has_holder);
	assert_int_equal(q.lock, RECORD_LOCK_row);
	assert_int_equal(q.waiters, 2);
	assert_int_equal(wait_for(78, 1, RECORD_LOCK_row, 0), -ENOENT);
}

/* Another answer, so many seconds later. */
static void answer_again(struct sql_snapshot *last, uint64_t seconds)
{
	static const struct sql_frame_end end;

	sql_snapshot_end(&answer, &end, answer.asked_ns);
	*last = answer;
	sql_snapshot_begin(&answer, last->asked_ns + seconds * SEC);
}

/* A report that runs for an hour and comes to the table that is locked only now. */
static void test_a_wait_is_not_the_whole_statement(void **state)
{
	static const struct sql_frame_end end;
	static struct sql_snapshot last;
	struct sql_frame_lock frame = { .connection_id = 1, .lock = RECORD_LOCK_metadata };
	struct sql_queue q;

	(void)state;
	session(1, 3600 * SEC, false);
	assert_int_equal(sql_snapshot_add_lock(&answer, &frame), 0);
	assert_true(sql_find_queue(&answer, 0, &q));
	assert_int_equal(q.waiters, 1);
	assert_int_equal(q.waited_ns, 0);
	for (uint64_t i = 1; i <= 2; i++) {
		answer_again(&last, 2);
		session(1, (3600 + 2 * i) * SEC, false);
		assert_int_equal(sql_snapshot_add_lock(&answer, &frame), 0);
		sql_snapshot_end(&answer, &end, answer.asked_ns);
		sql_snapshot_note_waits(&answer, &last);
		assert_true(sql_find_queue(&answer, 0, &q));
		assert_int_equal(q.waited_ns, 2 * i * SEC);
	}
	/* Another statement of the same session. */
	answer_again(&last, 2);
	session(1, SEC, false);
	assert_int_equal(sql_snapshot_add_lock(&answer, &frame), 0);
	sql_snapshot_end(&answer, &end, answer.asked_ns);
	sql_snapshot_note_waits(&answer, &last);
	assert_int_equal(answer.rows[0].waited_ns, 0);
}

static void add_wait_without_holder(uint64_t id)
{
	struct sql_frame_lock frame = { .connection_id = id, .lock = RECORD_LOCK_metadata };

	assert_int_equal(sql_snapshot_add_lock(&answer, &frame), 0);
}

/* So many seconds later: 2 waits behind a session whose statement and transaction are so old. */
static bool has_holder_later(uint64_t seconds, uint64_t holder, uint64_t elapsed_ns,
	uint64_t transaction_ns, struct sql_queue *ret_queue)
{
	static const struct sql_frame_end end;
	static struct sql_snapshot last;

	answer_again(&last, seconds);
	session(holder, elapsed_ns, false);
	answer.rows[0].transaction_ns = transaction_ns;
	session(2, (10 + seconds) * SEC, false);
	add_wait_without_holder(2);
	sql_snapshot_end(&answer, &end, answer.asked_ns);
	sql_snapshot_note_waits(&answer, &last);
	assert_true(sql_find_queue(&answer, 0, ret_queue));
	return ret_queue->has_holder;
}

/* Who holds a lock is not asked each second: it is known from before while that holds it. */
static void test_a_holder_that_was_told_before(void **state)
{
	static const struct {
		uint64_t id, elapsed_ns, transaction_ns;
		bool has_holder;
	} later[] = {
		{ 1, 41 * SEC, 0, true },	/* the same statement */
		{ 1, SEC / 2, 42 * SEC, true }, /* another one in the same transaction */
		{ 1, SEC / 2, SEC / 2, false }, /* another transaction */
		{ 3, 41 * SEC, 42 * SEC, false },
	};
	struct sql_queue q;

	for (unsigned int i = 0; i < ARRAY_SIZE(later); i++) {
		(void)setup(state);
		session(1, 40 * SEC, false);
		session(2, 10 * SEC, false);
		assert_int_equal(wait_for(2, 1, RECORD_LOCK_metadata, 2), 0);
		assert_int_equal(has_holder_later(1, later[i].id, later[i].elapsed_ns,
					 later[i].transaction_ns, &q),
			later[i].has_holder);
		if (!q.has_holder)
			continue;
		assert_int_equal(q.holder.connection_id, 1);
		assert_int_equal(q.candidates, 2);
		assert_string_equal(q.object, "shop.orders");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_chain_to_its_end, setup),
		cmocka_unit_test_setup(test_the_queue_that_costs_most, setup),
		cmocka_unit_test_setup(test_an_old_wait_is_no_larger, setup),
		cmocka_unit_test_setup(test_an_advisory_lock, setup),
		cmocka_unit_test_setup(test_a_transaction_without_a_session, setup),
		cmocka_unit_test_setup(test_unknown_holders_and_circles, setup),
		cmocka_unit_test_setup(test_a_wait_is_not_the_whole_statement, setup),
		cmocka_unit_test(test_a_holder_that_was_told_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
