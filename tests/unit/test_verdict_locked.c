/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
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
		"session 42 of app@localhost held a metadata lock on shop.orders of database main: 15 "
		"statements waited up to 20.00 s for it; session 42 had been idle in a transaction "
		"for 41.00 s (transaction open for 1m00s); its last statement was \"ALTER TABLE "
		"shop.orders\"");
	assert_string_equal(part(x, "culprit")->text,
		"session 42 of app@localhost, which had been idle in a transaction for 41.00 s "
		"(transaction open for 1m00s)");
	assert_null(strstr(x->v.message, "ALTER"));
	assert_int_equal(part(x, "culprit")->tid, HOLDER_TID);
	assert_string_equal(part(x, "culprit")->comm, "mariadbd");
	assert_string_equal(record_basis_text(part(x, "culprit")->basis), "measured");
	assert_string_equal(part(x, "statement")->text,
		"its last statement was \"ALTER TABLE shop.orders\"");
	assert_int_equal(part(x, "lock")->threads, 15);
	assert_int_equal(part(x, "lock")->longest_ns, 20 * NSEC_PER_SEC);
}

/* Nobody holds anything: a replica does not confirm. */
static void test_commits_that_wait_for_a_replica(void **state)
{
	struct verdict_queue q = { .target = "main",
		.waiters = 12,
		.longest_ns = 41 * NSEC_PER_SEC,
		.waited_ns = 300 * NSEC_PER_SEC,
		.lock = RECORD_LOCK_replica };
	struct fixture *x = *state;

	samples(x, &idle_sdb, 5);
	verdict_note_queue(&x->f, &q);
	decide(x);
	assert_verdict(x, "locked", "measured",
		"12 statements waited up to 41.00 s for a replica that has to confirm commits of "
		"database main; perhaps that replica is not connected, hangs, or cannot keep up");
	assert_null(part(x, "culprit"));
	assert_string_equal(part(x, "missing")->text,
		"it is not known why the replica did not confirm");
}

static void test_a_statement_that_is_probably_it(void **state)
{
	struct verdict_queue q = queue(false, 1);
	struct fixture *x = *state;

	q.behind_first = 14;
	q.first_id = 43;
	text_copy(q.first_text, sizeof(q.first_text), "DROP TABLE shop.orders");
	q.object[0] = '\0';
	verdict_note_queue(&x->f, &q);
	decide(x);
	assert_verdict(x, "locked", "inferred",
		"session 42 of app@localhost probably held a metadata lock of database main: 15 "
		"statements waited up to 20.00 s for it, 14 of them behind session 43; session 42 had "
		"been running \"ALTER TABLE shop.orders\" for 41.00 s; session 43 waited with \"DROP "
		"TABLE shop.orders\"");
	assert_string_equal(x->v.message,
		"session 42 of app@localhost probably held a metadata lock of database main: 15 "
		"statements waited up to 20.00 s for it, 14 of them behind session 43; session 42 had "
		"been running a statement for 41.00 s");
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
		"one of 3 sessions held a metadata lock on shop.orders of database main: 15 statements "
		"waited up to 20.00 s for it; the oldest of them is session 42 of app@localhost, which "
		"had been idle in a transaction for 41.00 s (transaction open for 1m00s)");
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
		"15 statements waited up to 20.00 s for the backup or global read lock of database "
		"main; it is not known who holds it");
	assert_non_null(strstr(part(x, "missing")->text, "performance_schema"));
}

/* Not a lock: it is the use of the table that the others wait for. */
static void test_a_table_to_be_flushed(void **state)
{
	struct verdict_queue q = queue(true, 1);
	struct fixture *x = *state;

	q.lock = RECORD_LOCK_flush;
	q.waiters = 1;
	q.holder.elapsed_ns = 0;
	q.holder.text[0] = '\0';
	verdict_note_queue(&x->f, &q);
	decide(x);
	assert_verdict(x, "locked", "inferred",
		"session 42 of app@localhost probably still used a table to be flushed, shop.orders of "
		"database main: 1 statement waited 20.00 s for it; session 42 was idle in a "
		"transaction (transaction open for 1m00s)");
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
		"; 15 statements waited up to 20.00 s for a metadata lock on shop.orders, held by "
		"session 42 of app@localhost"));
	assert_int_equal(part(x, "lock")->threads, 15);
}

