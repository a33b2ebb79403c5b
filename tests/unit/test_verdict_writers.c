/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Who wrote what the kernel writes back: nobody is named whom the facts do not show. */
#include <stdio.h>

#include "test_verdict_setup.h"

#define LOG "/var/log/app.log"
#define BTRFS 39

struct write {
	enum record_op op;
	const char *path;
	int32_t pid, tid;
	const char *comm;
	enum record_cause waits_for;
	uint32_t minor; /* of the file system's device; BTRFS: that is none of a disk */
	uint64_t inode;
};

static void writes(struct fixture *x, const struct write *w)
{
	struct record_operation op = { .op = w->op,
		.probe = RECORD_PROBE_vfs,
		.sleeps = 1,
		.pid = w->pid,
		.tid = w->tid,
		.dev = { w->minor == BTRFS ? 0 : 8, w->minor ? w->minor : 16 },
		.inode = w->inode,
		.waits_for = w->waits_for,
		.start_mono_ns = TRIGGER_NS,
		.dur_ns = NSEC_PER_SEC };

	text_copy(op.dev_name, sizeof(op.dev_name), w->minor && w->minor != BTRFS ? "sdc" : "sdb");
	text_copy(op.path, sizeof(op.path), w->path);
	text_copy(op.comm, sizeof(op.comm), w->comm);
	verdict_note_operation(&x->f, &op, true);
}

static void write_back_to(struct fixture *x, struct record_dev fs_dev, const char *path,
	uint64_t inode, uint64_t busy_ns)
{
	struct record_io_by by = { .by = RECORD_BY_file,
		.dev = { 8, 16 },
		.fs_dev = fs_dev,
		.inode = inode,
		.write_requests = 700,
		.bytes = 600 * MIB,
		.busy_ns = busy_ns,
		.inferred = true };

	text_copy(by.path, sizeof(by.path), path);
	verdict_note_io_by(&x->f, &by);
}

static void write_back(struct fixture *x, const char *path, uint64_t inode, uint64_t busy_ns)
{
	write_back_to(x, (struct record_dev){ 8, 16 }, path, inode, busy_ns);
}

/* The disk was saturated for ten seconds, and a kernel thread had that much of it. */
static void begin(struct fixture *x, double kernel_pct)
{
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	x->now_ns = TRIGGER_NS;
	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	load(x, "process", 77, 0, "kworker/u8:2", kernel_pct, true);
	load(x, "thread", 77, 77, "kworker/u8:2", kernel_pct, true);
}

static const char *culprit_of(struct fixture *x)
{
	decide(x);
	return part(x, "culprit") ? part(x, "culprit")->comm : "";
}

/* Two programs write a log, and a third one waits for it. */
static void test_two_writers_are_not_a_third(void **state)
{
	struct fixture *x = *state;

	begin(x, 90);
	write_back(x, LOG, 11, 9 * NSEC_PER_SEC);
	writes(x,
		&(struct write){ RECORD_OP_write, LOG, 500, 500, "a", RECORD_CAUSE_dirty_throttling,
			0, 11 });
	assert_string_equal(culprit_of(x), "a");
	writes(x,
		&(struct write){ RECORD_OP_write, LOG, 501, 501, "b", RECORD_CAUSE_dirty_throttling,
			0, 11 });
	writes(x,
		&(struct write){ RECORD_OP_fsync, LOG, 502, 502, "c", RECORD_CAUSE_writeback, 0,
			11 });
	assert_string_equal(culprit_of(x), "");
}

static void kernel_share(struct fixture *x, int32_t tid, const char *comm, double pct)
{
	struct record_io_by by = { .by = RECORD_BY_thread,
		.dev = { 8, 16 },
		.pid = tid,
		.tid = tid,
		.requests = 500,
		.write_requests = 500,
		.bytes = 200 * MIB,
		.busy_ns = (uint64_t)(pct / 100 * sdb_work_ns(x)),
		.inferred = true };

	text_copy(by.comm, sizeof(by.comm), comm);
	verdict_note_io_by(&x->f, &by);
	by.by = RECORD_BY_process;
	verdict_note_io_by(&x->f, &by);
}

