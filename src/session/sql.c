/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the `sql` lines: who ran which statement, on which thread. */
#include <string.h>

#include "session/internal.h"
#include "sql/threads.h"
#include "util/clock.h"
#include "util/hash.h"
#include "util/sort.h"

/*
 * Statements that get a line in one answer, those that ran longest first, but for the first and the
 * last answer: an incident may have hundreds of them. The others have to wait.
 */
#define LINES_MAX 16
/* At most so many stuck threads are looked up in /proc; one lookup takes 1 us. */
#define CANDIDATES_ASKED 256

static struct record_sql *begin_line(struct session *s, const struct sql_evidence *e,
	enum record_phase phase)
{
	struct record_sql *q = &session_begin_line(s, RECORD_SQL)->sql;

	q->active = q->idle = q->left_out = q->lasting = -1;
	text_copy(q->target, sizeof(q->target), e->target);
	q->server = e->server;
	q->phase = phase;
	return q;
}

static void write_unresponsive(struct session *s, const struct sql_evidence *e,
	enum record_phase phase)
{
	struct record_sql *q = begin_line(s, e, phase);

	text_copy(q->version, sizeof(q->version), e->version);
	text_copy(q->account, sizeof(q->account), e->account);
	text_copy(q->error, sizeof(q->error), *e->why ? e->why : "does not answer");
	text_copy(q->missing, sizeof(q->missing), e->missing);
	q->unanswered_ns = e->unanswered_ns;
	session_write_line(s);
}

static void write_answer(struct session *s, const struct sql_evidence *e, enum record_phase phase)
{
	const struct sql_snapshot *snapshot = e->current;
	struct record_sql *q = begin_line(s, e, phase);

	q->active = snapshot->active;
	q->idle = snapshot->idle;
	q->left_out = sql_statements_count_missing(e->statements, snapshot);
	q->lasting = snapshot->lasting;
	q->lasting_ns = snapshot->lasting_ns;
	q->pid = e->server_pid;
	q->server_ns = snapshot->server_ns;
	q->answer_ns = snapshot->answered_ns - snapshot->asked_ns;
	text_copy(q->missing, sizeof(q->missing), e->grant);
	text_copy(q->version, sizeof(q->version), e->version);
	text_copy(q->account, sizeof(q->account), e->account);
	session_set_line_time(s, snapshot->answered_ns);
	session_write_line(s);
}

static bool is_among(const uint64_t candidates[RECORD_CANDIDATES_MAX], uint64_t tid)
{
	for (unsigned int i = 0; i < RECORD_CANDIDATES_MAX; i++)
		if (candidates[i] == tid)
			return true;
	return false;
}

static bool has_unknown_thread(const struct sql_snapshot *answer)
{
	for (uint32_t i = 0; i < answer->count; i++)
		if (!answer->rows[i].tid && !answer->rows[i].background)
			return true;
	return false;
}

/* A thread that only has a request in flight does not hang. */
static bool hung_at(const struct incident_stuck *stuck, uint64_t at_ns)
{
	return stuck->start_ns && stuck->start_ns <= at_ns && stuck->reported_age_ns &&
		!stuck->is_request;
}

/*
 * The threads of the server that already hung when it gave its newest answer. A session whose
 * thread is unknown may run on one of them.
 */
static void find_candidates(const struct session *s, const struct sql_evidence *e,
	uint64_t candidates[RECORD_CANDIDATES_MAX])
{
	unsigned int found = 0, asked = 0;

	if (!e->server_pid || !e->current || !has_unknown_thread(e->current))
		return;
	for (unsigned int i = 0; i < INCIDENT_STUCK_SLOTS; i++) {
		const struct incident_stuck *stuck = &s->incident.stuck[i];

		if (!hung_at(stuck, e->current->answered_ns) || is_among(candidates, stuck->tid))
			continue;
		if (found == RECORD_CANDIDATES_MAX || asked++ == CANDIDATES_ASKED)
			break;
		if (sql_thread_is_of(s->procfs_fd, (int32_t)stuck->tid, e->server_pid, false))
			candidates[found++] = stuck->tid;
	}
}

