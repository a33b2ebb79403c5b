/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sql/helper/mariadb_locks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"

/* Each question about locks may take so long; a late answer is read before the next question. */
#define LOCKS_TIMEOUT_MS 300
/* InnoDB stops its work while it tells locks, so at most so much of the time is spent on it. */
#define LOCKS_COST_TIMES 20
/* Where InnoDB stands still for each lock that is told. */
#define COSTLY_WAITERS_MAX 50
/* So many statements that last are a reason to look for row locks while idle. */
#define SUSPICIOUS 3
/* Rows of one answer: of one session that waits there may be several. */
#define ROWS_MAX 1024

/* --- what the server can tell ------------------------------------------------------ */

enum transaction_cell {
	TRANSACTION_CONNECTION,
	TRANSACTION_AGE_S,
	TRANSACTION_WAITS,
	TRANSACTION_WAITED_S,
	TRANSACTION_CELLS,
};

static const char transactions_query[] =
	"SELECT trx_mysql_thread_id, TIMESTAMPDIFF(SECOND, trx_started, NOW()), "
	"trx_state = 'LOCK WAIT', TIMESTAMPDIFF(SECOND, trx_wait_started, NOW()) "
	"FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id > 0 "
	/* Those that wait are the newest, and row locks are asked for because of them. */
	"ORDER BY trx_state = 'LOCK WAIT' DESC, trx_started LIMIT 1024";

/* Of those that tell who waits for whom. */
enum wait_cell {
	WAIT_CONNECTION,
	WAIT_BLOCKER,
	WAIT_SCHEMA,
	WAIT_TABLE, /* in MariaDB also `schema`.`table` */
	WAIT_TYPE,  /* of metadata locks */
	WAIT_DOUBT,
	WAIT_CELLS,
};

static unsigned int cells_of(enum mariadb_question question)
{
	return question == MARIADB_ASKS_TRANSACTIONS ? TRANSACTION_CELLS : WAIT_CELLS;
}

/* A blocker that waits itself comes last: others before it in the queue block it, too. */
#define ROW_LOCKS_ORDER " ORDER BY b.trx_state = 'LOCK WAIT', b.trx_started LIMIT 1024"

static const char row_locks_of_mariadb[] =
	"SELECT r.trx_mysql_thread_id, b.trx_mysql_thread_id, NULL, l.lock_table, NULL, 0 "
	"FROM information_schema.INNODB_LOCK_WAITS AS w "
	"JOIN information_schema.INNODB_TRX AS r ON r.trx_id = w.requesting_trx_id "
	"JOIN information_schema.INNODB_TRX AS b ON b.trx_id = w.blocking_trx_id "
	"LEFT JOIN information_schema.INNODB_LOCKS AS l ON l.lock_id = w.requested_lock_id" ROW_LOCKS_ORDER;

static const char row_locks_of_mysql[] =
	"SELECT r.trx_mysql_thread_id, b.trx_mysql_thread_id, l.OBJECT_SCHEMA, l.OBJECT_NAME, "
	"NULL, 0 "
	"FROM performance_schema.data_lock_waits AS w "
	"JOIN information_schema.INNODB_TRX AS r "
	"ON r.trx_id = w.REQUESTING_ENGINE_TRANSACTION_ID "
	"JOIN information_schema.INNODB_TRX AS b ON b.trx_id = w.BLOCKING_ENGINE_TRANSACTION_ID "
	"LEFT JOIN performance_schema.data_locks AS l "
	"ON l.ENGINE_LOCK_ID = w.REQUESTING_ENGINE_LOCK_ID" ROW_LOCKS_ORDER;

