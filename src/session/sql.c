/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the `sql` lines: who ran which statement, on which thread. */
#include <string.h>

#include "session/internal.h"
#include "sql/threads.h"
#include "util/clock.h"
#include "util/sort.h"
#include "watch/thread_status.h"

/*
 * In each phase at most so many sessions get a line, those with the longest statements first; the
 * others are counted.
 */
#define SESSIONS_MAX 64
/* At most so many stuck threads are looked up in /proc; one lookup takes 1 us. */
#define CANDIDATES_ASKED 256

struct order {
	uint64_t elapsed_ns;
	bool background;
	uint16_t index;
};

/* Client sessions first, then the longest statements. */
static int compare_order(const void *a, const void *b)
{
	const struct order *x = a, *y = b;

	if (x->background != y->background)
		return x->background ? 1 : -1;
	return x->elapsed_ns < y->elapsed_ns ? 1 : x->elapsed_ns > y->elapsed_ns ? -1 : 0;
}

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

void session_set_line_time(struct session *s, uint64_t answered_ns)
{
	struct record *r = &s->record;

	if (answered_ns < r->mono_ns) {
		r->real_ns -= r->mono_ns - answered_ns;
		r->mono_ns = answered_ns;
	}
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

static void write_answer(struct session *s, const struct sql_evidence *e,
	const struct sql_snapshot *snapshot, enum record_phase phase, uint32_t unwritten)
{
	struct record_sql *q = begin_line(s, e, phase);

	q->active = snapshot->active;
	q->idle = snapshot->idle;
	q->left_out = (int64_t)snapshot->left_out + unwritten;
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

static bool has_unknown_thread(const struct sql_snapshot *snapshot)
{
	for (uint32_t i = 0; i < snapshot->count; i++)
		if (!snapshot->rows[i].tid && !snapshot->rows[i].background)
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
 * Adds the threads of the server that already hung at the time of that answer. A session whose
 * thread is unknown may run on one of them.
 */
static void add_candidates(const struct session *s, const struct sql_evidence *e,
	const struct sql_snapshot *snapshot, uint64_t candidates[RECORD_CANDIDATES_MAX])
{
	unsigned int found = 0, asked = 0;

	if (!e->server_pid || !has_unknown_thread(snapshot))
		return;
	while (found < RECORD_CANDIDATES_MAX && candidates[found])
		found++;
	for (unsigned int i = 0; i < INCIDENT_STUCK_SLOTS; i++) {
		const struct incident_stuck *stuck = &s->incident.stuck[i];

		if (!hung_at(stuck, snapshot->answered_ns) || is_among(candidates, stuck->tid))
			continue;
		if (found == RECORD_CANDIDATES_MAX || asked++ == CANDIDATES_ASKED)
			break;
		if (sql_thread_is_of(s->procfs_fd, (int32_t)stuck->tid, e->server_pid, false))
			candidates[found++] = stuck->tid;
	}
}

/*
 * Keeps the threads that hang at the worst answer, because they may have returned when its lines
 * are written.
 */
static void keep_candidates(const struct session *s, struct session_sql *state,
	const struct sql_evidence *e)
{
	if (!e->worst)
		return;
	if (state->worst_ns != e->worst->answered_ns)
		memset(state->worst_candidates, 0, sizeof(state->worst_candidates));
	state->worst_ns = e->worst->answered_ns;
	/* Repeated at each answer, because a thread that hung may be found a little later. */
	add_candidates(s, e, e->worst, state->worst_candidates);
}

static struct record_sql *begin_session(struct session *s, const struct sql_evidence *e,
	const struct sql_session_view *view, enum record_phase phase)
{
	const char *role = view->background ? sql_find_role(s->o.sql, view->tid) : "";
	struct record_sql *q = begin_line(s, e, phase);

	q->connection_id = view->connection_id;
	q->query_id = view->query_id;
	text_copy(q->user, sizeof(q->user), *role ? role : view->user);
	text_copy(q->database, sizeof(q->database), view->database);
	text_copy(q->command, sizeof(q->command), view->command);
	text_copy(q->state, sizeof(q->state), view->state);
	q->elapsed_ns = view->elapsed_ns;
	text_copy(q->text, sizeof(q->text), view->text);
	q->text_bytes = view->text_bytes;
	q->pid = e->sessions_are_processes && view->tid ? view->tid : e->server_pid;
	q->tid = view->tid;
	text_copy(q->tid_reason, sizeof(q->tid_reason), view->no_tid);
	q->leader_pid = view->leader_pid;
	q->background = view->background;
	q->quiet = view->idle || view->asleep;
	q->transaction_ns = view->transaction_ns;
	q->lock = view->lock;
	text_copy(q->lock_on, sizeof(q->lock_on), view->object);
	q->blocked_by = view->blocker_id;
	if (view->blocker_id)
		q->blocked_basis = view->candidates ? RECORD_BASIS_inferred : RECORD_BASIS_measured;
	q->blocked_candidates = view->candidates;
	q->waited_ns = view->waited_ns;
	q->moved_bytes = sql_slow_find_moved(e->slow, view);
	return q;
}

static void write_session(struct session *s, const struct sql_evidence *e,
	const struct sql_snapshot *snapshot, uint32_t index, enum record_phase phase,
	const uint64_t candidates[RECORD_CANDIDATES_MAX])
{
	struct sql_session_view view;
	struct record_sql *q;

	sql_snapshot_view(snapshot, index, &view);
	q = begin_session(s, e, &view, phase);
	if (!view.tid && !view.background)
		memcpy(q->candidates, candidates, sizeof(q->candidates));
	session_set_line_time(s, snapshot->answered_ns);
	session_write_line(s);
}

static void write_phase(struct session *s, const struct sql_evidence *e,
	const struct sql_snapshot *snapshot, enum record_phase phase,
	const uint64_t candidates[RECORD_CANDIDATES_MAX])
{
	uint32_t count = snapshot->count < SESSIONS_MAX ? snapshot->count : SESSIONS_MAX;
	struct order order[SQL_SESSIONS_MAX];

	for (uint32_t i = 0; i < snapshot->count; i++)
		order[i] = (struct order){
			.elapsed_ns = snapshot->rows[i].elapsed_ns,
			.background = snapshot->rows[i].background,
			.index = (uint16_t)i,
		};
	sort_in_place(order, snapshot->count, sizeof(order[0]), compare_order);
	write_answer(s, e, snapshot, phase, snapshot->count - count);
	for (uint32_t i = 0; i < count; i++)
		write_session(s, e, snapshot, order[i].index, phase, candidates);
}

static void write_current(struct session *s, const struct sql_evidence *e, enum record_phase phase)
{
	uint64_t candidates[RECORD_CANDIDATES_MAX] = { 0 };

	add_candidates(s, e, e->current, candidates);
	write_phase(s, e, e->current, phase, candidates);
}

static bool has_all_lines(const struct sql_snapshot *snapshot)
{
	return snapshot->count <= SESSIONS_MAX;
}

static void take_opening(struct session *s, unsigned int index, const struct sql_evidence *e,
	bool final)
{
	struct session_sql *state = &s->sql[index];

	if (state->opened)
		return;
	if (e->current) {
		state->opened = true;
		if (has_all_lines(e->current))
			state->opened_ns = e->current->answered_ns;
		write_current(s, e, RECORD_PHASE_open);
	} else if (!state->unresponsive && (e->unanswered_ns || *e->why || final)) {
		state->unresponsive = true;
		write_unresponsive(s, e, RECORD_PHASE_open);
	}
}

static bool is_of(const struct sql_slow_entry *entry, const struct sql_snapshot *snapshot)
{
	return snapshot && has_all_lines(snapshot) && entry->answered_ns == snapshot->answered_ns;
}

/*
 * Writes slow statements whose last known length is in none of the other phases: the last answer
 * that had them is not that of the `open`, `worst` or `end` phase. `last` is the answer of the
 * `end` phase, or NULL.
 */
static void write_slow(struct session *s, const struct session_sql *state,
	const struct sql_evidence *e, const struct sql_snapshot *last)
{
	struct order order[SQL_SLOW_MAX];
	uint32_t count = 0;

	for (uint32_t i = 0; i < e->slow->count; i++) {
		const struct sql_slow_entry *entry = &e->slow->entries[i];

		if (entry->answered_ns == state->opened_ns || is_of(entry, e->worst) ||
			is_of(entry, last))
			continue;
		order[count++] = (struct order){
			.elapsed_ns = entry->elapsed_ns,
			.background = entry->background,
			.index = (uint16_t)i,
		};
	}
	sort_in_place(order, count, sizeof(order[0]), compare_order);
	for (uint32_t i = 0; i < count; i++) {
		const struct sql_slow_entry *entry = &e->slow->entries[order[i].index];
		struct sql_session_view view;

		sql_slow_view(e->slow, order[i].index, &view);
		/* There is no line about the answer itself that could have its length. */
		begin_session(s, e, &view, RECORD_PHASE_slow)->answer_ns =
			entry->answered_ns - entry->asked_ns;
		session_set_line_time(s, entry->answered_ns);
		session_write_line(s);
	}
}

static void write_ending(struct session *s, const struct session_sql *state,
	const struct sql_evidence *e)
{
	bool is_answered = e->current && !e->unanswered_ns && !*e->why;

	if (e->worst)
		write_phase(s, e, e->worst, RECORD_PHASE_worst, state->worst_candidates);
	write_slow(s, state, e, is_answered ? e->current : NULL);
	if (is_answered)
		write_current(s, e, RECORD_PHASE_end);
	else
		write_unresponsive(s, e, RECORD_PHASE_end);
}

/* Takes the first answer at once as that of the `open` phase: the next one comes a second later. */
static void on_answer(void *userdata)
{
	struct session *s = userdata;

	if (s->state == SESSION_TRACING || s->state == SESSION_DRAINING)
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

void session_find_silence(struct session *s, struct record_silence *ret_silence)
{
	struct watch_thread_status status;
	struct sql_evidence e;

	for (unsigned int i = 0; i < sql_targets_count(s->o.sql); i++) {
		sql_get_evidence(s->o.sql, i, &e);
		if (!e.in_session || e.unanswered_ns <= ret_silence->unanswered_ns)
			continue;
		*ret_silence = (struct record_silence){ .present = true,
			.unanswered_ns = e.unanswered_ns,
			.pid = e.server_pid };
		text_copy(ret_silence->target, sizeof(ret_silence->target), e.target);
	}
	if (!ret_silence->pid || thread_status_read(s->procfs_fd, ret_silence->pid, &status) < 0)
		return;
	ret_silence->stopped = status.state == 'T' || status.state == 't';
	text_copy(ret_silence->comm, sizeof(ret_silence->comm), status.comm);
}

void session_take_sql_lines(struct session *s, bool final)
{
	struct sql_evidence e;

	for (unsigned int i = 0; i < sql_targets_count(s->o.sql); i++) {
		sql_get_evidence(s->o.sql, i, &e);
		session_take_queue(s, i, &e);
		take_opening(s, i, &e, final);
		keep_candidates(s, &s->sql[i], &e);
		if (final) {
			session_end_queue(s, i);
			write_ending(s, &s->sql[i], &e);
		}
	}
}
