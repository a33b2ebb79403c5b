/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* One incident as an HTML file: what is in it, and that no text of a record is more than text. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"
#include "test_record_data.h"
#include "util/cleanup.h"

#define HOSTILE "</script><img src=x onerror=alert(1)>"
#define SIZE_MAX_OF_PAGE (1 << 20)

struct page {
	struct report *report;
	struct record record;
	char *html;
	size_t size;
	json_t *data;
};

static int setup(void **state)
{
	struct page *p = calloc(1, sizeof(*p));

	*state = p;
	return p ? report_new(&p->report) : -1;
}

static int teardown(void **state)
{
	struct page *p = *state;

	report_free(p->report);
	json_decref(p->data);
	free(p->html);
	free(p);
	return 0;
}

static void add(struct page *p, enum record_type type)
{
	data_any(&p->record, type);
	assert_int_equal(report_add(p->report, &p->record), 0);
}

/* Each line type once, in the order of the types: `open` is the first. */
static void add_all(struct page *p)
{
	for (unsigned int type = 0; type < RECORD_TYPE_COUNT; type++)
		add(p, type);
}

static void write_page(struct page *p)
{
	static const char begin[] = "id=\"incident-data\">", end[] = "</script>";
	FILE *out = open_memstream(&p->html, &p->size);
	const char *data, *behind;

	assert_int_equal(report_write(p->report, out), 0);
	assert_int_equal(fclose(out), 0);
	data = strstr(p->html, begin);
	assert_non_null(data);
	data += strlen(begin);
	behind = strstr(data, end);
	assert_non_null(behind);
	p->data = json_loadb(data, (size_t)(behind - data), 0, NULL);
	assert_non_null(p->data);
}

static const json_t *at(const json_t *list, size_t i)
{
	const json_t *item = json_array_get(list, i);

	assert_non_null(item);
	return item;
}

static const char *string_of(const struct page *p, const json_t *index)
{
	return json_string_value(
		at(json_object_get(p->data, "strings"), (size_t)json_integer_value(index)));
}

static void test_what_the_scripts_get(void **state)
{
	struct page *p = *state;
	const json_t *incident, *row;

	add_all(p);
	write_page(p);
	incident = json_object_get(p->data, "incident");
	assert_string_equal(json_string_value(json_object_get(incident, "id")), p->record.incident);
	assert_string_equal(json_string_value(json_object_get(incident, "class")), "saturated");
	assert_true(json_is_true(json_object_get(incident, "closed")));
	/* The same operation has a line that it hangs and one that it has returned. */
	row = json_object_get(json_object_get(p->data, "operations"), "rows");
	assert_int_equal(json_array_size(row), 1);
	row = at(row, 0);
	data_any(&p->record, RECORD_STUCK);
	assert_string_equal(string_of(p, at(row, 5)), p->record.operation.comm);
	assert_string_equal(string_of(p, at(row, 7)), p->record.operation.path);
	assert_int_equal(json_integer_value(at(row, 4)), p->record.operation.tid);
	row = at(json_object_get(p->data, "loads"), 0);
	data_any(&p->record, RECORD_IO_BY);
	assert_string_equal(string_of(p, json_object_get(row, "name")),
		*p->record.io_by.relation ? p->record.io_by.relation : p->record.io_by.path);
	assert_int_equal(json_integer_value(json_object_get(row, "requests")),
		p->record.io_by.requests);
	row = at(json_object_get(p->data, "statements"), 0);
	data_any(&p->record, RECORD_SQL);
	assert_string_equal(string_of(p, json_object_get(row, "text")), p->record.sql.text);
	assert_int_equal(json_integer_value(json_object_get(row, "connection")),
		p->record.sql.connection_id);
	assert_non_null(at(json_object_get(p->data, "offcpu"), 0));
	assert_non_null(at(json_object_get(p->data, "histograms"), 0));
}