/* What excludes what writes: types of MariaDB. */
#define EXCLUDES_WRITERS                                                                           \
	"WHEN 'BACKUP_DML' THEN 'BACKUP_WAIT_FLUSH,BACKUP_WAIT_DDL,BACKUP_WAIT_COMMIT,"            \
	"BACKUP_FTWRL1,BACKUP_FTWRL2' "                                                            \
	"WHEN 'BACKUP_TRANS_DML' THEN 'BACKUP_FTWRL1,BACKUP_FTWRL2' "                              \
	"WHEN 'BACKUP_SYS_DML' THEN 'BACKUP_WAIT_COMMIT,BACKUP_FTWRL1,BACKUP_FTWRL2' "             \
	"WHEN 'BACKUP_DDL' THEN 'BACKUP_WAIT_DDL,BACKUP_WAIT_COMMIT,BACKUP_FTWRL1,"                \
	"BACKUP_FTWRL2,BACKUP_BLOCK_DDL' "                                                         \
	"WHEN 'BACKUP_ALTER_COPY' THEN 'BACKUP_FTWRL1,BACKUP_FTWRL2' "                             \
	"WHEN 'BACKUP_COMMIT' THEN 'BACKUP_WAIT_COMMIT,BACKUP_FTWRL1,BACKUP_FTWRL2' "

/* What excludes a lock of the type q.LOCK_TYPE. */
#define EXCLUDES_Q                                                                                 \
	"CASE q.LOCK_TYPE "                                                                        \
	"WHEN 'INTENTION_EXCLUSIVE' THEN 'SHARED,EXCLUSIVE' "                                      \
	"WHEN 'SHARED' THEN 'INTENTION_EXCLUSIVE,EXCLUSIVE' "                                      \
	"WHEN 'SHARED_HIGH_PRIO' THEN 'EXCLUSIVE' "                                                \
	"WHEN 'SHARED_READ' THEN 'SHARED_NO_READ_WRITE,EXCLUSIVE' "                                \
	"WHEN 'SHARED_WRITE' "                                                                     \
	"THEN 'SHARED_READ_ONLY,SHARED_NO_WRITE,SHARED_NO_READ_WRITE,EXCLUSIVE' "                  \
	"WHEN 'SHARED_WRITE_LOW_PRIO' "                                                            \
	"THEN 'SHARED_READ_ONLY,SHARED_NO_WRITE,SHARED_NO_READ_WRITE,EXCLUSIVE' "                  \
	"WHEN 'SHARED_UPGRADABLE' "                                                                \
	"THEN 'SHARED_UPGRADABLE,SHARED_NO_WRITE,SHARED_NO_READ_WRITE,EXCLUSIVE' "                 \
	"WHEN 'SHARED_READ_ONLY' "                                                                 \
	"THEN 'SHARED_WRITE,SHARED_WRITE_LOW_PRIO,SHARED_NO_READ_WRITE,EXCLUSIVE' "                \
	"WHEN 'SHARED_NO_WRITE' THEN 'SHARED_WRITE,SHARED_WRITE_LOW_PRIO,SHARED_UPGRADABLE,"       \
	"SHARED_NO_WRITE,SHARED_NO_READ_WRITE,EXCLUSIVE' "                                         \
	"WHEN 'SHARED_NO_READ_WRITE' THEN 'SHARED_READ,SHARED_WRITE,SHARED_WRITE_LOW_PRIO,"        \
	"SHARED_UPGRADABLE,SHARED_READ_ONLY,SHARED_NO_WRITE,SHARED_NO_READ_WRITE,EXCLUSIVE' "      \
	"WHEN 'EXCLUSIVE' THEN g.LOCK_TYPE "                                                       \
	"WHEN 'BACKUP_START' THEN 'BACKUP_START,BACKUP_BLOCK_DDL' "                                \
	"WHEN 'BACKUP_BLOCK_DDL' THEN 'BACKUP_START,BACKUP_BLOCK_DDL' "                            \
	"WHEN 'BACKUP_WAIT_FLUSH' THEN 'BACKUP_DML' "                                              \
	"WHEN 'BACKUP_WAIT_DDL' THEN 'BACKUP_DML' "                                                \
	"WHEN 'BACKUP_WAIT_COMMIT' THEN 'BACKUP_DML,BACKUP_SYS_DML,BACKUP_COMMIT' "                \
	"WHEN 'BACKUP_FTWRL1' THEN 'BACKUP_DML,BACKUP_TRANS_DML,BACKUP_SYS_DML,BACKUP_DDL,"        \
	"BACKUP_ALTER_COPY' "                                                                      \
	"WHEN 'BACKUP_FTWRL2' THEN 'BACKUP_DML,BACKUP_TRANS_DML,BACKUP_SYS_DML,BACKUP_DDL,"        \
	"BACKUP_ALTER_COPY,BACKUP_COMMIT' " EXCLUDES_WRITERS "END"

