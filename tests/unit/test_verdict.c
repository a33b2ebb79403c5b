/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/*
 * The verdict: nobody is blamed without evidence, which device is judged, and how facts are kept.
 */
#include "test_verdict_setup.h"

#include <math.h>

/* Nobody is blamed without evidence */

static void test_no_lines_give_no_verdict(void **state)
{
	struct fixture *x = *state;

	decide(x);
	assert_verdict(x, "unknown", "inferred",
		"no verdict: no operation took 100 ms or longer and the devices were not sampled");
	samples(x, &idle_sdb, 5);
	decide(x);
	assert_verdict(x, "unknown", "inferred",
		"no verdict: no operation took 100 ms or longer and no device was at its limit");
	assert_string_equal(record_basis_text(part(x, "missing")->basis), "");
}

static void test_an_unexplained_wait_gives_no_verdict(void **state)
{
	struct fixture *x = *state;

	samples(x, &idle_sdb, 5);
	operation(x, 2225, "", 4 * NSEC_PER_SEC, true);
	decide(x);
	assert_verdict(x, "unknown", "inferred",
		"no verdict: operations took up to 4.00 s, but it is not known what they waited "
		"for, and no device was at its limit; requests to the devices were not traced");
}

/* The samples alone show a saturated device, but not who loaded it. */
static void test_saturated_without_a_known_culprit(void **state)
{
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 5);
	decide(x);
	assert_verdict(x, "saturated", "measured",
		"device sdb was saturated for 5.00 s (util 100 %, r_await 300 ms, queue depth 64)");
	assert_null(part(x, "culprit"));
	assert_non_null(part(x, "missing"));
}

/* A fast device that serves one request after another is busy all the time, but nobody waits. */
static void test_full_utilisation_alone_is_not_saturation(void **state)
{
	const struct record_disk fast = { .dev = { 8, 16 },
		.dev_name = "sdb",
		.util_pct = 100,
		.inflight = 1,
		.read_await_ms = 0.1,
		.queue = 1,
		.read_bytes = 40 * MIB };
	struct fixture *x = *state;

	samples(x, &fast, 5);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "unknown");
}

/* A load that was over long before the incident opened did not cause it. */
static void test_samples_long_before_the_trigger_are_ignored(void **state)
{
	struct fixture *x = *state;

	x->now_ns = TRIGGER_NS - 60 * NSEC_PER_SEC;
	samples(x, &loaded_sdb, 20);
	x->now_ns = TRIGGER_NS;
	samples(x, &idle_sdb, 5);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "unknown");
}

/* Only the requests of the disk have a known owner. */
static void test_the_disk_below_a_device_mapper_is_judged(void **state)
{
	struct record_disk dm = loaded_sdb;
	struct fixture *x = *state;

	text_copy(dm.dev_name, sizeof(dm.dev_name), "dm-0");
	dm.dev.major = 253;
	dm.dev.minor = 0;
	samples(x, &dm, 5);
	x->now_ns = TRIGGER_NS;
	scan(x);
	decide(x);
	assert_string_equal(x->v.dev_name, "sdb");
	assert_int_equal(part(x, "culprit")->tid, 2225);
}

/*
 * To blame somebody the loop device is better: its requests are known by process. Else it is the
 * disk.
 */
static void test_a_loop_device_or_the_disk_below_is_judged(void **state)
{
	struct record_disk loop = loaded_sdb;
	struct record_device unresponsive = { .dev.major = 7,
		.dev_name = "loop0",
		.below = "sdb",
		.final = true,
		.in_flight = 3 };
	struct record_io_by by = { .by = RECORD_BY_thread,
		.dev.major = 7,
		.dev_name = "loop0",
		.pid = 42,
		.tid = 43,
		.comm = "reader",
		.bytes = MIB,
		.busy_ns = 9700 * MS,
		.busy_share_pct = 97 };
	struct record_operation op = { .op = RECORD_OP_read,
		.pid = 42,
		.tid = 44,
		.dev.major = 7,
		.dev_name = "loop0",
		.start_mono_ns = TRIGGER_NS,
		.dur_ns = 90 * NSEC_PER_SEC };
	struct fixture *x = *state;

	text_copy(loop.dev_name, sizeof(loop.dev_name), "loop0");
	loop.dev.major = 7;
	loop.dev.minor = 0;
	scan(x);
	x->now_ns = TRIGGER_NS;
	samples(x, &loop, 10);
	verdict_note_device(&x->f, &unresponsive);
	verdict_note_io_by(&x->f, &by);
	verdict_note_operation(&x->f, &op, true);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "saturated");
	assert_string_equal(x->v.dev_name, "loop0");
	assert_int_equal(part(x, "culprit")->tid, 43);
	/* When both hang, the disk is the cause. */
	unresponsive.no_completion_ns = 9 * NSEC_PER_SEC;
	verdict_note_device(&x->f, &unresponsive);
	unresponsive.dev.major = 8;
	unresponsive.dev.minor = 16;
	unresponsive.no_completion_ns = 8 * NSEC_PER_SEC;
	verdict_note_device(&x->f, &unresponsive);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "hung");
	assert_string_equal(x->v.dev_name, "sdb");
}

