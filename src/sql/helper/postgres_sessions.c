/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sql/helper/postgres_sessions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/enums.h"
#include "sql/helper/redact.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/number.h"

#define STATEMENT "iostall_sessions"
#define BARE_STATEMENT "iostall_sessions_bare"
#define LOCKS_STATEMENT "iostall_locks"
/* Below the two seconds after which the daemon reports a late answer. */
#define SESSIONS_TIMEOUT_MS 1500
#define LOCKS_TIMEOUT_MS 300
/* pg_blocking_pids() stops all lock traffic of the server for some 20 us, for each session. */
#define LOCKS_COST_TIMES 20
/* Sessions with a database of another encoding may have a text that is not in ours. */
/* Such a text may stay, or come again and again, and each costs an answer. */
#define BARE_NS_MIN (60 * NSEC_PER_SEC)
#define BARE_NS_MAX (3600 * NSEC_PER_SEC)
/* Idle ones that may hold locks: the others are left to those that run. */
#define IDLE_MAX 64
/* Of the first question; the others in an answer are for blockers that it does not have. */
#define SESSIONS_MAX (SQL_SESSIONS_MAX - 16)

/*
 * Sessions that are not idle. A process of the server that waits in its main loop is idle. Sessions
 * that the account may not see have no state, but a text that says so.
 */
#define ACTIVE                                                                                     \
	"(state IS DISTINCT FROM 'idle' AND wait_event_type IS DISTINCT FROM 'Activity' AND "      \
	"query IS DISTINCT FROM '<insufficient privilege>' AND pid <> pg_backend_pid())"

/*
 * The reads of each process that I/O workers have in hand; those that it does itself are not among
 * them. The server goes through all its places for them (64 for each connection that it allows), so
 * only while such a worker works.
 */
#define SERVED                                                                                     \
	"SELECT pid, count(*) AS served FROM pg_aios WHERE state = 'SUBMITTED' AND NOT f_sync "    \
	"AND EXISTS (SELECT FROM a WHERE active AND backend_type = 'io worker') GROUP BY pid"
#define NOT_SERVED "SELECT NULL::int AS pid, NULL::bigint AS served"

/* Other processes have places of their own. */
#define CLIENT "backend_type = 'client backend'"
/* Some are kept for accounts with special rights. */
#define ALLOWED                                                                                    \
	"current_setting('max_connections')::int - "                                               \
	"current_setting('superuser_reserved_connections')::int - "                                \
	"coalesce(current_setting('reserved_connections', true)::int, 0)"

static int prepare(struct sql_link *link, const struct postgres_columns *has, bool is_bare,
	struct text *error)
{
	const char *leader = has->leader ? "leader_pid" : "NULL::int";
	const unsigned int chars = SQL_REDACT_BYTES_MAX / 4;
	char query[3072], text[192] = "NULL, true, false";

