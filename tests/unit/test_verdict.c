/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The verdict: each rule by the facts it stands on, and nothing without them. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "verdict/rules.h"
#include "verdict/verdict.h"

#define MS NSEC_PER_MSEC
#define TRIGGER_NS (100 * NSEC_PER_SEC)
#define MIB (1ULL << 20)

struct fixture {
	struct verdict_facts f;
	struct record_verdict v;
	uint64_t now_ns;
};

static int setup(void **state)
{
	struct fixture *x = calloc(1, sizeof(*x));

	assert_non_null(x);
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	x->now_ns = TRIGGER_NS;
	*state = x;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

/* A second of what the watchdog sees of one disk. */
static void sample(struct fixture *x, const struct watch_disk *disk)
{
	struct record_sample s = { .before_trigger = x->now_ns < TRIGGER_NS };

	s.sample.mono_ns = x->now_ns;
	s.sample.interval_ns = NSEC_PER_SEC;
	s.sample.disks_count = 1;
	s.sample.disks[0] = *disk;
	verdict_note_sample(&x->f, &s);
	x->now_ns += NSEC_PER_SEC;
}

static const struct watch_disk idle_sdb = { .name = "sdb", .major = 8, .minor = 16 };
/* 64 requests at a time, 300 ms each: 213 a second, of 16 KiB. */
static const struct watch_disk loaded_sdb = { .name = "sdb", .major = 8, .minor = 16, .util_pct = 100,
	.inflight = 64, .read_await_ms = 300, .queue = 64, .read_bytes = 213 * 16384 };
/* One request at a time, 125 ms each: 8 a second, of 4 KiB. */
static const struct watch_disk slow_sdb = { .name = "sdb", .major = 8, .minor = 16, .util_pct = 100,
	.inflight = 1, .read_await_ms = 125, .queue = 1, .read_bytes = 8 * 4096 };

static void samples(struct fixture *x, const struct watch_disk *disk, unsigned int seconds)
{
	for (unsigned int i = 0; i < seconds; i++)
		sample(x, disk);
}

/* Of mariadbd, process 2211, on a file of sdb1, which is no disk. */
static void operation(struct fixture *x, int32_t tid, const char *waits_for, uint64_t ns, bool finished)
{
	struct record_operation op = { .op = "read", .probe = "vfs", .pid = 2211, .tid = tid,
		.comm = "mariadbd", .path = "/var/lib/mysql/shop/orders.ibd", .dev_major = 8,
		.dev_minor = 17, .dev_name = "sdb1", .dur_ns = ns };

	text_copy(op.waits_for, sizeof(op.waits_for), waits_for);
	verdict_note_operation(&x->f, &op, finished);
}

static void kernel_thread(struct fixture *x, const char *waits_for, uint64_t ns)
{
	struct record_operation op = { .op = "kernel", .probe = "wait", .pid = 77, .tid = 77,
		.comm = "kworker/u8:2", .dur_ns = ns };

	text_copy(op.waits_for, sizeof(op.waits_for), waits_for);
	verdict_note_operation(&x->f, &op, false);
}

static void totals(struct fixture *x, uint64_t requests, uint64_t read_bytes, uint64_t device_max_ns)
{
	struct record_device d = { .dev_major = 8, .dev_minor = 16, .dev_name = "sdb", .final = true,
		.requests = requests, .read_requests = requests, .read_bytes = read_bytes,
		.device = { device_max_ns / 2, device_max_ns, device_max_ns } };

	verdict_note_device(&x->f, &d);
}

static void load(struct fixture *x, const char *by, int32_t pid, int32_t tid, const char *comm,
	double share_pct, bool inferred)
{
	struct record_io_by b = { .dev_major = 8, .dev_minor = 16, .dev_name = "sdb", .pid = pid,
		.tid = tid, .requests = 1000, .bytes = 100 * MIB, .share_pct = share_pct,
		.inferred = inferred };

	text_copy(b.by, sizeof(b.by), by);
	text_copy(b.comm, sizeof(b.comm), comm);
	if (strcmp(by, "file") == 0)
		text_copy(b.path, sizeof(b.path), "/var/lib/mysql/big/t.ibd");
	verdict_note_io_by(&x->f, &b);
}

/* A scan by thread 2211, and everybody else waits. */
static void scan(struct fixture *x)
{
	samples(x, &loaded_sdb, 10);
	operation(x, 2230, "page", 12 * NSEC_PER_SEC, true);
	operation(x, 2231, "journal commit", 2 * NSEC_PER_SEC, true);
	operation(x, 2225, "device", 400 * MS, true);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "process", 2211, 0, "mariadbd", 98, false);
	load(x, "thread", 2211, 2225, "mariadbd", 92.4, false);
	load(x, "thread", 2211, 2230, "mariadbd", 6, false);
	load(x, "file", 0, 0, "", 91, false);
}

