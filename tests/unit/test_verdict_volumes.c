/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Disks that stand on others: logical volumes, arrays, and what is below them. */
#include "test_verdict_setup.h"
#include "verdict/devices.h"

/* Whoever waits on a file of the logical volume is a victim of the disk below. */
static void test_waits_on_an_upper_device_count_for_the_disk_below(void **state)
{
	const struct record_device upper = { .dev = { 253, 0 },
		.dev_name = "dm-0",
		.below = "dm-1\nmd0",
		.final = true };
	const struct record_device middle = { .dev = { 253, 1 },
		.dev_name = "dm-1",
		.below = "sdb1",
		.final = true };
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	verdict_note_device(&x->f, &upper);
	verdict_note_device(&x->f, &middle);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "thread", 2300, 2300, "dump", 92, false);
	waits(x, &(struct wait){ "device", "dm-0", 253, 0, 42, 42, 0, 9 * NSEC_PER_SEC });
	freeze(x, 99, 2 * NSEC_PER_SEC);
	decide(x);
	assert_int_equal(x->v.class, RECORD_CLASS_saturated);
	assert_string_equal(x->v.dev_name, "sdb");
	assert_int_equal(part(x, "victims")->tid, 42);
}

/* The number of btrfs and overlay is that of no disk, but their disk is known. */
static void test_a_file_system_without_a_number_of_its_disk(void **state)
{
	static const char *const names[] = { "sdb1", "sdb" };
	struct fixture *x = *state;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
		samples(x, &loaded_sdb, 10);
		totals(x, 2130, 204 * MIB, 400 * MS);
		load(x, "thread", 2300, 2300, "dump", 92, false);
		waits(x, &(struct wait){ "page", names[i], 0, 45, 42, 42, 0, 9 * NSEC_PER_SEC });
		waits(x, &(struct wait){ "page", "sdb:/x", 0, 46, 43, 43, 0, 9 * NSEC_PER_SEC });
		waits(x, &(struct wait){ "page", "", 0, 47, 44, 44, 0, 9 * NSEC_PER_SEC });
		decide(x);
		assert_int_equal(x->v.class, RECORD_CLASS_saturated);
		assert_non_null(part(x, "victims"));
		assert_int_equal(part(x, "victims")->threads, 1);
		assert_int_equal(part(x, "victims")->tid, 42);
	}
}

static void learn(struct fixture *x)
{
	struct record_open *open = calloc(1, sizeof(*open));

	assert_non_null(open);
	open->stack_count = 2;
	open->stack[0] = (struct record_stacked){ .dev = { 253, 0 },
		.dev_name = "dm-0",
		.label = "vg0-mysql",
		.below = "md0" };
	open->stack[1] = (struct record_stacked){ .dev = { 9, 0 },
		.dev_name = "md0",
		.below = "sdb1\nsdc1" };
	verdict_note_open(&x->f, open);
	free(open);
}

/* LVM on a mirror: the volume has no requests, and the database's files are on it. */
static void test_a_logical_volume_whose_disk_is_saturated(void **state)
{
	struct fixture *x = *state;

	learn(x);
	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "thread", 2300, 2300, "dump", 92, false);
	waits(x, &(struct wait){ "device", "dm-0", 253, 0, 42, 42, 0, 9 * NSEC_PER_SEC });
	waits(x, &(struct wait){ "page", "dm-0", 253, 0, 42, 43, 0, 8 * NSEC_PER_SEC });
	freeze(x, 99, 2 * NSEC_PER_SEC);
	decide(x);
	assert_non_null(strstr(x->v.sentence,
		"device sdb was saturated for 10.00 s (util 100 %, r_await 300 ms, queue depth 64): "
		"dump pid 2300 used 92 % of the device time (1000 reads, 100.0 MiB). 2 "
		"other threads waited up to 9.00 s on vg0-mysql. Besides, "));
}

