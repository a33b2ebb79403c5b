/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Which statement `show` names under a stuck or stalled thread, and when it names none. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <sys/mman.h>
#include <unistd.h>

#include "util/exit.h"
#include "cli/show.h"
#include "page/statements.h"
#include "test_record_data.h"
#include "util/cleanup.h"
#include "util/file.h"

#define AT(ms) (DATA_MONO_NS + (uint64_t)(ms)*NSEC_PER_MSEC)
#define TID 2230

/* A record that has only what is looked at. */
static int make_file(void)
{
	int fd = memfd_create("record", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void add_line(int fd, const struct record *r)
{
	static char buf[RECORD_LINE_SIZE];
	struct text line = TEXT_ON(buf);

	record_encode_json(r, &line);
	assert_int_equal(file_write_all(fd, line.buf, line.len), 0);
}

/* A client's statement that has run for ms. */
static struct record *session_line(uint64_t answered_ns, uint64_t ms, const char *text)
{
	struct record *r = malloc(sizeof(*r));

	data_sql(r);
	r->mono_ns = answered_ns;
	r->sql.background = false;
	r->sql.leader_pid = 0;
	r->sql.elapsed_ns = ms * NSEC_PER_MSEC;
	r->sql.answer_ns = 20 * NSEC_PER_MSEC;
	memset(r->sql.text, 0, sizeof(r->sql.text));
	text_copy(r->sql.text, sizeof(r->sql.text), text);
	return r;
}

static void add_session(int fd, uint64_t answered_ns, uint64_t ms, const char *text)
{
	_cleanup_free_ struct record *r = session_line(answered_ns, ms, text);

	add_line(fd, r);
}

static struct record *operation(uint64_t start_ns, uint64_t ms)
{
	struct record *r = malloc(sizeof(*r));

	data_operation(r, RECORD_STALL);
	r->operation.start_mono_ns = start_ns;
	r->operation.dur_ns = ms * NSEC_PER_MSEC;
	r->operation.connection_id = 0;
	return r;
}

static void assert_said(int fd, struct record *r, const char *expected)
{
	struct statements *statements;
	char buf[1024];
	struct text t = TEXT_ON(buf);

	text_reset(&t);
	assert_int_equal(statements_read(fd, &statements), 0);
	statements_add_of(statements, r, &t);
	assert_string_equal(buf, expected);
	statements_free(statements);
	free(r);
}

#define RAN "            ran app@localhost/shop, connection 17: "

/* Known to have run from 1.5 s to 9.98 s. */
static void test_only_what_was_under_way(void **state)
{
	_cleanup_close_ int fd = make_file();
	struct record *r;

	(void)state;
	add_session(fd, AT(10000), 8500, "SELECT a\n  FROM t");
	assert_said(fd, operation(AT(3000), 200), RAN "SELECT a FROM t\n");
	/* It is not known where exactly a thread was when the server looked. */
	assert_said(fd, operation(AT(9900), 50), RAN "SELECT a FROM t\n");
	assert_said(fd, operation(AT(9990), 500), "");
	/*
	 * Began before the statement: the clocks of two programs. Ended before it: another one's.
	 */
	assert_said(fd, operation(AT(1400), 150), RAN "SELECT a FROM t\n");
	assert_said(fd, operation(AT(1000), 450), "");
	r = operation(AT(3000), 200);
	r->operation.tid = TID + 1;
	assert_said(fd, r, "");
	r = operation(AT(3000), 200);
	r->operation.connection_id = 18;
	assert_said(fd, r, "");
	r = operation(AT(3000), 200);
	r->type = RECORD_STUCK;
	r->operation.connection_id = 17;
	assert_said(fd, r, RAN "SELECT a FROM t\n");
}

/*
 * What it says is as old as the question may be: the statement may have ended before the stall
 * began.
 */
static void test_an_answer_that_was_read_late(void **state)
{
	_cleanup_close_ int fd = make_file();
	_cleanup_free_ struct record *r = session_line(AT(10000), 8500, "SELECT a");

	(void)state;
	r->sql.answer_ns = 120 * NSEC_PER_MSEC;
	add_line(fd, r);
	assert_said(fd, operation(AT(9890), 500), "");
	assert_said(fd, operation(AT(9870), 500), RAN "SELECT a\n");
}

/*
 * A thread does not wait for a request: the next statement may have begun while it was under way.
 */
static void test_a_request_is_of_the_statement_that_sent_it(void **state)
{
	_cleanup_close_ int fd = make_file();
	struct record *r;

	(void)state;
	add_session(fd, AT(10000), 8500, "SELECT a");
	r = operation(AT(1400), 3000);
	r->operation.probe = RECORD_PROBE_uring;
	assert_said(fd, r, "");
	r = operation(AT(1600), 3000);
	r->operation.probe = RECORD_PROBE_uring;
	assert_said(fd, r, RAN "SELECT a\n");
}

/* 8.2 s that began just before a full second of the server's clock are 9 s to it. */
static void test_whole_seconds_may_be_one_too_many(void **state)
{
	_cleanup_close_ int fd = make_file();

	(void)state;
	add_session(fd, AT(10000), 9000, "SELECT a");
	assert_said(fd, operation(AT(1100), 600), "");
	assert_said(fd, operation(AT(1100), 1000), RAN "SELECT a\n");
	/* Under way while the server answered: it does not matter when it began. */
	add_session(fd, AT(20000), 0, "SELECT b");
	assert_said(fd, operation(AT(19900), 200), RAN "SELECT b\n");
	assert_said(fd, operation(AT(19900), 90), "");
}

static void test_each_moment_has_its_own(void **state)
{
	_cleanup_close_ int fd = make_file();

	(void)state;
	add_session(fd, AT(1000), 500, "SELECT a");
	add_session(fd, AT(9000), 3500, "SELECT b");
	assert_said(fd, operation(AT(600), 100), RAN "SELECT a\n");
	assert_said(fd, operation(AT(7000), 100), RAN "SELECT b\n");
	assert_said(fd, operation(AT(2000), 100), "");
}

/* Seen in several answers, it is one statement, as the last of them had it. */
static void test_a_statement_with_several_lines_is_one(void **state)
{
	_cleanup_close_ int fd = make_file();
	struct statements *statements;

	(void)state;
	add_session(fd, AT(3000), 1500, "SELECT a");
	add_session(fd, AT(10000), 8700, "SELECT a");
	/* It has whole seconds, and a line that was written late. */
	add_session(fd, AT(6000), 5000, "SELECT a");
	add_session(fd, AT(20000), 2000, "SELECT a");
	assert_int_equal(statements_read(fd, &statements), 0);
	assert_int_equal(statements_count(statements), 2);
	assert_int_equal(statements_get(statements, 0)->elapsed_ns, 8700 * NSEC_PER_MSEC);
	assert_int_equal(statements_get(statements, 0)->begun_ns, AT(1300));
	statements_free(statements);
	assert_said(fd, operation(AT(1400), 30), RAN "SELECT a\n");
	assert_said(fd, operation(AT(9950), 30), RAN "SELECT a\n");
	assert_said(fd, operation(AT(15000), 30), "");
}

/* What has no statement under way names none; a worker without one has its leader's. */
static void test_idle_workers_and_the_server_itself(void **state)
{
	_cleanup_close_ int fd = make_file();
	_cleanup_free_ struct record *r = session_line(AT(10000), 8500, "COMMIT");

	(void)state;
	/* Of another moment. */
	r->sql.tid = TID + 1;
	r->mono_ns = AT(2000);
	add_line(fd, r);
	r->mono_ns = AT(10000);
	r->sql.tid = TID;
	text_copy(r->sql.command, sizeof(r->sql.command), "idle in transaction");
	add_line(fd, r);
	assert_said(fd, operation(AT(3000), 200), "");
	text_copy(r->sql.command, sizeof(r->sql.command), "checkpointer");
	r->sql.background = true;
	r->sql.text[0] = '\0';
	add_line(fd, r);
	assert_said(fd, operation(AT(3000), 200), "");
	text_copy(r->sql.command, sizeof(r->sql.command), "active");
	r->sql.background = false;
	r->sql.leader_pid = TID + 1;
	r->sql.connection_id = TID;
	add_line(fd, r);
	assert_said(fd, operation(AT(3000), 200),
		"            ran app@localhost/shop, connection 2230, a statement\n");
	text_copy(r->sql.text, sizeof(r->sql.text), "SELECT a");
	r->sql.tid = TID + 1;
	r->sql.connection_id = 17;
	add_line(fd, r);
	assert_said(fd, operation(AT(3000), 200), RAN "SELECT a\n");
}

/* It stands under many lines, and comes from anybody. */
static void test_texts_are_short_and_printable(void **state)
{
	_cleanup_close_ int fd = make_file();
	char text[200], expected[400];

	(void)state;
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	memcpy(text + 119, "\xc3\xa4", 2);
	text[1] = '\x1b';
	add_session(fd, AT(10000), 8500, text);
	snprintf(expected, sizeof(expected), RAN "a\\x1b%.117s ...\n", text + 2);
	assert_said(fd, operation(AT(3000), 200), expected);
}

static void assert_shown(int fd, enum show_as as, const char *expected)
{
	static const struct config config;
	_cleanup_free_ char *buf = calloc(1, 65536);
	FILE *out = fmemopen(buf, 65536, "w");
	const struct show_options options = { .as = as,
		.folded.kernel = true,
		.statements = as == SHOW_FOLDED };
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(show_record(out, &config, path, &options), EXIT_CODE_OK);
	fclose(out);
	if (as == SHOW_JSON)
		assert_null(strstr(buf, expected));
	else
		assert_non_null(strstr(buf, expected));
}

/* The statement's line comes later in the record than the thread's. */
static void test_show(void **state)
{
	_cleanup_close_ int fd = make_file();
	_cleanup_free_ struct record *r = malloc(sizeof(*r)), *stall = operation(AT(3000), 200);

	(void)state;
	data_open(r);
	add_line(fd, r);
	add_line(fd, stall);
	add_session(fd, AT(10000), 8500, "SELECT a");
	assert_shown(fd, SHOW_EVENTS,
		"            at io_schedule < folio_wait_bit_common < filemap_read\n" RAN
		"SELECT a\n  ");
	assert_shown(fd, SHOW_JSON, RAN);
	assert_shown(fd, SHOW_FOLDED, "mariadbd;SELECT a;");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_what_was_under_way),
		cmocka_unit_test(test_an_answer_that_was_read_late),
		cmocka_unit_test(test_a_request_is_of_the_statement_that_sent_it),
		cmocka_unit_test(test_whole_seconds_may_be_one_too_many),
		cmocka_unit_test(test_each_moment_has_its_own),
		cmocka_unit_test(test_a_statement_with_several_lines_is_one),
		cmocka_unit_test(test_idle_workers_and_the_server_itself),
		cmocka_unit_test(test_texts_are_short_and_printable),
		cmocka_unit_test(test_show),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
