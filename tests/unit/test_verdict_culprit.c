/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Who did most of what a device did. */
#include "test_verdict_setup.h"

static void test_a_unit_is_named_when_its_processes_have_half_together(void **state)
{
	struct record_io_by unit = { .by = RECORD_BY_cgroup,
		.dev = { 8, 16 },
		.cgroup = 77,
		.unit = "backup.service",
		.read_requests = 1000,
		.bytes = 100 * MIB,
		.busy_ns = 9 * NSEC_PER_SEC,
		.busy_share_pct = 93 };
	struct record_operation own = { .op = RECORD_OP_read,
		.probe = RECORD_PROBE_vfs,
		.sleeps = 1,
		.pid = 4712,
		.tid = 4712,
		.cgroup = 77,
		.dev = { 8, 16 },
		.dev_name = "sdb",
		.start_mono_ns = TRIGGER_NS,
		.waits_for = RECORD_CAUSE_device,
		.dur_ns = 9 * NSEC_PER_SEC };
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	for (int32_t pid = 4711; pid < 4714; pid++)
		load(x, "process", pid, 0, "tar", 31, false);
	verdict_note_io_by(&x->f, &unit);
	verdict_note_operation(&x->f, &own, true);
	operation(x, 2230, "page", 3 * NSEC_PER_SEC, true);
	decide(x);
	assert_verdict(x, "saturated", "measured",
		"device sdb was saturated for 10.00 s (util 100 %, r_await 300 ms, queue depth "
		"64): backup.service used 90 % of the device time (1000 reads, 100.0 "
		"MiB). 1 other thread waited 3.00 s");
	assert_int_equal(part(x, "victims")->tid, 2230);
}

/* The largest of many is one of them: it does not lead the list of those that waited. */
static void test_the_largest_does_not_lead_the_victims(void **state)
{
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "process", 4711, 0, "tar", 45, false);
	waits(x, &(struct wait){ "device", "sdb1", 8, 17, 4711, 4711, 0, 9 * NSEC_PER_SEC });
	operation(x, 2230, "page", 3 * NSEC_PER_SEC, true);
	decide(x);
	assert_int_equal(part(x, "victims")->threads, 2);
	assert_int_equal(part(x, "victims")->tid, 2230);
	assert_int_equal(part(x, "victims")->longest_ns, 9 * NSEC_PER_SEC);
}

/* It calls fsync all the time: the device writes its cache, and nothing else. */
static void test_a_program_that_only_flushes(void **state)
{
	struct record_io_by flushes = { .by = RECORD_BY_process,
		.dev = { 8, 16 },
		.pid = 4711,
		.comm = "flusher",
		.requests = 300,
		.flush_requests = 300,
		.busy_ns = 9 * NSEC_PER_SEC,
		.flush_busy_ns = 9 * NSEC_PER_SEC,
		.busy_share_pct = 93 };
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	verdict_note_io_by(&x->f, &flushes);
	operation(x, 2230, "page", 3 * NSEC_PER_SEC, true);
	decide(x);
	assert_verdict(x, "saturated", "measured",
		"device sdb was saturated for 10.00 s (util 100 %, r_await 300 ms, queue depth "
		"64): flusher pid 4711 used 90 % of the device time (300 flushes). 1 other thread "
		"waited 3.00 s");
}

/* Nobody alone did it: each of those that did much is worth a look. */
static void test_several_that_had_nearly_as_much(void **state)
{
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 3000, 300 * MIB, 10 * NSEC_PER_SEC);
	load(x, "process", 2300, 0, "alpha", 36, false);
	load(x, "process", 2400, 0, "beta", 31, false);
	load(x, "process", 2500, 0, "gamma", 20, false);
	load(x, "process", 2600, 0, "delta", 9, false);
	load(x, "thread", 2300, 2300, "alpha", 36, false);
	/* It has more threads than the record. */
	load(x, "thread", 2400, 2401, "worker", 17, false);
	load(x, "thread", 2500, 2500, "gamma", 20, false);
	decide(x);
	assert_non_null(strstr(x->v.sentence,
		"; no program alone caused it: alpha pid 2300 used the most, 36 % of the device time (1000 reads, "
		"100.0 MiB); next came beta pid 2400 with 31 % and gamma pid 2500 with 20 %"));
}