/* The table of the volume is exchanged, as for a snapshot. */
static void test_a_logical_volume_that_is_suspended(void **state)
{
	struct record_disk suspended = { .dev = { 253, 0 }, .dev_name = "dm-0", .suspended = true };
	struct fixture *x = *state;

	learn(x);
	samples(x, &suspended, 3);
	waits(x, &(struct wait){ "device", "dm-0", 253, 0, 42, 42, 0, 3 * NSEC_PER_SEC });
	decide(x);
	assert_int_equal(x->v.class, RECORD_CLASS_throttled);
	assert_string_equal(x->v.sentence,
		"volume vg0-mysql (dm-0) was suspended for about 3.00 s, so all I/O on it waited: "
		"its table was being changed, as for a snapshot, a resize or new paths; "
		"1 thread waited 3.00 s");
}

/* One sample of several disks. */
static void sample_all(struct fixture *x, const struct record_disk *disks, uint32_t count)
{
	struct record_sample s = { .reading = { .mono_ns = x->now_ns,
					   .interval_ns = NSEC_PER_SEC,
					   .devices_count = count } };

	memcpy(s.reading.devices, disks, count * sizeof(*disks));
	verdict_note_sample(&x->f, &s);
	x->now_ns += NSEC_PER_SEC;
}

/* NVMe with native multipath: files are on a disk whose requests go to one of its paths. */
static void reads_by_a_path(struct fixture *x, const char *fs, uint32_t minor)
{
	const struct record_disk head = { .dev = { 259, 2 },
		.dev_name = "nvme0n1",
		.util_pct = 100,
		.read_await_ms = 300,
		.queue = 64,
		.reads = 213,
		.read_ticks_ms = 64000 };
	const struct record_device totals = { .dev = { 259, 0 },
		.dev_name = "nvme0c1n1",
		.final = true,
		.requests = 2130,
		.read_requests = 2130,
		.read_bytes = 204 * MIB,
		.read_busy_ns = 10 * NSEC_PER_SEC,
		.device = { 200 * MS, 400 * MS, 400 * MS } };
	const struct record_io_by by = { .by = RECORD_BY_thread,
		.dev = { 259, 0 },
		.dev_name = "nvme0c1n1",
		.pid = 2300,
		.tid = 2300,
		.comm = "dump",
		.requests = 1000,
		.read_requests = 1000,
		.bytes = 100 * MIB,
		.busy_ns = 9200 * MS };
	struct record_disk disks[2] = { head, head };

	disks[1].dev.minor = 0;
	text_copy(disks[1].dev_name, sizeof(disks[1].dev_name), "nvme0c1n1");
	for (unsigned int i = 0; i < 10; i++)
		sample_all(x, disks, 2);
	waits(x, &(struct wait){ "device", fs, 259, minor, 42, 42, 0, 9 * NSEC_PER_SEC });
	verdict_note_device(&x->f, &totals);
	verdict_note_io_by(&x->f, &by);
	decide(x);
	assert_verdict(x, "saturated", "measured",
		"device nvme0n1 (nvme0c1n1) was saturated for 10.00 s (util 100 %, r_await 300 ms, "
		"queue depth 64): dump pid 2300 used 92 % of the device time (1000 reads, 100.0 "
		"MiB). 1 other thread waited 9.00 s");
}

static void test_a_disk_that_is_reached_by_a_path(void **state)
{
	reads_by_a_path(*state, "nvme0n1", 2);
}

static void test_a_partition_that_is_reached_by_a_path(void **state)
{
	reads_by_a_path(*state, "nvme0n1p1", 3);
}

static void test_a_volume_that_is_reached_by_a_path(void **state)
{
	struct fixture *x = *state;

	verdict_note_below(&x->f, "dm-0", "", "nvme0n1p1");
	reads_by_a_path(x, "dm-0", 9);
}

