/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The driver of MariaDB and MySQL, through libmariadb: login and what the server can tell. */
#include <errmsg.h>
#include <errno.h>
#include <mysqld_error.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sql/helper/account.h"
#include "sql/helper/kind.h"
#include "sql/helper/mariadb_locks.h"
#include "sql/helper/mariadb_sessions.h"
#include "sql/helper/peer.h"
#include "util/cleanup.h"
#include "util/clock.h"

#define SERVER_USER "mysql"
/* Debian's; the library has another one where it was built for another system. */
#define USUAL_SOCKET "/run/mysqld/mysqld.sock"
/* The library has SQL_CONNECT_TIMEOUT_S for each step: to connect, be greeted, and two answers. */
#define LOGIN_TIMES 4
/* With name servers that do not answer, and several addresses. */
#define NETWORK_LOGIN_S 120

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
	link->connections_allowed = link->allowed_asked_ns = 0;
	/* Of another server the same numbers are other sessions. */
	link->global_id = link->global_waiter_id = 0;
	if (!link->threads_stay)
		mariadb_forget_threads(link);
	link->threads_stay = false;
}

/* --- questions --------------------------------------------------------------------- */

/* Asks a question during the login, within the time that a login may take. */
static int ask(struct sql_link *link, const char *query, MYSQL_RES **ret_result, struct text *error)
{
	if (link->pending_since_ns > 0)
		return -ETIMEDOUT;
	return mariadb_ask(link, query, 1, SQL_CONNECT_TIMEOUT_S * 1000, ret_result, error);
}

/* The first cell of the answer; "" for NULL, and for a question that this server does not know. */
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

/*
 * A server chooses the method of the login. These send no password, and none to who can decrypt it.
 */
#define SAFE_METHODS "mysql_native_password,client_ed25519,auth_gssapi_client,parsec"
/* MySQL's usual method sends the password itself to a server at a local socket. */
#define SAFE_LOCAL_METHODS SAFE_METHODS ",caching_sha2_password"

static void set_security(struct sql_link *link)
{
	const struct sql_frame_setup *setup = link->setup;
	struct mariadb_functions *lib = &link->lib;
	const my_bool yes = 1, no = 0;

	if (!setup->host[0]) {
		lib->mysql_optionsv(link->mysql, MARIADB_OPT_RESTRICTED_AUTH, SAFE_LOCAL_METHODS);
		return;
	}
	if (!setup->tls) {
		lib->mysql_optionsv(link->mysql, MARIADB_OPT_RESTRICTED_AUTH, SAFE_METHODS);
		/* Since Connector/C 3.4 the default is to verify, which asks for TLS. */
		lib->mysql_optionsv(link->mysql, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &no);
		return;
	}
	lib->mysql_optionsv(link->mysql, MYSQL_OPT_SSL_ENFORCE, &yes);
	lib->mysql_optionsv(link->mysql, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &yes);
	lib->mysql_optionsv(link->mysql, MYSQL_OPT_SSL_CA, setup->tls_ca);
}

static void set_options(struct sql_link *link)
{
	const struct sql_frame_setup *setup = link->setup;
	const unsigned int timeout_s = SQL_CONNECT_TIMEOUT_S, no = 0;
	const size_t row_bytes_max = MARIADB_ROW_BYTES_MAX;
	/*
	 * How long an answer may stop in the middle, where only the library looks at the clock.
	 * There is no limit for a local server: while it hangs it still has our session, and a new
	 * login would be a second one. If it dies, its socket tells.
	 */
	const unsigned int patience_s = setup->host[0] ? SQL_NETWORK_TIMEOUT_S : 0;
	const unsigned int protocol = setup->host[0] ? MYSQL_PROTOCOL_TCP : MYSQL_PROTOCOL_SOCKET;
	struct mariadb_functions *lib = &link->lib;

	lib->mysql_optionsv(link->mysql, MYSQL_OPT_CONNECT_TIMEOUT, &timeout_s);
	lib->mysql_optionsv(link->mysql, MYSQL_OPT_READ_TIMEOUT, &patience_s);
	lib->mysql_optionsv(link->mysql, MYSQL_OPT_WRITE_TIMEOUT, &timeout_s);
	lib->mysql_optionsv(link->mysql, MYSQL_OPT_LOCAL_INFILE, &no);
	lib->mysql_optionsv(link->mysql, MYSQL_OPT_MAX_ALLOWED_PACKET, &row_bytes_max);
	lib->mysql_optionsv(link->mysql, MYSQL_SET_CHARSET_NAME, "utf8mb4");
	lib->mysql_optionsv(link->mysql, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", "iostall");
	if (setup->option_file[0]) {
		lib->mysql_optionsv(link->mysql, MYSQL_READ_DEFAULT_FILE, setup->option_file);
		lib->mysql_optionsv(link->mysql, MYSQL_READ_DEFAULT_GROUP, "iostall");
	}
	lib->mysql_optionsv(link->mysql, MYSQL_OPT_PROTOCOL, &protocol);
	set_security(link);
}

static void set_session(struct sql_link *link)
{
	char statement[96];

	/*
	 * The first is for MariaDB, the second for MySQL; a server refuses the one it does not
	 * know.
	 */
	snprintf(statement, sizeof(statement), "SET SESSION max_statement_time = %d",
		SQL_STATEMENT_TIMEOUT_MS / 1000);
	tell(link, statement);
	snprintf(statement, sizeof(statement), "SET SESSION max_execution_time = %d",
		SQL_STATEMENT_TIMEOUT_MS);
	tell(link, statement);
	tell(link, "SET SESSION lock_wait_timeout = 1");
	/* Longer than the longest time between two questions. */
	tell(link, "SET SESSION wait_timeout = 3600");
	tell(link, "SET SESSION sql_mode = ''");
	/* InnoDB tells times in the zone of the system, and NOW() those in that of the session. */
	tell(link, "SET SESSION time_zone = 'SYSTEM'");
}

/* Appends 'user'@'host', as GRANT needs it, from user@host. */
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

/* The server does not tell whether the account is missing or the password is wrong. */
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
		/* An account that is identified by the socket would not let this user in. */
		sql_say_run_as(setup, user, missing);
		text_addf(missing, "; or, if the account has a password, set sql.%s.password_file",
			setup->name);
		return;
	} else if (code != ER_HOST_NOT_PRIVILEGED) {
		text_addf(missing,
			"set sql.%s.password_file, if the account has a password; or, if there is "
			"no such account, ",
			setup->name);
	}
	text_add(missing, "CREATE USER ");
	add_account(missing, account);
	text_addf(missing, "%s; GRANT PROCESS ON *.* TO ", how);
	add_account(missing, account);
}

