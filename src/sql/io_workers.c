/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sql/io_workers.h"

void sql_io_workers_begin(struct sql_io_workers *w)
{
	w->reads = 0;
	w->count = 0;
}

static void add(struct sql_io_workers *w, int32_t pid, uint64_t key, uint64_t reads)
{
	uint32_t i = 0;

	w->reads += reads;
	if (pid <= 0)
		return;
	while (i < w->count && (w->backends[i].pid != pid || w->backends[i].key != key))
		i++;
	if (i == SQL_IO_WORKERS_MAX)
		return;
	if (i == w->count) {
		w->count++;
		w->backends[i].pid = pid;
		w->backends[i].key = key;
		w->backends[i].reads = 0;
	}
	w->backends[i].reads += reads;
}

void sql_io_workers_take(struct sql_io_workers *w, const struct sql_snapshot *answer)
{
	struct sql_session_view view;

	for (uint32_t i = 0; i < answer->count; i++) {
		const struct sql_row *row = &answer->rows[i];
		int32_t pid = row->leader_pid ? row->leader_pid : row->tid;

		if (row->served == 0)
			continue;
		/* The leader of a worker may have ended, or have had no room in the answer. */
		if (!sql_snapshot_find_thread(answer, pid, &view))
			sql_snapshot_view(answer, i, &view);
		add(w, pid, view.key, row->served);
	}
}

static bool is_most(const struct sql_io_workers *w, uint64_t reads)
{
	return reads > 0 && reads >= w->reads - w->reads / 4;
}

/* Of one backend, whatever it ran; or of one statement, whoever ran it. */
static uint64_t reads_like(const struct sql_io_workers *w, uint32_t as, bool by_key)
{
	uint64_t reads = 0;

	for (uint32_t i = 0; i < w->count; i++)
		if (by_key ? w->backends[i].key == w->backends[as].key
			   : w->backends[i].pid == w->backends[as].pid)
			reads += w->backends[i].reads;
	return reads;
}

/* The one with most of those that ran the same; *ret_count: how many these are. */
static int32_t find_first_alike(const struct sql_io_workers *w, uint32_t as, uint32_t *ret_count)
{
	uint32_t most = as;

	*ret_count = 0;
	for (uint32_t i = 0; i < w->count; i++) {
		if (w->backends[i].key != w->backends[as].key)
			continue;
		(*ret_count)++;
		if (w->backends[i].reads > w->backends[most].reads)
			most = i;
	}
	return w->backends[most].pid;
}

int32_t sql_io_workers_find(const struct sql_io_workers *w, uint32_t *ret_sessions)
{
	*ret_sessions = 1;
	for (uint32_t i = 0; i < w->count; i++)
		if (is_most(w, reads_like(w, i, false)))
			return w->backends[i].pid;
	for (uint32_t i = 0; i < w->count; i++)
		if (w->backends[i].key && is_most(w, reads_like(w, i, true)))
			return find_first_alike(w, i, ret_sessions);
	*ret_sessions = 0;
	return 0;
}
