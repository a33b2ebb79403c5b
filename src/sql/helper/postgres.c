/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The driver of PostgreSQL, through libpq: login and what the server can tell. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sql/helper/account.h"
#include "sql/helper/peer.h"
#include "sql/helper/postgres_names.h"
#include "sql/helper/postgres_sessions.h"
#include "util/cleanup.h"
#include "util/clock.h"

#define SERVER_USER "postgres"
#define VERSION_MIN 12U
/* Debian's; the library has another one where it was built for another system. */
#define USUAL_DIR "/run/postgresql"
/*
 * For all questions to a new session together. Its backend reads catalogs from the disk, which took
 * up to 8.3 s when the disk hung.
 */
#define DESCRIBE_TIMEOUT_NS (10 * NSEC_PER_SEC)

_Static_assert(offsetof(struct sql_link, setup) == 0, "sql_driver_load() sets it");

static const struct sql_function functions[] = {
#define F(function) { #function, offsetof(struct sql_link, lib.function) },
	POSTGRES_FUNCTIONS(F)
#undef F
		{ NULL, 0 },
};

static void disconnect(struct sql_link *link)
{
	if (link->pg)
		link->lib.PQfinish(link->pg);
	link->pg = NULL;
	link->pending_since_ns = link->locks_since_ns = 0;
}

/* Before a login: whether a password could go to who should not have it. 0 or -EPERM. */
static int check_security(const struct sql_link *link, bool has_password,
	char ret_server_user[static SQL_NAME_SIZE], struct text *error, struct text *missing)
{
	const struct sql_frame_setup *setup = link->setup;
	char dir[SQL_PATH_SIZE], port[16] = "5432", path[2 * SQL_PATH_SIZE];

	ret_server_user[0] = '\0';
	if (!postgres_is_network(setup)) {
		if (setup->port > 0)
			snprintf(port, sizeof(port), "%u", setup->port);
		postgres_split_socket(setup->socket[0] ? setup->socket : USUAL_DIR, dir,
			sizeof(dir), port, sizeof(port));
		snprintf(path, sizeof(path), "%s/.s.PGSQL.%s", dir, port);
		return peer_check_socket(setup, path, SERVER_USER, ret_server_user, error, missing);
	}
	if (setup->tls || !(has_password || setup->option_file[0]) ||
		postgres_has_require_auth(link))
		return 0;
	text_add(error,
		"without TLS the server could ask for the password in clear text, which "
		"libpq before 16 cannot refuse");
	text_addf(missing, "set sql.%s.tls = verify, or use the server's socket", setup->name);
	return -EPERM;
}

static const char *role(const struct sql_link *link)
{
	return sql_login_user(link->setup);
}

/* Appends a name as SQL needs it, with quotes where necessary. */
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

static bool is_state(const char *message, const char *begin)
{
	return strncmp(postgres_state(message), begin, strlen(begin)) == 0;
}

/*
 * What to do depends on the method: peer compares the names of user and role; after a wrong
 * password the server does not tell whether the role exists.
 */
static void say_how_to_log_in(struct sql_link *link, const char *message, bool needs_password,
	struct text *missing)
{
	const struct sql_frame_setup *setup = link->setup;

	if (sql_say_option_file(setup, missing))
		return;
	if (needs_password) {
		text_addf(missing, "set sql.%s.password_file; and, if there is no such role, ",
			setup->name);
		say_how_to_create(link, true, missing);
	} else if (is_state(message, "28P01")) {
		text_add(missing, "ALTER ROLE ");
		add_name(missing, role(link));
		text_add(missing, " PASSWORD 'PASSWORD'; or, if there is no such role, ");
		say_how_to_create(link, true, missing);
	} else if (strstr(message, "does not exist")) {
		say_how_to_create(link, setup->password_file[0], missing);
	} else if (strstr(message, "Peer authentication failed") && !sql_is_own_user(role(link))) {
		sql_say_run_as(setup, role(link), missing);
		text_add(missing, "; or add a line for ");
		add_name(missing, role(link));
		text_addf(missing, " without peer to pg_hba.conf, and set sql.%s.password_file",
			setup->name);
	} else {
		text_add(missing, "add a line for ");
		add_name(missing, role(link));
		text_add(missing, " to pg_hba.conf that lets it in");
	}
}

/* `r`: of postgres_open(). */
static int fail_connect(struct sql_link *link, int r, struct text *error, struct text *missing)
{
	const char *message = link->lib.PQerrorMessage(link->pg);
	bool needs_password = link->lib.PQconnectionNeedsPassword(link->pg);
	bool refused = needs_password || is_state(message, "28");
	/* It is starting, stopping or recovering, or has just been told to stop. */
	bool is_changing = is_state(message, "57P0");

	postgres_add_message(error, r == -ETIMEDOUT ? "timeout expired" : message);
	if (link->setup->tls && postgres_is_network(link->setup) && !refused &&
		(strstr(message, "SSL") || strstr(message, "certificate")))
		text_addf(missing,
			"give the server a certificate for its name and set sql.%s.tls_ca to the "
			"issuer, or set sql.%s.tls = off",
			link->setup->name, link->setup->name);
	else if (r != -ETIMEDOUT && refused)
		say_how_to_log_in(link, message, needs_password, missing);
	disconnect(link);
	if (r != -ECONNREFUSED)
		return r;
	if (is_changing)
		return -EAGAIN;
	return refused ? -EACCES : r;
}