/* A row for each statement that the page has without scripts, and its text. */
static void test_what_is_there_without_scripts(void **state)
{
	struct page *p = *state;

	add_all(p);
	write_page(p);
	data_any(&p->record, RECORD_VERDICT);
	assert_non_null(strstr(p->html, "<h1>device sdb saturated (util 100 %): 92 % of"));
	assert_non_null(strstr(p->html, "&quot;SELECT 1&quot; running 31.00 s</h1>"));
	assert_non_null(strstr(p->html, "<div><dt>Culprit</dt><dd><bdi>"));
	/* What it stands on comes first, then who waited, then all else. */
	assert_true(strstr(p->html, "id=\"evidence\"") < strstr(p->html, "id=\"waits\""));
	assert_true(strstr(p->html, "id=\"waits\"") < strstr(p->html, "id=\"timeline\""));
	assert_non_null(strstr(p->html, "<caption>Load since the probes were armed</caption>"));
	assert_non_null(strstr(p->html, "<caption>Statements seen in the databases</caption>"));
	assert_non_null(strstr(p->html, "<caption>Ways of doing I/O</caption>"));
	assert_non_null(strstr(p->html, "default-src 'none'; style-src 'sha256-"));
	assert_null(strstr(p->html, "<!-- @"));
}

static void test_texts_are_only_texts(void **state)
{
	struct page *p = *state;
	const json_t *row;

	add(p, RECORD_OPEN);
	data_any(&p->record, RECORD_STALL);
	text_copy(p->record.operation.path, sizeof(p->record.operation.path), HOSTILE);
	text_copy(p->record.operation.comm, sizeof(p->record.operation.comm), "<b>\x1b\xff");
	assert_int_equal(report_add(p->report, &p->record), 0);
	data_any(&p->record, RECORD_SQL);
	text_copy(p->record.sql.text, sizeof(p->record.sql.text),
		"SELECT '" HOSTILE "',\n\"\\\xe2\x80\xae\"");
	assert_int_equal(report_add(p->report, &p->record), 0);
	write_page(p);
	assert_null(strstr(p->html, "<img"));
	assert_null(strstr(p->html, "<b>"));
	assert_null(strstr(p->html, "\x1b"));
	assert_non_null(strstr(p->html, "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;"));
	assert_non_null(strstr(p->html, "<bdi>&lt;b&gt;\\x1b\xef\xbf\xbd</bdi>"));
	/* Turned round, it would read as another statement. */
	assert_non_null(strstr(p->html, "&#39;,\n&quot;\\\\xe2\\x80\\xae&quot;"));
	row = at(json_object_get(json_object_get(p->data, "operations"), "rows"), 0);
	assert_string_equal(string_of(p, at(row, 7)), HOSTILE);
}

/* Of numbers that JavaScript cannot have, the digits. */
static void test_large_numbers(void **state)
{
	struct page *p = *state;
	const json_t *row;

	add(p, RECORD_OPEN);
	data_any(&p->record, RECORD_SQL);
	p->record.sql.connection_id = UINT64_MAX;
	assert_int_equal(report_add(p->report, &p->record), 0);
	write_page(p);
	row = at(json_object_get(p->data, "statements"), 0);
	assert_string_equal(json_string_value(json_object_get(row, "connection")),
		"18446744073709551615");
}

static void add_operation(struct page *p, unsigned int i)
{
	struct record_operation *o = &p->record.operation;

	data_any(&p->record, RECORD_STALL);
	o->tid = (int32_t)(1000 + i);
	o->start_mono_ns += i;
	o->dur_ns = (100 + i) * NSEC_PER_MSEC;
	snprintf(o->path, sizeof(o->path), "/srv/%u/%0*u", i, 120, i);
	snprintf(o->kstack, sizeof(o->kstack), "wait_%u+0x1\nread_%u+0x2", i, i);
	assert_int_equal(report_add(p->report, &p->record), 0);
}

