/* SPDX-License-Identifier: GPL-2.0-or-later */
/* MariaDB and MySQL, through libmariadb. */
#include <errno.h>
#include <mysql.h>
#include <mysqld_error.h>
#include <errmsg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sql/driver.h"
#include "util/cleanup.h"
#include "util/clock.h"

#define LIBRARY "libmariadb.so.3"
#define PACKAGE "libmariadb3"

#define FUNCTIONS(F)                                                                               \
	F(mysql_init)                                                                              \
	F(mysql_optionsv)                                                                          \
	F(mysql_real_connect)                                                                      \
	F(mysql_real_query)                                                                        \
	F(mysql_store_result)                                                                      \
	F(mysql_free_result)                                                                       \
	F(mysql_fetch_row)                                                                         \
	F(mysql_fetch_field_direct)                                                                \
	F(mysql_num_fields)                                                                        \
	F(mysql_get_server_info)                                                                   \
	F(mysql_get_socket)                                                                        \
	F(mysql_errno)                                                                             \
	F(mysql_error)                                                                             \
	F(mysql_close)

struct functions {
#define F(name) __typeof__(name) *name;
	FUNCTIONS(F)
#undef F
};

/* What this server calls what we want, "NULL" where it has none. */
struct columns {
	const char *tid;
	const char *query_id;
	const char *elapsed_ns;
};

struct sql_link {
	struct functions lib;
	const struct sql_frame_setup *setup;
	MYSQL *mysql; /* NULL: no session */
	bool thread_pool;
	bool by_threads; /* performance_schema.threads, not PROCESSLIST */
	char sessions_query[1536];
	char counts_query[512];
};

/* What a session does that is none of its own statements; replication that waits does nothing. */
#define ACTIVE                                                                                      \
	"COMMAND NOT IN ('Sleep', 'Daemon', 'Binlog Dump', 'Binlog Dump GTID', 'Slave_IO') AND "    \
	"NOT (COMMAND IN ('Slave_SQL', 'Slave_worker') AND (COALESCE(STATE, '') LIKE 'Waiting %%' " \
	"OR STATE LIKE 'Slave has read all%%'))"
#define ACTIVE_THREADS                                                                             \
	"TYPE = 'FOREGROUND' AND PROCESSLIST_COMMAND NOT IN "                                      \
	"('Sleep', 'Daemon', 'Binlog Dump', 'Binlog Dump GTID', 'Connect')"

