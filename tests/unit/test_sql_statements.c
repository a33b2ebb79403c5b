/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Which statements of an incident are kept, and which of them is a thread's. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "sql/statements.h"
#include "util/clock.h"

#define TID 2225
#define SEC NSEC_PER_SEC
#define MS NSEC_PER_MSEC
/* Of the incident. */
#define BEGIN (100 * SEC)

static struct sql_statements table;
static struct sql_snapshot newest;

static int begin(void **state)
{
	(void)state;
	memset(&table, 0, sizeof(table));
	sql_snapshot_begin(&newest, 0);
	sql_statements_begin(&table, BEGIN);
	return 0;
}

static struct sql_frame_session session(uint64_t connection_id, uint64_t elapsed_ns,
	const char *text)
{
	struct sql_frame_session s = { .tid = TID,
		.connection_id = connection_id,
		.elapsed_ns = elapsed_ns };

	snprintf(s.text, sizeof(s.text), "%s", text);
	return s;
}

/* One answer with one session, which took 2 ms. */
static void answer(struct sql_snapshot *snapshot, uint64_t answered_ns,
	const struct sql_frame_session *s)
{
	sql_snapshot_begin(snapshot, answered_ns - 2 * MS);
	assert_int_equal(sql_snapshot_add(snapshot, s), 0);
	sql_snapshot_end(snapshot, &(struct sql_frame_end){ .server_ns = 1 }, answered_ns);
}

static void take(uint64_t answered_ns, struct sql_frame_session s)
{
	static struct sql_snapshot snapshot;

	answer(&snapshot, answered_ns, &s);
	sql_statements_take(&table, &snapshot);
}

/* Of the odd millisecond it is seen that nobody counted seconds. */
static void test_one_entry_for_each_statement(void **state)
{
	struct sql_session_view view;

	(void)state;
	take(101 * SEC, session(17, 501 * MS, "INSERT"));
	take(102 * SEC + 300 * MS, session(17, 1803 * MS, "INSERT"));
	take(108 * SEC, session(17, 7502 * MS, "INSERT"));
	take(108 * SEC, session(18, 7502 * MS, "INSERT"));
	assert_int_equal(table.count, 2);
	sql_statement_view(&table.list[0], &view);
	assert_int_equal(view.connection_id, 17);
	assert_int_equal(view.elapsed_ns, 7502 * MS);
	assert_int_equal(view.started_ns, 108 * SEC - 7502 * MS);
	assert_int_equal(table.list[0].asked_ns, 108 * SEC - 2 * MS);
	/* Again, and it looks alike. */
	take(110 * SEC, session(17, 901 * MS, "INSERT"));
	assert_int_equal(table.count, 3);
	assert_int_equal(table.list[0].elapsed_ns, 7502 * MS);
	sql_statements_begin(&table, BEGIN);
	assert_int_equal(table.count, 0);
}

/* A MariaDB gives each execution a number, and a PostgreSQL one to all that look alike. */
static void test_query_ids(void **state)
{
	struct sql_frame_session s = session(17, 501 * MS, "INSERT");

	(void)state;
	s.query_id = 7;
	take(101 * SEC, s);
	s.elapsed_ns = 701 * MS;
	s.query_id = 8;
	take(101 * SEC + 200 * MS, s);
	assert_int_equal(table.count, 2);
	/* It starts later. */
	take(105 * SEC, s);
	assert_int_equal(table.count, 3);
	/* An answer without number or text is not taken for another's. */
	s = session(17, 1701 * MS, "");
	take(106 * SEC, s);
	assert_int_equal(table.count, 4);
	s.query_id = 8;
	s.elapsed_ns = 2701 * MS;
	s.tid = 0;
	take(107 * SEC, s);
	assert_int_equal(table.count, 4);
	assert_string_equal(table.list[2].text, "INSERT");
	assert_int_equal(table.list[2].elapsed_ns, 2701 * MS);
	assert_int_equal(table.list[2].tid, TID);
}

/* Whole seconds may be one too many or too few; short ones in a row are not one long one. */
static void test_whole_seconds(void **state)
{
	(void)state;
	take(101 * SEC + 900 * MS, session(17, SEC, "INSERT"));
	take(103 * SEC, session(17, 3 * SEC, "INSERT"));
	take(104 * SEC, session(17, 3400 * MS, "INSERT"));
	assert_int_equal(table.count, 1);
	assert_int_equal(table.list[0].elapsed_ns, 3400 * MS);
	take(104 * SEC, session(17, 3400 * MS, "UPDATE"));
	assert_int_equal(table.count, 2);
	begin(NULL);
	for (unsigned int i = 0; i < 12; i++)
		take((110 + i) * SEC, session(17, SEC, "INSERT"));
	assert_in_range(table.count, 3, 6);
	for (unsigned int i = 0; i < table.count; i++)
		assert_int_equal(table.list[i].elapsed_ns, SEC);
}

