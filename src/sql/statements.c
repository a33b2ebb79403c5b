/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sql/statements.h"

#include <stddef.h>
#include <string.h>

#include "util/clock.h"
#include "util/number.h"
#include "util/text.h"

/*
 * How much the start of one statement may differ between two answers, besides the time that the
 * answers took. The times of threads that a MariaDB sent late are up to 0.3 s off.
 */
#define START_NOISE_NS (400 * NSEC_PER_MSEC)

/* This memory is locked. */
_Static_assert(sizeof(struct sql_statements) <= 80 * 1024, "a target may use 80 KB for it");

struct rank {
	uint64_t moved_bytes;
	bool loads;	 /* it causes load itself */
	uint64_t ran_ns; /* in the incident */
	uint64_t elapsed_ns;
};

void sql_statements_begin(struct sql_statements *l, uint64_t begin_ns)
{
	/* Does not clear the list. */
	memset(l, 0, offsetof(struct sql_statements, list));
	l->begin_ns = begin_ns;
}

/* Ranks */

static bool is_client(const struct sql_statement *e)
{
	return !e->background && !e->idle && !e->worker && !e->asleep;
}

static struct rank rank_of(const struct sql_statements *l, const struct sql_statement *e,
	bool loads)
{
	uint64_t incident_ns = minus(e->answered_ns, l->begin_ns);

	return (struct rank){
		.moved_bytes = e->moved_bytes,
		.loads = loads,
		.ran_ns = e->elapsed_ns < incident_ns ? e->elapsed_ns : incident_ns,
		.elapsed_ns = e->elapsed_ns,
	};
}

static bool is_above(struct rank a, struct rank b)
{
	if (a.moved_bytes != b.moved_bytes)
		return a.moved_bytes > b.moved_bytes;
	if (a.loads != b.loads)
		return a.loads;
	return a.ran_ns != b.ran_ns ? a.ran_ns > b.ran_ns : a.elapsed_ns > b.elapsed_ns;
}

/* One entry for each statement */

/* How many bytes of a text the table keeps, so that no character is cut in two. */
static size_t kept_bytes(const char *text)
{
	size_t len = strnlen(text, SQL_STATEMENT_TEXT_SIZE);

	if (len < SQL_STATEMENT_TEXT_SIZE)
		return len;
	for (len--; len > 0 && (text[len] & 0xc0) == 0x80;)
		len--;
	return len;
}

/*
 * Between which times the statement began. The server looked at it between question and answer, and
 * a server that counts whole seconds is up to one second off.
 */
static void set_start(struct sql_statement *e)
{
	uint64_t error_ns = e->elapsed_ns % NSEC_PER_SEC ? START_NOISE_NS : SQL_START_ERROR_NS;

	e->start_min_ns = minus(e->asked_ns, e->elapsed_ns + error_ns);
	e->start_max_ns = minus(e->answered_ns, e->elapsed_ns) + error_ns;
}

static void fill(struct sql_statement *e, const struct sql_snapshot *answer,
	const struct sql_session_view *view)
{
	e->connection_id = view->connection_id;
	e->query_id = view->query_id;
	e->elapsed_ns = view->elapsed_ns;
	e->transaction_ns = view->transaction_ns;
	e->blocker_id = view->blocker_id;
	e->waited_ns = view->waited_ns;
	e->moved_bytes = view->moved_bytes;
	e->key = view->key;
	e->alike = view->alike;
	e->lock = view->lock;
	e->candidates = view->candidates;
	e->asked_ns = answer->asked_ns;
	e->answered_ns = answer->answered_ns;
	e->tid = view->tid;
	e->leader_pid = view->leader_pid;
	e->worker = view->worker;
	e->text_bytes = view->text_bytes;
	e->background = view->background;
	e->idle = view->idle;
	e->asleep = view->asleep;
	text_copy(e->user, sizeof(e->user), view->user);
	text_copy(e->database, sizeof(e->database), view->database);
	text_copy(e->command, sizeof(e->command), view->command);
	text_copy(e->state, sizeof(e->state), view->state);
	text_copy(e->no_tid, sizeof(e->no_tid), view->no_tid);
	text_copy(e->object, sizeof(e->object), view->object);
	text_copy(e->text, kept_bytes(view->text) + 1, view->text);
	memset(&e->written, 0, sizeof(e->written));
	set_start(e);
}