/* A volume on a partition of an array. */
static void test_a_volume_on_a_partition_of_a_stacked_disk(void **state)
{
	struct fixture *x = *state;

	verdict_note_below(&x->f, "dm-0", "", "md0p1");
	verdict_note_below(&x->f, "md0", "", "sdb1");
	assert_true(verdict_name_stands_on(&x->f, "dm-0", "sdb"));
	assert_true(verdict_name_stands_on(&x->f, "md0p1", "sdb"));
	assert_false(verdict_name_stands_on(&x->f, "md01", "sdb"));
	assert_false(verdict_name_stands_on(&x->f, "dm-0", "sdc"));
}

/* The volume is suspended, or copies blocks for a snapshot. */
static void test_an_upper_device_over_an_idle_one(void **state)
{
	struct record_disk disks[2] = { loaded_sdb, { .dev = { 9, 0 }, .dev_name = "md0" } };
	struct fixture *x = *state;

	learn(x);
	disks[0].dev = (struct record_dev){ 253, 0 };
	text_copy(disks[0].dev_name, sizeof(disks[0].dev_name), "dm-0");
	disks[0].reads = 213;
	disks[0].read_ticks_ms = 64000;
	for (unsigned int i = 0; i < 10; i++) {
		disks[1].util_pct = i % 2 ? 0 : 3.5;
		sample_all(x, disks, 2);
	}
	waits(x, &(struct wait){ "device", "dm-0", 253, 0, 42, 42, 0, 9 * NSEC_PER_SEC });
	decide(x);
	assert_verdict(x, "saturated", "measured",
		"device vg0-mysql (dm-0) was saturated for 10.00 s (util 100 %, r_await 300 ms, "
		"queue depth 64); 1 thread waited 9.00 s. The disk below vg0-mysql (dm-0), md0, "
		"had time left (util at most 3.5 %): something in between held requests back, such "
		"as a limit, encryption or the copying for a snapshot");
	/* Nothing is said about a disk that was not sampled all the time. */
	sample_all(x, disks, 1);
	decide(x);
	assert_null(strstr(x->v.sentence, "had time left"));
}

/* Whom to ask comes before what else there is to know. */
static void test_the_culprit_comes_before_the_idle_disk_below(void **state)
{
	struct record_disk disks[2] = { loaded_sdb, { .dev = { 9, 0 }, .dev_name = "md0" } };
	const struct record_stacked stacked = { .dev = { 8, 16 },
		.dev_name = "sdb",
		.below = "md0" };
	struct record_open *open = calloc(1, sizeof(*open));
	struct fixture *x = *state;

	assert_non_null(open);
	open->stack_count = 1;
	open->stack[0] = stacked;
	verdict_note_open(&x->f, open);
	free(open);
	disks[0].reads = 213;
	disks[0].read_ticks_ms = 64000;
	for (unsigned int i = 0; i < 10; i++)
		sample_all(x, disks, 2);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "thread", 2300, 2300, "dump", 92, false);
	operation(x, 2230, "page", 3 * NSEC_PER_SEC, true);
	freeze(x, 99, 1500 * MS);
	decide(x);
	assert_non_null(strstr(x->v.sentence,
		"queue depth 64): dump pid 2300 used 92 % of the device time (1000 reads, 100.0 "
		"MiB). 1 other thread waited 3.00 s. The disk below sdb, md0, had time left (util "
		"at most 0 %): something in between held requests back, such as a limit, encryption "
		"or the copying for a snapshot. Besides, "));
}

static void hangs_over_an_idle_one(struct fixture *x, const char *name, const char *label,
	const char *sentence)
{
	struct record_disk disks[2] = { { .dev = { 253, 0 }, .util_pct = 100, .inflight = 4 },
		{ .dev = { 9, 0 }, .dev_name = "md0" } };
	struct record_device hung = { .dev = { 253, 0 },
		.in_flight = 4,
		.no_completion_ns = 5 * NSEC_PER_SEC,
		.oldest.age_ns = 5 * NSEC_PER_SEC };

	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	verdict_note_below(&x->f, name, label, "md0");
	text_copy(disks[0].dev_name, sizeof(disks[0].dev_name), name);
	text_copy(hung.dev_name, sizeof(hung.dev_name), name);
	for (unsigned int i = 0; i < 5; i++)
		sample_all(x, disks, 2);
	verdict_note_device(&x->f, &hung);
	decide(x);
	assert_verdict(x, "hung", "measured", sentence);
}

