/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* A disk that is busy because memory was short, and disks that are busy for other reasons. */
#include "test_verdict_setup.h"

#define GROUP "/system.slice/mariadb.service"

/* What each second of the incident brings. */
struct second {
	struct record_memory host;
	struct record_cgroup groups[RECORD_CGROUPS_MAX];
	uint64_t read_bytes;
	uint64_t write_bytes;
	uint64_t other_disk_bytes; /* read */
	uint64_t other_disk_written_bytes;
};

static struct record_disk busy_disk(const struct second *s)
{
	struct record_disk d = loaded_sdb;

	d.read_bytes = s->read_bytes;
	d.write_bytes = s->write_bytes;
	return d;
}

static void pass(struct fixture *x, const struct second *second, unsigned int seconds)
{
	for (unsigned int i = 0; i < seconds; i++) {
		struct record_sample s = { .before_trigger = x->now_ns <= TRIGGER_NS };

		s.reading.mono_ns = x->now_ns;
		s.reading.interval_ns = NSEC_PER_SEC;
		s.reading.memory = second->host;
		s.reading.memory.present = true;
		s.reading.devices_count = 2;
		s.reading.devices[0] = busy_disk(second);
		s.reading.devices[1] = (struct record_disk){ .dev = { 8, 32 },
			.dev_name = "sdc",
			.util_pct = 20,
			.read_bytes = second->other_disk_bytes,
			.write_bytes = second->other_disk_written_bytes };
		for (unsigned int g = 0; g < RECORD_CGROUPS_MAX; g++)
			if (*second->groups[g].path)
				s.limits.cgroups[s.limits.cgroups_count++] = second->groups[g];
		verdict_note_sample(&x->f, &s);
		x->now_ns += NSEC_PER_SEC;
	}
}

/* What was read of a file of 64 MiB. */
static void file_of_64_mib(struct fixture *x, uint64_t read_bytes)
{
	struct record_io_by b = { .by = RECORD_BY_file,
		.dev = { 8, 16 },
		.dev_name = "sdb",
		.path = "/var/lib/mysql/big/t.ibd",
		.inode = 131,
		.file_bytes = 64 * MIB,
		.read_requests = 100,
		.read_bytes = read_bytes,
		.bytes = read_bytes,
		.busy_ns = 5 * NSEC_PER_SEC };

	verdict_note_io_by(&x->f, &b);
}

static void load_and_victims(struct fixture *x)
{
	operation(x, 2230, "page", 3 * NSEC_PER_SEC, true);
	operation(x, 2231, "page", 2 * NSEC_PER_SEC, true);
	totals(x, 2130, 80 * MIB, 400 * MS);
	load(x, "process", 2211, 0, "mariadbd", 98, false);
	load(x, "thread", 2211, 2225, "mariadbd", 92.4, false);
}

/* 8 MiB are read each second, nearly all of which a group at its limit of 48 MiB had before. */
static const struct second thrashing = {
	.host = { .reread_bytes = 31 * MIB / 4 },
	.groups = { { .path = GROUP,
		.limit_bytes = 48 * MIB,
		.reread_bytes = 31 * MIB / 4,
		.limit_hits = 12 } },
	.read_bytes = 8 * MIB,
};

static void incident(struct fixture *x, const struct second *second, uint64_t file_read_bytes)
{
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	x->now_ns = TRIGGER_NS + NSEC_PER_SEC;
	pass(x, second, 12);
	load_and_victims(x);
	if (file_read_bytes)
		file_of_64_mib(x, file_read_bytes);
	decide(x);
}

static void test_group_at_its_limit(void **state)
{
	struct fixture *x = *state;

	incident(x, &thrashing, 96 * MIB);
	assert_verdict(x, "memory", "measured",
		"control group " GROUP " was short of memory: at its limit of 48.0 MiB it read "
		"93.0 MiB again that had been evicted, 97 % of what was read from device sdb in "
		"12.00 s; 2 threads waited up to 3.00 s");
	assert_string_equal(x->v.dev_name, "sdb");
	assert_string_equal(part(x, "memory")->text,
		GROUP
		": read 93.0 MiB again that had been evicted, at its limit 144 times, 0 bytes "
		"of it in active use when it was evicted; of the 96.0 MiB that were read from "
		"the files that were read most, at least 32.0 MiB had been read before since "
		"tracing began");
	assert_int_equal(part(x, "memory")->bytes, 93 * MIB);
	assert_int_equal(part(x, "victims")->threads, 2);
}

