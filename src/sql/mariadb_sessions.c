/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the sessions of a MariaDB or MySQL server do, and on which threads. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sql/mariadb.h"
#include "util/cleanup.h"
#include "util/clock.h"

/* Together below the two seconds after which the daemon takes a helper for late. */
#define SESSIONS_TIMEOUT_MS 1000
/* Threads are the second question of an answer; a server that takes longer gives them with the
 * next. */
#define THREADS_TIMEOUT_MS 300
/* Who asks as often as that records an incident, and threads known already are not asked for again.
 */
#define OFTEN_NS (5 * NSEC_PER_SEC)
/* 1024 without the part of a character. */
#define KEPT_BYTES_MIN 1020

/* The columns of SHOW FULL PROCESSLIST, and of the query that takes its place. */
enum cell {
	CELL_ID,
	CELL_USER,
	CELL_HOST,
	CELL_DB,
	CELL_COMMAND,
	CELL_TIME_S,
	CELL_STATE,
	CELL_INFO,
	CELL_TID, /* of the second alone */
};

static const char show_query[] = "SHOW FULL PROCESSLIST";
static const char select_query[] =
	"SELECT PROCESSLIST_ID, PROCESSLIST_USER, PROCESSLIST_HOST, PROCESSLIST_DB, "
	"PROCESSLIST_COMMAND, PROCESSLIST_TIME, PROCESSLIST_STATE, PROCESSLIST_INFO, THREAD_OS_ID "
	"FROM performance_schema.threads WHERE TYPE = 'FOREGROUND' AND PROCESSLIST_ID IS NOT NULL";

struct session_row {
	MYSQL_ROW cells;
	uint64_t text_bytes;
	uint64_t time_s;
};

/* Rows point into the result. */
struct session_list {
	MYSQL_RES *result;
	struct session_row *rows; /* active ones, the longest first */
	size_t count;
	uint64_t idle;
	uint64_t asked_ns;
};

/* --- threads ----------------------------------------------------------------------- */