/* Of two that read a file each, the file that was read more is not said to be that of the other. */
static void test_whose_file_it_is(void **state)
{
	const struct record_device device = { .dev = { 8, 16 },
		.dev_name = "sdb",
		.final = true,
		.read_requests = 2000,
		.read_busy_ns = 8500 * MS };
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	verdict_note_device(&x->f, &device);
	load(x, "process", 2300, 0, "dd", 38, false);
	load(x, "process", 2310, 0, "cksum", 35, false);
	load(x, "file", 0, 0, "", 43, false);
	decide(x);
	assert_non_null(strstr(x->v.sentence, "dd pid 2300 used the most, 38 %"));
	assert_null(strstr(x->v.sentence, "mostly on"));
	/* With less for others, at least half of what it read must have been of that file. */
	x->f.devices[0].load[VERDICT_BY_FILE].busy_ns = 6700 * MS;
	decide(x);
	assert_non_null(strstr(x->v.sentence, "dd pid 2300 used the most, 38 %"));
	assert_non_null(strstr(x->v.sentence, "mostly on big/t.ibd"));
}

/* Half of what the disk did had been sent before anybody looked: that is not the work of others. */
static void test_what_was_sent_before_tracing_is_a_share_of_its_own(void **state)
{
	const struct record_device device = { .dev = { 8, 16 },
		.dev_name = "sdb",
		.final = true,
		.write_requests = 2000,
		.write_busy_ns = 10 * NSEC_PER_SEC,
		.before_busy_ns = 4700 * MS };
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	verdict_note_device(&x->f, &device);
	load(x, "process", 2300, 0, "backup", 45, false);
	decide(x);
	assert_verdict(x, "saturated", "measured",
		"device sdb was saturated for 10.00 s (util 100 %, r_await 300 ms, queue depth "
		"64); it is not known who caused it: of what could be traced, backup pid 2300 used the "
		"most, 45 % of the device time (1000 reads, 100.0 MiB); who used another 47 %, before tracing began, is not "
		"known");
	assert_null(part(x, "culprit"));
	assert_int_equal(part(x, "largest")->pid, 2300);
	assert_int_equal(part(x, "largest")->share_pct, 45);
}

/* The disk was at its limit for 10 s, and traced for the last 4 of them. */
static void test_half_of_what_was_traced(void **state)
{
	const struct record_device device = { .dev = { 8, 16 },
		.dev_name = "sdb",
		.final = true,
		.read_requests = 2000,
		.read_busy_ns = 4 * NSEC_PER_SEC };
	struct fixture *x = *state;

	x->now_ns = TRIGGER_NS - 4 * NSEC_PER_SEC;
	samples(x, &loaded_sdb, 10);
	verdict_note_device(&x->f, &device);
	load(x, "process", 2300, 0, "dump", 39, false);
	load(x, "thread", 2300, 2301, "dump", 39, false);
	operation(x, 2230, "page", 3 * NSEC_PER_SEC, true);
	decide(x);
	assert_verdict(x, "saturated", "inferred",
		"device sdb was saturated for 10.00 s (util 100 %, r_await 300 ms, queue depth "
		"64): dump tid 2301 probably used 98 % of the device time since tracing began (1000 "
		"reads, 100.0 MiB); who used the 6.00 s before tracing began is not known. 1 other "
		"thread waited 3.00 s");
	assert_string_equal(record_basis_text(part(x, "culprit")->basis), "inferred");
}

/* They may all have been sent by another program, which waits for them since. */
static void test_more_was_in_flight_before_tracing(void **state)
{
	const struct record_device device = { .dev = { 8, 16 },
		.dev_name = "sdb",
		.final = true,
		.write_requests = 2000,
		.write_busy_ns = 8 * NSEC_PER_SEC,
		.before_busy_ns = 5 * NSEC_PER_SEC };
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	verdict_note_device(&x->f, &device);
	load(x, "process", 2300, 0, "dump", 29, false);
	load(x, "thread", 2300, 2301, "dump", 29, false);
	decide(x);
	assert_null(part(x, "culprit"));
	assert_non_null(part(x, "largest"));
}

