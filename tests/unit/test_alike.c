/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Which operations have lines of their own, and which one line stands for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "session/alike.h"
#include "util/text.h"

struct fixture {
	struct alike alike;
	struct record record;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	memset(&f->alike, 0x5a, sizeof(f->alike));
	alike_begin(&f->alike);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static struct record_operation *begin(struct fixture *f, enum record_type type)
{
	f->record = (struct record){
		.type = type,
		.real_ns = 77,
		.mono_ns = 88,
		.operation = {
			.op = RECORD_OP_write,
			.pid = 7,
			.tid = 1,
			.comm = "mariadbd",
			.exe = "/usr/sbin/mariadbd",
			.path = "/db/ib_logfile0",
			.dev = { 8, 16 },
			.inode = 131,
			.dur_ns = 1000,
		},
	};
	return &f->record.operation;
}

/* How many of so many operations have lines of their own. */
static unsigned int own_lines(struct fixture *f, unsigned int count)
{
	struct record_operation *op = &f->record.operation;
	unsigned int own = 0;

	for (unsigned int i = 0; i < count; i++, op->tid++, op->dur_ns++)
		own += !alike_merge(&f->alike, &f->record, false);
	return own;
}

/* A line stands for no failures beside successes, or the number of failures would be invented. */
static void test_failures_have_lines_of_their_own(void **state)
{
	struct fixture *f = *state;
	struct record_operation *op = begin(f, RECORD_STALL);
	const struct alike_line *line;

	op->ret = 4096;
	own_lines(f, ALIKE_OWN_LINES + 3);
	op->ret = -5;
	own_lines(f, ALIKE_OWN_LINES + 2);
	line = alike_next(&f->alike);
	assert_int_equal(line->operation.ret, 4096);
	assert_int_equal(line->operation.alike.count, 2);
	line = alike_next(&f->alike);
	assert_int_equal(line->operation.ret, -5);
	assert_int_equal(line->operation.alike.count, 1);
	assert_null(alike_next(&f->alike));
}

static void test_one_line_stands_for_the_rest(void **state)
{
	struct fixture *f = *state;
	const struct alike_line *line;

	begin(f, RECORD_STUCK);
	assert_int_equal(own_lines(f, 4212), ALIKE_OWN_LINES);
	line = alike_next(&f->alike);
	assert_non_null(line);
	assert_int_equal(line->type, RECORD_STUCK);
	assert_int_equal(line->real_ns, 77);
	assert_int_equal(line->mono_ns, 88);
	/* It is that of the first one without a line. */
	assert_int_equal(line->operation.tid, 1 + ALIKE_OWN_LINES);
	assert_string_equal(line->operation.path, "/db/ib_logfile0");
	assert_true(line->operation.alike.present);
	assert_true(line->operation.alike.same_file);
	assert_int_equal(line->operation.alike.count, 4212 - ALIKE_OWN_LINES - 1);
	assert_int_equal(line->operation.alike.own, ALIKE_OWN_LINES);
	assert_int_equal(line->operation.alike.min_ns, 1000 + ALIKE_OWN_LINES + 1);
	assert_int_equal(line->operation.alike.max_ns, 1000 + 4211);
	assert_null(alike_next(&f->alike));
	/* In the next window few have further lines, and when few are left, all have. */
	begin(f, RECORD_STUCK);
	assert_int_equal(own_lines(f, 4212), ALIKE_REPEATED_LINES);
	while (alike_next(&f->alike))
		;
	begin(f, RECORD_STUCK);
	assert_int_equal(own_lines(f, ALIKE_REPEATED_LINES), ALIKE_REPEATED_LINES);
	assert_null(alike_next(&f->alike));
	begin(f, RECORD_STUCK);
	assert_int_equal(own_lines(f, 4212), ALIKE_OWN_LINES);
}

static void test_few_have_their_own(void **state)
{
	struct fixture *f = *state;
	const struct alike_line *line;

	begin(f, RECORD_STALL);
	assert_int_equal(own_lines(f, ALIKE_OWN_LINES), ALIKE_OWN_LINES);
	assert_null(alike_next(&f->alike));
	/* A line that stands for nobody else says so. */
	own_lines(f, ALIKE_OWN_LINES + 1);
	line = alike_next(&f->alike);
	assert_non_null(line);
	assert_false(line->operation.alike.present);
	assert_null(alike_next(&f->alike));
}

static void change(struct record_operation *op, unsigned int what)
{
	switch (what) {
	case 0:
		op->op = RECORD_OP_read;
		break;
	case 1:
		op->dev.minor = 17;
		break;
	case 2:
		op->waits_for = RECORD_CAUSE_journal_commit;
		break;
	case 3:
		text_copy(op->exe, sizeof(op->exe), "/usr/bin/tar");
		break;
	case 4:
		op->exe[0] = '\0';
		break;
	default:
		op->probe = RECORD_PROBE_wait;
		break;
	}
}

static void test_what_differs_is_not_alike(void **state)
{
	struct fixture *f = *state;

	begin(f, RECORD_STUCK);
	own_lines(f, 2 * ALIKE_OWN_LINES);
	for (unsigned int what = 0; what < 6; what++) {
		change(begin(f, RECORD_STUCK), what);
		assert_int_equal(own_lines(f, 3), 3);
	}
	begin(f, RECORD_STALL);
	assert_int_equal(own_lines(f, 3), 3);
	/* Another process of the same program is. */
	begin(f, RECORD_STUCK)->pid = 8;
	assert_int_equal(own_lines(f, 3), 0);
}

/* Thousands of threads may be stuck in as many files. */
static void test_files_are_not_told_apart(void **state)
{
	struct fixture *f = *state;
	struct record_operation *op = begin(f, RECORD_STUCK);
	unsigned int own = 0;

	for (unsigned int i = 0; i < 3000; i++, op->inode++)
		own += !alike_merge(&f->alike, &f->record, false);
	assert_int_equal(own, ALIKE_OWN_LINES);
	assert_false(alike_next(&f->alike)->operation.alike.same_file);
}

/* Whoever has had a `stuck` line has one that says how long it took in the end. */
static void test_an_operation_that_was_stuck_has_its_stall(void **state)
{
	struct fixture *f = *state;

	begin(f, RECORD_STALL);
	own_lines(f, 2 * ALIKE_OWN_LINES);
	begin(f, RECORD_STALL)->tid = 9999;
	assert_false(alike_merge(&f->alike, &f->record, true));
	assert_true(alike_merge(&f->alike, &f->record, false));
}

static void test_without_room_there_are_lines(void **state)
{
	struct fixture *f = *state;

	for (unsigned int i = 0; i < ALIKE_LINES_MAX + 3; i++) {
		begin(f, RECORD_STALL)->dev.minor = 1000 + i;
		assert_int_equal(own_lines(f, ALIKE_OWN_LINES + 5),
			i < ALIKE_LINES_MAX ? ALIKE_OWN_LINES : ALIKE_OWN_LINES + 5);
	}
	for (unsigned int i = 0; i < 2 * ALIKE_KINDS_MAX; i++) {
		begin(f, RECORD_STALL)->dev.minor = 10000 + i;
		assert_int_equal(own_lines(f, 1), 1);
	}
	for (unsigned int i = 0; i < ALIKE_LINES_MAX; i++)
		assert_non_null(alike_next(&f->alike));
	assert_null(alike_next(&f->alike));
}

#define alike_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		alike_test(test_one_line_stands_for_the_rest),
		alike_test(test_failures_have_lines_of_their_own),
		alike_test(test_few_have_their_own),
		alike_test(test_what_differs_is_not_alike),
		alike_test(test_files_are_not_told_apart),
		alike_test(test_an_operation_that_was_stuck_has_its_stall),
		alike_test(test_without_room_there_are_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
