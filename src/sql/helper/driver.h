/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a driver for a kind of database server does: log in, and list what the sessions do.
 * Used by helper.c; sql/databases.def lists the drivers.
 * Never linked with a client library: a driver loads it when a target needs it.
 */
#ifndef IOSTALL_SQL_DRIVER_H
#define IOSTALL_SQL_DRIVER_H

#include <stdbool.h>

#include "sql/helper/answer.h"
#include "util/text.h"

/* A login is given up after this time. */
#define SQL_CONNECT_TIMEOUT_S 5
/* The server ends a question of ours with an error after this time. */
#define SQL_STATEMENT_TIMEOUT_MS 2000
/* A server on another host that sends nothing for so long is considered gone. */
#define SQL_NETWORK_TIMEOUT_S 60

/* The state of a driver: the functions of its library and its one session. */
struct sql_link;

/* A function of the library, and where the driver wants its address. */
struct sql_function {
	const char *name; /* NULL ends a list */
	size_t offset;	  /* in its struct sql_link */
};

struct sql_driver {
	const char *name;
	enum sql_dialect dialect;
	const char *library;
	const char *package; /* the Debian package of the library */
	const struct sql_function *functions;
	size_t link_size; /* of its struct sql_link, whose first member points to the setup */

	/*
	 * Opens the session and fills ret_server except its frame. Or returns a negative errno with
	 * `error` and, after a refused login, what to do about it in `missing`. -ETIMEDOUT: the
	 * server may still have the session open. -EAGAIN: it is starting or stopping, or
	 * accepts none.
	 */
	int (*connect)(struct sql_link *link, const char *password,
		struct sql_frame_server *ret_server, struct text *error, struct text *missing);

	/* -ENOTCONN: the session is lost; after other errors it still exists. */
	int (*snapshot)(struct sql_link *link, struct sql_answer *answer, struct text *error);

	/*
	 * Called now and then after an answer while no incident is open: tells the daemon on the
	 * socket fd what files of the server are. Returns as soon as the daemon asks something.
	 * NULL: files have names.
	 */
	void (*name_files)(struct sql_link *link, const char *password, int fd);

	/* Closes the session, if there is one. */
	void (*disconnect)(struct sql_link *link);
};

#define DATABASE(NAME, name, ...) extern const struct sql_driver sql_driver_##name;
#include "sql/databases.def"
#undef DATABASE

/*
 * Loads the library. 0, or a negative errno with a line in `error`; trying again does not help. The
 * library is never closed, because it may have registered functions that would be called later.
 */
int sql_driver_load(const struct sql_driver *driver, const struct sql_frame_setup *setup,
	struct sql_link **ret_link, struct text *error);

/* The process at the other end of a local socket; 0 for other sockets. */
int32_t sql_peer_pid(int fd);

/* The identity of a server from a text that no other running server has; 0 for "". */
uint64_t sql_make_identity(const char *text);

/* Copies a cell of a result; NULL becomes "". */
void sql_copy_cell(char *dst, size_t size, const char *cell);
/* The number in a cell; 0 when it has none, or another text. */
uint64_t sql_cell_u64(const char *cell);
/*
 * The same for a number that is known to be at most `max`. One that is larger, negative or no
 * number at all is 0, and *invalid is raised.
 */
uint64_t sql_cell_up_to(const char *cell, uint64_t max, uint64_t *invalid);

#endif