/* One second says little about ten. */
static void test_little_was_traced(void **state)
{
	const struct record_device device = { .dev = { 8, 16 },
		.dev_name = "sdb",
		.final = true,
		.read_requests = 2000,
		.read_busy_ns = 1500 * MS };
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	verdict_note_device(&x->f, &device);
	load(x, "thread", 2300, 2301, "dump", 15, false);
	decide(x);
	assert_null(part(x, "culprit"));
	assert_non_null(part(x, "largest"));
}

/* The one moves the bytes, the other has the disk. */
static void test_a_random_reader_has_the_disk(void **state)
{
	struct record_io_by small = { .by = RECORD_BY_thread,
		.dev = { 8, 16 },
		.pid = 2300,
		.tid = 2300,
		.comm = "lookups",
		.requests = 950,
		.read_requests = 950,
		.bytes = 20 * MIB,
		.share_pct = 20,
		.busy_ns = 9500 * MS,
		.busy_share_pct = 95 };
	struct record_io_by large = { .by = RECORD_BY_thread,
		.dev = { 8, 16 },
		.pid = 2400,
		.tid = 2400,
		.comm = "dump",
		.requests = 50,
		.read_requests = 50,
		.bytes = 80 * MIB,
		.share_pct = 80,
		.busy_ns = 500 * MS,
		.busy_share_pct = 5 };
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 1000, 100 * MIB, 400 * MS);
	verdict_note_io_by(&x->f, &small);
	verdict_note_io_by(&x->f, &large);
	waits(x, &(struct wait){ "device", "sdb1", 8, 17, 2400, 2400, 0, 9 * NSEC_PER_SEC });
	decide(x);
	assert_non_null(strstr(x->v.sentence,
		": lookups pid 2300 used 95 % of the device time (950 reads, 20.0 MiB). "
		"1 other thread waited 9.00 s"));
}

static void test_a_trim_moves_no_bytes(void **state)
{
	struct record_io_by trim = { .by = RECORD_BY_thread,
		.dev = { 8, 16 },
		.pid = 2300,
		.tid = 2300,
		.comm = "fstrim",
		.requests = 120,
		.discard_requests = 120,
		.discard_bytes = 3 * 1024 * MIB,
		.busy_ns = 9500 * MS,
		.busy_share_pct = 95 };
	/* Few discards, each of a large part of the disk. */
	const struct record_disk trimmed = { .dev = { 8, 16 },
		.dev_name = "sdb",
		.util_pct = 100,
		.inflight = 1,
		.queue = 1,
		.discards = 12,
		.discard_ticks_ms = 1000,
		.discard_bytes = 300 * MIB };
	struct fixture *x = *state;

	samples(x, &trimmed, 10);
	operation(x, 2225, "device", 900 * MS, true);
	totals(x, 120, 0, 400 * MS);
	verdict_note_io_by(&x->f, &trim);
	decide(x);
	assert_int_equal(x->v.class, RECORD_CLASS_saturated);
	assert_non_null(strstr(x->v.sentence,
		": fstrim pid 2300 used 95 % of the device time (120 discards, 3.0 GiB)"));
}

static const struct record_operation copy_write = { .op = RECORD_OP_write,
	.probe = RECORD_PROBE_vfs,
	.sleeps = 1,
	.pid = 2300,
	.tid = 2300,
	.comm = "cp",
	.path = "/var/lib/mysql/big/t.ibd",
	.dev = { 8, 16 },
	.dev_name = "sdb",
	.start_mono_ns = TRIGGER_NS,
	.waits_for = RECORD_CAUSE_dirty_throttling,
	.dur_ns = 9 * NSEC_PER_SEC };

static const struct record_io_by copied_file = { .by = RECORD_BY_file,
	.dev = { 8, 16 },
	.path = "/var/lib/mysql/big/t.ibd",
	.write_requests = 700,
	.bytes = 600 * MIB,
	.busy_ns = 9100 * MS,
	.inferred = true };

