/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Each rule of the verdict with facts that make it hold. */
#include "test_verdict_setup.h"

static void test_hung(void **state)
{
	const struct record_disk hung = { .dev = { 8, 16 },
		.dev_name = "sdb",
		.util_pct = 100,
		.inflight = 3,
		.no_completion_ns = 3200 * MS };
	struct fixture *x = *state;

	/* The thread that reads most is a victim like the others. */
	scan(x);
	sample(x, &hung);
	operation(x, 2230, "device", 3500 * MS, false);
	decide(x);
	assert_verdict(x, "hung", "measured",
		"device sdb hung: it completed nothing for 3.20 s with 3 requests in flight; 3 threads "
		"waited up to 12.00 s");
	assert_string_equal(x->v.dev_name, "sdb");
	assert_int_equal(part(x, "device")->longest_ns, 3200 * MS);
	assert_int_equal(part(x, "victims")->threads, 3);
}

static void test_hung_by_a_frozen_file_system_below(void **state)
{
	struct record_device unresponsive = { .dev.major = 7,
		.dev_name = "loop0",
		.in_flight = 1,
		.no_completion_ns = 2 * NSEC_PER_SEC,
		.oldest.age_ns = 2 * NSEC_PER_SEC };
	struct fixture *x = *state;

	verdict_note_device(&x->f, &unresponsive);
	kernel_thread(x, "frozen file system", 2100 * MS);
	decide(x);
	assert_verdict(x, "hung", "measured",
		"device loop0 hung: it completed nothing for 2.00 s with 1 request in flight; a file "
		"system below it was probably frozen, because kworker/u8:2 pid 77 waited for a "
		"frozen one");
	assert_string_equal(record_basis_text(part(x, "cause")->basis), "inferred");
	assert_int_equal(part(x, "cause")->pid, 77);
	/* A kernel thread is no victim. */
	assert_null(part(x, "victims"));

	/* A plain disk has no file system below it: some other one is frozen. */
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	unresponsive.dev.major = 8;
	text_copy(unresponsive.dev_name, sizeof(unresponsive.dev_name), "sdb");
	verdict_note_device(&x->f, &unresponsive);
	kernel_thread(x, "frozen file system", 2100 * MS);
	decide(x);
	assert_verdict(x, "hung", "measured",
		"device sdb hung: it completed nothing for 2.00 s with 1 request in flight");
	assert_null(part(x, "cause"));
}

/* The thread waits on a file of the disk, but not for the disk. */
static void test_waits_for_a_cgroup_do_not_saturate_a_busy_disk(void **state)
{
	struct record_disk busy = loaded_sdb;
	struct fixture *x = *state;

	busy.read_await_ms = 0.1;
	busy.write_await_ms = 0;
	busy.queue = 1;
	samples(x, &busy, 5);
	totals(x, 50000, 2000 * MIB, MS);
	load(x, "thread", 2211, 2225, "mariadbd", 98, false);
	operation(x, 2230, "cgroup throttling", 3 * NSEC_PER_SEC, true);
	decide(x);
	assert_string_not_equal(record_class_text(x->v.class), "saturated");
	assert_null(part(x, "culprit"));
}

static void test_a_pause_in_an_overload_is_not_hung(void **state)
{
	struct record_disk pause = loaded_sdb;
	struct fixture *x = *state;

	scan(x);
	pause.no_completion_ns = 2900 * MS;
	sample(x, &pause);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "saturated");
}

static void test_frozen(void **state)
{
	struct fixture *x = *state;

	samples(x, &idle_sdb, 5);
	operation(x, 2230, "frozen file system", 4200 * MS, false);
	operation(x, 2231, "frozen file system", 3100 * MS, false);
	decide(x);
	assert_verdict(x, "frozen", "measured",
		"the file system on sdb1 was frozen, as by fsfreeze or a snapshot, so writes to "
		"it waited, such as to "
		"/var/lib/mysql/shop/orders.ibd; 2 threads waited up to 4.20 s");
	assert_string_equal(record_cause_text(x->v.waits_for), "frozen file system");
	/* A snapshot freezes a file system for some milliseconds. */
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	operation(x, 2230, "frozen file system", 400 * MS, true);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "unknown");
}

