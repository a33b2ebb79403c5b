/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* A line for each event of an incident that is open: what is said, and what is not said again. */
#include <stdio.h>

#include "test_page_setup.h"

/* What an event adds; "" for nothing. */
static const char *tell(struct page_fixture *f, bool terminal)
{
	const struct page_style style = { .columns = 100, .terminal = terminal, .utf8 = true };

	text_reset(&f->out);
	page_add(f->page, &f->record);
	page_add_event(f->page, &style, &f->record, &f->out);
	assert_false(f->out.overflow);
	return f->buf;
}

static void assert_told(struct page_fixture *f, const char *expected)
{
	assert_string_equal(tell(f, false), expected);
}

static void begin(struct page_fixture *f)
{
	page_make_open(f);
	assert_told(f,
		"04:12:07  incident " DATA_ID
		": utilisation 97.25 %, threshold 90 %, device sdb\n");
}

static void test_a_stuck_operation_is_said_when_it_has_grown(void **state)
{
	struct page_fixture *f = *state;
	unsigned int told = 0;

	begin(f);
	for (uint64_t s = 1; s <= 60; s++) {
		page_make_operation(f, RECORD_STUCK, 2230, 0, s * 1000);
		told += *tell(f, false) != '\0';
	}
	/* At 1, 3, 6, 12, 24 and 48 s. */
	assert_int_equal(told, 6);
	page_make_operation(f, RECORD_STALL, 2230, 0, 61000);
	assert_told(f,
		"04:13:08  stall     1m01s  mariadbd[2211/2230] read /var/lib/mysql/shop/orders.ibd, "
		"waits for page, sdb\n");
	/* Another one of the same thread. */
	page_make_operation(f, RECORD_STUCK, 2230, 62000, 300);
	assert_told(f,
		"04:13:09  STUCK    300 ms  mariadbd[2211/2230] read /var/lib/mysql/shop/orders.ibd, "
		"waits for page, sdb\n");
}

static void test_the_statement_is_named(void **state)
{
	struct page_fixture *f = *state;

	begin(f);
	page_make_statement(f, 2230, 1500, 1400, "SELECT a FROM t");
	assert_told(f, "");
	page_make_operation(f, RECORD_STALL, 2230, 500, 900);
	assert_told(f,
		"04:12:08  stall    900 ms  mariadbd[2211/2230] read /var/lib/mysql/shop/orders.ibd, "
		"waits for page, sdb, ran app@localhost: SELECT a FROM t\n");
	/* A terminal has no more room than it has. */
	page_make_operation(f, RECORD_STALL, 2230, 500, 900);
	tell(f, true);
	assert_page(f, 100);
	assert_string_equal(f->buf,
		"04:12:08  stall    900 ms  mariadbd[2230] read /var/…/shop/orders.ibd, waits for page, "
		"ran SELECT a…\n");
}

static void test_what_comes_too_fast_is_counted(void **state)
{
	struct page_fixture *f = *state;
	unsigned int told = 0;

	begin(f);
	for (int32_t i = 0; i < 500; i++) {
		page_make_operation(f, RECORD_STALL, 1000 + i, 1100, 200 + (uint64_t)i);
		told += *tell(f, false) != '\0';
		page_make_operation(f, RECORD_STUCK, 2000 + i, 1000, 300);
		told += *tell(f, false) != '\0';
	}
	assert_int_equal(told, 20);
	page_make_sample(f, 2000, 50);
	assert_told(f,
		"04:12:09  and 490 more that ended, 490 more that are stuck, the longest 699 ms\n");
	page_make_sample(f, 3000, 50);
	assert_told(f, "");
	page_make_operation(f, RECORD_STALL, 1, 3000, 200);
	assert_string_not_equal(tell(f, false), "");
}