/* The kernel writes back what a copy wrote, which waits until fewer pages are dirty. */
static void test_write_back_is_the_work_of_who_wrote(void **state)
{
	const struct record_io_by file = copied_file;
	struct record_operation op = copy_write;
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "process", 77, 0, "kworker/u8:2", 97, true);
	verdict_note_io_by(&x->f, &file);
	verdict_note_operation(&x->f, &op, true);
	operation(x, 2230, "journal commit", 3 * NSEC_PER_SEC, true);
	decide(x);
	assert_non_null(strstr(x->v.sentence,
		": cp pid 2300 probably used 91 % of the device time (700 writes, 600.0 MiB) "
		"through the kernel thread kworker/u8:2 pid 77, mostly on big/t.ibd. 1 other thread "
		"waited 3.00 s"));
	assert_int_equal(part(x, "culprit")->pid, 2300);
	assert_string_equal(record_basis_text(part(x, "culprit")->basis), "inferred");
	assert_int_equal(x->v.basis, RECORD_BASIS_inferred);
	/* When two write it, which of them did is not known. */
	op.pid = op.tid = 2400;
	verdict_note_operation(&x->f, &op, true);
	decide(x);
	assert_null(part(x, "culprit"));
	assert_int_equal(part(x, "largest")->pid, 77);
}

/* Most of it had been sent to the disk before the probes were armed. */
static void test_write_back_from_before_tracing(void **state)
{
	const struct record_device device = { .dev = { 8, 16 },
		.dev_name = "sdb",
		.final = true,
		.write_requests = 2000,
		.write_busy_ns = 9 * NSEC_PER_SEC,
		.before_busy_ns = 6 * NSEC_PER_SEC };
	struct record_operation op = copy_write;
	struct record_io_by file = copied_file;
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	verdict_note_device(&x->f, &device);
	file.busy_ns = 2900 * MS;
	file.before_requests = 300;
	file.before_bytes = 200 * MIB;
	file.before_busy_ns = 5 * NSEC_PER_SEC;
	load(x, "thread", 2300, 2300, "cp", 29, false);
	verdict_note_io_by(&x->f, &file);
	verdict_note_operation(&x->f, &op, true);
	decide(x);
	assert_non_null(strstr(x->v.sentence,
		": cp pid 2300 probably used 79 % of the device time (1000 writes, 800.0 MiB), mostly "
		"on big/t.ibd; who used another 20 %, before tracing began, is not known"));
	assert_int_equal(part(x, "culprit")->pid, 2300);
	/* Somebody else had most of what was traced. */
	op.pid = op.tid = 2400;
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	x->now_ns = TRIGGER_NS;
	samples(x, &loaded_sdb, 10);
	verdict_note_device(&x->f, &device);
	load(x, "thread", 2300, 2300, "cp", 29, false);
	verdict_note_io_by(&x->f, &file);
	verdict_note_operation(&x->f, &op, true);
	decide(x);
	assert_null(part(x, "culprit"));
	assert_int_equal(part(x, "largest")->pid, 2300);
}

/* All was sent before tracing began; since then the program waits in its fsync. */
static void test_write_back_that_a_program_waits_for(void **state)
{
	const struct record_device device = { .dev = { 8, 16 },
		.dev_name = "sdb",
		.final = true,
		.write_requests = 300,
		.write_busy_ns = 6 * NSEC_PER_SEC,
		.before_busy_ns = 6 * NSEC_PER_SEC };
	struct record_operation op = copy_write;
	struct record_io_by file = copied_file;
	struct fixture *x = *state;

	op.op = RECORD_OP_fsync;
	file.requests = file.write_requests = 0;
	file.bytes = file.busy_ns = 0;
	file.before_requests = 300;
	file.before_bytes = 200 * MIB;
	file.before_busy_ns = 6 * NSEC_PER_SEC;
	samples(x, &loaded_sdb, 10);
	verdict_note_device(&x->f, &device);
	verdict_note_io_by(&x->f, &file);
	verdict_note_operation(&x->f, &op, true);
	decide(x);
	assert_int_equal(part(x, "culprit")->pid, op.pid);
	assert_int_equal(part(x, "culprit")->share_pct, 60);
	assert_string_equal(record_basis_text(part(x, "culprit")->basis), "inferred");
	/* Another one waits for the same file: it is not known who wrote it. */
	op.pid = op.tid = 2400;
	verdict_note_operation(&x->f, &op, true);
	decide(x);
	assert_null(part(x, "culprit"));
	/* Who is slowed down in a write to it is the one who writes it. */
	op.op = RECORD_OP_write;
	verdict_note_operation(&x->f, &op, true);
	decide(x);
	assert_int_equal(part(x, "culprit")->pid, 2400);
}

