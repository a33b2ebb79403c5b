/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PostgreSQL, through libpq. */
#include <errno.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sql/account.h"
#include "sql/driver.h"
#include "util/cleanup.h"
#include "util/clock.h"

#define STATEMENT "iostall_sessions"
/* Below the two seconds after which the daemon takes a helper for late. */
#define SESSIONS_TIMEOUT_MS 1500
/* For all that a new session is asked: its backend reads catalogs from the disk, which took up to 8.3 s on
 * one that hung. */
#define DESCRIBE_TIMEOUT_NS (10 * NSEC_PER_SEC)

#define FUNCTIONS(F)                                                                               \
	F(PQconnectdbParams)                                                                       \
	F(PQstatus)                                                                                \
	F(PQerrorMessage)                                                                          \
	F(PQconnectionNeedsPassword)                                                               \
	F(PQsetNoticeProcessor)                                                                    \
	F(PQsendQuery)                                                                             \
	F(PQsendPrepare)                                                                           \
	F(PQsendQueryPrepared)                                                                     \
	F(PQconsumeInput)                                                                          \
	F(PQisBusy)                                                                                \
	F(PQgetResult)                                                                             \
	F(PQresultStatus)                                                                          \
	F(PQresultErrorField)                                                                      \
	F(PQntuples)                                                                               \
	F(PQgetvalue)                                                                              \
	F(PQgetisnull)                                                                             \
	F(PQclear)                                                                                 \
	F(PQsocket)                                                                                \
	F(PQparameterStatus)                                                                       \
	F(PQfinish)

struct functions {
#define F(name) __typeof__(name) *name;
	FUNCTIONS(F)
#undef F
};

struct sql_link {
	const struct sql_frame_setup *setup;
	struct functions lib;
	PGconn *pg;		   /* NULL: no session */
	uint64_t pending_since_ns; /* of the question without an answer; 0: none */
	uint64_t describe_until_ns;
};

/* What is not idle; a process of the server that waits in its main loop is. Of what it may not see
 * the server shows a row without a state. */
#define ACTIVE                                                                                     \
	"(state IS DISTINCT FROM 'idle' AND wait_event_type IS DISTINCT FROM 'Activity' AND "      \
	"query IS DISTINCT FROM '<insufficient privilege>' AND pid <> pg_backend_pid())"

_Static_assert(offsetof(struct sql_link, setup) == 0, "sql_driver_load() sets it");

static const struct sql_function functions[] = {
#define F(function) { #function, offsetof(struct sql_link, lib.function) },
	FUNCTIONS(F)
#undef F
	{ NULL, 0 },
};

static void disconnect(struct sql_link *link)
{
	if (link->pg)
		link->lib.PQfinish(link->pg);
	link->pg = NULL;
	link->pending_since_ns = 0;
}

static void ignore_notice(void *userdata, const char *message)
{
	(void)userdata;
	(void)message;
}

/* libpq's messages have lines, the second with a tab before it; ours is one. */
static void add_message(struct text *error, const char *message)
{
	for (size_t i = 0; message[i]; i++) {
		if (message[i] == '\n' && message[i + 1])
			text_add(error, "; ");
		else if (message[i] != '\n' && message[i] != '\t')
			text_add_bytes(error, &message[i], 1);
	}
}

/* --- questions --------------------------------------------------------------------- */

/* Takes the result. */
static int check(struct sql_link *link, PGresult *result, PGresult **ret_result, struct text *error)
{
	ExecStatusType status = link->lib.PQresultStatus(result);

	if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
		if (ret_result)
			*ret_result = result;
		else
			link->lib.PQclear(result);
		return 0;
	}
	add_message(error, link->lib.PQerrorMessage(link->pg));
	link->lib.PQclear(result);
	return link->lib.PQstatus(link->pg) == CONNECTION_OK ? -EIO : -ENOTCONN;
}

static int wait_for_result(struct sql_link *link, uint64_t deadline_ns)
{
	struct pollfd pfd = { .fd = link->lib.PQsocket(link->pg), .events = POLLIN };

	while (link->lib.PQisBusy(link->pg)) {
		uint64_t now_ns = clock_mono_ns();
		int left_ms =
			now_ns < deadline_ns ? (int)((deadline_ns - now_ns) / NSEC_PER_MSEC) : 0;

		if (poll(&pfd, 1, left_ms) == 0)
			return -ETIMEDOUT;
		if (!link->lib.PQconsumeInput(link->pg))
			return -ENOTCONN;
	}
	return 0;
}