/* A multipath device has lost its last path, and keeps what is written until one comes back. */
static void test_an_upper_device_hangs_over_an_idle_one(void **state)
{
	hangs_over_an_idle_one(*state, "dm-0", "mpatha",
		"device mpatha (dm-0) hung: it completed nothing for 5.00 s with 4 requests in "
		"flight, which did not reach md0 below it (util at most 0 %): it was suspended or "
		"had lost all its paths");
	/* Multipath devices may have other names, too. */
	hangs_over_an_idle_one(*state, "dm-0", "vg0-mysql",
		"device vg0-mysql (dm-0) hung: it completed nothing for 5.00 s with 4 requests in "
		"flight, which did not reach md0 below it (util at most 0 %): it was suspended or, "
		"if it is a multipath device, had lost all its paths");
	hangs_over_an_idle_one(*state, "loop0", "",
		"device loop0 hung: it completed nothing for 5.00 s with 4 requests in flight, "
		"which did not reach md0 below it (util at most 0 %): something in between held "
		"them back");
}

/* Few requests, since a limit lets no more through. */
static void test_a_slow_volume_over_an_idle_disk(void **state)
{
	struct record_disk disks[2] = { slow_sdb, { .dev = { 9, 0 }, .dev_name = "md0" } };
	struct fixture *x = *state;

	learn(x);
	disks[0].dev = (struct record_dev){ 253, 0 };
	text_copy(disks[0].dev_name, sizeof(disks[0].dev_name), "dm-0");
	disks[0].reads = 8;
	disks[0].read_ticks_ms = 1000;
	for (unsigned int i = 0; i < 5; i++)
		sample_all(x, disks, 2);
	decide(x);
	assert_int_equal(x->v.class, RECORD_CLASS_slow);
	assert_non_null(strstr(x->v.sentence,
		", but md0 below it was nearly idle (util at most 0 %): something in between, such "
		"as a limit, held requests back"));
}

/* A sample has no room for all disks: the one below was no busier than the last that is there. */
static void test_a_slow_volume_over_a_disk_that_was_left_out(void **state)
{
	struct record_sample s = { .reading = { .interval_ns = NSEC_PER_SEC,
					   .devices_count = RECORD_DEVICES_MAX,
					   .devices_left_out = 1 } };
	struct record_disk disks[2] = { slow_sdb, { .dev = { 9, 0 }, .dev_name = "md0" } };
	struct record_disk *last = &s.reading.devices[RECORD_DEVICES_MAX - 1];
	struct fixture *x = *state;

	learn(x);
	disks[0].dev = (struct record_dev){ 253, 0 };
	text_copy(disks[0].dev_name, sizeof(disks[0].dev_name), "dm-0");
	disks[0].reads = 8;
	disks[0].read_ticks_ms = 1000;
	sample_all(x, disks, 2);
	s.reading.devices[0] = disks[0];
	for (unsigned int i = 1; i < RECORD_DEVICES_MAX; i++)
		s.reading.devices[i] = (struct record_disk){ .dev = { 7, i },
			.dev_name = "loop",
			.util_pct = 1.5 };
	for (unsigned int i = 0; i < 5; i++) {
		s.reading.mono_ns = x->now_ns;
		verdict_note_sample(&x->f, &s);
		x->now_ns += NSEC_PER_SEC;
	}
	decide(x);
	assert_int_equal(x->v.class, RECORD_CLASS_slow);
	assert_non_null(
		strstr(x->v.sentence, ", but md0 below it was nearly idle (util at most 1.5 %)"));
	last->util_pct = 60;
	s.reading.mono_ns = x->now_ns;
	verdict_note_sample(&x->f, &s);
	decide(x);
	assert_int_equal(x->v.class, RECORD_CLASS_slow);
	assert_null(strstr(x->v.sentence, "idle"));
}