static void decide(struct fixture *x)
{
	verdict_decide(&x->f, NULL, &x->v);
}

static const struct record_verdict_part *part(const struct fixture *x, const char *what)
{
	for (uint32_t i = 0; i < x->v.parts_count; i++)
		if (strcmp(x->v.parts[i].what, what) == 0)
			return &x->v.parts[i];
	return NULL;
}

static void assert_verdict(const struct fixture *x, const char *class_name, const char *basis,
	const char *sentence)
{
	assert_string_equal(x->v.sentence, sentence);
	assert_string_equal(x->v.class_name, class_name);
	assert_string_equal(x->v.basis, basis);
	/* Only the load has somebody to blame. */
	if (strcmp(class_name, "saturated") != 0)
		assert_null(part(x, "culprit"));
}

/* One test for each rule */

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
	const struct record_device silent = { .dev_major = 8, .dev_minor = 16, .dev_name = "sdb",
		.in_flight = 1, .no_completion_ns = 2 * NSEC_PER_SEC, .oldest_age_ns = 2 * NSEC_PER_SEC };
	struct fixture *x = *state;

	verdict_note_device(&x->f, &silent);
	kernel_thread(x, "frozen file system", 2100 * MS);
	decide(x);
	assert_verdict(x, "hung", "measured", "device sdb hung (1 request in flight, none finished for "
		"2.00 s), a file system below it is frozen: kworker/u8:2 pid 77 waits for it");
	assert_string_equal(part(x, "cause")->basis, "inferred");
	assert_int_equal(part(x, "cause")->pid, 77);
	/* A kernel thread is no victim. */
	assert_null(part(x, "victims"));
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
}

/* Nothing is blamed without evidence */

static void test_nothing_is_unknown(void **state)
{
	struct fixture *x = *state;

	decide(x);
	assert_verdict(x, "unknown", "inferred",
		"no verdict: there is no operation of 100 ms and no reading of the devices");
	samples(x, &idle_sdb, 5);
	decide(x);
	assert_verdict(x, "unknown", "inferred",
		"no verdict: no operation took 100 ms and no device was at its limit");
	assert_string_equal(part(x, "missing")->basis, "");
}

static void test_a_wait_nobody_can_explain_is_unknown(void **state)
{
	struct fixture *x = *state;

	samples(x, &idle_sdb, 5);
	operation(x, 2225, "", 4 * NSEC_PER_SEC, true);
	decide(x);
	assert_verdict(x, "unknown", "inferred", "no verdict: operations took up to 4.00 s, but what they "
		"waited for is not known and no device was at its limit; what the devices did with each "
		"request was not seen");
}

/* The watchdog alone sees a saturated device, but not by whom. */
static void test_saturated_by_nobody_known(void **state)
{
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 5);
	decide(x);
	assert_verdict(x, "saturated", "measured",
		"device sdb saturated (util 100 %, r_await 300 ms, queue 64)");
	assert_null(part(x, "culprit"));
	assert_non_null(part(x, "missing"));
}