static bool is_of_current(const struct sql_evidence *e, const struct sql_statement *st)
{
	return e->current && st->answered_ns == e->current->answered_ns;
}

static void write_statement(struct session *s, const struct sql_evidence *e,
	struct sql_statement *st, enum record_phase phase,
	const uint64_t candidates[RECORD_CANDIDATES_MAX])
{
	const char *role = st->background ? sql_find_role(s->o.sql, st->tid) : "";
	struct record_sql *q = begin_line(s, e, phase);

	q->connection_id = st->connection_id;
	q->query_id = st->query_id;
	text_copy(q->user, sizeof(q->user), *role ? role : st->user);
	text_copy(q->database, sizeof(q->database), st->database);
	text_copy(q->command, sizeof(q->command), st->command);
	text_copy(q->state, sizeof(q->state), st->state);
	q->elapsed_ns = st->elapsed_ns;
	q->answer_ns = st->answered_ns - st->asked_ns;
	text_copy(q->text, sizeof(q->text), st->text);
	q->text_bytes = st->text_bytes;
	q->pid = e->sessions_are_processes && st->tid ? st->tid : e->server_pid;
	q->tid = st->tid;
	text_copy(q->tid_reason, sizeof(q->tid_reason), st->no_tid);
	q->leader_pid = st->leader_pid;
	q->background = st->background;
	q->quiet = st->idle || st->asleep;
	q->transaction_ns = st->transaction_ns;
	q->lock = st->lock;
	text_copy(q->lock_on, sizeof(q->lock_on), st->object);
	q->blocked_by = st->blocker_id;
	if (st->blocker_id)
		q->blocked_basis = st->candidates ? RECORD_BASIS_inferred : RECORD_BASIS_measured;
	q->blocked_candidates = st->candidates;
	q->waited_ns = st->waited_ns;
	q->moved_bytes = st->moved_bytes;
	if (!st->tid && !st->background && is_of_current(e, st))
		memcpy(q->candidates, candidates, sizeof(q->candidates));
	st->written.elapsed_ns = st->elapsed_ns;
	st->written.key = st->key;
	st->written.lock = st->lock;
	st->written.blocker_id = st->blocker_id;
	session_set_line_time(s, st->answered_ns);
	session_write_line(s);
}

/* All in the first answer and in the last one. In between, what lasts, and what has changed. */
static bool is_due(const struct sql_evidence *e, const struct sql_statement *st,
	enum record_phase phase)
{
	if (is_of_current(e, st) && phase != RECORD_PHASE_during)
		return true;
	if (phase == RECORD_PHASE_end || !is_of_current(e, st))
		return false;
	if (!st->written.elapsed_ns)
		return st->elapsed_ns >= SQL_LASTING_NS;
	/* The first answer may be to a question that was asked while idle, which has no texts. */
	return st->elapsed_ns >= 2 * st->written.elapsed_ns || st->key != st->written.key ||
		st->lock != st->written.lock || st->blocker_id != st->written.blocker_id;
}

/* Of clients first, then the longest. */
static int compare_statements(const void *a, const void *b)
{
	const struct sql_statement *const *x = a, *const *y = b;

	if ((*x)->background != (*y)->background)
		return (*x)->background ? 1 : -1;
	return (*x)->elapsed_ns < (*y)->elapsed_ns    ? 1
		: (*x)->elapsed_ns > (*y)->elapsed_ns ? -1
						      : 0;
}

static void write_statements(struct session *s, const struct sql_evidence *e,
	enum record_phase phase)
{
	struct sql_statement *due[SQL_STATEMENTS_MAX];
	uint64_t candidates[RECORD_CANDIDATES_MAX] = { 0 };
	uint32_t count = 0;