/*
 * In MariaDB a query id is that of one execution, in PostgreSQL that of all statements that look
 * alike. So different ids mean different statements, but equal ids prove nothing. An answer may
 * have had no room for the text.
 */
static bool is_same(const struct sql_statement *a, const struct sql_statement *b)
{
	bool same_number = a->query_id && a->query_id == b->query_id;

	if (a->start_min_ns > b->start_max_ns || b->start_min_ns > a->start_max_ns ||
		a->idle != b->idle)
		return false;
	if (a->query_id && b->query_id && !same_number)
		return false;
	return strcmp(a->text, b->text) == 0 || (same_number && (!*a->text || !*b->text));
}

static struct sql_statement *find_same(struct sql_statements *l, const struct sql_statement *new)
{
	for (uint32_t i = 0; i < l->count; i++)
		if (l->list[i].connection_id == new->connection_id && is_same(&l->list[i], new))
			return &l->list[i];
	return NULL;
}

/* Keeps what one of the two answers did not know. */
static void merge(struct sql_statement *old, struct sql_statement *new)
{
	new->asleep = old->asleep = new->asleep && old->asleep;
	new->moved_bytes = old->moved_bytes += new->moved_bytes;
	new->alike = old->alike = new->alike > old->alike ? new->alike : old->alike;
	/* A server that counts whole seconds may seem to go back. */
	if (new->elapsed_ns < old->elapsed_ns)
		return;
	if (!new->query_id)
		new->query_id = old->query_id;
	if (!new->tid)
		new->tid = old->tid;
	if (new->tid)
		new->no_tid[0] = '\0';
	if (!*new->text) {
		strcpy(new->text, old->text);
		new->key = old->key;
	}
	new->written = old->written;
	/* Without this, the range could drift from one statement to the next one. */
	if (new->start_min_ns < old->start_min_ns)
		new->start_min_ns = old->start_min_ns;
	if (new->start_max_ns > old->start_max_ns)
		new->start_max_ns = old->start_max_ns;
	*old = *new;
}

static struct sql_statement *find_last(struct sql_statements *l)
{
	struct sql_statement *last = &l->list[0];

	for (uint32_t i = 1; i < l->count; i++)
		if (is_above(rank_of(l, last, is_client(last)),
			    rank_of(l, &l->list[i], is_client(&l->list[i]))))
			last = &l->list[i];
	return last;
}

static void take(struct sql_statements *l, struct sql_statement *new)
{
	struct sql_statement *e = find_same(l, new);

	if (e) {
		merge(e, new);
		return;
	}
	if (l->count < SQL_STATEMENTS_MAX) {
		l->list[l->count++] = *new;
		return;
	}
	e = find_last(l);
	if (is_above(rank_of(l, new, is_client(new)), rank_of(l, e, is_client(e))))
		*e = *new;
}

static bool is_worse(const struct sql_statements *l, const struct sql_snapshot *answer)
{
	if (!l->worst_ns || answer->active != l->worst_active)
		return !l->worst_ns || answer->active > l->worst_active;
	return answer->longest_ns > l->worst_longest_ns;
}

void sql_statements_take(struct sql_statements *l, const struct sql_snapshot *answer)
{
	struct sql_statement new;
	struct sql_session_view view;

	if (is_worse(l, answer)) {
		l->worst_ns = answer->answered_ns;
		l->worst_active = answer->active;
		l->worst_longest_ns = answer->longest_ns;
	}
	for (uint32_t i = 0; i < answer->count; i++) {
		sql_snapshot_view(answer, i, &view);
		if (view.elapsed_ns == 0)
			continue;
		fill(&new, answer, &view);
		take(l, &new);
	}
}

static bool has_session(const struct sql_statements *l, uint64_t connection_id,
	uint64_t answered_ns)
{
	for (uint32_t i = 0; i < l->count; i++)
		if (l->list[i].connection_id == connection_id &&
			l->list[i].answered_ns == answered_ns)
			return true;
	return false;
}

