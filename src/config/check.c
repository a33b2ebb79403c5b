/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config/table.h"

#include <errno.h>
#include <string.h>

#include "util/cleanup.h"

struct relation {
	const char *low_section, *low_key;
	const char *high_section, *high_key;
	bool zero_is_off; /* a high of 0 switches something off, so it is not a limit */
};

static const struct relation relations[] = {
#define RULE(name, ...) { "rule." #name, "clear", "rule." #name, "set", false },
#include "watch/rules.def"
#undef RULE
	{ "watch", "interval", "watch", "history", true },
	{ "health", "timeout", "health", "interval", false },
	/* Otherwise an incident would end before anything could be called a stall. */
	{ "trace", "min_stall", "incident", "max_time", false },
	{ "incident", "clear_time", "incident", "max_time", false },
	/* Otherwise retention would remove the record that it has just been given. */
	{ "record", "spool_bytes", "record", "max_bytes", false },
};

/* Records are copied from one to the other. Trailing slashes make no difference. */
static bool is_same_directory(const char *a, const char *b)
{
	size_t a_len = strlen(a), b_len = strlen(b);

	while (a_len > 1 && a[a_len - 1] == '/')
		a_len--;
	while (b_len > 1 && b[b_len - 1] == '/')
		b_len--;
	return a_len == b_len && memcmp(a, b, a_len) == 0;
}

int config_check_relations(const struct config *c, struct config_conflict *ret_conflict)
{
	for (size_t i = 0; i < ARRAY_SIZE(relations); i++) {
		const struct relation *r = &relations[i];
		const struct config_setting *low = config_find_setting(r->low_section, r->low_key);
		const struct config_setting *high =
			config_find_setting(r->high_section, r->high_key);
		double limit = config_value_number(high, c);

		if (r->zero_is_off && limit <= 0)
			continue;
		if (config_value_number(low, c) > limit) {
			*ret_conflict = (struct config_conflict){ low, high, false };
			return -EINVAL;
		}
	}
	if (is_same_directory(c->record.spool_dir, c->record.dir)) {
		*ret_conflict = (struct config_conflict){
			config_find_setting("record", "spool_dir"),
			config_find_setting("record", "dir"),
			true,
		};
		return -EINVAL;
	}
	return 0;
}