/*
 * Waits for the answer that is pending, of which the last result counts. A server that says nothing
 * keeps our session, a new one would be a second: -ETIMEDOUT, and nothing else is asked before the
 * answer has come.
 */
static int finish(
	struct sql_link *link, uint64_t deadline_ns, PGresult **ret_result, struct text *error)
{
	PGresult *result = NULL, *next;
	int r;

	while ((r = wait_for_result(link, deadline_ns)) == 0 &&
		(next = link->lib.PQgetResult(link->pg))) {
		link->lib.PQclear(result);
		result = next;
	}
	if (r == -ETIMEDOUT) {
		link->lib.PQclear(result);
		text_addf(error, SQL_ERROR_SILENT " for %.1f s",
			(double)(clock_mono_ns() - link->pending_since_ns) / NSEC_PER_SEC);
		return r;
	}
	link->pending_since_ns = 0;
	/* The session may be lost with the error that says why. */
	if (check(link, result, ret_result, error) == 0)
		return 0;
	return link->lib.PQstatus(link->pg) == CONNECTION_OK && r == 0 ? -EIO : -ENOTCONN;
}

/* `sent`: what libpq said when the question was handed to it. */
static int finish_sent(struct sql_link *link, int sent, uint64_t deadline_ns, PGresult **ret_result,
	struct text *error)
{
	if (!sent) {
		add_message(error, link->lib.PQerrorMessage(link->pg));
		return link->lib.PQstatus(link->pg) == CONNECTION_OK ? -EIO : -ENOTCONN;
	}
	link->pending_since_ns = clock_mono_ns();
	return finish(link, deadline_ns, ret_result, error);
}

/* Of a new session. */
static int ask(struct sql_link *link, const char *query, PGresult **ret_result, struct text *error)
{
	return finish_sent(link, link->lib.PQsendQuery(link->pg, query), link->describe_until_ns,
		ret_result, error);
}

static const char *cell(struct sql_link *link, PGresult *result, int row, int column)
{
	if (link->lib.PQntuples(result) <= row || link->lib.PQgetisnull(result, row, column))
		return NULL;
	return link->lib.PQgetvalue(result, row, column);
}

/* --- login ------------------------------------------------------------------------- */

/* "/run/postgresql/.s.PGSQL.5433" is directory and port to libpq; a directory alone is also taken.
 */
static void split_socket(
	const char *socket, char *dir, size_t dir_size, char *port, size_t port_size)
{
	static const char name[] = "/.s.PGSQL.";
	const char *found = strstr(socket, name);

	text_copy(dir, dir_size, socket);
	if (!found)
		return;
	if ((size_t)(found - socket) < dir_size)
		dir[found - socket] = '\0';
	text_copy(port, port_size, found + strlen(name));
}

static PGconn *open_session(struct sql_link *link, const char *password)
{
	const struct sql_frame_setup *setup = link->setup;
	char host[SQL_PATH_SIZE], port[16] = "", timeout[16], network_timeout[16];
	const char *keys[24], *values[24];
	unsigned int n = 0;

	text_copy(host, sizeof(host), setup->host);
	if (setup->port > 0)
		snprintf(port, sizeof(port), "%u", setup->port);
	if (setup->socket[0])
		split_socket(setup->socket, host, sizeof(host), port, sizeof(port));
	snprintf(timeout, sizeof(timeout), "%d", SQL_CONNECT_TIMEOUT_S);
	snprintf(network_timeout, sizeof(network_timeout), "%d", SQL_NETWORK_TIMEOUT_S * 1000);
#define ADD(key, value)                                                                            \
	do {                                                                                       \
		keys[n] = (key);                                                                   \
		values[n++] = (value);                                                             \
	} while (0)
	/* An empty value is as none. */
	ADD("host", host);
	ADD("port", port);
	ADD("user", sql_login_user(setup));
	ADD("dbname", setup->database[0] || setup->option_file[0] ? setup->database : "postgres");
	ADD("password", password);
	ADD("service", setup->option_file[0] ? "iostall" : "");
	ADD("connect_timeout", timeout);
	ADD("tcp_user_timeout", network_timeout);
	ADD("keepalives_idle", "30");
	ADD("application_name", "iostall");
	ADD("client_encoding", "UTF8");
	ADD("gssencmode", "disable");
#undef ADD
	keys[n] = values[n] = NULL;
	if (setup->option_file[0])
		setenv("PGSERVICEFILE", setup->option_file, 1);
	return link->lib.PQconnectdbParams(keys, values, 0);
}