static void test_samples_are_quiet(void **state)
{
	struct page_fixture *f = *state;

	begin(f);
	page_make_sample(f, 1000, 60);
	assert_told(f, "");
	page_make_sample(f, 2000, 100);
	assert_told(f, "04:12:09  disk sdb is busy: utilisation 100 %, 12 in flight\n");
	page_make_sample(f, 3000, 70);
	assert_told(f, "");
	page_make_sample(f, 4000, 3);
	assert_told(f, "04:12:11  disk sdb is calm again: utilisation 3 %, 12 in flight\n");
}

static void make_device(struct page_fixture *f, uint64_t ms, uint64_t no_completion_ms)
{
	data_device(&f->record);
	f->record.mono_ns = AT(ms);
	f->record.device.final = false;
	f->record.device.no_completion_ns = no_completion_ms * NSEC_PER_MSEC;
}

static void test_no_completions(void **state)
{
	struct page_fixture *f = *state;

	begin(f);
	make_device(f, 2000, 1000);
	assert_told(f,
		"04:12:09  NO COMPLETIONS on sdb for 1.00 s, 12 in flight, the oldest by "
		"mariadbd[2211/2230]\n");
	make_device(f, 3000, 2000);
	assert_told(f, "");
	make_device(f, 4000, 3000);
	assert_non_null(strstr(tell(f, false), " for 3.00 s"));
	/* It completed something in between. */
	make_device(f, 8000, 1000);
	assert_non_null(strstr(tell(f, false), " for 1.00 s"));
	/* The page has the totals. */
	data_device(&f->record);
	assert_told(f, "");
}

static void test_databases_and_the_kernel(void **state)
{
	struct page_fixture *f = *state;

	begin(f);
	data_sql_silence(&f->record);
	assert_told(f,
		"04:12:09  database main does not answer for 2.00 s: Access denied for user "
		"'iostall'@'localhost'\n");
	f->record.sql.error[0] = '\0';
	f->record.sql.unanswered_ns = 0;
	f->record.sql.active = 31;
	assert_told(f, "04:12:09  database main, 31 statements active (end)\n");
	data_kernel(&f->record);
	text_copy(f->record.kernel.text, sizeof(f->record.kernel.text), "a\n\x1b[2J");
	assert_told(f, "04:12:11  kernel a\\x0a\\x1b[2J\n");
}

/* Any user can give such a name to a process or a file. */
static void test_a_verdict_with_control_characters(void **state)
{
	struct page_fixture *f = *state;
	char *sentence = f->record.verdict.sentence;

	begin(f);
	data_verdict(&f->record);
	f->record.verdict.final = false;
	text_copy(sentence, sizeof(f->record.verdict.sentence), "a\n\x1b[2J reads");
	assert_told(f, "04:12:30  so far: a\\x0a\\x1b[2J reads\n");
}

/* Who is to be blamed may stand at its end. */
static void test_a_verdict_that_is_longer_than_a_line(void **state)
{
	struct page_fixture *f = *state;
	char *sentence = f->record.verdict.sentence;

	begin(f);
	data_verdict(&f->record);
	f->record.verdict.final = false;
	text_copy(sentence, sizeof(f->record.verdict.sentence),
		"Table Lock: 12 threads of mariadbd pid 2211 were stuck, the longest for 4.20 s, "
		"behind session 31 of backup@localhost");
	assert_string_equal(tell(f, true),
		"04:12:30  so far: Table Lock: 12 threads of mariadbd pid 2211 were stuck, the "
		"longest for 4.20 s,\n          behind session 31 of backup@localhost\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_PAGE(test_a_stuck_operation_is_said_when_it_has_grown),
		WITH_PAGE(test_the_statement_is_named),
		WITH_PAGE(test_what_comes_too_fast_is_counted),
		WITH_PAGE(test_samples_are_quiet),
		WITH_PAGE(test_no_completions),
		WITH_PAGE(test_databases_and_the_kernel),
		WITH_PAGE(test_a_verdict_with_control_characters),
		WITH_PAGE(test_a_verdict_that_is_longer_than_a_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
