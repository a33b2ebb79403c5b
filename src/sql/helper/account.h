/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The user and account with which a helper logs in, and advice after a refused login.
 * Used by the drivers.
 * Never fails: a user without a name is shown as a number.
 */
#ifndef IOSTALL_SQL_ACCOUNT_H
#define IOSTALL_SQL_ACCOUNT_H

#include <stdbool.h>

#include "sql/protocol.h"
#include "util/text.h"

/* Whether this process runs as the user of this host that has the account's name. */
bool sql_is_own_user(const char *account);

/* The account to log in with; NULL: that of the option file, because no other one is configured. */
const char *sql_login_user(const struct sql_frame_setup *setup);

/* When the account is that of the option file: says what to write into it. Else false. */
bool sql_say_option_file(const struct sql_frame_setup *setup, struct text *missing);

/* Appends "set sql.main.run_as = iostall, a user of this system (now: nobody)". */
void sql_say_run_as(const struct sql_frame_setup *setup, const char *account, struct text *missing);

#endif