static const char *role(const struct sql_link *link)
{
	return sql_login_user(link->setup);
}

/* As SQL writes a name. */
static void add_name(struct text *out, const char *name)
{
	bool plain = name[0] &&
		     name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0' &&
		     (name[0] < '0' || name[0] > '9');

	if (!plain)
		text_add(out, "\"");
	for (; *name; name++)
		text_add(out, *name == '"' ? "\"\"" : (char[]){ *name, '\0' });
	if (!plain)
		text_add(out, "\"");
}

static void say_how_to_create(struct sql_link *link, bool by_password, struct text *missing)
{
	text_add(missing, "CREATE ROLE ");
	add_name(missing, role(link));
	text_add(missing, by_password ? " LOGIN PASSWORD 'PASSWORD'" : " LOGIN");
	text_add(missing, "; GRANT pg_monitor TO ");
	add_name(missing, role(link));
}

/* Of peer the server compares the names alone; of a password it tells no stranger whether there is the role. */
static void say_how_to_log_in(
	struct sql_link *link, const char *message, bool needs_password, struct text *missing)
{
	const struct sql_frame_setup *setup = link->setup;

	if (sql_say_option_file(setup, missing))
		return;
	if (needs_password) {
		text_addf(missing, "sql.%s.password_file; and, if there is no such role, ", setup->name);
		say_how_to_create(link, true, missing);
	} else if (strstr(message, "password authentication failed")) {
		text_add(missing, "ALTER ROLE ");
		add_name(missing, role(link));
		text_add(missing, " PASSWORD 'PASSWORD'; or, if there is no such role, ");
		say_how_to_create(link, true, missing);
	} else if (strstr(message, "does not exist")) {
		say_how_to_create(link, setup->password_file[0], missing);
	} else if (strstr(message, "Peer authentication failed") && !sql_is_own_user(role(link))) {
		sql_say_run_as(setup, role(link), missing);
		text_add(missing, "; or a line for ");
		add_name(missing, role(link));
		text_addf(missing, " without peer in pg_hba.conf, and sql.%s.password_file", setup->name);
	} else {
		text_add(missing, "a line for ");
		add_name(missing, role(link));
		text_add(missing, " in pg_hba.conf that lets it in");
	}
}

/* A refused login has no code in libpq; what it cannot be is left out by what it says. */
static int fail_connect(struct sql_link *link, struct text *error, struct text *missing)
{
	const char *message = link->lib.PQerrorMessage(link->pg);
	bool needs_password = link->lib.PQconnectionNeedsPassword(link->pg);
	bool refused = needs_password || strstr(message, "authentication failed") ||
		       strstr(message, "no pg_hba.conf entry");
	bool unknown = strstr(message, "does not exist") && strstr(message, "role");
	bool silent = strstr(message, "timeout expired");

	add_message(error, message);
	if (!silent && (refused || unknown))
		say_how_to_log_in(link, message, needs_password, missing);
	disconnect(link);
	if (silent)
		return -ETIMEDOUT;
	return refused || unknown ? -EACCES : -ECONNREFUSED;
}

static int set_session(struct sql_link *link, struct text *error)
{
	char statement[160];

	snprintf(statement, sizeof(statement),
		"SET statement_timeout = %d; SET lock_timeout = %d; SET jit = off; "
		"SET default_transaction_read_only = on",
		SQL_STATEMENT_TIMEOUT_MS, SQL_STATEMENT_TIMEOUT_MS);
	return ask(link, statement, NULL, error);
}

/* Asked of the catalog: which columns the server has, and which role we are. */
static const char about_query[] =
	"SELECT session_user, pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'), "
	"bool_or(attname = 'leader_pid'), bool_or(attname = 'query_id') FROM pg_attribute "
	"WHERE attrelid = 'pg_catalog.pg_stat_activity'::regclass AND attnum > 0";