void mariadb_forget_threads(struct sql_link *link)
{
	free(link->threads);
	link->threads = NULL;
	link->threads_count = 0;
	link->threads_asked_ns = 0;
	link->asked_at_ns = 0;
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

/* Takes the answer to threads_query. */
static void keep_threads(struct sql_link *link, MYSQL_RES *result, uint64_t asked_ns)
{
	size_t count = (size_t)link->lib.mysql_num_rows(result), n = 0;
	struct mariadb_thread *threads = calloc(count + 1, sizeof(*threads));
	uint64_t now_ns = clock_mono_ns();
	MYSQL_ROW row;

	while (threads && n < count && (row = link->lib.mysql_fetch_row(result))) {
		uint64_t elapsed_ns = sql_cell_u64(row[3]) * NSEC_PER_USEC;

		threads[n++] = (struct mariadb_thread){
			.connection_id = sql_cell_u64(row[0]),
			.tid = (int32_t)sql_cell_u64(row[1]),
			.query_id = sql_cell_u64(row[2]),
			.started_ns = row[3] && elapsed_ns < now_ns ? now_ns - elapsed_ns : 0,
		};
	}
	link->lib.mysql_free_result(result);
	if (!threads)
		return;
	free(link->threads);
	link->threads = threads;
	link->threads_count = n;
	link->threads_asked_ns = asked_ns;
}

/* An answer that came too late for the last snapshot; were it an error, it is of no use any more. */
static int finish_last(struct sql_link *link, struct text *error)
{
	bool threads = link->pending_threads;
	uint64_t asked_ns = link->pending_since_ns;
	MYSQL_RES *result;
	int r = mariadb_finish(link, THREADS_TIMEOUT_MS, &result, error);

	if (r == -ENOTCONN || r == -ETIMEDOUT)
		return r;
	text_reset(error);
	if (result && threads)
		keep_threads(link, result, asked_ns);
	else if (result)
		link->lib.mysql_free_result(result);
	return 0;
}

static bool needs_threads(const struct sql_link *link, const struct session_list *list)
{
	if (link->threads_query[0] == '\0' || link->by_threads || link->thread_pool)
		return false;
	if (clock_mono_ns() - link->asked_at_ns > OFTEN_NS)
		return true;
	for (size_t i = 0; i < list->count; i++)
		if (!find_thread(link, sql_cell_u64(list->rows[i].cells[CELL_ID])))
			return true;
	return false;
}

/* Threads that are late are no reason to have nothing; only a session that is gone is one. */
static int ask_threads(struct sql_link *link, struct text *error)
{
	char late_buf[SQL_ERROR_SIZE];
	struct text late = TEXT_ON(late_buf);
	uint64_t asked_ns = clock_mono_ns();
	MYSQL_RES *result;
	int r;

	text_reset(&late);
	r = mariadb_ask(link, link->threads_query, THREADS_TIMEOUT_MS, &result, &late);
	if (r == -ETIMEDOUT)
		link->pending_threads = true;
	if (r == -ENOTCONN)
		text_add(error, late.buf);
	if (r == 0)
		keep_threads(link, result, asked_ns);
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

/* Replication that waits for the other side does nothing either. */
static bool is_active(const char *command, const char *state)
{
	static const char *const never[] = { "Sleep", "Daemon", "Binlog Dump", "Binlog Dump GTID",
		"Slave_IO" };
	static const char *const replication[] = { "Slave_SQL", "Slave_worker" };

	if (is_one_of(command, never, ARRAY_SIZE(never)))
		return false;
	return !is_one_of(command, replication, ARRAY_SIZE(replication)) ||
	       (!starts_with(state, "Waiting ") && !starts_with(state, "Slave has read all"));
}

static int compare_rows(const void *a, const void *b)
{
	const struct session_row *x = a, *y = b;

	return (y->time_s > x->time_s) - (y->time_s < x->time_s);
}

static void free_list(struct sql_link *link, struct session_list *list)
{
	free(list->rows);
	link->lib.mysql_free_result(list->result);
}

/* Takes the result. */
static int make_list(struct sql_link *link, MYSQL_RES *result, uint64_t asked_ns,
	struct session_list *ret_list)
{
	size_t max = (size_t)link->lib.mysql_num_rows(result);
	struct session_list list = { .result = result,
		.rows = calloc(max + 1, sizeof(*list.rows)),
		.asked_ns = asked_ns };
	uint64_t own_id = link->lib.mysql_thread_id(link->mysql);
	MYSQL_ROW row;

	while (list.rows && list.count < max && (row = link->lib.mysql_fetch_row(result))) {
		const char *command = row[CELL_COMMAND] ? row[CELL_COMMAND] : "";
		const char *state = row[CELL_STATE] ? row[CELL_STATE] : "";

		if (sql_cell_u64(row[CELL_ID]) == own_id)
			continue;
		list.idle += strcmp(command, "Sleep") == 0;
		if (!is_active(command, state))
			continue;
		list.rows[list.count++] = (struct session_row){
			.cells = row,
			.text_bytes = link->lib.mysql_fetch_lengths(result)[CELL_INFO],
			.time_s = sql_cell_u64(row[CELL_TIME_S]),
		};
	}
	if (!list.rows) {
		link->lib.mysql_free_result(result);
		return -ENOMEM;
	}
	qsort(list.rows, list.count, sizeof(*list.rows), compare_rows);
	*ret_list = list;
	return 0;
}

/* "10.0.0.1:4711" without the port. */
static int host_len(const char *host)
{
	const char *colon = strrchr(host, ':');

	if (!colon || colon[1 + strspn(colon + 1, "0123456789")] != '\0')
		return (int)strlen(host);
	return (int)(colon - host);
}

static void say_why_no_tid(const struct sql_link *link, struct sql_frame_session *s)
{
	const char *why = "the server does not say";

	if (s->tid > 0)
		return;
	if (link->thread_pool)
		why = "thread pool";
	else if (s->background)
		why = "background thread";
	else if (link->pending_since_ns > 0)
		why = "the server is late with its threads";
	text_copy(s->no_tid, sizeof(s->no_tid), why);
}

/*
 * Two answers speak of the same statement if it had begun before the first of them was asked for.
 * The list counts whole seconds, which are never too many.
 */
static bool is_same_statement(const struct sql_link *link, const struct session_list *list,
	const struct mariadb_thread *thread, uint64_t time_s)
{
	if (!thread || thread->started_ns == 0)
		return false;
	if (link->threads_asked_ns >= list->asked_ns)
		return thread->started_ns <= list->asked_ns;
	return time_s * NSEC_PER_SEC >= clock_mono_ns() - link->threads_asked_ns;
}

/* What the threads said is finer, and has the number of the statement, if it was of the same. */
static void set_statement(const struct sql_link *link, const struct session_list *list,
	const struct mariadb_thread *thread, uint64_t time_s, struct sql_frame_session *s)
{
	s->elapsed_ns = time_s * NSEC_PER_SEC;
	if (!is_same_statement(link, list, thread, time_s))
		return;
	s->elapsed_ns = clock_mono_ns() - thread->started_ns;
	s->query_id = thread->query_id;
}

static void fill_session(const struct sql_link *link, const struct session_list *list,
	const struct session_row *row, struct sql_frame_session *s)
{
	const char *user = row->cells[CELL_USER] ? row->cells[CELL_USER] : "";
	const char *host = row->cells[CELL_HOST] ? row->cells[CELL_HOST] : "";
	const struct mariadb_thread *thread;

	s->connection_id = sql_cell_u64(row->cells[CELL_ID]);
	thread = find_thread(link, s->connection_id);
	if (link->by_threads)
		s->tid = (int32_t)sql_cell_u64(row->cells[CELL_TID]);
	else if (thread && !link->thread_pool)
		s->tid = thread->tid;
	set_statement(link, list, thread, row->time_s, s);
	s->background = strcmp(user, "system user") == 0 || strcmp(user, "event_scheduler") == 0;
	snprintf(s->user, sizeof(s->user), "%s%s%.*s", user, host[0] ? "@" : "", host_len(host),
		host);
	sql_copy_cell(s->database, sizeof(s->database), row->cells[CELL_DB]);
	sql_copy_cell(s->command, sizeof(s->command), row->cells[CELL_COMMAND]);
	sql_copy_cell(s->state, sizeof(s->state), row->cells[CELL_STATE]);
	say_why_no_tid(link, s);
}

/*
 * performance_schema has the first 1024 bytes of a statement, or what is before the first that is
 * no UTF-8, and says of neither. A MySQL may make SHOW PROCESSLIST of it, too; MariaDB, which is
 * the one with a column for threads, never does.
 */
static bool may_be_cut(const struct sql_link *link, uint64_t text_bytes)
{
	if (link->by_threads)
		return true;
	return link->threads_query[0] == '\0' && text_bytes >= KEPT_BYTES_MIN;
}

static void send_list(
	const struct sql_link *link, const struct session_list *list, struct sql_answer *answer)
{
	size_t sent = 0;

	for (; sent < list->count; sent++) {
		struct sql_frame_session session = { 0 };
		const struct session_row *row = &list->rows[sent];

		fill_session(link, list, row, &session);
		if (!sql_answer_add(answer, &session, row->cells[CELL_INFO], row->text_bytes,
			    may_be_cut(link, row->text_bytes)))
			break;
	}
	sql_answer_count(answer, list->count - sent, list->idle);
}

int mariadb_snapshot(struct sql_link *link, struct sql_answer *answer, struct text *error)
{
	const char *query = link->by_threads ? select_query : show_query;
	struct session_list list;
	uint64_t asked_ns;
	MYSQL_RES *result;
	int r = finish_last(link, error);

	if (r < 0)
		return r;
	asked_ns = clock_mono_ns();
	r = mariadb_ask(link, query, SESSIONS_TIMEOUT_MS, &result, error);
	if (r < 0)
		return r;
	r = make_list(link, result, asked_ns, &list);
	if (r < 0)
		return r;
	if (needs_threads(link, &list))
		r = ask_threads(link, error);
	if (r == 0)
		send_list(link, &list, answer);
	free_list(link, &list);
	link->asked_at_ns = clock_mono_ns();
	return r;
}
