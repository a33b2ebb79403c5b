/* SPDX-License-Identifier: GPL-2.0-or-later */
/* MariaDB and MySQL, through libmariadb. */
#include "sql/mariadb.h"

#include <errmsg.h>
#include <errno.h>
#include <mysqld_error.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sql/account.h"
#include "util/cleanup.h"
#include "util/clock.h"

_Static_assert(offsetof(struct sql_link, setup) == 0, "sql_driver_load() sets it");

static const struct sql_function functions[] = {
#define F(function) { #function, offsetof(struct sql_link, lib.function) },
	MARIADB_FUNCTIONS(F)
#undef F
	{ NULL, 0 },
};

static void disconnect(struct sql_link *link)
{
	if (link->mysql)
		link->lib.mysql_close(link->mysql);
	link->mysql = NULL;
	link->pending_since_ns = 0;
	mariadb_forget_threads(link);
}

/* --- questions --------------------------------------------------------------------- */

/* -ENOTCONN when the session did not survive it. */
static int fail(struct sql_link *link, struct text *error)
{
	unsigned int code = link->lib.mysql_errno(link->mysql);

	text_addf(error, "%s (%u)", link->lib.mysql_error(link->mysql), code);
	if ((code >= CR_MIN_ERROR && code <= CR_MAX_ERROR) || code == ER_CONNECTION_KILLED)
		return -ENOTCONN;
	return -EIO;
}

/* Takes the answer that has come. */
static int read_answer(struct sql_link *link, MYSQL_RES **ret_result, struct text *error)
{
	link->pending_since_ns = 0;
	if (link->lib.mysql_read_query_result(link->mysql) != 0)
		return fail(link, error);
	*ret_result = link->lib.mysql_store_result(link->mysql);
	return !*ret_result && link->lib.mysql_errno(link->mysql) != 0 ? fail(link, error) : 0;
}

int mariadb_finish(
	struct sql_link *link, int timeout_ms, MYSQL_RES **ret_result, struct text *error)
{
	struct pollfd pfd = {
		.fd = (int)link->lib.mysql_get_socket(link->mysql),
		.events = POLLIN,
	};
	uint64_t silent_ns;

	*ret_result = NULL;
	if (link->pending_since_ns == 0)
		return 0;
	if (poll(&pfd, 1, timeout_ms) != 0)
		return read_answer(link, ret_result, error);
	silent_ns = clock_mono_ns() - link->pending_since_ns;
	text_addf(
		error, SQL_ERROR_SILENT " for %.1f s", (double)silent_ns / NSEC_PER_SEC);
	/* That a local server died its socket tells; what is behind a network may just be gone. */
	if (link->setup->host[0] && silent_ns > SQL_NETWORK_TIMEOUT_S * NSEC_PER_SEC)
		return -ENOTCONN;
	return -ETIMEDOUT;
}

int mariadb_ask(struct sql_link *link, const char *query, int timeout_ms, MYSQL_RES **ret_result,
	struct text *error)
{
	MYSQL_RES *result;
	int r;

	if (link->lib.mysql_send_query(link->mysql, query, strlen(query)) != 0)
		return fail(link, error);
	link->pending_since_ns = clock_mono_ns();
	link->pending_threads = false;
	r = mariadb_finish(link, timeout_ms, &result, error);
	if (r < 0)
		return r;
	if (ret_result && !result)
		return -EIO;
	if (ret_result)
		*ret_result = result;
	else if (result)
		link->lib.mysql_free_result(result);
	return 0;
}