/* Reads that were in flight when the probes were armed, of the file that one program reads. */
static void test_reads_from_before_tracing(void **state)
{
	const struct record_device device = { .dev = { 8, 16 },
		.dev_name = "sdb",
		.final = true,
		.read_requests = 2000,
		.read_busy_ns = 6 * NSEC_PER_SEC,
		.before_busy_ns = 2 * NSEC_PER_SEC };
	struct record_io_by file = { .by = RECORD_BY_file,
		.dev = { 8, 16 },
		.path = "/var/lib/mysql/big/t.ibd",
		.read_requests = 1000,
		.bytes = 100 * MIB,
		.busy_ns = 3900 * MS,
		.before_requests = 100,
		.before_bytes = 50 * MIB,
		.before_busy_ns = 1900 * MS };
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	verdict_note_device(&x->f, &device);
	load(x, "thread", 2300, 2300, "dump", 39, false);
	verdict_note_io_by(&x->f, &file);
	decide(x);
	assert_non_null(strstr(x->v.sentence,
		": dump pid 2300 probably used 58 % of the device time (1100 reads, 150.0 MiB), mostly "
		"on big/t.ibd; who used another 41 %, before tracing began, is not known"));
	assert_string_equal(record_basis_text(part(x, "culprit")->basis), "inferred");
	/* Others read it, too: the two have only 2.3 s in common for certain. */
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	x->now_ns = TRIGGER_NS;
	samples(x, &loaded_sdb, 10);
	verdict_note_device(&x->f, &device);
	load(x, "thread", 2300, 2300, "dump", 24, false);
	verdict_note_io_by(&x->f, &file);
	decide(x);
	assert_int_equal(part(x, "culprit")->share_pct, 60);
	assert_non_null(strstr(x->v.sentence,
		"of the device time since tracing began (1000 reads, 100.0 MiB), mostly on "
		"big/t.ibd; who used the 6.00 s before tracing began is not known"));
}

/* Temporary files of databases are removed as soon as they are open. */
static void test_a_file_that_has_been_removed(void **state)
{
	struct record_io_by file = { .by = RECORD_BY_file,
		.dev = { 8, 16 },
		.path = "/var/lib/mysql/tmp/#1237//deleted",
		.read_requests = 1000,
		.bytes = 100 * MIB,
		.busy_ns = 9 * NSEC_PER_SEC };
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "thread", 2300, 2300, "mariadbd", 91, false);
	verdict_note_io_by(&x->f, &file);
	decide(x);
	assert_non_null(strstr(x->v.sentence, ", mostly on tmp/#1237 (deleted)"));
	assert_string_equal(part(x, "culprit")->path, file.path);
}

/* Who has not used the file since tracing began did not do what was done on it before. */
static void test_a_file_that_nobody_used_since(void **state)
{
	const struct record_device device = { .dev = { 8, 16 },
		.dev_name = "sdb",
		.final = true,
		.requests = 3000,
		.read_busy_ns = 9 * NSEC_PER_SEC,
		.before_busy_ns = 6 * NSEC_PER_SEC };
	struct record_io_by file = { .by = RECORD_BY_file,
		.dev = { 8, 16 },
		.path = "/srv/backup.tar",
		.before_requests = 100,
		.before_busy_ns = 6 * NSEC_PER_SEC };
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	verdict_note_device(&x->f, &device);
	load(x, "thread", 2211, 12, "mariadbd", 21, false);
	verdict_note_io_by(&x->f, &file);
	decide(x);
	assert_null(part(x, "culprit"));
	assert_int_equal(part(x, "largest")->share_pct, 21);
}

/* The last one who dirtied the file may not be the one who dirtied most of it. */
static void test_write_back_that_others_dirtied_too(void **state)
{
	struct record_io_by cp = { .by = RECORD_BY_thread,
		.dev = { 8, 16 },
		.pid = 2300,
		.tid = 2300,
		.comm = "cp",
		.write_requests = 700,
		.bytes = 600 * MIB,
		.busy_ns = 9100 * MS,
		.uncertain = true };
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	verdict_note_io_by(&x->f, &cp);
	decide(x);
	assert_verdict(x, "saturated", "inferred",
		"device sdb was saturated for 10.00 s (util 100 %, r_await 300 ms, queue depth "
		"64): cp pid 2300 probably used 91 % of the device time (700 writes, 600.0 MiB)");
	assert_string_equal(record_basis_text(part(x, "culprit")->basis), "inferred");
}

