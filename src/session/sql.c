/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lines of a record that databases give: who runs which statement, on which thread. */
#include <string.h>

#include "session/internal.h"
#include "sql/threads.h"
#include "util/clock.h"
#include "util/sort.h"

/* Sessions of one moment that get a line, the longest statements first; the others are counted. */
#define SESSIONS_MAX 64
/* Stuck threads that are asked whose they are, 1 us each. */
#define CANDIDATES_ASKED 256

struct order {
	uint64_t elapsed_ns;
	bool background;
	uint16_t index;
};

/* Clients' first, then by length. */
static int compare_order(const void *a, const void *b)
{
	const struct order *x = a, *y = b;

	if (x->background != y->background)
		return x->background ? 1 : -1;
	return x->elapsed_ns < y->elapsed_ns ? 1 : x->elapsed_ns > y->elapsed_ns ? -1 : 0;
}

static struct record_sql *begin_line(struct session *s, const struct sql_evidence *e,
	const char *moment)
{
	struct record_sql *q = &session_begin_line(s, RECORD_SQL)->sql;

	q->active = q->idle = q->left_out = -1;
	text_copy(q->target, sizeof(q->target), e->target);
	text_copy(q->server, sizeof(q->server), e->type);
	text_copy(q->moment, sizeof(q->moment), moment);
	return q;
}

/* When it was answered, not when the line is written. */
static void set_times(struct session *s, uint64_t answered_ns)
{
	struct record *r = &s->record;

	if (answered_ns < r->mono_ns) {
		r->real_ns -= r->mono_ns - answered_ns;
		r->mono_ns = answered_ns;
	}
}

static void write_silence(struct session *s, const struct sql_evidence *e, const char *moment)
{
	struct record_sql *q = begin_line(s, e, moment);

	text_copy(q->version, sizeof(q->version), e->version);
	text_copy(q->account, sizeof(q->account), e->account);
	text_copy(q->error, sizeof(q->error), *e->why ? e->why : "does not answer");
	text_copy(q->missing, sizeof(q->missing), e->missing);
	q->unanswered_ns = e->unanswered_ns;
	session_write_line(s);
}

static void write_answer(struct session *s, const struct sql_evidence *e,
	const struct sql_snapshot *snapshot, const char *moment, uint32_t unwritten)
{
	struct record_sql *q = begin_line(s, e, moment);

	q->active = snapshot->active;
	q->idle = snapshot->idle;
	q->left_out = (int64_t)snapshot->left_out + unwritten;
	q->server_ns = snapshot->server_ns;
	q->answer_ns = snapshot->answered_ns - snapshot->asked_ns;
	text_copy(q->missing, sizeof(q->missing), e->grant);
	text_copy(q->version, sizeof(q->version), e->version);
	text_copy(q->account, sizeof(q->account), e->account);
	set_times(s, snapshot->answered_ns);
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

/* A thread that only has a request in flight may do anything meanwhile. */
static bool hung_at(const struct incident_stuck *stuck, uint64_t at_ns)
{
	return stuck->start_ns && stuck->start_ns <= at_ns && stuck->reported_age_ns && !stuck->stale &&
	       !stuck->is_request;
}

/*
 * Adds the threads of the server that hang since before that answer: a session of unknown thread may be on
 * one of them.
 */
static void add_candidates(const struct session *s, const struct sql_evidence *e,
	const struct sql_snapshot *snapshot, uint64_t candidates[RECORD_CANDIDATES_MAX])
{
	unsigned int found = 0, asked = 0;

	if (!e->server_pid || !has_unknown_thread(snapshot))
		return;
	while (found < RECORD_CANDIDATES_MAX && candidates[found])
		found++;
	for (unsigned int i = 0; i < INCIDENT_STUCK_MAX; i++) {
		const struct incident_stuck *stuck = &s->incident.stuck[i];

		if (!hung_at(stuck, snapshot->answered_ns) || is_among(candidates, stuck->tid))
			continue;
		if (found == RECORD_CANDIDATES_MAX || asked++ == CANDIDATES_ASKED)
			break;
		if (sql_thread_is_of(s->procfs_fd, (int32_t)stuck->tid, e->server_pid, false))
			candidates[found++] = stuck->tid;
	}
}

/* When the lines of the worst moment are written, those who hung then hang no more. */
static void keep_candidates(const struct session *s, struct session_sql *state, const struct sql_evidence *e)
{
	if (!e->worst)
		return;
	if (state->worst_ns != e->worst->answered_ns)
		memset(state->worst_candidates, 0, sizeof(state->worst_candidates));
	state->worst_ns = e->worst->answered_ns;
	/* Again with each answer: that a thread hung may be seen a little later. */
	add_candidates(s, e, e->worst, state->worst_candidates);
}

static struct record_sql *begin_session(struct session *s, const struct sql_evidence *e,
	const struct sql_session_view *view, const char *moment)
{
	struct record_sql *q = begin_line(s, e, moment);

	q->connection_id = view->connection_id;
	q->query_id = view->query_id;
	text_copy(q->user, sizeof(q->user), view->user);
	text_copy(q->database, sizeof(q->database), view->database);
	text_copy(q->command, sizeof(q->command), view->command);
	text_copy(q->state, sizeof(q->state), view->state);
	q->elapsed_ns = view->elapsed_ns;
	text_copy(q->text, sizeof(q->text), view->text);
	q->text_bytes = view->text_bytes;
	/* A session of PostgreSQL is a process. */
	q->pid = strcmp(e->type, "postgresql") == 0 && view->tid ? view->tid : e->server_pid;
	q->tid = view->tid;
	text_copy(q->tid_reason, sizeof(q->tid_reason), view->no_tid);
	q->leader_pid = view->leader_pid;
	q->background = view->background;
	return q;
}

static void write_session(struct session *s, const struct sql_evidence *e,
	const struct sql_snapshot *snapshot, uint32_t index, const char *moment,
	const uint64_t candidates[RECORD_CANDIDATES_MAX])
{
	struct sql_session_view view;
	struct record_sql *q;

	sql_snapshot_view(snapshot, index, &view);
	q = begin_session(s, e, &view, moment);
	if (!view.tid && !view.background)
		memcpy(q->candidates, candidates, sizeof(q->candidates));
	set_times(s, snapshot->answered_ns);
	session_write_line(s);
}

static void write_moment(struct session *s, const struct sql_evidence *e,
	const struct sql_snapshot *snapshot, const char *moment,
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
	write_answer(s, e, snapshot, moment, snapshot->count - count);
	for (uint32_t i = 0; i < count; i++)
		write_session(s, e, snapshot, order[i].index, moment, candidates);
}

static void write_current(struct session *s, const struct sql_evidence *e, const char *moment)
{
	uint64_t candidates[RECORD_CANDIDATES_MAX] = { 0 };

	add_candidates(s, e, e->current, candidates);
	write_moment(s, e, e->current, moment, candidates);
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
		write_current(s, e, "open");
	} else if (!state->silent && (e->unanswered_ns || *e->why || final)) {
		state->silent = true;
		write_silence(s, e, "open");
	}
}