static void earlier_operation(struct fixture *x, uint64_t ns, bool finished)
{
	struct record_operation op = { .op = RECORD_OP_read,
		.probe = RECORD_PROBE_wait,
		.pid = 99,
		.tid = 99,
		.comm = "df",
		.path = "/mnt/archive",
		.start_mono_ns = TRIGGER_NS - 90 * NSEC_PER_SEC,
		.waits_for = record_enum_find(&record_cause_enum, "frozen file system"),
		.dur_ns = ns };

	verdict_note_operation(&x->f, &op, finished);
}

/* A thread that hung for all of the time in which the host was well explains nothing. */
static void test_a_thread_blocked_long_before(void **state)
{
	struct fixture *x = *state;
	const struct record_verdict_part *p;

	x->f.earlier_than_ns = TRIGGER_NS - 60 * NSEC_PER_SEC;
	earlier_operation(x, 91 * NSEC_PER_SEC, false);
	x->now_ns = TRIGGER_NS;
	samples(x, &loaded_sdb, 10);
	for (int32_t tid = 2230; tid < 2233; tid++) {
		struct record_operation op = { .op = RECORD_OP_read,
			.probe = RECORD_PROBE_vfs,
			.sleeps = 1,
			.pid = 2211,
			.tid = tid,
			.comm = "mariadbd",
			.dev.major = 8,
			.dev.minor = 17,
			.dev_name = "sdb1",
			.start_mono_ns = TRIGGER_NS,
			.waits_for = record_enum_find(&record_cause_enum, "device"),
			.dur_ns = NSEC_PER_SEC };

		verdict_note_operation(&x->f, &op, true);
	}
	x->f.closing = true;
	earlier_operation(x, 100 * NSEC_PER_SEC, false);
	decide(x);
	assert_int_equal(x->v.class, RECORD_CLASS_saturated);
	p = part(x, "earlier");
	assert_non_null(p);
	assert_string_equal(p->text,
		"1 thread was blocked long before the incident: df pid 99 for 1m40s, /mnt/archive");
	assert_int_equal(p->threads, 1);
	assert_int_equal(part(x, "victims")->threads, 3);
}

/* When nothing else hangs, it is what the incident is about. */
static void test_only_a_thread_blocked_long_before(void **state)
{
	struct fixture *x = *state;

	x->f.earlier_than_ns = TRIGGER_NS - 60 * NSEC_PER_SEC;
	samples(x, &idle_sdb, 3);
	earlier_operation(x, 91 * NSEC_PER_SEC, false);
	x->f.closing = true;
	earlier_operation(x, 100 * NSEC_PER_SEC, false);
	decide(x);
	assert_int_equal(x->v.class, RECORD_CLASS_frozen);
	assert_null(part(x, "earlier"));
}

static void test_slow(void **state)
{
	struct fixture *x = *state;

	samples(x, &slow_sdb, 5);
	operation(x, 2225, "device", 130 * MS, true);
	totals(x, 40, 40 * 4096, 130 * MS);
	load(x, "thread", 2211, 2225, "mariadbd", 100, false);
	decide(x);
	assert_verdict(x, "slow", "measured",
		"device sdb was slow although lightly loaded (util 100 %, r_await 125 ms, queue "
		"depth 1.0, 8.0 requests/s, 32.0 KiB/s); 1 thread waited 130 ms");
}

/* It completes a request now and then, so it does not hang. */
static void test_slow_by_a_frozen_file_system_below(void **state)
{
	struct record_disk slow_loop = slow_sdb;
	struct fixture *x = *state;

	slow_loop.dev = (struct record_dev){ 7, 0 };
	text_copy(slow_loop.dev_name, sizeof(slow_loop.dev_name), "loop0");
	samples(x, &slow_loop, 5);
	kernel_thread(x, "frozen file system", 2100 * MS);
	decide(x);
	assert_verdict(x, "slow", "measured",
		"device loop0 was slow although lightly loaded (util 100 %, r_await 125 ms, queue "
		"depth 1.0, 8.0 requests/s, 32.0 KiB/s); a file system below it was probably "
		"frozen, because kworker/u8:2 pid 77 waited for a frozen one");
	assert_string_equal(part(x, "cause")->text,
		"kernel thread kworker/u8:2 pid 77 waited 2.10 s for a frozen file system");
}