static int prepare(struct sql_link *link, bool has_leader, bool has_query_id, struct text *error)
{
	const char *leader = has_leader ? "leader_pid" : "NULL::int";
	unsigned int chars = link->setup->text_mode == SQL_TEXT_OFF ? 0 : SQL_REDACT_BYTES_MAX / 4;
	char query[2048];

	/*
	 * One row with the counts at least, so that a quiet server is told from none. A statement
	 * with workers is one.
	 */
	snprintf(query, sizeof(query),
		"WITH a AS MATERIALIZED (SELECT *, " ACTIVE " AS active FROM pg_stat_activity) "
		"SELECT c.idle, c.active, s.* FROM (SELECT count(*) FILTER (WHERE state = 'idle'), "
		"count(*) FILTER (WHERE active AND %s IS NULL) FROM a) AS c (idle, active) LEFT JOIN ("
		"SELECT pid, usename, host(client_addr), datname, coalesce(state, backend_type), "
		"concat_ws(': ', wait_event_type, wait_event), backend_type, %s AS leader, "
		"%s AS query_id, (extract(epoch FROM clock_timestamp() - CASE WHEN state = 'active' "
		"THEN query_start ELSE state_change END) * 1e9)::bigint AS elapsed, "
		"octet_length(query), left(query, %u), "
		"octet_length(query) >= "
		"pg_size_bytes(current_setting('track_activity_query_size')) - 4, "
		"char_length(query) > %u "
		"FROM a WHERE active ORDER BY elapsed DESC NULLS LAST LIMIT %d) AS s ON true",
		leader, leader, has_query_id ? "query_id" : "NULL::bigint",
		chars, chars, SQL_SESSIONS_MAX);
	return finish_sent(link, link->lib.PQsendPrepare(link->pg, STATEMENT, query, 0, NULL),
		link->describe_until_ns, NULL, error);
}

static int describe(struct sql_link *link, struct sql_frame_server *server, struct text *error)
{
	struct text missing = TEXT_ON(server->missing);
	bool has_leader, has_query_id;
	PGresult *result;
	const char *value;
	int r = ask(link, about_query, &result, error);

	if (r < 0)
		return r;
	sql_copy_cell(server->account, sizeof(server->account), cell(link, result, 0, 0));
	value = cell(link, result, 0, 1);
	server->can_see_others = value && value[0] == 't';
	value = cell(link, result, 0, 2);
	has_leader = value && value[0] == 't';
	value = cell(link, result, 0, 3);
	has_query_id = value && value[0] == 't';
	link->lib.PQclear(result);
	snprintf(server->version, sizeof(server->version), "PostgreSQL %s",
		link->lib.PQparameterStatus(link->pg, "server_version"));
	server->has_tid = 1;
	server->server_pid = sql_peer_pid(link->lib.PQsocket(link->pg));
	text_reset(&missing);
	if (!server->can_see_others) {
		text_add(&missing, "GRANT pg_monitor TO ");
		add_name(&missing, server->account);
	}
	return prepare(link, has_leader, has_query_id, error);
}

/* An answer that is late is of no use any more, were it an error. */
static int finish_last(struct sql_link *link, uint64_t deadline_ns, struct text *error)
{
	int r = link->pending_since_ns > 0 ? finish(link, deadline_ns, NULL, error) : 0;

	if (r == -ENOTCONN || r == -ETIMEDOUT)
		return r;
	text_reset(error);
	return 0;
}

static int ask_sessions(struct sql_link *link, PGresult **ret_result, struct text *error)
{
	uint64_t deadline_ns = clock_mono_ns() + SESSIONS_TIMEOUT_MS * NSEC_PER_MSEC;
	int r = finish_last(link, deadline_ns, error);

	if (r < 0)
		return r;
	return finish_sent(link,
		link->lib.PQsendQueryPrepared(link->pg, STATEMENT, 0, NULL, NULL, NULL, 0),
		deadline_ns, ret_result, error);
}

static int connect_server(struct sql_link *link, const char *password,
	struct sql_frame_server *ret_server, struct text *error, struct text *missing)
{
	int r;

	link->pg = open_session(link, password);
	if (!link->pg) {
		text_add(error, "no memory");
		return -ENOMEM;
	}
	if (link->lib.PQstatus(link->pg) != CONNECTION_OK)
		return fail_connect(link, error, missing);
	link->lib.PQsetNoticeProcessor(link->pg, ignore_notice, NULL);
	link->describe_until_ns = clock_mono_ns() + DESCRIBE_TIMEOUT_NS;
	/* Asked once now, so that the catalogs are read. */
	if ((r = set_session(link, error)) < 0 || (r = describe(link, ret_server, error)) < 0 ||
		((r = ask_sessions(link, NULL, error)) < 0 && r != -ETIMEDOUT)) {
		disconnect(link);
		return r;
	}
	text_reset(error);
	return 0;
}

