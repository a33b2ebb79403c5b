/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Who waits for whom in a MariaDB server, as it says it and as it can only be inferred. */
#include <errmsg.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "sql/helper/mariadb_locks.h"
#include "sql/helper/tables.h"
#include "util/cleanup.h"

#define ROWS_MAX 64

/* The server: what it answers to a question that has this word in it. */
struct reply {
	const char *word;
	unsigned int count;
	char *rows[ROWS_MAX][6];
};

static struct reply replies[3];
static const struct reply *current;
static unsigned int at, asked;
static int sockets[2];

static my_socket get_socket(MYSQL *mysql)
{
	(void)mysql;
	return sockets[1];
}

static int send_query(MYSQL *mysql, const char *query, unsigned long len)
{
	(void)mysql;
	(void)len;
	asked++;
	at = 0;
	current = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(replies) && !current; i++)
		if (replies[i].word && strstr(query, replies[i].word))
			current = &replies[i];
	assert_non_null(current);
	return 0;
}

static my_bool read_query_result(MYSQL *mysql)
{
	(void)mysql;
	return 0;
}

static unsigned int get_errno(MYSQL *mysql)
{
	(void)mysql;
	return 0;
}

static MYSQL_RES *use_result(MYSQL *mysql)
{
	return (MYSQL_RES *)mysql;
}

static void free_result(MYSQL_RES *result)
{
	(void)result;
}

static unsigned int num_fields(MYSQL_RES *result)
{
	(void)result;
	return 6;
}

static MYSQL_ROW fetch_row(MYSQL_RES *result)
{
	(void)result;
	return at < current->count ? (MYSQL_ROW)current->rows[at++] : NULL;
}

static const struct mariadb_functions server = {
	.mysql_get_socket = get_socket,
	.mysql_send_query = send_query,
	.mysql_read_query_result = read_query_result,
	.mysql_use_result = use_result,
	.mysql_free_result = free_result,
	.mysql_num_fields = num_fields,
	.mysql_fetch_row = fetch_row,
	.mysql_errno = get_errno,
};

/* What the helper knows. */
struct world {
	struct sql_frame_setup setup;
	struct sql_link link;
	struct mariadb_session rows[ROWS_MAX];
	struct mariadb_list list;
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	memset(replies, 0, sizeof(replies));
	replies[0].word = "TIMESTAMPDIFF";
	asked = 0;
	w->list.rows = w->rows;
	w->link = (struct sql_link){ .setup = &w->setup,
		.lib = server,
		.mysql = (MYSQL *)w,
		.transactions_query = "SELECT TIMESTAMPDIFF",
		.row_locks_query = "SELECT INNODB_LOCK_WAITS" };
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	assert_int_equal(send(sockets[0], "", 1, 0), 1);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	close(sockets[0]);
	close(sockets[1]);
	free(w->link.transactions);
	free(w->link.waits);
	free(w);
	return 0;
}

static struct mariadb_session *statement(struct world *w, uint64_t id, uint64_t time_s,
	const char *in_state, const char *text)
{
	struct mariadb_session *row = &w->rows[w->list.count++];

	*row = (struct mariadb_session){ .connection_id = id,
		.time_s = time_s,
		.database = "shop",
		.is_ddl = tables_is_ddl(text),
		.text = (char *)text };
	snprintf(row->state, sizeof(row->state), "%s", in_state);
	w->list.active++;
	return row;
}

static struct mariadb_session *session(struct world *w, uint64_t id, uint64_t time_s,
	const char *in_state, bool is_ddl)
{
	return statement(w, id, time_s, in_state,
		is_ddl ? "ALTER TABLE orders ADD c INT" : "SELECT * FROM shop.orders");
}

static void transaction(char *id, char *age_s, char *waits, char *waited_s)
{
	char **row = replies[0].rows[replies[0].count++];

	row[0] = id;
	row[1] = age_s;
	row[2] = waits;
	row[3] = waited_s;
}

#define S(text) ((char[]){ text })

static void find(struct world *w, bool is_glance)
{
	char error_buf[SQL_ERROR_SIZE];
	struct text error = TEXT_ON(error_buf);

	text_reset(&error);
	w->link.locks_after_ns = 0;
	assert_int_equal(mariadb_find_locks(&w->link, is_glance, &w->list, &error), 0);
}

