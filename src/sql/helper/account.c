/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sql/helper/account.h"

#include <pwd.h>
#include <string.h>
#include <unistd.h>

#define STANDARD_USER "iostall"

const char *sql_login_user(const struct sql_frame_setup *setup)
{
	bool standard = !setup->user[0] || strcmp(setup->user, STANDARD_USER) == 0;

	if (standard && setup->option_file[0])
		return NULL;
	return standard ? STANDARD_USER : setup->user;
}

bool sql_say_option_file(const struct sql_frame_setup *setup, struct text *missing)
{
	if (sql_login_user(setup))
		return false;
	text_addf(missing, "put a user and a password that the server knows into %s",
		setup->option_file);
	return true;
}

bool sql_is_own_user(const char *account)
{
	const struct passwd *user = getpwuid(geteuid());

	return user && strcmp(user->pw_name, account) == 0;
}

void sql_say_run_as(const struct sql_frame_setup *setup, const char *account, struct text *missing)
{
	const struct passwd *user = getpwnam(account);

	if (user && user->pw_uid == 0) {
		text_addf(missing, "set sql.%s.user to an account that is not root's", setup->name);
		return;
	}
	user = getpwuid(geteuid());
	text_addf(missing, "set sql.%s.run_as = %s, a user of this system (now: ", setup->name,
		account);
	if (user)
		text_addf(missing, "%s)", user->pw_name);
	else
		text_addf(missing, "%u)", geteuid());
}