/* As of a virtual machine that is backed up. */
static void test_several_frozen_file_systems(void **state)
{
	struct fixture *x = *state;

	samples(x, &idle_sdb, 5);
	waits(x,
		&(struct wait){ "frozen file system", "loop7", 7, 7, 99, 99, 0, 3 * NSEC_PER_SEC });
	waits(x,
		&(struct wait){ "frozen file system", "sdb1", 8, 17, 99, 98, 0, 2 * NSEC_PER_SEC });
	/* One again, a short freeze, and one of which the file system is not known. */
	waits(x,
		&(struct wait){ "frozen file system", "sdb1", 8, 17, 99, 97, 0, 2 * NSEC_PER_SEC });
	waits(x, &(struct wait){ "frozen file system", "sdc1", 8, 33, 99, 96, 0, 200 * MS });
	waits(x, &(struct wait){ "frozen file system", "", 0, 0, 99, 95, 0, 2 * NSEC_PER_SEC });
	decide(x);
	assert_non_null(strstr(x->v.sentence,
		"the file system on loop7 and 1 other were frozen, as by fsfreeze or a snapshot, "
		"so writes to them waited"));
	waits(x,
		&(struct wait){ "frozen file system", "sdb2", 8, 18, 99, 94, 0, 2 * NSEC_PER_SEC });
	decide(x);
	assert_non_null(strstr(x->v.sentence, "the file system on loop7 and 2 others were frozen"));
}

/* The same work as in its baseline minute, but each request takes longer. */
static void test_slower_than_before(void **state)
{
	struct record_disk baseline = { .dev = { 8, 16 },
		.dev_name = "sdb",
		.util_pct = 10,
		.read_await_ms = 2,
		.queue = 0.2,
		.read_bytes = 100 * 65536 };
	struct record_disk now = baseline;
	struct fixture *x = *state;

	x->now_ns = TRIGGER_NS - 30 * NSEC_PER_SEC;
	samples(x, &baseline, 20);
	x->now_ns = TRIGGER_NS;
	now.util_pct = 100;
	now.read_await_ms = 40;
	now.queue = 4;
	samples(x, &now, 5);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "slow");
	/* With more requests than then, the load is the cause. */
	now.queue = 40;
	samples(x, &now, 20);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "saturated");
}

/* As fast as it was, and with a queue now: so there is more to do than it can. */
static void test_a_queue_is_not_slower(void **state)
{
	struct record_disk baseline = { .dev = { 8, 16 },
		.dev_name = "sdb",
		.util_pct = 45,
		.read_await_ms = 9,
		.queue = 0.45,
		.read_bytes = 50 * 65536 };
	struct record_disk now = baseline;
	struct fixture *x = *state;

	x->now_ns = TRIGGER_NS - 30 * NSEC_PER_SEC;
	samples(x, &baseline, 20);
	x->now_ns = TRIGGER_NS;
	now.util_pct = 100;
	now.read_await_ms = 500;
	now.queue = 29;
	now.read_bytes = 58 * 65536;
	samples(x, &now, 5);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "saturated");
}

/* A few large reads after many small writes: fewer requests and bytes, but of another kind. */
static void test_other_work_is_not_slower(void **state)
{
	struct record_disk baseline = { .dev = { 8, 16 },
		.dev_name = "sdb",
		.util_pct = 20,
		.write_await_ms = 2,
		.queue = 0.4,
		.reads = 10,
		.read_ticks_ms = 40,
		.read_bytes = 10 * 16384,
		.writes = 190,
		.write_ticks_ms = 400,
		.write_bytes = 8 * MIB };
	struct record_disk now = { .dev = { 8, 16 },
		.dev_name = "sdb",
		.util_pct = 96,
		.read_await_ms = 630,
		.queue = 7.6,
		.reads = 17,
		.read_ticks_ms = 17 * 630,
		.read_bytes = 6 * MIB };
	struct fixture *x = *state;

	/* Whether it had time left then or not. */
	for (unsigned int util_pct = 20; util_pct <= 60; util_pct += 40) {
		baseline.util_pct = util_pct;
		verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
		x->now_ns = TRIGGER_NS - 30 * NSEC_PER_SEC;
		samples(x, &baseline, 20);
		x->now_ns = TRIGGER_NS;
		samples(x, &now, 8);
		decide(x);
		assert_string_equal(record_class_text(x->v.class), "saturated");
	}
}