/* At work all the time, and nobody waits: a fast device that serves one after the other. */
static void test_utilisation_alone_is_no_load(void **state)
{
	const struct watch_disk fast = { .name = "sdb", .major = 8, .minor = 16, .util_pct = 100,
		.inflight = 1, .read_await_ms = 0.1, .queue = 1, .read_bytes = 40 * MIB };
	struct fixture *x = *state;

	samples(x, &fast, 5);
	decide(x);
	assert_string_equal(x->v.class_name, "unknown");
}

/* What was long over when the incident opened is not what it is about. */
static void test_the_calm_before_counts_for_nothing(void **state)
{
	struct fixture *x = *state;

	x->now_ns = TRIGGER_NS - 60 * NSEC_PER_SEC;
	samples(x, &loaded_sdb, 20);
	x->now_ns = TRIGGER_NS;
	samples(x, &idle_sdb, 5);
	decide(x);
	assert_string_equal(x->v.class_name, "unknown");
}

/* A device mapper and the disk below it: the disk is judged, which knows whose its requests are. */
static void test_the_disk_below_is_judged(void **state)
{
	struct watch_disk dm = loaded_sdb;
	struct fixture *x = *state;

	text_copy(dm.name, sizeof(dm.name), "dm-0");
	dm.major = 253;
	dm.minor = 0;
	samples(x, &dm, 5);
	x->now_ns = TRIGGER_NS;
	scan(x);
	decide(x);
	assert_string_equal(x->v.dev_name, "sdb");
	assert_int_equal(part(x, "culprit")->tid, 2225);
}

/* The statement */

static bool find_scan(void *userdata, int32_t pid, int32_t tid, struct verdict_statement *ret)
{
	(void)userdata;
	assert_int_equal(pid, 2211);
	assert_int_equal(tid, 2225);
	*ret = (struct verdict_statement){ .user = "app@localhost", .database = "big",
		.text = "SELECT COUNT(*)\n\tFROM t  WHERE c LIKE ?", .elapsed_ns = 31 * NSEC_PER_SEC };
	return true;
}

static void test_a_statement_stays_out_of_the_logs_of_others(void **state)
{
	const struct verdict_sql sql = { .find_statement = find_scan,
		.summary = { .others = 14, .longest_ns = 12 * NSEC_PER_SEC } };
	struct fixture *x = *state;

	scan(x);
	verdict_decide(&x->f, &sql, &x->v);
	assert_verdict(x, "saturated", "measured", "device sdb saturated (util 100 %, r_await 300 ms, "
		"queue 64): 92 % of 204.0 MiB read by mariadbd tid 2225, big/t.ibd, app@localhost "
		"\"SELECT COUNT(*) FROM t WHERE c LIKE ?\" running 31.00 s; 14 other statements waited up to "
		"12.00 s");
	assert_string_equal(x->v.message, "device sdb saturated (util 100 %, r_await 300 ms, queue 64): "
		"92 % of 204.0 MiB read by mariadbd tid 2225, big/t.ibd, app@localhost, a statement running "
		"31.00 s; 14 other statements waited up to 12.00 s");
	assert_string_equal(part(x, "statement")->text,
		"app@localhost \"SELECT COUNT(*) FROM t WHERE c LIKE ?\" running 31.00 s");
}

static bool find_never(void *userdata, int32_t pid, int32_t tid, struct verdict_statement *ret)
{
	(void)userdata;
	(void)pid;
	(void)tid;
	(void)ret;
	fail_msg("a statement was asked for");
	return false;
}

/* A device that is slow by itself is no statement's doing. */
static void test_only_the_load_is_a_statement(void **state)
{
	const struct verdict_sql sql = { .find_statement = find_never };
	struct fixture *x = *state;

	samples(x, &slow_sdb, 5);
	totals(x, 40, 40 * 4096, 130 * MS);
	load(x, "thread", 2211, 2225, "mariadbd", 100, false);
	verdict_decide(&x->f, &sql, &x->v);
	assert_string_equal(x->v.class_name, "slow");
}

/* The facts */