/* What InnoDB says: the first row of a session is the one that counts. */
static void test_row_locks(void **state)
{
	struct world *w = *state;
	struct mariadb_session *a = session(w, 11, 9, "Updating", false);
	struct mariadb_session *b = session(w, 12, 8, "Updating", false);

	transaction(S("10"), S("41"), S("0"), NULL);
	transaction(S("11"), S("9"), S("1"), S("9"));
	transaction(S("12"), S("8"), S("1"), S("8"));
	replies[1] = (struct reply){ .word = "INNODB_LOCK_WAITS",
		.count = 4,
		.rows = { { S("11"), S("10"), NULL, S("`shop`.`orders`"), NULL },
			{ S("12"), S("10"), NULL, S("`shop`.`orders`"), NULL },
			{ S("12"), S("11"), NULL, S("`shop`.`orders`"), NULL },
			{ S("99"), S("10"), NULL, NULL, NULL } } };
	find(w, false);
	assert_int_equal(a->lock, RECORD_LOCK_row);
	assert_int_equal(a->blocker_id, 10);
	assert_int_equal(a->waited_s, 9);
	assert_int_equal(a->candidates, 0);
	assert_string_equal(a->object, "shop.orders");
	assert_int_equal(b->blocker_id, 10);
	assert_int_equal(b->transaction_s, 8);
	assert_true(mariadb_may_hold_locks(&w->link, 10));
	assert_false(mariadb_may_hold_locks(&w->link, 13));
}

/* One that was prepared by a program that has ended since. */
static void test_a_transaction_without_a_session(void **state)
{
	struct world *w = *state;
	struct mariadb_session *a = session(w, 11, 9, "Updating", false);

	transaction(S("11"), S("9"), S("1"), S("9"));
	replies[1] = (struct reply){ .word = "INNODB_LOCK_WAITS",
		.count = 1,
		.rows = { { S("11"), S("0"), NULL, S("`shop`.`orders`"), NULL } } };
	find(w, false);
	assert_int_equal(a->blocker_id, 0);
	assert_true(a->blocker_has_no_session);
}

/* A reader with its transaction open, an ALTER behind it, and others behind that. */
static void test_behind_a_waiting_alter(void **state)
{
	struct world *w = *state;
	struct mariadb_session *alter, *later, *earlier;

	alter = session(w, 11, 9, "Waiting for table metadata lock", true);
	later = session(w, 12, 8, "Waiting for table metadata lock", false);
	earlier = session(w, 13, 10, "Waiting for table metadata lock", false);
	/* Young, and old but waiting itself. */
	transaction(S("12"), S("50"), S("0"), NULL);
	transaction(S("14"), S("3"), S("0"), NULL);
	/* Perhaps as old as the wait, perhaps younger. */
	transaction(S("15"), S("10"), S("0"), NULL);
	transaction(S("10"), S("41"), S("0"), NULL);
	find(w, false);
	assert_int_equal(alter->lock, RECORD_LOCK_metadata);
	assert_int_equal(alter->blocker_id, 10);
	assert_int_equal(alter->candidates, 1);
	assert_int_equal(later->blocker_id, 11);
	/* Times are whole seconds: nothing else keeps it from reading. */
	assert_int_equal(earlier->blocker_id, 11);
}

static void test_behind_a_working_alter(void **state)
{
	struct world *w = *state;
	struct mariadb_session *waiting;

	session(w, 11, 12, "copy to tmp table", true);
	waiting = session(w, 12, 8, "Waiting for table metadata lock", false);
	transaction(S("11"), S("12"), S("0"), NULL);
	transaction(S("10"), S("41"), S("0"), NULL);
	find(w, false);
	assert_int_equal(waiting->blocker_id, 11);
	assert_int_equal(waiting->candidates, 1);
}

/* An ALTER of another table is in nobody's way, nor is the transaction that it has for itself. */
static void test_a_working_alter_of_another_table(void **state)
{
	struct world *w = *state;
	struct mariadb_session *waiting, *first;

	statement(w, 11, 12, "copy to tmp table", "ALTER TABLE stock ADD c INT");
	statement(w, 12, 12, "copy to tmp table", "ALTER TABLE archive.orders ADD c INT");
	first = session(w, 13, 9, "Waiting for table metadata lock", true);
	waiting = session(w, 14, 8, "Waiting for table metadata lock", false);
	transaction(S("11"), S("12"), S("0"), NULL);
	transaction(S("12"), S("12"), S("0"), NULL);
	find(w, false);
	assert_int_equal(first->blocker_id, 0);
	assert_int_equal(waiting->blocker_id, 13);
	/* A transaction that is left open may have used the table. */
	transaction(S("10"), S("41"), S("0"), NULL);
	first->blocker_id = waiting->blocker_id = 0;
	find(w, false);
	assert_int_equal(first->blocker_id, 10);
	assert_int_equal(first->candidates, 1);
}

/* Nobody but who needs a table alone waits for a transaction. */
static void test_no_transaction_is_in_the_way_of_a_reader(void **state)
{
	struct world *w = *state;
	struct mariadb_session *waiting =
		session(w, 12, 8, "Waiting for table metadata lock", false);

	transaction(S("10"), S("41"), S("0"), NULL);
	find(w, false);
	assert_int_equal(waiting->blocker_id, 0);
}