	if (!is_bare && link->setup->text_mode != SQL_TEXT_OFF)
		snprintf(text, sizeof(text),
			"left(query, %u), octet_length(query) + 4 >= %" PRIu64
			", char_length(query) > %u",
			chars, has->text_bytes, chars);
	/*
	 * There is always one row with the counts, so an idle server is different from no answer. A
	 * statement counts once, without its parallel workers.
	 */
	snprintf(query, sizeof(query),
		"WITH a AS MATERIALIZED (SELECT *, " ACTIVE " AS active, "
		"coalesce(state LIKE 'idle%%', false) AS idle FROM pg_stat_activity), "
		"o AS MATERIALIZED (%s) "
		"SELECT c.*, u.*, s.* FROM (SELECT count(*) FILTER (WHERE idle), "
		"count(*) FILTER (WHERE active AND NOT idle AND %s IS NULL), "
		"count(*) FILTER (WHERE " CLIENT "), " ALLOWED " FROM a) AS c "
		"LEFT JOIN (SELECT usename, count(*), count(*) FILTER (WHERE idle) "
		"FROM a WHERE " CLIENT
		" GROUP BY 1 ORDER BY 2 DESC LIMIT 1) AS u ON true LEFT JOIN ("
		"SELECT pid, usename, host(client_addr), datname, CASE WHEN backend_type IN "
		"('client backend', 'parallel worker') THEN state ELSE backend_type END, "
		"concat_ws(': ', wait_event_type, wait_event), backend_type, %s AS leader, "
		"%s AS query_id, (extract(epoch FROM clock_timestamp() - CASE WHEN state = 'active' "
		"THEN query_start ELSE state_change END) * 1e9)::bigint AS elapsed, "
		"octet_length(query), %s, "
		"(extract(epoch FROM clock_timestamp() - xact_start) * 1e9)::bigint, "
		"(SELECT served FROM o WHERE o.pid = a.pid) "
		"FROM (SELECT *, idle AND row_number() OVER (PARTITION BY idle ORDER BY state_change) "
		"> %d AS is_more FROM a WHERE active) AS a "
		"ORDER BY is_more, elapsed DESC NULLS LAST LIMIT %d) AS s ON true",
		has->aios ? SERVED : NOT_SERVED, leader, leader,
		has->query_id ? "query_id" : "NULL::bigint", text, IDLE_MAX, SESSIONS_MAX);
	return postgres_prepare(link, is_bare ? BARE_STATEMENT : STATEMENT, query, error);
}

/*
 * Of several sessions that block one, the one that waits for none itself counts: the others are
 * before it in the queue. Prepared transactions have no session, and pid 0. What is told of the
 * blocker is for those that are not in the first answer: they hold a lock without a transaction, or
 * there were too many.
 */
static int prepare_locks(struct sql_link *link, bool has_start, struct text *error)
{
	/* Since PostgreSQL 14. Of one session it may be null for some microseconds. */
	const char *waited = has_start
		? "(SELECT (extract(epoch FROM clock_timestamp() - "
		  "min(l.waitstart)) * 1e9)::bigint FROM l WHERE l.pid = b.pid)"
		: "NULL::bigint";
	const char *locks = has_start ? "l AS MATERIALIZED (SELECT pid, waitstart FROM pg_locks "
					"WHERE NOT granted), "
				      : "";
	char query[1536];

	snprintf(query, sizeof(query),
		"WITH w AS MATERIALIZED (SELECT pid FROM pg_stat_activity "
		"WHERE wait_event_type = 'Lock' ORDER BY query_start LIMIT %d), "
		"%sb AS (SELECT pid, unnest(pg_blocking_pids(pid)) AS blocker FROM w) "
		"SELECT DISTINCT ON (b.pid) b.pid, b.blocker, %s, a.usename, host(a.client_addr), "
		"a.datname, a.state, (extract(epoch FROM clock_timestamp() - "
		"CASE WHEN a.state = 'active' THEN a.query_start ELSE a.state_change END) * 1e9)::bigint, "
		"(extract(epoch FROM clock_timestamp() - a.xact_start) * 1e9)::bigint, "
		"a.wait_event_type IS NOT DISTINCT FROM 'Lock' FROM b "
		"LEFT JOIN pg_stat_activity AS a ON a.pid = b.blocker "
		"ORDER BY b.pid, a.wait_event_type IS NOT DISTINCT FROM 'Lock', "
		"a.xact_start NULLS LAST",
		SQL_LOCKS_MAX, locks, waited);
	return postgres_prepare(link, LOCKS_STATEMENT, query, error);
}

int postgres_prepare_snapshot(struct sql_link *link, const struct postgres_columns *has,
	struct text *error)
{
	int r = prepare(link, has, false, error);

	if (r == 0)
		r = prepare(link, has, true, error);
	return r == 0 ? prepare_locks(link, has->wait_start, error) : r;
}

