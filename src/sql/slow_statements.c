/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sql/slow_statements.h"

#include <string.h>

#include "util/clock.h"
#include "util/text.h"

/*
 * How much the start of one statement may differ between two answers, besides the time that the
 * answers took. The times of threads that a MariaDB sent late are up to 0.3 s off.
 */
#define START_NOISE_NS (400 * NSEC_PER_MSEC)

/* This memory is locked. */
_Static_assert(sizeof(struct sql_slow_statements) <= 26 * 1024, "a target may use 26 KB for it");

struct rank {
	uint64_t moved_bytes; /* only to compare the statements of one thread */
	bool loads;	      /* it causes load itself */
	uint64_t ran_ns;      /* in the incident */
	uint64_t elapsed_ns;
};

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

void sql_slow_begin(struct sql_slow_statements *l, uint64_t begin_ns)
{
	l->begin_ns = begin_ns;
	l->count = 0;
}

/* Ranks */

static struct rank rank_of(const struct sql_slow_statements *l, bool loads, uint64_t answered_ns,
	uint64_t elapsed_ns)
{
	uint64_t incident_ns = minus(answered_ns, l->begin_ns);

	return (struct rank){
		.loads = loads,
		.ran_ns = elapsed_ns < incident_ns ? elapsed_ns : incident_ns,
		.elapsed_ns = elapsed_ns,
	};
}

static struct rank rank_of_entry(const struct sql_slow_statements *l,
	const struct sql_slow_entry *e)
{
	return rank_of(l, !e->background && !e->idle && !e->worker && !e->asleep, e->answered_ns,
		e->elapsed_ns);
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
	size_t len = strnlen(text, SQL_SLOW_TEXT_SIZE);

	if (len < SQL_SLOW_TEXT_SIZE)
		return len;
	for (len--; len > 0 && (text[len] & 0xc0) == 0x80;)
		len--;
	return len;
}

/*
 * Between which times the statement began. The server looked at it between question and answer, and
 * a server that counts whole seconds is up to one second off.
 */
static void set_start(struct sql_slow_entry *e)
{
	uint64_t error_ns = e->elapsed_ns % NSEC_PER_SEC ? START_NOISE_NS : SQL_START_ERROR_NS;

	e->start_min_ns = minus(e->asked_ns, e->elapsed_ns + error_ns);
	e->start_max_ns = minus(e->answered_ns, e->elapsed_ns) + error_ns;
}

static void fill(struct sql_slow_entry *e, const struct sql_snapshot *answer,
	const struct sql_session_view *view)
{
	e->connection_id = view->connection_id;
	e->query_id = view->query_id;
	e->elapsed_ns = view->elapsed_ns;
	e->transaction_ns = view->transaction_ns;
	e->blocker_id = view->blocker_id;
	e->waited_ns = view->waited_ns;
	e->moved_bytes = view->moved_bytes;
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
	e->asleep = sql_state_is_sleep(view->state);
	text_copy(e->user, sizeof(e->user), view->user);
	text_copy(e->database, sizeof(e->database), view->database);
	text_copy(e->command, sizeof(e->command), view->command);
	text_copy(e->state, sizeof(e->state), view->state);
	text_copy(e->no_tid, sizeof(e->no_tid), view->no_tid);
	text_copy(e->object, sizeof(e->object), view->object);
	text_copy(e->text, kept_bytes(view->text) + 1, view->text);
	set_start(e);
}

/*
 * In MariaDB a query id is that of one execution, in PostgreSQL that of all statements that look
 * alike. So different ids mean different statements, but equal ids prove nothing. An answer may
 * have had no room for the text.
 */
static bool is_same(const struct sql_slow_entry *a, const struct sql_slow_entry *b)
{
	bool same_number = a->query_id && a->query_id == b->query_id;

	if (a->start_min_ns > b->start_max_ns || b->start_min_ns > a->start_max_ns ||
		a->idle != b->idle)
		return false;
	if (a->query_id && b->query_id && !same_number)
		return false;
	return strcmp(a->text, b->text) == 0 || (same_number && (!*a->text || !*b->text));
}

static struct sql_slow_entry *find_same(struct sql_slow_statements *l,
	const struct sql_slow_entry *new)
{
	for (uint32_t i = 0; i < l->count; i++)
		if (l->entries[i].connection_id == new->connection_id &&
			is_same(&l->entries[i], new))
			return &l->entries[i];
	return NULL;
}