/*
 * The table has the type that a lock began with. A backup begins with one of two, and has another
 * one for each of its stages; a DDL lets the stages of a backup pass while it copies.
 */
#define MAY_EXCLUDE_Q                                                                              \
	"(g.LOCK_TYPE IN ('BACKUP_START', 'BACKUP_BLOCK_DDL') AND q.LOCK_TYPE IN "                 \
	"('BACKUP_DML', 'BACKUP_SYS_DML', 'BACKUP_DDL', 'BACKUP_COMMIT') "                         \
	"OR g.LOCK_TYPE = 'BACKUP_DDL' AND q.LOCK_TYPE IN "                                        \
	"('BACKUP_WAIT_DDL', 'BACKUP_WAIT_COMMIT', 'BACKUP_BLOCK_DDL'))"

/* What is let in before a lock of the type p.LOCK_TYPE, if it waits. */
#define BEFORE_P                                                                                   \
	"CASE p.LOCK_TYPE "                                                                        \
	"WHEN 'SHARED' THEN 'EXCLUSIVE' "                                                          \
	"WHEN 'INTENTION_EXCLUSIVE' THEN 'SHARED,EXCLUSIVE' "                                      \
	"WHEN 'SHARED_READ' THEN 'SHARED_NO_READ_WRITE,EXCLUSIVE' "                                \
	"WHEN 'SHARED_WRITE' THEN 'SHARED_NO_WRITE,SHARED_NO_READ_WRITE,EXCLUSIVE' "               \
	"WHEN 'SHARED_WRITE_LOW_PRIO' "                                                            \
	"THEN 'SHARED_READ_ONLY,SHARED_NO_WRITE,SHARED_NO_READ_WRITE,EXCLUSIVE' "                  \
	"WHEN 'SHARED_READ_ONLY' THEN 'SHARED_WRITE,SHARED_NO_READ_WRITE,EXCLUSIVE' "              \
	"WHEN 'SHARED_UPGRADABLE' THEN 'SHARED_NO_READ_WRITE,EXCLUSIVE' "                          \
	"WHEN 'SHARED_NO_WRITE' THEN 'EXCLUSIVE' "                                                 \
	"WHEN 'SHARED_NO_READ_WRITE' THEN 'EXCLUSIVE' " EXCLUDES_WRITERS "END"

/*
 * Who has what p waits for (0), or who waits with a q that is let in before p (1). DDL and a backup
 * may have another type by now (2), and so has a session that sleeps with LOCK TABLES ... READ (3).
 * Of those that are sure, whoever waits itself comes last.
 */
