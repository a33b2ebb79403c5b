/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Questions to a PostgreSQL server over its one session, each with a limit of time. */
#include "sql/helper/postgres_link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "sql/helper/account.h"
#include "util/clock.h"

void postgres_split_socket(const char *socket, char *dir, size_t dir_size, char *port,
	size_t port_size)
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

/* Since then the library can be told which methods of a login to refuse. */
#define LIBPQ_REQUIRE_AUTH 160000

bool postgres_is_network(const struct sql_frame_setup *setup)
{
	return setup->host[0] || (setup->option_file[0] && !setup->socket[0]);
}

bool postgres_has_require_auth(const struct sql_link *link)
{
	return link->lib.PQlibVersion() >= LIBPQ_REQUIRE_AUTH;
}

static void ignore_notice(void *userdata, const char *message)
{
	(void)userdata;
	(void)message;
}

void postgres_ignore_notices(struct sql_link *link)
{
	link->lib.PQsetNoticeProcessor(link->pg, ignore_notice, NULL);
}

/* What postgres.c sets in the other session. */
#define VISIT_OPTIONS                                                                              \
	"-c statement_timeout=1000 -c lock_timeout=1000 -c jit=off "                               \
	"-c default_transaction_read_only=on"

/* A service file may name it. */
static const char *first_database(const struct sql_frame_setup *setup)
{
	return setup->database[0] || setup->option_file[0] ? setup->database : "postgres";
}

/* Addresses of a host, or hosts of a service file, that do not answer. */
#define SKIPPED_MAX 3

static PGconn *begin_login(struct sql_link *link, const char *password, const char *database)
{
	const struct sql_frame_setup *setup = link->setup;
	char host[SQL_PATH_SIZE], port[16] = "", network_timeout[16];
	const char *keys[24], *values[24];
	unsigned int n = 0;

	text_copy(host, sizeof(host), setup->host);
	if (setup->port > 0)
		snprintf(port, sizeof(port), "%u", setup->port);
	if (setup->socket[0])
		postgres_split_socket(setup->socket, host, sizeof(host), port, sizeof(port));
	snprintf(network_timeout, sizeof(network_timeout), "%d", SQL_NETWORK_TIMEOUT_S * 1000);
#define ADD(key, value)                                                                            \
	do {                                                                                       \
		keys[n] = (key);                                                                   \
		values[n++] = (value);                                                             \
	} while (0)
	/* libpq ignores empty values. */
	ADD("host", host);
	ADD("port", port);
	ADD("user", sql_login_user(setup));
	ADD("dbname", database ? database : first_database(setup));
	ADD("password", password);
	ADD("service", setup->option_file[0] ? "iostall" : "");
	ADD("tcp_user_timeout", network_timeout);
	ADD("keepalives_idle", "30");
	ADD("application_name", "iostall");
	ADD("options", database ? VISIT_OPTIONS : "");
	ADD("client_encoding", "UTF8");
	ADD("gssencmode", "disable");
	/* The library ignores this for other sockets, and the next three for this one. */
	ADD("requirepeer", link->server_user);
	ADD("sslmode", setup->tls ? "verify-full" : "disable");
	ADD("sslrootcert", setup->tls ? setup->tls_ca : "");
	if (postgres_is_network(setup) && !setup->tls && postgres_has_require_auth(link))
		ADD("require_auth", "scram-sha-256,md5,gss,none");
#undef ADD
	keys[n] = values[n] = NULL;
	if (setup->option_file[0])
		setenv("PGSERVICEFILE", setup->option_file, 1);
	return link->lib.PQconnectStartParams(keys, values, 0);
}

/* The library goes on to the next address of a host as if this one had refused. */
static bool skip_address(struct sql_link *link, unsigned int *skipped)
{
	if (!postgres_is_network(link->setup) ||
		link->lib.PQstatus(link->pg) != CONNECTION_STARTED || ++*skipped > SKIPPED_MAX)
		return false;
	return shutdown(link->lib.PQsocket(link->pg), SHUT_RDWR) == 0;
}

