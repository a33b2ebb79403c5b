/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sql/helper/mariadb_sessions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sql/helper/mariadb_locks.h"
#include "sql/helper/redact.h"
#include "sql/helper/tables.h"
#include "util/cleanup.h"
#include "util/clock.h"

/* Both together are below the two seconds after which the daemon reports a late answer. */
#define SESSIONS_TIMEOUT_MS 1000
/*
 * Threads are asked for after the sessions. If the server takes longer, the next answer has them.
 */
#define THREADS_TIMEOUT_MS 300
/*
 * Questions this close together mean an incident; then only threads of new sessions are asked for.
 */
#define OFTEN_NS (5 * NSEC_PER_SEC)
/*
 * While idle, threads are asked for only so often: the server may need its disk for the answer, and
 * those that are known by then are known when it hangs.
 */
#define GLANCE_THREADS_NS (60 * NSEC_PER_SEC)
/* 1024, less up to three bytes of a character that was cut off. */
#define KEPT_BYTES_MIN 1020

/* Longer than the server lets it run (max_statement_time), and before it counts as silent. */
#define THREADS_HANG_NS (3 * NSEC_PER_SEC)
#define THREADS_AGAIN_NS (600 * NSEC_PER_SEC)

/* Of threads_query. */
#define THREADS_COLUMNS 4

/* The columns of SHOW FULL PROCESSLIST, and of select_query. */
enum cell {
	CELL_ID,
	CELL_USER,
	CELL_HOST,
	CELL_DB,
	CELL_COMMAND,
	CELL_TIME_S,
	CELL_STATE,
	CELL_INFO,
	CELL_TID, /* only in select_query */
};

static const char show_query[] = "SHOW FULL PROCESSLIST";
/* With the first 100 bytes of each statement. */
static const char short_query[] = "SHOW PROCESSLIST";
#define SHORT_BYTES_MIN 97
/* MySQL tells of replication threads the user who has started them, and no command of their own. */
static const char select_query[] =
	"SELECT PROCESSLIST_ID, "
	"IF(NAME RLIKE '^thread/sql/(slave|replica)_', 'system user', PROCESSLIST_USER), "
	"IF(NAME RLIKE '^thread/sql/(slave|replica)_', NULL, PROCESSLIST_HOST), PROCESSLIST_DB, "
	"CASE WHEN NAME RLIKE '^thread/sql/(slave|replica)_io$' THEN 'Slave_IO' "
	"WHEN NAME RLIKE '^thread/sql/(slave|replica)_sql$' THEN 'Slave_SQL' "
	"WHEN NAME RLIKE '^thread/sql/(slave|replica)_worker$' THEN 'Slave_worker' "
	"ELSE PROCESSLIST_COMMAND END, "
	"PROCESSLIST_TIME, PROCESSLIST_STATE, PROCESSLIST_INFO, THREAD_OS_ID "
	"FROM performance_schema.threads WHERE TYPE = 'FOREGROUND' AND PROCESSLIST_ID IS NOT NULL";

static const char allowed_query[] = "SELECT @@max_connections";

/* Of a server that never ends: what follows is not read. */
#define ANSWER_BYTES_MAX (64UL << 20)
/* Further threads are not remembered; each takes 32 bytes. */
#define THREADS_MAX 16384

/* --- threads ----------------------------------------------------------------------- */

void mariadb_forget_threads(struct sql_link *link)
{
	free(link->threads);
	link->threads = NULL;
	link->threads_count = 0;
	link->threads_asked_ns = 0;
	link->asked_at_ns = 0;
	free(link->transactions);
	link->transactions = NULL;
	link->transactions_count = 0;
	link->transactions_asked_ns = 0;
	free(link->waits);
	link->waits = NULL;
	link->waits_count = 0;
	link->has_late_locks = false;
	link->locks_after_ns = 0;
}

static int compare_threads(const void *a, const void *b)
{
	const struct mariadb_thread *x = a, *y = b;

	return (x->connection_id > y->connection_id) - (x->connection_id < y->connection_id);
}