/* A report that reads the table for long; another one reads something else. */
static void test_behind_a_long_statement(void **state)
{
	struct world *w = *state;
	struct mariadb_session *alter;

	statement(w, 10, 50, "Sending data", "SELECT * FROM customers");
	statement(w, 11, 40, "Sending data", "SELECT c.id FROM customers AS c JOIN orders");
	alter = session(w, 12, 9, "Waiting for table metadata lock", true);
	transaction(S("10"), S("50"), S("0"), NULL);
	transaction(S("11"), S("40"), S("0"), NULL);
	find(w, false);
	assert_int_equal(alter->blocker_id, 11);
	assert_int_equal(alter->candidates, 1);
}

static void test_two_queues(void **state)
{
	struct world *w = *state;
	struct mariadb_session *a, *b, *behind_b;

	a = session(w, 11, 20, "Waiting for table metadata lock", true);
	b = statement(w, 12, 10, "Waiting for table metadata lock", "DROP TABLE x, shop.stock");
	behind_b = statement(w, 13, 9, "Waiting for table metadata lock", "UPDATE stock SET n = 1");
	statement(w, 14, 30, "updating", "UPDATE stock SET orders = 2");
	transaction(S("14"), S("30"), S("0"), NULL);
	find(w, false);
	assert_int_equal(a->blocker_id, 0);
	assert_int_equal(b->blocker_id, 14);
	assert_int_equal(behind_b->blocker_id, 12);
}

static void test_several_transactions(void **state)
{
	struct world *w = *state;
	struct mariadb_session *alter = session(w, 11, 9, "Waiting for table metadata lock", true);

	transaction(S("10"), S("41"), S("0"), NULL);
	transaction(S("14"), S("60"), S("0"), NULL);
	find(w, false);
	assert_int_equal(alter->blocker_id, 14);
	assert_int_equal(alter->candidates, 2);
}

static void test_nobody_to_infer(void **state)
{
	struct world *w = *state;
	struct mariadb_session *row = session(w, 11, 9, "Waiting for backup lock", false);

	find(w, false);
	assert_int_equal(row->lock, RECORD_LOCK_backup);
	assert_int_equal(row->blocker_id, 0);
}

static void test_a_cluster(void **state)
{
	static const char *const states[] = { "certification", "TOI DDL", "flow control" };
	struct world *w = *state;

	statement(w, 14, 600, "copy to tmp table", "ALTER TABLE stock ADD x INT");
	for (unsigned int i = 0; i < ARRAY_SIZE(states); i++) {
		char says[64];

		snprintf(says, sizeof(says), "Waiting for %s", states[i]);
		statement(w, 20 + i, 9, says, "ALTER TABLE stock ADD y INT");
	}
	find(w, false);
	for (unsigned int i = 1; i <= ARRAY_SIZE(states); i++) {
		assert_int_equal(w->rows[i].lock, RECORD_LOCK_cluster);
		assert_int_equal(w->rows[i].blocker_id, i == 2 ? 14 : 0);
	}
}

/* MySQL has changed the word. No session is in the way, not even one that changes the table. */
static void test_a_replica_that_does_not_confirm(void **state)
{
	struct world *w = *state;
	struct mariadb_session *insert, *update;

	insert = statement(w, 11, 9, "Waiting for semi-sync ACK from slave",
		"INSERT INTO stock VALUES (1)");
	update = statement(w, 12, 9, "Waiting for semi-sync ACK from replica",
		"UPDATE stock SET n = 1");
	statement(w, 14, 600, "copy to tmp table", "ALTER TABLE stock ADD x INT");
	find(w, false);
	assert_int_equal(insert->lock, RECORD_LOCK_replica);
	assert_int_equal(update->lock, RECORD_LOCK_replica);
	assert_int_equal(insert->blocker_id, 0);
	assert_int_equal(update->blocker_id, 0);
}

/* Two backups: the second waits for the first, and both are in the way of what writes. */
static void test_who_waits_to_lock_the_server(void **state)
{
	static char stage[] = "BACKUP STAGE START", copy[] = "SELECT 1";
	struct world *w = *state;
	struct mariadb_session *first = session(w, 20, 9, "Waiting for backup lock", false);
	struct mariadb_session *second, *row;

	first->text = stage;
	row = session(w, 11, 5, "Waiting for backup lock", false);
	find(w, false);
	assert_int_equal(row->blocker_id, 20);
	row->blocker_id = row->candidates = 0;
	first->text = copy;
	first->state[0] = '\0';
	second = session(w, 21, 3, "Waiting for backup lock", false);
	second->text = stage;
	find(w, false);
	assert_int_equal(row->blocker_id, 20);
	assert_int_equal(second->blocker_id, 20);
	/* The first has ended its backup, and the second has got the lock. */
	row->blocker_id = second->blocker_id = 0;
	row->candidates = second->candidates = 0;
	second->text = copy;
	second->state[0] = '\0';
	find(w, false);
	assert_int_equal(row->blocker_id, 21);
}

