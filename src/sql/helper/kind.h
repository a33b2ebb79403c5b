/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which kind of server listens at a target, by the first bytes of its protocol.
 * Used by helper.c after a login that failed, to say that a section has the wrong type.
 * Never logs in, and never waits longer than three seconds for a server. Looking up the name of a
 * host is limited by RES_OPTIONS, which the sandbox sets.
 */
#ifndef IOSTALL_SQL_KIND_H
#define IOSTALL_SQL_KIND_H

#include <stdbool.h>

#include "sql/helper/redact.h"
#include "sql/protocol.h"

/*
 * 0 where a local server accepts connections, -EAGAIN where so many wait already that the kernel
 * takes no more, or why there is none. The server sees a connection that ends at once.
 */
int sql_try_socket(const char *path);

/*
 * False when nobody listens there, or says nothing that is known. may_ask: a server that says
 * nothing is asked whether it is PostgreSQL. A slow MariaDB counts that as a failed connection of
 * this host.
 */
bool sql_find_dialect(const struct sql_frame_setup *setup, bool may_ask,
	enum sql_dialect *ret_dialect);

#endif