static const char metadata_locks[] =
	"SELECT w.PROCESSLIST_ID, "
	"COALESCE(IF(q.LOCK_TYPE <> p.LOCK_TYPE, q.FIRST_ID, NULL), b.PROCESSLIST_ID), "
	"p.OBJECT_SCHEMA, p.OBJECT_NAME, p.OBJECT_TYPE, "
	"CASE WHEN " MAY_EXCLUDE_Q " THEN IF(q.LOCK_TYPE = p.LOCK_TYPE, 2, 1) "
	"WHEN FIND_IN_SET(g.LOCK_TYPE, " EXCLUDES_Q ") THEN q.LOCK_TYPE <> p.LOCK_TYPE "
	"WHEN q.LOCK_TYPE <> p.LOCK_TYPE THEN NULL "
	"WHEN g.LOCK_TYPE = 'SHARED_UPGRADABLE' THEN 2 "
	"WHEN g.LOCK_TYPE = 'SHARED_READ' AND b.PROCESSLIST_COMMAND = 'Sleep' "
	"AND p.LOCK_TYPE IN ('SHARED_WRITE', 'SHARED_WRITE_LOW_PRIO') THEN 3 END AS doubt "
	"FROM performance_schema.metadata_locks AS p "
	"JOIN (SELECT m.OBJECT_TYPE, m.OBJECT_SCHEMA, m.OBJECT_NAME, m.LOCK_TYPE, "
	"MIN(t.PROCESSLIST_ID) AS FIRST_ID FROM performance_schema.metadata_locks AS m "
	"JOIN performance_schema.threads AS t ON t.THREAD_ID = m.OWNER_THREAD_ID "
	"WHERE m.LOCK_STATUS = 'PENDING' GROUP BY 1, 2, 3, 4) AS q "
	"ON q.OBJECT_TYPE = p.OBJECT_TYPE AND q.OBJECT_SCHEMA <=> p.OBJECT_SCHEMA "
	"AND q.OBJECT_NAME <=> p.OBJECT_NAME AND (q.LOCK_TYPE = p.LOCK_TYPE "
	"OR FIND_IN_SET(q.LOCK_TYPE, " BEFORE_P ")) "
	"JOIN performance_schema.metadata_locks AS g "
	"ON g.OBJECT_TYPE = p.OBJECT_TYPE AND g.OBJECT_SCHEMA <=> p.OBJECT_SCHEMA "
	"AND g.OBJECT_NAME <=> p.OBJECT_NAME AND g.LOCK_STATUS = 'GRANTED' "
	"AND g.OWNER_THREAD_ID <> p.OWNER_THREAD_ID "
	"JOIN performance_schema.threads AS w ON w.THREAD_ID = p.OWNER_THREAD_ID "
	"JOIN performance_schema.threads AS b ON b.THREAD_ID = g.OWNER_THREAD_ID "
	"WHERE p.LOCK_STATUS = 'PENDING' AND b.PROCESSLIST_ID IS NOT NULL "
	"HAVING doubt IS NOT NULL "
	"ORDER BY doubt > 1, EXISTS (SELECT * FROM performance_schema.metadata_locks AS o "
	"WHERE o.OWNER_THREAD_ID = g.OWNER_THREAD_ID AND o.LOCK_STATUS = 'PENDING'), "
	"doubt, b.PROCESSLIST_TIME DESC LIMIT 1024";
/* From then on the holder is a guess. */
#define DOUBT_MIN 2

void mariadb_choose_lock_queries(struct sql_link *link,
	bool (*can_ask)(struct sql_link *link, const char *query))
{
	char explain[sizeof("EXPLAIN ") + sizeof(metadata_locks)];

	link->transactions_query = link->row_locks_query = link->metadata_locks_query = NULL;
	if (can_ask(link, "SELECT 1 FROM information_schema.INNODB_TRX LIMIT 0"))
		link->transactions_query = transactions_query;
	if (can_ask(link, "SELECT 1 FROM information_schema.INNODB_LOCK_WAITS LIMIT 0"))
		link->row_locks_query = row_locks_of_mariadb;
	else if (can_ask(link,
			 "SELECT 1 FROM performance_schema.data_lock_waits, "
			 "performance_schema.data_locks LIMIT 0"))
		link->row_locks_query = row_locks_of_mysql;
	/* With performance_schema off this table is there, and empty. */
	snprintf(explain, sizeof(explain), "EXPLAIN %s", metadata_locks);
	if (can_ask(link, explain))
		link->metadata_locks_query = metadata_locks;
}

/* --- sessions ---------------------------------------------------------------------- */