static void note_locks_cost(struct sql_link *link, uint64_t begin_ns)
{
	const uint64_t now_ns = clock_mono_ns();

	link->locks_after_ns = now_ns + (now_ns - begin_ns) * (LOCKS_COST_TIMES - 1);
}

/* Each time for twice as long, unless all went well since for as long as it can be. */
static void go_bare(struct sql_link *link, uint64_t now_ns)
{
	if (now_ns - link->bare_until_ns > BARE_NS_MAX)
		link->bare_ns = 0;
	link->bare_ns = link->bare_ns ? 2 * link->bare_ns : BARE_NS_MIN;
	if (link->bare_ns > BARE_NS_MAX)
		link->bare_ns = BARE_NS_MAX;
	link->bare_until_ns = now_ns + link->bare_ns;
}

static int ask_sessions(struct sql_link *link, const struct postgres_taker *taker,
	struct text *error)
{
	const bool is_bare = clock_mono_ns() < link->bare_until_ns;
	uint64_t deadline_ns = clock_mono_ns() + SESSIONS_TIMEOUT_MS * NSEC_PER_MSEC;
	int r = postgres_finish_last(link, deadline_ns, error);

	/* The server has worked for it all the time, although nobody waited any more. */
	if (link->locks_since_ns) {
		note_locks_cost(link, link->locks_since_ns);
		link->locks_since_ns = r == -ETIMEDOUT ? link->locks_since_ns : 0;
	}
	if (r < 0)
		return r;
	r = postgres_ask_prepared(link, is_bare ? BARE_STATEMENT : STATEMENT, deadline_ns, taker,
		error);
	if (r == -EILSEQ)
		go_bare(link, clock_mono_ns());
	return r;
}

int postgres_rehearse_snapshot(struct sql_link *link, struct text *error)
{
	const struct postgres_taker nobody = { 0 };

	return ask_sessions(link, &nobody, error);
}

/* The columns of the prepared statement. */
enum column {
	COLUMN_IDLE,
	COLUMN_ACTIVE,
	COLUMN_CONNECTIONS,
	COLUMN_ALLOWED,
	COLUMN_USER_MOST,
	COLUMN_OF_USER,
	COLUMN_OF_USER_IDLE,
	COLUMN_PID,
	COLUMN_USER,
	COLUMN_HOST,
	COLUMN_DATABASE,
	COLUMN_STATE,
	COLUMN_WAIT,
	COLUMN_TYPE,
	COLUMN_LEADER,
	COLUMN_QUERY_ID,
	COLUMN_ELAPSED_NS,
	COLUMN_TEXT_BYTES,
	COLUMN_TEXT,
	COLUMN_IS_CUT,	  /* the server may have cut it */
	COLUMN_IS_LONGER, /* the text is longer than we asked for */
	COLUMN_TRANSACTION_NS,
	COLUMN_SERVED,
	COLUMNS,
};

/* Query ids have 64 bits and may be negative. */
static uint64_t signed_cell(const char *value)
{
	return value ? (uint64_t)strtoll(value, NULL, 10) : 0;
}

/* Negative when the clock was set back, which is not wrong but of no use. */
static uint64_t elapsed_cell(const char *value, uint64_t *invalid)
{
	return value && value[0] == '-' ? 0 : sql_cell_up_to(value, SQL_ELAPSED_MAX_NS, invalid);
}

static void set_user(struct sql_frame_session *s, const char *user, const char *host)
{
	if (user)
		snprintf(s->user, sizeof(s->user), "%s@%s", user, host ? host : "localhost");
}

