/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* An incident as one page: what is said first, what is folded, and that it stays a page. */
#include <stdio.h>

#include "test_page_setup.h"
#include "util/cleanup.h"

static void add_stall(struct page_fixture *f, int32_t tid, uint64_t start_ms, uint64_t ms)
{
	page_make_operation(f, RECORD_STALL, tid, start_ms, ms);
	add(f);
}

static void add_stuck(struct page_fixture *f, int32_t tid, uint64_t start_ms, uint64_t ms)
{
	page_make_operation(f, RECORD_STUCK, tid, start_ms, ms);
	add(f);
}

static void add_sample(struct page_fixture *f, uint64_t ms, double util_pct)
{
	page_make_sample(f, ms, util_pct);
	add(f);
}

static void add_close(struct page_fixture *f, uint64_t ms)
{
	page_make_close(f, ms);
	add(f);
}

static void add_sql(struct page_fixture *f, int32_t tid, uint64_t ms, uint64_t elapsed_ms,
	const char *text)
{
	page_make_statement(f, tid, ms, elapsed_ms, text);
	add(f);
}

static void test_what_is_said_first(void **state)
{
	struct page_fixture *f = *state;

	add_open(f);
	add_sample(f, 1000, 100);
	add_stall(f, 2230, 500, 900);
	data_verdict(&f->record);
	add(f);
	add_close(f, 4000);
	print(f, 100);
	assert_memory_equal(f->buf, "VERDICT: saturated (measured)\n", 30);
	assert_has(f, "\nincident  " DATA_ID " on db1\n");
	assert_has(f,
		"\nwhen      2026-11-20 04:12:07.123 +01:00, for 4.00 s, ended when all was clear again\n");
	assert_has(f, "\ntrigger   utilisation 97.25 %, threshold 90 %, device sdb\n");
	assert_has(f, "\nstalls    1 of 100 ms or longer, the longest 900 ms\n");
	assert_has(f, "\n  04:12:07  ");
	assert_has(f, "  trigger\n");
	assert_has(f, "  1 ended, closed\n");
	assert_has(f, "; nothing lost; cost 12 ms of CPU, 20.0 MiB\n");
	assert_lacks(f, "incomplete");
}

static void test_without_verdict_and_close(void **state)
{
	const struct page_style style = { .columns = 100 };
	struct page_fixture *f = *state;

	add_open(f);
	add_stall(f, 2230, 500, 900);
	print(f, 100);
	assert_memory_equal(f->buf, "VERDICT: none yet\n", 18);
	assert_has(f, "\nincomplete: the recorder was killed\n");
	text_reset(&f->out);
	page_print(f->page, &style, true, &f->out);
	assert_has(f, "\nincomplete: still being written\n");
}

static void test_an_open_line_alone(void **state)
{
	struct page_fixture *f = *state;

	print(f, 100);
	assert_string_equal(f->buf, "");
	add_open(f);
	print(f, 100);
	assert_has(f, "\nstalls    0 of 100 ms or longer\n");
}

/* However often a line says that it is stuck, it is one operation. */
static void test_a_stuck_operation_is_one_line(void **state)
{
	struct page_fixture *f = *state;

	add_open(f);
	for (uint64_t s = 1; s <= 20; s++) {
		add_stuck(f, 2230, 0, s * 1000);
		add_stuck(f, 2231, 0, s * 1000);
		add_sample(f, s * 1000, 100);
	}
	print(f, 100);
	assert_has(f, "; 2 more have not returned (20.00 s)\n");
	assert_has(f, "\n            2    STUCK 20.00 s  mariadbd[2211]");
	add_stall(f, 2230, 0, 21500);
	add_close(f, 22000);
	print(f, 100);
	assert_has(f,
		"\nstalls    1 of 100 ms or longer, the longest 21.50 s; 1 more did not return");
	assert_has(f, "\n            1    STUCK 22.00 s  ");
	assert_has(f, "\n            2  41.50 s 21.50 s  ");
}

