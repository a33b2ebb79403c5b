/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who blocks whom where the server does not tell: by statements, transactions and their ages. */
#include <string.h>

#include "sql/helper/mariadb_locks.h"
#include "sql/helper/tables.h"

/* A cluster runs a statement of DDL on all nodes at once, and nothing beside it. */
static bool needs_isolation(const char *state)
{
	return strcmp(state, "Waiting for TOI DDL") == 0 ||
		strcmp(state, "Waiting to execute in isolation") == 0;
}

/* Waits for a lock of a table or of the server, and the server does not say whose. */
static bool is_unexplained(const struct mariadb_session *row)
{
	switch (row->lock) {
	case RECORD_LOCK_metadata:
	case RECORD_LOCK_table:
	case RECORD_LOCK_flush:
	case RECORD_LOCK_backup:
		return row->blocker_id == 0;
	/* What the other nodes are waited for is not in this server's list, but a DDL is. */
	case RECORD_LOCK_cluster:
		return needs_isolation(row->state);
	default:
		return false;
	}
}

/*
 * Who may hold the lock: sessions that wait for none, and whose transaction or statement is older
 * than the wait. `oldest` is the one with the oldest of these.
 */
struct holders {
	uint32_t count;
	uint64_t connection_id;
	uint64_t age_s;
};

static void add_holder(struct holders *h, uint64_t connection_id, uint64_t age_s)
{
	h->count++;
	if (h->count > 1 && age_s <= h->age_s)
		return;
	h->connection_id = connection_id;
	h->age_s = age_s;
}

/* Both times are whole seconds, and were not asked for at the same moment. */
#define ROUNDING_S 1

static struct tables_statement statement_of(const struct mariadb_session *row)
{
	return (struct tables_statement){ .text = row->text, .database = row->database };
}

/* Whether both are at the same table, one of them alone. */
static bool is_same_table(const struct mariadb_session *a, const struct mariadb_session *b)
{
	const struct tables_statement x = statement_of(a), y = statement_of(b);

	return a->is_ddl ? tables_are_shared(&x, &y) : b->is_ddl && tables_are_shared(&y, &x);
}

/* That of replication is how far it is behind: for how long it has waited is not known. */
static uint64_t time_of(const struct mariadb_session *row)
{
	return row->background ? 0 : row->time_s;
}

static bool is_at_work(const struct mariadb_session *row)
{
	return !row->background && !row->idle && row->lock == RECORD_LOCK_NONE;
}

/* What stops all writes of the server is at no table. */
static bool needs_global(enum record_lock lock)
{
	return lock == RECORD_LOCK_flush || lock == RECORD_LOCK_backup;
}

/* Whether the statement is at work, is older, and keeps the other one from its table. */
static bool is_in_the_way(const struct mariadb_session *row, const struct mariadb_session *waits)
{
	/* A DDL of another node is run by a thread of replication. */
	if (waits->lock == RECORD_LOCK_cluster)
		return row->is_ddl && !row->idle && row->lock == RECORD_LOCK_NONE &&
			(row->background || row->time_s >= time_of(waits));
	if (!is_at_work(row) || row->time_s < time_of(waits))
		return false;
	if (needs_global(waits->lock) && row->text && tables_is_global(row->text))
		return true;
	/* Statements that read and write a table are in the way of one that needs it alone. */
	return (row->is_ddl || waits->is_ddl || waits->lock == RECORD_LOCK_table) &&
		is_same_table(row, waits);
}

static struct holders find_statements(const struct mariadb_list *list,
	const struct mariadb_session *waits)
{
	struct holders h = { 0 };

	for (size_t i = 0; i < list->count; i++)
		if (is_in_the_way(&list->rows[i], waits))
			add_holder(&h, list->rows[i].connection_id, list->rows[i].time_s);
	return h;
}

/* Whether it may be at tables that its text does not name. */
static bool is_opaque(const struct mariadb_session *row)
{
	return !row->text || strlen(row->text) < row->text_bytes || tables_are_hidden(row->text);
}

/*
 * A transaction keeps its metadata locks to its end. One that began with the statement that is at
 * work has those of that statement only.
 */
static bool may_hold(const struct sql_link *link, const struct mariadb_list *list,
	const struct mariadb_transaction *t)
{
	const struct mariadb_session *row = mariadb_find_session(list, t->connection_id);

	if (!row)
		return link->transactions_asked_ns >= list->asked_ns;
	if (!mariadb_has_stayed(list, row, link->transactions_asked_ns))
		return false;
	if (row->idle)
		return true;
	if (row->lock != RECORD_LOCK_NONE || row->is_ddl)
		return false;
	return is_opaque(row) || t->age_s > row->time_s + ROUNDING_S;
}

static struct holders find_older(const struct sql_link *link, const struct mariadb_list *list,
	uint64_t age_s)
{
	struct holders h = { 0 };

	for (size_t i = 0; link->transactions_asked_ns && i < link->transactions_count; i++) {
		const struct mariadb_transaction *t = &link->transactions[i];

		if (t->age_s >= age_s && may_hold(link, list, t))
			add_holder(&h, t->connection_id, t->age_s);
	}
	return h;
}

/*
 * Both are whole seconds, and the age of a transaction may be one too many: what is surely older
 * comes before what may be.
 */
static struct holders find_transactions(const struct sql_link *link,
	const struct mariadb_list *list, uint64_t waited_s)
{
	struct holders h = { 0 };

	for (uint64_t older_s = 3; older_s > 0 && h.count == 0; older_s--)
		h = find_older(link, list, waited_s + older_s - 1);
	return h;
}

