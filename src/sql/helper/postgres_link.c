/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Questions to a PostgreSQL server over its one session, each with a limit of time. */
#include "sql/helper/postgres_link.h"

#include <errno.h>
#include <poll.h>

#include "util/clock.h"

void postgres_add_message(struct text *error, const char *message)
{
	for (size_t i = 0; message[i]; i++) {
		if (message[i] == '\n' && message[i + 1])
			text_add(error, "; ");
		else if (message[i] != '\n' && message[i] != '\t')
			text_add_bytes(error, &message[i], 1);
	}
}

/* Checks the result, and frees it unless it is returned. */
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
	postgres_add_message(error, link->lib.PQerrorMessage(link->pg));
	link->lib.PQclear(result);
	return link->lib.PQstatus(link->pg) == CONNECTION_OK ? -EIO : -ENOTCONN;
}

static const struct postgres_taker nobody;

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

/* Rows of an answer, with the one that has counts only. */
#define ROWS_MAX (SQL_SESSIONS_MAX + 1)

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
	if (r == -ETIMEDOUT) {
		link->lib.PQclear(result);
		text_addf(error, SQL_ERROR_UNRESPONSIVE " for %.1f s",
			(double)(clock_mono_ns() - link->pending_since_ns) / NSEC_PER_SEC);
		return r;
	}
	link->pending_since_ns = 0;
	/* The error may have ended the session. */
	if (check(link, result, taker->ret_result, error) == 0)
		return 0;
	return link->lib.PQstatus(link->pg) == CONNECTION_OK && r == 0 ? -EIO : -ENOTCONN;
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
