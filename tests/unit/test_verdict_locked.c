/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The verdict: sessions of a database wait for a lock, and who holds it. */
#include "test_verdict_setup.h"

#define HOLDER_TID 2299

/* Fifteen sessions, for 20 s at the most. */
static struct verdict_queue queue(bool idle, uint32_t candidates)
{
	struct verdict_queue q = { .target = "main",
		.waiters = 15,
		.longest_ns = 20 * NSEC_PER_SEC,
		.waited_ns = 150 * NSEC_PER_SEC,
		.lock = RECORD_LOCK_metadata,
		.object = "shop.orders",
		.holder = {
			.connection_id = 42,
			.who = { .pid = 2211, .tid = HOLDER_TID, .comm = "mariadbd" },
			.idle = idle,
			.elapsed_ns = 41 * NSEC_PER_SEC,
			.transaction_ns = idle ? 60 * NSEC_PER_SEC : 41 * NSEC_PER_SEC,
			.candidates = candidates,
			.user = "app@localhost",
		} };

	text_copy(q.holder.text, sizeof(q.holder.text), "ALTER TABLE\n\tshop.orders");
	return q;
}

static void test_idle_in_a_transaction(void **state)
{
	struct verdict_queue q = queue(true, 0);
	struct fixture *x = *state;

	samples(x, &idle_sdb, 5);
	verdict_note_queue(&x->f, &q);
	decide(x);
	assert_verdict(x, "locked", "measured",
		"database main: 15 statements waited up to 20.00 s for a metadata lock on shop.orders; "
		"it is held by session 42 of app@localhost, idle in a transaction for 41.00 s "
		"(transaction open for 1m00s); session 42 last ran \"ALTER TABLE shop.orders\"");
	assert_null(strstr(x->v.message, "ALTER"));
	assert_int_equal(part(x, "culprit")->tid, HOLDER_TID);
	assert_string_equal(part(x, "culprit")->comm, "mariadbd");
	assert_string_equal(record_basis_text(part(x, "culprit")->basis), "measured");
	assert_string_equal(part(x, "statement")->text,
		"its last statement was \"ALTER TABLE shop.orders\"");
	assert_int_equal(part(x, "lock")->threads, 15);
	assert_int_equal(part(x, "lock")->longest_ns, 20 * NSEC_PER_SEC);
}

static void test_a_statement_that_is_probably_it(void **state)
{
	struct verdict_queue q = queue(false, 1);
	struct fixture *x = *state;

	q.behind_first = 14;
	q.first_id = 43;
	q.object[0] = '\0';
	verdict_note_queue(&x->f, &q);
	decide(x);
	assert_verdict(x, "locked", "inferred",
		"database main: 15 statements waited up to 20.00 s for a metadata lock; it is probably "
		"held by session 42 of app@localhost, whose statement had been running for 41.00 s; "
		"14 of them were behind session 43 in the queue; session 42 ran "
		"\"ALTER TABLE shop.orders\"");
	assert_string_equal(record_basis_text(part(x, "culprit")->basis), "inferred");
}

/* Which of them it is would be a guess: nobody is blamed. */
static void test_one_of_several(void **state)
{
	struct verdict_queue q = queue(true, 3);
	struct fixture *x = *state;

	verdict_note_queue(&x->f, &q);
	decide(x);
	assert_verdict(x, "locked", "inferred",
		"database main: 15 statements waited up to 20.00 s for a metadata lock on shop.orders; "
		"one of 3 sessions holds it, the oldest of them is session 42 of app@localhost, idle in "
		"a transaction for 41.00 s (transaction open for 1m00s)");
	assert_null(part(x, "culprit"));
}

static void test_nobody_known(void **state)
{
	struct verdict_queue q = queue(true, 0);
	struct fixture *x = *state;

	memset(&q.holder, 0, sizeof(q.holder));
	q.lock = RECORD_LOCK_backup;
	q.object[0] = '\0';
	verdict_note_queue(&x->f, &q);
	decide(x);
	assert_verdict(x, "locked", "measured",
		"database main: 15 statements waited up to 20.00 s for the backup or global read lock; "
		"it is not known who holds it");
	assert_non_null(strstr(part(x, "missing")->text, "performance_schema"));
}

static void test_short_waits_are_normal(void **state)
{
	struct verdict_queue q = queue(true, 0);
	struct fixture *x = *state;

	samples(x, &idle_sdb, 5);
	q.longest_ns = 900 * MS;
	verdict_note_queue(&x->f, &q);
	decide(x);
	assert_verdict(x, "unknown", "inferred",
		"no verdict: no operation took 100 ms or longer and no device was at its limit");
	assert_null(part(x, "lock"));
}

/* An ALTER TABLE that reads the table from a disk at its limit: the queue is a consequence. */
static void test_a_holder_that_waits_for_the_disk(void **state)
{
	struct verdict_queue q = queue(false, 0);
	struct fixture *x = *state;

	scan(x);
	q.holder.who.tid = 2225;
	verdict_note_queue(&x->f, &q);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "saturated");
	assert_non_null(strstr(x->v.sentence,
		"; 15 statements waited up to 20.00 s for a metadata lock on shop.orders of session 42 "
		"of app@localhost"));
	assert_int_equal(part(x, "lock")->threads, 15);
}

/* A disk at its limit beside a lock: what cost most counts. */
static void test_before_a_saturated_disk(void **state)
{
	struct verdict_queue q = queue(true, 0);
	struct fixture *x = *state;

	scan(x);
	verdict_note_queue(&x->f, &q);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "locked");
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	scan(x);
	q.waited_ns = 6 * NSEC_PER_SEC;
	verdict_note_queue(&x->f, &q);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "saturated");
}

/* Three sessions behind a transaction that was forgotten long before the incident. */
static void test_an_old_queue_beside_a_saturated_disk(void **state)
{
	struct verdict_queue q = queue(true, 0);
	struct fixture *x = *state;

	q.waiters = 3;
	q.longest_ns = 1800 * NSEC_PER_SEC;
	q.waited_ns = 5400 * NSEC_PER_SEC;
	q.answered_ns = TRIGGER_NS - 3 * NSEC_PER_SEC;
	verdict_note_queue(&x->f, &q);
	assert_int_equal(x->f.queue.cost_ns, 6 * NSEC_PER_SEC);
	scan(x);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "saturated");
	assert_non_null(strstr(x->v.sentence, "; 3 statements waited up to 30m00s"));
}

/* The worst answer is the one that counts. */
static void test_the_worst_answer(void **state)
{
	struct verdict_queue q = queue(true, 0);
	struct fixture *x = *state;

	verdict_note_queue(&x->f, &q);
	q.waiters = 2;
	q.waited_ns = 2 * NSEC_PER_SEC;
	verdict_note_queue(&x->f, &q);
	decide(x);
	assert_int_equal(part(x, "lock")->threads, 15);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		verdict_test(test_idle_in_a_transaction),
		verdict_test(test_a_statement_that_is_probably_it),
		verdict_test(test_one_of_several),
		verdict_test(test_nobody_known),
		verdict_test(test_short_waits_are_normal),
		verdict_test(test_a_holder_that_waits_for_the_disk),
		verdict_test(test_before_a_saturated_disk),
		verdict_test(test_an_old_queue_beside_a_saturated_disk),
		verdict_test(test_the_worst_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
