/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tells the daemon which relation each of the larger files of a PostgreSQL server belongs to.
 * Called by helper.c between two answers, while no incident is open.
 * Never keeps the daemon waiting: when it asks something, the session for the names is closed.
 */
#ifndef IOSTALL_SQL_POSTGRES_NAMES_H
#define IOSTALL_SQL_POSTGRES_NAMES_H

#include "sql/helper/postgres_link.h"

/* Now and then visits all databases; at once those that an earlier call did not come to. */
void postgres_name_files(struct sql_link *link, const char *password, int fd);

#endif
