/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sections [sql.NAME], whose names the user chooses. */
#include "config/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"

int config_sql_target_index(struct config *c, const char *section)
{
	struct config_sql_target *target;
	char buf[128];
	struct text reason = TEXT_ON(buf);
	unsigned int index;

	for (index = 0; index < c->sql.targets_count; index++)
		if (strcmp(c->sql.targets[index].section, section) == 0)
			return (int)index;
	if (strcmp(section, CONFIG_SQL_ANY) == 0 || !config_section_is(CONFIG_SQL_ANY, section))
		return -EINVAL;
	if (index == CONFIG_SQL_TARGETS_MAX)
		return -ENOSPC;
	target = &c->sql.targets[index];
	for (unsigned int i = 0; i < config_settings_count; i++) {
		struct config_setting s = config_sql_setting(&config_settings[i], index);

		text_reset(&reason);
		if (strcmp(s.section, CONFIG_SQL_ANY) == 0)
			config_value_parse(&s, s.standard, c, &reason);
	}
	text_copy(target->section, sizeof(target->section), section);
	c->sql.targets_count++;
	return (int)index;
}

int config_sql_default_target(const char *section, struct config_sql_target *ret_target)
{
	_cleanup_free_ struct config *c = calloc(1, sizeof(*c));
	int r = c ? config_sql_target_index(c, section) : -ENOMEM;

	if (r == 0)
		*ret_target = c->sql.targets[0];
	return r;
}

struct config_setting config_sql_setting(const struct config_setting *s, unsigned int index)
{
	struct config_setting shifted = *s;

	shifted.offset += index * sizeof(struct config_sql_target);
	return shifted;
}

int config_check_sql(const struct config *c, struct config_sql_conflict *ret_conflict)
{
	for (unsigned int i = 0; i < c->sql.targets_count; i++) {
		const struct config_sql_target *t = &c->sql.targets[i];

		if (t->socket[0] && t->host[0]) {
			*ret_conflict = (struct config_sql_conflict){ i, "host", "socket",
				"is set, too; expected only one of the two" };
			return -EINVAL;
		}
		if (t->port && !t->host[0]) {
			*ret_conflict = (struct config_sql_conflict){ i, "port", "host",
				"is missing, and a socket has no port; expected both or neither" };
			return -EINVAL;
		}
	}
	return 0;
}