/* The samples that led up to it have no control groups, so they say nothing of the host, either. */
static void test_one_window(void **state)
{
	struct fixture *x = *state;

	x->now_ns = TRIGGER_NS - 4 * NSEC_PER_SEC;
	pass(x, &(struct second){ .host.reread_bytes = 64 * MIB, .read_bytes = 64 * MIB }, 5);
	pass(x, &thrashing, 12);
	load_and_victims(x);
	file_of_64_mib(x, 96 * MIB);
	decide(x);
	assert_non_null(strstr(x->v.sentence,
		"it read 93.0 MiB again that had been evicted, 97 % of what was read from device "
		"sdb in 12.00 s"));
}

/* Each page of the file was evicted long ago and is read once: nothing fits that is so large. */
static void test_second_dump(void **state)
{
	struct fixture *x = *state;

	incident(x, &thrashing, 64 * MIB);
	assert_string_equal(record_class_text(x->v.class), "saturated");
	assert_non_null(part(x, "culprit"));
	/* The size of the file is not known: its pages were in active use, or nothing is said. */
	incident(x, &thrashing, 0);
	assert_string_equal(record_class_text(x->v.class), "saturated");
}

static void test_pages_in_active_use(void **state)
{
	struct second hot = thrashing;
	struct fixture *x = *state;

	hot.groups[0].active_bytes = 4 * MIB;
	incident(x, &hot, 0);
	assert_string_equal(record_class_text(x->v.class), "memory");
	hot.groups[0].active_bytes = 3 * MIB;
	incident(x, &hot, 0);
	assert_string_equal(record_class_text(x->v.class), "saturated");
}

static void test_disks_that_are_busy_for_other_reasons(void **state)
{
	struct second second = thrashing;
	struct fixture *x = *state;

	/* A table scan: nothing of it was in memory. */
	second.host.reread_bytes = second.groups[0].reread_bytes = 0;
	incident(x, &second, 96 * MIB);
	assert_string_equal(record_class_text(x->v.class), "saturated");
	/* A little is read again beside it. */
	second.host.reread_bytes = second.groups[0].reread_bytes = MIB;
	incident(x, &second, 96 * MIB);
	assert_string_equal(record_class_text(x->v.class), "saturated");
	/* Somebody writes. */
	second = thrashing;
	second.write_bytes = 20 * MIB;
	incident(x, &second, 96 * MIB);
	assert_string_equal(record_class_text(x->v.class), "saturated");
	/* It was never at its limit; the host has free memory, too. */
	second = thrashing;
	second.groups[0].limit_hits = 0;
	incident(x, &second, 96 * MIB);
	assert_string_equal(record_class_text(x->v.class), "saturated");
	/* What was in active use is read from another disk: sdb may have another trouble. */
	second = thrashing;
	second.groups[0].active_bytes = 4 * MIB;
	second.other_disk_bytes = 7 * MIB;
	incident(x, &second, 0);
	assert_string_equal(record_class_text(x->v.class), "saturated");
}

static void test_hung_comes_first(void **state)
{
	struct fixture *x = *state;
	struct record_device hung = { .dev = { 8, 16 },
		.dev_name = "sdb",
		.in_flight = 1,
		.no_completion_ns = 4 * NSEC_PER_SEC };

	incident(x, &thrashing, 96 * MIB);
	verdict_note_device(&x->f, &hung);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "hung");
}

