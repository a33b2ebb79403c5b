/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sql/snapshot.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "util/clock.h"
#include "util/hash.h"
#include "util/number.h"

_Static_assert(SQL_NAMES_BYTES + SQL_TEXTS_BYTES <= UINT16_MAX, "rows have offsets of 16 bits");

void sql_snapshot_begin(struct sql_snapshot *s, uint64_t asked_ns)
{
	/* Does not clear the tables. Offset 0 is the empty text. */
	memset(s, 0, offsetof(struct sql_snapshot, rows));
	s->asked_ns = asked_ns;
	s->texts[0] = '\0';
	s->names_used = 1;
}

/* Connections of one application are alike: a name that the row before has is not stored again. */
static uint16_t add_name(struct sql_snapshot *s, const char *name, uint16_t before)
{
	size_t size = strlen(name) + 1;
	uint32_t at = s->names_used;

	if (size == 1 || strcmp(s->texts + before, name) == 0)
		return size == 1 ? 0 : before;
	if (at + size > SQL_NAMES_BYTES)
		return 0;
	memcpy(s->texts + at, name, size);
	s->names_used += (uint32_t)size;
	return (uint16_t)at;
}

static uint16_t add_text(struct sql_snapshot *s, const char *text)
{
	size_t size = strlen(text) + 1;
	uint32_t at = SQL_NAMES_BYTES + s->texts_used;

	if (size == 1 || s->texts_used + size > SQL_TEXTS_BYTES)
		return 0;
	memcpy(s->texts + at, text, size);
	s->texts_used += (uint32_t)size;
	return (uint16_t)at;
}

/*
 * The same number for texts that count as the same; 0: the text is empty. It has placeholders for
 * values unless sql.text is `full`.
 */
static uint64_t key_of(const char *text)
{
	const uint64_t key = hash_bytes(HASH_BEGIN, text, strnlen(text, SQL_ALIKE_BYTES));

	if (!*text)
		return 0;
	return key ? key : 1;
}

/* Whether a state is that of SLEEP() in MariaDB or of pg_sleep(). */
static bool is_sleep(const char *state)
{
	return strcmp(state, "User sleep") == 0 || strcmp(state, "Timeout: PgSleep") == 0;
}

bool sql_row_is_client(const struct sql_row *row)
{
	return !row->background && !row->idle && !row->worker && !row->asleep;
}

bool sql_row_is_lasting(const struct sql_row *row)
{
	return sql_row_is_client(row) && row->elapsed_ns >= SQL_LASTING_NS;
}

int sql_snapshot_add(struct sql_snapshot *s, const struct sql_frame_session *frame)
{
	static const struct sql_row none;
	const struct sql_row *before = s->count ? &s->rows[s->count - 1] : &none;
	struct sql_row *row = &s->rows[s->count];

	if (s->count == SQL_SESSIONS_MAX) {
		s->left_out++;
		return -ENOSPC;
	}
	*row = (struct sql_row){
		.connection_id = frame->connection_id,
		.query_id = frame->query_id,
		.elapsed_ns = frame->elapsed_ns,
		.transaction_ns = frame->transaction_ns,
		.tid = frame->tid,
		.leader_pid = frame->leader_pid,
		.served = frame->served,
		.text_bytes = frame->text_bytes,
		.background = frame->background != 0,
		.idle = frame->idle != 0,
		.worker = frame->worker || frame->leader_pid,
		.asleep = is_sleep(frame->state),
		.user = add_name(s, frame->user, before->user),
		.database = add_name(s, frame->database, before->database),
		.command = add_name(s, frame->command, before->command),
		.state = add_name(s, frame->state, before->state),
		.no_tid = frame->tid ? 0 : add_name(s, frame->no_tid, before->no_tid),
		.key = key_of(frame->text),
		.text = add_text(s, frame->text),
	};
	s->count++;
	/* The statement of a worker counts once, for its leader. */
	if (row->background || row->idle || row->worker)
		return 0;
	s->active++;
	if (sql_row_is_lasting(row)) {
		s->lasting++;
		s->lasting_ns += row->elapsed_ns;
	}
	if (row->elapsed_ns > s->longest_ns)
		s->longest_ns = row->elapsed_ns;
	return 0;
}

int sql_snapshot_add_lock(struct sql_snapshot *s, const struct sql_frame_lock *frame)
{
	static const struct sql_row none;

	for (uint32_t i = 0; i < s->count; i++) {
		struct sql_row *row = &s->rows[i];
		/* Those before it in the same queue come before it in the list, too. */
		const struct sql_row *before = i ? &s->rows[i - 1] : &none;

		if (row->connection_id != frame->connection_id)
			continue;
		row->lock = (enum record_lock)frame->lock;
		row->blocker_id = frame->blocker_id;
		row->waited_ns = frame->waited_ns;
		row->candidates = (uint16_t)frame->candidates;
		row->blocker_has_no_session = frame->has_no_session;
		row->object = add_name(s, frame->object, before->object);
		return 0;
	}
	return -ENOENT;
}

static const struct sql_row *find_session(const struct sql_snapshot *s, uint64_t connection_id)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (s->rows[i].connection_id == connection_id)
			return &s->rows[i];
	return NULL;
}

/* MariaDB counts whole seconds. */
#define STARTED_ERROR_NS (3 * NSEC_PER_SEC / 2)