static bool has_connection(uint64_t connection_id)
{
	for (uint32_t i = 0; i < table.count; i++)
		if (table.list[i].connection_id == connection_id)
			return true;
	return false;
}

static void fill_table(uint64_t elapsed_ns)
{
	for (uint64_t i = 0; i < SQL_STATEMENTS_MAX; i++)
		take(110 * SEC, session(100 + i, elapsed_ns + i * MS, "SELECT"));
	assert_int_equal(table.count, SQL_STATEMENTS_MAX);
}

static void test_the_shortest_gives_way(void **state)
{
	(void)state;
	fill_table(2001 * MS);
	take(111 * SEC, session(17, 1999 * MS, "INSERT"));
	assert_false(has_connection(17));
	take(112 * SEC, session(17, 2999 * MS, "INSERT"));
	assert_true(has_connection(17));
	assert_false(has_connection(100));
	/* Of an hour, one second of the incident. */
	take(101 * SEC, session(18, 3600 * SEC + MS, "SELECT"));
	assert_false(has_connection(18));
}

static void assert_gives_way(struct sql_frame_session s)
{
	begin(NULL);
	fill_table(2001 * MS);
	s.connection_id = 17;
	s.elapsed_ns = 9001 * MS;
	take(110 * SEC, s);
	assert_false(has_connection(17));
	begin(NULL);
	take(110 * SEC, s);
	assert_true(has_connection(17));
	fill_table(1001 * MS);
	assert_false(has_connection(17));
}

static void test_full_table_drops_statements_without_load_first(void **state)
{
	struct sql_frame_session s;

	(void)state;
	s = session(0, 0, "SELECT");
	s.background = 1;
	assert_gives_way(s);
	s = session(0, 0, "SELECT");
	s.idle = 1;
	assert_gives_way(s);
	s = session(0, 0, "SELECT");
	s.leader_pid = TID + 1;
	assert_gives_way(s);
	s = session(0, 0, "SELECT SLEEP(?)");
	strcpy(s.state, "User sleep");
	assert_gives_way(s);
	strcpy(s.state, "Timeout: PgSleep");
	assert_gives_way(s);
}

/* It is cut before the character that does not fit, and is still the same statement. */
static void test_a_long_text_is_cut(void **state)
{
	struct sql_frame_session s = session(17, 501 * MS, "");

	(void)state;
	memset(s.text, 'a', 2000);
	memcpy(s.text + SQL_STATEMENT_TEXT_SIZE - 2, "\xc3\xa4", 2);
	s.text_bytes = 2000;
	take(101 * SEC, s);
	s.elapsed_ns = 1501 * MS;
	take(102 * SEC, s);
	assert_int_equal(table.count, 1);
	assert_int_equal(strlen(table.list[0].text), SQL_STATEMENT_TEXT_SIZE - 2);
	assert_int_equal(table.list[0].text_bytes, 2000);
}

static const char *text_of_thread(int32_t tid)
{
	struct sql_session_view view;

	return sql_statements_find_thread(&table, &newest, tid, &view) ? view.text : NULL;
}

/* Another client's statement makes it the worst answer so far. */
static void take_worst(uint64_t answered_ns, struct sql_frame_session s)
{
	struct sql_frame_session other = session(99, MS, "DO 1");

	other.tid = 0;
	sql_snapshot_begin(&newest, answered_ns - 2 * MS);
	assert_int_equal(sql_snapshot_add(&newest, &s), 0);
	assert_int_equal(sql_snapshot_add(&newest, &other), 0);
	sql_snapshot_end(&newest, &(struct sql_frame_end){ .server_ns = 1 }, answered_ns);
	sql_statements_take(&table, &newest);
}