/* It was busy before, and does less now than then, always as much: its credits have run out. */
static void test_a_busy_disk_without_credits(void **state)
{
	static const struct {
		uint32_t requests[6]; /* of the seconds since the trigger */
		uint32_t size;
		enum record_class class;
	} cases[] = {
		{ { 55, 31, 30, 32, 30, 31 }, 16384, RECORD_CLASS_slow },
		/* As much as before. */
		{ { 95, 98, 95, 96, 97, 95 }, 16384, RECORD_CLASS_saturated },
		/* No plateau. */
		{ { 31, 45, 62, 38, 50, 31 }, 16384, RECORD_CLASS_saturated },
		/* Small ones at random places, which were large ones in a row. */
		{ { 31, 31, 30, 32, 30, 31 }, 4096, RECORD_CLASS_saturated },
	};
	struct fixture *x = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct record_disk disk = { .dev = { 8, 16 },
			.dev_name = "sdb",
			.util_pct = 78,
			.read_await_ms = 20,
			.queue = 2,
			.reads = 100,
			.read_ticks_ms = 2000,
			.read_bytes = 100 * 16384 };

		if (cases[i].size == 4096)
			disk.read_bytes = 100 * 131072;
		verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
		x->now_ns = TRIGGER_NS - 30 * NSEC_PER_SEC;
		samples(x, &disk, 24);
		x->now_ns = TRIGGER_NS + NSEC_PER_SEC;
		disk.util_pct = 100;
		disk.queue = 16;
		disk.read_ticks_ms = 16000;
		for (size_t j = 0; j < ARRAY_SIZE(cases[i].requests); j++) {
			disk.reads = cases[i].requests[j];
			disk.read_bytes = (uint64_t)disk.reads * cases[i].size;
			disk.read_await_ms = 16000.0 / disk.reads;
			samples(x, &disk, 1);
		}
		/* A disk that does a megabyte a second is not slow by that alone. */
		totals(x, 200, 3 * MIB, 600 * MS);
		decide(x);
		assert_string_equal(record_class_text(x->v.class),
			record_class_text(cases[i].class));
	}
}

static void test_saturated(void **state)
{
	struct fixture *x = *state;

	scan(x);
	decide(x);
	assert_verdict(x, "saturated", "measured",
		"device sdb was saturated for 10.00 s (util 100 %, r_await 300 ms, queue depth "
		"64): mariadbd tid 2225 used 92 % of the device time (1000 reads, "
		"100.0 MiB), mostly on big/t.ibd. 2 other threads waited up to 12.00 s");
	assert_string_equal(x->v.message, x->v.sentence);
	assert_int_equal(part(x, "culprit")->tid, 2225);
	assert_int_equal(part(x, "culprit")->pid, 2211);
	assert_string_equal(part(x, "culprit")->path, "/var/lib/mysql/big/t.ibd");
	assert_string_equal(record_basis_text(part(x, "culprit")->basis), "measured");
	assert_int_equal(part(x, "victims")->threads, 2);
	assert_int_equal(part(x, "victims")->tid, 2230);
	assert_null(part(x, "missing"));
}

static void test_saturated_by_several_processes(void **state)
{
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "process", 4711, 0, "postgres", 31, false);
	load(x, "process", 4712, 0, "postgres", 30, false);
	load(x, "process", 4713, 0, "postgres", 29, false);
	load(x, "thread", 4711, 4711, "postgres", 31, false);
	decide(x);
	assert_verdict(x, "saturated", "measured",
		"device sdb was saturated for 10.00 s (util 100 %, r_await 300 ms, queue depth "
		"64); no program alone caused it: postgres pid 4711 used the most, 31 % of the device "
		"time (1000 reads, 100.0 MiB); next came postgres pid 4712 with 30 % and postgres pid "
		"4713 with 29 %");
	assert_null(part(x, "culprit"));
	assert_int_equal(part(x, "largest")->tid, 0);
	assert_int_equal(part(x, "largest")->pid, 4711);
	/* Each of them is a victim of the others. */
	operation(x, 2211, "device", NSEC_PER_SEC, true);
	operation(x, 2212, "device", NSEC_PER_SEC, true);
	decide(x);
	assert_non_null(strstr(x->v.sentence,
		"used the most, 31 % of the device time (1000 reads, 100.0 MiB); next came postgres pid 4712 "
		"with 30 % and postgres pid 4713 with 29 %. 2 threads waited up to 1.00 s"));
}