static void write_back_by(struct fixture *x, double first_pct, double second_pct,
	double journal_pct, double program_pct, bool to_file)
{
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	x->now_ns = TRIGGER_NS;
	samples(x, &loaded_sdb, 10);
	totals(x, 2130, 204 * MIB, 400 * MS);
	kernel_share(x, 77, "kworker/u8:2", first_pct);
	kernel_share(x, 78, "kworker/u8:3", second_pct);
	kernel_share(x, 79, "jbd2/sdb1-8", journal_pct);
	load(x, "process", 2211, 0, "mariadbd", program_pct, false);
	load(x, "thread", 2211, 2230, "mariadbd", program_pct, false);
	if (to_file)
		write_back(x, "/backup/dump.sql", 12, 6 * NSEC_PER_SEC);
	operation(x, 2230, "page", 3 * NSEC_PER_SEC, true);
	decide(x);
}

/* Each of them has less than half, and the program that waits for them next to nothing. */
static void test_kernel_workers_together(void **state)
{
	struct fixture *x = *state;

	write_back_by(x, 44, 40, 6, 3, true);
	assert_int_equal(x->v.class, RECORD_CLASS_saturated);
	assert_non_null(strstr(x->v.sentence,
		": kernel workers used 90 % of the device time (1500 writes, 600.0 MiB) to write "
		"back what programs had dirtied before, mostly on backup/dump.sql. 1 thread waited"));
	assert_null(part(x, "culprit"));
	assert_string_equal(part(x, "largest")->comm, "kworker/u8:2");
	assert_string_equal(record_basis_text(part(x, "largest")->basis), "inferred");
	write_back_by(x, 20, 18, 2, 3, true);
	assert_non_null(strstr(x->v.sentence,
		"; it is not known who caused it: kernel workers used the most, 40 % of the device "
		"time (1500 writes, 600.0 MiB) to write back what programs had dirtied before"));
	/* Requests without a file are not known to be write-back. */
	write_back_by(x, 44, 40, 6, 3, false);
	assert_non_null(strstr(x->v.sentence,
		"; it is not known who caused it: kernel workers used the most, 90 % of the device "
		"time (1500 writes, 600.0 MiB) for programs that are not known. 1 thread waited"));
	/* A program with more than all of them. */
	write_back_by(x, 20, 10, 2, 33, true);
	assert_string_equal(part(x, "largest")->comm, "mariadbd");
}

/* Many files of others do not make two that wait for one into one. */
static void test_many_other_files(void **state)
{
	struct fixture *x = *state;
	char path[32];

	begin(x, 90);
	write_back(x, LOG, 11, 9 * NSEC_PER_SEC);
	writes(x,
		&(struct write){ RECORD_OP_fsync, LOG, 500, 500, "a", RECORD_CAUSE_writeback, 0,
			11 });
	for (int i = 0; i < 2 * VERDICT_DIRTIERS_MAX; i++) {
		snprintf(path, sizeof(path), "/srv/%d", i);
		writes(x,
			&(struct write){ RECORD_OP_write, path, 600, 600, "z",
				RECORD_CAUSE_dirty_throttling, 0, 100 + (uint64_t)i });
	}
	writes(x,
		&(struct write){ RECORD_OP_fsync, LOG, 501, 501, "b", RECORD_CAUSE_writeback, 0,
			11 });
	assert_string_equal(culprit_of(x), "");
}

/* The same path on another disk, in a container or after the file was replaced. */
static void test_another_file_of_that_name(void **state)
{
	struct fixture *x = *state;

	begin(x, 90);
	write_back(x, LOG, 11, 9 * NSEC_PER_SEC);
	writes(x,
		&(struct write){ RECORD_OP_write, LOG, 500, 500, "a", RECORD_CAUSE_dirty_throttling,
			32, 11 });
	writes(x,
		&(struct write){ RECORD_OP_write, LOG, 501, 501, "b", RECORD_CAUSE_dirty_throttling,
			0, 12 });
	assert_string_equal(culprit_of(x), "");
}

