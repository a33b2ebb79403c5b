/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The list of all targets. */
#include "sql/internal.h"

#include <errno.h>
#include <sys/wait.h>

static void remember_orphan(struct sql *sql, pid_t pid)
{
	for (unsigned int i = 0; pid > 0 && i < ORPHANS_MAX; i++) {
		if (sql->orphans[i] == 0) {
			sql->orphans[i] = pid;
			return;
		}
	}
}

void sql_reap_orphans(struct sql *sql)
{
	for (unsigned int i = 0; i < ORPHANS_MAX; i++)
		if (sql->orphans[i] > 0 && waitpid(sql->orphans[i], NULL, WNOHANG) != 0)
			sql->orphans[i] = 0;
}

void sql_remove_target(struct sql *sql, unsigned int index)
{
	remember_orphan(sql, sql_target_free(sql->targets[index]));
	sql->targets[index] = sql->targets[--sql->count];
}

int sql_add_target(struct sql *sql, const struct config_sql_target *config, bool detected)
{
	struct sql_target *target;
	int r;

	if (sql->count == CONFIG_SQL_TARGETS_MAX)
		return -ENOSPC;
	r = sql_target_new(&sql->target_options, config, &sql->config, &target);
	if (r < 0)
		return r;
	target->detected = detected;
	sql->targets[sql->count++] = target;
	return 0;
}