static const struct mariadb_thread *find_thread(const struct sql_link *link, uint64_t connection_id)
{
	struct mariadb_thread key = { .connection_id = connection_id };

	if (!link->threads)
		return NULL;
	return bsearch(&key, link->threads, link->threads_count, sizeof(key), compare_threads);
}

/* False when there is no memory; what was read so far is kept then. */
static bool make_room(struct mariadb_thread **threads, size_t count, size_t *size)
{
	struct mariadb_thread *more;

	if (count < *size)
		return true;
	more = realloc(*threads, 2 * *size * sizeof(**threads));
	if (!more)
		return false;
	*threads = more;
	*size *= 2;
	return true;
}

static void fill_thread(const MYSQL_ROW row, uint64_t now_ns, struct mariadb_thread *ret_thread)
{
	uint64_t ignored = 0;
	uint64_t elapsed_ns =
		sql_cell_up_to(row[3], MARIADB_TIME_S_MAX * 1000000, &ignored) * NSEC_PER_USEC;

	*ret_thread = (struct mariadb_thread){
		.connection_id = sql_cell_u64(row[0]),
		.tid = (int32_t)sql_cell_up_to(row[1], SQL_PID_MAX, &ignored),
		.query_id = sql_cell_u64(row[2]),
		.started_ns = row[3] && elapsed_ns < now_ns ? now_ns - elapsed_ns : 0,
	};
}

/* Keeps the answer to threads_query, and frees it. Errors are those of mariadb_ask(). */
static int keep_threads(struct sql_link *link, MYSQL_RES *result, uint64_t asked_ns,
	struct text *error)
{
	size_t size = 64, count = 0;
	struct mariadb_thread *threads = calloc(size, sizeof(*threads));
	uint64_t now_ns = clock_mono_ns();
	MYSQL_ROW row;
	int r;

	while ((row = mariadb_next_row(link, result, &r, error)))
		if (threads && count < THREADS_MAX && make_room(&threads, count, &size))
			fill_thread(row, now_ns, &threads[count++]);
	link->lib.mysql_free_result(result);
	if (r < 0 || !threads) {
		free(threads);
		return r;
	}
	qsort(threads, count, sizeof(*threads), compare_threads);
	free(link->threads);
	link->threads = threads;
	link->threads_count = count;
	link->threads_asked_ns = asked_ns;
	return 0;
}

/* Reads an answer to its end. */
static int discard(struct sql_link *link, MYSQL_RES *result, struct text *error)
{
	int r;

	while (mariadb_next_row(link, result, &r, error))
		;
	link->lib.mysql_free_result(result);
	return r;
}

/*
 * What tmpdir is on hangs, and the server may be well: another session finds out. The one that is
 * given up stays in the server until its disk answers.
 */
static int give_up_threads(struct sql_link *link, struct text *error)
{
	text_reset(error);
	text_add(error, "the list of its threads hangs, as where its tmpdir does");
	link->threads_after_ns = clock_mono_ns() + THREADS_AGAIN_NS;
	link->threads_stay = true;
	return -ENOTCONN;
}

/*
 * Reads an answer that came too late for the last snapshot. If it is an error, it does not matter.
 */
static int finish_last(struct sql_link *link, struct text *error)
{
	const bool threads = link->pending == MARIADB_ASKS_THREADS;
	const uint64_t asked_ns = link->pending_since_ns;
	MYSQL_RES *result;
	int r = mariadb_finish(link, THREADS_TIMEOUT_MS, &result, error);

	if (r == -ETIMEDOUT && threads && clock_mono_ns() - asked_ns >= THREADS_HANG_NS)
		return give_up_threads(link, error);
	if (r == -ENOTCONN || r == -ETIMEDOUT)
		return r;
	text_reset(error);
	if (asked_ns && mariadb_is_about_locks(link->pending))
		r = mariadb_keep_late_locks(link, result, asked_ns, error);
	else if (!result)
		r = 0;
	else if (threads && mariadb_has_columns(link, result, THREADS_COLUMNS, error))
		r = keep_threads(link, result, asked_ns, error);
	else if (!threads)
		r = discard(link, result, error);
	if (r == 0)
		text_reset(error);
	return r;
}

