/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a kind of database server has to be able to do: log in, list what its sessions do.
 * Used by helper.c; drivers.def lists the drivers, one file each.
 * Never linked with a client library: a driver loads it when a target needs it.
 */
#ifndef IOSTALL_SQL_DRIVER_H
#define IOSTALL_SQL_DRIVER_H

#include <stdbool.h>

#include "sql/protocol.h"
#include "sql/redact.h"
#include "util/text.h"

/* Each gives up after that while there is no session yet. */
#define SQL_CONNECT_TIMEOUT_S 5
/* What the server may spend on one question of ours; it then answers with an error. */
#define SQL_STATEMENT_TIMEOUT_MS 2000
/* A server behind a network that says nothing for so long is taken for gone. */
#define SQL_NETWORK_TIMEOUT_S 60

/* A driver's own state: its library's functions and its one session. */
struct sql_link;

/* Made by helper.c; drivers only hand it on. */
struct sql_answer {
	int fd;
	uint64_t ask;
	const struct sql_frame_setup *setup;
	enum sql_dialect dialect;
	uint64_t idle;
	uint64_t left_out;
	unsigned int sent;
	int r; /* of the first frame that could not be sent */
};

/*
 * One active session of an answer. cut: text (NULL: none) may be only the beginning of the
 * statement, of which the server says whole_bytes, be it the length of the rest that it kept. True
 * where that is not known: it hides more, and false for a text that is cut shows literals. False
 * when no more can be taken.
 */
bool sql_answer_add(struct sql_answer *answer, struct sql_frame_session *session, const char *text,
	uint64_t whole_bytes, bool cut);
/* Active sessions that the server did not send, and those that do nothing. */
void sql_answer_count(struct sql_answer *answer, uint64_t left_out, uint64_t idle);

/* Where a driver wants which function of its library. */
struct sql_function {
	const char *name; /* NULL ends a list */
	size_t offset;	  /* in its struct sql_link */
};

struct sql_driver {
	const char *name;
	enum sql_dialect dialect;
	const char *library;
	const char *package; /* that has it */
	const struct sql_function *functions;
	size_t link_size; /* of its struct sql_link, which begins with the setup's address */

	/*
	 * Opens the session. ret_server is filled but for its frame. Or a negative errno with
	 * error, and, for a refused login, the statement that would mend it in missing.
	 * -ETIMEDOUT: the server may still have the session that it left open.
	 */
	int (*connect)(struct sql_link *link, const char *password,
		struct sql_frame_server *ret_server, struct text *error, struct text *missing);

	/* -ENOTCONN: the session is gone; other errors leave it. */
	int (*snapshot)(struct sql_link *link, struct sql_answer *answer, struct text *error);

	/* Closes the session, if there is one. */
	void (*disconnect)(struct sql_link *link);
};

#define SQL_DRIVER(type, name) extern const struct sql_driver sql_driver_##name;
#include "sql/drivers.def"
#undef SQL_DRIVER

/*
 * Loads the library. 0, or a negative errno with a line in error: that will not get better. Never
 * closed: libraries leave behind what they registered.
 */
int sql_driver_load(const struct sql_driver *driver, const struct sql_frame_setup *setup,
	struct sql_link **ret_link, struct text *error);

/* The process at the other end of a local socket, 0 for others. */
int32_t sql_peer_pid(int fd);

/* Copies a cell of a result; NULL becomes "". */
void sql_copy_cell(char *dst, size_t size, const char *cell);
/* A cell that is a number; 0 when it is none. */
uint64_t sql_cell_u64(const char *cell);

#endif