/*
 * Only one of two that need the table alone is before the other, and which one it is nobody knows
 * of replication. Who does not need it alone waits for one that does.
 */
static bool came_before(const struct mariadb_session *row, const struct mariadb_session *waits)
{
	if (!waits->is_ddl)
		return row->background || row->time_s + ROUNDING_S >= time_of(waits);
	if (row->background || waits->background)
		return false;
	return time_of(row) > time_of(waits) ||
		(time_of(row) == time_of(waits) && row->connection_id < waits->connection_id);
}

/* Whoever needs the table alone and waits for that the longest: who came later waits behind it. */
static const struct mariadb_session *find_first(const struct mariadb_list *list,
	const struct mariadb_session *waits)
{
	const struct mariadb_session *first = NULL;

	for (size_t i = 0; i < list->count; i++) {
		const struct mariadb_session *row = &list->rows[i];

		if (row != waits && is_unexplained(row) && row->lock == waits->lock &&
			row->is_ddl && is_same_table(row, waits) && came_before(row, waits) &&
			(!first || time_of(row) > time_of(first)))
			first = row;
	}
	return first;
}

/*
 * Whoever waits to lock the server is in the way of those behind it. Who has locked it lets tables
 * be flushed.
 */
static uint64_t global_holder(const struct sql_link *link, enum record_lock lock)
{
	return link->global_id && lock == RECORD_LOCK_backup ? link->global_id
							     : link->global_waiter_id;
}

static struct holders find_holders(const struct sql_link *link, const struct mariadb_list *list,
	const struct mariadb_session *waits)
{
	const struct mariadb_session *first =
		waits->lock == RECORD_LOCK_cluster ? NULL : find_first(list, waits);
	struct holders h = { 0 };

	if (first) {
		add_holder(&h, first->connection_id, time_of(first));
		return h;
	}
	h = find_statements(list, waits);
	if (h.count == 0 && needs_global(waits->lock) && global_holder(link, waits->lock) &&
		global_holder(link, waits->lock) != waits->connection_id)
		add_holder(&h, global_holder(link, waits->lock), 0);
	/*
	 * A transaction is in nobody's way but of those who need the table alone.
	 */
	if (h.count == 0 && waits->lock == RECORD_LOCK_metadata && waits->is_ddl &&
		!waits->background)
		h = find_transactions(link, list, waits->time_s);
	return h;
}

void mariadb_infer_blockers(const struct sql_link *link, struct mariadb_list *list)
{
	/* Without the transactions nothing can be said. */
	if (!link->transactions_query)
		return;
	/* In the list nothing changes that one of them depends on. */
	for (size_t i = 0; i < list->count; i++) {
		struct mariadb_session *row = &list->rows[i];
		struct holders h;

		if (!is_unexplained(row))
			continue;
		h = find_holders(link, list, row);
		row->inferred_id = h.connection_id;
		row->candidates = h.count;
	}
	for (size_t i = 0; i < list->count; i++)
		if (list->rows[i].inferred_id)
			list->rows[i].blocker_id = list->rows[i].inferred_id;
}

/* So many say that nobody has locked the whole server. */
#define DOUBTS_MAX 2

/*
 * Of that lock, as some write. What begins to wait for it has no state for a moment: a new
 * statement says less than one that has lasted for a second, and nothing where others wait.
 */
static unsigned int find_doubts(const struct mariadb_list *list)
{
	bool is_waited_for = false;
	unsigned int doubts = 0;

	for (size_t i = 0; i < list->count; i++) {
		const struct mariadb_session *row = &list->rows[i];

		is_waited_for |= row->lock == RECORD_LOCK_backup;
		if (!is_at_work(row) || !row->text || !tables_writes(row->text))
			continue;
		if (row->time_s > ROUNDING_S)
			return DOUBTS_MAX;
		doubts = 1;
	}
	return is_waited_for ? 0 : doubts;
}

/*
 * The server does not tell who has locked all of it. Whoever was seen to wait for that, and waits
 * no longer, keeps the lock until it gives it back: at the latest when others write.
 */
void mariadb_note_global(struct sql_link *link, const struct mariadb_list *list)
{
	const struct mariadb_session *waiter = mariadb_find_session(list, link->global_waiter_id);
	const unsigned int doubts = find_doubts(list);

	link->global_doubts = doubts ? link->global_doubts + doubts : 0;
	if (!mariadb_find_session(list, link->global_id) ||
		(!link->global_lets_write && link->global_doubts >= DOUBTS_MAX))
		link->global_id = 0;
	if (waiter && waiter->lock == RECORD_LOCK_NONE) {
		link->global_id = waiter->connection_id;
		link->global_lets_write = link->waiter_lets_write;
	}
	if (!waiter || waiter->lock == RECORD_LOCK_NONE)
		link->global_waiter_id = 0;
	for (size_t i = 0; i < list->count; i++) {
		const struct mariadb_session *row = &list->rows[i];

		if (!row->text || !tables_keeps_global(row->text))
			continue;
		if (row->lock == RECORD_LOCK_NONE) {
			link->global_id = row->connection_id;
			link->global_lets_write = !tables_stops_writes(row->text);
		} else if (!link->global_waiter_id) {
			link->global_waiter_id = row->connection_id;
			link->waiter_lets_write = !tables_stops_writes(row->text);
		}
	}
}