	for (uint32_t i = 0; i < e->statements->count; i++)
		if (is_due(e, &e->statements->list[i], phase))
			due[count++] = &e->statements->list[i];
	sort_in_place(due, count, sizeof(due[0]), compare_statements);
	if (phase == RECORD_PHASE_during && count > LINES_MAX)
		count = LINES_MAX;
	find_candidates(s, e, candidates);
	for (uint32_t i = 0; i < count; i++)
		write_statement(s, e, due[i], phase, candidates);
}

static void write_current(struct session *s, unsigned int index, const struct sql_evidence *e,
	enum record_phase phase)
{
	struct session_sql *state = &s->sql[index];

	state->answered_ns = e->current->answered_ns;
	write_answer(s, e, phase);
	write_statements(s, e, phase);
}

/* It has not answered, or says so for another reason than before, as one that starts again. */
static bool is_unresponsive_news(const struct session_sql *state, const struct sql_evidence *e)
{
	if (*e->why)
		return hash_text(0, e->why) != state->why;
	return !e->current && !state->unresponsive && e->unanswered_ns;
}

static void take_answer(struct session *s, unsigned int index, const struct sql_evidence *e)
{
	struct session_sql *state = &s->sql[index];
	const enum record_phase phase =
		state->answered_ns || state->unresponsive ? RECORD_PHASE_during : RECORD_PHASE_open;

	if (e->current && e->current->answered_ns != state->answered_ns) {
		write_current(s, index, e, phase);
	} else if (is_unresponsive_news(state, e)) {
		state->unresponsive = true;
		state->why = hash_text(0, e->why);
		write_unresponsive(s, e, phase);
	}
}

/* Statements that are not in the last answer, and that no line has as they were at last. */
static void write_ended(struct session *s, const struct sql_evidence *e, bool is_answered)
{
	static const uint64_t no_candidates[RECORD_CANDIDATES_MAX];

	for (uint32_t i = 0; i < e->statements->count; i++) {
		struct sql_statement *st = &e->statements->list[i];

		if (st->elapsed_ns > st->written.elapsed_ns &&
			!(is_answered && is_of_current(e, st)))
			write_statement(s, e, st, RECORD_PHASE_during, no_candidates);
	}
}

static void write_ending(struct session *s, unsigned int index, const struct sql_evidence *e)
{
	bool is_answered = e->current && !e->unanswered_ns && !*e->why;

	if (!s->sql[index].answered_ns && e->current)
		write_current(s, index, e, RECORD_PHASE_open);
	else if (!s->sql[index].answered_ns && !s->sql[index].unresponsive)
		write_unresponsive(s, e, RECORD_PHASE_open);
	write_ended(s, e, is_answered);
	if (is_answered)
		write_current(s, index, e, RECORD_PHASE_end);
	else
		write_unresponsive(s, e, RECORD_PHASE_end);
}

static void on_answer(void *userdata)
{
	struct session *s = userdata;

	if (s->state == SESSION_TRACING)
		session_take_sql_lines(s, false);
	session_wake_drain(s);
}

void session_ask_sql(struct session *s)
{
	memset(s->sql, 0, sizeof(s->sql));
	if (!s->o.sql)
		return;
	/*
	 * The callback is set here and not at start, because there are two sessions during a
	 * reload.
	 */
	sql_set_callback(s->o.sql, on_answer, s);
	sql_begin_incident(s->o.sql);
}

void session_take_sql_lines(struct session *s, bool final)
{
	struct sql_evidence e;

	for (unsigned int i = 0; i < sql_targets_count(s->o.sql); i++) {
		sql_get_evidence(s->o.sql, i, &e);
		session_take_queue(s, i, &e);
		if (!final) {
			take_answer(s, i, &e);
			continue;
		}
		session_end_queue(s, i);
		write_ending(s, i, &e);
	}
}
