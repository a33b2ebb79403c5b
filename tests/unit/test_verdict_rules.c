/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rules of the verdict, each by the facts it stands on. */
#include "test_verdict_setup.h"

static void test_hung(void **state)
{
	const struct watch_disk hung = { .name = "sdb", .major = 8, .minor = 16, .util_pct = 100,
		.inflight = 3, .no_completion_ns = 3200 * MS };
	struct fixture *x = *state;

	/* Who reads there most is a victim like the others. */
	scan(x);
	sample(x, &hung);
	operation(x, 2230, "device", 3500 * MS, false);
	decide(x);
	assert_verdict(x, "hung", "measured", "device sdb hung (3 requests in flight, none finished for "
					       "3.20 s); 3 threads waited up to 12.00 s");
	assert_string_equal(x->v.dev_name, "sdb");
	assert_int_equal(part(x, "device")->longest_ns, 3200 * MS);
	assert_int_equal(part(x, "victims")->threads, 3);
}

static void test_hung_by_a_frozen_file_system_below(void **state)
{
	struct record_device silent = { .dev_major = 7, .dev_name = "loop0",
		.in_flight = 1, .no_completion_ns = 2 * NSEC_PER_SEC, .oldest_age_ns = 2 * NSEC_PER_SEC };
	struct fixture *x = *state;

	verdict_note_device(&x->f, &silent);
	kernel_thread(x, "frozen file system", 2100 * MS);
	decide(x);
	assert_verdict(x, "hung", "measured", "device loop0 hung (1 request in flight, none finished for "
		"2.00 s), perhaps since a file system below it is frozen: kworker/u8:2 pid 77 waits for it");
	assert_string_equal(part(x, "cause")->basis, "inferred");
	assert_int_equal(part(x, "cause")->pid, 77);
	/* A kernel thread is no victim. */
	assert_null(part(x, "victims"));

	/* There is none below a disk: another one is frozen. */
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	silent.dev_major = 8;
	text_copy(silent.dev_name, sizeof(silent.dev_name), "sdb");
	verdict_note_device(&x->f, &silent);
	kernel_thread(x, "frozen file system", 2100 * MS);
	decide(x);
	assert_verdict(x, "hung", "measured",
		"device sdb hung (1 request in flight, none finished for 2.00 s)");
	assert_null(part(x, "cause"));
}

/* A busy device is not at its limit because somebody waits for something else on a file of it. */
static void test_waits_for_something_else_blame_nobody(void **state)
{
	struct watch_disk busy = loaded_sdb;
	struct fixture *x = *state;

	busy.read_await_ms = 0.1;
	busy.write_await_ms = 0;
	busy.queue = 1;
	samples(x, &busy, 5);
	totals(x, 50000, 2000 * MIB, MS);
	load(x, "thread", 2211, 2225, "mariadbd", 98, false);
	operation(x, 2230, "cgroup throttling", 3 * NSEC_PER_SEC, true);
	decide(x);
	assert_string_not_equal(x->v.class_name, "saturated");
	assert_null(part(x, "culprit"));
}

/* A pause in a long overload is no hang. */
static void test_a_pause_is_no_hang(void **state)
{
	struct watch_disk pause = loaded_sdb;
	struct fixture *x = *state;

	scan(x);
	pause.no_completion_ns = 2900 * MS;
	sample(x, &pause);
	decide(x);
	assert_string_equal(x->v.class_name, "saturated");
}

static void test_frozen(void **state)
{
	struct fixture *x = *state;

	samples(x, &idle_sdb, 5);
	operation(x, 2230, "frozen file system", 4200 * MS, false);
	operation(x, 2231, "frozen file system", 3100 * MS, false);
	decide(x);
	assert_verdict(x, "frozen", "measured", "a file system is frozen, that on sdb1, with "
		"/var/lib/mysql/shop/orders.ibd; 2 threads waited up to 4.20 s");
	assert_string_equal(x->v.waits_for, "frozen file system");
	/* A snapshot does it for some milliseconds. */
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	operation(x, 2230, "frozen file system", 400 * MS, true);
	decide(x);
	assert_string_equal(x->v.class_name, "unknown");
}

static void test_slow(void **state)
{
	struct fixture *x = *state;

	samples(x, &slow_sdb, 5);
	operation(x, 2225, "device", 130 * MS, true);
	totals(x, 40, 40 * 4096, 130 * MS);
	load(x, "thread", 2211, 2225, "mariadbd", 100, false);
	decide(x);
	assert_verdict(x, "slow", "measured", "device sdb slow by itself, not by its load (util 100 %, "
		"r_await 125 ms, queue 1.0, 8.0 requests and 32.0 KiB a second); 1 thread waited up to "
		"130 ms");
}