static int load(const struct sql_frame_setup *setup, struct sql_link **ret_link, struct text *error)
{
	_cleanup_free_ struct sql_link *link = calloc(1, sizeof(*link));
	void *library = sql_library_open(LIBRARY, PACKAGE, error);

	if (!link)
		return -ENOMEM;
	if (!library)
		return -ENOENT;
#define F(name)                                                                                    \
	link->lib.name = (__typeof__(link->lib.name))sql_library_find(library, #name, error);
	FUNCTIONS(F)
#undef F
	if (error->len > 0)
		return -ENOSYS;
	link->setup = setup;
	*ret_link = TAKE_PTR(link);
	return 0;
}

static void disconnect(struct sql_link *link)
{
	if (link->mysql)
		link->lib.mysql_close(link->mysql);
	link->mysql = NULL;
}

/* --- questions
 * ------------------------------------------------------------------------------------ */

/* -ENOTCONN when the session did not survive it. */
static int fail(struct sql_link *link, struct text *error)
{
	unsigned int code = link->lib.mysql_errno(link->mysql);

	text_addf(error, "%s (%u)", link->lib.mysql_error(link->mysql), code);
	if ((code >= CR_MIN_ERROR && code <= CR_MAX_ERROR) || code == ER_CONNECTION_KILLED)
		return -ENOTCONN;
	return -EIO;
}

/* ret_result may be NULL for a statement without one. */
static int ask(struct sql_link *link, const char *query, MYSQL_RES **ret_result, struct text *error)
{
	MYSQL_RES *result;

	if (link->lib.mysql_real_query(link->mysql, query, strlen(query)) != 0)
		return fail(link, error);
	result = link->lib.mysql_store_result(link->mysql);
	if (!result && link->lib.mysql_errno(link->mysql) != 0)
		return fail(link, error);
	if (ret_result && !result)
		return -EIO;
	if (ret_result)
		*ret_result = result;
	else if (result)
		link->lib.mysql_free_result(result);
	return 0;
}

/* The first cell of the answer; "" for NULL and for a question that this server does not
 * understand. */
static void ask_cell(struct sql_link *link, const char *query, char *ret_cell, size_t size)
{
	char ignored_buf[SQL_ERROR_SIZE];
	struct text ignored = TEXT_ON(ignored_buf);
	MYSQL_RES *result;
	MYSQL_ROW row;

	text_reset(&ignored);
	ret_cell[0] = '\0';
	if (ask(link, query, &result, &ignored) < 0)
		return;
	row = link->lib.mysql_fetch_row(result);
	sql_copy_cell(ret_cell, size, row ? row[0] : NULL);
	link->lib.mysql_free_result(result);
}

static void tell(struct sql_link *link, const char *statement)
{
	char ignored_buf[SQL_ERROR_SIZE];
	struct text ignored = TEXT_ON(ignored_buf);

	text_reset(&ignored);
	ask(link, statement, NULL, &ignored);
}

/* --- login
 * ---------------------------------------------------------------------------------------- */

static void set_options(struct sql_link *link)
{
	const struct sql_frame_setup *setup = link->setup;
	const unsigned int timeout_s = SQL_CONNECT_TIMEOUT_S, no = 0;
	const unsigned int protocol = setup->host[0] ? MYSQL_PROTOCOL_TCP : MYSQL_PROTOCOL_SOCKET;
	struct functions *lib = &link->lib;

	lib->mysql_optionsv(link->mysql, MYSQL_OPT_CONNECT_TIMEOUT, &timeout_s);
	lib->mysql_optionsv(link->mysql, MYSQL_OPT_READ_TIMEOUT, &timeout_s);
	lib->mysql_optionsv(link->mysql, MYSQL_OPT_WRITE_TIMEOUT, &timeout_s);
	lib->mysql_optionsv(link->mysql, MYSQL_OPT_LOCAL_INFILE, &no);
	lib->mysql_optionsv(link->mysql, MYSQL_SET_CHARSET_NAME, "utf8mb4");
	lib->mysql_optionsv(link->mysql, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", "iostall");
	if (setup->option_file[0]) {
		lib->mysql_optionsv(link->mysql, MYSQL_READ_DEFAULT_FILE, setup->option_file);
		lib->mysql_optionsv(link->mysql, MYSQL_READ_DEFAULT_GROUP, "iostall");
	}
	if (setup->host[0] || setup->socket[0])
		lib->mysql_optionsv(link->mysql, MYSQL_OPT_PROTOCOL, &protocol);
}

/*
 * A local server that says nothing still has our session: a new one would be a second. That it died
 * its socket tells at once.
 */
static void set_patience(struct sql_link *link)
{
	const unsigned int timeout_s = link->setup->host[0] ? SQL_NETWORK_TIMEOUT_S : 0;

	link->lib.mysql_optionsv(link->mysql, MYSQL_OPT_READ_TIMEOUT, &timeout_s);
}

static void set_session(struct sql_link *link)
{
	char statement[96];

	/* What a server does not know it refuses: the first is MariaDB's, the second MySQL's. */
	snprintf(statement, sizeof(statement), "SET SESSION max_statement_time = %d",
		SQL_STATEMENT_TIMEOUT_MS / 1000);
	tell(link, statement);
	snprintf(statement, sizeof(statement), "SET SESSION max_execution_time = %d",
		SQL_STATEMENT_TIMEOUT_MS);
	tell(link, statement);
	tell(link, "SET SESSION lock_wait_timeout = 1");
	/* Longer than we are ever silent. */
	tell(link, "SET SESSION wait_timeout = 3600");
	tell(link, "SET SESSION sql_mode = ''");
}

/* 'user'@'host' as a GRANT takes it, from user@host. */
static void add_account(struct text *out, const char *account)
{
	const char *host = strrchr(account, '@');
	size_t user_len = host ? (size_t)(host - account) : strlen(account);

	text_add(out, "'");
	for (size_t i = 0; account[i]; i++) {
		if (i == user_len)
			text_add(out, "'@'");
		else if (account[i] == '\'')
			text_add(out, "''");
		else
			text_add_bytes(out, &account[i], 1);
	}
	text_add(out, "'");
}

static void say_how_to_create(struct sql_link *link, struct text *missing)
{
	const struct sql_frame_setup *setup = link->setup;
	bool mysql = setup->type == SQL_TYPE_MYSQL;
	const char *host = setup->host[0] ? "%" : "localhost";
	char account[2 * SQL_NAME_SIZE];

	snprintf(account, sizeof(account), "%s@%s", setup->user[0] ? setup->user : "iostall", host);
	text_add(missing, "CREATE USER ");
	add_account(missing, account);
	if (setup->password_file[0] || setup->option_file[0] || setup->host[0])
		text_add(missing, " IDENTIFIED BY 'PASSWORD'");
	else
		text_add(missing,
			mysql ? " IDENTIFIED WITH auth_socket" : " IDENTIFIED VIA unix_socket");
	text_add(missing, "; GRANT PROCESS ON *.* TO ");
	add_account(missing, account);
}

static int fail_connect(struct sql_link *link, struct text *error, struct text *missing)
{
	unsigned int code = link->lib.mysql_errno(link->mysql);

	text_add(error, link->lib.mysql_error(link->mysql));
	text_addf(error, " (%u)", code);
	disconnect(link);
	if (code == ER_ACCESS_DENIED_ERROR || code == ER_ACCESS_DENIED_NO_PASSWORD_ERROR ||
		code == ER_HOST_NOT_PRIVILEGED) {
		say_how_to_create(link, missing);
		return -EACCES;
	}
	return -ECONNREFUSED;
}

/* --- what the server can say
 * ---------------------------------------------------------------------- */

static bool sees_others(struct sql_link *link)
{
	char ignored_buf[SQL_ERROR_SIZE];
	struct text ignored = TEXT_ON(ignored_buf);
	MYSQL_RES *result;
	MYSQL_ROW row;
	bool sees = false;

	text_reset(&ignored);
	/* Roles in use included. Compared, never kept: a line may hold the hash of a password. */
	if (ask(link, "SHOW GRANTS", &result, &ignored) < 0)
		return false;
	while ((row = link->lib.mysql_fetch_row(result))) {
		const char *on = row[0] ? strstr(row[0], " ON *.* TO ") : NULL;
		const char *process = on ? strstr(row[0], "PROCESS") : NULL;
		const char *all = on ? strstr(row[0], "ALL PRIVILEGES") : NULL;

		sees |= (process && process < on) || (all && all < on);
	}
	link->lib.mysql_free_result(result);
	return sees;
}

static int probe_columns(struct sql_link *link, struct columns *ret_columns, struct text *error)
{
	struct columns c = { "NULL", "NULL", "TIME * 1000000000" };
	MYSQL_RES *result;
	int r = ask(link, "SELECT * FROM information_schema.PROCESSLIST LIMIT 0", &result, error);

	if (r < 0)
		return r;
	for (unsigned int i = 0; i < link->lib.mysql_num_fields(result); i++) {
		const char *name = link->lib.mysql_fetch_field_direct(result, i)->name;

		if (strcmp(name, "TID") == 0)
			c.tid = "TID";
		else if (strcmp(name, "QUERY_ID") == 0)
			c.query_id = "QUERY_ID";
		else if (strcmp(name, "TIME_MS") == 0)
			c.elapsed_ns = "CAST(TIME_MS * 1000000 AS UNSIGNED)";
	}
	link->lib.mysql_free_result(result);
	*ret_columns = c;
	return 0;
}

static void make_queries(struct sql_link *link, const struct columns *c)
{
	/* Characters; a byte of the text more than is shown may decide how it is read. */
	unsigned int chars = link->setup->text_mode == SQL_TEXT_OFF ? 0 : SQL_REDACT_BYTES_MAX / 4;

	if (link->by_threads) {
		snprintf(link->sessions_query, sizeof(link->sessions_query),
			"SELECT PROCESSLIST_ID, THREAD_OS_ID, NULL, PROCESSLIST_TIME * 1000000000, "
			"PROCESSLIST_USER, PROCESSLIST_HOST, PROCESSLIST_DB, PROCESSLIST_COMMAND, "
			"PROCESSLIST_STATE, LENGTH(PROCESSLIST_INFO), LEFT(PROCESSLIST_INFO, %u) "
			"FROM performance_schema.threads WHERE PROCESSLIST_ID <> CONNECTION_ID() AND " ACTIVE_THREADS
			" ORDER BY PROCESSLIST_TIME DESC LIMIT %d",
			chars, SQL_SESSIONS_MAX);
		snprintf(link->counts_query, sizeof(link->counts_query),
			"SELECT SUM(PROCESSLIST_COMMAND = 'Sleep'), SUM(PROCESSLIST_ID <> "
			"CONNECTION_ID() AND " ACTIVE_THREADS ") FROM performance_schema.threads");
		return;
	}
	snprintf(link->sessions_query, sizeof(link->sessions_query),
		"SELECT ID, %s, %s, %s, USER, HOST, DB, COMMAND, STATE, LENGTH(INFO), LEFT(INFO, %u) "
		"FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() AND " ACTIVE
		" ORDER BY 4 DESC LIMIT %d",
		c->tid, c->query_id, c->elapsed_ns, chars, SQL_SESSIONS_MAX);
	snprintf(link->counts_query, sizeof(link->counts_query),
		"SELECT SUM(COMMAND = 'Sleep'), SUM(ID <> CONNECTION_ID() AND " ACTIVE ") "
		"FROM information_schema.PROCESSLIST");
}

/* Whether MySQL's table of threads is there and may be read. */
static bool has_threads(struct sql_link *link)
{
	char cell[SQL_NAME_SIZE];

	ask_cell(link,
		"SELECT THREAD_OS_ID FROM performance_schema.threads WHERE "
		"PROCESSLIST_ID = CONNECTION_ID()",
		cell, sizeof(cell));
	return sql_cell_u64(cell) > 0;
}

static void say_missing(struct sql_frame_server *server, bool threads_denied)
{
	struct text missing = TEXT_ON(server->missing);

	text_reset(&missing);
	if (!server->can_see_others) {
		text_add(&missing, "GRANT PROCESS ON *.* TO ");
		add_account(&missing, server->account);
	}
	if (threads_denied) {
		text_addf(&missing, "%sGRANT SELECT ON performance_schema.threads TO ",
			missing.len ? "; " : "");
		add_account(&missing, server->account);
	}
}

static int describe(struct sql_link *link, struct sql_frame_server *server, struct text *error)
{
	struct columns columns;
	char cell[SQL_NAME_SIZE];
	bool schema_on;
	int r = probe_columns(link, &columns, error);

	if (r < 0)
		return r;
	ask_cell(link, "SELECT @@performance_schema", cell, sizeof(cell));
	schema_on = strcmp(cell, "1") == 0;
	/* A server without the column, or one whose kind is said to be MySQL. */
	link->by_threads =
		schema_on && has_threads(link) &&
		(link->setup->type == SQL_TYPE_MYSQL || strcmp(columns.tid, "NULL") == 0);
	ask_cell(link, "SELECT @@thread_handling", cell, sizeof(cell));
	link->thread_pool = strcmp(cell, "pool-of-threads") == 0;
	make_queries(link, &columns);
	ask_cell(link, "SELECT CURRENT_USER()", server->account, sizeof(server->account));
	sql_copy_cell(server->version, sizeof(server->version),
		link->lib.mysql_get_server_info(link->mysql));
	server->can_see_others = sees_others(link);
	server->has_tid =
		!link->thread_pool && (link->by_threads || strcmp(columns.tid, "NULL") != 0);
	server->server_pid = sql_peer_pid((int)link->lib.mysql_get_socket(link->mysql));
	say_missing(server, schema_on && !link->by_threads && strcmp(columns.tid, "NULL") == 0);
	return 0;
}

static int connect_server(struct sql_link *link, const char *password,
	struct sql_frame_server *ret_server, struct text *error, struct text *missing)
{
	const struct sql_frame_setup *setup = link->setup;
	const char *socket_path = setup->socket[0] ? setup->socket : NULL;
	int r;

	link->mysql = link->lib.mysql_init(NULL);
	if (!link->mysql) {
		text_add(error, "no memory");
		return -ENOMEM;
	}
	set_options(link);
	if (!link->lib.mysql_real_connect(link->mysql, setup->host[0] ? setup->host : NULL,
		    setup->user[0] ? setup->user : NULL, password, NULL, setup->port, socket_path,
		    0))
		return fail_connect(link, error, missing);
	set_session(link);
	r = describe(link, ret_server, error);
	if (r < 0) {
		disconnect(link);
		return r;
	}
	set_patience(link);
	return 0;
}

/* --- sessions
 * ------------------------------------------------------------------------------------- */

/* The columns of sessions_query. */
enum cell {
	CELL_ID,
	CELL_TID,
	CELL_QUERY_ID,
	CELL_ELAPSED_NS,
	CELL_USER,
	CELL_HOST,
	CELL_DB,
	CELL_COMMAND,
	CELL_STATE,
	CELL_TEXT_BYTES,
	CELL_TEXT,
};

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
	text_copy(s->no_tid, sizeof(s->no_tid), why);
}

static void fill_session(const struct sql_link *link, MYSQL_ROW row, struct sql_frame_session *s)
{
	const char *user = row[CELL_USER] ? row[CELL_USER] : "";
	const char *host = row[CELL_HOST] ? row[CELL_HOST] : "";

	s->connection_id = sql_cell_u64(row[CELL_ID]);
	s->query_id = sql_cell_u64(row[CELL_QUERY_ID]);
	s->tid = (int32_t)sql_cell_u64(row[CELL_TID]);
	s->elapsed_ns = sql_cell_u64(row[CELL_ELAPSED_NS]);
	s->background = strcmp(user, "system user") == 0 || strcmp(user, "event_scheduler") == 0;
	snprintf(s->user, sizeof(s->user), "%s%s%.*s", user, host[0] ? "@" : "", host_len(host),
		host);
	sql_copy_cell(s->database, sizeof(s->database), row[CELL_DB]);
	sql_copy_cell(s->command, sizeof(s->command), row[CELL_COMMAND]);
	sql_copy_cell(s->state, sizeof(s->state), row[CELL_STATE]);
	say_why_no_tid(link, s);
}

static int ask_counts(
	struct sql_link *link, uint64_t *ret_idle, uint64_t *ret_active, struct text *error)
{
	MYSQL_RES *result;
	MYSQL_ROW row;
	int r = ask(link, link->counts_query, &result, error);

	if (r < 0)
		return r;
	row = link->lib.mysql_fetch_row(result);
	*ret_idle = row ? sql_cell_u64(row[0]) : 0;
	*ret_active = row ? sql_cell_u64(row[1]) : 0;
	link->lib.mysql_free_result(result);
	return 0;
}

static int snapshot(struct sql_link *link, struct sql_answer *answer, struct text *error)
{
	uint64_t idle, active, sent = 0;
	MYSQL_RES *result;
	MYSQL_ROW row;
	int r = ask(link, link->sessions_query, &result, error);

	if (r < 0)
		return r;
	while ((row = link->lib.mysql_fetch_row(result))) {
		struct sql_frame_session session = { 0 };

		fill_session(link, row, &session);
		if (!sql_answer_add(
			    answer, &session, row[CELL_TEXT], sql_cell_u64(row[CELL_TEXT_BYTES])))
			break;
		sent++;
	}
	link->lib.mysql_free_result(result);
	r = ask_counts(link, &idle, &active, error);
	if (r == 0)
		sql_answer_count(answer, active > sent ? active - sent : 0, idle);
	return r;
}

const struct sql_driver sql_driver_mariadb = {
	.name = "mariadb",
	.dialect = SQL_DIALECT_MYSQL,
	.load = load,
	.connect = connect_server,
	.snapshot = snapshot,
	.disconnect = disconnect,
};

const struct sql_driver sql_driver_mysql = {
	.name = "mysql",
	.dialect = SQL_DIALECT_MYSQL,
	.load = load,
	.connect = connect_server,
	.snapshot = snapshot,
	.disconnect = disconnect,
};