/* A record has ten lines of each kind for a device. */
static void test_saturated_by_more_processes_than_the_record_has_lines(void **state)
{
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	for (int32_t pid = 4711; pid < 4721; pid++)
		load(x, "process", pid, 0, "postgres", 8, false);
	decide(x);
	/* With so little, none of them is worth a look. */
	assert_non_null(strstr(x->v.sentence,
		"64); no program alone caused it: no program used as much as a fifth of the device "
		"time"));
	assert_null(strstr(x->v.sentence, "postgres"));
	assert_string_equal(part(x, "largest")->text,
		"postgres pid 4711 used the most, 8.0 % of the device time (1000 reads, 100.0 MiB)");
}

/* The journal thread has the most bytes, but it writes on behalf of the programs behind it. */
static void test_saturated_by_commits_names_a_program_not_the_journal(void **state)
{
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "process", 77, 0, "jbd2/sdb-8", 40, true);
	load(x, "process", 4711, 0, "postgres", 31, false);
	load(x, "process", 4712, 0, "postgres", 29, false);
	load(x, "thread", 77, 77, "jbd2/sdb-8", 40, true);
	decide(x);
	assert_verdict(x, "saturated", "measured",
		"device sdb was saturated for 10.00 s (util 100 %, r_await 300 ms, queue depth "
		"64); no program alone caused it: postgres pid 4711 used the most, 31 % of the device "
		"time (1000 reads, 100.0 MiB); next came postgres pid 4712 with 29 %");
}

/* Of an open() that waits for the journal the file is not known, but threads beside it have one. */
static void test_journal_of_an_unknown_file(void **state)
{
	struct record_operation op = { .op = RECORD_OP_open,
		.probe = RECORD_PROBE_wait,
		.pid = 2211,
		.tid = 2240,
		.comm = "mariadbd",
		.waits_for = RECORD_CAUSE_journal_commit,
		.start_mono_ns = TRIGGER_NS,
		.dur_ns = 2 * NSEC_PER_SEC };
	struct fixture *x = *state;

	scan(x);
	verdict_note_operation(&x->f, &op, true);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "saturated");
	assert_int_equal(part(x, "victims")->threads, 3);
	assert_null(part(x, "second"));
	/* One of another process says nothing of this disk. */
	op.pid = op.tid = 300;
	verdict_note_operation(&x->f, &op, true);
	decide(x);
	assert_int_equal(part(x, "victims")->threads, 3);
}

/* The kernel writes back dirty pages of an unknown process. */
static void test_saturated_by_write_back(void **state)
{
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "process", 77, 0, "kworker/u8:2", 97, true);
	load(x, "thread", 77, 77, "kworker/u8:2", 97, true);
	decide(x);
	assert_verdict(x, "saturated", "measured",
		"device sdb was saturated for 10.00 s (util 100 %, r_await 300 ms, queue depth "
		"64); it is not known who caused it: the kernel thread kworker/u8:2 pid 77 used the "
		"most, 97 % of the device time (1000 reads, 100.0 MiB) for programs that are "
		"not known");
	assert_null(part(x, "culprit"));
	assert_string_equal(record_basis_text(part(x, "largest")->basis), "inferred");
}

static void test_delayed_before_the_device_queue(void **state)
{
	struct record_disk hardly = idle_sdb;
	struct fixture *x = *state;

	hardly.util_pct = 3.5;
	hardly.read_await_ms = 0.5;
	hardly.read_bytes = MIB;
	samples(x, &hardly, 10);
	operation(x, 2225, "device", 512 * MS, true);
	totals(x, 400, 4 * MIB, 5 * MS);
	load(x, "thread", 2211, 2225, "mariadbd", 100, false);
	decide(x);
	assert_verdict(x, "throttled", "inferred",
		"I/O was delayed before it reached the queue of device sdb (operations took up "
		"to 512 ms, the device itself up to 5.0 ms, util at most 3.5 %), probably by a "
		"cgroup I/O limit or a suspended device; 1 thread waited 512 ms");
	/* It was not in each sample, and may have been as busy as the last disk of one. */
	x->f.devices[0].left_out_max_pct = 60;
	decide(x);
	assert_int_not_equal(x->v.class, RECORD_CLASS_throttled);
}

/* No thread sleeps for a request of io_uring, so no stack tells what it waits for. */
static void test_delayed_io_uring_requests(void **state)
{
	const struct record_operation op = { .op = RECORD_OP_read,
		.probe = RECORD_PROBE_uring,
		.pid = 2211,
		.tid = 2225,
		.comm = "mariadbd",
		.dev.major = 8,
		.dev.minor = 16,
		.dev_name = "sdb",
		.dur_ns = 512 * MS };
	struct fixture *x = *state;

	samples(x, &idle_sdb, 10);
	verdict_note_operation(&x->f, &op, true);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "throttled");
}