/* The same work as in its calm minute, but each request takes longer. */
static void test_slower_than_before(void **state)
{
	struct watch_disk calm = { .name = "sdb", .major = 8, .minor = 16, .util_pct = 10,
		.read_await_ms = 2, .queue = 0.2, .read_bytes = 100 * 65536 };
	struct watch_disk now = calm;
	struct fixture *x = *state;

	x->now_ns = TRIGGER_NS - 30 * NSEC_PER_SEC;
	samples(x, &calm, 20);
	x->now_ns = TRIGGER_NS;
	now.util_pct = 100;
	now.read_await_ms = 40;
	now.queue = 4;
	samples(x, &now, 5);
	decide(x);
	assert_string_equal(x->v.class_name, "slow");
	/* With more requests than then it is the load. */
	now.queue = 40;
	samples(x, &now, 20);
	decide(x);
	assert_string_equal(x->v.class_name, "saturated");
}

static void test_saturated(void **state)
{
	struct fixture *x = *state;

	scan(x);
	decide(x);
	assert_verdict(x, "saturated", "measured", "device sdb saturated (util 100 %, r_await 300 ms, "
		"queue 64): 92 % of 204.0 MiB read by mariadbd tid 2225, big/t.ibd; 2 other threads "
		"waited up to 12.00 s");
	assert_string_equal(x->v.message, x->v.sentence);
	assert_int_equal(part(x, "culprit")->tid, 2225);
	assert_int_equal(part(x, "culprit")->pid, 2211);
	assert_string_equal(part(x, "culprit")->path, "/var/lib/mysql/big/t.ibd");
	assert_string_equal(part(x, "culprit")->basis, "measured");
	assert_int_equal(part(x, "victims")->threads, 2);
	assert_int_equal(part(x, "victims")->tid, 2230);
	assert_null(part(x, "missing"));
}

static void test_saturated_by_many(void **state)
{
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "process", 4711, 0, "postgres", 31, false);
	load(x, "process", 4712, 0, "postgres", 30, false);
	load(x, "process", 4713, 0, "postgres", 29, false);
	load(x, "thread", 4711, 4711, "postgres", 31, false);
	decide(x);
	assert_verdict(x, "saturated", "measured", "device sdb saturated (util 100 %, r_await 300 ms, "
		"queue 64): 31 % of 204.0 MiB read by postgres pid 4711 together with 2 others");
	assert_int_equal(part(x, "culprit")->tid, 0);
	/* They are all victims of one another. */
	operation(x, 2211, "device", NSEC_PER_SEC, true);
	operation(x, 2212, "device", NSEC_PER_SEC, true);
	decide(x);
	assert_non_null(strstr(x->v.sentence, "together with 2 others; 2 threads waited up to 1.00 s"));
}

/* The journal has the most, but it works for those who come after it. */
static void test_saturated_by_commits(void **state)
{
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "process", 77, 0, "jbd2/sdb-8", 40, true);
	load(x, "process", 4711, 0, "postgres", 31, false);
	load(x, "process", 4712, 0, "postgres", 29, false);
	load(x, "thread", 77, 77, "jbd2/sdb-8", 40, true);
	decide(x);
	assert_verdict(x, "saturated", "measured", "device sdb saturated (util 100 %, r_await 300 ms, "
		"queue 64): 31 % of 204.0 MiB read by postgres pid 4711 together with 2 others");
}

/* What the kernel writes back is somebody's, but whose it does not say. */
static void test_saturated_by_write_back(void **state)
{
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "process", 77, 0, "kworker/u8:2", 97, true);
	load(x, "thread", 77, 77, "kworker/u8:2", 97, true);
	decide(x);
	assert_verdict(x, "saturated", "measured", "device sdb saturated (util 100 %, r_await 300 ms, "
		"queue 64): 97 % of 204.0 MiB read by kworker/u8:2 pid 77 (of the kernel, on whose "
		"behalf is not known)");
	assert_string_equal(part(x, "culprit")->basis, "inferred");
}

static void test_throttled(void **state)
{
	struct watch_disk hardly = idle_sdb;
	struct fixture *x = *state;

	hardly.util_pct = 3.5;
	hardly.read_await_ms = 0.5;
	hardly.read_bytes = MIB;
	samples(x, &hardly, 10);
	operation(x, 2225, "device", 512 * MS, true);
	totals(x, 400, 4 * MIB, 5 * MS);
	load(x, "thread", 2211, 2225, "mariadbd", 100, false);
	decide(x);
	assert_verdict(x, "throttled", "inferred", "device sdb held back before its queue (util at most "
		"3.5 %, its own time at most 5.0 ms, operations up to 512 ms): a limit of a control group, or "
		"the device is suspended; 1 thread waited up to 512 ms");
}