static int32_t leader_of_none(void *userdata, int32_t tid)
{
	(void)userdata;
	return tid;
}

static bool find_none(void *userdata, int32_t pid, int32_t tid, struct verdict_statement *ret)
{
	(void)userdata;
	(void)pid;
	(void)tid;
	(void)ret;
	return false;
}

static bool is_server(void *userdata, int32_t pid)
{
	(void)userdata;
	(void)pid;
	return false;
}

/* Threads from 2225 on run the same statement. */
static uint64_t statement_key(void *userdata, int32_t tid)
{
	(void)userdata;
	return tid < 2225 ? 0 : 1;
}

static uint32_t count_five(void *userdata, int32_t tid, uint64_t *ret_longest_ns)
{
	(void)userdata;
	(void)tid;
	*ret_longest_ns = 4 * NSEC_PER_SEC;
	return 5;
}

static bool is_counted(void *userdata, int32_t tid)
{
	(void)userdata;
	return tid >= 2225;
}

static const struct verdict_sql sql = { .find_statement = find_none,
	.is_server = is_server,
	.leader_of = leader_of_none,
	.statement_key = statement_key,
	.count_others = count_five,
	.is_counted = is_counted };

static uint32_t count_thirty(void *userdata, int32_t tid)
{
	(void)userdata;
	assert_int_equal(tid, 2225);
	return 30;
}

/* Sessions that sort: each has a file of its own, and the kernel writes back all of them. */
static void test_write_back_of_several_files(void **state)
{
	struct verdict_sql with_count = sql;
	struct record_operation op = copy_write;
	struct record_io_by file = copied_file;
	struct fixture *x = *state;
	char path[64];

	with_count.count_alike = count_thirty;
	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "process", 77, 0, "kworker/u8:2", 90, true);
	load(x, "thread", 77, 77, "kworker/u8:2", 90, true);
	file.busy_ns = 2200 * MS;
	for (int32_t tid = 2225; tid < 2228; tid++) {
		snprintf(path, sizeof(path), "/data/base/pgsql_tmp/pgsql_tmp%d.0", tid);
		text_copy(file.path, sizeof(file.path), path);
		verdict_note_io_by(&x->f, &file);
		/* The last one waits for room. */
		op.pid = op.tid = tid;
		op.op = tid == 2227 ? RECORD_OP_fallocate : RECORD_OP_write;
		text_copy(op.path, sizeof(op.path), path);
		verdict_note_operation(&x->f, &op, true);
	}
	verdict_decide(&x->f, &with_count, &x->v);
	assert_non_null(strstr(x->v.sentence,
		": 30 sessions of cp with the same statement probably used 66 % of "
		"the device time (2100 writes, 1.8 GiB) through the kernel thread kworker/u8:2 pid 77"));
	assert_null(part(x, "victims"));
	/* Without a database each is a program of its own. */
	decide(x);
	assert_null(part(x, "culprit"));
}

static void test_sessions_with_one_statement_are_added_up(void **state)
{
	struct verdict_sql with_count = sql;
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	for (int32_t tid = 2225; tid < 2228; tid++) {
		load(x, "thread", tid, tid, "postgres", 20, false);
		operation(x, tid, "page", 3 * NSEC_PER_SEC, true);
	}
	operation(x, 2220, "page", 2 * NSEC_PER_SEC, true);
	verdict_decide(&x->f, &sql, &x->v);
	assert_non_null(strstr(x->v.sentence,
		": 3 sessions of postgres with the same statement used 60 % of the device time (3000 reads, 300.0 MiB). 1 other thread waited 2.00 s"));
	assert_int_equal(part(x, "victims")->tid, 2220);
	/* A device has its ten busiest threads, and more sessions ran that statement. */
	with_count.count_alike = count_thirty;
	verdict_decide(&x->f, &with_count, &x->v);
	assert_non_null(strstr(x->v.sentence,
		": 30 sessions of postgres with the same statement used at least 60 % "
		"of the device time"));
}

/* PostgreSQL 18: processes 2230 and on read for the backend 2225, or also for others like it. */
static int32_t leader_of_io_workers(void *userdata, int32_t tid)
{
	(void)userdata;
	return tid >= 2230 || tid == 2226 ? 2225 : tid;
}