enum record_lock mariadb_lock_of_state(const char *state)
{
	static const struct {
		const char *end;
		enum record_lock lock;
	} locks[] = {
		{ "metadata lock", RECORD_LOCK_metadata },
		{ "table flush", RECORD_LOCK_flush },
		{ "table level lock", RECORD_LOCK_table },
		{ "backup lock", RECORD_LOCK_backup },
		{ "global read lock", RECORD_LOCK_backup },
		{ "commit lock", RECORD_LOCK_backup },
		/* MySQL has changed the word. */
		{ "semi-sync ACK from slave", RECORD_LOCK_replica },
		{ "semi-sync ACK from replica", RECORD_LOCK_replica },
		/* Galera */
		{ "certification", RECORD_LOCK_cluster },
		{ "TOI DDL", RECORD_LOCK_cluster },
		{ "isolation", RECORD_LOCK_cluster },
		{ "flow control", RECORD_LOCK_cluster },
	};
	size_t len = strlen(state);

	if (strcmp(state, "User lock") == 0)
		return RECORD_LOCK_advisory;
	if (strncmp(state, "Waiting ", strlen("Waiting ")) != 0)
		return RECORD_LOCK_NONE;
	for (size_t i = 0; i < ARRAY_SIZE(locks); i++) {
		size_t end = strlen(locks[i].end);

		if (len > end && strcmp(state + len - end, locks[i].end) == 0)
			return locks[i].lock;
	}
	return RECORD_LOCK_NONE;
}

/* Statements that last, and that no state explains. */
static unsigned int count_lasting(const struct mariadb_list *list)
{
	unsigned int count = 0;

	for (size_t i = 0; i < list->count; i++) {
		const struct mariadb_session *row = &list->rows[i];

		count += !row->background && !row->idle && row->time_s > 0 &&
			mariadb_lock_of_state(row->state) == RECORD_LOCK_NONE &&
			strcmp(row->state, "User sleep") != 0;
	}
	return count;
}

static void set_states(struct mariadb_list *list, bool *ret_any)
{
	*ret_any = false;
	for (size_t i = 0; i < list->count; i++) {
		list->rows[i].lock = mariadb_lock_of_state(list->rows[i].state);
		*ret_any |= list->rows[i].lock != RECORD_LOCK_NONE;
	}
}

/* --- transactions ------------------------------------------------------------------ */

static int compare_transactions(const void *a, const void *b)
{
	const struct mariadb_transaction *x = a, *y = b;

	return (x->connection_id > y->connection_id) - (x->connection_id < y->connection_id);
}

static const struct mariadb_transaction *find_transaction(const struct sql_link *link,
	uint64_t connection_id)
{
	struct mariadb_transaction key = { .connection_id = connection_id };

	if (!link->transactions)
		return NULL;
	return bsearch(&key, link->transactions, link->transactions_count, sizeof(key),
		compare_transactions);
}

/* As last told, if that is recent. */
static const struct mariadb_transaction *find_current(const struct sql_link *link,
	uint64_t connection_id)
{
	return link->transactions_asked_ns ? find_transaction(link, connection_id) : NULL;
}

bool mariadb_is_blocker(const struct sql_link *link, uint64_t connection_id)
{
	for (size_t i = 0; i < link->waits_count; i++)
		if (link->waits[i].blocker_id == connection_id)
			return true;
	return false;
}

bool mariadb_may_hold_locks(const struct sql_link *link, uint64_t connection_id)
{
	return find_transaction(link, connection_id) || connection_id == link->global_id ||
		connection_id == link->global_waiter_id || mariadb_is_blocker(link, connection_id);
}

/* As mariadb_ask(); an answer that is late or wrong is no error of the whole. */
static int ask(struct sql_link *link, enum mariadb_question question, const char *query,
	MYSQL_RES **ret_result, struct text *error)
{
	char reason_buf[SQL_ERROR_SIZE];
	struct text reason = TEXT_ON(reason_buf);
	int r;

	text_reset(&reason);
	*ret_result = NULL;
	if (link->pending_since_ns > 0)
		return 0;
	r = mariadb_ask(link, query, cells_of(question), LOCKS_TIMEOUT_MS, ret_result, &reason);
	if (r == -ETIMEDOUT)
		link->pending = question;
	if (r < 0)
		*ret_result = NULL;
	if (r == -ENOTCONN)
		text_add(error, reason.buf);
	return r == -ENOTCONN ? r : 0;
}

