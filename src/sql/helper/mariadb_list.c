/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sql/helper/mariadb_list.h"

#include <stdlib.h>

/* A pool may have hundreds in a transaction: the longest are kept, beside those that run. */
#define SLEEPERS_MAX 64

struct mariadb_session *mariadb_find_session(const struct mariadb_list *list,
	uint64_t connection_id)
{
	for (size_t i = 0; connection_id && i < list->count; i++)
		if (list->rows[i].connection_id == connection_id)
			return &list->rows[i];
	return NULL;
}

bool mariadb_has_stayed(const struct mariadb_list *list, const struct mariadb_session *row,
	uint64_t asked_ns)
{
	return asked_ns >= list->asked_ns ||
		row->time_s * NSEC_PER_SEC >= clock_mono_ns() - asked_ns;
}

static struct mariadb_session *find_shortest(struct mariadb_list *list, bool is_idle)
{
	struct mariadb_session *shortest = NULL;

	for (size_t i = 0; i < list->count; i++)
		if (list->rows[i].idle == is_idle &&
			(!shortest || list->rows[i].time_s < shortest->time_s))
			shortest = &list->rows[i];
	return shortest;
}

struct mariadb_session *mariadb_list_find_room(struct mariadb_list *list, bool is_idle,
	uint64_t time_s, bool is_blocker)
{
	const bool is_further_sleeper = is_idle && list->sleepers < SLEEPERS_MAX;
	struct mariadb_session *shortest;

	if (list->count < MARIADB_SESSIONS_MAX && (!is_idle || is_further_sleeper)) {
		list->sleepers += is_idle;
		return &list->rows[list->count++];
	}
	shortest = find_shortest(list, is_idle && !is_further_sleeper);
	if (!shortest || (!is_blocker && !is_further_sleeper && time_s <= shortest->time_s))
		return NULL;
	list->sleepers += is_further_sleeper;
	free(shortest->text);
	return shortest;
}

void mariadb_list_free(struct mariadb_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->rows[i].text);
	free(list->rows);
}
