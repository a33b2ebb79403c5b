/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config/table.h"

#include <string.h>

#define NAME_MAX_LENGTH 63

static unsigned int min_of(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/* Number of edits that turn a into b: insert, remove, replace, or swap two neighbours. */
static unsigned int name_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	unsigned int rows[3][NAME_MAX_LENGTH + 1];
	unsigned int *before = rows[0], *above = rows[1], *row = rows[2];

	for (unsigned int j = 0; j <= b_len; j++)
		above[j] = j;
	for (unsigned int i = 1; i <= a_len; i++) {
		unsigned int *oldest = before;

		row[0] = i;
		for (unsigned int j = 1; j <= b_len; j++) {
			unsigned int edit = above[j - 1] + (a[i - 1] != b[j - 1]);

			edit = min_of(edit, min_of(above[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				edit = min_of(edit, before[j - 2] + 1);
			row[j] = edit;
		}
		before = above;
		above = row;
		row = oldest;
	}
	return above[b_len];
}

void config_nearest_try(struct config_nearest *n, const char *candidate)
{
	size_t name_len = strlen(n->name), len = strlen(candidate);
	unsigned int distance, limit;

	if (name_len == 0 || name_len > NAME_MAX_LENGTH || len > NAME_MAX_LENGTH)
		return;
	limit = 1 + (unsigned int)name_len / 4;
	distance = name_distance(n->name, name_len, candidate, len);
	/* A prefix is taken for an abbreviation, however much is missing. */
	if (name_len > 1 && name_len < len && memcmp(n->name, candidate, name_len) == 0)
		distance = min_of(distance, limit);
	if (distance > limit || (n->found && distance >= n->distance))
		return;
	n->found = candidate;
	n->distance = distance;
}