static int set_session(struct sql_link *link, struct text *error)
{
	const char *encoding = link->lib.PQparameterStatus(link->pg, "server_encoding");
	char statement[224];

	/* A database without an encoding has texts in all of them, which are in ours by chance. */
	snprintf(statement, sizeof(statement),
		"SET statement_timeout = %d; SET lock_timeout = %d; SET jit = off; "
		"SET default_transaction_read_only = on%s",
		SQL_STATEMENT_TIMEOUT_MS, SQL_STATEMENT_TIMEOUT_MS,
		encoding && strcmp(encoding, "SQL_ASCII") == 0 ? "; SET client_encoding = SQL_ASCII"
							       : "");
	return postgres_ask(link, statement, NULL, error);
}

/* Asks the catalog which columns the server has, and which role we have. */
static const char about_query[] =
	"SELECT session_user, pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'), "
	"bool_or(attname = 'leader_pid'), bool_or(attname = 'query_id'), "
	"(SELECT bool_or(attname = 'waitstart') FROM pg_attribute "
	"WHERE attrelid = 'pg_catalog.pg_locks'::regclass AND attnum > 0), "
	"has_table_privilege(to_regclass('pg_catalog.pg_aios'), 'SELECT'), "
	/* Its unit is the byte; current_setting() adds one that pg_size_bytes() may not know. */
	"(SELECT setting FROM pg_settings WHERE name = 'track_activity_query_size'), "
	"concat_ws('|', extract(epoch FROM pg_postmaster_start_time()), "
	"current_setting('port')) FROM pg_attribute "
	"WHERE attrelid = 'pg_catalog.pg_stat_activity'::regclass AND attnum > 0";

/* The questions have words that are younger. */
static int check_version(const struct sql_link *link, struct text *error)
{
	const char *version = link->lib.PQparameterStatus(link->pg, "server_version");

	if (!version || strtoul(version, NULL, 10) >= VERSION_MIN)
		return 0;
	text_addf(error, "this is PostgreSQL %s; expected %u or later", version, VERSION_MIN);
	return -EOPNOTSUPP;
}

static int describe(struct sql_link *link, struct sql_frame_server *server, struct text *error)
{
	struct text missing = TEXT_ON(server->missing);
	struct postgres_columns has;
	PGresult *result;
	const char *value;
	int r = postgres_ask(link, about_query, &result, error);

	if (r < 0)
		return r;
	sql_copy_cell(server->account, sizeof(server->account), postgres_cell(link, result, 0, 0));
	server->can_see_others = postgres_is_true(postgres_cell(link, result, 0, 1));
	has.leader = postgres_is_true(postgres_cell(link, result, 0, 2));
	has.query_id = postgres_is_true(postgres_cell(link, result, 0, 3));
	has.wait_start = postgres_is_true(postgres_cell(link, result, 0, 4));
	has.aios = postgres_is_true(postgres_cell(link, result, 0, 5));
	has.text_bytes = sql_cell_u64(postgres_cell(link, result, 0, 6));
	value = postgres_cell(link, result, 0, 7);
	server->identity = sql_make_identity(value ? value : "");
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
	return postgres_prepare_snapshot(link, &has, error);
}

static int connect_server(struct sql_link *link, const char *password,
	struct sql_frame_server *ret_server, struct text *error, struct text *missing)
{
	int r = check_security(link, password != NULL, link->server_user, error, missing);

	if (r < 0)
		return r;
	r = postgres_open(link, password, NULL, SQL_CONNECT_TIMEOUT_S * NSEC_PER_SEC);
	if (r < 0 && !link->pg)
		return r;
	if (r < 0)
		return fail_connect(link, r, error, missing);
	/* requirepeer has checked this, where the socket could be found before the login. */
	r = postgres_is_network(link->setup)
		? 0
		: peer_check_connection(link->setup, link->lib.PQsocket(link->pg), SERVER_USER,
			  error, missing);
	if (r < 0) {
		disconnect(link);
		return r;
	}
	link->describe_until_ns = clock_mono_ns() + DESCRIBE_TIMEOUT_NS;
	if ((r = check_version(link, error)) < 0 || (r = set_session(link, error)) < 0 ||
		(r = describe(link, ret_server, error)) < 0 ||
		((r = postgres_rehearse_snapshot(link, error)) < 0 && r != -ETIMEDOUT &&
			r != -EILSEQ)) {
		disconnect(link);
		return r;
	}
	text_reset(error);
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
	.snapshot = postgres_snapshot,
	.name_files = postgres_name_files,
	.disconnect = disconnect,
};