static const struct sql_row *find_same(const struct sql_snapshot *s, uint64_t answered_ns,
	const struct sql_row *row)
{
	const struct sql_row *other = find_session(s, row->connection_id);
	int64_t started_ns = (int64_t)(answered_ns - row->elapsed_ns), error_ns;

	if (!other)
		return NULL;
	error_ns = started_ns - (int64_t)(s->answered_ns - other->elapsed_ns);
	return error_ns < (int64_t)STARTED_ERROR_NS && error_ns > -(int64_t)STARTED_ERROR_NS ? other
											     : NULL;
}

/* Whether a session has ended no transaction since the last answer, so that it has its locks. */
static bool has_gone_on(const struct sql_snapshot *s, const struct sql_snapshot *last,
	uint64_t connection_id)
{
	const struct sql_row *row = find_session(s, connection_id);

	return row && find_session(last, connection_id) &&
		(find_same(last, s->answered_ns, row) ||
			row->transaction_ns > s->answered_ns - last->asked_ns);
}

/* Who holds a lock is not asked each time, since that costs the server much. */
static void keep_blocker(struct sql_snapshot *s, const struct sql_snapshot *last,
	struct sql_row *row, const struct sql_row *before)
{
	static const struct sql_row none;

	if (row->blocker_id || before->lock != row->lock ||
		(!before->blocker_has_no_session && !has_gone_on(s, last, before->blocker_id)))
		return;
	row->blocker_has_no_session = before->blocker_has_no_session;
	row->blocker_id = before->blocker_id;
	row->candidates = before->candidates;
	row->object = add_name(s, last->texts + before->object,
		(row > s->rows ? row - 1 : &none)->object);
}

void sql_snapshot_note_waits(struct sql_snapshot *s, const struct sql_snapshot *last)
{
	for (uint32_t i = 0; i < s->count && last->asked_ns; i++) {
		struct sql_row *row = &s->rows[i];
		const struct sql_row *before;
		uint64_t waited_ns;

		if (row->lock == RECORD_LOCK_NONE)
			continue;
		before = find_same(last, s->answered_ns, row);
		if (!before || before->lock == RECORD_LOCK_NONE)
			continue;
		keep_blocker(s, last, row, before);
		waited_ns = before->waited_ns + s->asked_ns - last->answered_ns;
		if (waited_ns > row->waited_ns && waited_ns <= row->elapsed_ns)
			row->waited_ns = waited_ns;
	}
}

void sql_snapshot_end(struct sql_snapshot *s, const struct sql_frame_end *frame,
	uint64_t answered_ns)
{
	s->answered_ns = answered_ns;
	s->server_ns = frame->server_ns;
	s->idle = frame->sessions_idle;
	s->connections = frame->connections;
	s->left_out += frame->sessions_left_out;
	s->invalid += frame->values_invalid;
	s->active += s->left_out;
}

static uint32_t count_alike(const struct sql_snapshot *s, uint64_t key)
{
	uint32_t count = 0;

	for (uint32_t i = 0; key && i < s->count; i++)
		count += s->rows[i].key == key && sql_row_is_client(&s->rows[i]);
	return count;
}

void sql_snapshot_view(const struct sql_snapshot *s, uint32_t index,
	struct sql_session_view *ret_view)
{
	const struct sql_row *row = &s->rows[index];

	*ret_view = (struct sql_session_view){
		.connection_id = row->connection_id,
		.query_id = row->query_id,
		.elapsed_ns = row->elapsed_ns,
		.started_ns = minus(s->answered_ns, row->elapsed_ns),
		.transaction_ns = row->transaction_ns,
		.blocker_id = row->blocker_id,
		.waited_ns = row->waited_ns,
		.moved_bytes = row->moved_bytes,
		.key = row->key,
		.alike = count_alike(s, row->key),
		.lock = row->lock,
		.candidates = row->candidates,
		.tid = row->tid,
		.leader_pid = row->leader_pid,
		.text_bytes = row->text_bytes,
		.background = row->background,
		.idle = row->idle,
		.asleep = row->asleep,
		.worker = row->worker,
		.user = s->texts + row->user,
		.database = s->texts + row->database,
		.command = s->texts + row->command,
		.state = s->texts + row->state,
		.no_tid = s->texts + row->no_tid,
		.object = s->texts + row->object,
		.text = s->texts + row->text,
	};
}

static const struct sql_row *find_row(const struct sql_snapshot *s, int32_t tid)
{
	for (uint32_t i = 0; tid > 0 && i < s->count; i++)
		if (s->rows[i].tid == tid && !s->rows[i].idle)
			return &s->rows[i];
	return NULL;
}

bool sql_snapshot_find_thread(const struct sql_snapshot *s, int32_t tid,
	struct sql_session_view *ret_view)
{
	const struct sql_row *row = find_row(s, tid), *leader;

	if (!row)
		return false;
	/* A worker without a statement of its own has that of its leader. */
	leader = row->text ? NULL : find_row(s, row->leader_pid);
	sql_snapshot_view(s, (uint32_t)((leader ? leader : row) - s->rows), ret_view);
	return true;
}

uint64_t sql_snapshot_find_connection(const struct sql_snapshot *s, const struct sql_operation *op,
	bool is_process)
{
	struct sql_session_view view;
	bool is_known = is_process ? op->start_ns <= s->answered_ns + SQL_PROCESS_NS &&
			op->end_ns + SQL_PROCESS_NS >= s->answered_ns
				   : op->start_ns <= s->asked_ns && op->end_ns >= s->answered_ns;

	if (!is_known || !sql_snapshot_find_thread(s, op->tid, &view))
		return 0;
	/*
	 * Nobody waited for the request, so it may belong to the thread's statement before this
	 * one.
	 */
	if (!is_process && op->is_request && view.started_ns + SQL_START_ERROR_NS > op->start_ns)
		return 0;
	return view.connection_id;
}