/* What it ran when it got the lock is over; what it runs now says nothing of the lock. */
static void test_who_has_locked_the_server(void **state)
{
	static char flush[] = "FLUSH TABLES WITH READ LOCK", dump[] = "SELECT * FROM shop.orders";
	struct world *w = *state;
	struct mariadb_session *backup = session(w, 20, 9, "Waiting for backup lock", false), *row;

	backup->text = flush;
	find(w, false);
	assert_int_equal(backup->blocker_id, 0);
	backup->text = dump;
	backup->state[0] = '\0';
	backup->time_s = 2;
	row = session(w, 11, 5, "Waiting for backup lock", false);
	find(w, false);
	assert_int_equal(row->blocker_id, 20);
	assert_int_equal(row->candidates, 1);
	assert_int_equal(backup->blocker_id, 0);
	/* It has gone, and another one has its number. */
	row->blocker_id = row->inferred_id = row->candidates = 0;
	backup->connection_id = 21;
	find(w, false);
	assert_int_equal(row->blocker_id, 0);
	backup->connection_id = 20;
	find(w, false);
	assert_int_equal(row->blocker_id, 0);
	backup->text = NULL;
}

/* Who writes proves that the lock was given back; beside a backup others may write for long. */
static void test_who_has_given_the_lock_back(void **state)
{
	static char flush[] = "FLUSH TABLES WITH READ LOCK", stage[] = "BACKUP STAGE START";
	struct world *w = *state;
	struct mariadb_session *dump = session(w, 20, 9, "Waiting for backup lock", false), *other;

	dump->text = flush;
	find(w, false);
	dump->text = NULL;
	dump->state[0] = '\0';
	dump->idle = true;
	find(w, false);
	assert_int_equal(w->link.global_id, 20);
	other = statement(w, 11, 1, "Updating", "UPDATE shop.orders SET n = 1");
	find(w, false);
	assert_int_equal(w->link.global_id, 20);
	other->time_s = 2;
	find(w, false);
	assert_int_equal(w->link.global_id, 0);
	/* New writes prove it, too, seen twice; but not beside a session that waits. */
	w->link.global_id = 20;
	w->link.global_doubts = 0;
	other->time_s = 0;
	session(w, 12, 1, "Waiting for backup lock", false);
	find(w, false);
	find(w, false);
	assert_int_equal(w->link.global_id, 20);
	w->list.count--;
	find(w, false);
	assert_int_equal(w->link.global_id, 20);
	find(w, false);
	assert_int_equal(w->link.global_id, 0);
	dump->idle = false;
	dump->text = stage;
	find(w, false);
	dump->text = NULL;
	dump->idle = true;
	find(w, false);
	assert_int_equal(w->link.global_id, 20);
}

static void test_what_locks_the_server(void **state)
{
	(void)state;
	assert_true(tables_keeps_global("BACKUP STAGE BLOCK_COMMIT"));
	assert_false(tables_keeps_global("BACKUP STAGE END"));
	assert_false(tables_keeps_global("BACKUP UNLOCK"));
	assert_false(tables_keeps_global("FLUSH TABLES"));
	assert_false(tables_keeps_global("FLUSH TABLES a WITH READ LOCK"));
	assert_true(tables_stops_writes("FLUSH TABLES WITH READ LOCK"));
	assert_false(tables_stops_writes("BACKUP STAGE START"));
	assert_true(tables_writes("/* x */ insert into t values (1)"));
	assert_false(tables_writes("SELECT * FROM t FOR UPDATE"));
}

/* performance_schema says whose lock it is, and nothing is inferred. */
static void test_metadata_locks_that_are_told(void **state)
{
	struct world *w = *state;
	struct mariadb_session *alter = session(w, 11, 9, "Waiting for table metadata lock", true);

	w->link.metadata_locks_query = "SELECT metadata_locks";
	transaction(S("10"), S("41"), S("0"), NULL);
	transaction(S("14"), S("60"), S("0"), NULL);
	replies[1] = (struct reply){ .word = "metadata_locks",
		.count = 1,
		.rows = { { S("11"), S("10"), S("shop"), S("orders"), S("TABLE") } } };
	find(w, false);
	assert_int_equal(alter->blocker_id, 10);
	assert_int_equal(alter->candidates, 0);
	assert_string_equal(alter->object, "shop.orders");
	/* Where the type of the lock may have changed, the first is the likeliest. */
	replies[1] = (struct reply){ .word = "metadata_locks",
		.count = 4,
		.rows = { { S("11"), S("8"), S("shop"), S("orders"), S("TABLE"), S("2") },
			{ S("11"), S("9"), S("shop"), S("orders"), S("TABLE"), S("2") },
			{ S("11"), S("9"), S("shop"), S("orders"), S("TABLE"), S("2") },
			{ S("11"), S("12"), S("shop"), S("orders"), S("TABLE"), S("3") } } };
	find(w, false);
	assert_int_equal(alter->blocker_id, 8);
	assert_int_equal(alter->candidates, 2);
}