/* The longest are told, and how many are not. */
static void test_a_large_record_is_a_small_page(void **state)
{
	struct page *p = *state;
	const json_t *rows, *left_out;

	add(p, RECORD_OPEN);
	for (unsigned int i = 0; i < 20000; i++)
		add_operation(p, i);
	for (unsigned int i = 0; i < 1000; i++) {
		data_any(&p->record, RECORD_SAMPLE);
		p->record.sample.reading.mono_ns += i * NSEC_PER_SEC;
		assert_int_equal(report_add(p->report, &p->record), 0);
	}
	add(p, RECORD_CLOSE);
	write_page(p);
	assert_in_range(p->size, 100000, SIZE_MAX_OF_PAGE);
	rows = json_object_get(json_object_get(p->data, "operations"), "rows");
	assert_int_equal(json_array_size(rows), 1500);
	assert_int_equal(json_integer_value(at(at(rows, 0), 4)), 20999);
	left_out = at(json_object_get(p->data, "left_out"), 0);
	assert_true(json_array_size(json_object_get(p->data, "left_out")) >= 2);
	assert_non_null(left_out);
	assert_non_null(strstr(p->html,
		"<bdi>operations, the shortest</bdi></td><td class=\"num\" "
		"data-value=\"18500\">"));
}

/* Each sample, and each operation, has the time that it has in the record. */
static void test_times(void **state)
{
	struct page *p = *state;
	const json_t *t, *row;
	uint64_t opened_ns;

	add(p, RECORD_OPEN);
	opened_ns = p->record.mono_ns;
	data_any(&p->record, RECORD_SAMPLE);
	p->record.sample.reading.mono_ns = opened_ns - 1500 * NSEC_PER_MSEC;
	assert_int_equal(report_add(p->report, &p->record), 0);
	data_any(&p->record, RECORD_STUCK);
	p->record.operation.start_mono_ns = opened_ns - 4 * NSEC_PER_SEC;
	p->record.operation.dur_ns = 7250 * NSEC_PER_MSEC;
	assert_int_equal(report_add(p->report, &p->record), 0);
	write_page(p);
	t = json_object_get(json_object_get(p->data, "samples"), "t");
	assert_float_equal(json_number_value(at(t, 0)), -1500, 0.001);
	row = at(json_object_get(json_object_get(p->data, "operations"), "rows"), 0);
	assert_float_equal(json_number_value(at(row, 0)), -4000, 0.001);
	assert_float_equal(json_number_value(at(row, 1)), 7250, 0.001);
	assert_string_equal(json_string_value(at(row, 2)), "stuck");
	/* Nobody has closed it. */
	assert_true(json_is_false(json_object_get(json_object_get(p->data, "incident"), "closed")));
	assert_non_null(strstr(p->html, "The record has no end"));
}

/* A second record, which differs from the first in the file that a thread waited for. */
static struct report *another(struct page *p)
{
	struct report *first = p->report, *second;

	assert_int_equal(report_new(&second), 0);
	p->report = second;
	add_all(p);
	data_any(&p->record, RECORD_STALL);
	p->record.operation.start_mono_ns++;
	text_copy(p->record.operation.path, sizeof(p->record.operation.path), HOSTILE);
	assert_int_equal(report_add(second, &p->record), 0);
	p->report = first;
	return second;
}

static void test_two_incidents(void **state)
{
	struct page *p = *state;
	struct report *second = another(p);
	FILE *out = open_memstream(&p->html, &p->size);

	add_all(p);
	data_lock(&p->record);
	p->record.lock_wait.kind = RECORD_KERNEL_LOCK_mutex;
	text_copy(p->record.lock_wait.comm, sizeof(p->record.lock_wait.comm), "locks");
	assert_int_equal(report_add(p->report, &p->record), 0);
	assert_int_equal(report_add(second, &p->record), 0);
	assert_int_equal(report_write_pair(p->report, second, out), 0);
	assert_int_equal(fclose(out), 0);
	report_free(second);
	assert_non_null(strstr(p->html,
		"<h1>Two incidents of the same class (saturated), on the same disk (sdb), with the "
		"same culprit (mariadbd)</h1>"));
	assert_non_null(strstr(p->html, "<td><bdi>both</bdi></td>"));
	assert_non_null(strstr(p->html, "<bdi class=\"path\">locks</bdi>"));
	assert_non_null(strstr(p->html,
		"<bdi class=\"path\">&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;</bdi></td>"
		"<td class=\"num\">-</td>"));
	assert_null(strstr(p->html, "first only"));
	assert_null(strstr(p->html, "<img"));
	assert_null(strstr(p->html, "<!-- @"));
}