/* Reads the answer, and frees it; for this and the next. */
static int keep_transactions(struct sql_link *link, MYSQL_RES *result, uint64_t asked_ns,
	uint64_t *invalid, struct text *error)
{
	MYSQL_ROW row;
	size_t count = 0;
	int r;

	if (!link->transactions)
		link->transactions = calloc(MARIADB_TRANSACTIONS_MAX, sizeof(*link->transactions));
	while ((row = mariadb_next_row(link, result, &r, error))) {
		if (!link->transactions || count == MARIADB_TRANSACTIONS_MAX)
			continue;
		link->transactions[count++] = (struct mariadb_transaction){
			.connection_id =
				sql_cell_up_to(row[TRANSACTION_CONNECTION], UINT64_MAX, invalid),
			.age_s =
				sql_cell_up_to(row[TRANSACTION_AGE_S], MARIADB_TIME_S_MAX, invalid),
			.waits = sql_cell_u64(row[TRANSACTION_WAITS]) == 1,
			.waited_s = sql_cell_up_to(row[TRANSACTION_WAITED_S], MARIADB_TIME_S_MAX,
				invalid),
		};
	}
	link->lib.mysql_free_result(result);
	if (link->transactions)
		qsort(link->transactions, count, sizeof(*link->transactions), compare_transactions);
	link->transactions_count = count;
	link->transactions_asked_ns = asked_ns;
	return r;
}

/* Before, MySQL stops InnoDB for each of its locks in turn, up to the square of those that wait. */
static bool is_costly(const struct sql_link *link)
{
	return link->row_locks_query == row_locks_of_mysql &&
		(link->version < 80040 || (link->version >= 80100 && link->version < 80403) ||
			(link->version >= 90000 && link->version < 90100));
}

static bool may_ask_row_locks(const struct sql_link *link)
{
	size_t waiters = 0;

	for (size_t i = 0; i < link->transactions_count; i++)
		waiters += link->transactions[i].waits;
	return link->row_locks_query && waiters > 0 &&
		(waiters <= COSTLY_WAITERS_MAX || !is_costly(link));
}

static void set_transactions(const struct sql_link *link, struct mariadb_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		struct mariadb_session *row = &list->rows[i];
		const struct mariadb_transaction *t = find_current(link, row->connection_id);

		if (!t || !mariadb_has_stayed(list, row, link->transactions_asked_ns))
			continue;
		row->transaction_s = t->age_s;
		if (!t->waits || row->idle)
			continue;
		row->lock = RECORD_LOCK_row;
		/* The clock of the server's zone may have changed since, by an hour in summer. */
		row->waited_s = t->waited_s < row->time_s + 1 ? t->waited_s : row->time_s;
	}
}

/* --- who waits for whom ------------------------------------------------------------ */

/* "shop.orders" of `shop`.`orders`, or of two cells. */
static void set_object(struct mariadb_wait *wait, const char *schema, const char *table)
{
	struct text object = TEXT_ON(wait->object);

	text_reset(&object);
	if (schema)
		text_addf(&object, "%s.", schema);
	for (const char *p = table ? table : ""; *p; p++)
		if (schema || *p != '`')
			text_add_bytes(&object, p, 1);
	if (!table)
		text_reset(&object);
}

static enum record_lock lock_of_type(const char *type)
{
	if (type &&
		(strcmp(type, "GLOBAL") == 0 || strncmp(type, "BACKUP", 6) == 0 ||
			strcmp(type, "COMMIT") == 0))
		return RECORD_LOCK_backup;
	return type && strcmp(type, "USER LEVEL LOCK") == 0 ? RECORD_LOCK_advisory
							    : RECORD_LOCK_metadata;
}

static struct mariadb_wait *find_wait(const struct sql_link *link, uint64_t connection_id)
{
	for (size_t i = 0; i < link->waits_count; i++)
		if (link->waits[i].connection_id == connection_id)
			return &link->waits[i];
	return NULL;
}

/* Reads the answer, and frees it. Of several that one waits for the first one counts. */
static int keep_waits(struct sql_link *link, MYSQL_RES *result, bool is_metadata, uint64_t *invalid,
	struct text *error)
{
	unsigned int rows = 0;
	MYSQL_ROW cells;
	int r;