static bool needs_threads(const struct sql_link *link, const struct mariadb_list *list,
	bool is_glance)
{
	/* The answer about locks may be late. */
	if (link->threads_query[0] == '\0' || link->by_threads || link->thread_pool ||
		link->pending_since_ns > 0 || clock_mono_ns() < link->threads_after_ns)
		return false;
	if (is_glance)
		return link->threads_asked_ns == 0 ||
			clock_mono_ns() - link->threads_asked_ns > GLANCE_THREADS_NS;
	if (clock_mono_ns() - link->asked_at_ns > OFTEN_NS)
		return true;
	for (size_t i = 0; i < list->count; i++)
		if (!find_thread(link, list->rows[i].connection_id))
			return true;
	return false;
}

/* Sessions are sent also when the threads are late. Only a lost session is an error. */
static int ask_threads(struct sql_link *link, struct text *error)
{
	char late_buf[SQL_ERROR_SIZE];
	struct text late = TEXT_ON(late_buf);
	uint64_t asked_ns = clock_mono_ns();
	MYSQL_RES *result;
	int r;

	text_reset(&late);
	r = mariadb_ask(link, link->threads_query, THREADS_COLUMNS, THREADS_TIMEOUT_MS, &result,
		&late);
	if (r == -ETIMEDOUT)
		link->pending = MARIADB_ASKS_THREADS;
	if (r == 0)
		r = keep_threads(link, result, asked_ns, &late);
	if (r == -ENOTCONN)
		text_add(error, late.buf);
	return r == -ENOTCONN ? r : 0;
}

/* --- sessions ---------------------------------------------------------------------- */

static bool is_one_of(const char *s, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(s, names[i]) == 0)
			return true;
	return false;
}