static void test_a_device_at_work_explains_the_wait_itself(void **state)
{
	struct record_disk at_work = idle_sdb;
	struct fixture *x = *state;

	at_work.util_pct = 40;
	samples(x, &at_work, 10);
	operation(x, 2225, "device", 512 * MS, true);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "unknown");
	/* Without samples it is not known whether the device was idle. */
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	operation(x, 2225, "device", 512 * MS, true);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "unknown");
	assert_non_null(part(x, "missing"));
}

/* A device that took long for a single request explains the wait, whatever it did in between. */
static void test_a_device_that_is_slow_at_times(void **state)
{
	struct record_disk at_work = idle_sdb;
	struct fixture *x = *state;

	at_work.util_pct = 40;
	samples(x, &at_work, 10);
	operation(x, 2225, "device", 512 * MS, true);
	totals(x, 1, 4096, 500 * MS);
	decide(x);
	assert_verdict(x, "slow", "measured",
		"device sdb took up to 500 ms for a request, although it was not busy all the time "
		"(util at most 40 %); 1 thread waited 512 ms");
}

/* Requests that come in bursts fill the queue, though the device is idle between them. */
static void test_saturated_in_bursts(void **state)
{
	struct record_disk bursts = loaded_sdb;
	struct fixture *x = *state;

	bursts.util_pct = 60;
	bursts.queue = 3;
	samples(x, &bursts, 10);
	operation(x, 2230, "device", 512 * MS, true);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "thread", 2211, 2225, "mariadbd", 92, false);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "saturated");
	assert_int_equal(part(x, "culprit")->tid, 2225);
	/* Without a queue nothing waits. */
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	bursts.queue = 1;
	samples(x, &bursts, 10);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "unknown");
}

static void test_throttled_by_a_cgroup(void **state)
{
	struct fixture *x = *state;

	operation(x, 2225, "cgroup throttling", 512 * MS, true);
	decide(x);
	assert_verdict(x, "throttled", "measured",
		"a limit of its control group throttled the I/O of mariadbd tid 2225; 1 thread "
		"waited 512 ms");
}

/* Several waits that are too short for a reason each: the one that cost most is named. */
static void test_short_waits_of_two_kinds(void **state)
{
	struct fixture *x = *state;

	for (int32_t i = 0; i < 3; i++) {
		operation(x, 2300 + i, "mutex", 150 * MS, true);
		operation(x, 2310 + i, "journal commit", 150 * MS, true);
	}
	operation(x, 2320, "mutex", 150 * MS, true);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "waiting");
	assert_non_null(strstr(x->v.sentence, "4 threads"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		verdict_test(test_hung),
		verdict_test(test_hung_by_a_frozen_file_system_below),
		verdict_test(test_waits_for_a_cgroup_do_not_saturate_a_busy_disk),
		verdict_test(test_a_pause_in_an_overload_is_not_hung),
		verdict_test(test_frozen),
		verdict_test(test_a_thread_blocked_long_before),
		verdict_test(test_only_a_thread_blocked_long_before),
		verdict_test(test_slow),
		verdict_test(test_slow_by_a_frozen_file_system_below),
		verdict_test(test_several_frozen_file_systems),
		verdict_test(test_slower_than_before),
		verdict_test(test_a_queue_is_not_slower),
		verdict_test(test_other_work_is_not_slower),
		verdict_test(test_a_busy_disk_without_credits),
		verdict_test(test_saturated),
		verdict_test(test_saturated_by_several_processes),
		verdict_test(test_saturated_by_more_processes_than_the_record_has_lines),
		verdict_test(test_saturated_by_commits_names_a_program_not_the_journal),
		verdict_test(test_journal_of_an_unknown_file),
		verdict_test(test_saturated_by_write_back),
		verdict_test(test_delayed_before_the_device_queue),
		verdict_test(test_delayed_io_uring_requests),
		verdict_test(test_a_device_at_work_explains_the_wait_itself),
		verdict_test(test_a_device_that_is_slow_at_times),
		verdict_test(test_saturated_in_bursts),
		verdict_test(test_throttled_by_a_cgroup),
		verdict_test(test_short_waits_of_two_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