/* A procedure has tables that its text does not name: it may be the holder as well. */
static void test_statements_that_hide_their_tables(void **state)
{
	struct world *w = *state;
	struct mariadb_session *alter = session(w, 11, 9, "Waiting for table metadata lock", true);
	struct mariadb_session *call = statement(w, 12, 40, "Sending data", "CALL nightly()");

	transaction(S("10"), S("41"), S("0"), NULL);
	transaction(S("12"), S("40"), S("0"), NULL);
	find(w, false);
	assert_int_equal(alter->candidates, 2);
	call->text = (char[]){ "SELECT * FROM shop.users" };
	alter->blocker_id = alter->inferred_id = 0;
	find(w, false);
	assert_int_equal(alter->blocker_id, 10);
	assert_int_equal(alter->candidates, 1);
}

/* The time of replication is how far it is behind, and says nothing of its wait. */
static void test_replication_that_is_behind(void **state)
{
	struct world *w = *state;
	struct mariadb_session *applier =
		session(w, 11, 7200, "Waiting for table metadata lock", true);

	applier->background = true;
	transaction(S("10"), S("9000"), S("0"), NULL);
	find(w, false);
	assert_int_equal(applier->lock, RECORD_LOCK_metadata);
	assert_int_equal(applier->blocker_id, 0);
	session(w, 12, 40, "Sending data", false);
	find(w, false);
	assert_int_equal(applier->blocker_id, 12);
}

/* Who reads waits behind its DDL, and a DDL of a client behind what is at work, as it does. */
static void test_behind_replication(void **state)
{
	struct world *w = *state;
	struct mariadb_session *applier, *reader, *alter;

	applier = session(w, 11, 1, "Waiting for table metadata lock", true);
	applier->background = true;
	reader = session(w, 13, 20, "Waiting for table metadata lock", false);
	session(w, 12, 40, "Sending data", false);
	find(w, false);
	assert_int_equal(applier->blocker_id, 12);
	assert_int_equal(reader->blocker_id, 11);
	alter = session(w, 14, 30, "Waiting for table metadata lock", true);
	find(w, false);
	assert_int_equal(alter->blocker_id, 12);
}

/* A cluster runs DDL alone, and its statement is in the list of this node. */
static void test_ddl_of_a_cluster(void **state)
{
	struct world *w = *state;
	struct mariadb_session *waits =
		statement(w, 11, 9, "Waiting for TOI DDL", "UPDATE shop.orders SET n = 1");
	struct mariadb_session *applies =
		statement(w, 13, 9, "Waiting for certification", "UPDATE shop.orders SET n = 1");

	find(w, false);
	assert_int_equal(waits->lock, RECORD_LOCK_cluster);
	assert_int_equal(waits->blocker_id, 0);
	statement(w, 12, 30, "altering table", "ALTER TABLE shop.users ADD c INT");
	find(w, false);
	assert_int_equal(waits->blocker_id, 12);
	assert_int_equal(waits->candidates, 1);
	assert_int_equal(applies->blocker_id, 0);
}

static void test_ddl_of_another_node(void **state)
{
	struct world *w = *state;
	struct mariadb_session *waits =
		statement(w, 11, 9, "Waiting for TOI DDL", "UPDATE shop.orders SET n = 1");
	struct mariadb_session *applier = session(w, 2, 0, "altering table", true);

	applier->background = true;
	find(w, false);
	assert_int_equal(waits->blocker_id, 2);
}

static bool can_ask_mysql(struct sql_link *link, const char *query)
{
	(void)link;
	return !strstr(query, "INNODB_LOCK_WAITS");
}

/* These stop InnoDB for each lock that they tell. */
static void test_locks_of_a_crowd_cost_too_much(void **state)
{
	static const unsigned long versions[] = { 80036, 80100, 80402, 90001, 80040, 80403, 90100 };
	struct world *w = *state;
	static char ids[60][8], nine[] = "9", one[] = "1";

	mariadb_choose_lock_queries(&w->link, can_ask_mysql);
	w->link.metadata_locks_query = NULL;
	replies[0].word = "INNODB_TRX WHERE";
	replies[1] = (struct reply){ .word = "data_lock_waits" };
	session(w, 11, 9, "updating", false);
	for (unsigned int i = 0; i < ARRAY_SIZE(ids); i++) {
		snprintf(ids[i], sizeof(ids[i]), "%u", i + 100);
		transaction(ids[i], nine, one, nine);
	}
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		w->link.version = versions[i];
		asked = 0;
		find(w, false);
		assert_int_equal(asked, i < 4 ? 1 : 2);
	}
	replies[0].count = 50;
	w->link.version = 80036;
	asked = 0;
	find(w, false);
	assert_int_equal(asked, 2);
}

/* How many sessions and locks an answer gets of the list. */
static unsigned int send_all(struct world *w, struct sql_frame_session *ret_session)
{
	struct sql_answer answer = { .fd = sockets[1], .setup = &w->setup };

	mariadb_send_locks(&w->link, &w->list, &answer);
	if (answer.sent)
		assert_true(recv(sockets[0], ret_session, sizeof(*ret_session), 0) > 0);
	return answer.sent;
}