/* --- sessions ---------------------------------------------------------------------- */

/* The columns of the prepared statement. */
enum column {
	COLUMN_IDLE,
	COLUMN_ACTIVE,
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
	COLUMN_IS_CUT,	  /* by the server, as far as that can be told */
	COLUMN_IS_LONGER, /* than what we asked for */
};

/* Negative: a query id is any 64 bits; an elapsed time before the clock was set back is none. */
static uint64_t signed_cell(const char *value)
{
	return value ? (uint64_t)strtoll(value, NULL, 10) : 0;
}

static bool is_true(const char *value)
{
	return value && value[0] == 't';
}

static void fill_session(
	struct sql_link *link, PGresult *result, int row, struct sql_frame_session *s)
{
	const char *type = cell(link, result, row, COLUMN_TYPE);
	const char *user = cell(link, result, row, COLUMN_USER);
	const char *host = cell(link, result, row, COLUMN_HOST);
	const char *state = cell(link, result, row, COLUMN_STATE);
	int64_t elapsed_ns = (int64_t)signed_cell(cell(link, result, row, COLUMN_ELAPSED_NS));

	s->connection_id = sql_cell_u64(cell(link, result, row, COLUMN_PID));
	s->tid = (int32_t)s->connection_id;
	s->query_id = signed_cell(cell(link, result, row, COLUMN_QUERY_ID));
	s->elapsed_ns = elapsed_ns > 0 ? (uint64_t)elapsed_ns : 0;
	s->leader_pid = (int32_t)sql_cell_u64(cell(link, result, row, COLUMN_LEADER));
	s->background =
		type && strcmp(type, "client backend") != 0 && strcmp(type, "parallel worker") != 0;
	/* Or "(aborted)" behind it. The statement that is shown is its last. */
	s->idle =
		state && strncmp(state, "idle in transaction", strlen("idle in transaction")) == 0;
	if (user)
		snprintf(s->user, sizeof(s->user), "%s@%s", user, host ? host : "localhost");
	sql_copy_cell(s->database, sizeof(s->database), cell(link, result, row, COLUMN_DATABASE));
	sql_copy_cell(s->command, sizeof(s->command), state);
	sql_copy_cell(s->state, sizeof(s->state), cell(link, result, row, COLUMN_WAIT));
}

static int snapshot(struct sql_link *link, struct sql_answer *answer, struct text *error)
{
	uint64_t active, sent = 0; /* workers are in neither */
	PGresult *result;
	int r = ask_sessions(link, &result, error);

	if (r < 0)
		return r;
	for (int row = 0; row < link->lib.PQntuples(result); row++) {
		struct sql_frame_session session = { 0 };
		bool is_cut = is_true(cell(link, result, row, COLUMN_IS_CUT));
		bool is_longer = is_true(cell(link, result, row, COLUMN_IS_LONGER));
		const char *bytes = cell(link, result, row, COLUMN_TEXT_BYTES);

		if (!cell(link, result, row, COLUMN_PID))
			break;
		fill_session(link, result, row, &session);
		/*
		 * The server keeps only the beginning; of the rest it knows no more than that it
		 * is. Its bytes are those of its own encoding: no measure for ours.
		 */
		if (!sql_answer_add(answer, &session, cell(link, result, row, COLUMN_TEXT),
			    sql_cell_u64(bytes) + is_cut, is_cut || is_longer))
			break;
		sent += session.leader_pid == 0;
	}
	active = sql_cell_u64(cell(link, result, 0, COLUMN_ACTIVE));
	sql_answer_count(answer, active > sent ? active - sent : 0,
		sql_cell_u64(cell(link, result, 0, COLUMN_IDLE)));
	link->lib.PQclear(result);
	return 0;
}

const struct sql_driver sql_driver_postgresql = {
	.name = "postgresql",
	.dialect = SQL_DIALECT_POSTGRESQL,
	.library = "libpq.so.5",
	.package = "libpq5",
	.functions = functions,
	.link_size = sizeof(struct sql_link),
	.connect = connect_server,
	.snapshot = snapshot,
	.disconnect = disconnect,
};
