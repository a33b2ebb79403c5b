/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The files in which a target's password stands: who may read and change them, and what is in them.
 * Called by helper.c.
 * Never uses a file that others could read or replace a line of: anybody may have that password.
 */
#ifndef IOSTALL_SQL_SECRETS_H
#define IOSTALL_SQL_SECRETS_H

#include "sql/protocol.h"
#include "util/text.h"

/* Opens the password file of the setup. -1: there is none, or the reason is in `error`. */
int secrets_open_password(const struct sql_frame_setup *setup, struct text *error);

/* The first line of the password file; NULL: there is no file. */
const char *secrets_read_password(int fd, char *buf, size_t size);

/*
 * Checks the option file as the user we are now: client libraries do not report a file that they
 * cannot read. What is wrong with it is in `error`.
 */
void secrets_check_option_file(const struct sql_frame_setup *setup, struct text *error);

#endif