/* A report of 20 s, and of one second what it ran when most was going on. */
static void test_slowest_statement_of_a_thread(void **state)
{
	struct sql_session_view view;

	(void)state;
	take(120 * SEC, session(17, 19501 * MS, "SELECT report"));
	take_worst(122 * SEC, session(17, 1001 * MS, "SELECT 1"));
	assert_string_equal(text_of_thread(TID), "SELECT report");
	assert_null(text_of_thread(TID + 1));
	assert_null(text_of_thread(0));
	assert_true(sql_statements_find_thread(&table, NULL, TID, &view));
	assert_int_equal(view.elapsed_ns, 19501 * MS);
}

/* It was idle at the worst moment. */
static void test_statement_that_ended_before(void **state)
{
	struct sql_frame_session sleeper = session(18, 10501 * MS, "SELECT SLEEP(?)");

	(void)state;
	sleeper.tid = TID + 1;
	take(109 * SEC, session(17, 8001 * MS, "INSERT"));
	take_worst(111 * SEC, sleeper);
	assert_string_equal(text_of_thread(TID), "INSERT");
}

/* What began later led to nothing, and what ran long before the incident not to that one. */
static void test_statements_after_the_worst_answer_do_not_count(void **state)
{
	struct sql_frame_session sleeper = session(18, 2001 * MS, "SELECT SLEEP(?)");

	(void)state;
	take(101 * SEC, session(17, 3600 * SEC + MS, "SELECT old"));
	take_worst(104 * SEC, session(17, 2001 * MS, "SELECT"));
	take(130 * SEC, session(17, 20001 * MS, "UPDATE"));
	assert_string_equal(text_of_thread(TID), "SELECT");
	begin(NULL);
	sleeper.tid = TID + 1;
	take_worst(104 * SEC, sleeper);
	take(130 * SEC, session(17, 20001 * MS, "UPDATE"));
	assert_null(text_of_thread(TID));
}

/* The thread waited for a lock for 30 s, and read the disk full in the next statement. */
static void test_the_one_that_moved_bytes(void **state)
{
	static struct sql_snapshot snapshot;
	struct sql_frame_session s;
	struct sql_session_view view;

	(void)state;
	s = session(17, 30001 * MS, "UPDATE");
	take(131 * SEC, s);
	for (unsigned int i = 1; i <= 3; i++) {
		s = session(17, i * 1000 * MS + MS, "SELECT");
		answer(&snapshot, (132 + i) * SEC, &s);
		snapshot.rows[0].moved_bytes = 100 << 20;
		sql_statements_take(&table, &snapshot);
	}
	assert_int_equal(table.count, 2);
	assert_int_equal(table.list[1].moved_bytes, 300 << 20);
	assert_true(sql_statements_find_thread(&table, NULL, TID, &view));
	assert_string_equal(view.text, "SELECT");
	/* It stays when there are many that ran longer. */
	for (uint64_t i = 0; i < 2 * SQL_STATEMENTS_MAX; i++)
		take(140 * SEC, session(100 + i, 30001 * MS, "INSERT"));
	assert_string_equal(text_of_thread(TID), "SELECT");
}

static void test_sleeping_statements_come_last(void **state)
{
	struct sql_frame_session s = session(17, 20001 * MS, "SELECT SLEEP(?)");

	(void)state;
	strcpy(s.state, "User sleep");
	take(121 * SEC, s);
	take_worst(125 * SEC, session(17, 2001 * MS, "INSERT"));
	assert_string_equal(text_of_thread(TID), "INSERT");
	begin(NULL);
	take(103 * SEC, session(17, 2001 * MS, "INSERT"));
	take_worst(125 * SEC, s);
	assert_string_equal(text_of_thread(TID), "INSERT");
	/* It was more than that. */
	s.state[0] = '\0';
	s.elapsed_ns = 19001 * MS;
	take(124 * SEC, s);
	strcpy(s.state, "User sleep");
	s.elapsed_ns = 20001 * MS;
	take(125 * SEC, s);
	assert_string_equal(text_of_thread(TID), "SELECT SLEEP(?)");
	begin(NULL);
	s = session(17, 20001 * MS, "BEGIN");
	s.idle = 1;
	take(125 * SEC, s);
	assert_null(text_of_thread(TID));
}

static void test_worker_has_the_statement_of_its_leader(void **state)
{
	struct sql_frame_session worker = session(99, 4001 * MS, "");

	(void)state;
	worker.tid = TID + 5;
	worker.leader_pid = TID;
	take(105 * SEC, worker);
	take(105 * SEC, session(17, 4501 * MS, "SELECT"));
	take(115 * SEC, session(17, 8001 * MS, "UPDATE"));
	take_worst(120 * SEC, session(18, 1001 * MS, "SELECT 1"));
	assert_string_equal(text_of_thread(TID + 5), "SELECT");
	assert_string_equal(text_of_thread(TID), "UPDATE");
	assert_int_equal(sql_statements_find_leader(&table, TID + 5), TID);
	assert_int_equal(sql_statements_find_leader(&table, TID), 0);
}