/* Samples of a group inside another one: both count what the inner one reads. */
static void test_groups_in_one_another(void **state)
{
	struct second second = thrashing;
	struct fixture *x = *state;

	second.groups[1] = second.groups[0];
	text_copy(second.groups[1].path, RECORD_SUBJECT_SIZE, "/system.slice");
	second.groups[1].limit_bytes = 64 * MIB;
	incident(x, &second, 96 * MIB);
	assert_memory_equal(x->v.sentence, "control group " GROUP " was", 46);
	/* It is the limit of the outer one that is reached. */
	second.groups[0].limit_hits = 0;
	incident(x, &second, 96 * MIB);
	assert_memory_equal(x->v.sentence,
		"control group /system.slice was short of memory: at its limit of 64.0 MiB it", 76);
}

static void test_killed(void **state)
{
	struct second second = thrashing;
	struct fixture *x = *state;

	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	x->now_ns = TRIGGER_NS + NSEC_PER_SEC;
	second.groups[0].oom_kills = 1;
	pass(x, &second, 1);
	pass(x, &thrashing, 11);
	load_and_victims(x);
	file_of_64_mib(x, 96 * MIB);
	decide(x);
	assert_non_null(strstr(x->v.sentence,
		" from device sdb in 12.00 s; the kernel killed 1 process of it; 2 threads waited"));
}

static void test_swap_storm(void **state)
{
	static const struct second storm = {
		.host = { .reread_bytes = MIB,
			.swapped_in_bytes = 5 * MIB,
			.swapped_out_bytes = 6 * MIB,
			.reclaimed_bytes = 8 * MIB },
		.read_bytes = 7 * MIB,
		.write_bytes = 8 * MIB,
	};
	struct second second = storm;
	struct fixture *x = *state;

	incident(x, &storm, 0);
	assert_verdict(x, "memory", "measured",
		"the host was short of memory: it read 12.0 MiB again that had been evicted, swapped "
		"in 60.0 MiB and swapped out 72.0 MiB, 80 % of what was read from and written to "
		"device sdb in 12.00 s; 2 threads waited up to 3.00 s");
	assert_string_equal(part(x, "memory")->text,
		"the host: read 12.0 MiB again that had been evicted, swapped in 60.0 MiB and swapped "
		"out 72.0 MiB, 96.0 MiB were evicted, 0 bytes of it in active use when it was evicted");
	/* A group that is not watched is at its limit, not the host. */
	second.host.reclaimed_bytes = 0;
	incident(x, &second, 0);
	assert_memory_equal(x->v.sentence,
		"a control group that is not watched was probably short of memory: the host read 12.0 MiB again "
		"that had been evicted, swapped in 60.0 MiB and swapped out 72.0 MiB, 80 % of",
		150);
	/* A swapoff reads everything back. */
	second.host.swapped_out_bytes = 0;
	incident(x, &second, 0);
	assert_string_equal(record_class_text(x->v.class), "saturated");
	/* Only read back. */
	second = storm;
	second.host.swapped_out_bytes = second.host.reread_bytes = 0;
	second.write_bytes = 0;
	incident(x, &second, 0);
	assert_memory_equal(x->v.sentence,
		"the host was short of memory: it swapped in 60.0 MiB, 71 % of what was read from "
		"device sdb in 12.00 s; 2 threads",
		112);
}

/* What was swapped out is counted for the host alone, what was swapped in too much for a group. */
static void test_a_group_that_swaps(void **state)
{
	struct second storm = {
		.host = { .swapped_in_bytes = 2 * MIB, .swapped_out_bytes = 10 * MIB },
		.groups = { { .path = GROUP,
			.limit_bytes = 48 * MIB,
			.swapped_in_bytes = 13 * MIB,
			.limit_hits = 50 } },
		.read_bytes = 2 * MIB,
		.write_bytes = 10 * MIB,
	};
	struct fixture *x = *state;

	incident(x, &storm, 0);
	assert_verdict(x, "memory", "measured",
		"control group " GROUP
		" was short of memory: at its limit of 48.0 MiB it swapped in 24.0 MiB and swapped "
		"out 120.0 MiB, 100 % of what was read from and written to device sdb in 12.00 s; 2 "
		"threads waited up to 3.00 s");
	/* To another disk. */
	storm.other_disk_written_bytes = 10 * MIB;
	incident(x, &storm, 0);
	assert_string_equal(record_class_text(x->v.class), "saturated");
	storm.other_disk_written_bytes = 0;
	/* Another group does. */
	storm.groups[0].swapped_in_bytes = MIB / 2;
	incident(x, &storm, 0);
	assert_non_null(strstr(x->v.sentence, "a control group that is not watched"));
}