static void test_kinds_of_waits(void **state)
{
	(void)state;
	assert_int_equal(verdict_wait_of(""), VERDICT_WAIT_none);
	assert_int_equal(verdict_wait_of("what nobody has heard of"), VERDICT_WAIT_other);
	/* Each of the words that there are has its kind. */
#define WAITS(prefix, waits_for) assert_true(*waits_for && (verdict_wait_of(waits_for) != VERDICT_WAIT_other || \
		strcmp(waits_for, "kernel worker") == 0 || strcmp(waits_for, "core dump") == 0));
#define WEAK(prefix, waits_for) WAITS(prefix, waits_for)
#include "enrich/waits.def"
#undef WEAK
#undef WAITS
}

static void test_more_than_there_is_room_for(void **state)
{
	struct fixture *x = *state;

	for (int32_t tid = 1; tid <= VERDICT_THREADS_MAX + 23; tid++)
		operation(x, tid, "page", NSEC_PER_SEC, false);
	assert_int_equal(x->f.threads_left_out, 23);
	for (uint32_t i = 0; i < VERDICT_DEVICES_MAX + 3; i++) {
		struct watch_disk disk = loaded_sdb;

		disk.major = 100 + i;
		sample(x, &disk);
	}
	assert_int_equal(x->f.devices_count, VERDICT_DEVICES_MAX);
	assert_int_equal(x->f.devices_left_out, 3);
	decide(x);
	assert_string_equal(x->v.class_name, "saturated");
}

/* The files' device is a partition, whatever comes first. */
static void test_a_partition_is_its_disk(void **state)
{
	struct fixture *x = *state;

	operation(x, 2230, "page", NSEC_PER_SEC, true);
	sample(x, &loaded_sdb);
	operation(x, 2231, "page", NSEC_PER_SEC, true);
	assert_int_equal(x->f.devices_count, 1);
	assert_string_equal(x->f.devices[0].name, "sdb");
	assert_int_equal(x->f.devices[0].operations, 2);
}

/* An operation that hangs has a line each second, and is one wait. */
static void test_stuck_lines_do_not_add_up(void **state)
{
	struct fixture *x = *state;

	samples(x, &idle_sdb, 1);
	sample(x, &loaded_sdb);
	for (unsigned int i = 1; i <= 5; i++)
		operation(x, 2230, "page", i * NSEC_PER_SEC, false);
	assert_int_equal(verdict_waited_ns(&x->f.devices[0]), 5 * NSEC_PER_SEC);
	operation(x, 2230, "page", 6 * NSEC_PER_SEC, true);
	assert_int_equal(verdict_waited_ns(&x->f.devices[0]), 6 * NSEC_PER_SEC);
	assert_int_equal(x->f.operations, 1);
}

int main(void)
{
#define verdict_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		verdict_test(test_hung),
		verdict_test(test_hung_by_a_frozen_file_system_below),
		verdict_test(test_a_pause_is_no_hang),
		verdict_test(test_frozen),
		verdict_test(test_slow),
		verdict_test(test_slower_than_before),
		verdict_test(test_saturated),
		verdict_test(test_saturated_by_many),
		verdict_test(test_saturated_by_write_back),
		verdict_test(test_throttled),
		verdict_test(test_throttled_requests),
		verdict_test(test_a_device_at_work_is_not_held_back),
		verdict_test(test_throttled_by_what_the_kernel_says),
		verdict_test(test_waiting),
		verdict_test(test_nothing_is_unknown),
		verdict_test(test_a_wait_nobody_can_explain_is_unknown),
		verdict_test(test_saturated_by_nobody_known),
		verdict_test(test_utilisation_alone_is_no_load),
		verdict_test(test_the_calm_before_counts_for_nothing),
		verdict_test(test_the_disk_below_is_judged),
		verdict_test(test_a_statement_stays_out_of_the_logs_of_others),
		verdict_test(test_only_the_load_is_a_statement),
		cmocka_unit_test(test_kinds_of_waits),
		verdict_test(test_more_than_there_is_room_for),
		verdict_test(test_a_partition_is_its_disk),
		verdict_test(test_stuck_lines_do_not_add_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