static bool starts_with(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

/* Threads of the server itself. */
static bool is_background(const char *user)
{
	return strcmp(user, "system user") == 0 || strcmp(user, "event_scheduler") == 0;
}

/*
 * Replication that waits is idle, too, but not for a lock: it waits for the other side. Threads
 * that apply what other nodes of a cluster write always have the command of a session that sleeps,
 * and a statement while they run one.
 */
static bool is_active(const char *user, const char *command, const char *state, bool has_statement)
{
	static const char *const never[] = { "Sleep", "Daemon", "Binlog Dump", "Binlog Dump GTID" };
	static const char *const waits[] = { "Waiting ", "Slave has read all",
		"Replica has read all" };

	if (is_background(user) &&
		(mariadb_lock_of_state(state) != RECORD_LOCK_NONE ||
			(has_statement && strcmp(command, "Sleep") == 0)))
		return true;
	if (is_one_of(command, never, ARRAY_SIZE(never)))
		return false;
	for (size_t i = 0; is_background(user) && i < ARRAY_SIZE(waits); i++)
		if (starts_with(state, waits[i]))
			return false;
	return true;
}

static int compare_rows(const void *a, const void *b)
{
	const struct mariadb_session *x = a, *y = b;

	return (y->time_s > x->time_s) - (y->time_s < x->time_s);
}

/* The length of "10.0.0.1:4711" without the port, which only the list of processes has. */
static int host_len(const struct sql_link *link, const char *host)
{
	const char *colon = strrchr(host, ':');

	if (link->by_threads || !colon || colon[1 + strspn(colon + 1, "0123456789")] != '\0')
		return (int)strlen(host);
	return (int)(colon - host);
}

static struct mariadb_session *keep_session(const struct sql_link *link, struct mariadb_list *list,
	const MYSQL_ROW cells, bool is_idle, uint64_t text_bytes)
{
	uint64_t time_s = sql_cell_up_to(cells[CELL_TIME_S], MARIADB_TIME_S_MAX, &list->invalid);
	const char *user = cells[CELL_USER] ? cells[CELL_USER] : "";
	const char *host = cells[CELL_HOST] ? cells[CELL_HOST] : "";
	const bool is_blocker = mariadb_is_blocker(link, sql_cell_u64(cells[CELL_ID]));
	struct mariadb_session *row = mariadb_list_find_room(list, is_idle, time_s, is_blocker);

	if (!row)
		return NULL;
	*row = (struct mariadb_session){
		.connection_id = sql_cell_up_to(cells[CELL_ID], UINT64_MAX, &list->invalid),
		.text_bytes = text_bytes,
		.time_s = time_s,
		.idle = is_idle,
		.background = is_background(user),
	};
	if (link->by_threads)
		row->tid = (int32_t)sql_cell_up_to(cells[CELL_TID], SQL_PID_MAX, &list->invalid);
	snprintf(row->user, sizeof(row->user), "%s%s%.*s", user, host[0] ? "@" : "",
		host_len(link, host), host);
	sql_copy_cell(row->database, sizeof(row->database), cells[CELL_DB]);
	sql_copy_cell(row->command, sizeof(row->command), cells[CELL_COMMAND]);
	sql_copy_cell(row->state, sizeof(row->state), cells[CELL_STATE]);
	if (!cells[CELL_INFO])
		return row;
	row->text = strndup(cells[CELL_INFO], SQL_REDACT_BYTES_MAX);
	row->is_ddl = tables_is_ddl(cells[CELL_INFO]);
	return row;
}

/* A session that does nothing is of interest if it may hold locks. */
static void keep_sleeper(const struct sql_link *link, struct mariadb_list *list,
	const MYSQL_ROW cells)
{
	if (mariadb_may_hold_locks(link, sql_cell_u64(cells[CELL_ID])))
		keep_session(link, list, cells, true, 0);
}

static struct mariadb_user *find_user(struct mariadb_list *list, const char *name)
{
	struct mariadb_user *user = list->users;

	while (user < list->users + list->users_count && strcmp(user->name, name) != 0)
		user++;
	if (user == list->users + MARIADB_USERS_MAX)
		return NULL;
	if (user == list->users + list->users_count) {
		text_copy(user->name, sizeof(user->name), name);
		list->users_count++;
	}
	return user;
}

static void count_connection(struct mariadb_list *list, const MYSQL_ROW cells, bool is_idle)
{
	struct mariadb_user *user;
	char name[SQL_NAME_SIZE];

	sql_copy_cell(name, sizeof(name), cells[CELL_USER]);
	if (is_background(name))
		return;
	list->connections++;
	user = find_user(list, name);
	if (!user)
		return;
	user->connections++;
	user->idle += is_idle;
}

/* Replication that waits for its turn with what it has locked. */
static bool keeps_lock(const struct sql_link *link, const MYSQL_ROW cells, const char *user)
{
	return is_background(user) && mariadb_is_blocker(link, sql_cell_u64(cells[CELL_ID]));
}

static void note_resting(struct mariadb_list *list, uint64_t connection_id)
{
	if (list->resting_count < MARIADB_RESTING_MAX)
		list->resting[list->resting_count] = connection_id;
	list->resting_count++;
}

static void take_row(const struct sql_link *link, struct mariadb_list *list, const MYSQL_ROW cells,
	uint64_t text_bytes)
{
	const char *user = cells[CELL_USER] ? cells[CELL_USER] : "";
	const char *command = cells[CELL_COMMAND] ? cells[CELL_COMMAND] : "";
	const char *state = cells[CELL_STATE] ? cells[CELL_STATE] : "";

	count_connection(list, cells, strcmp(command, "Sleep") == 0);
	if (sql_cell_u64(cells[CELL_ID]) == link->lib.mysql_thread_id(link->mysql))
		return;
	if (strcmp(command, "Sleep") == 0 && !is_background(user)) {
		list->idle++;
		keep_sleeper(link, list, cells);
	}
	if (!is_active(user, command, state, cells[CELL_INFO]) && !keeps_lock(link, cells, user)) {
		if (is_background(user))
			note_resting(list, sql_cell_u64(cells[CELL_ID]));
		return;
	}
	list->active++;
	keep_session(link, list, cells, false, text_bytes);
}

/* Reads the answer, and frees it. Errors are those of mariadb_ask(), or -ENOMEM. */
static int read_list(struct sql_link *link, MYSQL_RES *result, struct mariadb_list *list,
	struct text *error)
{
	MYSQL_ROW row;
	int r;

	while ((row = mariadb_next_row(link, result, &r, error))) {
		uint64_t text_bytes = link->lib.mysql_fetch_lengths(result)[CELL_INFO];

		take_row(link, list, row, text_bytes);
		list->bytes_read += text_bytes;
		if (list->bytes_read > ANSWER_BYTES_MAX) {
			text_add(error, "the statements that run have more than 64 MiB");
			mariadb_break_off(link, result);
			link->short_until_ns = clock_mono_ns() + MARIADB_SHORT_NS;
			return -ENOTCONN;
		}
	}
	link->lib.mysql_free_result(result);
	qsort(list->rows, list->count, sizeof(*list->rows), compare_rows);
	return r;
}

/* Makes the list of active sessions, to be freed also after an error. */
static int ask_sessions(struct sql_link *link, bool is_glance, struct mariadb_list *list,
	struct text *error)
{
	const char *query = show_query;
	MYSQL_RES *result;
	int r;

	list->asked_ns = clock_mono_ns();
	list->is_short = !link->by_threads && (is_glance || list->asked_ns < link->short_until_ns);
	if (link->by_threads)
		query = select_query;
	else if (list->is_short)
		query = short_query;
	list->rows = calloc(MARIADB_SESSIONS_MAX, sizeof(*list->rows));
	if (!list->rows)
		return -ENOMEM;
	r = mariadb_ask(link, query, link->by_threads ? CELL_TID + 1 : CELL_INFO + 1,
		SESSIONS_TIMEOUT_MS, &result, error);
	return r < 0 ? r : read_list(link, result, list, error);
}

static void say_why_no_tid(const struct sql_link *link, struct sql_frame_session *s)
{
	const char *why = "the server does not tell its threads";

	if (s->tid > 0)
		return;
	if (link->thread_pool)
		why = "thread pool";
	else if (s->background)
		why = "a background thread of the server";
	else if (link->pending_since_ns > 0)
		why = "the server has not told its threads in time";
	text_copy(s->no_tid, sizeof(s->no_tid), why);
}

/*
 * The list of sessions and that of threads have the same statement if it began before the first of
 * the two was asked for. The seconds in the list of sessions are rounded down.
 */
static bool is_same_statement(const struct sql_link *link, const struct mariadb_list *list,
	const struct mariadb_thread *thread, uint64_t time_s)
{
	if (!thread || thread->started_ns == 0)
		return false;
	if (link->threads_asked_ns >= list->asked_ns)
		return thread->started_ns <= list->asked_ns;
	return time_s * NSEC_PER_SEC >= clock_mono_ns() - link->threads_asked_ns;
}

/* If the list of threads has the same statement, its time is more exact and it has the query id. */
static void set_statement(const struct sql_link *link, const struct mariadb_list *list,
	const struct mariadb_thread *thread, uint64_t time_s, struct sql_frame_session *s)
{
	s->elapsed_ns = time_s * NSEC_PER_SEC;
	if (!is_same_statement(link, list, thread, time_s))
		return;
	s->elapsed_ns = clock_mono_ns() - thread->started_ns;
	s->query_id = thread->query_id;
}

static void fill_session(const struct sql_link *link, const struct mariadb_list *list,
	const struct mariadb_session *row, struct sql_frame_session *s)
{
	const struct mariadb_thread *thread = find_thread(link, row->connection_id);

	s->connection_id = row->connection_id;
	if (!link->thread_pool)
		s->tid = link->by_threads ? row->tid : thread ? thread->tid : 0;
	set_statement(link, list, thread, row->time_s, s);
	s->background = row->background;
	s->idle = row->idle;
	s->transaction_ns = row->transaction_s * NSEC_PER_SEC;
	text_copy(s->user, sizeof(s->user), row->user);
	text_copy(s->database, sizeof(s->database), row->database);
	text_copy(s->command, sizeof(s->command), row->command);
	text_copy(s->state, sizeof(s->state), row->state);
	say_why_no_tid(link, s);
}

/*
 * performance_schema has only the first 1024 bytes of a statement, or those before the first byte
 * that is not UTF-8, and does not tell that it is cut. MySQL may build SHOW PROCESSLIST from it,
 * too. MariaDB, which is the one with a column TID, never does.
 */
static bool may_be_cut(const struct sql_link *link, const struct mariadb_list *list,
	uint64_t text_bytes)
{
	if (link->by_threads || (list->is_short && text_bytes >= SHORT_BYTES_MIN))
		return true;
	return link->threads_query[0] == '\0' && text_bytes >= KEPT_BYTES_MIN;
}

/*
 * It may be set anew at any time, so it is asked for once a minute, and before all are said to be
 * used.
 */
static int ask_allowed(struct sql_link *link, const struct mariadb_list *list, struct text *error)
{
	char late_buf[SQL_ERROR_SIZE];
	struct text late = TEXT_ON(late_buf);
	const uint64_t now_ns = clock_mono_ns();
	MYSQL_RES *result;
	MYSQL_ROW row;
	int r;

	if (link->pending_since_ns > 0 ||
		(link->allowed_asked_ns && now_ns - link->allowed_asked_ns < GLANCE_THREADS_NS &&
			list->connections < link->connections_allowed))
		return 0;
	text_reset(&late);
	r = mariadb_ask(link, allowed_query, 1, THREADS_TIMEOUT_MS, &result, &late);
	if (r == 0) {
		row = mariadb_next_row(link, result, &r, &late);
		link->connections_allowed = row ? sql_cell_u64(row[0]) : 0;
		link->allowed_asked_ns = now_ns;
		r = row ? discard(link, result, &late) : r;
	}
	if (r == -ENOTCONN)
		text_add(error, late.buf);
	return r == -ENOTCONN ? r : 0;
}

static struct sql_connections connections_of(const struct sql_link *link,
	const struct mariadb_list *list)
{
	struct sql_connections connections = { .used = list->connections,
		.allowed = (uint32_t)link->connections_allowed };

	for (uint32_t i = 0; i < list->users_count; i++) {
		const struct mariadb_user *user = &list->users[i];

		if (user->connections <= connections.of_user)
			continue;
		connections.of_user = user->connections;
		connections.of_user_idle = user->idle;
		text_copy(connections.user, sizeof(connections.user), user->name);
	}
	return connections;
}

static void send_list(const struct sql_link *link, const struct mariadb_list *list,
	struct sql_answer *answer)
{
	uint64_t active_sent = 0;

	for (size_t sent = 0; sent < list->count; sent++) {
		struct sql_frame_session session = { 0 };
		const struct mariadb_session *row = &list->rows[sent];

		fill_session(link, list, row, &session);
		if (!sql_answer_add(answer, &session,
			    link->setup->text_mode != SQL_TEXT_OFF ? row->text : NULL,
			    row->text_bytes, may_be_cut(link, list, row->text_bytes)))
			break;
		active_sent += !row->idle;
	}
	mariadb_send_locks(link, list, answer);
	answer->invalid += list->invalid;
	sql_answer_count(answer, list->active - active_sent, list->idle);
	answer->connections = connections_of(link, list);
}

int mariadb_snapshot(struct sql_link *link, struct sql_answer *answer, struct text *error)
{
	struct mariadb_list list = { 0 };
	int r = finish_last(link, error);

	if (r == 0)
		r = ask_sessions(link, answer->is_glance, &list, error);
	if (r == 0)
		r = mariadb_find_locks(link, answer->is_glance, &list, error);
	if (r == 0 && needs_threads(link, &list, answer->is_glance))
		r = ask_threads(link, error);
	if (r == 0)
		r = ask_allowed(link, &list, error);
	if (r == 0)
		send_list(link, &list, answer);
	mariadb_list_free(&list);
	if (r == 0 && !answer->is_glance)
		link->asked_at_ns = clock_mono_ns();
	return r;
}
