/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The verdict: nothing is blamed without evidence, what is said of whom, and the facts. */
#include "test_verdict_setup.h"

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

/* A loop device and the one below it: the upper one knows who asked, the lower one where it comes from. */
static void test_of_a_loop_device_and_the_one_below(void **state)
{
	struct watch_disk loop = loaded_sdb;
	struct record_device silent = { .dev_major = 7, .dev_name = "loop0", .final = true, .in_flight = 3 };
	struct record_io_by by = { .by = "thread", .dev_major = 7, .dev_name = "loop0", .pid = 42, .tid = 43,
		.comm = "reader", .bytes = MIB, .share_pct = 97 };
	struct record_operation op = { .op = "read", .pid = 42, .tid = 44, .dev_major = 7,
		.dev_name = "loop0", .dur_ns = 90 * NSEC_PER_SEC };
	struct fixture *x = *state;

	text_copy(loop.name, sizeof(loop.name), "loop0");
	loop.major = 7;
	loop.minor = 0;
	scan(x);
	x->now_ns = TRIGGER_NS;
	samples(x, &loop, 10);
	verdict_note_device(&x->f, &silent);
	verdict_note_io_by(&x->f, &by);
	verdict_note_operation(&x->f, &op, true);
	decide(x);
	assert_string_equal(x->v.class_name, "saturated");
	assert_string_equal(x->v.dev_name, "loop0");
	assert_int_equal(part(x, "culprit")->tid, 43);
	/* Both hang: it is the disk. */
	silent.no_completion_ns = 9 * NSEC_PER_SEC;
	verdict_note_device(&x->f, &silent);
	silent.dev_major = 8;
	silent.dev_minor = 16;
	silent.no_completion_ns = 8 * NSEC_PER_SEC;
	verdict_note_device(&x->f, &silent);
	decide(x);
	assert_string_equal(x->v.class_name, "hung");
	assert_string_equal(x->v.dev_name, "sdb");
}

/* It opened a file that nobody could name, for longer than each of its reads from the disk. */
static void test_a_longer_wait_for_what_is_not_known_hides_no_victim(void **state)
{
	struct record_operation open = { .op = "open", .probe = "wait", .pid = 2211, .tid = 2240,
		.comm = "mariadbd", .path = "./big/db.opt", .dur_ns = 9 * NSEC_PER_SEC };
	struct fixture *x = *state;

	scan(x);
	operation(x, 2240, "page", 7 * NSEC_PER_SEC, true);
	verdict_note_operation(&x->f, &open, true);
	operation(x, 2240, "page", 3 * NSEC_PER_SEC, true);
	decide(x);
	assert_int_equal(part(x, "victims")->threads, 3);
	assert_string_equal(part(x, "victims")->text,
		"3 threads, the longest 12.00 s: mariadbd[2211/2230] for the device");
	open.tid = 2230;
	open.dur_ns = 20 * NSEC_PER_SEC;
	verdict_note_operation(&x->f, &open, true);
	decide(x);
	assert_string_equal(part(x, "victims")->text,
		"3 threads, the longest 12.00 s: mariadbd[2211/2230] for the device");
}

/* They do not change what was wrong, and may tell why. */
static void test_what_goes_with_any_verdict(void **state)
{
	const struct record_kernel line = { .text = "nvme nvme0: I/O 12 QID 3 timeout, aborting" };
	struct record_sample s = { .sample = { .mono_ns = TRIGGER_NS, .interval_ns = NSEC_PER_SEC } };
	struct fixture *x = *state;

	scan(x);
	decide(x);
	assert_null(part(x, "kernel"));
	assert_null(part(x, "memory"));
	verdict_note_kernel(&x->f, &line);
	verdict_note_kernel(&x->f, &line);
	s.sample.psi_memory = (struct watch_psi){ true, 40, 31 };
	verdict_note_sample(&x->f, &s);
	decide(x);
	assert_string_equal(x->v.class_name, "saturated");
	assert_string_equal(part(x, "kernel")->text, "2 lines about storage in the kernel's log, the "
		"first: nvme nvme0: I/O 12 QID 3 timeout, aborting");
	assert_string_equal(part(x, "memory")->text, "all runnable tasks waited for memory in up to 31 % "
		"of the time (pressure, full)");
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
	const struct CMUnitTest tests[] = {
		verdict_test(test_nothing_is_unknown),
		verdict_test(test_a_wait_nobody_can_explain_is_unknown),
		verdict_test(test_saturated_by_nobody_known),
		verdict_test(test_utilisation_alone_is_no_load),
		verdict_test(test_the_calm_before_counts_for_nothing),
		verdict_test(test_the_disk_below_is_judged),
		verdict_test(test_of_a_loop_device_and_the_one_below),
		verdict_test(test_a_longer_wait_for_what_is_not_known_hides_no_victim),
		verdict_test(test_what_goes_with_any_verdict),
		cmocka_unit_test(test_kinds_of_waits),
		verdict_test(test_more_than_there_is_room_for),
		verdict_test(test_a_partition_is_its_disk),
		verdict_test(test_stuck_lines_do_not_add_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