/* A copy loads the disk while memory is swapped to zram, which is in memory. */
static void test_swap_on_zram(void **state)
{
	struct second busy = {
		.host = { .swapped_in_bytes = 3 * MIB, .swapped_out_bytes = 9 * MIB },
		.groups = { { .path = GROUP,
			.limit_bytes = 48 * MIB,
			.swapped_in_bytes = 3 * MIB,
			.limit_hits = 50 } },
		.read_bytes = 3 * MIB,
		.write_bytes = 9 * MIB,
	};
	struct fixture *x = *state;

	incident(x, &busy, 0);
	assert_string_equal(record_class_text(x->v.class), "memory");
	busy.host.zram_in_bytes = 3 * MIB;
	busy.host.zram_out_bytes = 9 * MIB;
	incident(x, &busy, 0);
	assert_string_equal(record_class_text(x->v.class), "saturated");
	/* Half of it is on the disk. */
	busy.host.zram_in_bytes = MIB;
	busy.host.zram_out_bytes = 2 * MIB;
	incident(x, &busy, 0);
	assert_string_equal(record_class_text(x->v.class), "memory");
	assert_non_null(strstr(x->v.sentence, "swapped in 24.0 MiB and swapped out 84.0 MiB"));
}

/* Who waits for memory itself is a victim, whatever disk the file is on. */
static void test_waits_for_memory(void **state)
{
	struct fixture *x = *state;

	incident(x, &thrashing, 96 * MIB);
	operation(x, 2240, "memory", 5 * NSEC_PER_SEC, true);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "memory");
	assert_int_equal(part(x, "victims")->threads, 3);
	assert_int_equal(part(x, "victims")->tid, 2240);
}

/* No disk has to do with it: the kernel makes threads wait, as at memory.high. */
static void test_a_group_waits_for_its_own_memory(void **state)
{
	const struct record_cgroup outer = { .path = "/system.slice",
		.limit_bytes = 96 * MIB,
		.limit_hits = 1 };
	struct record_sample s = { .reading.mono_ns = TRIGGER_NS + NSEC_PER_SEC,
		.reading.interval_ns = NSEC_PER_SEC,
		.reading.memory.present = true,
		.reading.devices_count = 1,
		.reading.devices = { idle_sdb },
		.limits.cgroups_count = 2,
		.limits.cgroups = { outer, thrashing.groups[0] } };
	struct fixture *x = *state;

	verdict_note_sample(&x->f, &s);
	s.reading.mono_ns += NSEC_PER_SEC;
	s.limits.cgroups[1].oom_kills = 1;
	verdict_note_sample(&x->f, &s);
	operation(x, 2230, "memory of control group", 3 * NSEC_PER_SEC, true);
	operation(x, 2231, "memory of control group", 2 * NSEC_PER_SEC, true);
	operation(x, 2232, "memory", NSEC_PER_SEC, true);
	decide(x);
	assert_verdict(x, "memory", "measured",
		"control group " GROUP " was short of memory: it was at its limit of 48.0 MiB 24 "
		"times, so 3 threads waited up to 3.00 s for memory (mariadbd tid 2230 the "
		"longest); the kernel killed 1 process of it; no disk was at its limit");
	assert_null(part(x, "memory"));
	/* It is the host that is short. */
	operation(x, 2232, "memory", 4 * NSEC_PER_SEC, true);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "waiting");
}