/* Who has locked a table, and sleeps, has no transaction. */
static void test_a_holder_without_a_transaction(void **state)
{
	struct world *w = *state;
	struct sql_frame_session holder;

	session(w, 11, 9, "Waiting for table metadata lock", true);
	w->link.metadata_locks_query = "SELECT metadata_locks";
	replies[1] = (struct reply){ .word = "metadata_locks",
		.count = 1,
		.rows = { { S("11"), S("77"), S("shop"), S("orders"), S("TABLE") } } };
	w->list.active = 1;
	find(w, false);
	assert_true(mariadb_is_blocker(&w->link, 77));
	assert_true(mariadb_may_hold_locks(&w->link, 77));
	assert_int_equal(send_all(w, &holder), 1);
	assert_int_equal(holder.connection_id, 77);
	assert_true(holder.idle);
	assert_int_equal(holder.transaction_ns, 0);
	/* It may be one of those for which the list had no room, and run. */
	w->list.active = 600;
	assert_int_equal(send_all(w, &holder), 0);
	/* Or one of those that replicate, and wait with what they have locked. */
	w->list.active = 1;
	w->list.resting[w->list.resting_count++] = 76;
	assert_int_equal(send_all(w, &holder), 1);
	w->list.resting[w->list.resting_count++] = 77;
	assert_int_equal(send_all(w, &holder), 0);
}

/* An answer that took longer than we wait is not lost. */
static void test_an_answer_that_is_late(void **state)
{
	const struct reply late = { .count = 1,
		.rows = { { S("11"), S("10"), S("shop"), S("orders"), S("TABLE") } } };
	struct world *w = *state;
	struct mariadb_session *alter = session(w, 11, 9, "Waiting for table metadata lock", true);
	struct mariadb_session *other = session(w, 12, 9, "Waiting for table metadata lock", false);
	char error_buf[SQL_ERROR_SIZE];
	struct text error = TEXT_ON(error_buf);
	const uint64_t asked_ns = clock_mono_ns() - NSEC_PER_SEC;

	text_reset(&error);
	current = &late;
	at = 0;
	w->link.pending = MARIADB_ASKS_METADATA_LOCKS;
	w->link.waits_asked_ns = asked_ns;
	w->list.asked_ns = clock_mono_ns();
	assert_int_equal(mariadb_keep_late_locks(&w->link, (MYSQL_RES *)w, asked_ns, &error), 0);
	/* The server is left alone for so much longer. */
	assert_int_equal(mariadb_find_locks(&w->link, false, &w->list, &error), 0);
	assert_int_equal(asked, 0);
	assert_int_equal(alter->blocker_id, 10);
	assert_int_equal(alter->candidates, 0);
	assert_int_equal(other->blocker_id, 0);
	/* Once: it may be another one by then. And not for a statement that began after it. */
	alter->blocker_id = 0;
	assert_int_equal(mariadb_find_locks(&w->link, false, &w->list, &error), 0);
	assert_int_equal(alter->blocker_id, 0);
	at = 0;
	assert_int_equal(mariadb_keep_late_locks(&w->link, (MYSQL_RES *)w, asked_ns, &error), 0);
	alter->time_s = 0;
	assert_int_equal(mariadb_find_locks(&w->link, false, &w->list, &error), 0);
	assert_int_equal(alter->blocker_id, 0);
}

/* The same for who waits for a row, and for row locks, which are asked for after that. */
static void test_transactions_that_are_late(void **state)
{
	struct world *w = *state;
	struct mariadb_session *waits = session(w, 11, 9, "Updating", false);
	struct mariadb_session *went_on = session(w, 12, 0, "Updating", false);
	struct mariadb_session *sleeper = session(w, 13, 9, "", false);
	struct reply locks = { .count = 1,
		.rows = { { S("11"), S("13"), S("shop"), S("orders"), NULL } } };
	char error_buf[SQL_ERROR_SIZE];
	struct text error = TEXT_ON(error_buf);
	const uint64_t asked_ns = clock_mono_ns() - NSEC_PER_SEC;

	text_reset(&error);
	sleeper->idle = true;
	transaction(S("11"), S("8"), S("1"), S("7"));
	transaction(S("12"), S("8"), S("1"), S("7"));
	transaction(S("13"), S("30"), S("0"), NULL);
	w->list.asked_ns = clock_mono_ns();
	w->link.waits_asked_ns = asked_ns;
	w->link.pending = MARIADB_ASKS_TRANSACTIONS;
	current = &replies[0];
	at = 0;
	assert_int_equal(mariadb_keep_late_locks(&w->link, (MYSQL_RES *)w, asked_ns, &error), 0);
	assert_int_equal(mariadb_find_locks(&w->link, false, &w->list, &error), 0);
	assert_int_equal(asked, 0);
	assert_int_equal(waits->lock, RECORD_LOCK_row);
	assert_int_equal(waits->waited_s, 7);
	assert_int_equal(went_on->lock, RECORD_LOCK_NONE);
	assert_int_equal(went_on->transaction_s, 0);
	assert_int_equal(sleeper->transaction_s, 30);
	w->link.pending = MARIADB_ASKS_ROW_LOCKS;
	current = &locks;
	at = 0;
	assert_int_equal(mariadb_keep_late_locks(&w->link, (MYSQL_RES *)w, asked_ns, &error), 0);
	assert_int_equal(mariadb_find_locks(&w->link, false, &w->list, &error), 0);
	assert_int_equal(waits->blocker_id, 13);
	assert_string_equal(waits->object, "shop.orders");
}