static void commit(struct fixture *x, int32_t pid, const char *comm, enum record_op kind,
	const char *waits_for, uint64_t ns)
{
	struct record_operation op = { .op = kind,
		.probe = RECORD_PROBE_sync,
		.pid = pid,
		.tid = pid + 1,
		.path = "/var/lib/db/log",
		.dev = { 8, 17 },
		.dev_name = "sdb1",
		.start_mono_ns = TRIGGER_NS,
		.dur_ns = ns,
		.waits_for = record_enum_find(&record_cause_enum, waits_for) };

	text_copy(op.comm, sizeof(op.comm), comm);
	verdict_note_operation(&x->f, &op, true);
}

/*
 * The holder commits, and sleeps until another thread of its server has written the log for both.
 */
static void test_a_holder_that_waits_for_the_commit_of_another(void **state)
{
	static const struct {
		int32_t holder_tid, pid;
		const char *holder, *comm;
		enum record_op op;
		const char *waits_for;
		uint64_t ns;
		const struct record_disk *disk;
		bool idle;
		enum record_class class;
	} cases[] = {
		{ HOLDER_TID, 2211, "mariadbd", "ib_log_flush", RECORD_OP_fsync, "device flush",
			NSEC_PER_SEC, &slow_sdb, false, RECORD_CLASS_slow },
		{ 2211, 3000, "postgres", "postgres", RECORD_OP_fsync, "journal commit",
			NSEC_PER_SEC, &slow_sdb, false, RECORD_CLASS_slow },
		{ 2211, 3000, "postgres", "postgres", RECORD_OP_write, "device", NSEC_PER_SEC,
			&slow_sdb, false, RECORD_CLASS_slow },
		/* Another server, a short wait, a read, a lock, a good disk, an idle holder. */
		{ HOLDER_TID, 3000, "mariadbd", "mariadbd", RECORD_OP_fsync, "device flush",
			NSEC_PER_SEC, &slow_sdb, false, RECORD_CLASS_locked },
		{ HOLDER_TID, 2211, "mariadbd", "mariadbd", RECORD_OP_fsync, "device flush",
			240 * MS, &slow_sdb, false, RECORD_CLASS_locked },
		{ HOLDER_TID, 2211, "mariadbd", "mariadbd", RECORD_OP_read, "device", NSEC_PER_SEC,
			&slow_sdb, false, RECORD_CLASS_locked },
		{ HOLDER_TID, 2211, "mariadbd", "mariadbd", RECORD_OP_fsync, "mutex", NSEC_PER_SEC,
			&slow_sdb, false, RECORD_CLASS_locked },
		{ HOLDER_TID, 2211, "mariadbd", "mariadbd", RECORD_OP_fsync, "device flush",
			NSEC_PER_SEC, &idle_sdb, false, RECORD_CLASS_locked },
		{ HOLDER_TID, 2211, "mariadbd", "mariadbd", RECORD_OP_fsync, "device flush",
			NSEC_PER_SEC, &slow_sdb, true, RECORD_CLASS_locked },
	};
	struct fixture *x = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct verdict_queue q = queue(cases[i].idle, 0);

		verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
		x->now_ns = TRIGGER_NS;
		samples(x, cases[i].disk, 10);
		totals(x, 80, MIB, 400 * MS);
		q.holder.who.tid = cases[i].holder_tid;
		text_copy(q.holder.who.comm, sizeof(q.holder.who.comm), cases[i].holder);
		verdict_note_queue(&x->f, &q);
		commit(x, cases[i].pid, cases[i].comm, cases[i].op, cases[i].waits_for,
			cases[i].ns);
		decide(x);
		assert_string_equal(record_class_text(x->v.class),
			record_class_text(cases[i].class));
		assert_non_null(part(x, "lock"));
	}
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
		verdict_test(test_commits_that_wait_for_a_replica),
		verdict_test(test_a_statement_that_is_probably_it),
		verdict_test(test_one_of_several),
		verdict_test(test_nobody_known),
		verdict_test(test_a_table_to_be_flushed),
		verdict_test(test_short_waits_are_normal),
		verdict_test(test_a_holder_that_waits_for_the_disk),
		verdict_test(test_a_holder_that_waits_for_the_commit_of_another),
		verdict_test(test_before_a_saturated_disk),
		verdict_test(test_an_old_queue_beside_a_saturated_disk),
		verdict_test(test_the_worst_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