/* A line that stands for many counts for all of them, while they hang and when they return. */
static void test_one_line_stands_for_many(void **state)
{
	struct page_fixture *f = *state;

	add_open(f);
	for (uint64_t s = 1; s <= 3; s++) {
		add_stuck(f, 2230, 0, s * 1000);
		page_make_operation(f, RECORD_STUCK, 2231, 0, s * 1000)->alike =
			(struct record_alike){ true, 2998, s * 1000 * NSEC_PER_MSEC - 5,
				s * 1000 * NSEC_PER_MSEC, 2998 * s * 1000 * NSEC_PER_MSEC, true,
				1 };
		add(f);
		add_sample(f, s * 1000, 100);
	}
	print(f, 100);
	assert_has(f, "; 3000 more have not returned (3.00 s)\n");
	assert_has(f, "\n         3000    STUCK  3.00 s  mariadbd[2211]");
	add_stall(f, 2230, 0, 3500);
	page_make_operation(f, RECORD_STALL, 2232, 0, 3500)->alike =
		(struct record_alike){ true, 2997, 3400 * NSEC_PER_MSEC, 3600 * NSEC_PER_MSEC,
			2997 * 3500 * NSEC_PER_MSEC, true, 1 };
	add(f);
	print(f, 100);
	assert_has(f,
		"\nstalls    2999 of 100 ms or longer, the longest 3.60 s; 1 more have not returned (3.50 s)\n");
	assert_has(f, "\n         3000    2h55m  3.60 s  ");
	/* The last one was not heard of again. */
	for (uint64_t s = 4; s <= 12; s++)
		add_sample(f, s * 1000, 10);
	add_close(f, 13000);
	print(f, 100);
	assert_lacks(f, "STUCK");
	assert_lacks(f, "did not return");
}

/* Its thread and start are not known: it is none of those that are stuck. */
static void test_a_stall_without_start_ends_no_stuck_operation(void **state)
{
	struct page_fixture *f = *state;

	add_open(f);
	add_stuck(f, 2230, 0, 20000);
	add_stuck(f, 2231, 0, 20000);
	page_make_operation(f, RECORD_STALL, 0, 20000, 200);
	f->record.operation.start_mono_ns = 0;
	page_add(f->page, &f->record);
	print(f, 100);
	assert_has(f, "; 2 more have not returned (20.20 s)\n");
}

/* Nobody saw it return, and no line says that it is still there. */
static void test_a_missed_return_is_not_stuck_for_ever(void **state)
{
	struct page_fixture *f = *state;

	add_open(f);
	add_stuck(f, 2230, 0, 400);
	for (uint64_t s = 1; s <= 9; s++)
		add_sample(f, s * 1000, 10);
	add_close(f, 10000);
	print(f, 100);
	assert_lacks(f, "STUCK");
	assert_has(f, "\n            1   400 ms  400 ms  mariadbd[2211]");
}

static void test_what_happened(void **state)
{
	struct page_fixture *f = *state;

	add_open(f);
	for (uint64_t s = 1; s <= 4; s++) {
		page_make_sample(f, s * 1000, s < 4 ? 100 : 20);
		f->record.sample.reading.devices[0].no_completion_ns = s < 4 ? s * NSEC_PER_SEC : 0;
		add(f);
	}
	page_make_operation(f, RECORD_STALL, 1, 1000, 3500)->waits_for =
		RECORD_CAUSE_frozen_file_system;
	add(f);
	data_kernel(&f->record);
	add(f);
	print(f, 100);
	assert_has(f,
		"  04:12:07  █████ 100 %      74 %  40 %        3  trigger, NO COMPLETIONS for ");
	assert_has(f, "  NO COMPLETIONS for 3.00 s\n");
	assert_has(f, "  completes again\n");
	assert_has(f, "  thawed, 1 ended, 1 kernel log line\n");
	assert_has(f, "\nkernel    nvme nvme0: I/O 12 QID 3 timeout, aborting\n");
}

static void add_calm_sample(struct page_fixture *f, uint64_t s)
{
	page_make_sample(f, s * 1000, 1);
	f->record.sample.reading.psi.io.some_pct = 0;
	f->record.sample.limits.stopped.present = false;
	f->record.sample.limits.cpu_limits_count = 0;
}

