/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Kernel threads that used a device: for whom, or for what. */
#include "test_verdict_setup.h"
#include "verdict/devices.h"

/* Kernel threads work for others, a resync for nobody. A thread of the array writes for it. */
static void test_a_resync(void **state)
{
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	verdict_note_below(&x->f, "md0", "", "sdb");
	load(x, "process", 76, 0, "md0_raid1", 29, true);
	load(x, "process", 2300, 0, "orders", 9, false);
	load(x, "thread", 75, 75, "md1_raid1", 30, true);
	load(x, "thread", 76, 76, "md0_raid1", 29, true);
	load(x, "thread", 77, 77, "md0_resync", 28, true);
	load(x, "thread", 2300, 2300, "orders", 9, false);
	waits(x, &(struct wait){ "device", "md0", 9, 0, 2300, 2300, 0, 4 * NSEC_PER_SEC });
	decide(x);
	assert_verdict(x, "saturated", "inferred",
		"device sdb was saturated for 10.00 s (util 100 %, r_await 300 ms, queue depth 64): the "
		"resync, check or rebuild of the array md0 (kernel thread md0_resync pid 77) probably "
		"used 57 % of the device time (2000 reads, 200.0 MiB). 1 other thread waited 4.00 s");
	assert_int_equal(part(x, "culprit")->pid, 77);
}

/* Less than half is no culprit, but more than what any program did. */
static void test_a_resync_with_less_than_half(void **state)
{
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "process", 2300, 0, "orders", 9, false);
	load(x, "thread", 77, 77, "md0_reshape", 40, true);
	load(x, "thread", 2300, 2300, "orders", 9, false);
	decide(x);
	assert_null(part(x, "culprit"));
	assert_non_null(strstr(x->v.sentence,
		": the reshape of the array md0 (kernel thread md0_reshape pid 77) used the most, 40 %"));
	/* A program that did more is named instead. */
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	x->now_ns = TRIGGER_NS;
	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "process", 2300, 0, "orders", 45, false);
	load(x, "thread", 77, 77, "md0_reshape", 40, true);
	decide(x);
	assert_string_equal(part(x, "largest")->comm, "orders");
}

static void copying(struct fixture *x, const char *label, uint64_t write_bytes, bool file)
{
	struct record_sample s = { .reading = { .interval_ns = NSEC_PER_SEC, .devices_count = 2 } };

	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	x->now_ns = TRIGGER_NS;
	verdict_note_below(&x->f, "dm-1", label, "sdb");
	s.reading.memory.present = true;
	s.reading.devices[0] = loaded_sdb;
	s.reading.devices[1] = (struct record_disk){ .dev = { 253, 1 },
		.dev_name = "dm-1",
		.util_pct = 57,
		.write_bytes = write_bytes };
	for (unsigned int i = 0; i < 10; i++) {
		s.reading.mono_ns = x->now_ns;
		verdict_note_sample(&x->f, &s);
		x->now_ns += NSEC_PER_SEC;
	}
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "process", 2300, 0, "orders", 14, false);
	load(x, "thread", 70, 70, "kworker/0:2H", 46, true);
	load(x, "thread", 71, 71, "kworker/0:0", 36, true);
	load(x, "thread", 2300, 2300, "orders", 14, false);
	if (file)
		load(x, "file", 0, 0, "", 60, true);
	decide(x);
}

/* Before a block is overwritten, a worker copies it to the volume of the snapshot. */
static void test_the_copying_for_a_snapshot(void **state)
{
	struct fixture *x = *state;

	copying(x, "vg0-snap-cow", 8 * MIB, false);
	assert_verdict(x, "saturated", "inferred",
		"device sdb was saturated for 10.00 s (util 100 %, r_await 300 ms, queue depth 64): the "
		"copying of blocks for the snapshot vg0-snap (kernel workers) probably used 82 % of the "
		"device time (2000 reads, 200.0 MiB)");
	/* No snapshot; one that little was copied to; workers that write a file. */
	copying(x, "vg0-milk--cow", 8 * MIB, false);
	assert_null(part(x, "culprit"));
	copying(x, "vg0-snap-cow", MIB, false);
	assert_null(part(x, "culprit"));
	copying(x, "vg0-snap-cow", 8 * MIB, true);
	assert_null(part(x, "culprit"));
}

/* LVM names all arrays alike, so it is not known whose thread writes. */
static void test_a_resync_of_lvm(void **state)
{
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "thread", 76, 76, "mdX_raid1", 50, true);
	load(x, "thread", 77, 77, "mdX_resync", 3, true);
	decide(x);
	assert_null(part(x, "culprit"));
	assert_null(strstr(x->v.sentence, "the array mdX"));
}

static void test_what_a_kernel_thread_does(void **state)
{
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "process", 88, 0, "jbd2/sdb1-8", 45, true);
	load(x, "thread", 88, 88, "jbd2/sdb1-8", 45, true);
	decide(x);
	assert_non_null(strstr(x->v.sentence,
		": the kernel thread jbd2/sdb1-8 pid 88 (the journal of a file system) used the most, 45 %"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		verdict_test(test_a_resync),
		verdict_test(test_a_resync_with_less_than_half),
		verdict_test(test_the_copying_for_a_snapshot),
		verdict_test(test_a_resync_of_lvm),
		verdict_test(test_what_a_kernel_thread_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