/* Who waited for a row a while ago may have got it since, in the same statement. */
static void test_transactions_without_an_answer(void **state)
{
	struct world *w = *state;
	struct mariadb_session *row = statement(w, 11, 9, "Updating", "UPDATE other SET a = 1");
	struct mariadb_session *alter = session(w, 12, 8, "Waiting for table metadata lock", true);
	char byte;

	transaction(S("11"), S("9"), S("1"), S("9"));
	transaction(S("13"), S("41"), S("0"), NULL);
	replies[1] = (struct reply){ .word = "INNODB_LOCK_WAITS" };
	find(w, false);
	assert_int_equal(row->lock, RECORD_LOCK_row);
	assert_int_equal(alter->blocker_id, 13);
	row->lock = RECORD_LOCK_NONE;
	row->transaction_s = alter->blocker_id = 0;
	assert_int_equal(recv(sockets[1], &byte, 1, 0), 1);
	w->list.asked_ns = clock_mono_ns();
	find(w, false);
	assert_int_equal(w->link.pending, MARIADB_ASKS_TRANSACTIONS);
	assert_int_equal(row->lock, RECORD_LOCK_NONE);
	assert_int_equal(row->transaction_s, 0);
	assert_int_equal(alter->blocker_id, 0);
	/* For the list of sessions they are good enough. */
	assert_true(mariadb_may_hold_locks(&w->link, 13));
}

/* A late answer does not tell of a session that has gone on, or that is not in the list. */
static void test_holders_by_an_answer_that_is_late(void **state)
{
	struct world *w = *state;
	struct mariadb_session *alter = session(w, 12, 8, "Waiting for table metadata lock", true);
	struct mariadb_session *sleeper = session(w, 13, 0, "", false);
	char error_buf[SQL_ERROR_SIZE];
	struct text error = TEXT_ON(error_buf);
	const uint64_t asked_ns = clock_mono_ns() - NSEC_PER_SEC;

	text_reset(&error);
	sleeper->idle = true;
	sleeper->text = NULL;
	transaction(S("13"), S("41"), S("0"), NULL);
	transaction(S("14"), S("40"), S("0"), NULL);
	for (uint64_t slept_s = 0; slept_s < 6; slept_s += 5) {
		sleeper->time_s = slept_s;
		w->list.asked_ns = clock_mono_ns();
		w->link.pending = MARIADB_ASKS_TRANSACTIONS;
		current = &replies[0];
		at = 0;
		assert_int_equal(mariadb_keep_late_locks(&w->link, (MYSQL_RES *)w, asked_ns,
					 &error),
			0);
		assert_int_equal(mariadb_find_locks(&w->link, false, &w->list, &error), 0);
		assert_int_equal(alter->blocker_id, slept_s ? 13 : 0);
		assert_int_equal(alter->candidates, slept_s ? 1 : 0);
	}
}

static void test_what_is_locked_by_its_name(void **state)
{
	struct world *w = *state;
	struct mariadb_session *row = session(w, 11, 9, "User lock", false);

	transaction(S("10"), S("41"), S("0"), NULL);
	find(w, false);
	assert_int_equal(row->lock, RECORD_LOCK_advisory);
	assert_int_equal(row->blocker_id, 0);
}

/* Only when several statements last that no state explains. */
static void test_idle_questions(void **state)
{
	struct world *w = *state;

	session(w, 11, 1, "Updating", false);
	session(w, 12, 1, "Updating", false);
	session(w, 13, 9, "User sleep", false);
	session(w, 14, 9, "Waiting for table metadata lock", false);
	find(w, true);
	assert_int_equal(asked, 0);
	assert_int_equal(w->rows[3].lock, RECORD_LOCK_metadata);
	session(w, 15, 1, "Updating", false);
	find(w, true);
	assert_int_equal(asked, 1);
}

static void test_what_is_ddl(void **state)
{
	(void)state;
	assert_true(tables_is_ddl("ALTER TABLE t"));
	assert_true(tables_is_ddl(" /* x */ /*y*/\n\tdrop table t"));
	assert_true(tables_is_ddl("FLUSH TABLES WITH READ LOCK"));
	assert_false(tables_is_ddl("SELECT 'ALTER'"));
	assert_false(tables_is_ddl("altered"));
	assert_false(tables_is_ddl("/* ALTER"));
	assert_false(tables_is_ddl(""));
	assert_true(tables_is_global("FLUSH TABLES WITH READ LOCK"));
	assert_true(tables_is_global("BACKUP STAGE BLOCK_DDL"));
	assert_true(tables_is_global("flush local tables"));
	assert_false(tables_is_global("FLUSH TABLES orders"));
}