/* A freeze in which nothing is on a disk is not quiet. */
static void test_who_waits_without_a_disk(void **state)
{
	struct page_fixture *f = *state;

	add_open(f);
	for (uint64_t s = 1; s <= 9; s++) {
		add_calm_sample(f, s);
		if (s == 5 || s == 6)
			f->record.sample.reading.sql = (struct record_sql_activity){ true,
				.in_state = 8, .connections_pct = s == 6 ? 100 : 50 };
		if (s == 7)
			f->record.sample.limits.stopped = (struct record_stopped){ true, .pid = 1,
				.stopped_ns = 2 * NSEC_PER_SEC };
		f->record.sample.limits.cpu_limits_count = s == 9;
		f->record.sample.limits.cpu_limits[0].held_back_pct = 95.4;
		add(f);
		if (s != 1 && s != 4)
			continue;
		data_lock(&f->record);
		f->record.mono_ns = AT(s * 1000);
		f->record.lock_wait.kind = RECORD_KERNEL_LOCK_mutex;
		f->record.lock_wait.longest_ns = s * NSEC_PER_SEC;
		add(f);
		/* Those who wait for it are stuck, and counted there. */
		f->record.lock_wait.kind = RECORD_KERNEL_LOCK_memory_map;
		add(f);
	}
	data_lock(&f->record);
	f->record.mono_ns = AT(8000);
	f->record.lock_wait.kind = RECORD_KERNEL_LOCK_pipe;
	f->record.lock_wait.waiters = 1;
	f->record.lock_wait.longest_ns = NSEC_PER_SEC;
	add(f);
	print(f, 100);
	assert_has(f, "  trigger, 16 waiting for a lock (1.00 s)\n");
	assert_has(f, "  some waiting for a lock (2.00 s)\n");
	assert_has(f, "  some waiting for a lock (3.00 s)\n");
	assert_has(f, "  16 waiting for a lock (4.00 s)\n");
	assert_has(f, "  8 waiting in a database\n");
	assert_has(f, "  all connections used, 8 waiting in a database\n");
	assert_has(f, "  stopped for 2.00 s\n");
	assert_has(f, "  1 waiting for a reader (1.00 s)\n");
	assert_has(f, "  CPU limit holds back 95 %\n");
	assert_lacks(f, "quiet for");
	assert_lacks(f, "some waiting for a reader");
	/* A damaged record: as if somebody had waited for ever. */
	f->record.mono_ns = AT(7000);
	f->record.lock_wait.longest_ns = UINT64_MAX;
	add(f);
	print(f, 100);
	assert_has(f, "  some waiting for a reader (");
}

static void test_groups(void **state)
{
	struct page_fixture *f = *state;

	add_open(f);
	for (int32_t i = 0; i < 10; i++)
		add_stall(f, 3000 + i, 1000, 200 + 10 * (uint64_t)i);
	page_make_operation(f, RECORD_STALL, 1, 1000, 5000)->path[0] = '\0';
	f->record.operation.waits_for = RECORD_CAUSE_NONE;
	add(f);
	page_make_operation(f, RECORD_STALL, 2, 1000, 300)->ret = -5;
	f->record.operation.waits_for = RECORD_CAUSE_journal_commit;
	add(f);
	print(f, 100);
	assert_has(f,
		"\n           10   2.45 s  290 ms  mariadbd[2211]        read  /var/…/orders.ibd  page, sdb\n");
	/* What the kernel calls it, when it is not known what that means. */
	assert_has(f,
		"  5.00 s  mariadbd[2211]        read  -                  folio_wait_bit_common\n");
	assert_has(f, "  read  /var/…/orders.ibd  journal commit, sdb\n");
	page_make_operation(f, RECORD_STALL, 3, 1000, 300)->waits_for =
		RECORD_CAUSE_frozen_file_system;
	add(f);
	page_make_operation(f, RECORD_STUCK, 4, 5000, 900)->waits_for = RECORD_CAUSE_journal_commit;
	add(f);
	/* The disk's name is left out rather than cut. */
	print(f, 100);
	assert_has(f, "  frozen file system\n");
	assert_has(f, "STUCK  1.00 s  mariadbd[2211]        read  /var/…/orders.ibd  ");
}

