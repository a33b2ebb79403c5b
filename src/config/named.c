/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sections whose names the user chooses, as [sql.NAME]. */
#include "config/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"

unsigned int config_named_count(const struct config_named *named, const struct config *c)
{
	return *(const unsigned int *)(const void *)((const char *)c + named->count_offset);
}

const char *config_named_section(const struct config_named *named, const struct config *c,
	unsigned int index)
{
	return (const char *)c + named->offset + index * named->size;
}

int config_named_find(const struct config_named *named, const struct config *c, const char *section)
{
	for (unsigned int i = 0; i < config_named_count(named, c); i++)
		if (strcmp(config_named_section(named, c, i), section) == 0)
			return (int)i;
	return -1;
}

int config_named_get(const struct config_named *named, struct config *c, const char *section)
{
	const unsigned int index = config_named_count(named, c);
	const int found = config_named_find(named, c, section);
	char buf[128];
	struct text reason = TEXT_ON(buf);

	if (found >= 0)
		return found;
	if (config_is_placeholder(section) || !config_section_is(named->any, section))
		return -EINVAL;
	if (index == named->max)
		return -ENOSPC;
	for (unsigned int i = 0; i < config_settings_count; i++) {
		struct config_setting s = config_named_setting(named, &config_settings[i], index);

		text_reset(&reason);
		if (strcmp(s.section, named->any) == 0)
			config_value_parse(&s, s.standard, c, &reason);
	}
	text_copy((char *)c + named->offset + index * named->size, CONFIG_SECTION_SIZE, section);
	*(unsigned int *)(void *)((char *)c + named->count_offset) = index + 1;
	return (int)index;
}

struct config_setting config_named_setting(const struct config_named *named,
	const struct config_setting *s, unsigned int index)
{
	struct config_setting shifted = *s;

	shifted.offset += index * named->size;
	return shifted;
}

int config_sql_default_target(const char *section, struct config_sql_target *ret_target)
{
	_cleanup_free_ struct config *c = calloc(1, sizeof(*c));
	int r = c ? config_named_get(config_find_named(CONFIG_SQL_ANY), c, section) : -ENOMEM;

	if (r == 0)
		*ret_target = c->sql.targets[0];
	return r;
}

static const char only_one[] = "is set, too; expected only one of the two";

static bool has_sql_conflict(const struct config_sql_target *t, struct config_key_conflict *ret)
{
	if (t->socket[0] && t->host[0]) {
		*ret = (struct config_key_conflict){ t->section, "host", "socket", only_one };
		return true;
	}
	*ret = (struct config_key_conflict){ t->section, "port", "host",
		"is missing, and a socket has no port; expected both or neither" };
	return t->port && !t->host[0];
}

int config_check_keys(const struct config *c, struct config_key_conflict *ret_conflict)
{
	for (unsigned int i = 0; i < c->sql.targets_count; i++)
		if (has_sql_conflict(&c->sql.targets[i], ret_conflict))
			return -EINVAL;
	for (unsigned int i = 0; i < c->hooks_count; i++) {
		*ret_conflict = (struct config_key_conflict){ c->hooks[i].section, "socket",
			"command", only_one };
		if (c->hooks[i].command[0] && c->hooks[i].socket[0])
			return -EINVAL;
	}
	return 0;
}