	if (!link->waits)
		link->waits = calloc(MARIADB_WAITS_MAX, sizeof(*link->waits));
	while ((cells = mariadb_next_row(link, result, &r, error))) {
		const uint64_t id = sql_cell_u64(cells[WAIT_CONNECTION]);
		const uint64_t blocker = sql_cell_up_to(cells[WAIT_BLOCKER], UINT64_MAX, invalid);
		const uint32_t doubt = (uint32_t)sql_cell_u64(cells[WAIT_DOUBT]);
		struct mariadb_wait *wait = link->waits ? find_wait(link, id) : NULL;

		if (wait && wait->candidates && wait->doubt == doubt && wait->last_id != blocker) {
			wait->candidates++;
			wait->last_id = blocker;
		}
		if (wait || !link->waits || link->waits_count == MARIADB_WAITS_MAX ||
			++rows > ROWS_MAX)
			continue;
		wait = &link->waits[link->waits_count++];
		wait->connection_id = id;
		wait->blocker_id = wait->last_id = blocker;
		wait->doubt = doubt;
		wait->candidates = doubt >= DOUBT_MIN;
		wait->has_no_session = wait->blocker_id == 0 && cells[WAIT_BLOCKER];
		wait->lock = is_metadata ? lock_of_type(cells[WAIT_TYPE]) : RECORD_LOCK_row;
		set_object(wait, cells[WAIT_SCHEMA], cells[WAIT_TABLE]);
	}
	link->lib.mysql_free_result(result);
	return r;
}

static void set_waits(const struct sql_link *link, struct mariadb_list *list)
{
	for (size_t i = 0; i < link->waits_count; i++) {
		const struct mariadb_wait *wait = &link->waits[i];
		struct mariadb_session *row = mariadb_find_session(list, wait->connection_id);

		if (!row || row->idle ||
			(wait->lock != RECORD_LOCK_row && row->lock == RECORD_LOCK_NONE) ||
			!mariadb_has_stayed(list, row, link->waits_asked_ns))
			continue;
		row->lock = wait->lock;
		row->blocker_id = wait->blocker_id;
		row->blocker_has_no_session = wait->has_no_session;
		row->candidates = wait->candidates;
		text_copy(row->object, sizeof(row->object), wait->object);
	}
}

/* --- all together ------------------------------------------------------------------ */

static void note_cost(struct sql_link *link, uint64_t begin_ns)
{
	const uint64_t now_ns = clock_mono_ns();

	link->locks_after_ns = now_ns + (now_ns - begin_ns) * (LOCKS_COST_TIMES - 1);
}

static int keep(struct sql_link *link, enum mariadb_question question, MYSQL_RES *result,
	uint64_t asked_ns, uint64_t *invalid, struct text *error)
{
	return question == MARIADB_ASKS_TRANSACTIONS
		? keep_transactions(link, result, asked_ns, invalid, error)
		: keep_waits(link, result, question == MARIADB_ASKS_METADATA_LOCKS, invalid, error);
}

static int ask_and_keep(struct sql_link *link, enum mariadb_question question, const char *query,
	struct mariadb_list *list, struct text *error)
{
	const uint64_t asked_ns = clock_mono_ns();
	MYSQL_RES *result;
	int r = ask(link, question, query, &result, error);

	return r < 0 || !result ? r : keep(link, question, result, asked_ns, &list->invalid, error);
}

static int ask_all(struct sql_link *link, bool any_state, struct mariadb_list *list,
	struct text *error)
{
	int r;

	link->waits_count = 0;
	link->waits_asked_ns = clock_mono_ns();
	link->transactions_asked_ns = 0;
	r = ask_and_keep(link, MARIADB_ASKS_TRANSACTIONS, link->transactions_query, list, error);
	if (r == 0 && may_ask_row_locks(link))
		r = ask_and_keep(link, MARIADB_ASKS_ROW_LOCKS, link->row_locks_query, list, error);
	if (r == 0 && any_state && link->metadata_locks_query)
		r = ask_and_keep(link, MARIADB_ASKS_METADATA_LOCKS, link->metadata_locks_query,
			list, error);
	return r;
}

