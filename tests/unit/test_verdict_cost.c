/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/*
 * The verdict is about what cost most: thread-seconds of victims, and what else went wrong comes
 * second.
 */
#include "test_verdict_setup.h"

/* A snapshot froze a small file system while the disk was saturated for 24 s. */
static void test_a_saturated_disk_before_an_unrelated_short_freeze(void **state)
{
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 24);
	for (int32_t i = 0; i < 6; i++)
		operation(x, 2230 + i, "page", 20 * NSEC_PER_SEC, true);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "thread", 2300, 2300, "dump", 92, false);
	freeze(x, 99, 1400 * MS);
	decide(x);
	assert_verdict(x, "saturated", "measured",
		"device sdb was saturated for 24.00 s (util 100 %, r_await 300 ms, queue depth "
		"64): dump pid 2300 used 92 % of the device time (1000 reads, 100.0 "
		"MiB). 6 other threads waited up to 20.00 s. Besides, the file system on loop7 was "
		"frozen, as by fsfreeze or a snapshot, so writes to it waited, such as to "
		"/srv/file; 1 thread waited 1.40 s");
	assert_int_equal(part(x, "victims")->total_ns, 120 * NSEC_PER_SEC);
	assert_int_equal(part(x, "second")->threads, 1);
	assert_int_equal(part(x, "second")->total_ns, 1400 * MS);
}

static void test_a_freeze_of_many_before_a_disk_that_few_wait_for(void **state)
{
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 5);
	operation(x, 2230, "page", 2 * NSEC_PER_SEC, true);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "thread", 2300, 2300, "dump", 92, false);
	for (int32_t pid = 100; pid < 104; pid++)
		freeze(x, pid, 4 * NSEC_PER_SEC);
	decide(x);
	assert_int_equal(x->v.class, RECORD_CLASS_frozen);
	assert_non_null(strstr(x->v.sentence,
		"; 4 threads waited up to 4.00 s. Besides, device sdb was saturated for 5.00 s "
		"(util 100 %, r_await 300 ms, queue depth 64): dump pid 2300 used 92 % of the device time (1000 reads, 100.0 MiB); 1 other thread waited 2.00 s"));
}

/* It waits for its own work, which nobody else misses. */
static void test_the_culprits_own_waits_count_little(void **state)
{
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 20);
	waits(x, &(struct wait){ "device", "sdb1", 8, 17, 2300, 2300, 0, 20 * NSEC_PER_SEC });
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "thread", 2300, 2300, "backup", 99, false);
	freeze(x, 99, 5 * NSEC_PER_SEC);
	decide(x);
	assert_int_equal(x->v.class, RECORD_CLASS_frozen);
	/* Not even a short wait of somebody else is less. */
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	x->now_ns = TRIGGER_NS;
	samples(x, &loaded_sdb, 20);
	waits(x, &(struct wait){ "device", "sdb1", 8, 17, 2300, 2300, 0, 20 * NSEC_PER_SEC });
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "thread", 2300, 2300, "backup", 99, false);
	freeze(x, 99, 1500 * MS);
	decide(x);
	assert_int_equal(x->v.class, RECORD_CLASS_frozen);
}

static void test_a_file_that_has_been_removed(void **state)
{
	struct fixture *x = *state;

	freeze(x, 99, 5 * NSEC_PER_SEC);
	verdict_set_path(x->f.waits[VERDICT_WAIT_frozen].path, "/srv/#1237//deleted");
	decide(x);
	assert_non_null(strstr(x->v.sentence,
		", so writes to it waited, such as to /srv/#1237 (deleted);"));
}

/* Requests in flight at the same time, and the lines of one that hangs, are one wait. */
static void test_no_time_of_a_thread_counts_twice(void **state)
{
	const struct wait first = { "device", "sdb1", 8, 17, 42, 42, TRIGGER_NS, NSEC_PER_SEC };
	struct wait w = first;
	struct fixture *x = *state;

	waits(x, &w);
	w.start_ns += NSEC_PER_SEC / 2;
	waits(x, &w);
	for (unsigned int i = 0; i < VERDICT_WAITERS_MAX; i++)
		if (x->f.waiters[i].tid)
			assert_int_equal(x->f.waiters[i].waited_ns, 1500 * MS);
	for (unsigned int i = 1; i <= 4; i++) {
		w.start_ns = TRIGGER_NS + 2 * NSEC_PER_SEC;
		w.ns = i * NSEC_PER_SEC;
		note_wait(x, &w, false);
	}
	for (unsigned int i = 0; i < VERDICT_WAITERS_MAX; i++)
		if (x->f.waiters[i].tid)
			assert_int_equal(x->f.waiters[i].waited_ns, 5500 * MS);
}