/* A file of another subvolume of btrfs has the same number. */
static void test_another_subvolume(void **state)
{
	struct fixture *x = *state;

	begin(x, 90);
	write_back_to(x, (struct record_dev){ 0, BTRFS }, "/one/table", 257, 9 * NSEC_PER_SEC);
	writes(x,
		&(struct write){ RECORD_OP_write, "/two/table", 500, 500, "a",
			RECORD_CAUSE_dirty_throttling, BTRFS, 257 });
	assert_string_equal(culprit_of(x), "");
}

static void test_the_same_subvolume(void **state)
{
	struct fixture *x = *state;

	begin(x, 90);
	write_back_to(x, (struct record_dev){ 0, BTRFS }, "/one/table", 257, 9 * NSEC_PER_SEC);
	writes(x,
		&(struct write){ RECORD_OP_write, "/one/table", 500, 500, "a",
			RECORD_CAUSE_dirty_throttling, BTRFS, 257 });
	assert_string_equal(culprit_of(x), "a");
}

static void test_who_removes_a_file_need_not_have_written_it(void **state)
{
	struct fixture *x = *state;

	begin(x, 90);
	write_back(x, LOG, 11, 9 * NSEC_PER_SEC);
	writes(x,
		&(struct write){ RECORD_OP_unlink, LOG, 500, 500, "rm", RECORD_CAUSE_writeback, 0,
			11 });
	assert_string_equal(culprit_of(x), "");
}

/* Whoever wrote a little is not put before who had nearly half. */
static void test_a_small_writer_is_not_the_largest(void **state)
{
	struct fixture *x = *state;

	begin(x, 9);
	load(x, "process", 100, 0, "backup", 48, false);
	load(x, "thread", 100, 100, "backup", 48, false);
	load(x, "thread", 200, 200, "etl", 43, false);
	write_back(x, "/srv/tiny", 11, 30 * MS);
	writes(x,
		&(struct write){ RECORD_OP_fsync, "/srv/tiny", 300, 300, "tiny",
			RECORD_CAUSE_writeback, 0, 11 });
	assert_string_equal(culprit_of(x), "");
	assert_string_equal(part(x, "largest")->comm, "backup");
}

/* What it sent itself is in the time of its file, too. */
static void test_nothing_is_counted_twice(void **state)
{
	struct fixture *x = *state;

	begin(x, 40);
	load(x, "thread", 300, 300, "cp", 19, false);
	load(x, "thread", 400, 400, "other", 41, false);
	write_back(x, "/srv/copy", 11, 3900 * MS);
	write_back(x, "/srv/other", 12, 500 * MS);
	writes(x,
		&(struct write){ RECORD_OP_write, "/srv/copy", 300, 300, "cp",
			RECORD_CAUSE_dirty_throttling, 0, 11 });
	assert_string_equal(culprit_of(x), "");
}

/* The freeze was over when tracing began, and then somebody read a little for long. */
static void test_the_quiet_time_after_a_freeze(void **state)
{
	struct fixture *x = *state;
	struct record_disk quiet = loaded_sdb;
	struct record_device device = { .dev = { 8, 16 },
		.dev_name = "sdb",
		.final = true,
		.read_requests = 400,
		.read_busy_ns = 2 * NSEC_PER_SEC };
	struct record_io_by by = { .by = RECORD_BY_process,
		.dev = { 8, 16 },
		.pid = 2211,
		.comm = "mariadbd",
		.read_requests = 400,
		.busy_ns = 1950 * MS };

	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	x->now_ns = TRIGGER_NS - 4 * NSEC_PER_SEC;
	samples(x, &loaded_sdb, 5);
	quiet.util_pct = 5;
	quiet.queue = 0.1;
	quiet.read_await_ms = 2;
	samples(x, &quiet, 40);
	verdict_note_device(&x->f, &device);
	verdict_note_io_by(&x->f, &by);
	assert_string_equal(culprit_of(x), "");
}

