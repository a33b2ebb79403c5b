/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A page and the record that it is given next, for the tests of the page.
 * Included by tests/unit/test_page*.c only.
 * Never depends on the host's clock or time zone.
 */
#ifndef IOSTALL_TEST_PAGE_SETUP_H
#define IOSTALL_TEST_PAGE_SETUP_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <time.h>

#include "page/page.h"
#include "test_record_data.h"

#define AT(ms) (DATA_MONO_NS + (uint64_t)(ms)*NSEC_PER_MSEC)

struct page_fixture {
	struct page *page;
	struct record record;
	struct text out;
	char buf[PAGE_TEXT_SIZE];
};

static inline int page_setup(void **state)
{
	struct page_fixture *f = calloc(1, sizeof(*f));

	setenv("TZ", "CET-1", 1);
	tzset();
	f->out = TEXT_ON(f->buf);
	*state = f;
	return page_new(&f->page);
}

static inline int page_teardown(void **state)
{
	struct page_fixture *f = *state;

	page_free(f->page);
	free(f);
	return 0;
}

static inline void page_make_open(struct page_fixture *f)
{
	data_open(&f->record);
}

static inline struct record_operation *page_make_operation(struct page_fixture *f,
	enum record_type type, int32_t tid, uint64_t start_ms, uint64_t ms)
{
	data_operation(&f->record, type);
	f->record.mono_ns = AT(start_ms + ms);
	f->record.operation.tid = tid;
	f->record.operation.start_mono_ns = AT(start_ms);
	f->record.operation.dur_ns = ms * NSEC_PER_MSEC;
	f->record.operation.since = RECORD_SINCE_after_arm;
	f->record.operation.connection_id = 0;
	return &f->record.operation;
}

static inline void page_make_sample(struct page_fixture *f, uint64_t ms, double util_pct)
{
	data_sample(&f->record);
	f->record.sample.before_trigger = false;
	f->record.mono_ns = f->record.sample.reading.mono_ns = AT(ms);
	f->record.sample.reading.devices[0].util_pct = util_pct;
	f->record.sample.reading.devices[0].no_completion_ns = 0;
	f->record.sample.reading.health.present = f->record.sample.reading.sql.present = false;
}

static inline void page_make_close(struct page_fixture *f, uint64_t ms)
{
	data_close(&f->record);
	f->record.mono_ns = AT(ms);
	f->record.close.duration_ns = ms * NSEC_PER_MSEC;
	memset(f->record.close.lost, 0, sizeof(f->record.close.lost));
}

static inline void page_make_statement(struct page_fixture *f, int32_t tid, uint64_t ms,
	uint64_t elapsed_ms, const char *text)
{
	data_sql(&f->record);
	f->record.mono_ns = AT(ms);
	f->record.sql.background = false;
	f->record.sql.leader_pid = 0;
	f->record.sql.tid = tid;
	f->record.sql.connection_id = (uint64_t)tid;
	f->record.sql.elapsed_ns = elapsed_ms * NSEC_PER_MSEC;
	text_copy(f->record.sql.text, sizeof(f->record.sql.text), text);
}

/* No byte but of printable characters, and no line wider than the page. */
static inline void assert_page(const struct page_fixture *f, unsigned int columns)
{
	unsigned int width = 0;

	assert_false(f->out.overflow);
	for (size_t i = 0; i < f->out.len; i++) {
		unsigned char c = (unsigned char)f->buf[i];

		assert_true(c == '\n' || c >= 0x20);
		assert_int_not_equal(c, 0x7f);
		width = c == '\n' ? 0 : width + ((c & 0xc0) != 0x80);
		assert_in_range(width, 0, columns);
	}
}

#define WITH_PAGE(test) cmocka_unit_test_setup_teardown(test, page_setup, page_teardown)

/* Gives the page the record that was made. */
static inline void add(struct page_fixture *f)
{
	page_add(f->page, &f->record);
}

static inline void add_open(struct page_fixture *f)
{
	page_make_open(f);
	add(f);
}

static inline void print(struct page_fixture *f, unsigned int columns)
{
	const struct page_style style = { .columns = columns, .utf8 = true };

	text_reset(&f->out);
	page_print(f->page, &style, false, &f->out);
	assert_page(f, columns);
}

static inline unsigned int lines(const struct page_fixture *f)
{
	unsigned int count = 0;

	for (size_t i = 0; i < f->out.len; i++)
		count += f->buf[i] == '\n';
	return count;
}

static inline void assert_has(const struct page_fixture *f, const char *expected)
{
	if (!strstr(f->buf, expected))
		fail_msg("no \"%s\" in:\n%s", expected, f->buf);
}

static inline void assert_lacks(const struct page_fixture *f, const char *unexpected)
{
	if (strstr(f->buf, unexpected))
		fail_msg("\"%s\" in:\n%s", unexpected, f->buf);
}

#endif