/* Of a wait that began long before, only what lies in the incident counts. */
static void test_time_before_the_incident_does_not_count(void **state)
{
	struct fixture *x = *state;

	note_wait(x,
		&(struct wait){ "device", "sdb1", 8, 17, 42, 42, TRIGGER_NS - 50 * NSEC_PER_SEC,
			52 * NSEC_PER_SEC },
		false);
	for (unsigned int i = 0; i < VERDICT_WAITERS_MAX; i++)
		if (x->f.waiters[i].tid)
			assert_int_equal(x->f.waiters[i].waited_ns, 7 * NSEC_PER_SEC);
}

/* 3 s each, of which there are lines after each second; `is_process`: each has a process. */
static void a_thousand_wait(struct fixture *x, bool is_process)
{
	struct wait w = { "device", "sdb1", 8, 17, 42, 0, TRIGGER_NS, NSEC_PER_SEC };

	samples(x, &loaded_sdb, 10);
	for (unsigned int second = 1; second <= 3; second++) {
		w.ns = second * NSEC_PER_SEC;
		for (w.tid = 1000; w.tid < 2000; w.tid++) {
			w.pid = is_process ? w.tid : 42;
			note_wait(x, &w, second == 3);
		}
	}
}

/* Far more threads than have an entry each: all are counted, and no time of theirs twice. */
static void test_a_thousand_threads_that_wait(void **state)
{
	struct wait w = { "journal", "sdb1", 8, 17, 42, 0, TRIGGER_NS + 3 * NSEC_PER_SEC,
		NSEC_PER_SEC };
	struct fixture *x = *state;

	a_thousand_wait(x, false);
	/* Then all wait for something else, too, those with entries of their own and the others. */
	for (w.tid = 1000; w.tid < 2000; w.tid++)
		note_wait(x, &w, true);
	decide(x);
	assert_int_equal(part(x, "victims")->threads, 1000);
	assert_int_equal(part(x, "victims")->total_ns, 4000 * NSEC_PER_SEC);
	assert_int_equal(part(x, "victims")->longest_ns, 3 * NSEC_PER_SEC);
}

/* Each session of PostgreSQL is a process. The culprit is not told apart from its crowd. */
static void test_a_thousand_processes_that_wait(void **state)
{
	struct fixture *x = *state;

	a_thousand_wait(x, true);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "process", 1999, 1999, "victim", 92, false);
	decide(x);
	assert_int_equal(x->f.waiters_left_out, 0);
	assert_int_equal(part(x, "victims")->threads, 1000);
	assert_int_equal(part(x, "victims")->total_ns, 3000 * NSEC_PER_SEC);
}

/* Each thread of the server has a name of its own, and one of them is the culprit. */
static void test_a_thousand_threads_with_names(void **state)
{
	struct record_operation op = { .op = RECORD_OP_read,
		.probe = RECORD_PROBE_wait,
		.pid = 42,
		.dev = { 8, 17 },
		.dev_name = "sdb1",
		.start_mono_ns = TRIGGER_NS,
		.dur_ns = 3 * NSEC_PER_SEC,
		.waits_for = RECORD_CAUSE_device };
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	for (op.tid = 1000; op.tid < 2000; op.tid++) {
		snprintf(op.comm, sizeof(op.comm), "conn%d", op.tid);
		verdict_note_operation(&x->f, &op, true);
	}
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "thread", 42, 1999, "conn1999", 92, false);
	decide(x);
	assert_int_equal(x->f.waiters_left_out, 0);
	assert_int_equal(part(x, "victims")->threads, 1000);
}

