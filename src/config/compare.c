/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a reload changed. */
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "config/table.h"
#include "util/cleanup.h"

#define VALUE_SIZE (CONFIG_LIST_MAX * CONFIG_ITEM_SIZE)
/* Of a long list a message has the beginning. */
#define SHOWN_MAX 255

struct comparison {
	void (*tell)(void *userdata, const char *change);
	void *userdata;
	unsigned int changes;
};

static void tell(struct comparison *c, const char *line)
{
	c->changes++;
	c->tell(c->userdata, line);
}

/* Each setting is one of its own configuration: targets may have moved. */
static void compare_setting(struct comparison *c, const char *section,
	const struct config_setting *before_setting, const struct config *before,
	const struct config_setting *after_setting, const struct config *after)
{
	static char was_buf[VALUE_SIZE], is_buf[VALUE_SIZE];
	struct text was = TEXT_ON(was_buf), is = TEXT_ON(is_buf);
	char line[2 * SHOWN_MAX + CONFIG_FULL_NAME_SIZE + 32];

	text_reset(&was);
	text_reset(&is);
	config_value_format(before_setting, before, &was);
	config_value_format(after_setting, after, &is);
	if (strcmp(was_buf, is_buf) == 0)
		return;
	snprintf(line, sizeof(line), "%s.%s = %.*s%s (was %.*s%s)", section, before_setting->key,
		SHOWN_MAX, is.len ? is_buf : "\"\"", is.len > SHOWN_MAX ? "..." : "", SHOWN_MAX,
		was.len ? was_buf : "\"\"", was.len > SHOWN_MAX ? "..." : "");
	tell(c, line);
}

static void compare_section(struct comparison *c, const struct config_named *named,
	const struct config *before, unsigned int before_index, const struct config *after,
	unsigned int after_index)
{
	for (unsigned int i = 0; i < config_settings_count; i++) {
		const struct config_setting *s = &config_settings[i];
		const struct config_setting was = config_named_setting(named, s, before_index);
		const struct config_setting is = config_named_setting(named, s, after_index);

		if (strcmp(s->section, named->any) == 0)
			compare_setting(c, config_named_section(named, before, before_index), &was,
				before, &is, after);
	}
}

static void compare_named(struct comparison *c, const struct config_named *named,
	const struct config *before, const struct config *after)
{
	char line[CONFIG_SECTION_SIZE + 32];

	for (unsigned int i = 0; i < config_named_count(named, before); i++) {
		const char *section = config_named_section(named, before, i);
		int index = config_named_find(named, after, section);

		if (index >= 0) {
			compare_section(c, named, before, i, after, (unsigned int)index);
			continue;
		}
		snprintf(line, sizeof(line), "[%s] was removed", section);
		tell(c, line);
	}
	for (unsigned int i = 0; i < config_named_count(named, after); i++) {
		const char *section = config_named_section(named, after, i);

		if (config_named_find(named, before, section) >= 0)
			continue;
		snprintf(line, sizeof(line), "[%s] was added", section);
		tell(c, line);
	}
}

unsigned int config_compare(const struct config *before, const struct config *after,
	void (*tell_change)(void *userdata, const char *change), void *userdata)
{
	struct comparison c = { .tell = tell_change, .userdata = userdata };

	for (unsigned int i = 0; i < config_settings_count; i++) {
		const struct config_setting *s = &config_settings[i];

		if (!config_is_placeholder(s->section))
			compare_setting(&c, s->section, s, before, s, after);
	}
	for (unsigned int i = 0; i < CONFIG_NAMED_KINDS; i++)
		compare_named(&c, &config_named[i], before, after);
	return c.changes;
}