static void read_for_others(struct fixture *x)
{
	struct record_io_by by = { .by = RECORD_BY_file,
		.dev = { 8, 16 },
		.fs_dev = { 8, 16 },
		.inode = 11,
		.path = LOG,
		.read_requests = 700,
		.bytes = 600 * MIB,
		.busy_ns = 8 * NSEC_PER_SEC,
		.inferred = true };

	verdict_note_io_by(&x->f, &by);
}

static const struct write waits_for_read = { RECORD_OP_read, LOG, 500, 500, "a", RECORD_CAUSE_page,
	0, 11 };

/* A kernel thread sends on what a limit has held back. */
static void test_reads_by_a_kernel_thread(void **state)
{
	struct write other = waits_for_read;
	struct fixture *x = *state;

	begin(x, 90);
	read_for_others(x);
	writes(x, &waits_for_read);
	assert_string_equal(culprit_of(x), "a");
	other.pid = other.tid = 600;
	writes(x, &other);
	assert_string_equal(culprit_of(x), "");
}

/* Programs read it themselves, and one of them was seen to wait. */
static void test_reads_by_programs(void **state)
{
	struct fixture *x = *state;

	begin(x, 20);
	read_for_others(x);
	writes(x, &waits_for_read);
	assert_string_equal(culprit_of(x), "");
}

/* The kernel knows the control group of what it writes back, whoever of it is still there. */
static void test_a_unit_that_wrote_before(void **state)
{
	struct record_io_by unit = { .by = RECORD_BY_cgroup,
		.dev = { 8, 16 },
		.cgroup = 4711,
		.unit = "backup.service",
		.write_requests = 400,
		.bytes = 180 * MIB,
		.uncertain = true };
	struct fixture *x = *state;

	begin(x, 90);
	write_back(x, "/srv/dump", 11, 9 * NSEC_PER_SEC);
	unit.busy_ns = (uint64_t)(0.8 * sdb_work_ns(x));
	verdict_note_io_by(&x->f, &unit);
	decide(x);
	assert_non_null(strstr(x->v.sentence,
		": backup.service probably used 80 % of the device time (400 writes, 180.0 MiB) through "
		"the kernel thread kworker/u8:2 pid 77, mostly on srv/dump"));
	assert_non_null(part(x, "culprit"));
	assert_string_equal(record_basis_text(part(x, "culprit")->basis), "inferred");

	/* Who is slowed down in writes to it says more. */
	begin(x, 90);
	write_back(x, "/srv/dump", 11, 9 * NSEC_PER_SEC);
	writes(x,
		&(struct write){ RECORD_OP_write, "/srv/dump", 500, 500, "a",
			RECORD_CAUSE_dirty_throttling, 0, 11 });
	verdict_note_io_by(&x->f, &unit);
	assert_string_equal(culprit_of(x), "a");

	/* Less than half of it says nothing. */
	begin(x, 90);
	write_back(x, "/srv/dump", 11, 9 * NSEC_PER_SEC);
	unit.busy_ns = (uint64_t)(0.3 * sdb_work_ns(x));
	verdict_note_io_by(&x->f, &unit);
	decide(x);
	assert_null(part(x, "culprit"));
	assert_null(strstr(x->v.sentence, "backup.service"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		verdict_test(test_two_writers_are_not_a_third),
		verdict_test(test_many_other_files),
		verdict_test(test_kernel_workers_together),
		verdict_test(test_another_file_of_that_name),
		verdict_test(test_another_subvolume),
		verdict_test(test_the_same_subvolume),
		verdict_test(test_who_removes_a_file_need_not_have_written_it),
		verdict_test(test_a_small_writer_is_not_the_largest),
		verdict_test(test_nothing_is_counted_twice),
		verdict_test(test_the_quiet_time_after_a_freeze),
		verdict_test(test_reads_by_a_kernel_thread),
		verdict_test(test_reads_by_programs),
		verdict_test(test_a_unit_that_wrote_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
