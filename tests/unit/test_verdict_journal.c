/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* What the verdict says of a journal that threads waited for. */
#include "test_verdict_setup.h"

static void journal(struct fixture *x, const struct record_journal *like)
{
	struct record_journal j = *like;

	j.dev = (struct record_dev){ 8, 17 };
	text_copy(j.dev_name, sizeof(j.dev_name), "sdb1");
	verdict_note_journal(&x->f, &j);
}

static void begin(struct fixture *x, const char *waits_for)
{
	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	samples(x, &loaded_sdb, 10);
	operation(x, 2230, waits_for, 4200 * MS, true);
}

static void test_a_long_commit(void **state)
{
	static const struct {
		struct record_journal journal;
		const char *clause;
	} cases[] = {
		{ { .commits = 2,
			  .longest_ns = 3100 * MS,
			  .longest_blocks = 17,
			  .pid = 7,
			  .comm = "rm",
			  .share_pct = 60 },
			"; a commit of the journal on sdb took up to 3.10 s for 17 blocks of metadata" },
		{ { .commits = 2,
			  .longest_ns = 3100 * MS,
			  .longest_blocks = 1,
			  .longest_data_pct = 95 },
			"; a commit of the journal on sdb took up to 3.10 s for 1 block of metadata, "
			"95 % of it to write the data of files first" },
		{ { .commits = 2,
			  .longest_ns = 3100 * MS,
			  .longest_blocks = 4000,
			  .pid = 7,
			  .comm = "rm",
			  .share_pct = 91.5 },
			"; a commit of the journal on sdb took up to 3.10 s for 4000 blocks of "
			"metadata; rm pid 7 changed 92 % of the metadata" },
		{ { .commits = 1, .longest_ns = 400 * MS, .early_ns = 6200 * MS },
			"; a commit of the journal on sdb took at least 6.20 s" },
		{ { .under_way_ns = 5 * NSEC_PER_SEC },
			"; a commit of the journal on sdb took at least 5.00 s" },
	};
	struct fixture *x = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		begin(x, "journal commit");
		journal(x, &cases[i].journal);
		decide(x);
		assert_non_null(strstr(x->v.sentence, cases[i].clause));
		assert_string_equal(part(x, "journal")->text, cases[i].clause + strlen("; "));
	}
}

static void test_nobody_waited_for_it(void **state)
{
	static const struct record_journal longest = { .commits = 2,
		.longest_ns = 3100 * MS,
		.longest_blocks = 17 },
					   quick = { .commits = 2,
						   .longest_ns = 200 * MS,
						   .longest_blocks = 17 };
	struct fixture *x = *state;

	begin(x, "page");
	journal(x, &longest);
	decide(x);
	assert_null(part(x, "journal"));
	begin(x, "journal commit");
	journal(x, &quick);
	decide(x);
	assert_null(part(x, "journal"));
	assert_null(strstr(x->v.sentence, "journal on"));
}

/* A thread that wrote or flushed, and had that part of the device's time. */
static void sent(struct fixture *x, int32_t pid, const char *comm, double share_pct,
	uint64_t writes, uint64_t flushes, bool kernel)
{
	struct record_io_by b = { .by = RECORD_BY_thread,
		.dev = { 8, 16 },
		.dev_name = "sdb",
		.pid = pid,
		.tid = pid,
		.requests = writes + flushes,
		.write_requests = writes,
		.flush_requests = flushes,
		.bytes = writes * 4096,
		.busy_ns = (uint64_t)(share_pct / 100 * sdb_work_ns(x)),
		.busy_share_pct = share_pct,
		.inferred = kernel };

	text_copy(b.comm, sizeof(b.comm), comm);
	verdict_note_io_by(&x->f, &b);
	b.by = RECORD_BY_process;
	verdict_note_io_by(&x->f, &b);
}

static void commits(struct fixture *x, int32_t pid, uint32_t processes, double share_pct)
{
	struct record_journal j = { .commits = 170,
		.commit_ns = 5 * NSEC_PER_SEC,
		.longest_ns = 103 * MS,
		.longest_blocks = 1,
		.blocks = 200,
		.pid = pid,
		.comm = "logger",
		.processes = processes,
		.share_pct = share_pct };

	verdict_begin(&x->f, TRIGGER_NS, 100 * MS);
	samples(x, &loaded_sdb, 10);
	totals(x, 900, 3 * MIB, 40 * MS);
	operation(x, 2230, "journal commit", 900 * MS, true);
	journal(x, &j);
}