static void add_many(struct page_fixture *f, unsigned int count, unsigned int files)
{
	static const enum record_cause causes[] = { RECORD_CAUSE_device,
		RECORD_CAUSE_journal_commit, RECORD_CAUSE_request_slot };
	static const enum record_op ops[] = { RECORD_OP_read, RECORD_OP_write, RECORD_OP_fsync };
	unsigned int seed = 7;

	for (unsigned int i = 0; i < count; i++) {
		struct record_operation *o =
			page_make_operation(f, RECORD_STALL, 1000 + rand_r(&seed) % 64,
				i * 50000ULL / count, 100 + (unsigned int)rand_r(&seed) % 900);

		snprintf(o->path, sizeof(o->path), "/var/lib/mysql/shop/t%u.ibd",
			(unsigned int)rand_r(&seed) % files);
		o->waits_for = causes[rand_r(&seed) % 3];
		o->op = ops[rand_r(&seed) % 3];
		add(f);
		if (i % (count / 50 + 1) == 0)
			add_sample(f, i * 50000ULL / count, 100);
	}
}

/* All that a page may have, at the most. */
static void fill(struct page_fixture *f, unsigned int count, unsigned int files)
{
	add_open(f);
	for (unsigned int i = 60; i > 0; i--) {
		add_sample(f, 0, 3);
		data_sample(&f->record);
		f->record.mono_ns = f->record.sample.reading.mono_ns =
			DATA_MONO_NS - i * NSEC_PER_SEC / 16;
		add(f);
	}
	for (unsigned int i = 0; i < 64; i++)
		add_sql(f, (int32_t)(1000 + i), 52000, 51000 + i,
			i % 2 ? "SELECT a FROM t WHERE id IN (1, 2)" : "UPDATE t SET n = 'x'");
	for (unsigned int i = 0; i < 64; i++) {
		char text[64];

		snprintf(text, sizeof(text), "SELECT c FROM t%c%c", 'a' + i % 26, 'a' + i / 26);
		add_sql(f, (int32_t)(2000 + i), 52000, 50000 + i, text);
	}
	add_many(f, count, files);
	for (unsigned int i = 0; i < 300; i++)
		add_stuck(f, (int32_t)(5000 + i), 30000, 20000);
	for (unsigned int i = 0; i < 12; i++) {
		data_device(&f->record);
		f->record.device.dev.minor = 16 * i;
		snprintf(f->record.device.dev_name, RECORD_DISK_NAME_SIZE, "sd%c", 'a' + i);
		snprintf(f->record.device.below, RECORD_LIST_SIZE, i % 4 < 2 ? "sd%c1\nsd%c" : "",
			'c' + i % 8, 'd' + i % 8);
		add(f);
		for (unsigned int k = 0; k < 10; k++) {
			data_io_by(&f->record);
			f->record.io_by.dev.minor = 16 * i;
			f->record.io_by.by = k % 2 ? RECORD_BY_file : RECORD_BY_process;
			f->record.io_by.rank = k / 2 + 1;
			add(f);
		}
	}
	for (unsigned int i = 0; i < 12; i++) {
		data_offcpu(&f->record);
		f->record.offcpu.pid = (int32_t)i + 1;
		add(f);
	}
	data_verdict(&f->record);
	while (f->record.verdict.parts_count < RECORD_PARTS_MAX) {
		struct record_verdict *v = &f->record.verdict;

		v->parts[v->parts_count] = v->parts[0];
		v->parts[v->parts_count++].what = RECORD_WHAT_kernel;
	}
	memset(f->record.verdict.sentence, 'a', RECORD_SENTENCE_SIZE - 1);
	add(f);
	add_close(f, 55000);
}

static void test_twenty(void **state)
{
	struct page_fixture *f = *state;

	fill(f, 20, 3);
	print(f, 100);
	assert_has(f, "\nstalls    20 of 100 ms or longer, ");
	assert_in_range(lines(f), 20, 90);
}

static void test_twenty_thousand(void **state)
{
	struct page_fixture *f = *state;

	fill(f, 20000, 5000);
	print(f, 100);
	assert_has(f, "\nstalls    20000 of 100 ms or longer, ");
	assert_in_range(lines(f), 40, 90);
	assert_has(f, "ran app@localhost: ");
	for (unsigned int columns = 40; columns <= 200; columns += 20)
		print(f, columns);
	assert_has(f, "VERDICT");
}