/* The thread that has the lock waits for the disk. */
static void test_a_lock_whose_holder_waits_for_the_device(void **state)
{
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	operation(x, 2230, "page", 9 * NSEC_PER_SEC, true);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "thread", 2300, 2300, "dump", 92, false);
	for (int32_t tid = 2240; tid < 2256; tid++)
		waits(x,
			&(struct wait){ "read-write lock", NULL, 0, 0, 2211, tid, 0,
				9 * NSEC_PER_SEC });
	decide(x);
	assert_int_equal(x->v.class, RECORD_CLASS_saturated);
	assert_int_equal(part(x, "victims")->threads, 17);
	assert_null(part(x, "second"));
	/* Perhaps the one that holds the lock does not wait for the disk after all. */
	assert_string_equal(part(x, "alternative")->text,
		"threads waited for a kernel lock (read-write lock), victim tid 2240 the longest; "
		"16 threads waited up to 9.00 s; all waits together 2m24s");
	assert_int_equal(part(x, "alternative")->total_ns, 144 * NSEC_PER_SEC);
	assert_int_equal(part(x, "alternative")->threads, 16);
	assert_string_equal(record_basis_text(part(x, "alternative")->basis), "measured");
}

/* Nobody of that process waits for the disk, so the disk does not explain the lock. */
static void test_a_lock_that_the_device_does_not_explain(void **state)
{
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	operation(x, 2230, "page", 2 * NSEC_PER_SEC, true);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "thread", 2300, 2300, "dump", 92, false);
	for (int32_t tid = 2240; tid < 2256; tid++)
		waits(x,
			&(struct wait){ "read-write lock", NULL, 0, 0, 3000, tid, 0,
				9 * NSEC_PER_SEC });
	decide(x);
	assert_int_equal(x->v.class, RECORD_CLASS_waiting);
	assert_non_null(strstr(x->v.sentence,
		"threads waited for a kernel lock (read-write lock), victim tid 2240 the longest; "
		"16 threads waited up to 9.00 s. Besides, device sdb was saturated"));
	/* It is not said twice. */
	assert_null(part(x, "alternative"));
}

/* Threads of a busy host that wait for a CPU look as if their disk had a limit. */
static void test_what_is_only_inferred_counts_little(void **state)
{
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	waits(x, &(struct wait){ "device", "sdb1", 8, 17, 2300, 2300, 0, 4 * NSEC_PER_SEC });
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "thread", 2300, 2300, "dump", 92, false);
	waits(x, &(struct wait){ "device", "vda", 254, 0, 99, 99, 0, 490 * MS });
	waits(x, &(struct wait){ "device", "vda", 254, 0, 98, 98, 0, 430 * MS });
	decide(x);
	assert_int_equal(x->v.class, RECORD_CLASS_saturated);
}

/* Many short waits for locks are common on a busy host. */
static void test_short_waits_for_locks_beside_a_saturated_disk(void **state)
{
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "thread", 2300, 2300, "dump", 92, false);
	for (int32_t tid = 2240; tid < 2256; tid++)
		waits(x, &(struct wait){ "read-write lock", NULL, 0, 0, 3000, tid, 0, 129 * MS });
	decide(x);
	assert_int_equal(x->v.class, RECORD_CLASS_saturated);
	assert_null(part(x, "second"));
}

static void test_a_hung_disk_that_nobody_waits_for_is_a_remark(void **state)
{
	const struct record_disk hung = { .dev = { 8, 32 },
		.dev_name = "sdc",
		.util_pct = 100,
		.inflight = 1,
		.no_completion_ns = 9 * NSEC_PER_SEC };
	struct fixture *x = *state;

	scan(x);
	x->now_ns = TRIGGER_NS;
	sample(x, &hung);
	decide(x);
	assert_int_equal(x->v.class, RECORD_CLASS_saturated);
	assert_non_null(strstr(x->v.sentence,
		". Besides, device sdc hung: it completed nothing for 9.00 s with 1 request in flight"));
}