static int fail_connect(struct sql_link *link, uint64_t begin_ns, struct text *error,
	struct text *missing)
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
	if (code == CR_SSL_CONNECTION_ERROR && link->setup->host[0] && link->setup->tls)
		text_addf(missing,
			"give the server a certificate for its name and set sql.%s.tls_ca to the "
			"issuer, or set sql.%s.tls = off",
			link->setup->name, link->setup->name);
	/* After this time the server was silent; sooner, it closed the connection. */
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
	/* Includes active roles. The lines are not kept: one may have the hash of a password. */
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
 * Builds the question for threads. SHOW PROCESSLIST does not have them. The table PROCESSLIST does,
 * but the server builds it in tmpdir because it has a BLOB, so it hangs if tmpdir is on the disk
 * that hangs. That is why threads are a question of their own.
 */
static int make_threads_query(struct sql_link *link, bool *ret_has_tid, struct text *error)
{
	const char *query_id = "NULL", *time_us = "NULL";
	MYSQL_RES *result;
	int r = ask(link, "SELECT * FROM information_schema.PROCESSLIST LIMIT 0", &result, error);

	*ret_has_tid = false;
	link->threads_query[0] = '\0';
	/* A server without this table cannot tell threads. */
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

/* Whether the table of threads of MySQL exists and may be read. */
static bool has_threads(struct sql_link *link)
{
	char cell[SQL_NAME_SIZE];

	ask_cell(link,
		"SELECT THREAD_OS_ID FROM performance_schema.threads WHERE "
		"PROCESSLIST_ID = CONNECTION_ID()",
		cell, sizeof(cell));
	return sql_cell_u64(cell) > 0;
}

/* All have these variables. Two servers of one host differ in port, socket or directory. */
static uint64_t find_identity(struct sql_link *link)
{
	char text[1024];

	ask_cell(link,
		"SELECT CONCAT_WS('|', @@hostname, @@port, @@socket, @@datadir, @@pid_file, "
		"@@server_id)",
		text, sizeof(text));
	return sql_make_identity(text);
}

static bool can_ask(struct sql_link *link, const char *query)
{
	char ignored_buf[SQL_ERROR_SIZE];
	struct text ignored = TEXT_ON(ignored_buf);
	MYSQL_RES *result;

	text_reset(&ignored);
	if (ask(link, query, &result, &ignored) < 0)
		return false;
	while (link->lib.mysql_fetch_row(result))
		;
	link->lib.mysql_free_result(result);
	return true;
}

static void say_missing(struct sql_frame_server *server, bool schema_denied)
{
	struct text missing = TEXT_ON(server->missing);

	text_reset(&missing);
	if (!server->can_see_others) {
		text_add(&missing, "GRANT PROCESS ON *.* TO ");
		add_account(&missing, server->account);
	}
	if (schema_denied) {
		text_addf(&missing, "%sGRANT SELECT ON performance_schema.* TO ",
			missing.len ? "; " : "");
		add_account(&missing, server->account);
	}
}

static int describe(struct sql_link *link, struct sql_frame_server *server, struct text *error)
{
	char cell[SQL_NAME_SIZE];
	bool schema_on, has_tid = link->threads_query[0] != '\0';
	int r = clock_mono_ns() < link->threads_after_ns
		? 0
		: make_threads_query(link, &has_tid, error);

	if (r < 0)
		return r;
	ask_cell(link, "SELECT @@performance_schema", cell, sizeof(cell));
	schema_on = strcmp(cell, "1") == 0;
	/* For a server without the column TID, or one that is configured as MySQL. */
	link->by_threads =
		schema_on && (link->setup->type == SQL_TYPE_MYSQL || !has_tid) && has_threads(link);
	/* The pools have many names: "pool-of-threads", "dynamically-loaded". */
	ask_cell(link, "SELECT @@thread_handling", cell, sizeof(cell));
	link->thread_pool = *cell && strcmp(cell, "one-thread-per-connection") != 0 &&
		strcmp(cell, "no-threads") != 0;
	ask_cell(link, "SELECT CURRENT_USER()", server->account, sizeof(server->account));
	sql_copy_cell(server->version, sizeof(server->version),
		link->lib.mysql_get_server_info(link->mysql));
	link->version = link->lib.mysql_get_server_version(link->mysql);
	server->can_see_others = sees_others(link);
	server->has_tid = !link->thread_pool && (link->by_threads || has_tid);
	server->server_pid = sql_peer_pid((int)link->lib.mysql_get_socket(link->mysql));
	server->identity = find_identity(link);
	mariadb_choose_lock_queries(link, can_ask);
	/* Where the list of sessions has no threads, the schema has them, and the locks, too. */
	say_missing(server,
		schema_on && !has_tid &&
			(!link->by_threads || !link->row_locks_query ||
				!link->metadata_locks_query));
	return link->pending_since_ns > 0 ? -ETIMEDOUT : 0;
}

/*
 * The library would try again at once, and for ever, where a server that is stopped has as many
 * connections that wait as the kernel keeps for it.
 */
static int check_backlog(const char *path, struct text *error)
{
	if (sql_try_socket(path) != -EAGAIN)
		return 0;
	text_add(error, "the server accepts no connections, and no more of them can wait for it");
	return -EAGAIN;
}

/* Where that begins only now, or at a socket of an option file, this process ends. */
static MYSQL *log_in(struct sql_link *link, const char *password)
{
	const struct sql_frame_setup *setup = link->setup;
	MYSQL *mysql;

	alarm(setup->host[0] ? NETWORK_LOGIN_S : LOGIN_TIMES * SQL_CONNECT_TIMEOUT_S);
	mysql = link->lib.mysql_real_connect(link->mysql, setup->host[0] ? setup->host : NULL,
		sql_login_user(setup), password, NULL, setup->port,
		setup->socket[0] ? setup->socket : NULL, 0);
	alarm(0);
	return mysql;
}

static int connect_server(struct sql_link *link, const char *password,
	struct sql_frame_server *ret_server, struct text *error, struct text *missing)
{
	const struct sql_frame_setup *setup = link->setup;
	const char *path = setup->socket[0] ? setup->socket : USUAL_SOCKET;
	uint64_t begin_ns = clock_mono_ns();
	char ignored[SQL_NAME_SIZE];
	int r = 0;

	if (!setup->host[0])
		r = peer_check_socket(setup, path, SERVER_USER, ignored, error, missing);
	if (r == 0 && !setup->host[0])
		r = check_backlog(path, error);
	if (r < 0)
		return r;
	link->mysql = link->lib.mysql_init(NULL);
	if (!link->mysql) {
		text_add(error, "no memory");
		return -ENOMEM;
	}
	set_options(link);
	if (!log_in(link, password))
		return fail_connect(link, begin_ns, error, missing);
	r = peer_check_connection(setup, (int)link->lib.mysql_get_socket(link->mysql), SERVER_USER,
		error, missing);
	if (r == 0) {
		set_session(link);
		r = describe(link, ret_server, error);
	}
	if (r < 0)
		disconnect(link);
	if (r == -ETIMEDOUT && error->len == 0)
		text_add(error, SQL_ERROR_UNRESPONSIVE);
	return r;
}

/* One library speaks to both; they differ in what the server then says of itself. */
#define DRIVER(server)                                                                             \
	const struct sql_driver sql_driver_##server = {                                            \
		.name = #server,                                                                   \
		.dialect = SQL_DIALECT_MYSQL,                                                      \
		.library = "libmariadb.so.3",                                                      \
		.package = "libmariadb3",                                                          \
		.functions = functions,                                                            \
		.link_size = sizeof(struct sql_link),                                              \
		.connect = connect_server,                                                         \
		.snapshot = mariadb_snapshot,                                                      \
		.disconnect = disconnect,                                                          \
	}

DRIVER(mariadb);
DRIVER(mysql);