/* Which of two groups beside one another it is, the group of the threads says. */
static void test_the_group_of_the_threads_that_wait(void **state)
{
	static const struct {
		uint64_t cgroup;
		const char *said;
	} cases[] = {
		{ 20, "control group /b was short of memory: it was at its limit" },
		{ 10, "control group /a was short of memory: it was at its limit" },
		{ 30,
			"one of several control groups at their limits was short of memory: 1 thread "
			"waited" },
	};
	struct record_sample s = { .reading.mono_ns = TRIGGER_NS + NSEC_PER_SEC,
		.reading.interval_ns = NSEC_PER_SEC,
		.reading.memory.present = true,
		.limits.cgroups_count = 2,
		.limits.cgroups = { { .path = "/a", .limit_bytes = MIB, .limit_hits = 9, .id = 10 },
			{ .path = "/b", .limit_bytes = MIB, .limit_hits = 3, .id = 20 } } };
	struct fixture *x = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct record_operation op = { .op = RECORD_OP_read,
			.probe = RECORD_PROBE_wait,
			.pid = 7,
			.tid = 7,
			.comm = "mariadbd",
			.cgroup = cases[i].cgroup,
			.start_mono_ns = TRIGGER_NS,
			.dur_ns = 3 * NSEC_PER_SEC,
			.waits_for = RECORD_CAUSE_group_memory };

		verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
		verdict_note_sample(&x->f, &s);
		verdict_note_operation(&x->f, &op, true);
		decide(x);
		assert_string_equal(record_class_text(x->v.class), "memory");
		assert_non_null(strstr(x->v.sentence, cases[i].said));
	}
}

/* Thousands of waits, none of which is long enough for a line. */
static void test_all_wait_for_memory_again_and_again(void **state)
{
	struct record_sample s = { .reading.mono_ns = TRIGGER_NS + NSEC_PER_SEC,
		.reading.interval_ns = NSEC_PER_SEC,
		.reading.memory.present = true,
		.reading.psi.memory = { .present = true, .full_pct = 83 },
		.reading.devices_count = 1,
		.reading.devices = { idle_sdb },
		.limits.cgroups_count = 1,
		.limits.cgroups = { thrashing.groups[0] } };
	struct fixture *x = *state;

	verdict_note_sample(&x->f, &s);
	decide(x);
	assert_verdict(x, "memory", "inferred",
		"control group " GROUP " was short of memory: it was at its limit of 48.0 MiB 12 "
		"times, and all tasks that could run waited for memory for up to 83 % of the time, "
		"each less than 100 ms at a time; no disk was at its limit");
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	s.limits.cgroups_count = 0;
	verdict_note_sample(&x->f, &s);
	decide(x);
	assert_non_null(strstr(x->v.sentence, "memory was short: all tasks that could run waited"));
	/* Nor does it where a disk explains what threads waited for. */
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	samples(x, &loaded_sdb, 10);
	s.reading.devices_count = 0;
	verdict_note_sample(&x->f, &s);
	operation(x, 2230, "device", 3 * NSEC_PER_SEC, true);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "saturated");
	/* A short one explains nothing. */
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	s.reading.psi.memory.full_pct = 30;
	verdict_note_sample(&x->f, &s);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "unknown");
}

static void test_a_group_that_is_not_watched_waits_for_memory(void **state)
{
	struct fixture *x = *state;

	operation(x, 2230, "memory of control group", 3 * NSEC_PER_SEC, true);
	decide(x);
	assert_verdict(x, "memory", "measured",
		"a control group that is not watched was short of memory: 1 thread waited 3.00 s "
		"for memory (mariadbd tid 2230)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		verdict_test(test_all_wait_for_memory_again_and_again),
		verdict_test(test_group_at_its_limit),
		verdict_test(test_one_window),
		verdict_test(test_second_dump),
		verdict_test(test_pages_in_active_use),
		verdict_test(test_disks_that_are_busy_for_other_reasons),
		verdict_test(test_hung_comes_first),
		verdict_test(test_groups_in_one_another),
		verdict_test(test_killed),
		verdict_test(test_swap_storm),
		verdict_test(test_a_group_that_swaps),
		verdict_test(test_swap_on_zram),
		verdict_test(test_waits_for_memory),
		verdict_test(test_a_group_waits_for_its_own_memory),
		verdict_test(test_the_group_of_the_threads_that_wait),
		verdict_test(test_a_group_that_is_not_watched_waits_for_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