static uint32_t served_one(void *userdata, int32_t tid)
{
	(void)userdata;
	return tid >= 2230 ? 1 : 0;
}

static uint32_t served_thirty(void *userdata, int32_t tid)
{
	return 30 * served_one(userdata, tid);
}

static uint32_t count_forty(void *userdata, int32_t tid)
{
	(void)userdata;
	assert_int_equal(tid, 2225);
	return 40;
}

static void test_io_workers_read_for_a_backend(void **state)
{
	struct verdict_sql workers = sql;
	struct fixture *x = *state;

	workers.leader_of = leader_of_io_workers;
	workers.count_served = served_one;
	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	/* It is not the busiest thread that matters, but who has most. */
	load(x, "thread", 2220, 2220, "postgres", 30, false);
	load(x, "thread", 2230, 2230, "postgres", 28, false);
	load(x, "thread", 2231, 2231, "postgres", 27, false);
	operation(x, 2231, "page", 4 * NSEC_PER_SEC, true);
	operation(x, 2220, "page", 2 * NSEC_PER_SEC, true);
	verdict_decide(&x->f, &workers, &x->v);
	assert_non_null(strstr(x->v.sentence,
		": 2 I/O workers (mostly for postgres pid 2225) used 55 % of the device time"));
	assert_int_equal(part(x, "victims")->tid, 2220);
	workers.count_served = served_thirty;
	verdict_decide(&x->f, &workers, &x->v);
	assert_non_null(strstr(x->v.sentence,
		": 2 I/O workers (mostly for 30 sessions of postgres with the same statement) used 55 %"));
	load(x, "thread", 2225, 2225, "postgres", 5, false);
	verdict_decide(&x->f, &workers, &x->v);
	assert_non_null(strstr(x->v.sentence,
		": postgres pid 2225 and 2 I/O workers (mostly for 30 sessions with its statement) used 60 %"));
	/* Those whose reads were in hand when the server was asked are only some of them. */
	workers.count_alike = count_forty;
	verdict_decide(&x->f, &workers, &x->v);
	assert_non_null(
		strstr(x->v.sentence, "(mostly for 40 sessions with its statement) used 60 %"));
	workers.count_served = served_one;
	load(x, "thread", 2226, 2226, "postgres", 5, false);
	verdict_decide(&x->f, &workers, &x->v);
	assert_non_null(strstr(x->v.sentence,
		": postgres pid 2225, 1 parallel worker and 2 I/O workers (mostly for it) used 65 %"));
}

/* One that has half by itself does not work for itself, either. */
static void test_a_single_io_worker(void **state)
{
	struct verdict_sql workers = sql;
	struct fixture *x = *state;

	workers.leader_of = leader_of_io_workers;
	workers.count_served = served_one;
	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "thread", 2230, 2230, "postgres", 70, false);
	verdict_decide(&x->f, &workers, &x->v);
	assert_non_null(
		strstr(x->v.sentence, ": 1 I/O worker (mostly for postgres pid 2225) used 70 %"));
	load(x, "thread", 2226, 2226, "postgres", 10, false);
	verdict_decide(&x->f, &workers, &x->v);
	assert_non_null(strstr(x->v.sentence,
		": 1 parallel worker of postgres pid 2225 and 1 I/O worker (mostly for it) used 80 %"));
}

/* The ten busiest of many threads have less than half, and all run that statement. */
static void test_sessions_of_one_process(void **state)
{
	struct verdict_sql with_count = sql;
	struct fixture *x = *state;

	with_count.count_alike = count_thirty;
	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "process", 2211, 0, "mariadbd", 58, false);
	for (int32_t tid = 2225; tid < 2228; tid++)
		load(x, "thread", 2211, tid, "mariadbd", 10, false);
	verdict_decide(&x->f, &with_count, &x->v);
	assert_non_null(strstr(x->v.sentence,
		": 30 sessions of mariadbd with the same statement probably used 58 %"));
	/* A thread of the server has no statement. */
	load(x, "thread", 2211, 2213, "mariadbd", 3, false);
	verdict_decide(&x->f, &with_count, &x->v);
	assert_non_null(strstr(x->v.sentence, ": 30 sessions of mariadbd with the same statement"));
	/* Others have other statements. */
	load(x, "thread", 2211, 2214, "mariadbd", 9, false);
	verdict_decide(&x->f, &with_count, &x->v);
	assert_non_null(strstr(x->v.sentence, ": mariadbd pid 2211 used 58 %"));
}