/* Within the time that a login may take. */
static int ask(struct sql_link *link, const char *query, MYSQL_RES **ret_result, struct text *error)
{
	if (link->pending_since_ns > 0)
		return -ETIMEDOUT;
	return mariadb_ask(link, query, SQL_CONNECT_TIMEOUT_S * 1000, ret_result, error);
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

/* --- login ------------------------------------------------------------------------- */

static void set_options(struct sql_link *link)
{
	const struct sql_frame_setup *setup = link->setup;
	const unsigned int timeout_s = SQL_CONNECT_TIMEOUT_S, no = 0;
	/*
	 * How long an answer may take in the middle, where nobody else looks at the clock; the
	 * library takes it over when the login is through. A local server that says nothing still
	 * has our session, a new one would be a second; that it died its socket tells.
	 */
	const unsigned int patience_s = setup->host[0] ? SQL_NETWORK_TIMEOUT_S : 0;
	const unsigned int protocol = setup->host[0] ? MYSQL_PROTOCOL_TCP : MYSQL_PROTOCOL_SOCKET;
	struct mariadb_functions *lib = &link->lib;

	lib->mysql_optionsv(link->mysql, MYSQL_OPT_CONNECT_TIMEOUT, &timeout_s);
	lib->mysql_optionsv(link->mysql, MYSQL_OPT_READ_TIMEOUT, &patience_s);
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

/* Which of the two a refused login is, the server does not tell a stranger. */
static void say_how_to_log_in(struct sql_link *link, unsigned int code, struct text *missing)
{
	const struct sql_frame_setup *setup = link->setup;
	const char *user = sql_login_user(setup);
	bool by_password = setup->password_file[0] || setup->option_file[0];
	bool mysql = setup->type == SQL_TYPE_MYSQL;
	const char *how = " IDENTIFIED BY 'PASSWORD'";
	char account[2 * SQL_NAME_SIZE];

	if (sql_say_option_file(setup, missing))
		return;
	snprintf(account, sizeof(account), "%s@%s", user, setup->host[0] ? "%" : "localhost");
	if (!by_password && !setup->host[0])
		how = mysql ? " IDENTIFIED WITH auth_socket" : " IDENTIFIED VIA unix_socket";
	if (code != ER_HOST_NOT_PRIVILEGED && by_password) {
		text_add(missing, "ALTER USER ");
		add_account(missing, account);
		text_addf(missing, "%s; or, if there is no such account, ", how);
	} else if (code != ER_HOST_NOT_PRIVILEGED && !setup->host[0] && !sql_is_own_user(user)) {
		/* No account made for the socket would let us in. */
		sql_say_run_as(setup, user, missing);
		text_addf(missing, "; or, if the account has a password, sql.%s.password_file",
			setup->name);
		return;
	} else if (code != ER_HOST_NOT_PRIVILEGED) {
		text_addf(missing, "sql.%s.password_file, if the account has a password; or, if there is "
				   "no such account, ", setup->name);
	}
	text_add(missing, "CREATE USER ");
	add_account(missing, account);
	text_addf(missing, "%s; GRANT PROCESS ON *.* TO ", how);
	add_account(missing, account);
}

static int fail_connect(
	struct sql_link *link, uint64_t begin_ns, struct text *error, struct text *missing)
{
	unsigned int code = link->lib.mysql_errno(link->mysql);
	uint64_t took_ns = clock_mono_ns() - begin_ns;

	text_add(error, link->lib.mysql_error(link->mysql));
	text_addf(error, " (%u)", code);
	disconnect(link);
	if (code == ER_ACCESS_DENIED_ERROR || code == ER_ACCESS_DENIED_NO_PASSWORD_ERROR ||
		code == ER_HOST_NOT_PRIVILEGED) {
		say_how_to_log_in(link, code, missing);
		return -EACCES;
	}
	/* It took the connection and said nothing, or it has closed it. */
	if (code == CR_SERVER_LOST && took_ns >= SQL_CONNECT_TIMEOUT_S * NSEC_PER_SEC)
		return -ETIMEDOUT;
	return -ECONNREFUSED;
}

/* --- what the server can say ------------------------------------------------------- */

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

/*
 * Threads beside SHOW PROCESSLIST, which has no column for them but needs no table: that of
 * PROCESSLIST is made in tmpdir, since it has a BLOB, and if tmpdir is on the disk that hangs it
 * hangs, too.
 */
static int make_threads_query(struct sql_link *link, bool *ret_has_tid, struct text *error)
{
	const char *query_id = "NULL", *time_us = "NULL";
	MYSQL_RES *result;
	int r = ask(link, "SELECT * FROM information_schema.PROCESSLIST LIMIT 0", &result, error);

	*ret_has_tid = false;
	link->threads_query[0] = '\0';
	/* A server without this table has no threads to tell. */
	if (r == -EIO)
		text_reset(error);
	if (r < 0)
		return r == -EIO ? 0 : r;
	for (unsigned int i = 0; i < link->lib.mysql_num_fields(result); i++) {
		const char *name = link->lib.mysql_fetch_field_direct(result, i)->name;

		if (strcmp(name, "TID") == 0)
			*ret_has_tid = true;
		else if (strcmp(name, "QUERY_ID") == 0)
			query_id = "QUERY_ID";
		else if (strcmp(name, "TIME_MS") == 0)
			time_us = "CAST(TIME_MS * 1000 AS UNSIGNED)";
	}
	link->lib.mysql_free_result(result);
	if (*ret_has_tid)
		snprintf(link->threads_query, sizeof(link->threads_query),
			"SELECT ID, TID, %s, %s FROM information_schema.PROCESSLIST ORDER BY ID",
			query_id, time_us);
	return 0;
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
	char cell[SQL_NAME_SIZE];
	bool schema_on, has_tid;
	int r = make_threads_query(link, &has_tid, error);

	if (r < 0)
		return r;
	ask_cell(link, "SELECT @@performance_schema", cell, sizeof(cell));
	schema_on = strcmp(cell, "1") == 0;
	/* A server without the column, or one whose kind is said to be MySQL. */
	link->by_threads =
		schema_on && (link->setup->type == SQL_TYPE_MYSQL || !has_tid) && has_threads(link);
	ask_cell(link, "SELECT @@thread_handling", cell, sizeof(cell));
	link->thread_pool = strcmp(cell, "pool-of-threads") == 0;
	ask_cell(link, "SELECT CURRENT_USER()", server->account, sizeof(server->account));
	sql_copy_cell(server->version, sizeof(server->version),
		link->lib.mysql_get_server_info(link->mysql));
	server->can_see_others = sees_others(link);
	server->has_tid = !link->thread_pool && (link->by_threads || has_tid);
	server->server_pid = sql_peer_pid((int)link->lib.mysql_get_socket(link->mysql));
	say_missing(server, schema_on && !link->by_threads && !has_tid);
	return link->pending_since_ns > 0 ? -ETIMEDOUT : 0;
}

static int connect_server(struct sql_link *link, const char *password,
	struct sql_frame_server *ret_server, struct text *error, struct text *missing)
{
	const struct sql_frame_setup *setup = link->setup;
	const char *socket_path = setup->socket[0] ? setup->socket : NULL;
	uint64_t begin_ns = clock_mono_ns();
	int r;

	link->mysql = link->lib.mysql_init(NULL);
	if (!link->mysql) {
		text_add(error, "no memory");
		return -ENOMEM;
	}
	set_options(link);
	if (!link->lib.mysql_real_connect(link->mysql, setup->host[0] ? setup->host : NULL,
		    sql_login_user(setup), password, NULL, setup->port, socket_path,
		    0))
		return fail_connect(link, begin_ns, error, missing);
	set_session(link);
	r = describe(link, ret_server, error);
	if (r < 0)
		disconnect(link);
	if (r == -ETIMEDOUT && error->len == 0)
		text_add(error, SQL_ERROR_SILENT);
	return r;
}

const struct sql_driver sql_driver_mariadb = {
	.name = "mariadb",
	.dialect = SQL_DIALECT_MYSQL,
	.library = "libmariadb.so.3",
	.package = "libmariadb3",
	.functions = functions,
	.link_size = sizeof(struct sql_link),
	.connect = connect_server,
	.snapshot = mariadb_snapshot,
	.disconnect = disconnect,
};

const struct sql_driver sql_driver_mysql = {
	.name = "mysql",
	.dialect = SQL_DIALECT_MYSQL,
	.library = "libmariadb.so.3",
	.package = "libmariadb3",
	.functions = functions,
	.link_size = sizeof(struct sql_link),
	.connect = connect_server,
	.snapshot = mariadb_snapshot,
	.disconnect = disconnect,
};