/* Whose requests had no bytes, as a device's cache that is flushed, is no reason by bytes. */
static void test_nobody_is_named_for_nothing(void **state)
{
	const struct record_io_by none = { .by = RECORD_BY_process,
		.dev = { 8, 16 },
		.pid = 7243,
		.comm = "postgres",
		.requests = 3 };
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	verdict_note_io_by(&x->f, &none);
	decide(x);
	assert_verdict(x, "saturated", "measured",
		"device sdb was saturated for 10.00 s (util 100 %, r_await 300 ms, queue depth 64)");
	assert_null(part(x, "culprit"));
	assert_null(part(x, "largest"));
	assert_string_equal(part(x, "missing")->text,
		"it is not known who loaded the device: no process that trace.* selects did");
}

/* A backup on a disk of its own is not why the database does not answer. */
static void test_a_database_that_does_not_answer_beside_a_disk_nobody_waits_for(void **state)
{
	const struct verdict_who server = { .pid = 2211, .comm = "mariadbd" };
	const struct verdict_unresponsive s = { .ns = 9 * NSEC_PER_SEC };
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	waits(x, &(struct wait){ "device", "sdb1", 8, 17, 2300, 2300, 0, 9 * NSEC_PER_SEC });
	load(x, "thread", 2300, 2300, "backup", 92, false);
	verdict_note_unresponsive(&x->f, 0, "main", &server, &s);
	decide(x);
	assert_int_equal(x->v.class, RECORD_CLASS_unanswered);
	assert_null(part(x, "culprit"));
	/* But when its threads wait for that disk, this is why. */
	operation(x, 2230, "page", 200 * MS, true);
	decide(x);
	assert_int_equal(x->v.class, RECORD_CLASS_saturated);
}

/* One thread after another waits for a lock, until there are enough of them for a rule. */
static void test_the_first_of_a_slow_pile_up_are_victims(void **state)
{
	struct fixture *x = *state;
	struct wait w = { "read-write lock", NULL, 0, 0, 3000, 0, 0, 0 };

	x->f.earlier_than_ns = TRIGGER_NS - 5 * NSEC_PER_SEC;
	samples(x, &idle_sdb, 3);
	for (int32_t i = 0; i < 8; i++) {
		w.tid = 3000 + i;
		w.start_ns = TRIGGER_NS - (uint64_t)i * 2 * NSEC_PER_SEC;
		w.ns = TRIGGER_NS + 2 * NSEC_PER_SEC - w.start_ns;
		note_wait(x, &w, false);
	}
	/* Another lock, of another process. */
	w.pid = w.tid = 99;
	note_wait(x, &w, false);
	x->f.closing = true;
	for (int32_t i = 0; i < 8; i++) {
		w.pid = 3000;
		w.tid = 3000 + i;
		w.start_ns = TRIGGER_NS - (uint64_t)i * 2 * NSEC_PER_SEC;
		w.ns = TRIGGER_NS + 3 * NSEC_PER_SEC - w.start_ns;
		note_wait(x, &w, false);
	}
	w.pid = w.tid = 99;
	note_wait(x, &w, false);
	decide(x);
	assert_int_equal(x->v.class, RECORD_CLASS_waiting);
	assert_int_equal(part(x, "victims")->threads, 8);
	assert_int_equal(part(x, "victims")->longest_ns, 17 * NSEC_PER_SEC);
	assert_int_equal(part(x, "earlier")->threads, 1);
}

/* 200 reads a second, one at a time, 5 ms each: nothing takes 100 ms, and nothing else can run. */
static void test_a_disk_at_its_limit_without_a_long_operation(void **state)
{
	const struct record_disk busy = { .dev = { 8, 16 },
		.dev_name = "sdb",
		.util_pct = 100,
		.inflight = 1,
		.read_await_ms = 5,
		.queue = 1,
		.read_bytes = 200 * 4096 };
	struct record_sample s = { .reading = { .interval_ns = NSEC_PER_SEC,
					   .devices_count = 1,
					   .psi.io = { true, 99, 97 } } };
	struct fixture *x = *state;

	for (unsigned int i = 0; i < 5; i++) {
		s.reading.mono_ns = TRIGGER_NS + i * NSEC_PER_SEC;
		s.reading.devices[0] = busy;
		s.reading.devices[0].reads = 200;
		s.reading.devices[0].read_ticks_ms = 1000;
		verdict_note_sample(&x->f, &s);
	}
	totals(x, 1000, 4 * MIB, 9 * MS);
	load(x, "thread", 2300, 2300, "reader", 99, false);
	decide(x);
	assert_verdict(x, "saturated", "measured",
		"device sdb was saturated for 5.00 s (util 100 %, r_await 5.0 ms, queue depth 1.0): "
		"reader pid 2300 used 99 % of the device time (1000 reads, 100.0 MiB)");
}

