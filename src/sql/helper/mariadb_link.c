/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Questions to a MariaDB or MySQL server over its one session, each with a limit of time. */
#include "sql/helper/mariadb_link.h"

#include <errmsg.h>
#include <errno.h>
#include <mysqld_error.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "util/clock.h"

/* Reports the error of the library; -ENOTCONN: it ended the session. */
static int fail(struct sql_link *link, struct text *error)
{
	unsigned int code = link->lib.mysql_errno(link->mysql);

	text_addf(error, "%s (%u)", link->lib.mysql_error(link->mysql), code);
	if ((code >= CR_MIN_ERROR && code <= CR_MAX_ERROR) || code == ER_CONNECTION_KILLED)
		return -ENOTCONN;
	return -EIO;
}

/* Reads the answer, which has arrived. */
static int read_answer(struct sql_link *link, MYSQL_RES **ret_result, struct text *error)
{
	link->pending_since_ns = 0;
	if (link->lib.mysql_read_query_result(link->mysql) != 0)
		return fail(link, error);
	*ret_result = link->lib.mysql_use_result(link->mysql);
	return !*ret_result && link->lib.mysql_errno(link->mysql) != 0 ? fail(link, error) : 0;
}

int mariadb_finish(struct sql_link *link, int timeout_ms, MYSQL_RES **ret_result,
	struct text *error)
{
	struct pollfd pfd = {
		.fd = (int)link->lib.mysql_get_socket(link->mysql),
		.events = POLLIN,
	};
	uint64_t unresponsive_ns;

	*ret_result = NULL;
	if (link->pending_since_ns == 0)
		return 0;
	if (poll(&pfd, 1, timeout_ms) != 0)
		return read_answer(link, ret_result, error);
	unresponsive_ns = clock_mono_ns() - link->pending_since_ns;
	text_addf(error, SQL_ERROR_UNRESPONSIVE " for %.1f s",
		(double)unresponsive_ns / NSEC_PER_SEC);
	/*
	 * A local socket tells when its server has died; a server on another host may just be gone.
	 */
	if (link->setup->host[0] && unresponsive_ns > SQL_NETWORK_TIMEOUT_S * NSEC_PER_SEC)
		return -ENOTCONN;
	return -ETIMEDOUT;
}

MYSQL_ROW mariadb_next_row(struct sql_link *link, MYSQL_RES *result, int *ret_r, struct text *error)
{
	MYSQL_ROW row = link->lib.mysql_fetch_row(result);
	unsigned int code = row ? 0 : link->lib.mysql_errno(link->mysql);

	*ret_r = code ? fail(link, error) : 0;
	/*
	 * The library has no code of its own for a row that is too long: it just ends the session.
	 */
	if (*ret_r == -ENOTCONN)
		link->short_until_ns = clock_mono_ns() + MARIADB_SHORT_NS;
	return row;
}

void mariadb_break_off(struct sql_link *link, MYSQL_RES *result)
{
	/* Freeing it reads what is left of it, which then ends at once. */
	shutdown((int)link->lib.mysql_get_socket(link->mysql), SHUT_RDWR);
	link->lib.mysql_free_result(result);
}

bool mariadb_has_columns(struct sql_link *link, MYSQL_RES *result, unsigned int columns,
	struct text *error)
{
	unsigned int count = link->lib.mysql_num_fields(result);

	if (count >= columns)
		return true;
	text_addf(error, "the server answers with %u columns instead of %u", count, columns);
	link->lib.mysql_free_result(result);
	return false;
}

int mariadb_ask(struct sql_link *link, const char *query, unsigned int columns, int timeout_ms,
	MYSQL_RES **ret_result, struct text *error)
{
	MYSQL_RES *result;
	int r;

	if (link->lib.mysql_send_query(link->mysql, query, strlen(query)) != 0)
		return fail(link, error);
	link->pending_since_ns = clock_mono_ns();
	link->pending = MARIADB_ASKS_SESSIONS;
	r = mariadb_finish(link, timeout_ms, &result, error);
	if (r < 0)
		return r;
	if (ret_result && !result)
		return -EIO;
	if (ret_result && !mariadb_has_columns(link, result, columns, error))
		return -EBADMSG;
	if (ret_result)
		*ret_result = result;
	else if (result)
		link->lib.mysql_free_result(result);
	return 0;
}