static void test_shared_tables(void **state)
{
	static const struct {
		const char *ddl, *other;
		bool shared;
	} cases[] = {
		{ "ALTER TABLE orders ADD c INT", "SELECT * FROM orders", true },
		{ "ALTER TABLE orders ADD c INT", "SELECT * FROM `shop`.`orders`", true },
		{ "ALTER TABLE orders ADD c INT", "SELECT * FROM other.orders", false },
		{ "ALTER IGNORE TABLE IF EXISTS shop.orders ADD c INT", "DELETE FROM orders",
			true },
		{ "ALTER TABLE a RENAME TO orders", "SELECT * FROM orders", false },
		{ "TRUNCATE orders", "INSERT INTO orders VALUES (1)", true },
		{ "CREATE UNIQUE INDEX i ON orders (v)", "UPDATE orders SET v = 1", true },
		{ "CREATE INDEX orders ON a (v)", "UPDATE orders SET v = 1", false },
		{ "RENAME TABLE a TO b, orders TO c", "SELECT 1 FROM x, orders", true },
		{ "LOCK TABLES a READ, orders WRITE", "REPLACE orders SET v = 1", true },
		{ "OPTIMIZE TABLE orders", "ALTER TABLE orders ADD c INT", true },
		{ "OPTIMIZE TABLE orders", "DROP INDEX i ON stock", false },
		{ "ALTER TABLE orders ADD c INT", "SELECT orders FROM stock", false },
		{ "ALTER TABLE orders ADD c INT", "SELECT * FROM a WHERE b = 'FROM orders'",
			false },
		{ "ALTER TABLE orders ADD c INT", "SELECT * FROM a /* FROM orders */", false },
		{ "ALTER TABLE orders ADD c INT", "SELECT * FROM a JOIN b ON a.orders = b.id",
			false },
		{ "ALTER TABLE orders ADD c INT",
			"SELECT * FROM a WHERE id IN (SELECT id FROM orders)", true },
		{ "ALTER TABLE", "SELECT * FROM orders", false },
		{ "ALTER TABLE `orders", "SELECT * FROM orders", false },
		{ "SELECT * FROM orders", "SELECT * FROM orders", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct tables_statement ddl = { cases[i].ddl, "shop" },
					      other = { cases[i].other, "shop" };

		if (tables_are_shared(&ddl, &other) != cases[i].shared)
			fail_msg("%s / %s", cases[i].ddl, cases[i].other);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_row_locks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_transaction_without_a_session, setup,
			teardown),
		cmocka_unit_test_setup_teardown(test_behind_a_waiting_alter, setup, teardown),
		cmocka_unit_test_setup_teardown(test_behind_a_working_alter, setup, teardown),
		cmocka_unit_test_setup_teardown(test_several_transactions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nobody_to_infer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_cluster, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_replica_that_does_not_confirm, setup,
			teardown),
		cmocka_unit_test_setup_teardown(test_who_has_locked_the_server, setup, teardown),
		cmocka_unit_test_setup_teardown(test_who_has_given_the_lock_back, setup, teardown),
		cmocka_unit_test(test_what_locks_the_server),
		cmocka_unit_test_setup_teardown(test_who_waits_to_lock_the_server, setup, teardown),
		cmocka_unit_test_setup_teardown(test_statements_that_hide_their_tables, setup,
			teardown),
		cmocka_unit_test_setup_teardown(test_replication_that_is_behind, setup, teardown),
		cmocka_unit_test_setup_teardown(test_behind_replication, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ddl_of_a_cluster, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ddl_of_another_node, setup, teardown),
		cmocka_unit_test_setup_teardown(test_locks_of_a_crowd_cost_too_much, setup,
			teardown),
		cmocka_unit_test_setup_teardown(test_metadata_locks_that_are_told, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_holder_without_a_transaction, setup,
			teardown),
		cmocka_unit_test_setup_teardown(test_an_answer_that_is_late, setup, teardown),
		cmocka_unit_test_setup_teardown(test_transactions_that_are_late, setup, teardown),
		cmocka_unit_test_setup_teardown(test_transactions_without_an_answer, setup,
			teardown),
		cmocka_unit_test_setup_teardown(test_holders_by_an_answer_that_is_late, setup,
			teardown),
		cmocka_unit_test_setup_teardown(test_what_is_locked_by_its_name, setup, teardown),
		cmocka_unit_test_setup_teardown(test_idle_questions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_working_alter_of_another_table, setup,
			teardown),
		cmocka_unit_test_setup_teardown(test_no_transaction_is_in_the_way_of_a_reader,
			setup, teardown),
		cmocka_unit_test_setup_teardown(test_behind_a_long_statement, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_queues, setup, teardown),
		cmocka_unit_test(test_what_is_ddl),
		cmocka_unit_test(test_shared_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