static void fill_session(struct sql_link *link, PGresult *result, struct sql_frame_session *s,
	uint64_t *invalid)
{
	const char *type = postgres_cell(link, result, 0, COLUMN_TYPE);
	const char *user = postgres_cell(link, result, 0, COLUMN_USER);
	const char *host = postgres_cell(link, result, 0, COLUMN_HOST);
	const char *state = postgres_cell(link, result, 0, COLUMN_STATE);
	const char *leader = postgres_cell(link, result, 0, COLUMN_LEADER);

	s->connection_id =
		sql_cell_up_to(postgres_cell(link, result, 0, COLUMN_PID), SQL_PID_MAX, invalid);
	s->tid = (int32_t)s->connection_id;
	s->query_id = signed_cell(postgres_cell(link, result, 0, COLUMN_QUERY_ID));
	s->elapsed_ns = elapsed_cell(postgres_cell(link, result, 0, COLUMN_ELAPSED_NS), invalid);
	s->transaction_ns =
		elapsed_cell(postgres_cell(link, result, 0, COLUMN_TRANSACTION_NS), invalid);
	s->worker = leader != NULL;
	s->leader_pid = (int32_t)sql_cell_up_to(leader, SQL_PID_MAX, invalid);
	s->served = (uint32_t)sql_cell_up_to(postgres_cell(link, result, 0, COLUMN_SERVED),
		UINT32_MAX, invalid);
	s->background =
		type && strcmp(type, "client backend") != 0 && strcmp(type, "parallel worker") != 0;
	/* "(aborted)" may follow. The text is the last statement of the transaction. */
	s->idle =
		state && strncmp(state, "idle in transaction", strlen("idle in transaction")) == 0;
	set_user(s, user, host);
	sql_copy_cell(s->database, sizeof(s->database),
		postgres_cell(link, result, 0, COLUMN_DATABASE));
	sql_copy_cell(s->command, sizeof(s->command), state);
	sql_copy_cell(s->state, sizeof(s->state), postgres_cell(link, result, 0, COLUMN_WAIT));
}

/* A session that waits for a lock, as the first question told; the second one says of whom. */
struct lock_wait {
	uint64_t connection_id;
	uint64_t blocker_id;
	uint64_t waited_ns; /* 0: unknown */
	enum record_lock lock;
	bool is_prepared; /* what it waits for */
};

struct sessions {
	struct sql_answer *answer;
	struct lock_wait waits[SQL_LOCKS_MAX];
	unsigned int waits_count;
	uint64_t ids[SQL_SESSIONS_MAX]; /* that were sent */
	unsigned int ids_count;
	bool any_blocked; /* by another session */
	/* Without parallel workers: */
	uint64_t active;
	uint64_t sent;
	uint64_t idle;
};

/* The columns of the second statement. */
enum lock_column {
	LOCK_PID,
	LOCK_BLOCKER,
	LOCK_WAITED_NS,
	/* Of the blocker: */
	LOCK_USER,
	LOCK_HOST,
	LOCK_DATABASE,
	LOCK_STATE,
	LOCK_ELAPSED_NS,
	LOCK_TRANSACTION_NS,
	LOCK_WAITS,
	LOCK_COLUMNS,
};

/*
 * A row lock is waited for as its transaction or tuple, what ALTER TABLE takes as a relation. A
 * commit waits for the replica that has to confirm it.
 */
static enum record_lock lock_of_wait(const char *wait)
{
	static const struct {
		const char *wait;
		enum record_lock lock;
	} locks[] = {
		{ "Lock: transactionid", RECORD_LOCK_row },
		{ "Lock: tuple", RECORD_LOCK_row },
		{ "Lock: relation", RECORD_LOCK_table },
		{ "IPC: SyncRep", RECORD_LOCK_replica },
		{ "Lock: advisory", RECORD_LOCK_advisory },
	};

	for (size_t i = 0; i < ARRAY_SIZE(locks); i++)
		if (strcmp(wait, locks[i].wait) == 0)
			return locks[i].lock;
	return strncmp(wait, "Lock: ", strlen("Lock: ")) == 0 ? RECORD_LOCK_other
							      : RECORD_LOCK_NONE;
}