/* Keeps what one of the two answers did not know. */
static void merge(struct sql_slow_entry *old, struct sql_slow_entry *new)
{
	new->asleep = old->asleep = new->asleep && old->asleep;
	new->moved_bytes = old->moved_bytes += new->moved_bytes;
	/* A server that counts whole seconds may seem to go back. */
	if (new->elapsed_ns < old->elapsed_ns)
		return;
	if (!new->query_id)
		new->query_id = old->query_id;
	if (!new->tid)
		new->tid = old->tid;
	if (new->tid)
		new->no_tid[0] = '\0';
	if (!*new->text)
		strcpy(new->text, old->text);
	/* Without this, the range could drift from one statement to the next one. */
	if (new->start_min_ns < old->start_min_ns)
		new->start_min_ns = old->start_min_ns;
	if (new->start_max_ns > old->start_max_ns)
		new->start_max_ns = old->start_max_ns;
	*old = *new;
}

static struct sql_slow_entry *find_last(struct sql_slow_statements *l)
{
	struct sql_slow_entry *last = &l->entries[0];

	for (uint32_t i = 1; i < l->count; i++)
		if (is_above(rank_of_entry(l, last), rank_of_entry(l, &l->entries[i])))
			last = &l->entries[i];
	return last;
}

static void take(struct sql_slow_statements *l, struct sql_slow_entry *new)
{
	struct sql_slow_entry *e = find_same(l, new);

	if (e) {
		merge(e, new);
		return;
	}
	if (l->count < SQL_SLOW_MAX) {
		l->entries[l->count++] = *new;
		return;
	}
	e = find_last(l);
	if (is_above(rank_of_entry(l, new), rank_of_entry(l, e)))
		*e = *new;
}

void sql_slow_take(struct sql_slow_statements *l, const struct sql_snapshot *answer)
{
	struct sql_slow_entry new;
	struct sql_session_view view;

	for (uint32_t i = 0; i < answer->count; i++) {
		sql_snapshot_view(answer, i, &view);
		/* The time is unknown, or too short to matter. */
		if (view.elapsed_ns == 0)
			continue;
		fill(&new, answer, &view);
		take(l, &new);
	}
}

/* Views */

static void view_of(const struct sql_slow_entry *e, struct sql_session_view *ret_view)
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

uint64_t sql_slow_find_moved(const struct sql_slow_statements *l,
	const struct sql_session_view *view)
{
	for (uint32_t i = 0; i < l->count; i++) {
		const struct sql_slow_entry *e = &l->entries[i];

		if (e->connection_id == view->connection_id &&
			view->started_ns >= e->start_min_ns && view->started_ns <= e->start_max_ns)
			return e->moved_bytes;
	}
	return view->moved_bytes;
}

void sql_slow_view(const struct sql_slow_statements *l, uint32_t index,
	struct sql_session_view *ret_view)
{
	view_of(&l->entries[index], ret_view);
}

/* The entry of the backend that a worker without a statement of its own worked for at that time. */
static const struct sql_slow_entry *leader_of(const struct sql_slow_statements *l,
	const struct sql_slow_entry *e)
{
	for (uint32_t i = 0; !*e->text && e->leader_pid > 0 && i < l->count; i++) {
		const struct sql_slow_entry *leader = &l->entries[i];

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
static struct rank rank_for_thread(const struct sql_slow_statements *l,
	const struct sql_slow_entry *e)
{
	struct rank rank = rank_of(l, !e->asleep, e->answered_ns, e->elapsed_ns);

	rank.moved_bytes = e->moved_bytes;
	return rank;
}

static const struct sql_slow_entry *find_thread(const struct sql_slow_statements *l, int32_t tid,
	uint64_t begun_by_ns)
{
	const struct sql_slow_entry *found = NULL;

	for (uint32_t i = 0; tid > 0 && i < l->count; i++) {
		const struct sql_slow_entry *e = &l->entries[i];

		if (e->tid != tid || e->idle)
			continue;
		e = leader_of(l, e);
		if ((minus(e->answered_ns, e->elapsed_ns) <= begun_by_ns || e->moved_bytes) &&
			(!found || is_above(rank_for_thread(l, e), rank_for_thread(l, found))))
			found = e;
	}
	return found;
}

bool sql_slow_find_thread(const struct sql_slow_statements *l, const struct sql_snapshot *worst,
	const struct sql_snapshot *newest, int32_t tid, struct sql_session_view *ret_view)
{
	const struct sql_slow_entry *e = worst ? find_thread(l, tid, worst->answered_ns) : NULL;
	struct sql_session_view kept;
	struct rank rank;

	if (!worst)
		return false;
	if (!sql_snapshots_find_thread(worst, newest, tid, &kept)) {
		if (e)
			view_of(e, ret_view);
		return e != NULL;
	}
	/*
	 * A full table may not have this statement. If it has the same one, the answer has more
	 * text.
	 */
	rank = rank_of(l, !sql_state_is_sleep(kept.state), kept.started_ns + kept.elapsed_ns,
		kept.elapsed_ns);
	if (e && is_above(rank_for_thread(l, e), rank))
		view_of(e, ret_view);
	else
		*ret_view = kept;
	return true;
}