/* What is new has no line, whatever was taken before it in the same answer. */
static void test_a_new_statement_is_not_written(void **state)
{
	static struct sql_snapshot snapshot;
	struct sql_frame_session old = session(17, 9001 * MS, "SELECT"),
				 new = session(18, 1001 * MS, "INSERT");

	(void)state;
	take(110 * SEC, old);
	table.list[0].written.elapsed_ns = 9001 * MS;
	table.list[0].written.key = table.list[0].key;
	old.elapsed_ns = 10001 * MS;
	sql_snapshot_begin(&snapshot, 111 * SEC - MS);
	sql_snapshot_add(&snapshot, &old);
	sql_snapshot_add(&snapshot, &new);
	sql_snapshot_end(&snapshot, &(struct sql_frame_end){ .server_ns = 1 }, 111 * SEC);
	sql_statements_take(&table, &snapshot);
	assert_int_equal(table.count, 2);
	assert_int_equal(table.list[0].written.elapsed_ns, 9001 * MS);
	assert_int_equal(table.list[1].written.elapsed_ns, 0);
	assert_int_equal(table.list[1].written.key, 0);
}

/* It did more than that before, and counts as a statement of a client in the table alone. */
static void test_a_statement_that_goes_to_sleep_is_not_missing(void **state)
{
	static struct sql_snapshot snapshot;
	struct sql_frame_session s = session(17, 1001 * MS, "SELECT");

	(void)state;
	take(110 * SEC, s);
	s.elapsed_ns = 2001 * MS;
	strcpy(s.state, "User sleep");
	answer(&snapshot, 111 * SEC, &s);
	sql_statements_take(&table, &snapshot);
	assert_int_equal(table.count, 1);
	assert_int_equal(sql_statements_count_missing(&table, &snapshot), 0);
}

/* Nobody is told to be left out who is too new, idle, or a worker. */
static void test_statements_without_room_are_counted(void **state)
{
	static struct sql_snapshot snapshot;
	struct sql_frame_session idle = session(1, SEC, "BEGIN"), new = session(2, 0, "SELECT");

	(void)state;
	idle.idle = 1;
	sql_snapshot_begin(&snapshot, 110 * SEC - MS);
	sql_snapshot_add(&snapshot, &idle);
	sql_snapshot_add(&snapshot, &new);
	for (uint64_t i = 0; i < SQL_STATEMENTS_MAX + 5; i++) {
		struct sql_frame_session s = session(100 + i, SEC + i * MS, "SELECT");

		assert_int_equal(sql_snapshot_add(&snapshot, &s), 0);
	}
	sql_snapshot_end(&snapshot, &(struct sql_frame_end){ .sessions_left_out = 3 }, 110 * SEC);
	sql_statements_take(&table, &snapshot);
	assert_int_equal(sql_statements_count_missing(&table, &snapshot), 8);
	assert_int_equal(table.list[0].alike, SQL_STATEMENTS_MAX + 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_one_entry_for_each_statement, begin),
		cmocka_unit_test_setup(test_query_ids, begin),
		cmocka_unit_test_setup(test_whole_seconds, begin),
		cmocka_unit_test_setup(test_the_shortest_gives_way, begin),
		cmocka_unit_test_setup(test_full_table_drops_statements_without_load_first, begin),
		cmocka_unit_test_setup(test_a_long_text_is_cut, begin),
		cmocka_unit_test_setup(test_slowest_statement_of_a_thread, begin),
		cmocka_unit_test_setup(test_statement_that_ended_before, begin),
		cmocka_unit_test_setup(test_statements_after_the_worst_answer_do_not_count, begin),
		cmocka_unit_test_setup(test_the_one_that_moved_bytes, begin),
		cmocka_unit_test_setup(test_sleeping_statements_come_last, begin),
		cmocka_unit_test_setup(test_worker_has_the_statement_of_its_leader, begin),
		cmocka_unit_test_setup(test_a_new_statement_is_not_written, begin),
		cmocka_unit_test_setup(test_a_statement_that_goes_to_sleep_is_not_missing, begin),
		cmocka_unit_test_setup(test_statements_without_room_are_counted, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