/* It opened a file that could not be resolved, for longer than each of its reads from the disk. */
static void test_a_longer_wait_on_an_unknown_file_hides_no_victim(void **state)
{
	struct record_operation open = { .op = RECORD_OP_open,
		.probe = RECORD_PROBE_wait,
		.pid = 2211,
		.tid = 2240,
		.comm = "mariadbd",
		.path = "./big/db.opt",
		.dur_ns = 9 * NSEC_PER_SEC };
	struct fixture *x = *state;

	scan(x);
	operation(x, 2240, "page", 7 * NSEC_PER_SEC, true);
	verdict_note_operation(&x->f, &open, true);
	operation(x, 2240, "page", 3 * NSEC_PER_SEC, true);
	decide(x);
	assert_int_equal(part(x, "victims")->threads, 3);
	assert_string_equal(part(x, "victims")->text,
		"mariadbd[2211/2230] waited the longest of 3 threads, 12.00 s for the device");
	open.tid = 2230;
	open.dur_ns = 20 * NSEC_PER_SEC;
	verdict_note_operation(&x->f, &open, true);
	decide(x);
	assert_string_equal(part(x, "victims")->text,
		"mariadbd[2211/2230] waited the longest of 3 threads, 12.00 s for the device");
}

/* They do not change the verdict, but may explain it. */
static void kernel_says(struct fixture *x, const char *text)
{
	struct record_kernel line = { .level = RECORD_LEVEL_err, .oom_kill = true };

	text_copy(line.text, sizeof(line.text), text);
	verdict_note_kernel(&x->f, &line);
}

static void test_opened_by_the_health_check(void **state)
{
	struct record_open open = { .trigger = { .rule = "health", .unit = "s", .value = 5.5 } };
	struct record_sample s = { .reading = { .mono_ns = TRIGGER_NS + NSEC_PER_SEC,
					   .interval_ns = NSEC_PER_SEC,
					   .health = { .present = true, .failing_s = 7 } } };
	struct fixture *x = *state;

	/* In an incident that something else opened it is not said. */
	verdict_note_sample(&x->f, &s);
	decide(x);
	assert_null(strstr(x->v.sentence, "health"));
	verdict_note_open(&x->f, &open);
	verdict_note_sample(&x->f, &s);
	s.reading.health.failing_s = NAN;
	verdict_note_sample(&x->f, &s);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "unknown");
	assert_non_null(strstr(x->v.sentence, "; the health check failed for 7.00 s"));
}

/* It is no trouble of a disk. */
static void test_killed_for_want_of_memory(void **state)
{
	struct fixture *x = *state;

	kernel_says(x, "oom-kill:constraint=CONSTRAINT_NONE,task=mysqld,pid=77,uid=0");
	kernel_says(x, "Out of memory: Killed process 77 (mysqld) total-vm:1kB");
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "memory");
	assert_string_equal(x->v.sentence,
		"the kernel killed process mysqld pid 77 for want of memory");
	assert_null(part(x, "kernel"));
	assert_string_equal(part(x, "killed")->text,
		"the kernel killed process mysqld pid 77 for want of memory");
	assert_int_equal(part(x, "killed")->pid, 77);
	kernel_says(x, "Memory cgroup out of memory: Killed process 78 (sort) total-vm:1kB");
	decide(x);
	assert_string_equal(x->v.sentence,
		"the kernel killed 2 processes for want of memory, the first mysqld pid 77");
	scan(x);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "saturated");
	assert_non_null(strstr(x->v.sentence,
		"; the kernel killed 2 processes for want of memory, the first mysqld pid 77"));
	assert_null(strstr(x->v.sentence, "storage"));
}