uint32_t sql_statements_count_missing(const struct sql_statements *l,
	const struct sql_snapshot *answer)
{
	uint32_t missing = answer->left_out;

	for (uint32_t i = 0; i < answer->count; i++) {
		const struct sql_row *row = &answer->rows[i];

		missing += row->elapsed_ns && sql_row_is_client(row) &&
			!has_session(l, row->connection_id, answer->answered_ns);
	}
	return missing;
}

/* Views */

void sql_statement_view(const struct sql_statement *e, struct sql_session_view *ret_view)
{
	*ret_view = (struct sql_session_view){
		.connection_id = e->connection_id,
		.query_id = e->query_id,
		.elapsed_ns = e->elapsed_ns,
		.started_ns = minus(e->answered_ns, e->elapsed_ns),
		.transaction_ns = e->transaction_ns,
		.blocker_id = e->blocker_id,
		.waited_ns = e->waited_ns,
		.moved_bytes = e->moved_bytes,
		.key = e->key,
		.alike = e->alike,
		.lock = e->lock,
		.candidates = e->candidates,
		.tid = e->tid,
		.leader_pid = e->leader_pid,
		.text_bytes = e->text_bytes,
		.background = e->background,
		.idle = e->idle,
		.asleep = e->asleep,
		.worker = e->worker,
		.user = e->user,
		.database = e->database,
		.command = e->command,
		.state = e->state,
		.no_tid = e->no_tid,
		.object = e->object,
		.text = e->text,
	};
}

/* The entry of the backend that a worker without a statement of its own worked for at that time. */
static const struct sql_statement *leader_of(const struct sql_statements *l,
	const struct sql_statement *e)
{
	for (uint32_t i = 0; !*e->text && e->leader_pid > 0 && i < l->count; i++) {
		const struct sql_statement *leader = &l->list[i];

		if (leader->tid == e->leader_pid && !leader->idle &&
			leader->answered_ns >= e->answered_ns &&
			leader->start_max_ns <= e->answered_ns)
			return leader;
	}
	return e;
}

/*
 * What the thread moved while it ran a statement says which one caused its load. Without that, one
 * that slept did not, even if it took longest.
 */
static bool is_more(const struct sql_statements *l, const struct sql_statement *a,
	const struct sql_statement *b)
{
	return is_above(rank_of(l, a, !a->asleep), rank_of(l, b, !b->asleep));
}

static const struct sql_statement *find_thread(const struct sql_statements *l, int32_t tid,
	uint64_t begun_by_ns)
{
	const struct sql_statement *found = NULL;

	for (uint32_t i = 0; tid > 0 && i < l->count; i++) {
		const struct sql_statement *e = &l->list[i];

		if (e->tid != tid || e->idle)
			continue;
		e = leader_of(l, e);
		if ((minus(e->answered_ns, e->elapsed_ns) <= begun_by_ns || e->moved_bytes) &&
			(!found || is_more(l, e, found)))
			found = e;
	}
	return found;
}

bool sql_statements_find_thread(const struct sql_statements *l, const struct sql_snapshot *newest,
	int32_t tid, struct sql_session_view *ret_view)
{
	const struct sql_statement *e = l->worst_ns ? find_thread(l, tid, l->worst_ns) : NULL;
	struct sql_session_view view;
	struct sql_statement now;

	if (e)
		sql_statement_view(e, ret_view);
	/* A full table may not have what it runs now. */
	if (!l->worst_ns || !newest || !sql_snapshot_find_thread(newest, tid, &view) ||
		view.started_ns > l->worst_ns)
		return e != NULL;
	fill(&now, newest, &view);
	if (!e || is_more(l, &now, e))
		*ret_view = view;
	return true;
}

int32_t sql_statements_find_leader(const struct sql_statements *l, int32_t tid)
{
	for (uint32_t i = 0; tid > 0 && i < l->count; i++)
		if (l->list[i].tid == tid && l->list[i].leader_pid > 0)
			return l->list[i].leader_pid;
	return 0;
}