/* Thirty a second are enough when each takes as long as that. */
static void test_slow_flushes(void **state)
{
	const struct record_disk flushing = { .dev = { 8, 16 },
		.dev_name = "sdb",
		.util_pct = 99,
		.inflight = 1,
		.write_await_ms = 1,
		.queue = 1,
		.writes = 30,
		.write_ticks_ms = 30,
		.flushes = 31,
		.flush_ticks_ms = 961,
		.write_bytes = 2 * MIB };
	struct fixture *x = *state;

	samples(x, &flushing, 5);
	operation(x, 2230, "device flush", 300 * MS, true);
	decide(x);
	assert_verdict(x, "slow", "measured",
		"device sdb was slow although lightly loaded (util 99 %, f_await 31 ms, queue depth "
		"1.0, 61 requests/s, 2.0 MiB/s); 1 thread waited 300 ms");
}

/* Writes that wait behind a flush take as long as it, and there are more of them. */
static void test_writes_behind_slow_flushes(void **state)
{
	const struct record_disk flushing = { .dev = { 8, 16 },
		.dev_name = "sdb",
		.util_pct = 99,
		.inflight = 2,
		.write_await_ms = 40,
		.queue = 2,
		.writes = 34,
		.write_ticks_ms = 1360,
		.flushes = 6,
		.flush_ticks_ms = 880,
		.write_bytes = MIB / 4 };
	struct record_device d = { .dev = { 8, 16 },
		.dev_name = "sdb",
		.final = true,
		.requests = 200,
		.write_busy_ns = NSEC_PER_SEC,
		.flush_busy_ns = 4 * NSEC_PER_SEC };
	struct fixture *x = *state;

	samples(x, &flushing, 5);
	operation(x, 2230, "device flush", 300 * MS, true);
	verdict_note_device(&x->f, &d);
	decide(x);
	assert_verdict(x, "slow", "measured",
		"device sdb was slow although lightly loaded (util 99 %, w_await 40 ms, f_await 147 "
		"ms, queue depth 2.0, 40 requests/s, 256.0 KiB/s); 1 thread waited 300 ms");
	/* It wrote most of the time. */
	d.flush_busy_ns = NSEC_PER_SEC / 2;
	verdict_note_device(&x->f, &d);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "saturated");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		verdict_test(test_a_saturated_disk_before_an_unrelated_short_freeze),
		verdict_test(test_a_freeze_of_many_before_a_disk_that_few_wait_for),
		verdict_test(test_the_culprits_own_waits_count_little),
		verdict_test(test_no_time_of_a_thread_counts_twice),
		verdict_test(test_time_before_the_incident_does_not_count),
		verdict_test(test_a_file_that_has_been_removed),
		verdict_test(test_a_thousand_threads_that_wait),
		verdict_test(test_a_thousand_processes_that_wait),
		verdict_test(test_a_thousand_threads_with_names),
		verdict_test(test_a_lock_whose_holder_waits_for_the_device),
		verdict_test(test_a_lock_that_the_device_does_not_explain),
		verdict_test(test_what_is_only_inferred_counts_little),
		verdict_test(test_short_waits_for_locks_beside_a_saturated_disk),
		verdict_test(test_a_hung_disk_that_nobody_waits_for_is_a_remark),
		verdict_test(test_nobody_is_named_for_nothing),
		verdict_test(test_a_disk_at_its_limit_without_a_long_operation),
		verdict_test(test_slow_flushes),
		verdict_test(test_writes_behind_slow_flushes),
		verdict_test(test_a_database_that_does_not_answer_beside_a_disk_nobody_waits_for),
		verdict_test(test_the_first_of_a_slow_pile_up_are_victims),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