static void note_lock(struct sessions *s, const struct sql_frame_session *session)
{
	enum record_lock lock = lock_of_wait(session->state);

	if (lock == RECORD_LOCK_NONE || s->waits_count == SQL_LOCKS_MAX)
		return;
	s->waits[s->waits_count++] = (struct lock_wait){
		.connection_id = session->connection_id,
		.lock = lock,
	};
	s->any_blocked |= lock != RECORD_LOCK_replica;
}

static uint32_t count_cell(struct sql_link *link, PGresult *row, enum column column,
	uint64_t *invalid)
{
	return (uint32_t)sql_cell_up_to(postgres_cell(link, row, 0, column), UINT32_MAX, invalid);
}

static void take_connections(struct sql_link *link, PGresult *row, struct sql_answer *answer)
{
	struct sql_connections *c = &answer->connections;

	c->used = count_cell(link, row, COLUMN_CONNECTIONS, &answer->invalid);
	c->allowed = count_cell(link, row, COLUMN_ALLOWED, &answer->invalid);
	c->of_user = count_cell(link, row, COLUMN_OF_USER, &answer->invalid);
	c->of_user_idle = count_cell(link, row, COLUMN_OF_USER_IDLE, &answer->invalid);
	sql_copy_cell(c->user, sizeof(c->user), postgres_cell(link, row, 0, COLUMN_USER_MOST));
}

static bool send_session(struct sessions *s, struct sql_frame_session *session, const char *text,
	uint64_t text_bytes, bool is_cut)
{
	if (!sql_answer_add(s->answer, session, text, text_bytes, is_cut))
		return false;
	s->ids[s->ids_count++] = session->connection_id;
	return true;
}

static void take_row(struct sql_link *link, PGresult *row, void *userdata)
{
	struct sessions *s = userdata;
	struct sql_frame_session session = { 0 };
	bool is_cut = postgres_is_true(postgres_cell(link, row, 0, COLUMN_IS_CUT));
	bool is_longer = postgres_is_true(postgres_cell(link, row, 0, COLUMN_IS_LONGER));
	const char *bytes = postgres_cell(link, row, 0, COLUMN_TEXT_BYTES);

	if (link->lib.PQnfields(row) != COLUMNS) {
		s->answer->invalid++;
		return;
	}
	s->active = sql_cell_u64(postgres_cell(link, row, 0, COLUMN_ACTIVE));
	s->idle = sql_cell_u64(postgres_cell(link, row, 0, COLUMN_IDLE));
	take_connections(link, row, s->answer);
	/* No session is active. */
	if (!postgres_cell(link, row, 0, COLUMN_PID))
		return;
	fill_session(link, row, &session, &s->answer->invalid);
	/*
	 * The server keeps only the beginning of a long text and does not know how long it was. Its
	 * length is in the encoding of the server, so it cannot be compared with ours.
	 */
	if (!send_session(s, &session, postgres_cell(link, row, 0, COLUMN_TEXT),
		    sql_cell_u64(bytes) + is_cut, is_cut || is_longer))
		return;
	s->sent += !session.worker && !session.idle;
	note_lock(s, &session);
}

static bool was_sent(const struct sessions *s, uint64_t id)
{
	for (unsigned int i = 0; i < s->ids_count; i++)
		if (s->ids[i] == id)
			return true;
	return false;
}

/* One that waits itself is not at the end of what it is in. */
static void send_blocker(struct sql_link *link, PGresult *row, uint64_t id, struct sessions *s)
{
	struct sql_frame_session session = { .connection_id = id, .tid = (int32_t)id };

	sql_copy_cell(session.command, sizeof(session.command),
		postgres_cell(link, row, 0, LOCK_STATE));
	if (!id || !*session.command || was_sent(s, id) ||
		postgres_is_true(postgres_cell(link, row, 0, LOCK_WAITS)))
		return;
	session.idle = strncmp(session.command, "idle", strlen("idle")) == 0;
	session.elapsed_ns =
		elapsed_cell(postgres_cell(link, row, 0, LOCK_ELAPSED_NS), &s->answer->invalid);
	session.transaction_ns =
		elapsed_cell(postgres_cell(link, row, 0, LOCK_TRANSACTION_NS), &s->answer->invalid);
	set_user(&session, postgres_cell(link, row, 0, LOCK_USER),
		postgres_cell(link, row, 0, LOCK_HOST));
	sql_copy_cell(session.database, sizeof(session.database),
		postgres_cell(link, row, 0, LOCK_DATABASE));
	if (send_session(s, &session, NULL, 0, false))
		s->sent += !session.idle;
}