/* 10,000 threads hang for a minute: most have no line, and few of the others one at the end. */
static void add_crowd(struct page *p)
{
	struct record_operation *o = &p->record.operation;

	add(p, RECORD_OPEN);
	for (uint64_t s = 1; s <= 60; s += 59) {
		data_operation(&p->record, RECORD_STUCK);
		p->record.mono_ns = DATA_MONO_NS + s * NSEC_PER_SEC;
		o->start_mono_ns = DATA_MONO_NS;
		o->dur_ns = s * NSEC_PER_SEC;
		o->tid = s == 1 ? 5000 : 5001;
		if (s == 1)
			assert_int_equal(report_add(p->report, &p->record), 0);
		o->tid = 5002;
		o->alike.present = true;
		o->alike.count = 9743;
		o->alike.min_ns = o->alike.max_ns = o->dur_ns;
		assert_int_equal(report_add(p->report, &p->record), 0);
	}
}

static void test_a_crowd_that_hangs(void **state)
{
	struct page *p = *state;
	const json_t *row;

	add_crowd(p);
	write_page(p);
	for (size_t i = 0; i < 2; i++) {
		row = at(json_object_get(json_object_get(p->data, "operations"), "rows"), i);
		assert_true(json_number_value(at(row, 1)) == 60000);
	}
	assert_non_null(strstr(p->html,
		"<bdi>operations that have no line of their own</bdi></td>"
		"<td class=\"num\" data-value=\"9743\">"));
}

static void add_session(struct page *p, uint64_t id, unsigned int s, unsigned int waited_s)
{
	data_sql(&p->record);
	p->record.mono_ns = DATA_MONO_NS + s * NSEC_PER_SEC;
	p->record.sql.connection_id = id;
	p->record.sql.lock = waited_s ? RECORD_LOCK_row : RECORD_LOCK_NONE;
	text_copy(p->record.sql.lock_on, sizeof(p->record.sql.lock_on), "shop.orders");
	p->record.sql.waited_ns = waited_s * NSEC_PER_SEC;
	assert_int_equal(report_add(p->report, &p->record), 0);
}

static void add_lock(struct page *p, enum record_kernel_lock kind, unsigned int s,
	unsigned int longest_s)
{
	data_lock(&p->record);
	p->record.mono_ns = DATA_MONO_NS + s * NSEC_PER_SEC;
	p->record.lock_wait.kind = kind;
	p->record.lock_wait.longest_ns = longest_s * NSEC_PER_SEC;
	assert_int_equal(report_add(p->report, &p->record), 0);
}

static void assert_wait(struct page *p, size_t i, double t_ms, double ms, long long threads,
	const char *cause)
{
	const json_t *strings = json_object_get(p->data, "strings");
	const json_t *wait = at(json_object_get(p->data, "waits"), i);

	assert_true(json_number_value(json_object_get(wait, "t")) == t_ms);
	assert_true(json_number_value(json_object_get(wait, "ms")) == ms);
	assert_int_equal(json_integer_value(json_object_get(wait, "threads")), threads);
	assert_string_equal(json_string_value(json_array_get(strings,
				    (size_t)json_integer_value(json_object_get(wait, "cause")))),
		cause);
}

/* They are in no operation: sessions at a lock of their database, threads at one of a program. */
static void test_who_waited_for_a_lock(void **state)
{
	struct page *p = *state;

	add(p, RECORD_OPEN);
	add_session(p, 17, 2, 3);
	add_session(p, 18, 2, 1);
	add_session(p, 17, 3, 4);
	add_session(p, 18, 3, 0);
	/* It is another wait. */
	add_session(p, 18, 9, 1);
	/* What is damaged, or of a later version. */
	add_lock(p, RECORD_KERNEL_LOCK_NONE, 2, 1);
	add_lock(p, RECORD_KERNEL_LOCK_pipe, 2, UINT32_MAX);
	add_lock(p, RECORD_KERNEL_LOCK_mutex, 2, 1);
	add_lock(p, RECORD_KERNEL_LOCK_mutex, 4, 3);
	/* Those who wait for it have operations. */
	add_lock(p, RECORD_KERNEL_LOCK_memory_map, 2, 1);
	add(p, RECORD_CLOSE);
	write_page(p);
	assert_int_equal(json_array_size(json_object_get(p->data, "waits")), 4);
	assert_wait(p, 0, -1000, 4000, 1, "row lock");
	assert_wait(p, 1, 1000, 1000, 1, "row lock");
	assert_wait(p, 2, 8000, 1000, 1, "row lock");
	assert_wait(p, 3, 1000, 3000, 16, "mutex");
	assert_non_null(strstr(p->html, "<td>row lock</td>"));
	assert_non_null(strstr(p->html, "<bdi class=\"path\">shop.orders</bdi>"));
	assert_non_null(strstr(p->html, "<td>mutex</td>"));
}

