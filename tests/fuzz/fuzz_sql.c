/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Any bytes as datagrams of a database's helper, each behind its length in two bytes: refused, or
 * sessions whose texts all end where they should and that a record can hold.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sql/frames.h"
#include "sql/locks.h"
#include "sql/relations.h"
#include "sql/snapshot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct sql_snapshot snapshot;
static struct sql_relations relations;

static void check_text(const char *text, size_t size)
{
	const char *end = snapshot.texts + sizeof(snapshot.texts);

	if (text < snapshot.texts || text >= end || !memchr(text, '\0', (size_t)(end - text)) ||
		strlen(text) >= size)
		abort();
}

static void check_snapshot(void)
{
	struct sql_session_view view, found;
	struct sql_queue queue;
	bool is_found;

	if (snapshot.count > SQL_SESSIONS_MAX)
		abort();
	for (uint32_t i = 0; i < snapshot.count; i++) {
		sql_snapshot_view(&snapshot, i, &view);
		if (view.tid < 0 || view.tid > SQL_PID_MAX || view.leader_pid < 0 ||
			view.leader_pid > SQL_PID_MAX || view.elapsed_ns > SQL_ELAPSED_MAX_NS)
			abort();
		if (view.lock >= RECORD_LOCK_COUNT || view.waited_ns > SQL_ELAPSED_MAX_NS ||
			view.transaction_ns > SQL_ELAPSED_MAX_NS)
			abort();
		check_text(view.object, SQL_NAME_SIZE);
		check_text(view.user, SQL_NAME_SIZE);
		check_text(view.database, SQL_NAME_SIZE);
		check_text(view.command, SQL_NAME_SIZE);
		check_text(view.state, SQL_STATE_SIZE);
		check_text(view.no_tid, SQL_NAME_SIZE);
		check_text(view.text, SQL_TEXT_SIZE);
		is_found = sql_snapshot_find_thread(&snapshot, view.tid, &found);
		/* One that only has a transaction open runs none; another one on its thread may. */
		if (view.tid > 0 ? !is_found && !snapshot.rows[i].idle : is_found)
			abort();
	}
	if (sql_find_queue(&snapshot, 0, &queue) &&
		(queue.waiters > snapshot.count || queue.behind_first >= queue.waiters ||
			(queue.has_holder && queue.holder.lock != RECORD_LOCK_NONE)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	union sql_helper_frame frame;

	sql_snapshot_begin(&snapshot, 1);
	while (size >= 2) {
		size_t len = (size_t)(data[0] | data[1] << 8);
		int type;

		data += 2;
		size -= 2;
		if (len > size)
			len = size;
		/* What was there before is never the end of a text. */
		memset(&frame, 0xff, sizeof(frame));
		memcpy(&frame, data, len < sizeof(frame) ? len : sizeof(frame));
		type = sql_frame_check(&frame, len);
		if (type > 0)
			sql_frame_correct(&frame);
		if (type == SQL_FRAME_SESSION)
			(void)sql_snapshot_add(&snapshot, &frame.session);
		else if (type == SQL_FRAME_LOCK)
			(void)sql_snapshot_add_lock(&snapshot, &frame.lock);
		else if (type == SQL_FRAME_RELATION)
			sql_relations_add(&relations, &frame.relation);
		else if (type == SQL_FRAME_DIRECTORY)
			sql_relations_add_directory(&relations, &frame.directory);
		else if (type == SQL_FRAME_END)
			sql_snapshot_end(&snapshot, &frame.end, 2);
		data += len;
		size -= len;
	}
	check_snapshot();
	for (uint32_t i = 0; i < relations.count; i++)
		if (!memchr(relations.list[i].name, '\0', SQL_RELATION_SIZE))
			abort();
	return 0;
}