/* What differs in literals only is one, and each connection counts once. */
static void test_statements_fold(void **state)
{
	struct page_fixture *f = *state;

	add_open(f);
	add_sql(f, 11, 1000, 500, "SELECT * FROM t  WHERE id = 17 AND a = 'x''y'");
	add_sql(f, 12, 1000, 700, "select * from t where id=4711 and a = '\\'z'");
	add_sql(f, 12, 2000, 900, "select * from t where id=4711 and a = '\\'z'");
	add_sql(f, 13, 2000, 300, "SELECT * FROM t2 WHERE id = 17");
	add_sql(f, 14, 2000, 200, "INSERT INTO t VALUES (1, 2, 3)");
	add_sql(f, 15, 2000, 100, "INSERT INTO t VALUES (1)");
	print(f, 100);
	assert_has(f, "  900 ms  2 connections app@localhost/shop tid 12  select");
	assert_has(f, "  300 ms  app@localhost/shop tid 13  SELECT * FROM t2");
	assert_has(f, "  200 ms  2 connections app@localhost/shop tid 14  INSERT");
}

static void test_a_database_that_does_not_answer(void **state)
{
	struct page_fixture *f = *state;

	add_open(f);
	data_sql_silence(&f->record);
	add(f);
	print(f, 100);
	assert_has(f, "NO ANSWER for 2.00 s: Access denied");
}

static void test_what_is_lost(void **state)
{
	struct page_fixture *f = *state;

	add_open(f);
	data_close(&f->record);
	add(f);
	print(f, 100);
	assert_has(f, "\nLOST      return_missed 2\n");
	assert_lacks(f, "nothing lost");
	assert_has(f, "1 of 2 I/O paths seen; NOT SEEN: fsync");
}

static void test_text_from_outside(void **state)
{
	struct page_fixture *f = *state;
	unsigned int seed = 42;

	for (unsigned int round = 0; round < 30; round++) {
		static const unsigned int widths[] = { 40, 73, 100, 200 };

		data_random(&f->record, RECORD_OPEN, &seed);
		add(f);
		for (unsigned int i = 0; i < 60; i++) {
			data_random(&f->record, i % RECORD_TYPE_COUNT, &seed);
			if (f->record.type != RECORD_OPEN)
				add(f);
		}
		text_reset(&f->out);
		page_print(f->page, &(struct page_style){ .columns = widths[round % 4] }, false,
			&f->out);
		assert_false(f->out.overflow);
		for (size_t i = 0; i < f->out.len; i++)
			assert_true((unsigned char)f->buf[i] >= 0x20 || f->buf[i] == '\n');
	}
}

/* An incident of hours has larger rows, and a clock that jumps does not make it one of years. */
static void test_a_long_incident(void **state)
{
	struct page_fixture *f = *state;

	add_open(f);
	for (uint64_t s = 1; s < 4 * 3600; s += 5)
		add_sample(f, s * 1000, s % 100 < 50 ? 100 : 60);
	print(f, 100);
	assert_in_range(lines(f), 10, 30);
	f->record.sample.reading.mono_ns = UINT64_MAX - 1;
	add(f);
	print(f, 100);
	assert_in_range(lines(f), 10, 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_PAGE(test_what_is_said_first),
		WITH_PAGE(test_without_verdict_and_close),
		WITH_PAGE(test_an_open_line_alone),
		WITH_PAGE(test_a_stuck_operation_is_one_line),
		WITH_PAGE(test_one_line_stands_for_many),
		WITH_PAGE(test_a_stall_without_start_ends_no_stuck_operation),
		WITH_PAGE(test_a_missed_return_is_not_stuck_for_ever),
		WITH_PAGE(test_what_happened),
		WITH_PAGE(test_who_waits_without_a_disk),
		WITH_PAGE(test_groups),
		WITH_PAGE(test_twenty),
		WITH_PAGE(test_twenty_thousand),
		WITH_PAGE(test_statements_fold),
		WITH_PAGE(test_a_database_that_does_not_answer),
		WITH_PAGE(test_what_is_lost),
		WITH_PAGE(test_text_from_outside),
		WITH_PAGE(test_a_long_incident),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