static void test_table_of_operations(void **state)
{
	struct page *p = *state;
	FILE *out = open_memstream(&p->html, &p->size);

	add(p, RECORD_OPEN);
	data_any(&p->record, RECORD_STALL);
	p->record.operation.waits_for = RECORD_CAUSE_NONE;
	text_copy(p->record.operation.comm, sizeof(p->record.operation.comm), "=1+\"2\"");
	text_copy(p->record.operation.path, sizeof(p->record.operation.path), "/srv/a,\x1b[2Jb");
	text_copy(p->record.operation.relation, sizeof(p->record.operation.relation), "");
	p->record.operation.connection_id = 0;
	assert_int_equal(report_add(p->report, &p->record), 0);
	report_write_csv(p->report, out);
	assert_int_equal(fclose(out), 0);
	assert_non_null(strstr(p->html, "statement\r\n"));
	/* No formula, and what is quoted is quoted twice. */
	assert_non_null(strstr(p->html, ",\"'=1+\"\"2\"\"\","));
	/* Nor does it change what a terminal shows. */
	assert_non_null(strstr(p->html, ",\"/srv/a,\\x1b[2Jb\","));
	assert_non_null(strstr(p->html, ",,\"\"\r\n"));
}

static void test_table_of_a_crowd(void **state)
{
	struct page *p = *state;
	FILE *out = open_memstream(&p->html, &p->size);
	const char *row;

	add_crowd(p);
	assert_int_equal(report_write_csv(p->report, out), 9743);
	assert_int_equal(fclose(out), 0);
	row = strstr(p->html, ",60000.000,stuck,");
	assert_non_null(row);
	assert_non_null(strstr(row + 1, ",60000.000,stuck,"));
}

/* What is not shown of a statement is told. */
static void test_table_of_a_long_statement(void **state)
{
	struct page *p = *state;
	FILE *out = open_memstream(&p->html, &p->size);

	add(p, RECORD_OPEN);
	data_sql(&p->record);
	memset(p->record.sql.text, 'x', 400);
	p->record.sql.text[400] = '\0';
	p->record.sql.tid = 2230;
	assert_int_equal(report_add(p->report, &p->record), 0);
	data_operation(&p->record, RECORD_STALL);
	p->record.operation.tid = 2230;
	p->record.operation.connection_id = 17;
	p->record.operation.start_mono_ns = DATA_MONO_NS;
	p->record.operation.dur_ns = 2 * NSEC_PER_SEC;
	assert_int_equal(report_add(p->report, &p->record), 0);
	assert_int_equal(report_write_csv(p->report, out), 0);
	assert_int_equal(fclose(out), 0);
	assert_non_null(strstr(p->html, "xxx ...\"\r\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_what_the_scripts_get, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_there_without_scripts, setup,
			teardown),
		cmocka_unit_test_setup_teardown(test_texts_are_only_texts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_large_numbers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_large_record_is_a_small_page, setup,
			teardown),
		cmocka_unit_test_setup_teardown(test_times, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_incidents, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_crowd_that_hangs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_who_waited_for_a_lock, setup, teardown),
		cmocka_unit_test_setup_teardown(test_table_of_operations, setup, teardown),
		cmocka_unit_test_setup_teardown(test_table_of_a_crowd, setup, teardown),
		cmocka_unit_test_setup_teardown(test_table_of_a_long_statement, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