static void take_lock(struct sql_link *link, PGresult *row, void *userdata)
{
	struct sessions *s = userdata;
	uint64_t pid, blocker, waited_ns;

	if (link->lib.PQnfields(row) != LOCK_COLUMNS) {
		s->answer->invalid++;
		return;
	}
	pid = sql_cell_up_to(postgres_cell(link, row, 0, LOCK_PID), SQL_PID_MAX,
		&s->answer->invalid);
	blocker = sql_cell_up_to(postgres_cell(link, row, 0, LOCK_BLOCKER), SQL_PID_MAX,
		&s->answer->invalid);
	waited_ns = elapsed_cell(postgres_cell(link, row, 0, LOCK_WAITED_NS), &s->answer->invalid);
	send_blocker(link, row, blocker, s);
	for (unsigned int i = 0; i < s->waits_count; i++) {
		if (s->waits[i].connection_id != pid)
			continue;
		s->waits[i].blocker_id = blocker;
		s->waits[i].is_prepared =
			blocker == 0 && postgres_cell(link, row, 0, LOCK_BLOCKER) != NULL;
		s->waits[i].waited_ns = waited_ns;
	}
}

/* Only when sessions wait. A late answer is read before the next question. */
static int ask_locks(struct sql_link *link, struct sessions *s, struct text *error)
{
	const struct postgres_taker taker = { .take = take_lock, .userdata = s };
	uint64_t begin_ns = clock_mono_ns();
	char reason_buf[SQL_ERROR_SIZE];
	struct text reason = TEXT_ON(reason_buf);
	int r;

	if (!s->any_blocked || begin_ns < link->locks_after_ns)
		return 0;
	text_reset(&reason);
	r = postgres_ask_prepared(link, LOCKS_STATEMENT,
		begin_ns + LOCKS_TIMEOUT_MS * NSEC_PER_MSEC, &taker, &reason);
	link->locks_since_ns = r == -ETIMEDOUT ? begin_ns : 0;
	note_locks_cost(link, begin_ns);
	if (r == -ENOTCONN)
		text_add(error, reason.buf);
	return r == -ENOTCONN ? r : 0;
}

static void send_locks(struct sessions *s)
{
	for (unsigned int i = 0; i < s->waits_count; i++) {
		struct sql_frame_lock lock = {
			.connection_id = s->waits[i].connection_id,
			.blocker_id = s->waits[i].blocker_id,
			.waited_ns = s->waits[i].waited_ns,
			.lock = s->waits[i].lock,
			.has_no_session = s->waits[i].is_prepared,
		};

		sql_answer_add_lock(s->answer, &lock);
	}
}

int postgres_snapshot(struct sql_link *link, struct sql_answer *answer, struct text *error)
{
	struct sessions sessions = { .answer = answer };
	const struct postgres_taker taker = { .take = take_row, .userdata = &sessions };
	int r = ask_sessions(link, &taker, error);

	if (r == -EILSEQ && sessions.ids_count == 0) {
		text_reset(error);
		r = ask_sessions(link, &taker, error);
	}
	if (r == 0 && !answer->is_glance)
		r = ask_locks(link, &sessions, error);
	if (r < 0)
		return r;
	send_locks(&sessions);
	sql_answer_count(answer, minus(sessions.active, sessions.sent), sessions.idle);
	return 0;
}