static void test_kernel_lines_and_memory_pressure_go_with_any_verdict(void **state)
{
	struct record_kernel line = { .level = RECORD_LEVEL_warning,
		.text = "nvme nvme0: I/O 12 QID 3 timeout, aborting" };
	struct record_sample s = { .reading = { .mono_ns = TRIGGER_NS,
					   .interval_ns = NSEC_PER_SEC } };
	struct fixture *x = *state;

	scan(x);
	decide(x);
	assert_null(part(x, "kernel"));
	assert_null(part(x, "memory"));
	verdict_note_kernel(&x->f, &line);
	verdict_note_kernel(&x->f, &line);
	s.reading.psi.memory = (struct record_pressure){ true, 40, 31 };
	verdict_note_sample(&x->f, &s);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "saturated");
	assert_non_null(strstr(x->v.sentence,
		"; the kernel logged 2 problems of storage, first \"nvme nvme0: I/O 12 QID 3 "
		"timeout, aborting\""));
	assert_string_equal(part(x, "kernel")->text,
		"the kernel logged 2 lines about storage; the first: nvme nvme0: I/O 12 QID 3 "
		"timeout, aborting");
	text_copy(line.text, sizeof(line.text), "EXT4-fs (sdb1): Remounting filesystem read-only");
	verdict_note_kernel(&x->f, &line);
	decide(x);
	assert_non_null(strstr(x->v.sentence,
		"; the kernel made the file system on sdb1 read-only and logged 3 problems of "
		"storage, first \"nvme nvme0: I/O 12"));
	assert_string_equal(part(x, "memory")->text,
		"all non-idle tasks were stalled on memory for up to 31 % of the time (PSI "
		"memory full)");
}

static void log_line(struct fixture *x, enum record_level level, const char *text)
{
	struct record_kernel line = { .level = level };

	text_copy(line.text, sizeof(line.text), text);
	verdict_note_kernel(&x->f, &line);
}

/* That a path is back is no problem, although the kernel warns of it. */
static void test_a_recovery_is_no_problem(void **state)
{
	struct fixture *x = *state;

	scan(x);
	log_line(x, RECORD_LEVEL_warning, "device-mapper: multipath: 253:2: Reinstating path 8:0.");
	decide(x);
	assert_null(strstr(x->v.sentence, "the kernel logged"));
	assert_string_equal(part(x, "kernel")->text,
		"the kernel logged 1 line about storage; the first: device-mapper: multipath: "
		"253:2: Reinstating path 8:0.");
	log_line(x, RECORD_LEVEL_warning, "device-mapper: multipath: 253:2: Failing path 8:0.");
	log_line(x, RECORD_LEVEL_err, "sd 0:0:0:0: [sda] Add. Sense: Unrecovered read error");
	decide(x);
	assert_non_null(strstr(x->v.sentence,
		"; the kernel logged 2 problems of storage, first \"device-mapper: multipath: 253:2: "
		"Failing path 8:0.\""));
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	log_line(x, RECORD_LEVEL_warning, "ata3: SATA link up 6.0 Gbps (SStatus 133 SControl 300)");
	log_line(x, RECORD_LEVEL_warning, "nvme nvme0: Successfully reconnected (1 attempt)");
	assert_int_equal(x->f.kernel_errors, 0);
}

/* A full disk makes no operation slow. */
static void test_errors_are_told_even_where_nobody_waits(void **state)
{
	struct record_operation op = { .op = RECORD_OP_write,
		.probe = RECORD_PROBE_vfs,
		.sleeps = 1,
		.pid = 2300,
		.tid = 2300,
		.comm = "sort",
		.path = "/srv/sort.1",
		.start_mono_ns = TRIGGER_NS,
		.dur_ns = 150 * MS,
		.ret = -28 };
	struct fixture *x = *state;

	samples(x, &idle_sdb, 3);
	verdict_note_operation(&x->f, &op, true);
	verdict_note_operation(&x->f, &op, true);
	op.ret = -5;
	verdict_note_operation(&x->f, &op, true);
	/* An end of file, or a result that is not known. */
	op.ret = 0;
	verdict_note_operation(&x->f, &op, true);
	decide(x);
	assert_string_equal(x->v.sentence,
		"operations failed: 1 with EIO, that of sort pid 2300 on /srv/sort.1; 2 operations "
		"failed with ENOSPC, the first of sort pid 2300 on /srv/sort.1");
}