/* What others do to the disk below makes it slow. */
static void test_a_slow_volume_on_a_saturated_disk(void **state)
{
	struct record_disk disks[2] = { slow_sdb, loaded_sdb };
	struct fixture *x = *state;

	learn(x);
	disks[0].dev = (struct record_dev){ 253, 0 };
	text_copy(disks[0].dev_name, sizeof(disks[0].dev_name), "dm-0");
	disks[0].reads = 8;
	disks[0].read_ticks_ms = 1000;
	disks[1].reads = 213;
	disks[1].read_ticks_ms = 64000;
	for (unsigned int i = 0; i < 5; i++)
		sample_all(x, disks, 2);
	totals(x, 1065, 102 * MIB, 400 * MS);
	load(x, "thread", 2300, 2300, "dump", 92, false);
	waits(x, &(struct wait){ "device", "dm-0", 253, 0, 42, 42, 0, 4 * NSEC_PER_SEC });
	decide(x);
	assert_int_equal(x->v.class, RECORD_CLASS_saturated);
	assert_string_equal(x->v.dev_name, "sdb");
	assert_int_equal(part(x, "victims")->tid, 42);
}

/* As `dmsetup suspend` does it, and LVM for a snapshot. */
static void test_a_file_system_frozen_with_its_volume(void **state)
{
	struct record_disk suspended = { .dev = { 253, 0 }, .dev_name = "dm-0", .suspended = true };
	struct fixture *x = *state;

	learn(x);
	samples(x, &suspended, 3);
	waits(x,
		&(struct wait){ "frozen file system", "dm-0", 253, 0, 42, 42, 0,
			3 * NSEC_PER_SEC });
	decide(x);
	assert_int_equal(x->v.class, RECORD_CLASS_frozen);
	assert_non_null(strstr(x->v.sentence,
		"the file system on vg0-mysql (dm-0) was frozen, as by fsfreeze or a snapshot, so "
		"writes to it waited, such as to /srv/file; its volume was suspended, too, for about 3.00 "
		"s; 1 thread waited"));
}

/* Who waits for the disk itself is no victim of a volume that is held back. */
static void test_waits_below_a_volume_are_not_those_of_the_volume(void **state)
{
	struct record_disk volume = loaded_sdb;
	struct fixture *x = *state;

	learn(x);
	volume.dev = (struct record_dev){ 253, 0 };
	text_copy(volume.dev_name, sizeof(volume.dev_name), "dm-0");
	samples(x, &volume, 10);
	waits(x, &(struct wait){ "device", "dm-0", 253, 0, 42, 42, 0, 9 * NSEC_PER_SEC });
	operation(x, 2230, "page", 200 * MS, true);
	decide(x);
	assert_int_equal(part(x, "victims")->threads, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		verdict_test(test_waits_on_an_upper_device_count_for_the_disk_below),
		verdict_test(test_a_file_system_without_a_number_of_its_disk),
		verdict_test(test_a_logical_volume_whose_disk_is_saturated),
		verdict_test(test_a_logical_volume_that_is_suspended),
		verdict_test(test_a_disk_that_is_reached_by_a_path),
		verdict_test(test_a_partition_that_is_reached_by_a_path),
		verdict_test(test_a_volume_that_is_reached_by_a_path),
		verdict_test(test_a_volume_on_a_partition_of_a_stacked_disk),
		verdict_test(test_a_slow_volume_over_an_idle_disk),
		verdict_test(test_a_slow_volume_over_a_disk_that_was_left_out),
		verdict_test(test_a_slow_volume_on_a_saturated_disk),
		verdict_test(test_a_file_system_frozen_with_its_volume),
		verdict_test(test_an_upper_device_over_an_idle_one),
		verdict_test(test_the_culprit_comes_before_the_idle_disk_below),
		verdict_test(test_an_upper_device_hangs_over_an_idle_one),
		verdict_test(test_waits_below_a_volume_are_not_those_of_the_volume),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
