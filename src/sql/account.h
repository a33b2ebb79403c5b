/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * As whom this process asks a database that knows accounts by their user of the system.
 * Used by the drivers, to say what would mend a refused login.
 * Never fails: a user without a name has its number.
 */
#ifndef IOSTALL_SQL_ACCOUNT_H
#define IOSTALL_SQL_ACCOUNT_H

#include <stdbool.h>

#include "sql/protocol.h"
#include "util/text.h"

/* The account's own user of the system is what we are. */
bool sql_is_own_user(const char *account);

/* NULL: the option file says it, as nobody has set another than the default. */
const char *sql_login_user(const struct sql_frame_setup *setup);

/* What to write into an option file that says who we are; else nothing, and false. */
bool sql_say_option_file(const struct sql_frame_setup *setup, struct text *missing);

/* "sql.main.run_as = iostall (now: nobody)" */
void sql_say_run_as(const struct sql_frame_setup *setup, const char *account, struct text *missing);

#endif