/* A read that computed, or waited for a CPU. */
static void test_who_has_not_slept_waited_for_nothing(void **state)
{
	struct record_operation op = { .op = RECORD_OP_read,
		.probe = RECORD_PROBE_vfs,
		.pid = 2300,
		.tid = 2300,
		.comm = "sort",
		.path = "/srv/sort.1",
		.start_mono_ns = TRIGGER_NS,
		.dur_ns = 1500 * MS };
	struct fixture *x = *state;

	verdict_note_operation(&x->f, &op, true);
	assert_int_equal(x->f.operations, 0);
	op.sleeps = 1;
	verdict_note_operation(&x->f, &op, true);
	assert_int_equal(x->f.operations, 1);
}

/* The facts */

static void test_each_cause_has_a_kind(void **state)
{
	(void)state;
	assert_int_equal(verdict_wait_of(RECORD_CAUSE_NONE), VERDICT_WAIT_none);
	assert_int_equal(verdict_wait_of(RECORD_CAUSE_page), VERDICT_WAIT_device);
	for (enum record_cause cause = RECORD_CAUSE_NONE + 1; cause < RECORD_CAUSE_COUNT; cause++)
		assert_int_not_equal(verdict_wait_of(cause), VERDICT_WAIT_none);
}

static void test_more_threads_and_devices_than_are_kept(void **state)
{
	struct fixture *x = *state;

	for (int32_t tid = 1; tid <= 10000; tid++)
		operation(x, tid, "page", NSEC_PER_SEC, false);
	assert_int_equal(x->f.waiters_left_out, 0);
	for (int32_t tid = 10001; tid <= VERDICT_CROWD_THREADS; tid++)
		operation(x, tid, "page", NSEC_PER_SEC, false);
	assert_int_equal(x->f.waiters_left_out,
		VERDICT_CROWD_THREADS / 4 - (VERDICT_WAITERS_MAX - VERDICT_CROWDS_MAX));
	for (uint32_t i = 0; i < VERDICT_DEVICES_MAX + 3; i++) {
		struct record_disk disk = loaded_sdb;

		disk.dev.major = 100 + i;
		sample(x, &disk);
	}
	assert_int_equal(x->f.devices_count, VERDICT_DEVICES_MAX);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "saturated");
}

/* Whichever line comes first. */
static void test_waits_on_a_partition_count_for_its_disk(void **state)
{
	struct fixture *x = *state;

	operation(x, 2230, "page", NSEC_PER_SEC, true);
	sample(x, &loaded_sdb);
	operation(x, 2231, "page", NSEC_PER_SEC, true);
	assert_int_equal(x->f.devices_count, 1);
	assert_string_equal(x->f.devices[0].name, "sdb");
	assert_int_equal(x->f.devices[0].operations, 2);
}

/* An operation that hangs has a line each second. */
static void test_stuck_lines_of_one_operation_are_one_wait(void **state)
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
	const struct CMUnitTest tests[] = {
		verdict_test(test_no_lines_give_no_verdict),
		verdict_test(test_an_unexplained_wait_gives_no_verdict),
		verdict_test(test_saturated_without_a_known_culprit),
		verdict_test(test_full_utilisation_alone_is_not_saturation),
		verdict_test(test_samples_long_before_the_trigger_are_ignored),
		verdict_test(test_the_disk_below_a_device_mapper_is_judged),
		verdict_test(test_a_loop_device_or_the_disk_below_is_judged),
		verdict_test(test_a_longer_wait_on_an_unknown_file_hides_no_victim),
		verdict_test(test_opened_by_the_health_check),
		verdict_test(test_killed_for_want_of_memory),
		verdict_test(test_kernel_lines_and_memory_pressure_go_with_any_verdict),
		verdict_test(test_a_recovery_is_no_problem),
		verdict_test(test_errors_are_told_even_where_nobody_waits),
		verdict_test(test_who_has_not_slept_waited_for_nothing),
		cmocka_unit_test(test_each_cause_has_a_kind),
		verdict_test(test_more_threads_and_devices_than_are_kept),
		verdict_test(test_waits_on_a_partition_count_for_its_disk),
		verdict_test(test_stuck_lines_of_one_operation_are_one_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