bool mariadb_is_about_locks(enum mariadb_question question)
{
	return question >= MARIADB_ASKS_TRANSACTIONS;
}

int mariadb_keep_late_locks(struct sql_link *link, MYSQL_RES *result, uint64_t asked_ns,
	struct text *error)
{
	const enum mariadb_question question = link->pending;
	uint64_t ignored = 0;

	note_cost(link, asked_ns);
	if (!result || !mariadb_has_columns(link, result, cells_of(question), error))
		return 0;
	link->has_late_locks = true;
	return keep(link, question, result, asked_ns, &ignored, error);
}

static void explain(struct sql_link *link, struct mariadb_list *list)
{
	set_transactions(link, list);
	set_waits(link, list);
	mariadb_infer_blockers(link, list);
	link->has_late_locks = false;
}

int mariadb_find_locks(struct sql_link *link, bool is_glance, struct mariadb_list *list,
	struct text *error)
{
	uint64_t begin_ns = clock_mono_ns();
	bool any_state;
	int r;

	set_states(list, &any_state);
	mariadb_note_global(link, list);
	if (!link->transactions_query)
		return 0;
	if (begin_ns < link->locks_after_ns) {
		if (link->has_late_locks)
			explain(link, list);
		return 0;
	}
	/* While idle a state says enough for the rules. */
	if (is_glance ? count_lasting(list) < SUSPICIOUS : list->count == 0) {
		link->waits_count = 0;
		return 0;
	}
	r = ask_all(link, any_state, list, error);
	note_cost(link, begin_ns);
	if (r == 0)
		explain(link, list);
	return r;
}

static bool may_rest(const struct mariadb_list *list, uint64_t connection_id)
{
	for (size_t i = 0; i < list->resting_count && i < MARIADB_RESTING_MAX; i++)
		if (list->resting[i] == connection_id)
			return true;
	return list->resting_count > MARIADB_RESTING_MAX;
}

/*
 * Asleep when the list was made, and not known then to hold locks: the next one has its user. Where
 * the list has not all that run, or that replicate, it may be one of those.
 */
static void send_blocker(const struct sql_link *link, const struct mariadb_list *list,
	uint64_t connection_id, struct sql_answer *answer)
{
	const struct mariadb_transaction *t = find_current(link, connection_id);
	struct sql_frame_session s = { .connection_id = connection_id, .idle = 1 };

	if (mariadb_find_session(list, connection_id) || may_rest(list, connection_id) ||
		list->active > list->count - list->sleepers)
		return;
	s.transaction_ns = t ? t->age_s * NSEC_PER_SEC : 0;
	text_copy(s.command, sizeof(s.command), "Sleep");
	text_copy(s.no_tid, sizeof(s.no_tid), "a session without a statement");
	sql_answer_add(answer, &s, NULL, 0, false);
}

static bool is_sent_before(const struct mariadb_list *list, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (list->rows[k].blocker_id == list->rows[i].blocker_id)
			return true;
	return false;
}

void mariadb_send_locks(const struct sql_link *link, const struct mariadb_list *list,
	struct sql_answer *answer)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->rows[i].blocker_id && !is_sent_before(list, i))
			send_blocker(link, list, list->rows[i].blocker_id, answer);
	for (size_t i = 0; i < list->count; i++) {
		const struct mariadb_session *row = &list->rows[i];
		struct sql_frame_lock lock = {
			.connection_id = row->connection_id,
			.blocker_id = row->blocker_id,
			.waited_ns = row->waited_s * NSEC_PER_SEC,
			.lock = row->lock,
			.candidates = row->candidates,
			.has_no_session = row->blocker_has_no_session,
		};

		if (row->lock == RECORD_LOCK_NONE)
			continue;
		text_copy(lock.object, sizeof(lock.object), row->object);
		sql_answer_add_lock(answer, &lock);
	}
}
