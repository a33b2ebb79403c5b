/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who is at the other end before a password goes there: the owner of a local socket.
 * Used by the drivers.
 * Never trusts a socket that neither root nor the user of the server made.
 */
#ifndef IOSTALL_SQL_PEER_H
#define IOSTALL_SQL_PEER_H

#include <sys/types.h>

#include "sql/protocol.h"
#include "util/text.h"

/*
 * Checks who made the socket at `path` before connecting; `usual` is the user of such servers. 0,
 * also when there is no such socket, which the login will say. -EPERM with `error` and `missing`.
 * ret_user gets the name of the owner, or "".
 */
int peer_check_socket(const struct sql_frame_setup *setup, const char *path, const char *usual,
	char ret_user[static SQL_NAME_SIZE], struct text *error, struct text *missing);

/*
 * The same for a connection: who listened when it was made. A target without a host has to be
 * local, whatever an option file says.
 */
int peer_check_connection(const struct sql_frame_setup *setup, int fd, const char *usual,
	struct text *error, struct text *missing);

#endif