/* One of them may have half of what was traced, and the others only less. */
static void test_a_thread_with_half_and_others_with_its_statement(void **state)
{
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "process", 2211, 0, "mariadbd", 90, false);
	load(x, "thread", 2211, 2225, "mariadbd", 57, false);
	load(x, "thread", 2211, 2226, "mariadbd", 8, false);
	verdict_decide(&x->f, &sql, &x->v);
	assert_non_null(strstr(x->v.sentence, ": mariadbd tid 2225 used 57 %"));
	load(x, "thread", 2211, 2227, "mariadbd", 8, false);
	verdict_decide(&x->f, &sql, &x->v);
	assert_non_null(strstr(x->v.sentence,
		": 3 sessions of mariadbd with the same statement used 73 %"));
}

/* Three of the five statements run in threads that are named as victims already. */
static void test_no_victim_is_a_thread_and_a_statement(void **state)
{
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "thread", 2300, 2300, "dump", 92, false);
	for (int32_t tid = 2225; tid < 2228; tid++)
		operation(x, tid, "page", 3 * NSEC_PER_SEC, true);
	verdict_decide(&x->f, &sql, &x->v);
	assert_non_null(strstr(x->v.sentence,
		". 3 other threads waited up to 3.00 s; up to 2 statements ran at once, the "
		"longest for 4.00 s"));
}

/* A copy that had ended before a rule fired: all that is left of it is its file. */
static void test_only_the_file_is_known(void **state)
{
	const struct record_device device = { .dev = { 8, 16 },
		.dev_name = "sdb",
		.final = true,
		.requests = 300,
		.write_requests = 300,
		.write_bytes = 100 * MIB,
		.write_busy_ns = 9900 * MS,
		.before_requests = 290,
		.before_bytes = 99 * MIB,
		.before_busy_ns = 9500 * MS };
	const struct record_io_by file = { .by = RECORD_BY_file,
		.dev = { 8, 16 },
		.path = "/srv/backup/dump.sql",
		.before_requests = 280,
		.before_bytes = 98 * MIB,
		.before_busy_ns = 9400 * MS };
	struct fixture *x = *state;

	samples(x, &loaded_sdb, 10);
	verdict_note_device(&x->f, &device);
	load(x, "process", 2300, 0, "commits", 3, false);
	verdict_note_io_by(&x->f, &file);
	decide(x);
	assert_non_null(strstr(x->v.sentence,
		"; it is not known who caused it, but most of it was for backup/dump.sql: no program used "
		"as much as a fifth of the device time; who used another "));
	assert_null(part(x, "culprit"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		verdict_test(test_a_unit_is_named_when_its_processes_have_half_together),
		verdict_test(test_the_largest_does_not_lead_the_victims),
		verdict_test(test_a_program_that_only_flushes),
		verdict_test(test_several_that_had_nearly_as_much),
		verdict_test(test_whose_file_it_is),
		verdict_test(test_what_was_sent_before_tracing_is_a_share_of_its_own),
		verdict_test(test_half_of_what_was_traced),
		verdict_test(test_more_was_in_flight_before_tracing),
		verdict_test(test_little_was_traced),
		verdict_test(test_a_random_reader_has_the_disk),
		verdict_test(test_a_trim_moves_no_bytes),
		verdict_test(test_write_back_is_the_work_of_who_wrote),
		verdict_test(test_write_back_from_before_tracing),
		verdict_test(test_write_back_that_a_program_waits_for),
		verdict_test(test_write_back_of_several_files),
		verdict_test(test_reads_from_before_tracing),
		verdict_test(test_write_back_that_others_dirtied_too),
		verdict_test(test_a_file_that_has_been_removed),
		verdict_test(test_a_file_that_nobody_used_since),
		verdict_test(test_sessions_with_one_statement_are_added_up),
		verdict_test(test_sessions_of_one_process),
		verdict_test(test_io_workers_read_for_a_backend),
		verdict_test(test_a_single_io_worker),
		verdict_test(test_a_thread_with_half_and_others_with_its_statement),
		verdict_test(test_no_victim_is_a_thread_and_a_statement),
		verdict_test(test_only_the_file_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
