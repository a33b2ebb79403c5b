/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fnmatch.h>
#include <string.h>

#include "config/config.h"

bool config_list_matches(const struct config_list *list, const char *s)
{
	for (unsigned int i = 0; i < list->count; i++)
		if (fnmatch(list->items[i], s, 0) == 0)
			return true;
	return false;
}

bool config_list_is_same(const struct config_list *a, const struct config_list *b)
{
	return a->count == b->count &&
		memcmp(a->items, b->items, a->count * sizeof(a->items[0])) == 0;
}