/* A request of io_uring: no thread sleeps, and no stack says what for. */
static void test_throttled_requests(void **state)
{
	const struct record_operation op = { .op = "read", .probe = "uring", .pid = 2211, .tid = 2225,
		.comm = "mariadbd", .dev_major = 8, .dev_minor = 16, .dev_name = "sdb",
		.dur_ns = 512 * MS };
	struct fixture *x = *state;

	samples(x, &idle_sdb, 10);
	verdict_note_operation(&x->f, &op, true);
	decide(x);
	assert_string_equal(x->v.class_name, "throttled");
}

/* A device that had so much to do that it explains the wait is not held back. */
static void test_a_device_at_work_is_not_held_back(void **state)
{
	struct watch_disk at_work = idle_sdb;
	struct fixture *x = *state;

	at_work.util_pct = 40;
	samples(x, &at_work, 10);
	operation(x, 2225, "device", 512 * MS, true);
	decide(x);
	assert_string_equal(x->v.class_name, "unknown");
	/* Nor one that took long for a single request. */
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	samples(x, &idle_sdb, 10);
	operation(x, 2225, "device", 512 * MS, true);
	totals(x, 1, 4096, 500 * MS);
	decide(x);
	assert_string_equal(x->v.class_name, "unknown");
	/* Nor one that nobody looked at. */
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	operation(x, 2225, "device", 512 * MS, true);
	decide(x);
	assert_string_equal(x->v.class_name, "unknown");
	assert_non_null(part(x, "missing"));
}

static void test_throttled_by_what_the_kernel_says(void **state)
{
	struct fixture *x = *state;

	operation(x, 2225, "cgroup throttling", 512 * MS, true);
	decide(x);
	assert_verdict(x, "throttled", "measured", "a control group is at its limit, that of mariadbd "
						    "tid 2225; 1 thread waited up to 512 ms");
}

static void test_waiting(void **state)
{
	static const struct {
		const char *waits_for;
		const char *sentence;
	} cases[] = {
		{ "read-write lock", "no device at its limit, threads wait for a kernel lock "
				     "(read-write lock), the longest is mariadbd tid 2230; 2 threads waited "
				     "up to 4.20 s" },
		{ "journal commit", "no device at its limit, threads wait for the journal "
				    "(journal commit), the longest is mariadbd tid 2230; 2 threads waited up "
				    "to 4.20 s" },
		{ "memory", "no device at its limit, threads wait for memory (memory), the longest is "
			    "mariadbd tid 2230; 2 threads waited up to 4.20 s" },
		{ "FUSE server", "no device at its limit, threads wait for a file server (FUSE server), "
				 "the longest is mariadbd tid 2230; 2 threads waited up to 4.20 s" },
	};
	struct fixture *x = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
		samples(x, &idle_sdb, 5);
		operation(x, 2230, cases[i].waits_for, 4200 * MS, false);
		operation(x, 2231, cases[i].waits_for, 2 * NSEC_PER_SEC, false);
		operation(x, 2232, "page", 200 * MS, true);
		decide(x);
		assert_verdict(x, "waiting", "measured", cases[i].sentence);
		assert_string_equal(x->v.waits_for, cases[i].waits_for);
	}
	/* Of devices that nobody looked at nothing is said. */
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	operation(x, 2230, "mutex", 4200 * MS, false);
	decide(x);
	assert_verdict(x, "waiting", "measured", "threads wait for a kernel lock (mutex), the longest is "
						  "mariadbd tid 2230; 1 thread waited up to 4.20 s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		verdict_test(test_hung),
		verdict_test(test_hung_by_a_frozen_file_system_below),
		verdict_test(test_waits_for_something_else_blame_nobody),
		verdict_test(test_a_pause_is_no_hang),
		verdict_test(test_frozen),
		verdict_test(test_slow),
		verdict_test(test_slower_than_before),
		verdict_test(test_saturated),
		verdict_test(test_saturated_by_many),
		verdict_test(test_saturated_by_commits),
		verdict_test(test_saturated_by_write_back),
		verdict_test(test_throttled),
		verdict_test(test_throttled_requests),
		verdict_test(test_a_device_at_work_is_not_held_back),
		verdict_test(test_throttled_by_what_the_kernel_says),
		verdict_test(test_waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