int postgres_open(struct sql_link *link, const char *password, const char *database,
	uint64_t timeout_ns)
{
	PostgresPollingStatusType status = PGRES_POLLING_WRITING;
	uint64_t deadline_ns = clock_mono_ns() + timeout_ns;
	unsigned int skipped = 0;
	bool answered = false; /* by the last address */
	int r;

	link->pg = begin_login(link, password, database);
	if (!link->pg)
		return -ENOMEM;
	postgres_ignore_notices(link);
	/* The library has no other way to tell the code of an error during the login. */
	link->lib.PQsetErrorVerbosity(link->pg, PQERRORS_VERBOSE);
	while (status != PGRES_POLLING_OK) {
		if (status == PGRES_POLLING_FAILED ||
			link->lib.PQstatus(link->pg) == CONNECTION_BAD)
			return skipped && !answered ? -ETIMEDOUT : -ECONNREFUSED;
		r = postgres_wait(link, status == PGRES_POLLING_READING ? POLLIN : POLLOUT,
			deadline_ns);
		if (r == -ETIMEDOUT && skip_address(link, &skipped))
			deadline_ns = clock_mono_ns() + timeout_ns;
		else if (r < 0)
			return r;
		answered = link->lib.PQstatus(link->pg) != CONNECTION_STARTED;
		status = link->lib.PQconnectPoll(link->pg);
	}
	link->lib.PQsetErrorVerbosity(link->pg, PQERRORS_DEFAULT);
	return 0;
}

#define STATE_LEN 5

/* In "...: FATAL:  28P01: password ...". */
const char *postgres_state(const char *message)
{
	const char *p = message;

	while ((p = strstr(p, ":  "))) {
		p += strlen(":  ");
		if (strspn(p, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == STATE_LEN &&
			p[STATE_LEN] == ':' && p[STATE_LEN + 1] == ' ')
			return p;
	}
	return "";
}

void postgres_add_message(struct text *error, const char *message)
{
	const char *state = postgres_state(message);
	const char *place = *state ? strstr(state, "\nLOCATION:") : NULL;

	for (size_t i = 0; message[i] && &message[i] != place; i++) {
		if (*state && &message[i] == state)
			i += STATE_LEN + strlen(": ");
		if (message[i] == '\n' && message[i + 1])
			text_add(error, "; ");
		else if (message[i] != '\n' && message[i] != '\t')
			text_add_bytes(error, &message[i], 1);
	}
}

/* Text that its encoding does not have, or that ours does not have. */
static bool is_encoding_error(struct sql_link *link, PGresult *result)
{
	const char *state = link->lib.PQresultErrorField(result, PG_DIAG_SQLSTATE);

	return state && (strcmp(state, "22021") == 0 || strcmp(state, "22P05") == 0);
}

/* Checks the result, and frees it unless it is returned. */
static int check(struct sql_link *link, PGresult *result, PGresult **ret_result, struct text *error)
{
	ExecStatusType status = link->lib.PQresultStatus(result);
	int r;

	if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
		if (ret_result)
			*ret_result = result;
		else
			link->lib.PQclear(result);
		return 0;
	}
	postgres_add_message(error, link->lib.PQerrorMessage(link->pg));
	r = is_encoding_error(link, result) ? -EILSEQ : -EIO;
	link->lib.PQclear(result);
	return link->lib.PQstatus(link->pg) == CONNECTION_OK ? r : -ENOTCONN;
}

static const struct postgres_taker nobody;

int postgres_wait(struct sql_link *link, short events, uint64_t deadline_ns)
{
	struct pollfd fds[] = {
		{ .fd = link->lib.PQsocket(link->pg), .events = events },
		{ .fd = link->stop_fd ? *link->stop_fd : -1, .events = POLLIN },
	};
	uint64_t now_ns = clock_mono_ns();
	int left_ms = now_ns < deadline_ns ? (int)((deadline_ns - now_ns) / NSEC_PER_MSEC) : 0;
	int n = poll(fds, sizeof(fds) / sizeof(fds[0]), left_ms);

	if (n == 0)
		return -ETIMEDOUT;
	return n > 0 && fds[1].revents ? -ECANCELED : 0;
}

static int wait_for_result(struct sql_link *link, uint64_t deadline_ns)
{
	while (link->lib.PQisBusy(link->pg)) {
		int r = postgres_wait(link, POLLIN, deadline_ns);

		if (r < 0)
			return r;
		if (!link->lib.PQconsumeInput(link->pg))
			return -ENOTCONN;
	}
	return 0;
}

/* No question asks for more. */
#define ROWS_MAX SQL_RELATIONS_MAX

/*
 * Takes a result and frees the one before. False: the server sends more rows than it was asked for,
 * and may never end.
 */