/* A program syncs each line of its log: the commits of the journal are its work. */
static void test_who_has_it_committed(void **state)
{
	const struct record_operation own = { .op = RECORD_OP_write,
		.probe = RECORD_PROBE_wait,
		.pid = 72,
		.tid = 72,
		.comm = "logger",
		.dev = { 8, 17 },
		.dev_name = "sdb1",
		.start_mono_ns = TRIGGER_NS,
		.dur_ns = 900 * MS,
		.waits_for = RECORD_CAUSE_journal_commit };
	struct fixture *x = *state;

	commits(x, 71, 1, 98);
	sent(x, 300, "jbd2/sdb1-8", 54, 340, 170, true);
	sent(x, 44, "kworker/1:1H", 6, 170, 150, true);
	sent(x, 71, "logger", 32, 176, 0, false);
	sent(x, 2211, "mariadbd", 5, 9, 3, false);
	decide(x);
	assert_string_equal(record_class_text(x->v.class), "saturated");
	assert_int_equal(part(x, "culprit")->pid, 71);
	assert_non_null(
		strstr(x->v.sentence, "logger pid 71 probably used 91 % of the device time"));
	assert_non_null(strstr(x->v.sentence, "through the kernel thread jbd2/sdb1-8 pid 300"));
	assert_non_null(strstr(x->v.sentence, "1 other thread waited 900 ms"));
	/* Several of one name. */
	commits(x, 0, 3, 98);
	sent(x, 300, "jbd2/sdb1-8", 54, 340, 170, true);
	for (int pid = 71; pid < 74; pid++)
		sent(x, pid, "logger", 13, 60, 0, false);
	verdict_note_operation(&x->f, &own, true);
	decide(x);
	assert_non_null(strstr(x->v.sentence,
		"3 processes of logger probably used 92 % of the device time (513 writes, 166 "
		"flushes, 2.0 MiB) through the kernel thread jbd2/sdb1-8 pid 300"));
	assert_non_null(strstr(x->v.sentence, "1 other thread waited 900 ms"));
}

/* Whoever changes metadata while others sync theirs does not have it committed. */
static void test_who_does_not_have_it_committed(void **state)
{
	struct fixture *x = *state;

	commits(x, 71, 1, 98);
	sent(x, 300, "jbd2/sdb1-8", 54, 340, 170, true);
	sent(x, 71, "logger", 32, 20, 0, false);
	decide(x);
	assert_null(part(x, "culprit"));
	/* The journal of another file system of the disk is not its work. */
	commits(x, 71, 1, 98);
	sent(x, 300, "jbd2/sdb2-8", 54, 340, 170, true);
	sent(x, 44, "kworker/1:1H", 20, 170, 170, true);
	sent(x, 301, "jbd2/sdb1-8", 2, 340, 170, true);
	sent(x, 71, "logger", 22, 176, 0, false);
	decide(x);
	assert_null(part(x, "culprit"));
	/* What the journal thread writes of a file is the work of whoever wrote that. */
	for (unsigned int part_pct = 20; part_pct <= 40; part_pct += 20) {
		struct record_io_by file = { .by = RECORD_BY_file,
			.dev = { 8, 16 },
			.fs_dev = { 8, 17 },
			.inode = 12,
			.path = "/base/5/16388",
			.write_requests = 100,
			.bytes = 90 * MIB,
			.inferred = true };

		commits(x, 71, 1, 98);
		sent(x, 300, "jbd2/sdb1-8", 54, 340, 170, true);
		sent(x, 71, "logger", 32, 176, 0, false);
		file.busy_ns = (uint64_t)(part_pct / 100.0 * sdb_work_ns(x));
		verdict_note_io_by(&x->f, &file);
		decide(x);
		assert_true((part(x, "culprit") != NULL) == (part_pct < 27));
	}
	/* Nor does who is less than half of it all. */
	commits(x, 71, 1, 50);
	sent(x, 300, "jbd2/sdb1-8", 54, 340, 170, true);
	sent(x, 71, "logger", 20, 176, 0, false);
	decide(x);
	assert_null(part(x, "culprit"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		verdict_test(test_a_long_commit),
		verdict_test(test_nobody_waited_for_it),
		verdict_test(test_who_has_it_committed),
		verdict_test(test_who_does_not_have_it_committed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