static bool is_of(const struct sql_longest_entry *entry, const struct sql_snapshot *snapshot)
{
	return snapshot && has_all_lines(snapshot) && entry->answered_ns == snapshot->answered_ns;
}

/*
 * Statements of which the lines of the three answers do not say how long they ran: the last answer that had
 * them is none of those. `last`: that of the lines to come, or NULL.
 */
static void write_longest(struct session *s, const struct session_sql *state, const struct sql_evidence *e,
	const struct sql_snapshot *last)
{
	struct order order[SQL_LONGEST_MAX];
	uint32_t count = 0;

	for (uint32_t i = 0; i < e->longest->count; i++) {
		const struct sql_longest_entry *entry = &e->longest->entries[i];

		if (entry->answered_ns == state->opened_ns || is_of(entry, e->worst) || is_of(entry, last))
			continue;
		order[count++] = (struct order){
			.elapsed_ns = entry->elapsed_ns,
			.background = entry->background,
			.index = (uint16_t)i,
		};
	}
	sort_in_place(order, count, sizeof(order[0]), compare_order);
	for (uint32_t i = 0; i < count; i++) {
		const struct sql_longest_entry *entry = &e->longest->entries[order[i].index];
		struct sql_session_view view;

		sql_longest_view(e->longest, order[i].index, &view);
		/* There is no line about that answer as a whole. */
		begin_session(s, e, &view, "longest")->answer_ns = entry->answered_ns - entry->asked_ns;
		set_times(s, entry->answered_ns);
		session_write_line(s);
	}
}

static void write_ending(struct session *s, const struct session_sql *state, const struct sql_evidence *e)
{
	bool is_answered = e->current && !e->unanswered_ns && !*e->why;

	if (e->worst)
		write_moment(s, e, e->worst, "worst", state->worst_candidates);
	write_longest(s, state, e, is_answered ? e->current : NULL);
	if (is_answered)
		write_current(s, e, "end");
	else
		write_silence(s, e, "end");
}

/* The first answer is that of the opening: the next would be of a second later. */
static void on_answer(void *userdata)
{
	struct session *s = userdata;

	if (s->state == SESSION_TRACING || s->state == SESSION_DRAINING)
		session_take_sql_lines(s, false);
}

void session_ask_sql(struct session *s)
{
	struct sql_evidence e;

	memset(s->sql, 0, sizeof(s->sql));
	if (!s->o.sql)
		return;
	/* What led to the incident may be over before anything else is taken. */
	for (unsigned int i = 0; i < sql_targets_count(s->o.sql); i++) {
		sql_get_evidence(s->o.sql, i, &e);
		session_note_silence(s, i, &e);
	}
	/* Here, since at a reload there are two sessions for a while. */
	sql_set_callback(s->o.sql, on_answer, s);
	sql_begin_incident(s->o.sql);
}

void session_take_sql_lines(struct session *s, bool final)
{
	struct sql_evidence e;

	for (unsigned int i = 0; i < sql_targets_count(s->o.sql); i++) {
		sql_get_evidence(s->o.sql, i, &e);
		session_note_silence(s, i, &e);
		take_opening(s, i, &e, final);
		keep_candidates(s, &s->sql[i], &e);
		if (final)
			write_ending(s, &s->sql[i], &e);
	}
}