static bool take_result(struct sql_link *link, PGresult *next, unsigned int *rows,
	const struct postgres_taker *taker, PGresult **result)
{
	link->lib.PQclear(*result);
	*result = next;
	if (link->lib.PQresultStatus(next) != PGRES_SINGLE_TUPLE)
		return true;
	if (++*rows > ROWS_MAX)
		return false;
	if (taker->take)
		taker->take(link, next, taker->userdata);
	return true;
}

/*
 * Waits for the answer that is pending, of which the last result counts. A server that says nothing
 * keeps our session, a new one would be a second: -ETIMEDOUT, and nothing else is asked before the
 * answer has come.
 */
static int finish(struct sql_link *link, uint64_t deadline_ns, const struct postgres_taker *taker,
	struct text *error)
{
	PGresult *result = NULL, *next;
	unsigned int rows = 0;
	int r;

	while ((r = wait_for_result(link, deadline_ns)) == 0 &&
		(next = link->lib.PQgetResult(link->pg))) {
		if (take_result(link, next, &rows, taker, &result))
			continue;
		link->lib.PQclear(result);
		link->pending_since_ns = 0;
		text_addf(error, "the server sent more than %d rows", ROWS_MAX);
		return -ENOTCONN;
	}
	if (r == -ETIMEDOUT || r == -ECANCELED) {
		link->lib.PQclear(result);
		text_addf(error, SQL_ERROR_UNRESPONSIVE " for %.1f s",
			(double)(clock_mono_ns() - link->pending_since_ns) / NSEC_PER_SEC);
		return r;
	}
	link->pending_since_ns = 0;
	if (r == 0)
		return check(link, result, taker->ret_result, error);
	link->lib.PQclear(result);
	postgres_add_message(error, link->lib.PQerrorMessage(link->pg));
	return r;
}

/* `sent`: the result of the function of libpq that sent the question. */
static int finish_sent(struct sql_link *link, int sent, uint64_t deadline_ns,
	const struct postgres_taker *taker, struct text *error)
{
	if (!sent) {
		postgres_add_message(error, link->lib.PQerrorMessage(link->pg));
		return link->lib.PQstatus(link->pg) == CONNECTION_OK ? -EIO : -ENOTCONN;
	}
	link->pending_since_ns = clock_mono_ns();
	return finish(link, deadline_ns, taker, error);
}

int postgres_ask(struct sql_link *link, const char *query, PGresult **ret_result,
	struct text *error)
{
	const struct postgres_taker taker = { .ret_result = ret_result };

	return finish_sent(link, link->lib.PQsendQuery(link->pg, query), link->describe_until_ns,
		&taker, error);
}

const char *postgres_cell(struct sql_link *link, PGresult *result, int row, int column)
{
	if (link->lib.PQntuples(result) <= row || link->lib.PQnfields(result) <= column ||
		link->lib.PQgetisnull(result, row, column))
		return NULL;
	return link->lib.PQgetvalue(result, row, column);
}

bool postgres_is_true(const char *cell)
{
	return cell && cell[0] == 't';
}

int postgres_prepare(struct sql_link *link, const char *name, const char *query, struct text *error)
{
	return finish_sent(link, link->lib.PQsendPrepare(link->pg, name, query, 0, NULL),
		link->describe_until_ns, &nobody, error);
}

int postgres_finish_last(struct sql_link *link, uint64_t deadline_ns, struct text *error)
{
	int r = link->pending_since_ns > 0 ? finish(link, deadline_ns, &nobody, error) : 0;

	if (r == -ENOTCONN || r == -ETIMEDOUT)
		return r;
	text_reset(error);
	return 0;
}

int postgres_ask_prepared(struct sql_link *link, const char *name, uint64_t deadline_ns,
	const struct postgres_taker *taker, struct text *error)
{
	int sent = link->lib.PQsendQueryPrepared(link->pg, name, 0, NULL, NULL, NULL, 0) &&
		link->lib.PQsetSingleRowMode(link->pg);

	return finish_sent(link, sent, deadline_ns, taker, error);
}

int postgres_ask_rows(struct sql_link *link, const char *query, uint64_t deadline_ns,
	const struct postgres_taker *taker, struct text *error)
{
	int sent = link->lib.PQsendQuery(link->pg, query) && link->lib.PQsetSingleRowMode(link->pg);

	return finish_sent(link, sent, deadline_ns, taker, error);
}
